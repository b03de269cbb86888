package forge_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"
	"go.uber.org/goleak"

	"docket/dispatcher/forge"
	"docket/dispatcher/forge/forgetest"
	"docket/store/ci"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const commit = "6dcb09b5b57875f334f61aebed695e2e4193db5e"

// rig is a Forge, the GitHub that it calls, and both their clocks.
type rig struct {
	*forge.Forge
	t      *testing.T
	hub    *forgetest.GitHub
	config *ci.Config
	off    atomic.Int64 // how far docket's clock is ahead of this machine's
}

// newRig configures the fake's App with its one installation.
func newRig(t *testing.T) *rig {
	t.Helper()
	hub := forgetest.New(t)
	hub.AddRepository("acme/api", 7)
	r := &rig{t: t, hub: hub}
	r.config = &ci.Config{
		Integrations: []ci.Integration{{
			Name: "github", Provider: ci.ProviderGitHub, APIURL: hub.API(), Installations: []int64{forgetest.Installation},
			App: &ci.App{ID: forgetest.AppID, PrivateKey: ci.NewSecret("/etc/docket/app.pem", hub.PrivateKey())},
		}},
		Projects: []ci.Project{{Name: "api", Integration: "github", Repository: "acme/api", CloneURL: hub.CloneURL("acme/api")}},
	}
	r.Forge = forge.New(forge.Options{
		Config: func() *ci.Config { return r.config }, Client: &http.Client{Transport: &http.Transport{}}, Version: "test",
		Now: func() time.Time { return time.Now().Add(time.Duration(r.off.Load())) },
	})
	t.Cleanup(r.Close)
	return r
}

// useToken configures a person's token in place of the App.
func (r *rig) useToken(value string) {
	r.hub.AddToken(value)
	in := &r.config.Integrations[0]
	in.App, in.Installations, in.Token = nil, nil, ci.NewSecret("/etc/docket/github.token", value)
}

// pass moves both clocks on.
func (r *rig) pass(d time.Duration) {
	r.off.Add(int64(d))
	r.hub.Skew(time.Duration(r.off.Load()))
}

func (r *rig) project() ci.Project { return r.config.Projects[0] }

// access is the one to write statuses on acme/api.
func access() forge.Access {
	return forge.Access{Integration: "github", Repository: "acme/api", Need: forge.Statuses}
}

// say puts a status on acme/api.
func (r *rig) say(a forge.Access) (*github.Response, error) {
	return r.Do(context.Background(), a, func(ctx context.Context, c *github.Client) (*github.Response, error) {
		_, resp, err := c.Repositories.CreateStatus(ctx, "acme", "api", commit, &github.RepoStatus{State: github.String("success")})
		return resp, err
	})
}

func (r *rig) mustSay(a forge.Access) {
	r.t.Helper()
	if _, err := r.say(a); err != nil {
		r.t.Fatal(err)
	}
}

// minted returns how many tokens were asked for.
func (r *rig) minted() int { return len(r.hub.Calls("POST /app/installations/")) }
