package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

func newOutbox(a *app) *cobra.Command {
	return a.talks(group(&cobra.Command{
		Use:   "outbox",
		Short: "Show notifications that wait, were sent or were given up",
		Long: `Show notifications that wait, were sent or were given up; send one again now, or give
it up for good.

States: pending (not yet known to have arrived), sent, skipped (something newer made
it wrong to send), dead (given up, with the reason).`,
		Example: `  docket outbox list --state dead
  docket outbox retry 01J9ZK3Q6N8W5V4T2R1P0M7B6C`,
	}, newOutboxList(a), newOutboxShow(a), newOutboxRetry(a), newOutboxDiscard(a),
		newOutboxPause(a), newOutboxResume(a)))
}

func newOutboxList(a *app) *cobra.Command {
	var page pageFlags
	var state string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List notifications, newest first",
		Long:  "List notifications, newest first. With -o json: one object with the array \"entries\" and \"next_cursor\".",
		Example: `  docket outbox list
  docket outbox list --state pending`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if state != "" && !slices.Contains(ci.OutboxStates, ci.OutboxState(state)) {
				return usagef(cmd, "--state %q is not known: use one of pending, sent, skipped, dead", state)
			}
			query, err := page.query(cmd, map[string]string{"state": state})
			if err != nil {
				return err
			}
			return a.listOutbox(cmd.Context(), query)
		},
	}
	page.add(cmd)
	cmd.Flags().StringVar(&state, "state", "", "only notifications in this `STATE`: pending, sent, skipped or dead")
	return a.reads(cmd)
}

func (a *app) listOutbox(ctx context.Context, query string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/outbox"+query)
	if err != nil {
		return err
	}
	var list struct {
		Entries []ci.OutboxEntry `json:"entries"`
		Next    string           `json:"next_cursor"`
	}
	return a.show(b, &list, func() error {
		t := newTable("ENTRY", "KIND", "EVENT", "RUN", "STATE", "ATTEMPTS", "NEXT", "LAST ERROR")
		for _, e := range list.Entries {
			next := ci.Time{}
			if e.State == ci.OutboxPending {
				next = e.NextAttemptAt
			}
			t.row(e.ID, e.Kind, e.Event, e.Run, string(e.State), fmt.Sprint(e.Attempts), showTime(next), e.LastError)
		}
		a.more(list.Next)
		return t.print(a.out)
	})
}

func newOutboxShow(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "show ENTRY",
		Short: "Show a notification with what it says",
		Long:  "Show a notification: where it goes, how its attempts went, and what it says. With -o json: the entry as the API has it.",
		Example: `  docket outbox show 01J9ZK3Q6N8W5V4T2R1P0M7B6C
  docket outbox show 01J9ZK3Q6N8W5V4T2R1P0M7B6C -o json`,
		Args: exactArgs("ENTRY"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.showEntry(cmd.Context(), args[0]) },
	})
}

func (a *app) showEntry(ctx context.Context, id string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/outbox/"+url.PathEscape(id))
	if err != nil {
		return err
	}
	var e ci.OutboxEntry
	return a.show(b, &e, func() error { return printEntry(a, &e) })
}

func printEntry(a *app, e *ci.OutboxEntry) error {
	var f fields
	f.add("entry", e.ID)
	f.add("kind", e.Kind)
	f.add("event", e.Event)
	f.add("run", e.Run)
	f.add("target", e.Target)
	f.add("lane", e.Lane)
	f.add("state", string(e.State))
	f.add("attempts", fmt.Sprint(e.Attempts))
	if e.State == ci.OutboxPending {
		f.add("next attempt", showTime(e.NextAttemptAt))
	}
	f.add("last error", e.LastError)
	f.add("created", showTime(e.CreatedAt))
	f.add("finished", showTime(e.FinishedAt))
	if err := f.print(a.out); err != nil || len(e.Payload) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	return indentJSON(a.out, e.Payload)
}

func newOutboxRetry(a *app) *cobra.Command {
	cmd := a.entryAction("retry", "is due now")
	cmd.Short = "Send a notification again now"
	cmd.Long = "Make a notification that was given up, or that waits for another try, due now. It goes out under the same id."
	cmd.Example = "  docket outbox retry 01J9ZK3Q6N8W5V4T2R1P0M7B6C"
	return cmd
}

func newOutboxDiscard(a *app) *cobra.Command {
	cmd := a.entryAction("discard", "is given up")
	cmd.Short = "Give a notification up for good"
	cmd.Long = "Give a notification up for good; what waits behind it in its lane goes on."
	cmd.Example = `  docket outbox discard 01J9ZK3Q6N8W5V4T2R1P0M7B6C --reason "receiver is gone"`
	return cmd
}

// entryAction is a command that asks something of one notification.
func (a *app) entryAction(verb, done string) *cobra.Command {
	var act actFlags
	cmd := &cobra.Command{
		Use:  verb + " ENTRY",
		Args: exactArgs("ENTRY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := act.check(cmd); err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			var e ci.OutboxEntry
			if err := c.post(cmd.Context(), "/outbox/"+url.PathEscape(args[0])+"/"+verb, act.key, act.body(), &e); err != nil {
				return act.again(err)
			}
			_, err = fmt.Fprintln(a.out, printableText(e.ID)+" "+done)
			return err
		},
	}
	act.add(cmd)
	return cmd
}
