package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

func newReceipts(a *app) *cobra.Command {
	return a.talks(group(&cobra.Command{
		Use:   "receipts",
		Short: "Show deliveries and what became of them, and recover those that did not arrive",
		Long: `Show deliveries and what became of them, and judge one again.

Every delivery whose signature held has a receipt: accepted (it started runs) or
ignored, with the reason. Its id is INTEGRATION/INSTALLATION/DELIVERY; the middle
part is "-" for a webhook that has no installation.`,
		Example: `  docket receipts list --outcome ignored
  docket receipts show github/-/72d3162e-cc78-11e3-81ab-4c9367dc0958`,
	}, newReceiptsList(a), newReceiptsShow(a), newReceiptsExplain(a), newReceiptsReplay(a), newReceiptsRecover(a), newReceiptsGaps(a)))
}

func newReceiptsList(a *app) *cobra.Command {
	var page pageFlags
	var outcome string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List receipts, newest first",
		Long:  "List receipts, newest first. With -o json: one object with the array \"receipts\" and \"next_cursor\".",
		Example: `  docket receipts list
  docket receipts list --outcome ignored --limit 10`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch ci.Outcome(outcome) {
			case "", ci.Accepted, ci.Ignored:
			default:
				return usagef(cmd, "--outcome %q is not known: use accepted or ignored", outcome)
			}
			query, err := page.query(cmd, map[string]string{"outcome": outcome})
			if err != nil {
				return err
			}
			return a.listReceipts(cmd.Context(), query)
		},
	}
	page.add(cmd)
	cmd.Flags().StringVar(&outcome, "outcome", "", "only receipts with this `OUTCOME`: accepted or ignored")
	return a.reads(cmd)
}

func (a *app) listReceipts(ctx context.Context, query string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/receipts"+query)
	if err != nil {
		return err
	}
	var list struct {
		Receipts []ci.Receipt `json:"receipts"`
		Next     string       `json:"next_cursor"`
	}
	return a.show(b, &list, func() error {
		t := newTable("RECEIVED", "EVENT", "OUTCOME", "RUNS", "RECEIPT", "REASON")
		for _, r := range list.Receipts {
			t.row(showTime(r.ReceivedAt), eventText(&r), string(r.Outcome), strings.Join(r.Runs, " "), r.ID, r.Reason)
		}
		a.more(list.Next)
		return t.print(a.out)
	})
}

// eventText is event.action, or the event alone.
func eventText(r *ci.Receipt) string { return strings.Join(nonEmpty(r.Event, r.Action), ".") }

func newReceiptsShow(a *app) *cobra.Command {
	var body bool
	cmd := &cobra.Command{
		Use:   "show RECEIPT",
		Short: "Show a receipt, or the exact bytes that were delivered",
		Long: `Show a receipt with every judgement of it. With --body: the delivered bytes alone,
exactly as they came.`,
		Example: `  docket receipts show github/-/72d3162e-cc78-11e3-81ab-4c9367dc0958
  docket receipts show --body github/-/72d3162e-cc78-11e3-81ab-4c9367dc0958 > payload.json`,
		Args: exactArgs("RECEIPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := receiptArg(cmd, args[0])
			if err != nil {
				return err
			}
			if body && cmd.Flags().Changed("output") {
				return usagef(cmd, "--body prints the delivered bytes as they came, so it takes no -o")
			}
			if body {
				return a.printBody(cmd.Context(), id)
			}
			return a.showReceipt(cmd.Context(), id)
		},
	}
	cmd.Flags().BoolVar(&body, "body", false, "print the delivered bytes instead")
	return a.reads(cmd)
}

func receiptArg(cmd *cobra.Command, s string) (ci.ReceiptID, error) {
	id, err := ci.ParseReceiptID(s)
	if err != nil {
		return id, usagef(cmd, "%s", err)
	}
	return id, nil
}

func (a *app) printBody(ctx context.Context, id ci.ReceiptID) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	resp, err := c.open(ctx, call{method: http.MethodGet, path: "/receipts/" + id.Path() + "/body"})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	out, flush := forTerminal(a.out)
	if _, err := io.Copy(out, resp.Body); err != nil {
		return c.trouble(ctx, err)
	}
	return flush()
}

func (a *app) showReceipt(ctx context.Context, id ci.ReceiptID) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/receipts/"+id.Path())
	if err != nil {
		return err
	}
	var r ci.Receipt
	return a.show(b, &r, func() error { return printReceipt(a, &r) })
}

func printReceipt(a *app, r *ci.Receipt) error {
	var f fields
	f.add("receipt", r.ID)
	f.add("event", eventText(r))
	f.add("outcome", string(r.Outcome))
	f.add("reason", r.Reason)
	f.add("runs", strings.Join(r.Runs, " "))
	if r.Repository.ID != 0 {
		f.add("repository", fmt.Sprintf("%s (id %d)", r.Repository.FullName, r.Repository.ID))
	}
	f.add("ref", r.Ref)
	f.add("commit", r.Commit)
	f.add("body", fmt.Sprintf("%d bytes, sha256 %s", r.BodyBytes, r.BodySHA256))
	f.add("secret", r.Secret)
	f.add("received", showTime(r.ReceivedAt))
	f.add("twin", r.Twin)
	f.add("twin run", r.TwinRun)
	if err := f.print(a.out); err != nil || len(r.Verdicts) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	t := newTable("JUDGED", "OUTCOME", "REASON")
	for _, v := range r.Verdicts {
		t.row(showTime(v.At), string(v.Outcome), v.Reason)
	}
	return t.print(a.out)
}

func newReceiptsExplain(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain RECEIPT",
		Short: "Say what a stored delivery would lead to now, beside what it led to",
		Long: `Say what a stored delivery would lead to under the configuration in force: for each
project the rule that matches or the one that stops it, beside what was decided when it
came. Nothing is started; "docket receipts replay" does that.`,
		Example: `  docket receipts explain github/-/72d3162e-cc78-11e3-81ab-4c9367dc0958`,
		Args:    exactArgs("RECEIPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := receiptArg(cmd, args[0])
			if err != nil {
				return err
			}
			return a.explainReceipt(cmd.Context(), id)
		},
	}
	return a.reads(cmd)
}

func (a *app) explainReceipt(ctx context.Context, id ci.ReceiptID) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/receipts/"+id.Path()+"/explain")
	if err != nil {
		return err
	}
	var x struct {
		Then ci.Verdict     `json:"then"`
		Runs []string       `json:"runs"`
		Now  ci.Explanation `json:"now"`
	}
	return a.show(b, &x, func() error {
		var f fields
		f.add("then", strings.Join(nonEmpty(string(x.Then.Outcome), x.Then.Reason), ": "))
		f.add("judged", showTime(x.Then.At))
		f.add("runs", strings.Join(x.Runs, " "))
		if err := f.print(a.out); err != nil {
			return err
		}
		fmt.Fprintln(a.out, "\nunder the configuration in force:")
		return printExplanation(a, &x.Now)
	})
}

func newReceiptsReplay(a *app) *cobra.Command {
	var act actFlags
	cmd := &cobra.Command{
		Use:   "replay RECEIPT",
		Short: "Judge a stored delivery again and start what it starts now",
		Long: `Judge a stored delivery again under the configuration in force and start what it
starts now. Prints the ids of the new runs, or on stderr why there are none.`,
		Example: `  docket receipts replay github/-/72d3162e-cc78-11e3-81ab-4c9367dc0958`,
		Args:    exactArgs("RECEIPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := receiptArg(cmd, args[0])
			if err != nil {
				return err
			}
			if err := act.check(cmd); err != nil {
				return err
			}
			return a.replay(cmd.Context(), id, &act)
		},
	}
	cmd.Flags().StringVar(&act.key, "key", "", "idempotency `KEY`: the same key never does it twice (default a random one)")
	return cmd
}

// replay prints the runs that the receipt did not have before, so it reads
// the receipt first. Where an earlier call under the same key made them, all
// of the receipt's runs are printed.
func (a *app) replay(ctx context.Context, id ci.ReceiptID, act *actFlags) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.get(ctx, "/receipts/"+id.Path())
	if err != nil {
		return err
	}
	var before, after ci.Receipt
	if err := decodeAnswer(b, &before); err != nil {
		return err
	}
	if err := c.post(ctx, "/receipts/"+id.Path()+"/replay", act.key, nil, &after); err != nil {
		return act.again(err)
	}
	runs := slices.DeleteFunc(slices.Clone(after.Runs), func(r string) bool { return slices.Contains(before.Runs, r) })
	if len(runs) == 0 && act.given {
		runs = after.Runs
	}
	if len(runs) == 0 {
		reason := after.Reason
		if n := len(after.Verdicts); n > 0 && after.Verdicts[n-1].Reason != "" {
			reason = after.Verdicts[n-1].Reason
		}
		return errors.New(strings.Join(nonEmpty("nothing was started by "+after.ID, reason), ": "))
	}
	for _, r := range runs {
		fmt.Fprintln(a.out, printableText(r))
	}
	return nil
}
