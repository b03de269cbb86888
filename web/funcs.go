package web

import (
	"fmt"
	"html"
	"html/template"
	"net/url"
	"strings"
	"time"

	"docket/store/ci"
)

// funcs is what templates can call beside the methods of their page.
func (r *Renderer) funcs() template.FuncMap {
	return template.FuncMap{
		"asset":        r.AssetPath,
		"nowattr":      nowAttr,
		"ago":          ago,
		"clock":        clock,
		"took":         took,
		"either":       either,
		"bytes":        bytesText,
		"count":        countText,
		"short":        short,
		"words":        words,
		"article":      article,
		"causewords":   causeWords,
		"entrywords":   entryWords,
		"attempts":     attempts,
		"note":         note,
		"refname":      refName,
		"todo":         todo,
		"runpath":      runPath,
		"projectpath":  projectPath,
		"receiptpath":  receiptPath,
		"deliverypath": deliveryPath,
		"strip":        strip,
		"chart":        chart,
		"lines":        linesHTML,
	}
}

// machine is how a time stands in a datetime attribute, human in a title.
func machine(t time.Time) string { return t.UTC().Format(ci.TimeLayout) }
func human(t time.Time) string   { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// nowAttr is the server's time for the browser, whose clock may be wrong.
func nowAttr(now time.Time) string {
	if now.IsZero() {
		return ""
	}
	return machine(now)
}

// ago shows a time by its age, which the browser keeps up to date.
func ago(t ci.Time, now time.Time) template.HTML {
	if t.IsZero() {
		return ""
	}
	text, live := human(t.Time), ""
	if !now.IsZero() {
		text, live = ageText(t.Time, now), " data-ago"
	}
	return template.HTML(`<time datetime="` + machine(t.Time) + `" title="` + human(t.Time) + `"` + live + `>` + text + `</time>`)
}

// clock shows a time to the second; its day is in the title.
func clock(t ci.Time) template.HTML {
	if t.IsZero() {
		return ""
	}
	return template.HTML(`<time datetime="` + machine(t.Time) + `" title="` + human(t.Time) + `">` + t.UTC().Format("15:04:05") + `</time>`)
}

// took shows how long something took; while it goes on, the browser counts.
func took(from, to ci.Time, now time.Time) template.HTML {
	if from.IsZero() {
		return ""
	}
	text := durationText(duration(from, to, now))
	if to.IsZero() {
		return template.HTML(`<span class="ticking" data-since="` + machine(from.Time) + `">` + text + `</span>`)
	}
	return template.HTML(html.EscapeString(text))
}

func either(a, b ci.Time) ci.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// words says a state or a kind in the words that people read.
func words(v any) string {
	switch s := fmt.Sprint(v); s {
	case string(ci.OutboxPending): // as a step's
		return "waiting"
	case string(ci.OutboxDead):
		return "given up"
	case string(ci.Held):
		return "waits for approval"
	default:
		return strings.ReplaceAll(s, "_", " ")
	}
}

func article(r ci.Role) string {
	if s := string(r); s != "" && strings.ContainsRune("aeiou", rune(s[0])) {
		return "an " + s
	}
	return "a " + string(r)
}

func causeWords(kind, event string) string {
	switch kind {
	case ci.CauseDelivery:
		return strings.ReplaceAll(event, "_", " ")
	case ci.CauseRequest:
		return "started by hand"
	case ci.CauseRecovery:
		return "head that no delivery told of"
	case "":
		return ""
	}
	return strings.ReplaceAll(kind, "_", " ")
}

func entryWords(kind, event string) string {
	switch kind {
	case ci.OutboxGitHubStatus, ci.OutboxGiteaStatus:
		kind = "commit status"
	case ci.OutboxGitHubCheck:
		kind = "check run"
	case ci.OutboxSlack:
		kind = "Slack"
	}
	if event == "" {
		return kind
	}
	return kind + " " + event
}

func attempts(n int) string {
	if n == 0 {
		return "not tried yet"
	}
	return counted(n, "attempt", "attempts")
}

// note is the one thing more to know about a run in a list.
func note(r RunRow) string {
	switch {
	case r.SupersededBy != "":
		return "gave way to " + r.SupersededBy
	case r.Step != "" && r.State == ci.Running:
		return "at " + r.Step
	}
	return r.Reason
}

func refName(ref string) string {
	for _, p := range []string{"refs/heads/", "refs/tags/", "refs/"} {
		if s, ok := strings.CutPrefix(ref, p); ok {
			return s
		}
	}
	return ref
}

func todo(done bool) string {
	if done {
		return "done"
	}
	return "todo"
}

func runPath(id string) string       { return "/runs/" + url.PathEscape(id) }
func projectPath(name string) string { return "/projects/" + url.PathEscape(name) }

// receiptPath returns a delivery's path from its id, "" for one that is none.
func receiptPath(id string) string {
	r, err := ci.ParseReceiptID(id)
	if err != nil {
		return ""
	}
	return DeliveryPath(r)
}

func deliveryPath(r ci.Receipt) string {
	return DeliveryPath(ci.ReceiptID{Integration: r.Integration, Installation: r.Installation, Delivery: r.Delivery})
}

// fact is a name and its value.
type fact struct {
	Name, Value string
	Mono        bool
}

type runList struct {
	Rows []RunRow
	Now  time.Time
}

type headList struct {
	Heads []Head
	Now   time.Time
}

type decisionList struct {
	List []ci.Decision
	Now  time.Time
}

// tabs makes links that set one query parameter.
func tabs(path, param, current string, texts ...[2]string) []link {
	list := make([]link, 0, len(texts))
	for _, t := range texts {
		l := link{Text: t[1], Href: path, Current: t[0] == current}
		if t[0] != "" {
			l.Href += "?" + url.Values{param: {t[0]}}.Encode()
		}
		list = append(list, l)
	}
	return list
}
