package web

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// WindowLines is how many lines of a step a page shows unless it is asked for
// more, and how many a stream sends at once.
const WindowLines = 2000

// PreparationStep is the index of what docket itself says before the first
// step, and PreparationName what it is called.
const (
	PreparationStep = -1
	PreparationName = "preparation"
)

// LogWindow says which lines of one step a URL asks for: ?step=NAME&from=N for
// WindowLines from a line on, ?step=NAME&all=1 for all of them. The other
// steps, and those of the zero LogWindow, show their last WindowLines.
type LogWindow struct {
	Step string // name
	From int    // 1 or more; 0 is the end
	All  bool
}

// LogStep is what a page shows of one step's log.
type LogStep struct {
	Index int
	Name  string
	// Slug is the step's name as the address of its lines has it: #test-120.
	Slug string
	// Lines are those shown, with gaps neither between nor in them.
	Lines []LogLine
	// Total is how many lines have ended.
	Total int
	// Partial is the line that has not ended, nil for none, or if the window
	// ends before it.
	Partial *LogLine
}

// LogCollector gathers the chunks of a run's log, in order, for its page or
// its stream. It belongs to one goroutine.
type LogCollector struct {
	window LogWindow
	steps  map[int]*stepLog
}

// stepLog is one step's lines, drawn only once it is known which are shown.
type stepLog struct {
	r     LogRenderer
	lines []rawLine // a ring of size WindowLines, unless all are kept
	start int       // of the ring
	told  bool      // Take has told of all there is
}

// NewLogCollector begins a run's log.
func NewLogCollector(w LogWindow) *LogCollector {
	return &LogCollector{window: w, steps: map[int]*stepLog{}}
}

// Write adds a chunk of a step's output; see LogRenderer.Write.
func (c *LogCollector) Write(step int, name string, at time.Time, notice bool, chunk []byte) {
	s := c.steps[step]
	if s == nil {
		s = &stepLog{}
		c.steps[step] = s
	}
	from, limit := 0, WindowLines
	if name == c.window.Step {
		from = c.window.From
		if c.window.All {
			from, limit = 1, int(^uint(0)>>1)
		}
	}
	s.told = false
	s.r.read(at, notice, chunk, func(r *rawLine) {
		if r.n < from || from > 0 && len(s.lines) >= limit {
			return
		}
		k := *r
		k.text, k.marks = slices.Clone(r.text), slices.Clone(r.marks)
		if len(s.lines) < limit {
			s.lines = append(s.lines, k)
			return
		}
		s.lines[s.start] = k
		s.start = (s.start + 1) % limit
	})
}

// Steps returns what the page shows, of those steps that have printed anything
// or are named. names are the run's steps in order.
func (c *LogCollector) Steps(names []string) []LogStep {
	var list []LogStep
	slugs := Slugs(names)
	for i := PreparationStep; i < len(names); i++ {
		s := c.steps[i]
		if s == nil {
			if i == PreparationStep {
				continue
			}
			s = &stepLog{}
		}
		list = append(list, s.step(i, names, slugs))
	}
	return list
}

// Take returns what has come since the last Take, of each step at most its
// last WindowLines; a step of which nothing came is left out.
func (c *LogCollector) Take(names []string) []LogStep {
	var list []LogStep
	slugs := Slugs(names)
	for i := PreparationStep; i < len(names); i++ {
		if s := c.steps[i]; s != nil && !s.told {
			list = append(list, s.step(i, names, slugs))
			s.lines, s.start, s.told = s.lines[:0], 0, true
		}
	}
	return list
}

func (s *stepLog) step(i int, names, slugs []string) LogStep {
	ls := LogStep{Index: i, Name: PreparationName, Slug: slugs[i+1], Total: s.r.Lines(), Lines: make([]LogLine, 0, len(s.lines))}
	if i >= 0 {
		ls.Name = names[i]
	}
	for k := range s.lines {
		ls.Lines = append(ls.Lines, s.lines[(s.start+k)%len(s.lines)].line())
	}
	if p, ok := s.r.Partial(); ok && (len(ls.Lines) == 0 || ls.Lines[len(ls.Lines)-1].N == ls.Total) {
		ls.Partial = &p
	}
	return ls
}

// Slugs returns the addresses of the preparation and of the steps, in order:
// the names where they can stand in a URL as they are. No two are alike.
func Slugs(names []string) []string {
	list := make([]string, 0, len(names)+1)
	for _, name := range append([]string{PreparationName}, names...) {
		s := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
				return r
			}
			return '_'
		}, name)
		u := s
		for n := 2; u == "" || slices.Contains(list, u); n++ {
			u = s + "~" + strconv.Itoa(n)
		}
		list = append(list, u)
	}
	return list
}
