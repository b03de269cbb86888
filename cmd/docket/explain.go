package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"docket/scheduler/pipeline"
	"docket/server"
	"docket/store/ci"
)

// explainFlags say what is explained.
type explainFlags struct {
	event       string
	delivery    string
	integration string
}

func newExplain(a *app) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain FILE",
		Short: "Say what a delivery would start, or the exact rule that ignores it",
		Long: `Say what a delivery would start, or the exact rule that ignores it, for each project
of its repository: a dry run from the configuration alone, which asks no server, needs
no signature and writes nothing. "-" reads the payload from stdin.

Which files changed is said where the payload tells; where only git knows, the answer
says so. A project without repository_id counts by its repository's name.

Exit code 0 for whatever docket understands, 1 for what it would refuse.`,
		Example: `  docket explain --event push payload.json
  docket receipts show --body github/-/72d3162e-cc78-11e3-81ab-4c9367dc0958 | docket explain --event push -`,
		Args: exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.event == "" {
				return usagef(cmd, "--event is missing: name the payload's kind, as in --event push")
			}
			if !ci.PrintableHeader(f.event) {
				return usagef(cmd, "--event must be 1 to %d printable ASCII characters", ci.MaxHeaderValue)
			}
			if f.delivery != "" && !ci.PrintableHeader(f.delivery) {
				return usagef(cmd, "--delivery must be 1 to %d printable ASCII characters", ci.MaxHeaderValue)
			}
			return a.explain(cmd, &f, args[0])
		},
	}
	cmd.Flags().StringVar(&f.event, "event", "", "`EVENT` kind of the payload: push, pull_request, ping, ...")
	cmd.Flags().StringVar(&f.delivery, "delivery", "", "`ID` of the delivery: the answer then names the receipt that it would have")
	cmd.Flags().StringVar(&f.integration, "integration", "", "`NAME` of the integration; needed where there are several")
	return a.reads(cmd)
}

func (a *app) explain(cmd *cobra.Command, f *explainFlags, file string) error {
	cfg, path, err := a.load()
	if err != nil {
		return err
	}
	in, err := pickIntegration(cmd, cfg, path, f.integration)
	if err != nil {
		return err
	}
	body, err := a.payload(file)
	if err != nil {
		return err
	}
	e, err := server.ReadEvent(in, f.event, body)
	if err != nil {
		return err
	}
	receipt := ""
	if f.delivery != "" {
		receipt = ci.NewReceiptID(in.Name, e.Installation, f.delivery).String()
	}
	j, err := pipeline.Judge(cfg, in, &e, receipt, nil)
	x := pipeline.Explain(&e, receipt, &j, err)
	if err := a.showExplanation(&x); err != nil {
		return err
	}
	if x.Outcome == ci.Refused {
		return errors.New("it would be refused with 403: " + x.Reason)
	}
	return nil
}

func (a *app) showExplanation(x *ci.Explanation) error {
	if a.json() {
		return printJSON(a.out, x)
	}
	return printExplanation(a, x)
}

func printExplanation(a *app, x *ci.Explanation) error {
	var f fields
	f.add("event", strings.Join(nonEmpty(x.Event, x.Action), "."))
	f.add("receipt", x.Receipt)
	if x.Repository.ID != 0 {
		f.add("repository", fmt.Sprintf("%s (id %d)", x.Repository.FullName, x.Repository.ID))
	}
	f.add("ref", x.Ref)
	f.add("commit", x.Commit)
	f.add("outcome", string(x.Outcome))
	if len(x.Projects) == 0 {
		f.add("reason", x.Reason)
	}
	if err := f.print(a.out); err != nil {
		return err
	}
	for _, r := range x.Projects {
		fmt.Fprintf(a.out, "\n%s: %s\n", printableText(r.Project), printableText(r.Reason))
		for _, line := range r.Lines() {
			fmt.Fprintf(a.out, "  %s\n", printableText(line))
		}
	}
	return nil
}
