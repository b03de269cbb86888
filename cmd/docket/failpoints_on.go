//go:build failpoints

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// What a docket that was built for tests is told by its environment.
const (
	// killAtEnv is "POINT:N": SIGKILL at the Nth passing of a point.
	killAtEnv = "DOCKET_KILL_AT"
	// keepBodiesEnv is a duration, in place of the retention of bodies.
	keepBodiesEnv = "DOCKET_KEEP_BODIES"
	// recoverEveryEnv is a duration, in place of every recover_every.
	recoverEveryEnv = "DOCKET_RECOVER_EVERY"
)

// failpointsOf returns what the environment asks for. It panics where that
// cannot be read: a test that kills nothing shows nothing.
func failpointsOf(getenv func(string) string) (f failpoints) {
	for name, d := range map[string]*time.Duration{keepBodiesEnv: &f.keepBodies, recoverEveryEnv: &f.recoverEvery} {
		text := getenv(name)
		if text == "" {
			continue
		}
		var err error
		if *d, err = time.ParseDuration(text); err != nil {
			panic(name + ": " + err.Error())
		}
	}
	text := getenv(killAtEnv)
	if text == "" {
		return f
	}
	colon := strings.LastIndexByte(text, ':')
	nth, err := strconv.ParseInt(text[colon+1:], 10, 64)
	if colon < 0 || err != nil || nth < 1 {
		panic(fmt.Sprintf("%s is %q; want POINT:N", killAtEnv, text))
	}
	var passed atomic.Int64
	f.pass = func(point string) {
		if point == text[:colon] && passed.Add(1) == nth {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	f.commit = func(point string) error {
		f.pass(point)
		return nil
	}
	return f
}
