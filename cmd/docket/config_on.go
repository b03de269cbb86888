package main

import (
	"cmp"

	"github.com/goccy/go-yaml/ast"

	"docket/store/ci"
)

// on reads which events start runs. Without it, pushes to every branch and
// pull requests to every branch do.
func (l *loader) on(o *object, defaultBranch string) ci.On {
	if !o.has("on") {
		return ci.On{Push: &ci.OnPush{}, PullRequest: &ci.OnPullRequest{}}
	}
	var on ci.On
	eo := l.object(o.field("on"), sectionOn, o.what+": on")
	if eo == nil {
		return on
	}
	if eo.has("push") {
		on.Push = l.onPush(eo)
	}
	if eo.has("pull_request") {
		on.PullRequest = l.onPullRequest(eo)
	}
	if eo.has("merge_group") {
		on.MergeGroup = &ci.OnMergeGroup{}
		if p := l.filter(eo, "merge_group", sectionMergeGroup); p != nil {
			on.MergeGroup.Branches = l.patterns(p, "branches", refPatternTrouble)
		}
	}
	if eo.has("release") {
		on.Release = &ci.OnRelease{}
		if p := l.filter(eo, "release", sectionRelease); p != nil && p.has("types") {
			on.Release.Types = l.words(p, "types")
		}
	}
	if eo.has("dispatch") {
		on.Dispatch = &ci.OnDispatch{}
		if p := l.filter(eo, "dispatch", sectionDispatch); p != nil {
			on.Dispatch.Types = l.patterns(p, "types", globTrouble)
		}
	}
	if eo.has("schedule") {
		on.Schedule = l.schedules(eo, defaultBranch)
	}
	return on
}

// releaseTypes are the actions of a release that can start a run.
func releaseTypes() []string { return []string{"published", "created", "released", "prereleased"} }

func (l *loader) onPush(o *object) *ci.OnPush {
	on := &ci.OnPush{}
	p := l.filter(o, "push", sectionPush)
	if p == nil {
		return on
	}
	on.Branches = l.patterns(p, "branches", refPatternTrouble)
	on.Tags = l.patterns(p, "tags", refPatternTrouble)
	on.Paths = l.paths(p)
	for _, key := range []string{"paths", "paths_ignore"} {
		if p.has(key) && p.has("tags") && !p.has("branches") {
			l.at(p.fields[key].key, "%s: %s filters branches, and with tags alone no branch counts; add branches, or remove it", p.what, key)
		}
	}
	return on
}

func (l *loader) onPullRequest(o *object) *ci.OnPullRequest {
	on := &ci.OnPullRequest{}
	p := l.filter(o, "pull_request", sectionPullRequest)
	if p == nil {
		return on
	}
	on.Branches = l.patterns(p, "branches", refPatternTrouble)
	on.Paths = l.paths(p)
	on.SkipDrafts = !p.flag("drafts")
	if !p.has("skip") {
		return on
	}
	if s := l.object(p.field("skip"), sectionSkip, p.what+": skip"); s != nil && s.need("labels", "[no-ci]") {
		on.SkipLabels = l.labels(s)
	}
	return on
}

func (l *loader) labels(o *object) (list []string) {
	seen := newNamed("label")
	for _, n := range l.filled(o, "labels", "leaves nothing to skip; name labels, or remove skip") {
		s, ok := l.text(n, o.what+": labels")
		switch {
		case !ok:
		case s == "":
			l.at(n, "%s: a label is empty; write its name as the provider shows it", o.what)
		default:
			seen.once(l.reader, n, s)
			list = append(list, s)
		}
	}
	return list
}

// filter reads an event's mapping; with nothing after its key the event
// counts whatever it is about.
func (l *loader) filter(o *object, key string, s section) *object {
	n := l.resolve(o.field(key))
	if _, all := n.(*ast.NullNode); all || n == nil {
		return nil
	}
	return l.object(n, s, o.what+": "+key)
}

// filled reads a list that must have something in it; why says what an empty
// one would mean and how to mend it.
func (l *loader) filled(o *object, key, why string) []ast.Node {
	nodes := l.list(o.field(key), o.what+": "+key)
	if _, isList := l.resolve(o.field(key)).(*ast.SequenceNode); isList && len(nodes) == 0 {
		o.at(key, "%s: %s is an empty list, which %s", o.what, key, why)
	}
	return nodes
}

// schedules reads the project's own time tables, each once.
func (l *loader) schedules(o *object, defaultBranch string) (list []ci.Schedule) {
	seen := map[ci.Schedule]bool{}
	for _, n := range l.filled(o, "schedule", `starts nothing; add {cron: "0 3 * * *"}, or remove the key`) {
		before := len(l.faults.list)
		s := l.schedule(n, o.what+": a schedule")
		if len(l.faults.list) > before {
			continue
		}
		full := ci.Schedule{Cron: s.Cron, Timezone: s.Zone(), Branch: cmp.Or(s.Branch, defaultBranch)}
		if seen[full] {
			l.at(n, "%s: one schedule is given twice; keep one of them", o.what)
			continue
		}
		seen[full] = true
		list = append(list, s)
	}
	return list
}
