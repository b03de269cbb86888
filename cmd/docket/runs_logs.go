package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"
)

// logFlags say which log is meant.
type logFlags struct {
	follow bool
	step   string
}

func newRunsLogs(a *app) *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "Print a run's log, or follow it",
		Long: `Print what a run's steps wrote, in order, byte for byte. Secrets show as ***. On a
terminal only colours of it are obeyed: what else would move or change the terminal shows as text.

With -f the log is followed until the run ends, across a restart of the server too;
docket's own words (fetching, notices) go to stderr then, and what is not UTF-8 shows as a
replacement character. --step @checkout is docket's own part. With -o json each piece is
one line of JSON with -f (step, offset, time, text), and the log is one object without.`,
		Example: `  docket runs logs hello-42
  docket runs logs hello-42 --step test
  docket runs logs -f hello-42`,
		Args: exactArgs("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if f.follow {
				return a.followLog(cmd.Context(), c, f.path(args[0]), f.step)
			}
			return a.printLog(cmd.Context(), c, args[0], &f)
		},
	}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "follow the log until the run ends")
	cmd.Flags().StringVar(&f.step, "step", "", "only the log of this `STEP`")
	return a.reads(cmd)
}

func (f *logFlags) path(run string) string {
	q := url.Values{}
	if f.step != "" {
		q.Set("step", f.step)
	}
	if f.follow {
		q.Set("follow", "1")
	}
	path := "/runs/" + url.PathEscape(run) + "/logs"
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}

func (a *app) printLog(ctx context.Context, c *client, run string, f *logFlags) error {
	resp, err := c.open(ctx, call{method: http.MethodGet, path: f.path(run), accept: "text/plain"})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if a.json() {
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return c.trouble(ctx, err)
		}
		return printJSON(a.out, map[string]string{"run": run, "step": f.step, "text": string(b)})
	}
	out, flush := forTerminal(a.out)
	if _, err := io.Copy(out, resp.Body); err != nil {
		return c.trouble(ctx, err)
	}
	return flush()
}

// logChunk is the data of one event of a followed log.
type logChunk struct {
	Step   string `json:"step"`
	Text   string `json:"text"`
	Notice bool   `json:"notice"` // docket's own words
}

// checkoutStep is the name of docket's own part of a log, before the first step.
const checkoutStep = "@checkout"

// How long a followed log waits for a server that went away.
const (
	followPause    = 200 * time.Millisecond
	followMaxPause = 5 * time.Second
	followPatience = 2 * time.Minute
)

// followLog prints a log until its end. When the connection breaks it goes on
// behind the last piece that arrived.
func (a *app) followLog(ctx context.Context, c *client, path, step string) (err error) {
	show := chunkPrinter{step: step, json: a.json()}
	var flushOut, flushErr func() error
	show.out, flushOut = forTerminal(a.out)
	show.err, flushErr = forTerminal(a.err)
	defer func() {
		if end := errors.Join(flushOut(), flushErr()); err == nil {
			err = end
		}
	}()
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = followPause, followMaxPause
	last, quiet := "", a.now()
	for {
		before := last
		end, err := followOnce(ctx, c, path, &show, &last)
		var no *refused
		var out *outputError
		switch {
		case err == nil && end:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &no) && no.status < 500 && no.status != http.StatusTooManyRequests, errors.As(err, &out):
			return err
		}
		if last != before {
			pause.Reset()
			quiet = a.now()
		}
		if last == "" && err != nil || a.now().Sub(quiet) > followPatience {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// outputError: stdout is gone, so there is no one to go on for.
type outputError struct{ cause error }

func (e *outputError) Error() string { return fmt.Sprintf("the output cannot be written: %v", e.cause) }

// followOnce reads one connection's events; end tells that the log is complete.
func followOnce(ctx context.Context, c *client, path string, show *chunkPrinter, last *string) (end bool, err error) {
	resp, err := c.open(ctx, call{method: http.MethodGet, path: path, accept: "text/event-stream", last: *last})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	events := newEventReader(resp.Body)
	for {
		e, err := events.next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, c.trouble(ctx, err)
		}
		if e.kind == "end" {
			return true, nil
		}
		if err := show.chunk(e.data); err != nil {
			return false, err
		}
		if e.id != "" {
			*last = e.id
		}
	}
}

// chunkPrinter prints the pieces of a followed log.
type chunkPrinter struct {
	out, err io.Writer
	step     string // that was asked for, "" for all
	json     bool
}

// chunk prints a step's bytes to stdout, and docket's own words to stderr
// unless they were asked for.
func (p *chunkPrinter) chunk(data string) error {
	var err error
	if p.json {
		_, err = fmt.Fprintln(p.out, data)
	} else {
		var chunk logChunk
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return fmt.Errorf("the server's log is not as this docket expects it; compare `docket version` on both sides: %w", err)
		}
		to := p.out
		if p.step != checkoutStep && (chunk.Notice || chunk.Step == checkoutStep) {
			to = p.err
		}
		_, err = io.WriteString(to, chunk.Text)
	}
	if err != nil {
		return &outputError{err}
	}
	return nil
}
