package gitea

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"docket/server/payload"
	"docket/store/ci"
)

// Parse reads what a delivery says: event is its kind, text the JSON that
// Payload returned. Kinds keep Gitea's names; actions that GitHub has a word
// for get that.
//
// JSON that is not the event's shape is no error: the Event then has a
// Problem, and whatever else could be read. Errors are CodeMalformed: the
// payload is not JSON, or its repository's id is not a positive integer. An id
// that is null counts as absent.
func Parse(event string, text []byte) (ci.Event, error) {
	if !utf8.Valid(text) {
		return ci.Event{}, provider().NotUTF8()
	}
	var b body
	r := provider().Reader(string(text))
	b.read(&r)
	r.End()
	switch {
	case r.Err != nil:
		return ci.Event{}, ci.Wrap(ci.CodeMalformed, r.Err, "the payload is not well-formed JSON; Gitea sends one JSON object, and the content type has to match the body")
	case b.repository.id.Bad:
		return ci.Event{}, payload.Malformed("the payload's repository.id is not a positive integer; Gitea's always is")
	}
	e := ci.Event{
		Kind:       event,
		Action:     strings.Clone(payload.Clip(b.action, ci.MaxHeaderValue)),
		Actor:      b.sender.called(),
		Repository: b.repository.named(),
		PushedAt:   b.repository.updatedAt,
		Problem:    r.Wrong,
	}
	if e.Actor == "" {
		e.Actor = b.pusher.called()
	}
	switch event {
	case ci.EventPush:
		b.push(&e)
	case ci.EventCreate, ci.EventDelete:
		b.refNamed(&e)
	case ci.EventPullRequest:
		b.pullRequest(&e)
	case ci.EventRelease:
		b.released(&e)
	}
	return e, nil
}

// needRepository sets a Problem where the event has no repository to be about.
func needRepository(e *ci.Event) {
	switch {
	case e.Repository.ID > 0:
	case e.Repository.FullName != "":
		problem(e, "the payload names the repository %q without its id", payload.Clip(e.Repository.FullName, 200))
	default:
		problem(e, "the payload names no repository")
	}
}

// setRef takes a full ref over, or notes what is wrong with it.
func setRef(e *ci.Event, what, ref string) {
	if fault := ci.RefFault(ref); fault != "" {
		problem(e, "the %s %q %s", what, payload.Clip(ref, 200), fault)
		return
	}
	e.Ref = strings.Clone(ref)
	e.Branch, e.Tag = ci.SplitRef(e.Ref)
}

// setCommit takes a commit over, or notes that it is none.
func setCommit(e *ci.Event, what, commit string) {
	if !ci.IsCommit(commit) {
		problem(e, "the %s %q is not 40 or 64 lower-case hex digits", what, payload.Clip(commit, 80))
		return
	}
	e.Commit = strings.Clone(commit)
}

// problem keeps the first problem of an event.
func problem(e *ci.Event, format string, args ...any) {
	if e.Problem == "" {
		e.Problem = fmt.Sprintf(format, args...)
	}
}
