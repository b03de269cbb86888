package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"docket/store/ci"
)

const (
	// keepRefs is how many fetched commits a mirror goes on holding when it
	// is tidied; the newest by commit date.
	keepRefs = 200
	// tidyPacks is from how many packs on a mirror is tidied.
	tidyPacks = 50
	// fetchTries bounds tries of a fetch that fails as if it were temporary.
	fetchTries = 3
	// fetchBackoff is the wait before the second try; it doubles.
	fetchBackoff = 500 * time.Millisecond
	// keepPrefix begins the refs that hold fetched commits. Under it a name
	// stands for a commit that was fetched whole, to the depth in the name.
	keepPrefix = "refs/docket/keep/"
)

var errFetchTimeout = errors.New("fetching did not end in time")

// mirror is a project's bare repository, used under its lock only. A project
// that fetches to a depth has another one, since a shallow repository cannot
// tell what it lacks.
type mirror struct {
	*git
	dir   string
	depth int
}

func (r *Runner) mirrorDir(project string, depth int) string {
	if depth > 0 {
		return filepath.Join(r.mirrors, project+"~shallow.git")
	}
	return filepath.Join(r.mirrors, project+".git")
}

// lock waits for a project's mirrors. The caller calls unlock.
func (r *Runner) lock(ctx context.Context, project string) (unlock func(), err error) {
	r.mu.Lock()
	l := r.locks[project]
	if l == nil {
		l = make(chan struct{}, 1)
		r.locks[project] = l
	}
	r.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (m *mirror) keepRef(commit string) string {
	return keepPrefix + strconv.Itoa(m.depth) + "/" + commit
}

// prepare makes the mirror if there is none and takes away what a killed git
// left in it.
func (m *mirror) prepare(ctx context.Context, commit string) error {
	_, headErr := os.Stat(filepath.Join(m.dir, "HEAD"))
	_, objErr := os.Stat(filepath.Join(m.dir, "objects"))
	if headErr == nil && objErr == nil {
		return removeStale(m.dir)
	}
	if err := m.remove(); err != nil {
		return err
	}
	fresh := m.dir + ".new"
	if err := removeTree(fresh); err != nil {
		return err
	}
	if _, err := m.run(ctx, m.w.dir, "init", "--quiet", "--bare", "--template=", "--object-format="+objectFormat(commit), "--", fresh); err != nil {
		return err
	}
	return os.Rename(fresh, m.dir)
}

// remove takes the mirror away; the next use builds it from scratch.
func (m *mirror) remove() error { return removeTree(m.dir) }

// removeStale removes lock files and unfinished objects. Only the mirror's
// lock makes that right: no git is at work in it.
func removeStale(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		stale := strings.HasSuffix(name, ".lock") || name == "gc.pid" ||
			strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, "incoming-")
		switch {
		case d.IsDir() && strings.HasPrefix(name, "incoming-"):
			return errors.Join(removeTree(path), filepath.SkipDir)
		case d.IsDir() || !stale:
			return nil
		}
		return os.Remove(path)
	})
}

func objectFormat(commit string) string {
	if len(commit) == 64 {
		return "sha256"
	}
	return "sha1"
}

// has reports whether a commit was fetched before, whole. An error means that
// the mirror cannot be read.
func (m *mirror) has(ctx context.Context, commit string) (bool, error) {
	out, err := m.run(ctx, m.dir, "rev-parse", "--verify", "--quiet", "--end-of-options", m.keepRef(commit)+"^{commit}")
	var e *gitError
	if errors.As(err, &e) && e.exit == 1 {
		return false, nil // no such ref
	}
	return err == nil && strings.TrimSpace(string(out)) == commit, err
}

// broken reports whether git finds the mirror damaged.
func (m *mirror) broken(ctx context.Context, args ...string) bool {
	quiet := *m.git
	quiet.stderr = nil
	_, err := quiet.run(ctx, m.dir, append([]string{"fsck", "--no-dangling", "--no-progress"}, args...)...)
	var e *gitError
	return errors.As(err, &e)
}

// fetch gets an exact commit: by its id where the remote gives it, else by
// the ref that it was announced on. What is there already is not fetched
// again. A mirror that turns out to be damaged is rebuilt once.
//
// Errors: CodeNotFound when the remote does not have the commit any more;
// others as remoteError tells, after three tries where trying again can help.
func (m *mirror) fetch(ctx context.Context, commit, ref string) error {
	if err := m.prepare(ctx, commit); err != nil {
		return fmt.Errorf("prepare the mirror: %w", err)
	}
	has, err := m.has(ctx, commit)
	if has || ctx.Err() != nil {
		return err
	}
	if err == nil {
		err = m.tryFetch(ctx, commit, ref)
		if ctx.Err() != nil || err == nil || faultOf(err) != faultOther || !m.broken(ctx, "--connectivity-only") {
			return m.fetched(ctx, commit, err)
		}
	}
	if err := m.remove(); err != nil {
		return err
	}
	if err := m.prepare(ctx, commit); err != nil {
		return err
	}
	return m.fetched(ctx, commit, m.tryFetch(ctx, commit, ref))
}

// fetched turns the last error into what people read, and tidies up.
func (m *mirror) fetched(ctx context.Context, commit string, err error) error {
	if err == nil {
		m.tidy(ctx)
		return nil
	}
	if faultOf(err) == faultGone {
		return ci.Wrap(ci.CodeNotFound, err, "commit no longer available: %s has no commit %s any more; it was replaced by a force push or deleted", m.remote.shown, commit)
	}
	return m.remoteError(err)
}

func (m *mirror) tryFetch(ctx context.Context, commit, ref string) error {
	var err error
	for try := range fetchTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(fetchBackoff << (try - 1)):
			}
		}
		err = m.fetchCommit(ctx, commit, try == 0)
		if faultOf(err) == faultGone && ref != "" {
			err = m.fetchRef(ctx, commit, ref)
		}
		if err == nil || ctx.Err() != nil || faultOf(err) != faultOther {
			return err
		}
	}
	return err
}

// fetchCommit asks for the commit by its id. With its whole history come all
// tags, as they are on the remote now, so that `git describe` works.
func (m *mirror) fetchCommit(ctx context.Context, commit string, tags bool) error {
	args := m.fetchArgs(m.depth)
	args = append(args, "+"+commit+":"+m.keepRef(commit))
	if m.depth == 0 && tags {
		args = append(args, "+refs/tags/*:refs/tags/*")
	}
	_, err := m.remotely(ctx, m.dir, args...)
	return err
}

// fetchRef fetches the ref and then looks whether the commit came with it.
func (m *mirror) fetchRef(ctx context.Context, commit, ref string) error {
	const at = "refs/docket/fetched"
	depths := []int{m.depth}
	if m.depth > 0 {
		depths = append(depths, 1<<31-1) // git's own number for "all of it"
	}
	for _, depth := range depths {
		args := append(m.fetchArgs(depth), "+"+ref+":"+at)
		if _, err := m.remotely(ctx, m.dir, args...); err != nil {
			return err
		}
		if _, err := m.run(ctx, m.dir, "merge-base", "--is-ancestor", commit, at); err == nil {
			_, err = m.run(ctx, m.dir, "update-ref", "--no-deref", m.keepRef(commit), commit)
			return err
		} else if ctx.Err() != nil {
			return err
		}
	}
	return &gitError{command: "fetch", exit: 128, stderr: "fatal: not our ref " + commit + "\n"}
}

func (m *mirror) fetchArgs(depth int) []string {
	args := []string{"fetch", "--quiet", "--no-tags", "--force", "--prune", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"}
	if depth > 0 {
		args = append(args, "--depth="+strconv.Itoa(depth))
	}
	return append(args, "--", remoteName)
}

// tidy repacks a mirror that has many packs and lets old commits go. A
// failure costs space, not correctness.
func (m *mirror) tidy(ctx context.Context) {
	packs, _ := filepath.Glob(filepath.Join(globEscape(m.dir), "objects", "pack", "*.pack"))
	if len(packs) < tidyPacks {
		return
	}
	refs, err := m.run(ctx, m.dir, "for-each-ref", "--sort=-committerdate", "--format=%(refname)", keepPrefix)
	if err != nil {
		return
	}
	for i, ref := range strings.Fields(string(refs)) {
		if i >= keepRefs {
			_, _ = m.run(ctx, m.dir, "update-ref", "-d", ref)
		}
	}
	_, _ = m.run(ctx, m.dir, "pack-refs", "--all")
	_, _ = m.run(ctx, m.dir, "repack", "-a", "-d", "--quiet")
}

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}
