package runner

import (
	"fmt"
	"sync"
	"time"
)

// output is where all that a run says goes: masked, bounded, and never in the
// way of the run itself.
type output struct {
	rec   Recorder
	now   func() time.Time
	mask  *masker
	limit int64 // in bytes over all steps, 0 for none

	mu      sync.Mutex
	written int64
	full    bool
	lost    int64 // bytes that the recorder refused since it last took some
}

// step returns where one step's output goes.
func (o *output) step(n int) *stepOutput {
	return &stepOutput{o: o, step: n, stream: stream{m: o.mask}}
}

// notice records a line of docket's own.
func (o *output) notice(step int, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.say(step, format, args...)
}

func (o *output) say(step int, format string, args ...any) {
	text := noticePrefix + o.mask.text(fmt.Sprintf(format, args...))
	_ = o.rec.Notice(step, o.now(), text) // a notice that cannot be kept changes nothing
}

// noticePrefix begins every line of docket's own.
const noticePrefix = "[docket] "

// isFull reports whether the limit was reached: what comes is dropped.
func (o *output) isFull() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.full
}

// record keeps p up to the limit. Where the recorder refuses it, it is lost,
// and a notice says how much was, once there is room again.
func (o *output) record(step int, p []byte) {
	if len(p) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full {
		return
	}
	if o.limit > 0 && o.written+int64(len(p)) > o.limit {
		p, o.full = p[:o.limit-o.written], true
	}
	if len(p) > 0 {
		if err := o.rec.Output(step, o.now(), p); err != nil {
			o.lost += int64(len(p))
		} else {
			o.written += int64(len(p))
			if o.lost > 0 {
				o.say(step, "%d bytes of output before this could not be written and are lost", o.lost)
				o.lost = 0
			}
		}
	}
	if o.full {
		o.say(step, "the log has reached its limit of %d bytes: further output is dropped, the exit code still decides", o.limit)
	}
}

// tellLoss says at the end of a step what was lost.
func (o *output) tellLoss(step int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost > 0 {
		o.say(step, "%d bytes of output could not be written and are lost", o.lost)
		o.lost = 0
	}
}

// stepOutput is the output of one step, used by one goroutine.
type stepOutput struct {
	o      *output
	step   int
	stream stream
}

func (s *stepOutput) write(p []byte) {
	if !s.o.isFull() {
		s.o.record(s.step, s.stream.write(p))
	}
}

// flush ends the step's output.
func (s *stepOutput) flush() {
	s.o.record(s.step, s.stream.flush())
	s.o.tellLoss(s.step)
}
