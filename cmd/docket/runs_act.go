package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

// actFlags are the flags that every action has.
type actFlags struct {
	key    string
	given  bool // the key is the caller's, not a random one
	reason string
}

func (f *actFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.key, "key", "", "idempotency `KEY`: the same key never does it twice (default a random one)")
	cmd.Flags().StringVar(&f.reason, "reason", "", "`WHY`, for the audit trail")
}

// body is the JSON of an action.
func (f *actFlags) body() any {
	return struct {
		Reason string `json:"reason,omitempty"`
	}{f.reason}
}

// check fills in a random key, and refuses one that the server would refuse.
func (f *actFlags) check(cmd *cobra.Command) error {
	if f.given = cmd.Flags().Changed("key"); !f.given {
		f.key = randomKey()
	}
	if !ci.PrintableKey(f.key) {
		return usagef(cmd, "--key must be 1 to 255 printable ASCII characters")
	}
	return nil
}

// again adds to an error without an answer how to ask again safely.
func (f *actFlags) again(err error) error {
	var lost *unreachable
	if errors.As(err, &lost) {
		return fmt.Errorf("%w; it may have been done, so repeat it with --key %s", err, f.key)
	}
	return err
}

func newRunsCancel(a *app) *cobra.Command {
	cmd := a.runAction("cancel", func(r ci.Run) string {
		if r.State == ci.Running {
			return r.ID + " is being stopped"
		}
		return r.ID + " " + string(r.State)
	})
	cmd.Short = "Cancel a run"
	cmd.Long = `Cancel a run. One that has not begun ends at once; a running one gets SIGTERM, the
project's grace, then SIGKILL. Prints what became of it.`
	cmd.Example = `  docket runs cancel hello-42 --reason "wrong branch"`
	return cmd
}

func newRunsRerun(a *app) *cobra.Command {
	cmd := a.runAction("rerun", func(r ci.Run) string { return r.ID })
	cmd.Short = "Run the same commit and steps again"
	cmd.Long = `Make a new run of the same commit and the same frozen steps and print its id alone.
A rerun of a fork's run waits for approval again.`
	cmd.Example = `  docket runs rerun hello-42
  docket runs logs -f $(docket runs rerun hello-42)`
	return cmd
}

func newRunsApprove(a *app) *cobra.Command {
	cmd := a.runAction("approve", func(r ci.Run) string { return r.ID + " " + string(r.State) })
	cmd.Short = "Let a held run of a fork's pull request go on"
	cmd.Long = `Let a held run of a fork's pull request go on. Read its commit first: approval is for
this one run. It gets no secrets all the same.`
	cmd.Example = `  docket runs list --state held
  docket runs approve hello-42`
	return cmd
}

// runAction is a command that asks something of one run and prints what text
// makes of the answer.
func (a *app) runAction(verb string, text func(ci.Run) string) *cobra.Command {
	var act actFlags
	cmd := &cobra.Command{
		Use:  verb + " RUN",
		Args: exactArgs("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := act.check(cmd); err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			var run ci.Run
			path := "/runs/" + url.PathEscape(args[0]) + "/" + verb
			if err := c.post(cmd.Context(), path, act.key, act.body(), &run); err != nil {
				return act.again(err)
			}
			_, err = fmt.Fprintln(a.out, printableText(text(run)))
			return err
		},
	}
	act.add(cmd)
	return cmd
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// nonEmpty leaves out empty words.
func nonEmpty(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// prefixed puts a word before a text that is not empty.
func prefixed(word, s string) string {
	if s == "" {
		return ""
	}
	return word + s
}
