package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"docket/store/ci"
)

// scratch calls f with a git outside any run, and removes what it used.
func (r *Runner) scratch(cloneURL, label string, f func(g *git) error) error {
	rem, err := parseRemote(cloneURL)
	if err != nil {
		return err
	}
	parent := filepath.Join(r.workspaces, scratchDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return err
	}
	w := workspace{dir}
	defer removeTree(dir) //nolint:errcheck // what stays is swept at the next start
	if err := w.create(); err != nil {
		return err
	}
	s, err := r.open(w, label)
	if err != nil {
		return err
	}
	defer s.close()
	return f(&git{r: r, s: s, w: w, remote: rem, masks: newMasker([]string{rem.password})})
}

// Resolve returns the commit that a full ref of a remote points to now, an
// annotated tag peeled. It asks the remote and keeps nothing.
//
// Errors: CodeNotFound when the remote has no such ref, CodeInvalid for an
// unusable URL or ref; any other may be gone next time.
func (r *Runner) Resolve(ctx context.Context, cloneURL, ref string) (commit string, err error) {
	_, commit, err = r.resolve(ctx, cloneURL, ref)
	return commit, err
}

// Peel returns the commit of one tag object, which ref was announced to point
// to. Where the ref has moved on since, another tag must not be built under
// the old one's name: that is CodeNotFound. Other errors are Resolve's.
func (r *Runner) Peel(ctx context.Context, cloneURL, ref, object string) (commit string, err error) {
	at, commit, err := r.resolve(ctx, cloneURL, ref)
	if err == nil && at != object {
		return "", ci.Errorf(ci.CodeNotFound, "%s has moved since it was pushed: it pointed to %s and points to %s now", refName(ref), object, at)
	}
	return commit, err
}

// resolve returns what a ref points to, and the commit that this comes down to.
func (r *Runner) resolve(ctx context.Context, cloneURL, ref string) (object, commit string, err error) {
	if err := checkRef(ref); err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.fetchTimeout, errFetchTimeout)
	defer cancel()
	err = r.scratch(cloneURL, "resolve", func(g *git) error {
		if err := g.configure(); err != nil {
			return err
		}
		out, err := g.remotely(ctx, g.w.dir, "ls-remote", "--quiet", remoteName, ref, ref+"^{}")
		if err != nil {
			return g.timely(g.remoteError(err))
		}
		// git matches the end of a name: refs/heads/main also finds
		// refs/heads/refs/heads/main.
		for line := range strings.Lines(string(out)) {
			id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if name == ref {
				object = id
			}
			if name == ref+"^{}" || name == ref && commit == "" {
				commit = id
			}
		}
		if commit == "" {
			return ci.Errorf(ci.CodeNotFound, "%s does not exist in %s", refName(ref), g.remote.shown)
		}
		if !ci.IsCommit(commit) {
			return ci.Errorf(ci.CodeUnavailable, "%s answered %q for %s, which is no commit", g.remote.shown, commit, ref)
		}
		return nil
	})
	if err != nil {
		return "", "", err
	}
	return object, commit, nil
}

// timely says it when it was the time-out that ended a fetch.
func (g *git) timely(err error) error {
	if errors.Is(err, errFetchTimeout) {
		return ci.Wrap(ci.CodeUnavailable, err, "%s did not answer within %s", g.remote.shown, g.r.fetchTimeout)
	}
	return err
}

// ReadFile returns a file of the repository at an exact commit, fetched from
// ref or by its id if the project's mirror lacks it.
//
// Errors: CodeNotFound when the commit is no longer available or has no such
// file, CodeInvalid when it is a symbolic link or no file, CodeTooLarge when
// it is over limit bytes; any other may be gone next time.
func (r *Runner) ReadFile(ctx context.Context, project, cloneURL, ref, commit, file string, limit int64) (content []byte, err error) {
	if err := checkProject(project); err != nil {
		return nil, err
	}
	if !ci.IsCommit(commit) {
		return nil, ci.Errorf(ci.CodeInvalid, "%q is no commit: want 40 or 64 lower-case hex digits", commit)
	}
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	if file == "" || file != path.Clean(file) || path.IsAbs(file) || file == "." || file == ".." || strings.HasPrefix(file, "../") || strings.Contains(file, "\x00") {
		return nil, ci.Errorf(ci.CodeInvalid, "%q is not a path inside the repository", file)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.fetchTimeout, errFetchTimeout)
	defer cancel()
	unlock, err := r.lock(ctx, project)
	if err != nil {
		return nil, err
	}
	defer unlock()
	err = r.scratch(cloneURL, "read-"+project, func(g *git) error {
		full, shallow := r.mirrorDir(project, 0), r.mirrorDir(project, 1)
		if err := g.configure(full, shallow); err != nil {
			return err
		}
		// One snapshot is enough, but where there is the whole history the
		// run will want it there.
		m := &mirror{git: g, dir: shallow, depth: 1}
		if _, err := os.Stat(full); err == nil {
			m.dir, m.depth = full, 0
		}
		for try := range 2 {
			if err := m.fetch(ctx, commit, ref); err != nil {
				return g.timely(err)
			}
			content, err = m.readFile(ctx, commit, file, limit)
			var e *gitError
			if !errors.As(err, &e) || try > 0 || !m.broken(ctx) {
				break
			}
			if err := m.remove(); err != nil {
				return err
			}
		}
		return g.timely(err)
	})
	if err != nil {
		return nil, err
	}
	return content, nil
}

// readFile reads a blob out of the mirror; nothing is checked out.
func (m *mirror) readFile(ctx context.Context, commit, file string, limit int64) ([]byte, error) {
	out, err := m.run(ctx, m.dir, "--literal-pathspecs", "ls-tree", "-z", "--full-tree", "-l", commit, "--", file)
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(out), "\x00")
	info, name, _ := strings.Cut(line, "\t")
	f := strings.Fields(info) // mode, type, id, size
	at := ci.ShortCommit(commit)
	switch {
	case name != file || len(f) != 4:
		return nil, ci.Errorf(ci.CodeNotFound, "there is no file %s in commit %s; commit it, or mend the project's pipeline in docket.yaml", file, at)
	case f[0] == "120000":
		return nil, ci.Errorf(ci.CodeInvalid, "%s in commit %s is a symbolic link, which docket does not follow; commit the file itself", file, at)
	case f[1] != "blob":
		what := map[string]string{"tree": "directory", "commit": "submodule"}[f[1]]
		return nil, ci.Errorf(ci.CodeInvalid, "%s in commit %s is a %s, not a file; commit a file there, or mend the project's pipeline in docket.yaml", file, at, what)
	}
	size, err := strconv.ParseInt(f[3], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("git ls-tree says the size %q", f[3])
	}
	if size > limit {
		return nil, ci.Errorf(ci.CodeTooLarge, "%s in commit %s has %d bytes, more than the %d that docket reads; move long scripts into files of their own", file, at, size, limit)
	}
	return m.bounded(ctx, int(limit), m.dir, "cat-file", "blob", f[2])
}
