package dispatcher

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"docket/store/ci"
)

// Bounds on what GitHub's rate limits make docket wait, see
// https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
const (
	minLimitWait    = time.Second
	maxLimitWait    = time.Hour // a primary limit is reset hourly
	silentLimitWait = time.Minute

	// unknownCommitFor is how long a commit that GitHub does not know yet is
	// waited for: its webhooks can be ahead of its API.
	unknownCommitFor = 5 * time.Minute
)

// judgeGitHub says what an answer to a status means.
//
//	2xx                            sent
//	429, 403 with a rate limit     again; the whole integration waits as told
//	5xx                            again, with backoff; as told where it tells
//	422, no such commit            again for 5 minutes after the first attempt, then dead
//	3xx, 401, other 403, 404, 422  dead, with what to do
func judgeGitHub(e ci.OutboxEntry, a answer, in *ci.Integration, repository string, now time.Time) Result {
	if a.ok() {
		return Result{Outcome: Sent}
	}
	api, text := host(in.APIURL), githubText(a)
	a.body = []byte(text)
	said := a.said(in.Token.Reveal())
	if wait, limited := limitWait(a, e.Failures+1, now); limited {
		return Result{Outcome: Retry, Hold: true, RetryAt: now.Add(wait), Detail: fmt.Sprintf("the rate limit of %s holds the integration %s: %s", api, in.Name, said)}
	}
	dead := func(format string, args ...any) Result {
		return Result{Outcome: Dead, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case a.status >= 500:
		return Result{Outcome: Retry, Detail: api + " answered " + said}
	case a.redirect():
		return dead("%s redirected to %s (%d), which docket never follows; check api_url of the integration %s, and whether %s was renamed", api, a.pointedTo(true), a.status, in.Name, repository)
	case a.status == http.StatusUnauthorized:
		return dead("%s does not accept the token of the integration %s; look at %s, put a valid one there, reload, and retry this entry (%s)", api, in.Name, in.Token.Name, said)
	case a.status == http.StatusForbidden:
		return dead("%s forbids a status on %s; the token in %s needs write access to commit statuses (%s)", api, repository, in.Token.Name, said)
	case a.status == http.StatusNotFound:
		return dead("%s knows no repository %s that the token in %s may see (%s)", api, repository, in.Token.Name, said)
	case a.status == http.StatusUnprocessableEntity && strings.Contains(text, "No commit found"):
		return unknownCommit(e, fmt.Sprintf("%s does not know the commit in %s (%s)", api, repository, said), now)
	case a.status == http.StatusUnprocessableEntity && strings.Contains(text, "maximum number of statuses"):
		return dead("%s takes no more than 1000 statuses for one commit and context, and this commit has them (%s)", api, said)
	}
	return dead("%s answered %s", api, said)
}

func unknownCommit(e ci.OutboxEntry, detail string, now time.Time) Result {
	first := e.FirstAttemptAt.Time
	if first.IsZero() {
		first = now
	}
	end := first.Add(unknownCommitFor)
	if !now.Before(end) {
		return Result{Outcome: Dead, Detail: "gave up after 5 minutes: " + detail}
	}
	r := Result{Outcome: Retry, Detail: detail}
	if now.Add(nextDelay(e.Failures+1, 1)).After(end) {
		r.RetryAt = end // the last try
	}
	return r
}

// limitWait reports whether an answer is a rate limit, primary or secondary,
// or another request to come back later, and how long to wait then.
func limitWait(a answer, attempt int, now time.Time) (time.Duration, bool) {
	told, ok := retryAfter(a.header, now)
	empty := a.header.Get("X-Ratelimit-Remaining") == "0"
	switch {
	case a.status >= 500:
		return clamp(told, minLimitWait, maxLimitWait), ok
	case a.status == http.StatusTooManyRequests:
	case a.status == http.StatusForbidden && (ok || empty || mentionsLimit(a.body)):
	default:
		return 0, false
	}
	if ok {
		return clamp(told, minLimitWait, maxLimitWait), true
	}
	if reset, err := strconv.ParseInt(a.header.Get("X-Ratelimit-Reset"), 10, 64); empty && err == nil && reset > 0 {
		// Against the answer's own Date, so that a clock that is off does not matter.
		return clamp(time.Duration(min(reset-sentAt(a.header, now).Unix(), 1e9))*time.Second, minLimitWait, maxLimitWait), true
	}
	// GitHub asks for at least a minute, and longer each time.
	return clamp(nextDelay(attempt, 0), silentLimitWait, maxLimitWait), true
}

func mentionsLimit(body []byte) bool {
	s := strings.ToLower(string(body))
	return strings.Contains(s, "rate limit") || strings.Contains(s, "rate-limit") || strings.Contains(s, "abuse detection")
}

// githubText returns the message of an answer and of the errors in it; the
// whole body where it is not GitHub's JSON.
func githubText(a answer) string {
	var said struct {
		Message string            `json:"message"`
		Errors  []json.RawMessage `json:"errors"`
		Docs    string            `json:"documentation_url"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.Message == "" {
		return string(a.body)
	}
	parts := []string{said.Message}
	for _, raw := range said.Errors {
		var one struct{ Message, Field, Code string }
		var text string
		switch {
		case json.Unmarshal(raw, &text) == nil:
		case json.Unmarshal(raw, &one) == nil && one.Message != "":
			text = one.Message
		default:
			text = strings.TrimSpace(one.Field + " " + one.Code)
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	if strings.Contains(said.Docs, "rate-limit") {
		parts = append(parts, said.Docs)
	}
	return strings.Join(parts, "; ")
}
