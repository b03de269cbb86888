//go:build torture

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"docket/store"
	"docket/store/ci"
)

// tortureCopies are the backups that are taken meanwhile, each looked at
// beside the lives that follow.
type tortureCopies struct {
	checking sync.WaitGroup
	one      sync.Mutex // holds whoever looks at one
	n        atomic.Int64

	whole, receipts, killedRestores atomic.Int64
}

// command is a command line of one of the binaries.
func (w *tortureWorld) command(ctx context.Context, failpoints bool, env []string, args ...string) *exec.Cmd {
	binary := w.server.binary
	if failpoints {
		binary = w.server.failpoints
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// backup is a hot backup: of the server, never of the store of a dead one.
func (w *tortureWorld) backup(ctx context.Context, failpoints bool, env ...string) (file string, cmd *exec.Cmd) {
	file = filepath.Join(w.dir, fmt.Sprintf("backup-%d.db", w.copies.n.Add(1)))
	return file, w.command(ctx, failpoints, env, "backup", "--server", w.url, "--token", w.token, file)
}

// backupMade lets the server live until a backup is made.
func (w *tortureWorld) backupMade(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	w.server.start()
	w.book.let()
	if !w.server.await(ctx) || !w.server.wait(ctx, tortureWait(rng, 300*time.Millisecond)) {
		return false, false
	}
	w.book.let()
	before := w.book.acknowledged()
	file, cmd := w.backup(ctx, false)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.fail("the backup failed under a server that lives: %v: %s", err, out)
		return false, false
	}
	chance := rand.New(rand.NewPCG(rng.Uint64(), 0))
	w.copies.checking.Go(func() { w.checkBackup(ctx, file, before, chance) })
	if !w.server.wait(ctx, tortureWait(rng, 300*time.Millisecond)) {
		return false, false
	}
	return true, w.server.kill()
}

// backupCut kills the server while a backup is made of it.
func (w *tortureWorld) backupCut(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	w.server.start()
	w.book.let()
	if !w.server.await(ctx) || !w.server.wait(ctx, tortureWait(rng, 300*time.Millisecond)) {
		return false, false
	}
	file, cmd := w.backup(ctx, false)
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	if !w.server.wait(ctx, tortureWait(rng, 150*time.Millisecond)) || !w.server.kill() {
		return false, false
	}
	if err := <-done; err != nil {
		w.checkNoBackup(file)
		return true, true
	}
	w.copies.checking.Go(func() { w.checkBackup(ctx, file, nil, nil) }) // it was quicker
	return false, true
}

// backupStruck kills the command that makes a backup before it gives it its
// name.
func (w *tortureWorld) backupStruck(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	w.server.start()
	w.book.let()
	if !w.server.await(ctx) {
		return false, false
	}
	file, cmd := w.backup(ctx, true, "DOCKET_KILL_AT="+pointBackupProved+":1")
	if out, err := cmd.CombinedOutput(); !killedItself(cmd) {
		w.fail("the backup was to be killed, and ended with %v: %s", err, out)
		return false, false
	}
	w.checkNoBackup(file)
	if left, _ := filepath.Glob(filepath.Join(w.dir, ".docket-backup-*")); len(left) > 0 {
		for _, dir := range left {
			os.RemoveAll(dir)
		}
	}
	return true, w.server.kill()
}

func (w *tortureWorld) checkNoBackup(file string) {
	if _, err := os.Lstat(file); err == nil {
		w.fail("the backup %s did not end, and is there", file)
	}
}

// killedItself reports whether a command died of SIGKILL.
func killedItself(cmd *exec.Cmd) bool {
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// compactStruck kills `docket compact` at a point, and lets the server live
// with what that leaves.
func (w *tortureWorld) compactStruck(point string) func(context.Context, *rand.Rand) (happened, ok bool) {
	return func(ctx context.Context, rng *rand.Rand) (bool, bool) {
		cmd := w.command(ctx, true, []string{"DOCKET_KILL_AT=" + point + ":1"}, "compact", "-c", w.config)
		out, err := cmd.CombinedOutput()
		happened := killedItself(cmd)
		if !happened && err != nil {
			w.fail("compact was to be killed at %q, and ended with %v: %s", point, err, out)
			return false, false
		}
		_, ok := w.byChance(ctx, rng)
		return happened, ok
	}
}

// checkBackup restores a backup into an empty directory, also with a restore
// that is killed before, and verifies that it is whole and has what was
// acknowledged before it began. Without a source of chance no restore is killed.
func (w *tortureWorld) checkBackup(ctx context.Context, file string, before []string, rng *rand.Rand) {
	w.copies.one.Lock()
	defer w.copies.one.Unlock()
	name := strings.TrimSuffix(filepath.Base(file), ".db")
	data := filepath.Join(w.dir, name+"-restored")
	config := filepath.Join(w.dir, name+".yaml")
	if err := os.WriteFile(config, []byte(strings.Replace(w.configText, "data_dir: data\n", "data_dir: "+data+"\n", 1)), 0o600); err != nil {
		w.fail("%v", err)
		return
	}
	if rng != nil {
		points := []string{store.FailCopied, store.FailVerified, store.FailSynced, store.FailRenamed}
		cmd := w.command(ctx, true, []string{"DOCKET_KILL_AT=" + points[rng.IntN(len(points))] + ":1"}, "restore", "-c", config, file)
		if out, err := cmd.CombinedOutput(); !killedItself(cmd) {
			w.fail("the restore of %s was to be killed, and ended with %v: %s", file, err, out)
			return
		}
		w.copies.killedRestores.Add(1)
	}
	path := filepath.Join(data, storeFile)
	if _, err := os.Stat(path); err != nil { // else the killed one was done
		if out, err := w.command(ctx, false, nil, "restore", "-c", config, file).CombinedOutput(); err != nil {
			w.fail("the backup %s does not restore: %v: %s", file, err, out)
			return
		}
	}
	if out, err := w.command(ctx, false, nil, "verify", "-c", config).CombinedOutput(); err != nil {
		w.fail("the restored backup %s is broken: %v: %s", file, err, out)
		return
	}
	s, err := store.Open(path, store.Options{ReadOnly: true})
	if err != nil {
		w.fail("the restored backup %s: %v", file, err)
		return
	}
	for _, id := range before {
		if _, err := s.Receipt(ci.NewReceiptID("torture", 0, id)); err != nil {
			w.fail("the backup %s lacks %s, which was acknowledged before it began: %v", file, id, err)
		}
	}
	if err := s.Close(); err != nil {
		w.fail("%v", err)
	}
	w.copies.whole.Add(1)
	w.copies.receipts.Add(int64(len(before)))
	if !w.t.Failed() {
		os.RemoveAll(data)
		os.Remove(file)
		os.Remove(config)
	}
}
