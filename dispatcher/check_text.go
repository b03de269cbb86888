package dispatcher

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// Bounds of what a check run shows. GitHub takes 65,535 characters of summary
// and 50 annotations at once.
const (
	maxCheckTitle  = 250
	maxCheckReason = 2000 // characters
	maxCheckSteps  = 100  // rows
	maxStepName    = 60   // characters
	maxAnnotations = 50
)

// checkSummary says in Markdown how a run went: its reason, and its steps once
// it has ended. Nothing in it is taken for Markdown that comes from outside.
func checkSummary(p ci.StatusPayload, run ci.Run) string {
	var b strings.Builder
	b.WriteString(markdown(p.Description, maxCheckReason))
	if !p.RunState.Final() {
		return b.String()
	}
	if run.Reason != "" && !strings.Contains(p.Description, run.Reason) {
		b.WriteString("\n\n" + quoted(run.Reason))
	}
	if len(run.Steps) == 0 {
		return b.String()
	}
	b.WriteString("\n\n| step | result | time |\n| --- | --- | --- |\n")
	for i, s := range run.Steps {
		if i == maxCheckSteps {
			fmt.Fprintf(&b, "\nand %d more steps\n", len(run.Steps)-i)
			break
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", markdown(s.Name, maxStepName), stepResult(s), stepTime(s))
	}
	return b.String()
}

func stepResult(s ci.StepResult) string {
	text := string(s.State)
	if s.ExitCode != nil && *s.ExitCode != 0 {
		text += ", exit code " + strconv.Itoa(*s.ExitCode)
	}
	return text
}

func stepTime(s ci.StepResult) string {
	if s.StartedAt.IsZero() || s.FinishedAt.IsZero() {
		return ""
	}
	return s.FinishedAt.Sub(s.StartedAt.Time).Round(100 * time.Millisecond).String()
}

// markdown makes a text of at most n characters plain in Markdown: no link, no
// mention, no HTML and no table's edge survives.
func markdown(s string, n int) string {
	var b strings.Builder
	for _, r := range shorten(s, n) {
		switch {
		case strings.ContainsRune("\\`*_{}[]()#+-.!|~>$:", r):
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '<':
			b.WriteString("&lt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@':
			b.WriteString("&#64;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// quoted shows a reason; one of several lines, which shows a file's, keeps
// them: in Markdown a line that begins with four blanks is as it is.
func quoted(reason string) string {
	if !strings.Contains(reason, "\n") {
		return markdown(reason, maxCheckReason)
	}
	var b strings.Builder
	left := maxCheckReason
	for line := range strings.Lines(reason) {
		line = shorten(strings.TrimRight(line, "\n"), left)
		b.WriteString("    " + line + "\n")
		if left -= utf8.RuneCountInString(line) + 1; left < 2 {
			b.WriteString("    …\n")
			break
		}
	}
	return b.String()
}

// annotations points at the lines of the pipeline file that a reason names as
// FILE:LINE:COLUMN: TEXT.
func annotations(reason, file string) (list []*github.CheckRunAnnotation) {
	if file == "" {
		return nil
	}
	for line := range strings.Lines(reason) {
		_, rest, ok := strings.Cut(line, file+":")
		if !ok {
			continue
		}
		parts := strings.SplitN(rest, ":", 3)
		if len(parts) < 3 {
			continue
		}
		at, err := strconv.Atoi(parts[0])
		text := shorten(strings.TrimSpace(parts[2]), maxCheckReason)
		if err != nil || at < 1 || text == "" {
			continue
		}
		list = append(list, &github.CheckRunAnnotation{
			Path: &file, StartLine: &at, EndLine: &at, AnnotationLevel: github.String("failure"), Message: &text,
		})
		if len(list) == maxAnnotations {
			break
		}
	}
	return list
}
