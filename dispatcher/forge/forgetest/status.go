package forgetest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"
)

// Bounds that GitHub sets.
const (
	maxDescription = 140
	maxContext     = 255
	maxStatuses    = 1000 // of one commit and context
)

// Status is one commit status as GitHub took it.
type Status struct {
	Repository, Commit, Context, State, Description, URL string
	At                                                   time.Time // by this machine's clock
}

// Statuses returns the statuses of a commit and context, in order; "" stands
// for all.
func (g *GitHub) Statuses(commit, context string) (list []Status) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.statuses {
		if (commit == "" || s.Commit == commit) && (context == "" || s.Context == context) {
			list = append(list, s)
		}
	}
	return list
}

// FillStatuses puts n statuses on a commit, as others would.
func (g *GitHub) FillStatuses(repository_, commit, context string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for range n {
		g.statuses = append(g.statuses, Status{Repository: repository_, Commit: commit, Context: context, State: "pending", At: time.Now()})
	}
}

func (g *GitHub) createStatus(r *http.Request, _ caller, repo *repository) answer {
	var s github.RepoStatus
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		return refusal(http.StatusBadRequest, "Problems parsing JSON")
	}
	commit := r.PathValue("commit")
	context := s.GetContext()
	if context == "" {
		context = "default"
	}
	same := 0
	for _, o := range g.statuses {
		if o.Repository == repo.name && o.Commit == commit && o.Context == context {
			same++
		}
	}
	switch {
	case !repo.has(commit):
		return refusal(http.StatusUnprocessableEntity, "No commit found for SHA: %s", commit)
	case !slices.Contains([]string{"pending", "success", "failure", "error"}, s.GetState()):
		return invalid("state is not included in the list")
	case utf8.RuneCountInString(s.GetDescription()) > maxDescription:
		return invalid("description is too long (maximum is 140 characters)")
	case utf8.RuneCountInString(context) > maxContext:
		return invalid("context is too long (maximum is 255 characters)")
	case s.TargetURL != nil && !strings.HasPrefix(s.GetTargetURL(), "http://") && !strings.HasPrefix(s.GetTargetURL(), "https://"):
		return invalid("target_url must use http(s) scheme")
	case same >= maxStatuses:
		return invalid("This SHA and context has reached the maximum number of statuses.")
	}
	g.statuses = append(g.statuses, Status{repo.name, commit, context, s.GetState(), s.GetDescription(), s.GetTargetURL(), time.Now()})
	s.ID = github.Int64(g.id())
	return answer{status: http.StatusCreated, body: &s}
}
