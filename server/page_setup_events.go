package server

import (
	"slices"

	"docket/store/ci"
)

// tick is one event of a webhook's settings page, in the provider's word, and
// whether any project needs it.
type tick struct {
	word   string
	wanted bool
}

// eventsToTick are the events that a webhook must send so that what projects
// ask for can start, in the order in which the provider lists them.
func eventsToTick(provider string, asked []ci.On) (words []string) {
	wanted := func(wants func(ci.On) bool) bool { return slices.ContainsFunc(asked, wants) }
	push := wanted(func(on ci.On) bool { return on.Push != nil })
	pull := wanted(func(on ci.On) bool { return on.PullRequest != nil })
	release := wanted(func(on ci.On) bool { return on.Release != nil })
	list := []tick{
		{"Merge groups", wanted(func(on ci.On) bool { return on.MergeGroup != nil })},
		{"Pull requests", pull},
		{"Pushes", push},
		{"Releases", release},
		{"Repository dispatches", wanted(func(on ci.On) bool { return on.Dispatch != nil })},
	}
	if provider == ci.ProviderGitea {
		list = []tick{
			{"Push", push},
			{"Delete", push}, // a branch's deletion is no push there
			{"Release", release},
			{"Pull Request", pull},
			{"Pull Request Synchronized", pull},
			{"Pull Request Labeled", wanted(func(on ci.On) bool { return on.PullRequest != nil && len(on.PullRequest.SkipLabels) > 0 })},
		}
	}
	for _, t := range list {
		if t.wanted {
			words = append(words, t.word)
		}
	}
	return words
}
