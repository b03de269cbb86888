package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

// Exit codes of every command.
const (
	exitDone   = 0
	exitFailed = 1 // failed or refused
	exitUsage  = 2 // wrong usage
)

// Where the configuration is looked for without -c.
const (
	hereConfig   = "docket.yaml"
	systemConfig = "/etc/docket/docket.yaml"
)

// app is what every command works with: the outside world, and the flags that
// all commands take.
type app struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
	now    func() time.Time

	config string // -c
	server string // --server
	token  string // --token
	output string // -o

	failpoints failpoints // zero but in tests
}

// run is the whole program: it carries out one command line and returns its
// exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	a := &app{in: stdin, out: stdout, err: stderr, getenv: getenv, now: time.Now, failpoints: failpointsOf(getenv)}
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := newRoot(a)
	root.SetArgs(append([]string{}, args...)) // for nil cobra takes the arguments of the process
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	return a.exit(root.ExecuteContext(ctx))
}

// exit tells the person what went wrong and returns the exit code.
func (a *app) exit(err error) int {
	var usage *usageError
	var config *ConfigError
	var silent silentError
	var code exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &silent):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(a.err, "docket: %s\n", printableText(usage.Error()))
		return exitUsage
	case errors.As(err, &config):
		fmt.Fprintln(a.err, config.Error())
		fmt.Fprintf(a.err, "docket: %s\n", config.summary())
		return exitFailed
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.err, "docket: interrupted")
		return exitFailed
	}
	fmt.Fprintf(a.err, "docket: %s\n", printableText(sentence(err)))
	return exitFailed
}

// sentence is what a person at the terminal reads of an error: unlike a
// client of the API they may see its cause.
func sentence(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// summary says how many faults there are and what to do.
func (e *ConfigError) summary() string {
	flag := cmp.Or(e.check, "-c")
	if len(e.Faults) == 1 {
		return fmt.Sprintf("%s has a fault; mend it and run `docket check %s %s`", e.File, flag, e.File)
	}
	return fmt.Sprintf("%s has %d faults; mend them and run `docket check %s %s`", e.File, len(e.Faults), flag, e.File)
}

// usageError is a command line that cannot be carried out as written.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...) + "; see `" + cmd.CommandPath() + " --help`"}
}

// silentError ends a command with exit code 1 after it has said everything.
type silentError struct{}

func (silentError) Error() string { return "failed" }

// configPath returns -c, or the first of the usual places that exists.
func (a *app) configPath() (string, error) {
	if a.config != "" {
		return a.config, nil
	}
	for _, p := range []string{hereConfig, systemConfig} {
		if _, err := os.Stat(p); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return p, nil
		}
	}
	return "", fmt.Errorf("there is neither ./%s nor %s; write one with `docket init`, or name yours with -c FILE", hereConfig, systemConfig)
}

// load reads the configuration with its secrets.
func (a *app) load() (*ci.Config, string, error) {
	path, err := a.configPath()
	if err != nil {
		return nil, "", err
	}
	cfg, err := Load(path, a.getenv)
	return cfg, path, err
}

// exactArgs asks for as many arguments as there are names.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef(cmd, "%s needs %s", cmd.CommandPath(), names[len(args)])
		case len(args) > len(names):
			return usagef(cmd, "%s does not take %q", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}

// group makes a command that only has commands under it.
func group(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(children...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		if len(args) > 0 {
			return usagef(cmd, "there is no command %q%s", cmd.CommandPath()+" "+args[0], didYouMean(args[0], names))
		}
		return usagef(cmd, "%s needs one of %s", cmd.CommandPath(), strings.Join(names, ", "))
	}
	return cmd
}
