package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// writing accepts deliveries from several goroutines until stop is called;
// acknowledged returns the ids that were said yes to so far.
func writing(t *testing.T, s *store.Store) (acknowledged func() []string, stop func()) {
	t.Helper()
	var mu sync.Mutex
	var ids []string
	end := make(chan struct{})
	var wg sync.WaitGroup
	var some sync.Once
	begun := make(chan struct{})
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-end:
					return
				default:
				}
				id := fmt.Sprintf("w-%d-%d", w, i)
				if _, err := s.Accept(context.Background(), pushed(id, "api", fmt.Sprint("b", w), i, i+1)); err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				mu.Lock()
				ids = append(ids, id)
				if len(ids) > 20 {
					some.Do(func() { close(begun) })
				}
				mu.Unlock()
			}
		})
	}
	<-begun
	return func() []string {
			mu.Lock()
			defer mu.Unlock()
			return append([]string(nil), ids...)
		}, sync.OnceFunc(func() {
			close(end)
			wg.Wait()
		})
}

// Ensure that a backup taken while others write is whole, and holds all that
// was acknowledged before it began.
func TestBackup_UnderWrites(t *testing.T) {
	dir := t.TempDir()
	s := storetest.MustOpenAt(t, filepath.Join(dir, "docket.db"), store.Options{})
	acknowledged, stop := writing(t, s)
	defer stop()
	for i := range 3 {
		before := acknowledged()
		to := filepath.Join(t.TempDir(), "backup.db")
		f, err := os.Create(to)
		mustNil(t, err)
		n, err := s.Backup(t.Context(), f)
		mustNil(t, err)
		mustNil(t, f.Close())
		if st, err := os.Stat(to); err != nil || st.Size() != n {
			t.Fatalf("%d bytes were said, %v, %v", n, st.Size(), err)
		}
		b := storetest.MustOpenAt(t, to, store.Options{})
		for _, id := range before {
			if _, err := b.Receipt(ci.NewReceiptID("github", 12345, id)); err != nil {
				t.Fatalf("backup %d lacks %s: %v", i, id, err)
			}
		}
		mustPush(t, b, "goes-on", 1, 2)
		mustNil(t, b.Close())
	}
	stop()
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) != 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

// blocked is a receiver that takes nothing until it is let go.
type blocked struct {
	began chan struct{}
	once  sync.Once
	gate  chan struct{}
}

func (b *blocked) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.began) })
	<-b.gate
	return len(p), nil
}

// Ensure that a slow receiver of a backup holds nothing up, and that one who
// gives up ends it.
func TestBackup_ASlowReceiverHoldsNothingUp(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	slow := &blocked{began: make(chan struct{}), gate: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := s.Backup(ctx, slow)
		done <- err
	}()
	<-slow.began
	for i := range 5 {
		big := pushed(fmt.Sprint("big-", i), "api", "main", i, i+1)
		mustAccept(t, s, big)
	}
	cancel()
	close(slow.gate)
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
