package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

func newProjectsHeads(a *app) *cobra.Command {
	var start string
	cmd := &cobra.Command{
		Use:   "heads [PROJECT]",
		Short: "List heads that no run is known of, or start one",
		Long: `List the branches, tags and open pull requests that match their project's filters and that
neither a run nor a delivery is known of: what GitHub never sent. Where a repository's heads
were compared for the first time, all there were are taken as known.

With --start HEAD, as the list shows it, the run of that head is started and its id printed;
the same head at the same commit is started only once.`,
		Example: `  docket projects heads
  docket projects heads hello --start refs/heads/main
  docket projects heads hello --start '#12'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "%s does not take %q", cmd.CommandPath(), args[1])
			}
			if cmd.Flags().Changed("start") && len(args) == 0 {
				return usagef(cmd, "--start needs the PROJECT whose head it is")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			project := strings.Join(args, "")
			if start != "" {
				return a.startHead(cmd.Context(), project, start)
			}
			return a.listHeads(cmd.Context(), project)
		},
	}
	cmd.Flags().StringVar(&start, "start", "", "start the run of this `HEAD`: a full ref, or # and the number of a pull request")
	return a.reads(cmd)
}

// missedHead is a head that no run is known of, as the API shows it.
type missedHead struct {
	ci.MissedHead
	Key string `json:"key"`
}

type headList struct {
	Heads []missedHead `json:"heads"`
}

func (c *client) heads(ctx context.Context, project string) ([]byte, error) {
	query := ""
	if project != "" {
		query = "?" + url.Values{"project": {project}}.Encode()
	}
	return c.get(ctx, "/heads"+query)
}

func (a *app) listHeads(ctx context.Context, project string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.heads(ctx, project)
	if err != nil {
		return err
	}
	var list headList
	return a.show(b, &list, func() error {
		t := newTable("PROJECT", "HEAD", "COMMIT", "BEFORE", "SEEN", "TITLE")
		for _, h := range list.Heads {
			title, _, _ := strings.Cut(h.Message, "\n")
			if h.PullRequest != nil {
				title = h.PullRequest.Title
			}
			t.row(h.Project, h.Key, ci.ShortCommit(h.Commit), ci.ShortCommit(h.Before), showTime(h.SeenAt), title)
		}
		return t.print(a.out)
	})
}

// startHead starts the run of a head at the commit that the list shows.
func (a *app) startHead(ctx context.Context, project, key string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	b, err := c.heads(ctx, project)
	if err != nil {
		return err
	}
	var list headList
	if err := decodeAnswer(b, &list); err != nil {
		return err
	}
	for _, h := range list.Heads {
		if h.Key != key {
			continue
		}
		body := map[string]any{"project": project, "commit": h.Commit}
		if h.PullRequest != nil {
			body["pull_request"] = h.PullRequest.Number
		} else {
			body["ref"] = h.Ref
		}
		answer, err := c.raw(ctx, call{method: "POST", path: "/heads/start", body: body})
		if err != nil {
			return err
		}
		var run ci.Run
		return a.show(answer, &run, func() error {
			_, err := a.out.Write([]byte(printableText(run.ID) + "\n"))
			return err
		})
	}
	return ci.Errorf(ci.CodeNotFound, "project %s has no head %q without a run; `docket projects heads %s` lists those there are", project, key, project)
}
