package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// result is what one command line did.
type result struct {
	code     int
	out, err string
}

// world is where command lines run in a test.
type world struct {
	t     *testing.T
	dir   string
	env   map[string]string
	stdin string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, dir: t.TempDir(), env: map[string]string{}}
}

// path returns a path in the world's directory.
func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// write makes a file in the world's directory and returns its path.
func (w *world) write(name, content string) string {
	w.t.Helper()
	mustWrite(w.t, w.path(name), content)
	return w.path(name)
}

// run carries out a command line in-process.
func (w *world) run(args ...string) result {
	w.t.Helper()
	return w.runCtx(w.t.Context(), args...)
}

func (w *world) runCtx(ctx context.Context, args ...string) result {
	var out, errs bytes.Buffer
	code := run(ctx, args, strings.NewReader(w.stdin), &out, &errs, func(k string) string { return w.env[k] })
	return result{code, out.String(), errs.String()}
}

// must is run for a command that has to succeed.
func (w *world) must(args ...string) string {
	w.t.Helper()
	r := w.run(args...)
	if r.code != exitDone {
		w.t.Fatalf("docket %s: exit code %d, stderr %q", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// mustContain checks that every part stands in a text.
func mustContain(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}
