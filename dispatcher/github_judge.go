package dispatcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"docket/dispatcher/forge"
	"docket/store/ci"
)

// unknownCommitFor is how long a commit that GitHub does not know yet is
// waited for: its webhooks can be ahead of its API.
const unknownCommitFor = 5 * time.Minute

// judgeGitHub says what an answer to a status means.
//
//	2xx                            sent
//	429, 403 with a rate limit     again; the whole integration waits as told
//	5xx                            again, with backoff; as told where it tells
//	422, no such commit            again for 5 minutes after the first attempt, then dead
//	401 of an App's                again, with backoff: a new token can be too new
//	3xx, 401, other 403, 404, 422  dead, with what to do
func judgeGitHub(e ci.OutboxEntry, a answer, in *ci.Integration, repository string, now time.Time) Result {
	if a.ok() {
		return Result{Outcome: Sent}
	}
	api, text := host(in.APIURL), githubText(a)
	a.body = []byte(text)
	said := a.said(in.Token.Reveal())
	if r := limited(e, a, api, said, now); r != nil {
		return *r
	}
	dead := func(format string, args ...any) Result {
		return Result{Outcome: Dead, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case a.status >= 500:
		return Result{Outcome: Retry, Detail: api + " answered " + said}
	case a.redirect():
		return dead("%s redirected to %s (%d), which docket never follows; check api_url of the integration %s, and whether %s was renamed", api, a.pointedTo(true), a.status, in.Name, repository)
	case a.status == http.StatusUnauthorized && in.App != nil:
		return Result{Outcome: Retry, Detail: fmt.Sprintf("%s does not accept a new token of the App of the integration %s (%s)", api, in.Name, said)}
	case a.status == http.StatusForbidden && in.App != nil:
		return dead("%s forbids it on %s; the App of the integration %s needs the permission to write commit statuses and checks there, and its installation must not be suspended (%s)", api, repository, in.Name, said)
	case a.status == http.StatusNotFound && in.App != nil:
		return dead("%s knows no repository %s that the installation of the App of the integration %s may see (%s)", api, repository, in.Name, said)
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

// limited is what becomes of an entry whose answer is a rate limit, or nil.
func limited(e ci.OutboxEntry, a answer, api, said string, now time.Time) *Result {
	// GitHub asks for at least a minute, and longer each time.
	silent := func() time.Duration { return nextDelay(e.Failures+1, 0) }
	wait, ok := forge.LimitWait(a.status, a.header, a.body, now, silent)
	if !ok {
		return nil
	}
	return &Result{Outcome: Retry, Hold: true, RetryAt: now.Add(wait), Detail: fmt.Sprintf("the rate limit of %s holds the integration %s: %s", api, e.Receiver(), said)}
}

// refusedWith is the status with which GitHub refused to sign in; 0 for none.
func refusedWith(err error) int {
	var refused *forge.AnswerError
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// judgeSignIn says what becomes of an entry for which GitHub was not called,
// or did not answer.
//
//	no answer, 5xx, this machine's clock  again, with backoff
//	a rate limit                          again; the installation waits as told
//	everything else                       dead, with what to do
func judgeSignIn(e ci.OutboxEntry, err error, at place, now time.Time) Result {
	var clock *forge.ClockError
	var refused *forge.AnswerError
	var own *ci.Error
	api := host(at.in.APIURL)
	switch {
	case err == nil:
		return silence(errors.New("no answer"), api)
	case errors.As(err, &clock):
		return Result{Outcome: Retry, Detail: clock.Error()}
	case errors.As(err, &own) && own.Code == ci.CodeUnavailable:
		return Result{Outcome: Retry, Detail: own.Message}
	case errors.As(err, &own):
		return Result{Outcome: Dead, Detail: own.Message}
	case !errors.As(err, &refused):
		return silence(err, api, at.in.Token.Reveal())
	}
	a := answer{status: refused.Status, header: refused.Header, body: refused.Body}
	a.body = []byte(githubText(a))
	said := a.said()
	if r := limited(e, a, api, said, now); r != nil {
		return *r
	}
	dead := func(format string, args ...any) Result {
		return Result{Outcome: Dead, Detail: fmt.Sprintf(format, args...)}
	}
	app := fmt.Sprintf("the App %d of the integration %s", at.in.App.ID, at.in.Name)
	switch a.status {
	case http.StatusUnauthorized:
		return dead("%s does not accept %s; check its id and the key in %s, reload, and retry this entry (%s)", api, app, at.in.App.PrivateKey.Name, said)
	case http.StatusForbidden:
		return dead("%s lets %s do nothing there; its installation is suspended or not its own (%s)", api, app, said)
	case http.StatusNotFound:
		return dead("%s knows no installation of %s for %s; it was removed (%s)", api, app, at.name, said)
	case http.StatusUnprocessableEntity:
		return dead("%s gives %s no token for what is to be written; grant it the permission on the App's page, accept that for the installation, and retry this entry (%s)", api, app, said)
	}
	if a.status >= 500 {
		return Result{Outcome: Retry, Detail: api + " gives no token: " + said}
	}
	return dead("%s gives no token: %s", api, said)
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
