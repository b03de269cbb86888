package tracer

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"docket/store/ci"
)

const (
	maxBatch = 512              // spans of one request
	maxTries = 10               // of one request: some three minutes
	maxRetry = 30 * time.Second // the longest wait between two of them
)

// sendAll sends spans until all are made and none are left, or until work
// ends. The end of ctx ends waiting.
func (t *Tracer) sendAll(ctx, work context.Context, made <-chan struct{}) {
	for {
		batch := t.gather(ctx, made)
		if len(batch) == 0 {
			return
		}
		t.send(ctx, work, batch)
	}
}

// gather waits for spans, and a moment for more of them. It returns none once
// all are made and taken.
func (t *Tracer) gather(ctx context.Context, made <-chan struct{}) (batch []sdk.ReadOnlySpan) {
	select {
	case s := <-t.spans:
		batch = append(batch, s)
	case <-made:
		return t.take(nil)
	}
	linger := time.NewTimer(t.linger)
	defer linger.Stop()
	for len(batch) < maxBatch {
		select {
		case s := <-t.spans:
			batch = append(batch, s)
		case <-linger.C:
			return batch
		case <-ctx.Done():
			return t.take(batch)
		}
	}
	return batch
}

// take adds what is there to a batch.
func (t *Tracer) take(batch []sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	for len(batch) < maxBatch {
		select {
		case s := <-t.spans:
			batch = append(batch, s)
		default:
			return batch
		}
	}
	return batch
}

// send sends a batch, again and again where that may help. What it gives up is
// counted. Once ctx has ended one try has to do.
func (t *Tracer) send(ctx, work context.Context, batch []sdk.ReadOnlySpan) {
	n := uint64(len(batch))
	wait := t.retry
	for try := 1; ; try++ {
		cfg := t.config().Traces
		if cfg == nil { // switched off since
			return
		}
		err := t.export(work, cfg, batch)
		if err == nil {
			return
		}
		var r *refusal
		if !errors.As(err, &r) {
			r = &refusal{says: "the collector cannot be reached: " + err.Error()}
		}
		t.fails(r.says)
		switch {
		case ctx.Err() != nil:
			t.dropped.shutdown.Add(n)
			return
		case r.final || try == maxTries:
			t.dropped.refused.Add(n)
			return
		}
		pause(ctx, min(max(wait, r.wait), maxRetry))
		wait *= 2
	}
}

// export makes one request.
func (t *Tracer) export(work context.Context, cfg *ci.Traces, batch []sdk.ReadOnlySpan) error {
	var rejected int64
	exporter, err := otlptrace.New(work, upload{t.client, cfg, &rejected})
	if err != nil {
		return err
	}
	if err := exporter.ExportSpans(work, batch); err != nil {
		return err
	}
	lost := min(uint64(max(rejected, 0)), uint64(len(batch)))
	t.exported.Add(uint64(len(batch)) - lost)
	t.dropped.refused.Add(lost)
	t.lastExport.Store(t.now().UnixMilli())
	if was := t.problem.Swap(nil); was != nil {
		t.log.Info("spans are sent again", keyDropped, t.Stats().Dropped)
	}
	return nil
}

// fails notes why a request failed, and logs it where that is new.
func (t *Tracer) fails(why string) {
	t.failures.Add(1)
	if was := t.problem.Swap(&why); was == nil || *was != why {
		t.log.Warn("spans cannot be sent; docket works on without", keyReason, why)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
