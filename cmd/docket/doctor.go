package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"docket/dispatcher/forge"
	"docket/store/ci"
)

// How a check ended.
const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateWrong   = "wrong"
)

// finding is what one check found: one sentence, and how to mend it.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"`
	Says  string `json:"says"`
	Mend  string `json:"mend"` // "" where nothing is to be mended
}

func fine(says string, args ...any) finding {
	return finding{State: stateOK, Says: fmt.Sprintf(says, args...)}
}

func warning(mend, says string, args ...any) finding {
	return finding{State: stateWarning, Says: fmt.Sprintf(says, args...), Mend: mend}
}

func wrong(mend, says string, args ...any) finding {
	return finding{State: stateWrong, Says: fmt.Sprintf(says, args...), Mend: mend}
}

// doctorPatience is how long the checks may take together.
const doctorPatience = 12 * time.Second

// doctor is what the checks look at.
type doctor struct {
	a     *app
	cfg   *ci.Config
	path  string  // of the configuration
	local *client // the server's admin socket
	forge *forge.Forge
}

// check is one look at one thing. It ends with its context.
type check struct {
	name string
	look func(context.Context) []finding
}

func newDoctor(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "doctor",
		Short: "Look at all that docket needs, and say what is wrong and how to mend it",
		Long: `Look at all that docket needs, side by side and within 15 seconds: the configuration, the
data directory, who can read the secrets, git, the clock, what the token or App of each integration may do, whether
the receivers of notifications, the collector of traces and public_url can be reached, and
what a running server says of itself. Nothing is changed, and no notification is sent; the
collector gets an empty request, and at GitHub it is tried
whether a status may be written, for a commit that no repository has.

Each line is ok, a warning, or wrong with how to mend it; exit code 1 if anything is wrong.
Run it as the user that docket runs as; the server may run or not.`,
		Example: `  docket doctor -c /etc/docket/docket.yaml
  docket doctor -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	})
}

func (a *app) doctor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	cfg, path, err := a.load()
	var list []finding
	if err != nil {
		list = a.withoutConfig(path, err)
	} else {
		d := &doctor{a: a, cfg: cfg, path: path, local: socketClient(socketOf(cfg.DataDir))}
		d.forge = forge.New(forge.Options{Config: func() *ci.Config { return cfg }, Now: a.now, Version: buildInfo().Version})
		defer d.forge.Close()
		list = append([]finding{{Check: "configuration", State: stateOK, Says: path + " is sound"}}, runChecks(ctx, d.checks())...)
	}
	return a.showFindings(list)
}

// withoutConfig says what is wrong with a configuration that holds everything
// else back.
func (a *app) withoutConfig(path string, err error) (list []finding) {
	mend := "mend it, and run `docket doctor` again for the rest"
	var broken *ConfigError
	if !errors.As(err, &broken) {
		return []finding{{"configuration", stateWrong, sentence(err), mend}}
	}
	for _, f := range broken.Faults {
		where := f.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
		}
		list = append(list, finding{"configuration", stateWrong, where + ": " + f.Message, mend})
	}
	if dir, err := dataDirOf(path); err == nil {
		list = append(list, under("data directory", lookAtDir(dir, 0))...)
	}
	return list
}

func under(name string, list []finding) []finding {
	for i := range list {
		list[i].Check = name
	}
	return list
}

// checks returns all that is looked at, in the order in which it is told.
func (d *doctor) checks() []check {
	list := []check{
		{"data directory", func(context.Context) []finding { return lookAtDir(d.cfg.DataDir, d.cfg.Limits.FreeSpace) }},
		{"secrets", d.lookAtSecrets},
		{"git", lookAtGit},
		{"sh", lookAtShell},
		{"server", d.lookAtServer},
		{"public_url", d.lookAtPublicURL},
		{"backup", d.lookAtBackups},
	}
	if d.cfg.Traces != nil {
		list = append(list, check{"traces", d.lookAtTraces})
	}
	for i := range d.cfg.Integrations {
		in := &d.cfg.Integrations[i]
		list = append(list,
			check{"clock of " + in.Name, func(ctx context.Context) []finding { return d.lookAtClock(ctx, in) }},
			check{"integration " + in.Name, func(ctx context.Context) []finding { return d.lookAtIntegration(ctx, in) }})
	}
	for _, t := range d.targets() {
		list = append(list, check{"receiver " + t.name, func(ctx context.Context) []finding { return []finding{lookAtTarget(ctx, t)} }})
	}
	return list
}

// maxChecks bounds how many checks are made at the same time.
const maxChecks = 32

// runChecks makes the checks side by side. One that does not end with its
// context is not waited for.
func runChecks(ctx context.Context, checks []check) (list []finding) {
	results := make([]chan []finding, len(checks))
	turn := make(chan struct{}, maxChecks)
	var started sync.WaitGroup
	for i, c := range checks {
		results[i] = make(chan []finding, 1)
		started.Add(1)
		go func() {
			started.Done()
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
				results[i] <- c.look(ctx)
			case <-ctx.Done():
			}
		}()
	}
	started.Wait()
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Until(deadline(ctx))+time.Second)
	defer stop()
	for i, c := range checks {
		select {
		case found := <-results[i]:
			list = append(list, under(c.name, found)...)
		case <-late.Done():
			list = append(list, finding{c.name, stateWrong, "this could not be found out in time", "look what hangs here, and try again"})
		}
	}
	return list
}

func deadline(ctx context.Context) time.Time {
	if at, ok := ctx.Deadline(); ok {
		return at
	}
	return time.Now().Add(doctorPatience)
}

// showFindings prints what was found. It fails if anything is wrong.
func (a *app) showFindings(list []finding) error {
	bad := 0
	for _, f := range list {
		if f.State == stateWrong {
			bad++
		}
	}
	if a.json() {
		if err := printJSON(a.out, map[string]any{"checks": list}); err != nil || bad == 0 {
			return err
		}
		return silentError{}
	}
	for _, f := range list {
		text := f.Check + ": " + f.Says
		if f.Mend != "" {
			text += "; " + f.Mend
		}
		if _, err := fmt.Fprintf(a.out, "%-7s  %s\n", f.State, cell(text)); err != nil {
			return err
		}
	}
	switch bad {
	case 0:
		return nil
	case 1:
		return errors.New("one thing is wrong; mend it as its line says")
	}
	return fmt.Errorf("%d things are wrong; mend them as their lines say", bad)
}
