package runner

import (
	"context"
	"errors"
	"strings"

	"docket/store/ci"
)

// Span is what a commit is compared with to see which files it changed.
type Span struct {
	Commit string // hex
	Ref    string // full ref that the commit was announced on
	// Before is the commit that the branch pointed to, "" for none.
	Before string
	// Base is the full ref of a branch: where there is no Before, what is
	// compared with is the newest commit that the branch and Commit share.
	Base string
}

// Changed returns the files that differ between the two ends of a span, added,
// modified and removed ones, with both names of a renamed one: bytes, from the
// repository's root. Where there is nothing to compare with any more, or was
// not ever, it says so in why and returns none.
//
// Errors: CodeNotFound when the commit is no longer available, CodeInvalid for
// an unusable URL, ref or commit; any other may be gone next time.
func (r *Runner) Changed(ctx context.Context, project, cloneURL string, span Span) (files []string, why string, err error) {
	if err := checkSpan(project, span); err != nil {
		return nil, "", err
	}
	base := span.Before
	if base == "" {
		if base, why, err = r.tip(ctx, cloneURL, span); base == "" {
			return nil, why, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.fetchTimeout, errFetchTimeout)
	defer cancel()
	unlock, err := r.lock(ctx, project)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	err = r.scratch(cloneURL, "changed-"+project, func(g *git) error {
		m := &mirror{git: g, dir: r.mirrorDir(project, 0)} // with its history, which a base is found in
		if err := g.configure(m.dir); err != nil {
			return err
		}
		for try := range 2 {
			files, why, err = m.changed(ctx, base, span)
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
		return nil, "", err
	}
	return files, why, nil
}

func checkSpan(project string, span Span) error {
	if err := checkProject(project); err != nil {
		return err
	}
	for _, c := range []string{span.Commit, span.Before} {
		if c != "" && !ci.IsCommit(c) || span.Commit == "" {
			return ci.Errorf(ci.CodeInvalid, "%q is no commit: want 40 or 64 lower-case hex digits", c)
		}
	}
	if span.Before == "" {
		if err := checkRef(span.Base); err != nil {
			return err
		}
	}
	return checkRef(span.Ref)
}

// tip returns the commit at the end of a span's base branch.
func (r *Runner) tip(ctx context.Context, cloneURL string, span Span) (commit, why string, err error) {
	if span.Base == span.Ref {
		return "", refName(span.Base) + " is new, and there is no other branch to compare it with", nil
	}
	commit, err = r.Resolve(ctx, cloneURL, span.Base)
	if ci.CodeOf(err) == ci.CodeNotFound {
		return "", refName(span.Base) + " does not exist any more, so there is nothing to compare with", nil
	}
	return commit, "", err
}

// changed fetches both ends and compares them.
func (m *mirror) changed(ctx context.Context, base string, span Span) (files []string, why string, err error) {
	if err := m.fetch(ctx, span.Commit, span.Ref); err != nil {
		return nil, "", err
	}
	if _, err := m.run(ctx, m.dir, "merge-base", "--is-ancestor", base, span.Commit); err != nil { // else it came along
		baseRef := span.Base
		if span.Before != "" {
			baseRef = "" // none is sure to reach it
		}
		switch err := m.fetch(ctx, base, baseRef); {
		case ci.CodeOf(err) == ci.CodeNotFound:
			return nil, "commit " + base + ", which it is compared with, is not available any more", nil
		case err != nil:
			return nil, "", err
		}
	}
	if span.Before == "" {
		out, err := m.run(ctx, m.dir, "merge-base", base, span.Commit)
		var e *gitError
		if errors.As(err, &e) && e.exit == 1 {
			return nil, refName(span.Base) + " and the commit have no history in common", nil
		}
		if err != nil {
			return nil, "", err
		}
		if base = strings.TrimSpace(string(out)); !ci.IsCommit(base) {
			return nil, "", ci.Errorf(ci.CodeUnavailable, "git merge-base answered %q, which is no commit", base)
		}
	}
	out, err := m.run(ctx, m.dir, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id", base, span.Commit, "--")
	if ci.CodeOf(err) == ci.CodeTooLarge {
		return nil, "more files changed than can be listed", nil
	}
	if err != nil {
		return nil, "", err
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name != "" {
			files = append(files, name)
		}
	}
	return files, "", nil
}
