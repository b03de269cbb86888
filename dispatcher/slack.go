package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"docket/store/ci"
)

// Slack posts to an incoming webhook. Its address is the secret, so no error
// shows it.
//
// Slack knows no idempotency: what is ambiguous, a time-out after the request
// left, is posted again, and each message carries the run's and the entry's id
// so that a reader sees the repeat. 429 and 5xx are tried again, Retry-After
// holds the target; every other refusal is dead, also one under status 200.
type Slack struct {
	Client *http.Client
	Config func() *ci.Config
	Now    func() time.Time
	Agent  string
}

// Send implements Adapter.
func (s *Slack) Send(ctx context.Context, e ci.OutboxEntry) Result {
	n, missing := configured(s.Config(), e)
	if missing != "" {
		return Result{Outcome: Dead, Detail: missing}
	}
	var p ci.NotificationPayload
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		return Result{Outcome: Dead, Detail: "the entry's payload cannot be read; discard it"}
	}
	body, err := json.Marshal(map[string]string{"text": slackText(p, e.ID)})
	if err != nil {
		return Result{Outcome: Dead, Detail: "the entry's message cannot be written; discard it"}
	}
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", s.Agent)
	who, secrets := "Slack ("+e.Target+")", addressSecrets(n.URL)
	a, err := post(ctx, s.Client, n.URL.Reveal(), h, body)
	if err != nil {
		return silence(err, who, secrets...)
	}
	if a.ok() && slackTook(a.body) {
		return Result{Outcome: Sent}.to(a.status)
	}
	return judge(a, who, s.Now(), false, secrets...).to(a.status)
}

// slackTook reports whether a 2xx answer means yes. Slack says "ok"; what
// speaks its protocol says that, nothing, or a JSON object that says so. Any
// other text is a refusal.
func slackTook(body []byte) bool {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || bytes.EqualFold(body, []byte("ok")) {
		return true
	}
	var said struct{ OK, Success bool }
	return json.Unmarshal(body, &said) == nil && (said.OK || said.Success)
}

// addressSecrets returns what must not be shown of a secret address.
func addressSecrets(u ci.Secret) []string {
	list := []string{u.Reveal()}
	if p, err := url.Parse(u.Reveal()); err == nil && len(p.Path) > 1 {
		list = append(list, p.RequestURI(), p.Path)
	}
	return list
}

// Bounds of a message, in characters.
const (
	maxSlackText  = 3000
	maxSlackField = 120
)

// slackText renders a notification as Slack's markup, at most maxSlackText
// characters: what happened to which run, why, the way to it, and the ids.
func slackText(p ci.NotificationPayload, id string) string {
	run := p.Data
	var b strings.Builder
	b.WriteString("*" + slackEscape(run.ID, maxSlackField) + "* " + slackEscape(slackVerb(p), maxSlackField))
	if on := slackPlace(run.Source); on != "" {
		b.WriteString(" on " + slackEscape(on, maxSlackField))
	}
	if run.Source.Commit != "" {
		b.WriteString(" at " + slackEscape(ci.ShortCommit(run.Source.Commit), maxSlackField))
	}
	if run.Cause.Actor != "" {
		b.WriteString(" for " + slackEscape(run.Cause.Actor, maxSlackField))
	}
	end := "\nrun " + slackEscape(run.ID, maxSlackField) + " · message " + slackEscape(id, maxSlackField)
	if link := slackLink(run.URL); link != "" {
		end = "\n" + link + end
	}
	for _, why := range []string{run.ReasonLine(), slackTitle(run)} {
		left := maxSlackText - utf8.RuneCountInString(b.String()) - utf8.RuneCountInString(end) - 1
		if why != "" && left > 0 {
			b.WriteString("\n" + slackEscape(why, min(left, maxSlackText/2)))
		}
	}
	return b.String() + end
}

func slackVerb(p ci.NotificationPayload) string {
	switch p.Type {
	case ci.RunQueued:
		return "is queued"
	case ci.RunStarted:
		return "started"
	case ci.RunRecovered:
		return "succeeded again"
	}
	return string(p.Data.State)
}

func slackPlace(s ci.Source) string {
	switch {
	case s.PullRequest != nil && s.PullRequest.Head != "":
		return "pull request from " + s.PullRequest.Head
	case s.Branch != "":
		return s.Branch
	case s.Tag != "":
		return s.Tag
	}
	return s.Ref
}

func slackTitle(run ci.Run) string {
	if run.Source.PullRequest != nil {
		return run.Source.PullRequest.Title
	}
	return run.Internal.Title
}

// slackLink returns the run's page as a link; "" where docket has no public
// address, or one too long to be followed.
func slackLink(address string) string {
	if !strings.HasPrefix(address, "http") || len(address) > 1000 {
		return ""
	}
	address = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C").Replace(printable(address))
	return "<" + address + "|open the run>"
}

// slackEscape makes a text from outside harmless: no mention, link or channel
// call survives. The result has at most n characters and no half entity.
func slackEscape(s string, n int) string {
	entities := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	s = printable(s)
	if whole := entities.Replace(s); utf8.RuneCountInString(whole) <= n {
		return whole
	}
	var b strings.Builder
	for _, r := range s {
		t := entities.Replace(string(r))
		if n -= utf8.RuneCountInString(t); n < 1 {
			break
		}
		b.WriteString(t)
	}
	return b.String() + "…"
}
