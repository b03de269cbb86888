package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// newRoot builds the tree of commands over one app.
func newRoot(a *app) *cobra.Command {
	root := group(&cobra.Command{
		Use:   "docket",
		Short: "Run CI from signed webhooks, and lose nothing on the way",
		Long: `docket takes GitHub webhooks and manual requests, writes each one down before it
says yes, runs the work at an exact commit, and tells GitHub and others how it
went.

Start with "docket init", then "docket check" and "docket serve".

Commands about runs, receipts, projects, notifications and tokens talk to a
running server: through the admin socket in the data directory that the
configuration names (no token needed), or over HTTP with --server and --token.

Exit codes: 0 done, 1 failed or refused, 2 wrong usage.`,
		Example: `  docket init /etc/docket
  docket serve -c /etc/docket/docket.yaml
  docket runs start hello --branch main`,
		SilenceErrors: true,
		SilenceUsage:  true,
	},
		newInit(a), newCheck(a), newSchema(a), newServe(a),
		newRuns(a), newReceipts(a), newProjects(a), newOutbox(a), newToken(a), newUser(a), newLoginLink(a),
		newHook(a), newExplain(a), newBackup(a), newRestore(a), newCompact(a), newVerify(a), newDoctor(a), newLogLevel(a),
		newVersion(a), newCompletion(a), newSupervise(), newMan(),
	)
	commands := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return commands(cmd, args)
		}
		cmd.SetOut(a.err)
		return errors.Join(cmd.Help(), exitError(exitUsage))
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef(cmd, "%s", err)
	})
	root.PersistentFlags().StringVarP(&a.config, "config", "c", "",
		"configuration `FILE` (default ./docket.yaml, then /etc/docket/docket.yaml)")
	return root
}

// newHelp is cobra's help command with an error for what does not exist.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Print the help of a command",
		Long:    "Print the help of a command, as its --help does.",
		Example: "  docket help runs start",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef(cmd.Root(), "there is no command %q", "docket "+strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}

// reads gives a command that only reads its -o flag.
func (a *app) reads(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVarP(&a.output, "output", "o", "text", "`FORMAT` of the output: text or json")
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if a.output != "text" && a.output != "json" {
			return usagef(cmd, "the output format %q is not known: use text or json", a.output)
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
	return cmd
}

func (a *app) json() bool { return a.output == "json" }

// talks gives a command, and those under it, the flags that find a server.
func (a *app) talks(cmd *cobra.Command) *cobra.Command {
	cmd.PersistentFlags().StringVar(&a.server, "server", "", "`URL` of a running server, instead of its admin socket (default $DOCKET_SERVER)")
	cmd.PersistentFlags().StringVar(&a.token, "token", "", "API `TOKEN` for --server (default $DOCKET_TOKEN)")
	return cmd
}
