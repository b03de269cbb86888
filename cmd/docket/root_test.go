package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls f for each command that people see.
func everyCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		everyCommand(c, f)
	}
}

func testRoot() *cobra.Command {
	var sink bytes.Buffer
	root := newRoot(&app{in: strings.NewReader(""), out: &sink, err: &sink, getenv: noEnv})
	root.InitDefaultHelpCmd()
	return root
}

// Ensure that every command has a help text that says what it does, shows an
// example and names each of its flags.
func TestEveryCommandIsDocumented(t *testing.T) {
	everyCommand(testRoot(), func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s lacks a short or long text or an example", cmd.CommandPath())
		}
		if !strings.Contains(cmd.Example, "docket") {
			t.Errorf("%s: the example is not a command line", cmd.CommandPath())
		}
		if strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the short text ends with a full stop", cmd.CommandPath())
		}
		if cmd.Name() == "supervise" {
			return
		}
		w := newWorld(t)
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		help := w.must(args...)
		for _, set := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if !strings.Contains(help, "--"+f.Name) || f.Usage == "" {
					t.Errorf("the help of %s does not explain --%s", cmd.CommandPath(), f.Name)
				}
			})
		}
		if cmd.Flag("config") == nil && cmd.InheritedFlags().Lookup("config") == nil {
			t.Errorf("%s does not take -c", cmd.CommandPath())
		}
	})
}

// Ensure that every command that only reads takes -o json.
func TestReadersTakeJSON(t *testing.T) {
	reads := map[string]bool{"check": true, "version": true, "verify": true, "list": true, "show": true, "logs": true}
	everyCommand(testRoot(), func(cmd *cobra.Command) {
		if reads[cmd.Name()] && cmd.Flags().Lookup("output") == nil {
			t.Errorf("%s does not take -o", cmd.CommandPath())
		}
	})
}

// Ensure that wrong usage is exit code 2 with one sentence that leads on.
func TestWrongUsage(t *testing.T) {
	for line, want := range map[string]string{
		"bogus":                                `there is no command "docket bogus"`,
		"chek":                                 `(did you mean "check"?)`,
		"runs":                                 "docket runs needs one of approve, cancel, list,",
		"runs lst":                             `there is no command "docket runs lst" (did you mean "list"?)`,
		"runs show":                            "docket runs show needs RUN",
		"runs show a-1 b-2":                    `docket runs show does not take "b-2"`,
		"runs list --bogus":                    "unknown flag: --bogus",
		"runs list --limit 0":                  "--limit is 0: use 1 to 200",
		"runs list --limit x":                  "invalid argument",
		"runs list --state done":               `--state "done" is not known: use one of preparing, held,`,
		"runs list -o yaml":                    `the output format "yaml" is not known: use text or json`,
		"runs start":                           "docket runs start needs PROJECT",
		"runs start p --branch a --tag b":      "--branch and --tag exclude each other",
		"runs start p --input x":               `--input "x" is not NAME=VALUE`,
		"runs start p --input x=1 --input x=2": "--input x is given twice",
		"runs start p --key=":                  "--key must be 1 to 255 printable ASCII characters",
		"receipts show x":                      `"x" is not a receipt's id`,
		"receipts list --outcome maybe":        `--outcome "maybe" is not known`,
		"outbox list --state gone":             `--state "gone" is not known`,
		"projects repin p --id 0":              "--id must be the provider's number",
		"token create --role admin":            "--name is missing",
		"token create --name n --role x":       `--role "x" is not a role`,
		"hook send f":                          "--event is missing",
		"completion tcsh":                      `there is no completion for "tcsh"`,
		"completion":                           "docket completion needs SHELL",
		"init a b":                             `docket init does not take "b"`,
		"help bogus":                           `there is no command "docket bogus"`,
		"version x":                            `docket version does not take "x"`,
		"runs list --server ftp://x":           `the server's address "ftp://x" must begin with`,
		"runs list --server http://x":          "needs a token",
	} {
		r := newWorld(t).run(strings.Fields(line)...)
		if r.code != exitUsage || r.out != "" || !strings.HasPrefix(r.err, "docket: ") ||
			!strings.Contains(r.err, want) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("docket %s: got %+v, want %q", line, r, want)
		}
	}
	if r := newWorld(t).run(); r.code != exitUsage || r.out != "" || !strings.Contains(r.err, "Available Commands") {
		t.Errorf("docket alone: got %+v", r)
	}
}

// Ensure that version tells at least what built it.
func TestVersion(t *testing.T) {
	w := newWorld(t)
	mustContain(t, "the output", w.must("version"), "docket ", " go1.")
	var b build
	if err := json.Unmarshal([]byte(w.must("version", "-o", "json")), &b); err != nil || b.Version == "" || b.Go == "" || b.Platform == "" {
		t.Errorf("got %+v, %v", b, err)
	}
}

// Ensure that there is a completion script for every shell.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := newWorld(t).must("completion", shell); len(out) < 500 || !strings.Contains(out, "docket") {
			t.Errorf("%s: got %d bytes", shell, len(out))
		}
	}
}

// Ensure that what came from outside cannot steer a terminal.
func TestTableIsOneLinePerRow(t *testing.T) {
	var b bytes.Buffer
	tb := newTable("A", "B", "C")
	tb.row("é\x1b[31m", "", "x\ny")
	if err := tb.print(&b); err != nil {
		t.Fatal(err)
	}
	if want := "A       B  C\né\ufffd[31m  -  x y\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
