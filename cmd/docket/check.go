package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

func newCheck(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "check",
		Short: "Check the configuration without starting anything",
		Long: `Check the configuration without starting anything.

Every mistake is reported as FILE:LINE:COL with what is wrong, how to mend it
and the source line; secrets are read, and one that is missing, empty or blank is a
mistake too. "docket serve" checks the same things and starts only without any.

Exit code 1 if there is a mistake. With -o json the result is one object with the
array "faults", each with file, line, column, message and source.`,
		Example: `  docket check
  docket check -c /etc/docket/docket.yaml -o json`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error { return a.check() },
	})
}

// checked is what check says in JSON.
type checked struct {
	File         string   `json:"file"`
	OK           bool     `json:"ok"`
	Faults       []Fault  `json:"faults"`
	DataDir      string   `json:"data_dir,omitempty"`
	Listen       []string `json:"listen,omitempty"`
	Integrations []string `json:"integrations,omitempty"`
	Projects     []string `json:"projects,omitempty"`
}

func (a *app) check() error {
	cfg, path, err := a.load()
	var faulty *ConfigError
	if err != nil && (!a.json() || !errors.As(err, &faulty)) {
		return err
	}
	if faulty != nil {
		if err := printJSON(a.out, checked{File: path, Faults: faulty.Faults}); err != nil {
			return err
		}
		return silentError{}
	}
	c := summarize(path, cfg)
	if a.json() {
		return printJSON(a.out, c)
	}
	_, err = fmt.Fprintf(a.out, "%s is in order\n  data          %s\n  listen        %s\n  integrations  %s\n  projects      %s\n",
		path, c.DataDir, joined(c.Listen), joined(c.Integrations), joined(c.Projects))
	return err
}

func summarize(path string, cfg *ci.Config) checked {
	c := checked{File: path, OK: true, Faults: []Fault{}, DataDir: cfg.DataDir}
	for _, l := range cfg.Listen {
		s := l.Address
		if len(l.Serve) > 0 {
			s += " (" + strings.Join(l.Serve, " ") + ")"
		}
		c.Listen = append(c.Listen, s)
	}
	for _, in := range cfg.Integrations {
		c.Integrations = append(c.Integrations, in.Name)
	}
	for _, p := range cfg.Projects {
		c.Projects = append(c.Projects, p.Name)
	}
	return c
}

func joined(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
