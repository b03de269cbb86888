package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

func newRunsStart(a *app) *cobra.Command {
	var req ci.Request
	var inputs []string
	var act actFlags
	var wait bool
	cmd := &cobra.Command{
		Use:   "start PROJECT",
		Short: "Ask for a run of a project and print its id",
		Long: `Ask for a run of a project and print its id alone on stdout.

Without --branch and --tag it is a run of the project's default branch; --commit
names one commit of it. The same --key with the same request never starts a second
run: it prints the first one's id. With --wait the command ends when the run has, with exit
code 1 unless it succeeded.`,
		Example: `  docket runs start hello
  docket runs start hello --branch main --input target=production --reason "hotfix"
  docket runs start hello --tag v1.2.0 --key release-1.2.0 --wait`,
		Args: exactArgs("PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if req.Branch != "" && req.Tag != "" {
				return usagef(cmd, "--branch and --tag exclude each other: give one")
			}
			var err error
			if req.Inputs, err = parseInputs(cmd, inputs); err != nil {
				return err
			}
			if err := act.check(cmd); err != nil {
				return err
			}
			req.Reason = act.reason
			return a.startRun(cmd.Context(), args[0], req, &act, wait)
		},
	}
	cmd.Flags().StringVar(&req.Branch, "branch", "", "short name of the `BRANCH` to run")
	cmd.Flags().StringVar(&req.Tag, "tag", "", "short name of the `TAG` to run")
	cmd.Flags().StringVar(&req.Commit, "commit", "", "full `SHA` of the commit to run, 40 or 64 hex digits")
	cmd.Flags().StringArrayVar(&inputs, "input", nil, "set a declared input, as `NAME=VALUE`; may be given again")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the run has ended; exit code 1 unless it succeeded")
	act.add(cmd)
	return cmd
}

func parseInputs(cmd *cobra.Command, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	inputs := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, usagef(cmd, "--input %q is not NAME=VALUE", s)
		}
		if _, twice := inputs[name]; twice {
			return nil, usagef(cmd, "--input %s is given twice", name)
		}
		inputs[name] = value
	}
	return inputs, nil
}

func (a *app) startRun(ctx context.Context, project string, req ci.Request, act *actFlags, wait bool) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	var run ci.Run
	if err := c.post(ctx, "/projects/"+url.PathEscape(project)+"/runs", act.key, req, &run); err != nil {
		return act.again(err)
	}
	if _, err := fmt.Fprintln(a.out, printableText(run.ID)); err != nil || !wait {
		return err
	}
	if run, err = waitForRun(ctx, c, run); err != nil {
		return err
	}
	if run.State == ci.Succeeded {
		return nil
	}
	return fmt.Errorf("%s %s; `docket runs logs %s` shows why", run.ID, strings.Join(nonEmpty(string(run.State), prefixed("- ", run.ReasonLine())), " "), run.ID)
}

// waitForRun asks once a second until the run has ended.
func waitForRun(ctx context.Context, c *client, run ci.Run) (ci.Run, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !run.State.Final() {
		b, err := c.get(ctx, "/runs/"+url.PathEscape(run.ID))
		if err != nil {
			return run, err
		}
		var now ci.Run
		if err := decodeAnswer(b, &now); err != nil {
			return run, err
		}
		if run = now; run.State.Final() {
			break
		}
		select {
		case <-ctx.Done():
			return run, ctx.Err()
		case <-tick.C:
		}
	}
	return run, nil
}
