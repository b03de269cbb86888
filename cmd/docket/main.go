// Command docket takes webhooks and requests, writes each one down before it
// says yes, runs the work at an exact commit, and tells how it went.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(untilSignal(func(ctx context.Context) int {
		return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	}))
}

// untilSignal calls fn with a context that the first SIGINT or SIGTERM ends. A
// second one does not wait for fn: it ends the process, as if nobody caught it.
func untilSignal(fn func(context.Context) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	caught := make(chan os.Signal, 2) // both, however close together
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(caught)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-caught:
			cancel()
		case <-done:
			return
		}
		select {
		case sig := <-caught:
			signal.Reset(sig)
			_ = syscall.Kill(os.Getpid(), sig.(syscall.Signal))
		case <-done:
		}
	}()
	return fn(ctx)
}
