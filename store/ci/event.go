package ci

import "strings"

// Event kinds that docket knows. Others are receipts with a reason.
const (
	EventPush               = "push"
	EventPullRequest        = "pull_request"
	EventMergeGroup         = "merge_group"
	EventCreate             = "create"
	EventDelete             = "delete"
	EventCheckRun           = "check_run"
	EventCheckSuite         = "check_suite"
	EventRelease            = "release"
	EventRepositoryDispatch = "repository_dispatch"
	EventRepository         = "repository"
	EventInstallation       = "installation"
	EventInstallationRepos  = "installation_repositories"
	EventPing               = "ping"
	EventManual             = "manual"   // a request through the API or the page
	EventSchedule           = "schedule" // a slot of a project's own schedule
)

// Event is what a delivery's payload says, read after its signature held. It
// is a claim by the provider: nothing in it is fetched or executed.
type Event struct {
	Kind   string
	Action string // "" where the event has none
	Actor  string // the provider's login of who caused it

	Repository   Repository // ID 0 where the payload names none
	Installation int64      // 0 where the payload names none

	Ref     string // full ref, refs/heads/... or refs/tags/... or refs/pull/N/head
	Branch  string // short branch name, "" for a tag
	Tag     string // short tag name
	Commit  string // lower-case hex; "" where the event names none
	Before  string // lower-case hex; "" for none or all zero
	Deleted bool   // the ref is gone
	Peel    bool   // Commit may be an annotated tag's object: it is to be peeled before it is built
	Message string // the head commit's first line, or the pull request's title

	PullRequest *PullRequest

	// Resolve: the event names a ref and no commit; what the ref points to is
	// found out later.
	Resolve bool
	// Base is the short name of the branch that a merge group would change.
	Base string
	// Changed is which files a push changed, as far as its payload says; nil
	// where it says nothing that can be relied on.
	Changed *Changed
	// Check is the check that a person asked to be run again.
	Check *Check
	// Draft: the release is not published yet, and its tag may not exist.
	Draft bool
	// Edited is what an edit of the repository changed, in words.
	Edited []string
	// RenamedFrom is what the repository was called before, owner/name.
	RenamedFrom string
	// Repositories are those that an installation event is about, owner/name.
	Repositories []string

	// PushedAt is when the provider says this happened, in Unix seconds, 0 if
	// it does not. It is a hint that keeps index keys together and decides
	// nothing.
	PushedAt int64

	// Problem says why this payload can start nothing: it is JSON, but not
	// the event's shape. "" when the shape is right.
	Problem string
}

// Repository names a repository by the provider's id and, for people, its name.
type Repository struct {
	ID       int64  `json:"id"`
	FullName string `json:"full_name"`
}

// Changed is the files that a push changed: added, modified or removed.
type Changed struct {
	Paths []string // slash-separated, from the repository's root; sorted, each once
}

// Check is a check run or suite of the provider's Checks API.
type Check struct {
	App        int64  // the GitHub App that it belongs to
	ExternalID string // what its maker called it: a run's id; "" for a suite
	Commit     string // lower-case hex
}

// PullRequest is the part of a pull request that a run needs.
type PullRequest struct {
	Number   int        `json:"number"`
	Title    string     `json:"title,omitempty"`
	Base     string     `json:"base,omitempty"`  // short name of the branch it would change
	Head     string     `json:"head,omitempty"`  // short name of the branch it comes from
	HeadRepo Repository `json:"head_repository"` // ID 0: the fork was deleted
	Fork     bool       `json:"fork"`            // true unless head and base are one repository id
	Draft    bool       `json:"draft,omitempty"`
	Labels   []string   `json:"labels,omitempty"`
	// Label is the one that a labeled or unlabeled action is about, "" where
	// the provider does not say which.
	Label string `json:"-"`
	// Rebased: an edited action that changed the base branch.
	Rebased bool `json:"-"`
	// Merged: a closed action that merged it.
	Merged bool `json:"-"`
	// Closed: it is not open any more.
	Closed bool `json:"-"`
}

// SplitRef returns the short branch or tag name of a full ref; both are ""
// for any other ref.
func SplitRef(ref string) (branch, tag string) {
	if b, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
		return b, ""
	}
	if t, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
		return "", t
	}
	return "", ""
}

// IsCommit reports whether s is a commit id: 40 or 64 lower-case hex digits,
// not all zero.
func IsCommit(s string) bool { return isHex(s) && !IsZeroCommit(s) }

// IsZeroCommit reports whether s is the all-zero id that means "no commit".
func IsZeroCommit(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0") == ""
}

func isHex(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ShortCommit returns the first seven digits, as git shows a commit.
func ShortCommit(s string) string {
	if len(s) > 7 {
		return s[:7]
	}
	return s
}
