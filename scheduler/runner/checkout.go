package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"docket/store/ci"
)

// fill puts the exact commit into a run's workspace. It returns lines for the
// log about what a reader of the run should know.
//
// A workspace that is not what was frozen is an error, never a run.
func (g *git) fill(ctx context.Context, run ci.Run, o ci.GitOptions) (notes []string, err error) {
	commit := run.Source.Commit
	if !ci.IsCommit(commit) {
		return nil, ci.Errorf(ci.CodeInvalid, "the run has no commit: %q is not 40 or 64 lower-case hex digits", commit)
	}
	if err := checkRef(run.Source.Ref); err != nil {
		return nil, err
	}
	dir := g.r.mirrorDir(run.Project, o.Depth)
	g.lfs = o.LFS
	if err := g.configure(dir); err != nil {
		return nil, err
	}
	if o.LFS {
		if _, err := g.run(ctx, g.w.dir, "lfs", "version"); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			return nil, ci.Wrap(ci.CodeUnavailable, err, "the project has git.lfs on, but git-lfs is not installed on the server: install git-lfs, or turn git.lfs off")
		}
	}
	fetchCtx, cancel := context.WithTimeoutCause(ctx, g.r.fetchTimeout, errFetchTimeout)
	defer cancel()
	if notes, err = g.mirrorAndCheckout(ctx, fetchCtx, run, o, dir); err != nil {
		if errors.Is(err, errFetchTimeout) {
			err = ci.Wrap(ci.CodeUnavailable, err, "fetching from %s did not end within %s", g.remote.shown, g.r.fetchTimeout)
		}
		return nil, err
	}
	if o.Submodules {
		if err := g.submodules(fetchCtx, run.Fork, o.Depth); err != nil {
			return nil, err
		}
	}
	if !o.LFS {
		if n := g.lfsPointers(ctx); n > 0 {
			notes = append(notes, fmt.Sprintf("%d files of this commit are kept in Git LFS and were left as pointers: git.lfs is off for this project", n))
		}
	}
	return notes, nil
}

// mirrorAndCheckout fetches and checks out under the mirror's lock. Where the
// checkout fails although the fetch did not, the mirror may be damaged in a
// way that only use shows: then it is rebuilt once.
func (g *git) mirrorAndCheckout(ctx, fetchCtx context.Context, run ci.Run, o ci.GitOptions, dir string) (notes []string, err error) {
	unlock, err := g.r.lock(ctx, run.Project)
	if err != nil {
		return nil, err
	}
	defer unlock()
	m := &mirror{git: g, dir: dir, depth: o.Depth}
	for try := range 2 {
		if err := m.fetch(fetchCtx, run.Source.Commit, run.Source.Ref); err != nil {
			return nil, err
		}
		if notes, err = m.checkout(ctx, run.Source.Commit, run.Fork); err == nil || ctx.Err() != nil || try > 0 || !m.broken(fetchCtx) {
			return notes, err
		}
		if err := errors.Join(m.remove(), g.w.emptySource()); err != nil {
			return nil, err
		}
	}
	return notes, err
}

func (w workspace) emptySource() error {
	if err := removeTree(w.src()); err != nil {
		return err
	}
	return os.Mkdir(w.src(), 0o700)
}

// checkout makes src a repository of its own at the commit. Its objects are
// links to the mirror's files, so it costs little and whatever happens to the
// mirror later does not reach it. A fork's run gets large files without the
// project's credential: it is the fork that says where they are.
func (m *mirror) checkout(ctx context.Context, commit string, fork bool) ([]string, error) {
	src := m.w.src()
	if _, err := m.run(ctx, src, "init", "--quiet", "--template=", "--object-format="+objectFormat(commit)); err != nil {
		return nil, err
	}
	gitDir := filepath.Join(src, ".git")
	if err := linkObjects(ctx, filepath.Join(m.dir, "objects"), filepath.Join(gitDir, "objects")); err != nil {
		return nil, fmt.Errorf("fill the workspace from the mirror: %w", err)
	}
	if err := copyFile(filepath.Join(m.dir, "shallow"), filepath.Join(gitDir, "shallow")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	tags, err := m.run(ctx, m.dir, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(gitDir, "packed-refs"), tags, 0o600); err != nil {
		return nil, err
	}
	if err := appendFile(filepath.Join(gitDir, "config"), "[remote \"origin\"]\n\turl = "+quoteConfig(m.remote.shown)+"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"); err != nil {
		return nil, err
	}
	var c credential
	if m.lfs && !fork { // large files come from the remote while the commit is checked out
		c, _ = m.signIn(ctx, "") // without, those fail that are not everybody's to read
	}
	if _, err := m.with(c).run(ctx, src, "checkout", "--quiet", "--force", "--detach", commit, "--"); err != nil {
		return nil, checkoutError(err)
	}
	return m.compare(ctx, commit)
}

func checkoutError(err error) error {
	var e *gitError
	if errors.As(err, &e) {
		return ci.Wrap(ci.CodeInternal, err, "the checkout failed: %s", e.reason())
	}
	return err
}

// compare proves that the workspace is the frozen commit and nothing else.
// Files that only their line-ending attributes make look changed are the
// commit's own fault and no difference; they are told in the log.
func (m *mirror) compare(ctx context.Context, commit string) ([]string, error) {
	head, err := m.run(ctx, m.w.src(), "rev-parse", "--verify", "--end-of-options", "HEAD")
	if err != nil {
		return nil, checkoutError(err)
	}
	if got := strings.TrimSpace(string(head)); got != commit {
		return nil, ci.Errorf(ci.CodeInternal, "the workspace is at commit %s instead of %s: nothing was run", got, commit)
	}
	status, err := m.run(ctx, m.w.src(), "status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=all")
	if err != nil {
		return nil, checkoutError(err)
	}
	entries := bytes.Split(bytes.TrimSuffix(status, []byte{0}), []byte{0})
	changed := 0
	for _, e := range entries {
		switch {
		case len(e) == 0:
		case bytes.HasPrefix(e, []byte(" M ")) && m.sameBytes(ctx, string(e[3:])):
			changed++
		default:
			return nil, ci.Errorf(ci.CodeInternal, "the workspace is not the commit %s: %d files differ, one of them %q; nothing was run", commit, len(entries), e[min(3, len(e)):])
		}
	}
	if changed > 0 {
		return []string{fmt.Sprintf("%d files look changed to git right after the checkout: their line endings in the commit are not what .gitattributes says", changed)}, nil
	}
	return nil, nil
}

// sameBytes reports whether a file holds what checking out its blob gives.
func (m *mirror) sameBytes(ctx context.Context, path string) bool {
	want, err := m.run(ctx, m.w.src(), "cat-file", "--filters", "HEAD:"+path)
	if err != nil {
		return false
	}
	got, err := os.ReadFile(filepath.Join(m.w.src(), path))
	return err == nil && bytes.Equal(want, got)
}

// submodules fills them. Their addresses come from the repository: a local
// one is only followed from a local remote, and a fork's run never uses the
// server's ssh keys.
func (g *git) submodules(ctx context.Context, fork bool, depth int) error {
	sub := *g
	sub.protocols = []string{"https", "http"}
	if !fork {
		sub.protocols = append(sub.protocols, "ssh")
	}
	if g.remote.protocol == "file" {
		sub.protocols = append(sub.protocols, "file")
	}
	args := []string{"submodule", "--quiet", "update", "--init", "--recursive"}
	if depth > 0 {
		args = append(args, fmt.Sprintf("--depth=%d", depth))
	}
	_, err := sub.run(ctx, g.w.src(), args...)
	var e *gitError
	switch {
	case errors.Is(err, errFetchTimeout):
		return ci.Wrap(ci.CodeUnavailable, err, "fetching the submodules did not end within %s", g.r.fetchTimeout)
	case errors.As(err, &e):
		return ci.Wrap(ci.CodeUnavailable, err, "the submodules cannot be fetched: %s", e.reason())
	}
	return err
}

// lfsPointers counts the files that LFS would replace.
func (g *git) lfsPointers(ctx context.Context) int {
	out, err := g.run(ctx, g.w.src(), "ls-files", "-z", "--", ":(attr:filter=lfs)")
	if err != nil {
		return 0
	}
	return bytes.Count(out, []byte{0})
}

// linkObjects gives one object directory all of another's objects.
func linkObjects(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case rel == "info":
			return filepath.SkipDir // derived from the objects
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case strings.HasPrefix(d.Name(), "multi-pack-index"):
			return nil
		}
		if os.Link(path, filepath.Join(to, rel)) == nil {
			return nil
		}
		return copyFile(path, filepath.Join(to, rel))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
