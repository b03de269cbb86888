package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"docket/store"
	"docket/store/ci"
)

// Ensure that each backup that is taken under load, by hand or by the server
// itself, restores to a whole store with all that was acknowledged before.
func TestBackupsUnderLoad(t *testing.T) {
	t.Parallel()
	backupsUnderLoad(t, 3)
}

func backupsUnderLoad(t *testing.T, n int) {
	repo := newRepository(t, "acme/api", 7)
	scheduled := ""
	d := newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, nil)
		scheduled = filepath.Join(d.dir, "scheduled")
		d.config["backup"] = obj{"dir": scheduled, "keep": 2}
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	var sent atomic.Int64 // every delivery below it was acknowledged
	end := make(chan struct{})
	// The load is bounded, as each backup is larger than the one before: so
	// many deliveries come while one is made.
	const each = 100
	allowed := make(chan struct{}, (n+1)*each)
	allow := func() {
		for range each {
			allowed <- struct{}{}
		}
	}
	var senders sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[int64]bool{}
	for w := range int64(4) {
		senders.Go(func() {
			for i := w; ; i += 4 {
				select {
				case <-end:
					return
				case <-allowed:
				}
				body := json.RawMessage(repo.push("refs/heads/main", "", commit))
				if a := d.deliver(delivery{event: ci.EventPush, id: fmt.Sprint("d-", i), body: body}); a.status != http.StatusAccepted {
					t.Errorf("delivery %d: %v", i, a)
					return
				}
				mu.Lock()
				acknowledged[i] = true
				for acknowledged[sent.Load()] {
					sent.Add(1)
				}
				mu.Unlock()
			}
		})
	}
	stop := sync.OnceFunc(func() { close(end); senders.Wait() })
	defer stop()
	allow()
	eventually(t, "deliveries are taken", func() bool { return sent.Load() > 20 })
	eventually(t, "the server makes a backup by itself", func() bool {
		names, _ := ownBackups(scheduled)
		return len(names) == 1
	})
	for i := range n {
		allow()
		before := sent.Load()
		backup := filepath.Join(d.dir, fmt.Sprintf("backup.%d", i))
		if r := d.output("backup", "-c", d.configPath(), backup); r.code != exitDone {
			t.Fatalf("%+v", r)
		}
		mustRestoreWhole(t, backup, before)
		if err := os.Remove(backup); err != nil {
			t.Fatal(err)
		}
	}
	names, err := ownBackups(scheduled)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	mustRestoreWhole(t, filepath.Join(scheduled, names[0]), 0)
	if text := string(d.call("GET", "/metrics", "", nil).body); !strings.Contains(text, "docket_backup_last_success_timestamp_seconds 1.") || !strings.Contains(text, "docket_backup_failing 0") {
		t.Errorf("metrics do not tell of the backups")
	}
	stop()
	d.kill() // there may be many runs: nobody waits for their end
}

// mustRestoreWhole restores a backup and checks that it is whole and has every
// delivery below one.
func mustRestoreWhole(t *testing.T, backup string, upTo int64) {
	t.Helper()
	dir := filepath.Join(shortDir(t), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, storeFile)
	if _, err := store.Restore(t.Context(), backup, path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	if broken, err := store.VerifyFile(t.Context(), path); len(broken) > 0 || err != nil {
		t.Fatalf("%q, %v", broken, err)
	}
	s := mustOpenStore(t, path)
	defer mustClose(t, s)
	for i := range upTo {
		if _, err := s.Receipt(ci.NewReceiptID("github", 0, fmt.Sprint("d-", i))); err != nil {
			t.Fatalf("the backup lacks an acknowledged delivery: %v", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
