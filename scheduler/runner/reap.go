package runner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"docket/store/ci"
)

// Reap ends what is left of a run whose server is gone, and with the server
// perhaps the supervisor. It looks for the recorded process, if that is still
// the same one on the same boot, and for every process that was started with
// this attempt's HOME or TMPDIR; each with all its descendants. It returns
// how many it ended, and only once none is left.
//
// Never touched: a process that merely got the recorded PID, and this one.
func (r *Runner) Reap(ctx context.Context, run ci.Run) (killed int, err error) {
	w, err := r.workspace(run)
	if err != nil {
		return 0, err
	}
	if killed, err = r.reapDir(ctx, w.dir, run.Internal.Process); err != nil {
		return killed, fmt.Errorf("end the processes of %s: %w", run.ID, err)
	}
	return killed, nil
}

// reapDir ends the recorded process, if any, and all that belong to a
// workspace, until none is left or ctx is done.
func (r *Runner) reapDir(ctx context.Context, dir string, recorded *ci.Process) (int, error) {
	killed := map[process]bool{}
	for {
		left := r.leftovers(dir, recorded)
		if len(left) == 0 {
			return len(killed), nil
		}
		// Descendants come after their ancestors: from the end on, nobody is
		// orphaned before it is dead.
		for i := len(left) - 1; i >= 0; i-- {
			if left[i].send(syscall.SIGKILL) {
				killed[process{pid: left[i].pid, start: left[i].start}] = true
			}
		}
		select {
		case <-ctx.Done():
			return len(killed), ctx.Err()
		case <-time.After(settle):
		}
	}
}

// leftovers returns the living processes that belong to a workspace.
func (r *Runner) leftovers(dir string, recorded *ci.Process) []process {
	all := processes()
	self := os.Getpid()
	var found []process
	seen := map[int]bool{self: true}
	add := func(p process) {
		if !seen[p.pid] && !p.dead() {
			seen[p.pid] = true
			found = append(found, p)
		}
	}
	for _, p := range all {
		if p.pid == self || !r.isRecorded(p, recorded) && !belongs(p, dir) {
			continue
		}
		add(p)
		for _, d := range descendants(all, p.pid) {
			add(d)
		}
	}
	return found
}

// isRecorded reports whether p is the very process that was recorded.
func (r *Runner) isRecorded(p process, recorded *ci.Process) bool {
	return recorded != nil && recorded.Machine == r.machine && recorded.PID == p.pid && recorded.Start == p.start
}

// belongs reports whether a process was started for a workspace: by its
// environment, or, where a step had emptied that, because nobody's child
// works inside the workspace.
func belongs(p process, dir string) bool {
	for _, v := range p.environ("HOME", "TMPDIR") {
		if strings.HasPrefix(v, dir+"/") {
			return true
		}
	}
	return p.ppid == 1 && strings.HasPrefix(p.cwd()+"/", dir+"/")
}
