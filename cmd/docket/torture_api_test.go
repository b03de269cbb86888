//go:build torture

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"docket/store"
	"docket/store/ci"
)

// get reads something from the API.
func (w *tortureWorld) get(ctx context.Context, path string, v any) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/api/v1"+path, nil)
	if err != nil {
		w.fatal("%v", err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	resp, err := w.server.client.Do(req)
	if err != nil {
		w.fatal("GET %s: %v", path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		w.fatal("GET %s: %s", path, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		w.fatal("GET %s: %v", path, err)
	}
}

// tortureList reads all pages of a listing of the API.
func tortureList[T any](ctx context.Context, w *tortureWorld, noun, query string) (all []T) {
	w.t.Helper()
	for cursor := ""; ; {
		var page map[string]json.RawMessage
		w.get(ctx, "/"+noun+"?limit=200&"+query+"&cursor="+url.QueryEscape(cursor), &page)
		name := noun
		if noun == "outbox" {
			name = "entries"
		}
		var list []T
		if err := json.Unmarshal(page[name], &list); err != nil {
			w.fatal("GET %s: %v", noun, err)
		}
		if err := json.Unmarshal(page["next_cursor"], &cursor); err != nil {
			w.fatal("GET %s: %v", noun, err)
		}
		if all = append(all, list...); cursor == "" {
			return all
		}
	}
}

// awaitSettled waits until no run is unfinished and no notification pending.
func (w *tortureWorld) awaitSettled(ctx context.Context) {
	w.t.Helper()
	w.progress(ctx, "every run has ended and all of it was told", func() (bool, string) {
		unfinished := 0
		for _, state := range ci.States {
			if !state.Final() {
				unfinished += len(tortureList[ci.Run](ctx, w, "runs", "state="+string(state)))
			}
		}
		pending := tortureList[ci.OutboxEntry](ctx, w, "outbox", "state=pending")
		acted, refused := w.outside.counts()
		return unfinished+len(pending) == 0, fmt.Sprintf("%d unfinished runs, %d pending notifications%s (%d arrived, %d were refused)",
			unfinished, len(pending), tortureWaiting(pending), acted, refused)
	})
}

// tortureWaiting describes a few notifications that are left. While all of
// them wait for their time the description changes: that is no standstill.
func tortureWaiting(pending []ci.OutboxEntry) string {
	if len(pending) > 5 {
		return ""
	}
	var text strings.Builder
	for _, e := range pending {
		fmt.Fprintf(&text, "; %s of %s, tried %d times, next at %s: %s", e.ID, e.Run, e.Attempts, e.NextAttemptAt.Format(ci.TimeLayout), e.LastError)
		if wait := time.Until(e.NextAttemptAt.Time); wait > 0 {
			fmt.Fprintf(&text, ", in %s", wait.Round(10*time.Second))
		}
	}
	return text.String()
}

// askAgain delivers and asks everything once more: nothing new may come of
// any of it.
func (w *tortureWorld) askAgain(ctx context.Context, book *tortureBook) {
	var asking sync.WaitGroup
	for part := range tortureSenders {
		s := &tortureSender{w: w, book: book, rng: w.rng(uint64(100 + part)), client: w.client()}
		asking.Go(func() {
			for i := part; i < len(book.deliveries); i += tortureSenders {
				s.deliver(ctx, book.deliveries[i])
			}
			for i := part; i < len(book.requests); i += tortureSenders {
				q := book.requests[i]
				if q.run == "" {
					continue // refused: it would be a new one
				}
				if r, ok := s.api(ctx, q); ok {
					q.answered(book, r)
				}
			}
		})
	}
	asking.Wait()
}

// tortureSeen is what the API shows.
type tortureSeen struct {
	runs     []ci.Run
	receipts []ci.Receipt
	entries  []ci.OutboxEntry
}

func (w *tortureWorld) seenByAPI(ctx context.Context) tortureSeen {
	w.t.Helper()
	return tortureSeen{
		runs:     tortureList[ci.Run](ctx, w, "runs", ""),
		receipts: tortureList[ci.Receipt](ctx, w, "receipts", ""),
		entries:  tortureList[ci.OutboxEntry](ctx, w, "outbox", ""),
	}
}

// tortureAll reads all pages of a listing of the store.
func tortureAll[T any](w *tortureWorld, list func(store.Page) ([]T, string, error)) (all []T) {
	w.t.Helper()
	for cursor := ""; ; {
		page, next, err := list(store.Page{Limit: store.MaxLimit, Cursor: cursor})
		if err != nil {
			w.fatal("%v", err)
		}
		if all, cursor = append(all, page...), next; cursor == "" {
			slices.Reverse(all) // oldest first
			return all
		}
	}
}
