package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"docket/store"
	"docket/store/ci"
)

func newToken(a *app) *cobra.Command {
	return a.talks(group(&cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke API tokens",
		Long: `Make, list and revoke API tokens.

Roles: viewer (reads), operator (also starts, cancels, repeats, approves, retries and
replays), admin (also tokens, pins and backups). Works on a stopped server too.`,
		Example: `  docket token create --name ci-bot --role operator
  docket token revoke ci-bot`,
	}, newTokenCreate(a), newTokenList(a), newTokenRevoke(a)))
}

func newTokenCreate(a *app) *cobra.Command {
	var name, role string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it, this once",
		Long: `Make a token and print it alone on stdout. docket keeps a digest of it only, so this is
the one time that it can be seen.`,
		Example: `  docket token create --name ci-bot --role operator
  DOCKET_TOKEN=$(docket token create --name me --role admin)`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				return usagef(cmd, "--name is missing: name the token after who will use it")
			}
			if !ci.Role(role).Valid() {
				return usagef(cmd, "--role %q is not a role: use viewer, operator or admin", role)
			}
			value, err := a.createToken(cmd.Context(), name, ci.Role(role))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, value)
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the token, shown wherever it decides something")
	cmd.Flags().StringVar(&role, "role", "", "`ROLE` of the token: viewer, operator or admin")
	return cmd
}

func (a *app) createToken(ctx context.Context, name string, role ci.Role) (value string, err error) {
	err = a.serverOrStore(ctx, true,
		func(c *client) error {
			var made struct {
				Token string `json:"token"`
			}
			body := struct {
				Name string  `json:"name"`
				Role ci.Role `json:"role"`
			}{name, role}
			err := c.post(ctx, "/tokens", "", body, &made)
			value = made.Token
			return err
		},
		func(s *store.Store) (err error) {
			value, err = s.CreateToken(ctx, name, role)
			return err
		})
	return value, err
}

func newTokenList(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "list",
		Short: "List tokens, without their values",
		Long:  "List tokens by name, without their values, which are kept nowhere. With -o json: one object with the array \"tokens\".",
		Example: `  docket token list
  docket token list -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listTokens(cmd.Context()) },
	})
}

// tokens is the listing of tokens.
type tokens struct {
	Tokens []ci.Token `json:"tokens"`
	Next   string     `json:"next_cursor"`
}

func (a *app) listTokens(ctx context.Context) error {
	list := tokens{Tokens: []ci.Token{}}
	err := a.serverOrStore(ctx, false,
		func(c *client) error {
			b, err := c.get(ctx, "/tokens")
			if err != nil {
				return err
			}
			return decodeAnswer(b, &list)
		},
		func(s *store.Store) error {
			all, err := s.Tokens()
			list.Tokens = append(list.Tokens, all...)
			return err
		})
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.out, list)
	}
	t := newTable("TOKEN", "ROLE", "CREATED")
	for _, tk := range list.Tokens {
		t.row(tk.Name, string(tk.Role), showTime(tk.CreatedAt))
	}
	return t.print(a.out)
}

func newTokenRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Make a token worthless",
		Long:    "Make a token worthless, from the next request on.",
		Example: "  docket token revoke ci-bot",
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			err := a.serverOrStore(ctx, false,
				func(c *client) error {
					_, err := c.raw(ctx, call{method: http.MethodDelete, path: "/tokens/" + url.PathEscape(args[0])})
					return err
				},
				func(s *store.Store) error { return s.RevokeToken(ctx, args[0]) })
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "the token %s is revoked\n", printableText(args[0]))
			return err
		},
	}
}
