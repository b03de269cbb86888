package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"docket/scheduler"
	"docket/scheduler/recovery"
	"docket/store"
	"docket/store/ci"
)

// hub is a provider that a test scripts. A redelivery arrives in the store as
// the real one would over the network, unless its door is shut.
type hub struct {
	t     *testing.T
	store *store.Store

	mu       sync.Mutex
	off      bool // the webhook is switched off
	attempts []recovery.Delivery
	answer   int            // to redeliveries: 202 takes them, anything else does not
	asked    map[string]int // GUID -> how often
	heads    []ci.Head
	messages map[string]string
	repoID   int64
	fail     func(call string) error
	listed   int // how often deliveries were listed
	silent   bool
	reached  chan struct{} // closed when a silent one is asked
}

func newHub(t *testing.T, s *store.Store) *hub {
	return &hub{t: t, store: s, answer: 202, asked: map[string]int{}, messages: map[string]string{}, repoID: 7}
}

func (h *hub) failing(call string) error {
	if h.fail == nil {
		return nil
	}
	return h.fail(call)
}

func (h *hub) Hook(_ context.Context, p ci.Project, publicURL string) (ci.Hook, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if publicURL != "https://ci.example.org" {
		h.t.Errorf("asked for the webhook of %q", publicURL)
	}
	return ci.Hook{Repository: p.Repository, ID: 99}, !h.off, h.failing("hook")
}

func (h *hub) Deliveries(ctx context.Context, _ string, _ ci.Hook, since time.Time, limit int) ([]recovery.Delivery, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed++
	if h.silent {
		close(h.reached)
		h.mu.Unlock()
		<-ctx.Done()
		h.mu.Lock()
		return nil, ctx.Err()
	}
	var list []recovery.Delivery
	for _, d := range slices.Backward(h.attempts) {
		if !d.DeliveredAt.Before(since) && len(list) < limit {
			list = append(list, d)
		}
	}
	return list, h.failing("deliveries")
}

func (h *hub) Redeliver(_ context.Context, _ string, _ ci.Hook, id int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.failing("redeliver"); err != nil {
		return err
	}
	i := slices.IndexFunc(h.attempts, func(d recovery.Delivery) bool { return d.ID == id })
	if i < 0 {
		return ci.Errorf(ci.CodeNotFound, "there is no delivery %d any more", id)
	}
	d := h.attempts[i]
	h.asked[d.GUID]++
	d.ID, d.Redelivery, d.StatusCode, d.DeliveredAt = int64(len(h.attempts)+1), true, h.answer, time.Now()
	h.attempts = append(h.attempts, d)
	if h.answer == 202 {
		h.deliver(d.GUID)
	}
	return nil
}

// deliver brings a delivery in.
func (h *hub) deliver(guid string) {
	h.t.Helper()
	var n int
	fmt.Sscanf(guid, "guid-%d", &n)
	e := ci.Event{Kind: "push", Ref: "refs/heads/main", Branch: "main", Commit: commit(n), Before: commit(n - 1), Repository: ci.Repository{ID: 7, FullName: "acme/api"}}
	_, err := h.store.Accept(context.Background(), store.Acceptance{
		Delivery: ci.Delivery{Integration: "github", ID: guid, Event: "push", Body: []byte(guid), ReceivedAt: time.Now()},
		Event:    e, Projects: []string{"api"},
		Drafts: []ci.Draft{{
			Project: "api", Integration: "github", State: ci.Queued, Spec: ci.Spec{Version: 1, CloneURL: "/nowhere", Steps: []ci.Step{{Name: "test", Run: "true"}}},
			Cause:  ci.Cause{Kind: ci.CauseDelivery, Receipt: "github/-/" + guid, Event: "push"},
			Source: ci.Source{Repository: "acme/api", Ref: e.Ref, Branch: "main", Commit: e.Commit, Before: e.Before},
		}},
	})
	if err != nil {
		h.t.Error(err)
	}
}

// fails notes an attempt that did not get through.
func (h *hub) fails(n, status int, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts = append(h.attempts, recovery.Delivery{
		ID: int64(len(h.attempts) + 1), GUID: fmt.Sprintf("guid-%d", n), Event: "push", StatusCode: status, DeliveredAt: at, Repository: 7,
	})
}

func (h *hub) Repository(_ context.Context, p ci.Project) (ci.Repository, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return ci.Repository{ID: h.repoID, FullName: p.Repository}, h.failing("repository")
}

func (h *hub) Heads(context.Context, ci.Project) ([]ci.Head, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heads), h.failing("heads")
}

func (h *hub) Message(_ context.Context, _ ci.Project, commit string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.messages[commit], nil
}

func (h *hub) set(change func(*hub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func (h *hub) times(guid string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[guid]
}

// stepping is a clock that a test moves ahead.
type stepping struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *stepping) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *stepping) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// recovering opens a scheduler over a store that asks a hub; every round is
// made by the test, through the returned function.
func recovering(t *testing.T, s *store.Store, b *hub, change func(*ci.Config)) (h *house, c *stepping, round func() ci.Recovery) {
	t.Helper()
	c = &stepping{}
	h = open(t, s, func(o *scheduler.Options, cfg *ci.Config) {
		o.Provider, o.Now = b, c.now
		cfg.PublicURL = "https://ci.example.org"
		cfg.Integrations = []ci.Integration{{Name: "github", Provider: ci.ProviderGitHub, Token: ci.NewSecret("t", "x"), RecoverEvery: 5 * time.Minute}}
		cfg.Projects = []ci.Project{{
			Name: "api", Integration: "github", Repository: "acme/api", RepositoryID: 7, DefaultBranch: "main", CloneURL: "/nowhere", Supersede: ci.SupersedeNone,
			Steps: []ci.Step{{Name: "test", Run: "true"}}, On: ci.On{Push: &ci.OnPush{Branches: []string{"**"}, Tags: []string{"v*"}}, PullRequest: &ci.OnPullRequest{}},
		}}
		if change != nil {
			change(cfg)
		}
	})
	poll(t, "the first round is made", func() bool {
		r, err := s.Recovery("github")
		return err == nil && !r.ComparedAt.IsZero()
	})
	return h, c, func() ci.Recovery {
		t.Helper()
		r := h.sched.CompareNow(context.Background(), "github")
		return r
	}
}
