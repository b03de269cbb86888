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
// second one does not wait for fn: it ends the process.
func untilSignal(fn func(context.Context) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return fn(ctx)
}
