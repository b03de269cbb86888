package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"docket/server"
	"docket/store"
	"docket/store/ci"
)

func newUser(a *app) *cobra.Command {
	return a.talks(group(&cobra.Command{
		Use:   "user",
		Short: "Say who may sign in to the page",
		Long: `Say who may sign in to the page, with a name and a password.

Roles are those of tokens: viewer (reads), operator (also starts, cancels, repeats,
approves, retries and replays), admin (all). Whoever gets another password or role, or is
removed, is signed out everywhere. Works on a stopped server too.`,
		Example: `  docket user add mona --role operator
  docket user remove mona`,
	}, newUserAdd(a), newUserList(a), newUserRemove(a), newUserPassword(a), newUserRole(a)))
}

// aboutPasswords ends the help of the commands that ask for one.
const aboutPasswords = `The password is asked for twice, without an echo. Where stdin is no terminal its first line
is the password. It has at least 12 characters and at most 1024 bytes; docket keeps its
argon2id hash.`

// storeOwner is who decides on the store of a stopped server: whoever may
// write its file.
func storeOwner() ci.By { return ci.By{Kind: ci.ByToken, Name: "command line"} }

func newUserAdd(a *app) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add somebody who signs in with a password",
		Long:  "Add somebody who signs in with a password.\n\n" + aboutPasswords,
		Example: `  docket user add mona --role operator
  docket user add mona --role viewer < password.txt`,
		Args: exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !ci.Role(role).Valid() {
				return usagef(cmd, "--role %q is not a role: use viewer, operator or admin", role)
			}
			password, err := a.newPassword(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.addUser(cmd.Context(), args[0], ci.Role(role), password); err != nil {
				return err
			}
			return a.said("the user %s is added as %s\n", args[0], role)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "`ROLE` of the user: viewer, operator or admin")
	return cmd
}

func (a *app) addUser(ctx context.Context, name string, role ci.Role, password string) error {
	return a.serverOrStore(ctx, true,
		func(c *client) error {
			body := struct {
				Name     string  `json:"name"`
				Role     ci.Role `json:"role"`
				Password string  `json:"password"`
			}{name, role, password}
			_, err := c.raw(ctx, call{method: http.MethodPost, path: "/users", body: body})
			return err
		},
		func(s *store.Store) error {
			hash, err := server.HashPassword(password)
			if err != nil {
				return err
			}
			return s.AddUser(ctx, name, role, hash, storeOwner())
		})
}

func newUserList(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "list",
		Short: "List who may sign in",
		Long:  "List who may sign in, by name. With -o json: one object with the array \"users\".",
		Example: `  docket user list
  docket user list -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listUsers(cmd.Context()) },
	})
}

// users is the listing of users.
type users struct {
	Users []ci.User `json:"users"`
	Next  string    `json:"next_cursor"`
}

func (a *app) listUsers(ctx context.Context) error {
	list := users{Users: []ci.User{}}
	err := a.serverOrStore(ctx, false,
		func(c *client) error {
			b, err := c.get(ctx, "/users")
			if err != nil {
				return err
			}
			return decodeAnswer(b, &list)
		},
		func(s *store.Store) error {
			all, err := s.Users()
			list.Users = append(list.Users, all...)
			return err
		})
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.out, list)
	}
	t := newTable("USER", "ROLE", "CREATED")
	for _, u := range list.Users {
		t.row(u.Name, string(u.Role), showTime(u.CreatedAt))
	}
	return t.print(a.out)
}

func newUserRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a user, who is signed out everywhere",
		Long:    "Remove a user, who is signed out everywhere at once. What the user did stays on record.",
		Example: "  docket user remove mona",
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.changeUser(cmd.Context(), call{method: http.MethodDelete, path: userPath(args[0])}, func(s *store.Store) error {
				return s.RemoveUser(cmd.Context(), args[0], storeOwner())
			})
			if err != nil {
				return err
			}
			return a.said("the user %s is removed\n", args[0])
		},
	}
}

func newUserPassword(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "password NAME",
		Short:   "Give a user another password",
		Long:    "Give a user another password, which signs the user out everywhere.\n\n" + aboutPasswords,
		Example: "  docket user password mona",
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := a.newPassword(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			body := struct {
				Password string `json:"password"`
			}{password}
			err = a.changeUser(cmd.Context(), call{method: http.MethodPut, path: userPath(args[0]) + "/password", body: body}, func(s *store.Store) error {
				hash, err := server.HashPassword(password)
				if err != nil {
					return err
				}
				return s.SetPassword(cmd.Context(), args[0], hash, storeOwner())
			})
			if err != nil {
				return err
			}
			return a.said("the user %s has a new password\n", args[0])
		},
	}
}

func newUserRole(a *app) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:     "role NAME",
		Short:   "Give a user another role",
		Long:    "Give a user another role, which signs the user out everywhere.",
		Example: "  docket user role mona --role admin",
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !ci.Role(role).Valid() {
				return usagef(cmd, "--role %q is not a role: use viewer, operator or admin", role)
			}
			body := struct {
				Role string `json:"role"`
			}{role}
			err := a.changeUser(cmd.Context(), call{method: http.MethodPut, path: userPath(args[0]) + "/role", body: body}, func(s *store.Store) error {
				return s.SetRole(cmd.Context(), args[0], ci.Role(role), storeOwner())
			})
			if err != nil {
				return err
			}
			return a.said("the user %s is %s\n", args[0], role)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "`ROLE` from now on: viewer, operator or admin")
	return cmd
}

func userPath(name string) string { return "/users/" + url.PathEscape(name) }

// changeUser changes a user who exists, through the running server or on the
// store of a stopped one.
func (a *app) changeUser(ctx context.Context, what call, offline func(*store.Store) error) error {
	return a.serverOrStore(ctx, false, func(c *client) error {
		_, err := c.raw(ctx, what)
		return err
	}, offline)
}

// said tells a person what was done.
func (a *app) said(format, name string, more ...any) error {
	_, err := fmt.Fprintf(a.out, format, append([]any{printableText(name)}, more...)...)
	return err
}
