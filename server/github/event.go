package github

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"docket/server/payload"
	"docket/store/ci"
)

// Parse reads what a delivery says: event is the header's word, text the
// JSON that Payload returned.
//
// JSON that is not the event's shape is no error: the Event then has a
// Problem, and whatever else could be read. Errors are CodeMalformed: the
// payload is not JSON, or an id in it (of the repository or the installation)
// is not a positive integer. An id that is null counts as absent.
func Parse(event string, text []byte) (ci.Event, error) {
	if !utf8.Valid(text) {
		return ci.Event{}, provider().NotUTF8()
	}
	p := body{event: event}
	r := provider().Reader(string(text))
	p.read(&r)
	r.End()
	switch {
	case r.Err != nil:
		return ci.Event{}, ci.Wrap(ci.CodeMalformed, r.Err, "the payload is not well-formed JSON; GitHub sends one JSON object, and the content type has to match the body")
	case p.repository.id.Bad:
		return ci.Event{}, payload.Malformed("the payload's repository.id is not a positive integer; GitHub's always is")
	case p.installation.Bad:
		return ci.Event{}, payload.Malformed("the payload's installation.id is not a positive integer; GitHub's always is")
	}
	e := ci.Event{
		Kind:         event,
		Action:       strings.Clone(payload.Clip(p.action, ci.MaxHeaderValue)),
		Actor:        strings.Clone(payload.Clip(p.sender, maxActor)),
		Repository:   p.repository.named(),
		Installation: p.installation.N,
		Problem:      r.Wrong,
	}
	if e.Actor == "" {
		e.Actor = strings.Clone(payload.Clip(p.pusher, maxActor))
	}
	switch event {
	case ci.EventPush:
		p.push(&e)
	case ci.EventPullRequest:
		p.pullRequest(&e)
	case ci.EventMergeGroup:
		p.mergeGroup(&e)
	case ci.EventCreate, ci.EventDelete:
		p.refNamed(&e)
	case ci.EventCheckRun, ci.EventCheckSuite:
		p.checks(&e)
	case ci.EventRelease:
		p.released(&e)
	case ci.EventRepositoryDispatch:
		p.dispatched(&e)
	case ci.EventRepository:
		p.repositoryChanged(&e)
	case ci.EventInstallation, ci.EventInstallationRepos:
		e.Repositories = p.repositories
		if e.Installation == 0 {
			problem(&e, "the delivery is labelled %s, but its payload names no installation", event)
		}
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
		problem(e, "the payload names the repository %q without its id", payload.Clip(e.Repository.FullName, 200))
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
