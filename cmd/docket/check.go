package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

func newCheck(a *app) *cobra.Command {
	var file string
	cmd := a.reads(&cobra.Command{
		Use:   "check",
		Short: "Check the configuration, or a pipeline file, without starting anything",
		Long: `Check the configuration without starting anything.

Every mistake is reported as FILE:LINE:COL with what is wrong, how to mend it
and the source line; secrets are read, and one that is missing, empty or blank is a
mistake too. "docket serve" checks the same things and starts only without any.

With --pipeline it is the repository's pipeline file that is checked, as a run does it.
That needs no configuration.

Exit code 1 if there is a mistake. With -o json the result is one object with the
array "faults", each with file, line, column, message and source.`,
		Example: `  docket check
  docket check -c /etc/docket/docket.yaml -o json
  docket check --pipeline .docket.yml`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("pipeline") {
				return a.checkPipeline(file)
			}
			return a.check()
		},
	})
	cmd.Flags().StringVar(&file, "pipeline", "", "check this pipeline `FILE` of a repository instead")
	return cmd
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
	Steps        []string `json:"steps,omitempty"`
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

// checkPipeline checks a repository's pipeline file with what a run reads it by.
func (a *app) checkPipeline(path string) error {
	f, faults := readPipeline(path)
	c := checked{File: path, OK: len(faults) == 0, Faults: faults}
	for _, s := range f.Steps {
		c.Steps = append(c.Steps, s.Name)
	}
	switch {
	case a.json():
		if c.OK {
			c.Faults = []Fault{}
		}
		if err := printJSON(a.out, c); err != nil || c.OK {
			return err
		}
		return silentError{}
	case !c.OK:
		return &ConfigError{File: path, Faults: faults, check: "--pipeline"}
	}
	_, err := fmt.Fprintf(a.out, "%s is in order\n  steps  %s\n", path, printableText(joined(c.Steps)))
	return err
}

func readPipeline(path string) (pipeline.File, []Fault) {
	fail := func(format string, args ...any) (pipeline.File, []Fault) {
		return pipeline.File{}, []Fault{{File: path, Message: fmt.Sprintf(format, args...)}}
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("there is no such file; name the repository's pipeline file, as in --pipeline .docket.yml")
	case err == nil && info.IsDir():
		return fail("this is a directory; name the file in it")
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return fail("this is a symbolic link, which docket does not follow in a repository; commit the file itself")
	case err == nil && !info.Mode().IsRegular():
		return fail("this is not a regular file; commit one")
	}
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			defer f.Close()
			var b []byte
			if b, err = io.ReadAll(io.LimitReader(f, pipeline.MaxFile+1)); err == nil {
				return pipeline.CheckFile(path, b)
			}
		}
	}
	return fail("the file cannot be read (%v); name another, or let yourself read it", err)
}
