package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

// recoveryState is how far an integration was compared, as the API shows it.
type recoveryState struct {
	ci.Recovery
	Enabled bool                `json:"enabled"`
	Why     string              `json:"why"`
	Missed  []ci.MissedDelivery `json:"missed"`
}

func newReceiptsRecover(a *app) *cobra.Command {
	var since time.Duration
	var integration string
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Ask GitHub now for deliveries that did not arrive",
		Long: `Compare GitHub's recent deliveries and the heads of the projects' repositories with what
docket knows, now, and ask GitHub to redeliver what has no receipt. What was given up is
asked for once more. Prints what was found and done, and what is still missing.

docket does this by itself when it starts and every recover_every. GitHub.com keeps
deliveries for three days, GitHub Enterprise Server for seven.`,
		Example: `  docket receipts recover
  docket receipts recover --since 24h --integration github`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("since") && (since <= 0 || since > 7*24*time.Hour) {
				return usagef(cmd, "--since is %s: use up to 168h", since)
			}
			return a.recover(cmd.Context(), integration, since)
		},
	}
	cmd.Flags().DurationVar(&since, "since", 72*time.Hour, "compare deliveries since this `LONG` ago")
	cmd.Flags().StringVar(&integration, "integration", "", "compare the integration of this `NAME` alone (default all)")
	return a.reads(cmd)
}

func (a *app) recover(ctx context.Context, integration string, since time.Duration) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	body := map[string]string{"integration": integration, "since": since.String()}
	b, err := c.raw(ctx, call{method: "POST", path: "/recover", body: body})
	if err != nil {
		return err
	}
	var list struct {
		Recoveries []recoveryState `json:"recoveries"`
	}
	return a.show(b, &list, func() error {
		for i := range list.Recoveries {
			if err := printRecovery(a, &list.Recoveries[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func printRecovery(a *app, r *recoveryState) error {
	n := &r.Last
	fmt.Fprintf(a.out, "%s: %d deliveries and %d heads compared\n", printableText(r.Integration), n.Deliveries, n.Heads)
	for _, line := range []struct {
		n    int
		text string
	}{
		{n.Asked, "asked GitHub to redeliver %d"},
		{n.Arrived, "%d that were missing have arrived"},
		{n.Missed - n.Asked, "%d more have no receipt and are asked for later"},
		{n.GaveUp, "%d are not asked for any more"},
		{n.Foreign, "%d are of repositories that no project has"},
		{n.Started, "started %d runs for heads that no delivery told of"},
		{n.NoRun, "no run is known of %d heads; `docket projects heads` lists them"},
	} {
		if line.n > 0 {
			fmt.Fprintf(a.out, "  "+line.text+"\n", line.n)
		}
	}
	if n.Asked+n.Arrived+n.Missed+n.GaveUp+n.NoRun+n.Started == 0 && r.Problem == "" {
		fmt.Fprintln(a.out, "  nothing is missing")
	}
	for _, problem := range nonEmpty(r.Problem) {
		fmt.Fprintln(a.out, "  "+printableText(problem))
	}
	if len(r.Missed) == 0 {
		return nil
	}
	t := newTable("DELIVERED", "EVENT", "ANSWER", "ASKED", "RECEIPT", "STATE")
	for _, m := range r.Missed {
		state := "asked for again from " + showTime(m.NextAt)
		switch {
		case m.GaveUp != "":
			state = m.GaveUp
		case m.Asked == 0:
			state = "to be asked for"
		}
		t.row(showTime(m.FirstAt), strings.Join(nonEmpty(m.Event, m.Action), "."), answerText(&m), strconv.Itoa(m.Asked), m.Receipt, state)
	}
	return t.print(a.out)
}

// answerText is the status of a delivery's newest attempt.
func answerText(m *ci.MissedDelivery) string {
	if m.StatusCode != 0 {
		return strconv.Itoa(m.StatusCode)
	}
	return m.Status
}

func newReceiptsGaps(a *app) *cobra.Command {
	var page pageFlags
	cmd := &cobra.Command{
		Use:   "gaps",
		Short: "List the times in which docket was not there",
		Long: `List the times in which docket was not there, newest first, with the deliveries that
were missed meanwhile and what became of them. After a kill the gap begins at docket's last
sign of life, which may be a minute early. With -o json: one object with the array "gaps".`,
		Example: `  docket receipts gaps
  docket receipts gaps -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := page.query(cmd, nil)
			if err != nil {
				return err
			}
			return a.listGaps(cmd.Context(), query)
		},
	}
	page.add(cmd)
	return a.reads(cmd)
}

func (a *app) listGaps(ctx context.Context, query string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/gaps"+query)
	if err != nil {
		return err
	}
	var list struct {
		Gaps []ci.Gap `json:"gaps"`
		Next string   `json:"next_cursor"`
	}
	return a.show(b, &list, func() error {
		t := newTable("FROM", "TO", "LONG", "MISSED", "RECOVERED", "GAVE UP", "COMPARED")
		for _, g := range list.Gaps {
			from := showTime(g.From)
			if !g.Exact {
				from = "about " + from
			}
			t.row(from, showTime(g.To), g.To.Sub(g.From.Time).Round(time.Second).String(),
				strconv.Itoa(g.Missed), strconv.Itoa(g.Recovered), strconv.Itoa(g.GaveUp), showTime(g.ComparedAt))
		}
		a.more(list.Next)
		return t.print(a.out)
	})
}
