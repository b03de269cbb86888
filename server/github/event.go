package github

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"docket/store/ci"
)

// Parse reads what a delivery says: event is the header's word, payload the
// JSON text that Payload returned.
//
// JSON that is not the event's shape is no error: the Event then has a
// Problem, and whatever else could be read. Errors are CodeMalformed: the
// payload is not JSON, or an id in it (of the repository or the installation)
// is not a positive integer. An id that is null counts as absent.
func Parse(event string, payload []byte) (ci.Event, error) {
	if !utf8.Valid(payload) {
		return ci.Event{}, malformed("the payload is not valid UTF-8; JSON is UTF-8, as GitHub sends it")
	}
	var p body
	r := reader{text: string(payload)}
	p.read(&r)
	r.end()
	switch {
	case r.err != nil:
		return ci.Event{}, ci.Wrap(ci.CodeMalformed, r.err, "the payload is not well-formed JSON; GitHub sends one JSON object, and the content type has to match the body")
	case p.repository.id.bad:
		return ci.Event{}, malformed("the payload's repository.id is not a positive integer; GitHub's always is")
	case p.installation.bad:
		return ci.Event{}, malformed("the payload's installation.id is not a positive integer; GitHub's always is")
	}
	e := ci.Event{
		Kind:         event,
		Action:       strings.Clone(clip(p.action, ci.MaxHeaderValue)),
		Actor:        strings.Clone(clip(p.sender, maxActor)),
		Repository:   p.repository.named(),
		Installation: p.installation.n,
		Problem:      r.wrong,
	}
	if e.Actor == "" {
		e.Actor = strings.Clone(clip(p.pusher, maxActor))
	}
	switch event {
	case ci.EventPush:
		p.push(&e)
	case ci.EventPullRequest:
		p.pullRequest(&e)
	}
	return e, nil
}

// maxActor bounds a login, in bytes. GitHub's have at most 39.
const maxActor = 200

// needRepository sets a Problem where the event has no repository to be about.
func needRepository(e *ci.Event) {
	switch {
	case e.Repository.ID > 0:
	case e.Repository.FullName != "":
		problem(e, "the payload names the repository %q without its id", clip(e.Repository.FullName, 200))
	default:
		problem(e, "the payload names no repository")
	}
}

// problem keeps the first problem of an event.
func problem(e *ci.Event, format string, args ...any) {
	if e.Problem == "" {
		e.Problem = fmt.Sprintf(format, args...)
	}
}

// firstLine returns s up to its first line break.
func firstLine(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	return strings.Clone(s)
}
