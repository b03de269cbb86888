package web

import (
	"fmt"
	"strings"

	"docket/store/ci"
)

// Live parts of recovery.
const (
	PartMissed = "missed" // heads that no run is known of
	PartGaps   = "gaps"   // times in which docket was away
)

// Recovery is how far an integration was compared with its provider, on the
// setup page.
type Recovery struct {
	ci.Recovery
	// Why says why it is not compared, "" where it is.
	Why string
	// Missed are deliveries that did not arrive, with how many more there are.
	Missed []ci.MissedDelivery
	More   int
}

// Working reports whether the last comparison could be made in full.
func (r Recovery) Working() bool { return r.Why == "" && r.Problem == "" && !r.ComparedAt.IsZero() }

// ResultText says what the last comparison found and did.
func (r Recovery) ResultText() string {
	n := r.Last
	var parts []string
	add := func(n int, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	add(n.Asked, "asked GitHub to redeliver %d")
	add(n.Arrived, "%d that were missing arrived")
	add(n.Missed-n.Asked, "%d are asked for later")
	add(n.GaveUp, "%d were given up")
	add(n.Foreign, "%d are of repositories that no project has")
	add(n.Started, "started %d runs for heads")
	add(n.NoRun, "no run is known of %d heads")
	if len(parts) == 0 {
		return "nothing was missing"
	}
	return strings.Join(parts, ", ")
}

// MissedText says what became of a delivery that did not arrive.
func (Recovery) MissedText(m ci.MissedDelivery) string {
	switch {
	case m.GaveUp != "":
		return "Not asked for any more: " + m.GaveUp
	case m.Asked == 0:
		return "Its redelivery will be asked for."
	case m.Asked == 1:
		return "Its redelivery was asked for once."
	}
	return fmt.Sprintf("Its redelivery was asked for %d times.", m.Asked)
}

// AnswerText is the answer to a delivery's newest attempt.
func (Recovery) AnswerText(m ci.MissedDelivery) string {
	if m.StatusCode == 0 {
		return m.Status
	}
	return fmt.Sprint(m.StatusCode)
}

// MissedHead is a head that no run is known of, as a line of a list.
type MissedHead struct {
	ci.MissedHead
	// Start is the form that starts its run, nil to those who may not.
	Start *RunAction
}

// Ref is the head for showing.
func (h MissedHead) Ref() RefLabel {
	branch, tag := ci.SplitRef(h.MissedHead.Ref)
	return NewRefLabel(ci.Source{Ref: h.MissedHead.Ref, Branch: branch, Tag: tag, PullRequest: h.PullRequest})
}

// Title is the pull request's, or the first line of the commit's message.
func (h MissedHead) Title() string {
	if h.PullRequest != nil {
		return h.PullRequest.Title
	}
	first, _, _ := strings.Cut(h.Message, "\n")
	return first
}

// GapRow is a time in which docket was away, as a line of a list.
type GapRow struct{ ci.Gap }

// WhenText is from when to when, in UTC.
func (g GapRow) WhenText() string {
	const day, clock = "2006-01-02 ", "15:04:05"
	from, to := g.From.UTC(), g.To.UTC()
	text := from.Format(day+clock) + " to "
	if !g.Exact {
		text = "about " + text
	}
	if from.Format(day) != to.Format(day) {
		text += to.Format(day)
	}
	return text + to.Format(clock) + " UTC"
}

// ResultText says what was missed in it and what became of that.
func (g GapRow) ResultText() string {
	switch {
	case g.ComparedAt.IsZero() && g.Missed == 0:
		return "The provider has not been asked since what was missed."
	case g.Missed == 0:
		return "No delivery was missed."
	}
	text := fmt.Sprintf("%s missed, %d of them recovered", deliveriesText(g.Missed), g.Recovered)
	if g.GaveUp > 0 {
		text += fmt.Sprintf(", %d given up", g.GaveUp)
	}
	return text + "."
}

func deliveriesText(n int) string {
	if n == 1 {
		return "1 delivery was"
	}
	return fmt.Sprintf("%d deliveries were", n)
}
