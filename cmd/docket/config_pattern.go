package main

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml/ast"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

// patterns reads a list of glob patterns. With ! before it a pattern takes
// away what an earlier one let in; trouble judges the pattern itself.
func (l *loader) patterns(o *object, key string, trouble func(glob string) string) (list []string) {
	if !o.has(key) {
		return nil
	}
	for i, n := range l.filled(o, key, "nothing matches; name patterns, or remove the key") {
		s, ok := l.text(n, o.what+": "+key)
		if !ok {
			continue
		}
		glob, exclude := strings.CutPrefix(s, "!")
		why := trouble(glob)
		if glob != "" && exclude && i == 0 {
			why = `is the first and takes away what none before it let in; put one before it, as in "**"`
		}
		if why != "" {
			l.at(n, "%s: %s: the pattern %q %s", o.what, key, s, why)
			continue
		}
		list = append(list, s)
	}
	return list
}

// globTrouble says why a glob pattern cannot match anything, or "".
func globTrouble(glob string) string {
	switch {
	case glob == "":
		return "is empty; write one, as in deploy-* or **"
	case !doublestar.ValidatePattern(glob):
		return "does not parse; check its brackets, braces and backslashes"
	}
	return ""
}

// refPatternTrouble says why a pattern cannot match a branch or tag, or "".
func refPatternTrouble(glob string) string {
	switch {
	case glob == "":
		return "is empty; write one, as in main or release/**"
	case strings.HasPrefix(glob, "refs/"):
		return "begins with refs/; write the short name, as in main or v*"
	}
	return globTrouble(glob)
}

// pathPatternTrouble says why a pattern cannot match a file of the
// repository, or "".
func pathPatternTrouble(glob string) string {
	switch {
	case glob == "":
		return "is empty; write one, as in docs/** or **/*.md"
	case strings.HasPrefix(glob, "/"), strings.HasPrefix(glob, "./"), strings.HasPrefix(glob, "../"):
		return "is not a path from the repository's root; leave out what stands before its first name, as in docs/**"
	case strings.HasSuffix(glob, "/"):
		return "names a directory, and only files change; write ** after it for all that is in it"
	}
	return globTrouble(glob)
}

// paths reads the filter by changed files.
func (l *loader) paths(o *object) ci.Paths {
	return ci.Paths{
		Only:   l.patterns(o, "paths", pathPatternTrouble),
		Ignore: l.patterns(o, "paths_ignore", pathPatternTrouble),
	}
}

// schedule reads one time table.
func (l *loader) schedule(n ast.Node, what string) (s ci.Schedule) {
	o := l.object(n, sectionSchedule, what)
	if o == nil || !o.need("cron", `"0 3 * * *"`) {
		return s
	}
	before := len(l.faults.list)
	s.Cron = o.text("cron")
	if len(l.faults.list) == before {
		if _, err := pipeline.ParseCron(s.Cron); err != nil {
			o.at("cron", "%s: cron: %q %s", what, s.Cron, ci.MessageOf(err))
		}
	}
	if o.has("timezone") {
		s.Timezone = o.text("timezone")
		o.emptyText("timezone")
		if _, err := pipeline.ParseZone(s.Timezone); err != nil {
			o.at("timezone", "%s: timezone: %q %s", what, s.Timezone, ci.MessageOf(err))
		}
	}
	if o.has("branch") {
		before = len(l.faults.list)
		s.Branch = o.text("branch")
		if trouble := branchTrouble(s.Branch); trouble != "" && len(l.faults.list) == before {
			o.at("branch", "%s: branch: %q %s", what, s.Branch, trouble)
		}
	}
	return s
}
