package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/store"
)

func newVerify(a *app) *cobra.Command {
	return a.talks(a.reads(&cobra.Command{
		Use:   "verify",
		Short: "Check every page, index and invariant of the store",
		Long: `Check every page, index and invariant of the store: through the running server, or on
the store itself when the server is stopped. Prints a line for each thing that is
broken; exit code 1 if there is any.`,
		Example: `  docket verify
  docket verify -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context()) },
	}))
}

// verified is the result of a verification.
type verified struct {
	Broken []string `json:"broken"`
}

func (a *app) verify(ctx context.Context) error {
	v := verified{Broken: []string{}}
	err := a.serverOrStore(ctx, false,
		func(c *client) error { return c.post(ctx, "/verify", "", nil, &v) },
		func(s *store.Store) error {
			broken, err := s.Verify(ctx)
			v.Broken = append(v.Broken, broken...)
			return err
		})
	if err != nil {
		return err
	}
	if a.json() {
		if err := printJSON(a.out, v); err != nil || len(v.Broken) == 0 {
			return err
		}
		return silentError{}
	}
	for _, line := range v.Broken {
		fmt.Fprintln(a.out, printableText(line))
	}
	if n := len(v.Broken); n > 0 {
		return fmt.Errorf("%d things in the store are broken; stop the server, move its data directory away and put a backup in its place with `docket restore FILE`", n)
	}
	_, err = fmt.Fprintln(a.out, "the store is sound")
	return err
}
