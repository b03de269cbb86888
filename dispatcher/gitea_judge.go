package dispatcher

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"docket/dispatcher/forge"
	"docket/store/ci"
)

// judgeGitea says what an answer to a status means.
//
//	2xx                             sent
//	429, 403 with a rate limit      again; the whole integration waits as told
//	5xx                             again, with backoff; as told where it tells
//	404 or 500, no such commit      again for 5 minutes after the first attempt, then dead
//	3xx, 401, other 403 and 404, 4xx  dead, with what to do
//
// Gitea limits no calls by itself, but a proxy before it does. For a commit
// that it does not know it has a 404 that names it, in older versions a 500
// which says more to administrators than to others.
func judgeGitea(e ci.OutboxEntry, a answer, in *ci.Integration, repository, commit string, now time.Time) Result {
	if a.ok() {
		return Result{Outcome: Sent}
	}
	api, text := host(in.APIURL), giteaText(a)
	a.body = []byte(text)
	said := a.said(in.Token.Reveal())
	silent := func() time.Duration { return nextDelay(e.Failures+1, 0) }
	if wait, limited := forge.LimitWait(a.status, a.header, a.body, now, silent); limited {
		return Result{Outcome: Retry, Hold: true, RetryAt: now.Add(wait), Detail: fmt.Sprintf("%s asks the integration %s to wait: %s", api, in.Name, said)}
	}
	dead := func(format string, args ...any) Result {
		return Result{Outcome: Dead, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case noSuchCommit(a.status, text, commit):
		return unknownCommit(e, fmt.Sprintf("%s does not know the commit in %s (%s)", api, repository, said), now)
	case a.status >= 500:
		return Result{Outcome: Retry, Detail: api + " answered " + said}
	case a.redirect():
		return dead("%s redirected to %s (%d), which docket never follows; check api_url of the integration %s, and whether %s was renamed", api, a.pointedTo(true), a.status, in.Name, repository)
	case a.status == http.StatusUnauthorized:
		return dead("%s does not accept the token of the integration %s; look at %s, put a valid one there, reload, and retry this entry (%s)", api, in.Name, in.Token.Name, said)
	case a.status == http.StatusForbidden:
		return dead("%s forbids a status on %s; the token in %s needs the scope write:repository, and its user the right to write there (%s)", api, repository, in.Token.Name, said)
	case a.status == http.StatusNotFound:
		return dead("%s knows no repository %s that the token in %s may see; check that api_url ends in /api/v1/ (%s)", api, repository, in.Token.Name, said)
	case a.status == http.StatusLocked:
		return dead("%s takes no status on %s, which is archived (%s)", api, repository, said)
	}
	return dead("%s answered %s", api, said)
}

// noSuchCommit reports whether an answer says that the commit is not known.
func noSuchCommit(status int, text, commit string) bool {
	switch status {
	case http.StatusNotFound:
		return strings.Contains(text, commit)
	case http.StatusInternalServerError:
		return strings.Contains(text, "object does not exist")
	}
	return false
}

// giteaText returns the message of an answer and the errors in it; the whole
// body where it is not Gitea's JSON.
func giteaText(a answer) string {
	var said struct {
		Message *string  `json:"message"`
		Errors  []string `json:"errors"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.Message == nil {
		return string(a.body)
	}
	return strings.Join(append([]string{*said.Message}, said.Errors...), "; ")
}
