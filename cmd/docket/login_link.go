package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"docket/store"
)

func newLoginLink(a *app) *cobra.Command {
	return a.talks(&cobra.Command{
		Use:   "login-link [NAME]",
		Short: "Print a link that signs one browser in, once",
		Long: fmt.Sprintf(`Print the address of a page that signs one browser in, once and within %d minutes: as the
user NAME, or without a name as admin, whom there always is. Whoever has the link can use
it. It begins with public_url, or with the first listener that serves the page.`, int(store.LoginLinkLife.Minutes())),
		Example: `  docket login-link
  docket login-link mona`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "%s does not take %q", cmd.CommandPath(), args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			body := struct {
				User string `json:"user"`
			}{}
			if len(args) > 0 {
				body.User = args[0]
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			var made struct {
				URL string `json:"url"`
			}
			if err := c.post(cmd.Context(), "/login-links", "", body, &made); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, printableText(made.URL))
			return err
		},
	})
}
