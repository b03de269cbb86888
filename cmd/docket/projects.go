package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

// project is a project as the API shows it.
type project struct {
	Name          string             `json:"name"`
	Integration   string             `json:"integration"`
	Repository    string             `json:"repository"`
	RepositoryID  int64              `json:"repository_id"` // 0: not pinned yet
	DefaultBranch string             `json:"default_branch"`
	Inputs        []ci.Input         `json:"inputs"`
	Supersede     ci.SupersedePolicy `json:"supersede"`
	Latest        map[string]latest  `json:"latest"` // by branch
	Schedules     []schedule         `json:"schedules"`
}

// schedule is one of a project's time tables.
type schedule struct {
	Cron     string  `json:"cron"`
	Timezone string  `json:"timezone"`
	Branch   string  `json:"branch"`
	NextAt   ci.Time `json:"next_at"`
	LastRun  string  `json:"last_run"`
}

// latest is how a branch stands.
type latest struct {
	Run    string   `json:"run"`
	State  ci.State `json:"state"`
	Commit string   `json:"commit"`
}

func newProjects(a *app) *cobra.Command {
	return a.talks(group(&cobra.Command{
		Use:   "projects",
		Short: "Show projects and the repository that each is pinned to",
		Long: `Show projects and the repository that each is pinned to.

A project belongs to a repository by the provider's id, not by name: the id is pinned at the
first signed delivery, or set in the configuration. A renamed repository keeps
working; a new one under an old name is refused until "repin".`,
		Example: `  docket projects list
  docket projects repin hello`,
	}, newProjectsList(a), newProjectsShow(a), newProjectsRepin(a), newProjectsHeads(a)))
}

func newProjectsList(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "list",
		Short: "List the configured projects",
		Long: `List the configured projects with their repository, its pinned id and how the default
branch stands. With -o json: one object with the array "projects" and "next_cursor".`,
		Example: `  docket projects list
  docket projects list -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listProjects(cmd.Context()) },
	})
}

func (a *app) listProjects(ctx context.Context) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/projects")
	if err != nil {
		return err
	}
	var list struct {
		Projects []project `json:"projects"`
	}
	return a.show(b, &list, func() error {
		t := newTable("PROJECT", "REPOSITORY", "ID", "BRANCH", "LATEST", "STATE")
		for _, p := range list.Projects {
			head := p.Latest[p.DefaultBranch]
			t.row(p.Name, p.Repository, pinText(p.RepositoryID), p.DefaultBranch, head.Run, string(head.State))
		}
		return t.print(a.out)
	})
}

func pinText(id int64) string {
	if id == 0 {
		return "not pinned yet"
	}
	return fmt.Sprint(id)
}

func newProjectsShow(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "show PROJECT",
		Short: "Show a project, its inputs, its schedules and how its branches stand",
		Long: `Show a project: its repository, what a manual request may set, its schedules with when each
comes next, and the newest run of each branch.`,
		Example: `  docket projects show hello
  docket projects show hello -o json`,
		Args: exactArgs("PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.showProject(cmd.Context(), args[0]) },
	})
}

func (a *app) showProject(ctx context.Context, name string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/projects/"+url.PathEscape(name))
	if err != nil {
		return err
	}
	var p project
	return a.show(b, &p, func() error { return printProject(a, &p) })
}

func printProject(a *app, p *project) error {
	var f fields
	f.add("project", p.Name)
	f.add("integration", p.Integration)
	f.add("repository", p.Repository)
	f.add("repository id", pinText(p.RepositoryID))
	f.add("default branch", p.DefaultBranch)
	f.add("supersede", string(p.Supersede))
	if err := f.print(a.out); err != nil {
		return err
	}
	if len(p.Inputs) > 0 {
		fmt.Fprintln(a.out)
		t := newTable("INPUT", "DEFAULT", "OPTIONS")
		for _, in := range p.Inputs {
			t.row(in.Name, in.Default, strings.Join(in.Options, ", "))
		}
		if err := t.print(a.out); err != nil {
			return err
		}
	}
	if err := printSchedules(a, p.Schedules); err != nil || len(p.Latest) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	t := newTable("BRANCH", "LATEST", "STATE", "COMMIT")
	for _, branch := range sortedKeys(p.Latest) {
		l := p.Latest[branch]
		t.row(branch, l.Run, string(l.State), ci.ShortCommit(l.Commit))
	}
	return t.print(a.out)
}

func printSchedules(a *app, list []schedule) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	t := newTable("SCHEDULE", "TIME ZONE", "BRANCH", "NEXT", "LAST RUN")
	for _, s := range list {
		t.row(s.Cron, s.Timezone, s.Branch, showTime(s.NextAt), s.LastRun)
	}
	return t.print(a.out)
}

func newProjectsRepin(a *app) *cobra.Command {
	var id int64
	cmd := &cobra.Command{
		Use:   "repin PROJECT",
		Short: "Accept another repository for a project",
		Long: `Accept another repository for a project, after one was deleted and made anew under the
same name. Without --id the next signed delivery pins.`,
		Example: `  docket projects repin hello
  docket projects repin hello --id 186853002`,
		Args: exactArgs("PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("id") && id < 1 {
				return usagef(cmd, "--id must be the provider's number of the repository, from 1 up")
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			body := struct {
				ID int64 `json:"id"`
			}{id}
			var p project
			if err := c.post(cmd.Context(), "/projects/"+url.PathEscape(args[0])+"/repin", "", body, &p); err != nil {
				return err
			}
			text := "the next signed delivery pins " + args[0]
			if id > 0 {
				text = fmt.Sprintf("%s is pinned to the repository id %d", args[0], id)
			}
			_, err = fmt.Fprintln(a.out, text)
			return err
		},
	}
	cmd.Flags().Int64Var(&id, "id", 0, "pin to this repository `ID` of the provider (default: that of the next signed delivery)")
	return cmd
}
