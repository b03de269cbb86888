package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

func newRuns(a *app) *cobra.Command {
	return a.talks(group(&cobra.Command{
		Use:   "runs",
		Short: "List, start, follow, cancel, repeat and approve runs",
		Long: `List, start, follow, cancel, repeat and approve runs.

A run is one piece of work at one exact commit. Its id is PROJECT-NUMBER.
States: preparing, held (a fork's pull request waits for "approve"), queued, running,
and the final succeeded, failed, cancelled, superseded, interrupted.`,
		Example: `  docket runs list --project hello --state failed
  docket runs logs -f hello-42`,
	}, newRunsList(a), newRunsShow(a), newRunsStart(a), newRunsCancel(a), newRunsRerun(a), newRunsApprove(a), newRunsLogs(a),
		newRunsPause(a), newRunsResume(a)))
}

func newRunsList(a *app) *cobra.Command {
	var page pageFlags
	var project, state, branch string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Long:  "List runs, newest first. With -o json: one object with the array \"runs\" and \"next_cursor\".",
		Example: `  docket runs list
  docket runs list --project hello --branch main --limit 5
  docket runs list --state running -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if state != "" && !ci.State(state).Valid() {
				return usagef(cmd, "--state %q is not known: use one of %s", state, joinStates())
			}
			query, err := page.query(cmd, map[string]string{"project": project, "state": state, "branch": branch})
			if err != nil {
				return err
			}
			return a.listRuns(cmd.Context(), query)
		},
	}
	page.add(cmd)
	cmd.Flags().StringVar(&project, "project", "", "only runs of this `PROJECT`")
	cmd.Flags().StringVar(&state, "state", "", "only runs in this `STATE`")
	cmd.Flags().StringVar(&branch, "branch", "", "only runs of this `BRANCH`")
	return a.reads(cmd)
}

func joinStates() string {
	var s []string
	for _, st := range ci.States {
		s = append(s, string(st))
	}
	return strings.Join(s, ", ")
}

func (a *app) listRuns(ctx context.Context, query string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/runs"+query)
	if err != nil {
		return err
	}
	var list struct {
		Runs []ci.Run `json:"runs"`
		Next string   `json:"next_cursor"`
	}
	return a.show(b, &list, func() error {
		t := newTable("RUN", "STATE", "CAUSE", "REF", "COMMIT", "CREATED", "FINISHED")
		for _, r := range list.Runs {
			t.row(r.ID, string(r.State), causeText(r.Cause), shortRef(r.Source), ci.ShortCommit(r.Source.Commit),
				showTime(r.CreatedAt), showTime(r.FinishedAt))
		}
		a.more(list.Next)
		return t.print(a.out)
	})
}

// causeText says in a word what made a run.
func causeText(c ci.Cause) string {
	if c.Kind == ci.CauseDelivery && c.Event != "" {
		return c.Event
	}
	return c.Kind
}

// shortRef names a source as people do: a branch, a tag, or a pull request.
func shortRef(s ci.Source) string {
	switch {
	case s.PullRequest != nil:
		return fmt.Sprintf("#%d", s.PullRequest.Number)
	case s.Branch != "":
		return s.Branch
	case s.Tag != "":
		return s.Tag
	}
	return s.Ref
}

func newRunsShow(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "show RUN",
		Short: "Show a run with its steps and decisions",
		Long: `Show a run: what made it, what it builds, how its steps went, and every decision
about it (who or what decided, and why). With -o json: the run as the API has it.`,
		Example: `  docket runs show hello-42
  docket runs show hello-42 -o json`,
		Args: exactArgs("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.showRun(cmd.Context(), args[0]) },
	})
}

func (a *app) showRun(ctx context.Context, id string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/runs/"+url.PathEscape(id))
	if err != nil {
		return err
	}
	var run ci.Run
	return a.show(b, &run, func() error {
		if err := printRun(a, &run); err != nil {
			return err
		}
		return a.printDecisions(ctx, c, run.ID)
	})
}

func printRun(a *app, r *ci.Run) error {
	var f fields
	f.add("run", r.ID)
	f.add("state", string(r.State))
	f.add("reason", r.ReasonLine())
	f.add("cause", strings.Join(nonEmpty(causeText(r.Cause), r.Cause.Action, prefixed("by ", r.Cause.Actor), r.Cause.Reason), " "))
	f.add("slot", r.Cause.Slot)
	f.add("receipt", r.Cause.Receipt)
	f.add("repeats", r.Cause.Run)
	f.add("repository", r.Source.Repository)
	f.add("ref", r.Source.Ref)
	f.add("commit", r.Source.Commit)
	if r.Fork {
		f.add("fork", "yes: it gets no secrets")
	}
	f.add("superseded by", r.SupersededBy)
	for _, name := range sortedKeys(r.Inputs) {
		f.add("input "+name, r.Inputs[name])
	}
	f.add("attempt", fmt.Sprint(r.Attempt))
	f.add("created", showTime(r.CreatedAt))
	f.add("started", showTime(r.StartedAt))
	f.add("finished", showTime(r.FinishedAt))
	f.add("page", r.URL)
	if err := f.print(a.out); err != nil {
		return err
	}
	if r.Reason != r.ReasonLine() { // the mistakes of a file, with their source lines
		fmt.Fprintln(a.out)
		for line := range strings.Lines(r.Reason) {
			fmt.Fprintln(a.out, printableText(strings.TrimSuffix(line, "\n")))
		}
	}
	if len(r.Steps) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	t := newTable("STEP", "STATE", "EXIT", "STARTED", "FINISHED", "REASON")
	for _, s := range r.Steps {
		exit := ""
		if s.ExitCode != nil {
			exit = fmt.Sprint(*s.ExitCode)
		}
		t.row(s.Name, string(s.State), exit, showTime(s.StartedAt), showTime(s.FinishedAt), s.Reason)
	}
	return t.print(a.out)
}

func (a *app) printDecisions(ctx context.Context, c *client, run string) error {
	b, err := c.get(ctx, "/decisions?run="+url.QueryEscape(run))
	if err != nil {
		return err
	}
	var list struct {
		Decisions []ci.Decision `json:"decisions"`
	}
	if err := decodeAnswer(b, &list); err != nil || len(list.Decisions) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	t := newTable("DECIDED", "WHAT", "BY", "WHY")
	for _, d := range list.Decisions {
		t.row(showTime(d.At), d.Kind, strings.Join(nonEmpty(d.By.Kind, d.By.Name), " "), d.Reason)
	}
	return t.print(a.out)
}
