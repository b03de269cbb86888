package forge_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"docket/dispatcher/forge"
	"docket/dispatcher/forge/forgetest"
	"docket/store/ci"
)

const address = "https://ci.example.org/hooks/github"

// target takes deliveries.
type target struct {
	URL   string
	mu    sync.Mutex
	guids []string
	down  bool
}

func newTarget(t *testing.T) *target {
	t.Helper()
	tg := &target{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		tg.mu.Lock()
		defer tg.mu.Unlock()
		tg.guids = append(tg.guids, r.Header.Get("X-GitHub-Delivery"))
		if tg.down {
			w.WriteHeader(503)
		}
	}))
	t.Cleanup(srv.Close)
	tg.URL = srv.URL
	return tg
}

func (tg *target) got() int {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	return len(tg.guids)
}

func (tg *target) setDown(down bool) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	tg.down = down
}

func TestTheHookWithDocketsAddressIsFound(t *testing.T) {
	const public = "https://ci.example.org"
	r := newRig(t)
	if _, err := r.Hook(t.Context(), r.project(), public); ci.CodeOf(err) != ci.CodeNotFound {
		t.Errorf("there is none: %v", err)
	}
	r.hub.AddHook(forgetest.Hook{Repository: "acme/api", URL: "https://other.example.org/hooks/github"})
	off := r.hub.AddHook(forgetest.Hook{Repository: "acme/api", URL: "https://CI.example.org/hooks/github/"})
	r.hub.SwitchHook(off, false)
	h, err := r.Hook(t.Context(), r.project(), public)
	if err != nil || h.App || h.ID != off || h.Active {
		t.Errorf("switched off: %+v, %v", h, err)
	}
	on := r.hub.AddHook(forgetest.Hook{Repository: "acme/api", URL: address, Target: newTarget(t).URL})
	r.hub.Deliver(on, "push", []byte(`{}`))
	h, err = r.Hook(t.Context(), r.project(), public)
	if err != nil || h.ID != on || !h.Active || h.LastStatus != "active" || h.LastCode != 200 {
		t.Errorf("an active one: %+v, %v", h, err)
	}
	r.hub.SetAppHook(forgetest.Hook{URL: address})
	if h, err = r.Hook(t.Context(), r.project(), public); err != nil || !h.App {
		t.Errorf("the App's: %+v, %v", h, err)
	}
}

// Ensure that no more is asked for than each call needs: with a permission to
// read, reading goes on.
func TestAHookIsReadWithThePermissionToRead(t *testing.T) {
	r, to := newRig(t), newTarget(t)
	r.hub.Permit(forgetest.Installation, map[string]string{"repository_hooks": "read"})
	id := r.hub.AddHook(forgetest.Hook{Repository: "acme/api", URL: address, Target: to.URL})
	hook, err := r.Hook(t.Context(), r.project(), "https://ci.example.org")
	if err != nil || hook.ID != id {
		t.Fatalf("%+v, %v", hook, err)
	}
	a := r.hub.Deliver(id, "push", []byte(`{}`))
	if list, err := r.Deliveries(t.Context(), "github", hook, time.Time{}, 0); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := r.Redeliver(t.Context(), "github", hook, a.ID); err == nil {
		t.Error("delivered again without the permission")
	}
}

func TestDeliveriesAreListedNewestFirst(t *testing.T) {
	for name, app := range map[string]bool{"the App's": true, "a repository's": false} {
		t.Run(name, func(t *testing.T) {
			r, to := newRig(t), newTarget(t)
			hook := forge.Hook{App: true}
			if app {
				r.hub.SetAppHook(forgetest.Hook{URL: address, Target: to.URL})
			} else {
				hook = forge.Hook{Repository: "acme/api", ID: r.hub.AddHook(forgetest.Hook{Repository: "acme/api", URL: address, Target: to.URL})}
			}
			payload := []byte(`{"action": "opened", "installation": {"id": 12345}, "repository": {"id": 7}}`)
			var last forgetest.Attempt
			for range 203 {
				last = r.hub.Deliver(hook.ID, "pull_request", payload)
			}
			list, err := r.Deliveries(t.Context(), "github", hook, time.Time{}, 0)
			if err != nil || len(list) != 203 {
				t.Fatalf("%d, %v", len(list), err)
			}
			d := list[0]
			if d.ID != last.ID || d.GUID != last.GUID || d.Event != "pull_request" || d.Action != "opened" || d.Status != "OK" ||
				d.StatusCode != 200 || d.Installation != 12345 || d.Repository != 7 || d.DeliveredAt.IsZero() {
				t.Errorf("%+v", d)
			}
			seen := map[int64]bool{}
			for _, d := range list {
				seen[d.ID] = true
			}
			if len(seen) != 203 {
				t.Errorf("%d different ones", len(seen))
			}
			if list, err = r.Deliveries(t.Context(), "github", hook, time.Time{}, 150); err != nil || len(list) != 150 {
				t.Errorf("%d of 150, %v", len(list), err)
			}
			r.hub.Skew(time.Hour)
			newer := r.hub.Deliver(hook.ID, "push", []byte(`{}`))
			r.hub.Skew(0)
			list, err = r.Deliveries(t.Context(), "github", hook, time.Now().Add(30*time.Minute), 0)
			if err != nil || len(list) != 1 || list[0].ID != newer.ID {
				t.Errorf("since a time: %+v, %v", list, err)
			}
		})
	}
}

// Ensure that what failed is delivered again under the GUID that it had.
func TestAFailedDeliveryIsDeliveredAgain(t *testing.T) {
	r, to := newRig(t), newTarget(t)
	r.hub.SetAppHook(forgetest.Hook{URL: address, Target: to.URL})
	hook := forge.Hook{App: true}
	to.setDown(true)
	r.hub.Deliver(0, "push", []byte(`{}`))
	list, err := r.Deliveries(t.Context(), "github", hook, time.Time{}, 0)
	if err != nil || len(list) != 1 || list[0].StatusCode != 503 || list[0].Status == "OK" {
		t.Fatalf("%+v, %v", list, err)
	}
	to.setDown(false)
	if err := r.Redeliver(t.Context(), "github", hook, list[0].ID); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); to.got() < 2 || len(r.hub.Attempts(0)) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not delivered again: %d arrived, attempts %+v", to.got(), r.hub.Attempts(0))
		}
	}
	again, err := r.Deliveries(t.Context(), "github", hook, time.Time{}, 1)
	if err != nil || again[0].GUID != list[0].GUID || !again[0].Redelivery || again[0].Status != "OK" {
		t.Errorf("%+v, %v", again, err)
	}
	if err := r.Redeliver(t.Context(), "github", hook, 5); ci.CodeOf(err) != ci.CodeNotFound {
		t.Errorf("an unknown one: %v", err)
	}
}

// Ensure that each shape of a limit tells until when.
func TestALimitTellsUntilWhen(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct {
		answer forgetest.Answer
		wait   time.Duration
	}{
		"primary":               {r.hub.PrimaryLimit(90 * time.Second), 90 * time.Second},
		"secondary with a time": {forgetest.SecondaryLimit(40 * time.Second), 40 * time.Second},
		"secondary in silence":  {forgetest.SecondaryLimit(0), time.Minute},
		"429":                   {forgetest.TooMany(5 * time.Second), 5 * time.Second},
	} {
		r.hub.Script("GET /app/hook/deliveries", c.answer)
		began := time.Now()
		_, err := r.Deliveries(t.Context(), "github", forge.Hook{App: true}, time.Time{}, 0)
		var limit *forge.LimitError
		if !errors.As(err, &limit) {
			t.Fatalf("%s: %v", name, err)
		}
		if got := limit.Until.Sub(began); (got - c.wait).Abs() > 3*time.Second {
			t.Errorf("%s: %s, want %s", name, got, c.wait)
		}
		r.hub.Script("POST /app/installations/", c.answer)
		if _, err := r.Heads(t.Context(), r.project()); !errors.As(err, &limit) {
			t.Errorf("%s, of the token: %v", name, err)
		}
	}
	r.hub.Script("GET /app/hook/deliveries", forgetest.Message(500, "oops"))
	if _, err := r.Deliveries(t.Context(), "github", forge.Hook{App: true}, time.Time{}, 0); ci.CodeOf(err) != ci.CodeUnavailable {
		t.Errorf("%v", err)
	}
	r.off.Store(int64(3 * time.Minute))
	var clock *forge.ClockError
	if _, err := r.Deliveries(t.Context(), "github", forge.Hook{App: true}, time.Time{}, 0); !errors.As(err, &clock) {
		t.Errorf("%v", err)
	}
}

func TestHeadsAreListed(t *testing.T) {
	r := newRig(t)
	sha := func(n int) string { return fmt.Sprintf("%040x", n+1) }
	for i := range 130 {
		r.hub.SetBranch("acme/api", fmt.Sprintf("b/%d", i), sha(i))
		r.hub.SetTag("acme/api", fmt.Sprintf("v%d", i), sha(i))
	}
	for i := range 101 {
		r.hub.SetPull("acme/api", forgetest.Pull{Number: i + 1, Base: "main", Head: "topic", Commit: sha(i)})
	}
	r.hub.SetPull("acme/api", forgetest.Pull{
		Number: 200, Title: "Change it", Base: "main", Head: "topic", Commit: sha(9), HeadRepository: "octo/api", HeadID: 77,
		Author: "octo", Draft: true, Labels: []string{"bug"},
	})
	r.hub.SetPull("acme/api", forgetest.Pull{Number: 201, Base: "main", Head: "gone", Commit: sha(9), HeadRepository: "octo/api"})
	list, err := r.Heads(t.Context(), r.project())
	if err != nil || len(list) != 130+130+103 {
		t.Fatalf("%d, %v", len(list), err)
	}
	by := map[string]forge.Head{}
	for _, h := range list {
		by[h.Ref] = h
	}
	if h := by["refs/heads/b/129"]; h.Commit != sha(129) {
		t.Errorf("%+v", h)
	}
	if h := by["refs/tags/v129"]; h.Commit != sha(129) {
		t.Errorf("%+v", h)
	}
	if p := by["refs/pull/1/head"].PullRequest; p == nil || p.Fork || p.HeadRepo.ID != 7 || p.Base != "main" {
		t.Errorf("%+v", p)
	}
	h := by["refs/pull/200/head"]
	if p := h.PullRequest; p == nil || !p.Fork || p.HeadRepo != (ci.Repository{ID: 77, FullName: "octo/api"}) || !p.Draft ||
		len(p.Labels) != 1 || p.Title != "Change it" || p.Head != "topic" || h.Actor != "octo" || h.Commit != sha(9) {
		t.Errorf("%+v %+v", h, p)
	}
	if p := by["refs/pull/201/head"].PullRequest; p == nil || !p.Fork || p.HeadRepo.ID != 0 {
		t.Errorf("a deleted fork: %+v", p)
	}
	if _, err := r.Heads(t.Context(), ci.Project{Integration: "github", Repository: "acme/none"}); ci.CodeOf(err) != ci.CodeNotFound {
		t.Errorf("%v", err)
	}
}
