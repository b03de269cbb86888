package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"docket/store"
)

// controlEnv makes the test binary docket itself, with its failpoints
// described by files in the directory that the variable names:
//
//	kill        "POINT N": SIGKILL at the Nth passing of a point from then on
//	fail        "N": every Nth commit from then on fails
//	no-wakeups  wakeups never come; looked for at the start
//	recover     how often is compared with the provider, never without it; looked for at the start
const controlEnv = "DOCKET_TEST_PROCESS"

func TestMain(m *testing.M) {
	// A supervisor is started with an environment of its own.
	if len(os.Args) > 1 && os.Args[1] == superviseCommand {
		main()
	}
	if dir := os.Getenv(controlEnv); dir != "" {
		os.Exit(asDocket(dir))
	}
	os.Exit(m.Run())
}

// asDocket is main with failpoints.
func asDocket(dir string) int {
	c := &controls{dir: dir}
	_, err := os.Stat(filepath.Join(dir, "no-wakeups"))
	every, _ := os.ReadFile(filepath.Join(dir, "recover"))
	recoverEvery, noRecovery := time.ParseDuration(string(every))
	if noRecovery != nil {
		recoverEvery = -1 // so that no commit comes between those that a test counts
	}
	a := &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now,
		failpoints: failpoints{
			commit:    c.commit,
			pass:      c.pass,
			noWakeups: err == nil, recoverEvery: recoverEvery,
		},
	}
	return untilSignal(func(ctx context.Context) int { return a.run(ctx, os.Args[1:]) })
}

// controls is what a test has asked of its docket.
type controls struct {
	dir string

	mu   sync.Mutex
	kill counter
	fail counter
}

// counter counts since its file last changed.
type counter struct {
	text string
	n    int
}

// next counts one more and returns the file's text; "" where there is none.
func (c *counter) next(path string, counts func(text string) bool) string {
	b, err := os.ReadFile(path)
	if err != nil {
		*c = counter{}
		return ""
	}
	if text := string(b); text != c.text {
		*c = counter{text: text}
	}
	if counts(c.text) {
		c.n++
	}
	return c.text
}

func (c *controls) commit(point string) error {
	c.pass(point)
	if point != store.FailBeforeCommit {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	every, err := strconv.Atoi(c.fail.next(filepath.Join(c.dir, "fail"), func(string) bool { return true }))
	if err == nil && c.fail.n%every == 0 {
		return errors.New("a test let this commit fail")
	}
	return nil
}

// pass kills the process if a test wants it at this point.
func (c *controls) pass(point string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.kill.next(filepath.Join(c.dir, "kill"), func(text string) bool { return strings.HasPrefix(text, point+" ") })
	if text != "" && text == point+" "+strconv.Itoa(c.kill.n) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
