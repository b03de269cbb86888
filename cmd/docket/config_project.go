package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"docket/store/ci"
)

// projects reads every project, after the integrations they name.
func (l *loader) projects(o *object, cfg *ci.Config) {
	names := newNamed("project")
	for _, n := range l.list(o.field("projects"), "projects") {
		if p, ok := l.project(n, names, cfg); ok {
			cfg.Projects = append(cfg.Projects, p)
		}
	}
}

func (l *loader) project(n ast.Node, names *named, cfg *ci.Config) (ci.Project, bool) {
	o := l.object(n, sectionProject, "a project")
	if o == nil || !o.need("name", "api") {
		return ci.Project{}, false
	}
	p := ci.Project{Name: o.name("name")}
	if p.Name == "" {
		o.emptyText("name")
		return p, false
	}
	o.what = "the project " + p.Name
	names.once(l.reader, o.field("name"), p.Name)
	integration := l.projectIntegration(o, &p, cfg)
	l.source(o, &p, integration)
	p.On = l.on(o, p.DefaultBranch)
	p.Supersede = ci.SupersedePolicy(o.oneOf("supersede"))
	p.OnInterrupt = o.oneOf("on_interrupt")
	p.Replays = o.oneOf("replays")
	p.Timeout = o.duration("timeout")
	p.Grace = o.duration("grace")
	p.Public = o.flag("public")
	p.Concurrency = l.concurrency(o)
	p.HoldTimeout = o.duration("hold_timeout")
	p.OnSkip = o.oneOf("on_skip")
	p.Recover = o.oneOf("recover")
	l.world(o, &p)
	l.work(o, &p)
	p.Notify = l.notifies(o)
	return p, true
}

// concurrency reads which runs do not overlap: a group's name, or a mapping.
func (l *loader) concurrency(o *object) (c ci.Concurrency) {
	if !o.has("concurrency") {
		return c
	}
	if _, isMap := l.resolve(o.field("concurrency")).(*ast.MappingNode); !isMap {
		c.Group = o.name("concurrency")
		if c.Group == "" {
			o.emptyText("concurrency")
		}
		return c
	}
	co := l.object(o.field("concurrency"), sectionConcurrency, o.what+": concurrency")
	if co == nil || !co.need("group", "production") {
		return c
	}
	if c.Group = co.name("group"); c.Group == "" {
		co.emptyText("group")
	}
	c.PerRef = co.oneOf("per") == perRef
	return c
}

// Values of concurrency.per.
const (
	perProject = "project" // one group over all refs
	perRef     = "ref"     // a group for each ref or pull request
)

func (l *loader) projectIntegration(o *object, p *ci.Project, cfg *ci.Config) *ci.Integration {
	if !o.need("integration", "github") {
		return nil
	}
	p.Integration = o.text("integration")
	if p.Integration == "" {
		o.emptyText("integration")
		return nil
	}
	in := cfg.Integration(p.Integration)
	if in == nil {
		known := make([]string, len(cfg.Integrations))
		for i := range cfg.Integrations {
			known[i] = cfg.Integrations[i].Name
		}
		hint := "; there are " + strings.Join(known, ", ")
		if len(known) == 0 {
			hint = "; there is none, add it under integrations"
		}
		o.at("integration", "%s: there is no integration %q%s%s", o.what, p.Integration, didYouMean(p.Integration, known), hint)
	}
	return in
}

// source reads which repository it is and where its code comes from.
func (l *loader) source(o *object, p *ci.Project, in *ci.Integration) {
	if o.need("repository", "acme/api") {
		p.Repository = strings.TrimSuffix(o.text("repository"), ".git")
		if trouble := repositoryTrouble(p.Repository); trouble != "" && o.r.resolve(o.field("repository")) != nil {
			o.at("repository", "%s: repository: %q %s", o.what, p.Repository, trouble)
			p.Repository = ""
		}
	}
	p.RepositoryID = o.whole("repository_id")
	p.CloneURL = l.cloneURL(o, p, in)
	p.DefaultBranch = o.key("default_branch").def
	if o.has("default_branch") {
		p.DefaultBranch = o.text("default_branch")
		if trouble := branchTrouble(p.DefaultBranch); trouble != "" {
			o.at("default_branch", "%s: default_branch: %q %s", o.what, p.DefaultBranch, trouble)
		}
	}
	if !o.has("git") {
		return
	}
	if g := l.object(o.field("git"), sectionGit, o.what+": git"); g != nil {
		p.Git = ci.GitOptions{
			Submodules: g.flag("submodules"),
			LFS:        g.flag("lfs"),
			Depth:      int(g.whole("depth")),
		}
	}
}

const repositoryPattern = `^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$`

func repositoryTrouble(s string) string {
	if !regexp.MustCompile(repositoryPattern).MatchString(s) {
		return "is not OWNER/NAME; write it as the provider shows it, as in acme/api"
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "." || part == ".." {
			return "is not OWNER/NAME; write it as the provider shows it, as in acme/api"
		}
	}
	return ""
}

func (l *loader) cloneURL(o *object, p *ci.Project, in *ci.Integration) string {
	if o.has("clone_url") {
		s := o.text("clone_url")
		if trouble := cloneTrouble(s); trouble != "" && l.resolve(o.field("clone_url")) != nil {
			o.badAddress("clone_url", s, trouble)
		}
		return s
	}
	switch {
	case in == nil || p.Repository == "": // reported already
		return ""
	case in.Provider == ci.ProviderGitHub && in.APIURL == defaultAPIURL:
		return fmt.Sprintf("https://github.com/%s.git", p.Repository)
	}
	o.need("clone_url", "https://git.example.org/"+p.Repository+".git")
	return ""
}

// world reads what a step finds around it.
func (l *loader) world(o *object, p *ci.Project) {
	v := &variables{r: l.reader, what: o.what, by: map[string]string{}}
	p.Env = v.env(o)
	for _, e := range v.names(o, "secrets") {
		if p.Secrets == nil {
			p.Secrets = map[string]ci.Secret{}
		}
		p.Secrets[e.name] = l.secretOf(e.value, o.what+": secrets: "+e.name, secretEnv)
	}
	p.Inputs = v.inputs(o)
}

// work reads the steps, or where the repository keeps them.
func (l *loader) work(o *object, p *ci.Project) {
	switch {
	case o.has("steps") && o.has("pipeline"):
		l.at(o.fields["pipeline"].key, "%s has both steps and pipeline; keep one", o.what)
	case !o.has("steps") && !o.has("pipeline"):
		o.r.at(o.node, "%s has no steps; add `steps: [{name: test, run: make test}]`, or `pipeline: .docket.yml` to read them from the repository", o.what)
	}
	if o.has("pipeline") {
		p.Pipeline = o.text("pipeline")
		if trouble := pipelineTrouble(p.Pipeline); trouble != "" && l.resolve(o.field("pipeline")) != nil {
			o.at("pipeline", "%s: pipeline: %q %s", o.what, p.Pipeline, trouble)
		}
	}
	if !o.has("steps") {
		return
	}
	nodes := l.list(o.field("steps"), o.what+": steps")
	if _, isList := l.resolve(o.field("steps")).(*ast.SequenceNode); isList && len(nodes) == 0 {
		o.at("steps", "%s has no step in its list; add one, as in {name: test, run: make test}", o.what)
	}
	names := newNamed("step")
	for _, n := range nodes {
		if s, ok := l.step(n, o.what, names); ok {
			p.Steps = append(p.Steps, s)
		}
	}
}

// maxStepName bounds a step's name, which logs and pages show. With an @ at
// its start it would be one of docket's own parts of a log.
const maxStepName = 100

// maxScript bounds a step's script, which every run's frozen spec holds.
const maxScript = 256 << 10

func (l *loader) step(n ast.Node, what string, names *named) (ci.Step, bool) {
	o := l.object(n, sectionStep, what+": a step")
	if o == nil || !o.need("name", "test") {
		return ci.Step{}, false
	}
	s := ci.Step{Name: o.text("name")}
	if s.Name == "" {
		o.emptyText("name")
		return s, false
	}
	if strings.TrimSpace(s.Name) != s.Name || hasControl(s.Name) || len(s.Name) > maxStepName || s.Name[0] == '@' {
		o.at("name", "%s: a step cannot be named %q; use at most %d bytes on one line, without blanks at the ends or an @ at the start", what, s.Name, maxStepName)
	}
	o.what = fmt.Sprintf("%s: the step %s", what, s.Name)
	names.once(l.reader, o.field("name"), s.Name)
	s.Deploy = o.flag("deploy")
	if !o.need("run", "make test") {
		return s, false
	}
	s.Run = o.text("run")
	switch {
	case len(s.Run) > maxScript:
		o.at("run", "%s: run is over %s; put the script into the repository", o.what, formatSize(maxScript))
	case strings.TrimSpace(s.Run) == "" && l.resolve(o.field("run")) != nil && kind(l.resolve(o.field("run"))) == "text":
		o.at("run", "%s: run is empty; write the commands to run", o.what)
	}
	return s, true
}
