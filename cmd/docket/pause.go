package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/store"
	"docket/store/ci"
)

// pausable is a part that `pause` and `resume` stop and let go on.
type pausable struct {
	work          ci.Work
	noun          string // the command it belongs to, and its path in the API
	held, resumed string // what each command prints
}

var (
	pausableRuns   = pausable{ci.WorkRuns, "runs", "runs are held back until `docket runs resume`", "runs start again"}
	pausableOutbox = pausable{ci.WorkOutbox, "outbox", "notifications are held back until `docket outbox resume`", "notifications are sent again"}
)

func newRunsPause(a *app) *cobra.Command {
	cmd := a.pauseCommand(pausableRuns, "pause")
	cmd.Short = "Start no run until `docket runs resume`"
	cmd.Long = `Prepare and start no run until "docket runs resume", also over restarts. What runs goes on
to its end. Deliveries and requests are taken all the same; their runs wait.`
	cmd.Example = `  docket runs pause --reason "the build disk is being replaced"`
	return cmd
}

func newRunsResume(a *app) *cobra.Command {
	cmd := a.pauseCommand(pausableRuns, "resume")
	cmd.Short = "Let runs start again"
	cmd.Long = `Let runs start again that "docket runs pause" or "docket restore" holds back. Look first at
what waits, and cancel what must not run: after a restore it may have run before.`
	cmd.Example = `  docket runs list --state queued
  docket runs resume`
	return cmd
}

func newOutboxPause(a *app) *cobra.Command {
	cmd := a.pauseCommand(pausableOutbox, "pause")
	cmd.Short = "Send nothing until `docket outbox resume`"
	cmd.Long = `Send no notification until "docket outbox resume", also over restarts. They are written
down all the same, and wait.`
	cmd.Example = `  docket outbox pause --reason "the receiver is being moved"`
	return cmd
}

func newOutboxResume(a *app) *cobra.Command {
	cmd := a.pauseCommand(pausableOutbox, "resume")
	cmd.Short = "Send notifications again"
	cmd.Long = `Send the notifications again that "docket outbox pause" or "docket restore" holds back. Look
first at what waits, and discard what must not be sent: after a restore it may have been
sent before, under the same id.`
	cmd.Example = `  docket outbox list --state pending
  docket outbox resume`
	return cmd
}

func (a *app) pauseCommand(p pausable, verb string) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:  verb,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.changePause(cmd.Context(), p, verb == "pause", reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`WHY`, for the audit trail")
	return cmd
}

// changePause pauses or resumes, twice as well as once, in a running server
// or in the store of a stopped one.
func (a *app) changePause(ctx context.Context, p pausable, pause bool, reason string) error {
	verb, text := "resume", p.resumed
	if pause {
		verb, text = "pause", p.held
	}
	body := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	err := a.serverOrStore(ctx, false,
		func(c *client) error { return c.post(ctx, "/"+p.noun+"/"+verb, "", body, &ci.Pauses{}) },
		func(s *store.Store) (err error) {
			change := s.Resume
			if pause {
				change = s.Pause
			}
			_, err = change(ctx, p.work, ci.By{Kind: ci.ByToken, Name: "command line"}, reason)
			return err
		})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, text)
	return err
}
