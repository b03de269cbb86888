package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"docket/store/ci"
)

// Gitea puts commit statuses on Gitea and Forgejo. Its words for them are
// GitHub's; the bounds on descriptions and contexts too, so that one run reads
// the same wherever its repository lies.
//
// See judgeGitea for what becomes of each answer.
type Gitea struct {
	Client *http.Client
	Config func() *ci.Config
	// Repository returns owner/name as the repository is called now, or why
	// no status may be put there. See currentRepository.
	Repository func(e ci.OutboxEntry, p ci.StatusPayload) (name, refused string, err error)
	Now        func() time.Time
	Agent      string
}

// giteaStatus is the body of Gitea's POST /repos/{owner}/{repo}/statuses/{sha}.
type giteaStatus struct {
	State       string `json:"state"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
	Context     string `json:"context"`
}

// Send implements Adapter.
func (g *Gitea) Send(ctx context.Context, e ci.OutboxEntry) Result {
	var p ci.StatusPayload
	if err := json.Unmarshal(e.Payload, &p); err != nil || !ci.IsCommit(p.Commit) {
		return Result{Outcome: Dead, Detail: "the entry's payload cannot be read; discard it"}
	}
	in, missing := reporting(g.Config(), e, p)
	if missing == "" && in.Provider != ci.ProviderGitea {
		missing = fmt.Sprintf("the integration %s is no Gitea or Forgejo any more, so it is not told", in.Name)
	}
	if missing != "" {
		return Result{Outcome: Dead, Detail: missing}
	}
	name, refused, err := g.Repository(e, p)
	if err != nil {
		return Result{Outcome: Retry, Detail: "the repository's present name cannot be read from the store"}
	}
	if refused != "" {
		return Result{Outcome: Dead, Detail: refused}
	}
	owner, repo, ok := splitRepository(name)
	if !ok {
		return Result{Outcome: Dead, Detail: fmt.Sprintf("%s is not an owner/name that a status can be put on", excerpt(strconv.Quote(name)))}
	}
	address := strings.TrimSuffix(in.APIURL, "/") + "/repos/" + owner + "/" + repo + "/statuses/" + p.Commit
	a, err := post(ctx, g.Client, address, g.header(in), g.body(p))
	if err != nil {
		return silence(err, host(in.APIURL), in.Token.Reveal())
	}
	return judgeGitea(e, a, in, name, p.Commit, g.Now()).to(a.status)
}

func (g *Gitea) header(in *ci.Integration) http.Header {
	h := http.Header{}
	h.Set("Authorization", "token "+in.Token.Reveal())
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
	h.Set("User-Agent", g.Agent)
	return h
}

func (g *Gitea) body(p ci.StatusPayload) []byte {
	s := giteaStatus{State: p.State, Description: shorten(p.Description, maxDescription), Context: shorten(p.Context, maxContext)}
	if target := optional(p.TargetURL); target != nil {
		s.TargetURL = *target
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // it holds only strings
	}
	return b
}
