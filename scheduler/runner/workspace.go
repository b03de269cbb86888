package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"docket/store/ci"
)

// scratchDir lies beside the projects in workspaces/ and holds what git needs
// where no run is involved. No project can have this name.
const scratchDir = ".scratch"

// workspace is a run's private directory, one for each attempt:
//
//	src/          the checkout; steps start here
//	home/         HOME
//	tmp/          TMPDIR
//	event.json    the payload
//	gitconfig     the only configuration that docket's own git reads
//	step-N.sh     the steps' scripts
//
// No name that comes from outside is part of any path.
type workspace struct{ dir string }

func (w workspace) src() string           { return filepath.Join(w.dir, "src") }
func (w workspace) home() string          { return filepath.Join(w.dir, "home") }
func (w workspace) tmp() string           { return filepath.Join(w.dir, "tmp") }
func (w workspace) event() string         { return filepath.Join(w.dir, "event.json") }
func (w workspace) gitconfig() string     { return filepath.Join(w.dir, "gitconfig") }
func (w workspace) script(n int) string   { return filepath.Join(w.dir, fmt.Sprintf("step-%d.sh", n)) }
func (w workspace) supervisorLog() string { return filepath.Join(w.dir, "supervisor.log") }

// workspace returns where an attempt of a run has its place.
func (r *Runner) workspace(run ci.Run) (workspace, error) {
	if err := checkProject(run.Project); err != nil {
		return workspace{}, err
	}
	name := strconv.FormatUint(run.Number, 10) + "-" + strconv.Itoa(run.Attempt)
	return workspace{filepath.Join(r.workspaces, run.Project, name)}, nil
}

// checkProject refuses a name that cannot be one component of a path.
func checkProject(name string) error {
	if name == "" || name[0] == '.' || len(name) > 200 || strings.ContainsAny(name, "/\x00") {
		return ci.Errorf(ci.CodeInvalid, "the project name %q cannot be a directory's name; rename the project", name)
	}
	return nil
}

// create makes the directories anew; what an earlier try left is removed.
func (w workspace) create() error {
	if err := removeTree(w.dir); err != nil {
		return err
	}
	for _, dir := range []string{w.src(), w.home(), w.tmp()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes the workspace and the home of a run's attempt, read-only
// files in them too. It is no error if there is none.
func (r *Runner) Remove(run ci.Run) error {
	w, err := r.workspace(run)
	if err != nil {
		return err
	}
	if err := removeTree(w.dir); err != nil {
		return fmt.Errorf("remove the workspace of %s: %w", run.ID, err)
	}
	_ = os.Remove(filepath.Dir(w.dir)) // only if this was the project's last one
	return nil
}

// Sweep removes every workspace whose run's id is not in keep, and what git
// left where no run was involved. It is for the start, before any work: no
// process may be using what it removes.
func (r *Runner) Sweep(keep map[string]bool) error {
	projects, err := os.ReadDir(r.workspaces)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range projects {
		dir := filepath.Join(r.workspaces, p.Name())
		if !p.IsDir() || p.Name() == scratchDir {
			errs = append(errs, removeTree(dir))
			continue
		}
		attempts, err := os.ReadDir(dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, a := range attempts {
			number, _, _ := strings.Cut(a.Name(), "-")
			if !keep[p.Name()+"-"+number] {
				errs = append(errs, removeTree(filepath.Join(dir, a.Name())))
			}
		}
		_ = os.Remove(dir) // only if it is empty now
	}
	return errors.Join(errs...)
}

// removeTree removes a directory even where a step took away the permission
// to write in it. It follows no symbolic link.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		if err != nil && d != nil && d.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
	return os.RemoveAll(dir)
}
