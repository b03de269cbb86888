package dispatcher_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/dispatcher/forge/forgetest"
	"docket/store"
	"docket/store/ci"
)

// mustApp makes a house report as a GitHub App, to a GitHub that goes by the
// house's clock.
func mustApp(t *testing.T, report string) (*house, *forgetest.GitHub) {
	t.Helper()
	h, hub := mustHouse(t), forgetest.New(t)
	hub.AddRepository("acme/api", 7)
	hub.Clock(h.clock.now)
	in := &h.config.Integrations[0]
	in.APIURL, in.Token, in.Report = hub.API(), ci.Secret{}, report
	in.Installations = []int64{forgetest.Installation}
	in.App = &ci.App{ID: forgetest.AppID, PrivateKey: ci.NewSecret("/etc/docket/app.pem", hub.PrivateKey())}
	return h, hub
}

// mustStart queues a run that reports as the App does.
func (h *house) mustStart(change func(*ci.Draft)) ci.Run {
	h.t.Helper()
	h.requests++
	d := h.draft(commitOf(h.requests), true)
	d.Installation = forgetest.Installation
	if h.config.Integrations[0].Report == ci.ReportChecks {
		d.Spec.Reporter = ci.OutboxGitHubCheck
	}
	if change != nil {
		change(&d)
	}
	run, _, err := h.store.Request(h.t.Context(), store.Request{Project: "api", Key: fmt.Sprint("key", h.requests), Digest: fmt.Sprint(h.requests), Draft: d})
	if err != nil {
		h.t.Fatal(err)
	}
	return run
}

// mustClaim claims the run that is next.
func (h *house) mustClaim() ci.Run {
	h.t.Helper()
	run, ok, err := h.store.Claim(h.t.Context(), "boot", 10)
	if err != nil || !ok {
		h.t.Fatalf("claim: %v, %v", ok, err)
	}
	return run
}

func (h *house) mustFinish(run ci.Run, res store.Result) {
	h.t.Helper()
	if err := h.store.FinishRun(h.t.Context(), run.ID, run.Attempt, res); err != nil {
		h.t.Fatal(err)
	}
}

// entries are those of a run, in order.
func (h *house) entries(run string) (list []ci.OutboxEntry) {
	h.t.Helper()
	all, _, err := h.store.Entries("", store.Page{Limit: 200})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range slices.Backward(all) {
		if e.Run == run {
			list = append(list, e)
		}
	}
	return list
}

// mustSettle waits until nothing of a run is pending.
func (h *house) mustSettle(run string) []ci.OutboxEntry {
	h.t.Helper()
	var list []ci.OutboxEntry
	h.eventually("what "+run+" has to tell is not told", func() bool {
		list = h.entries(run)
		return !slices.ContainsFunc(list, func(e ci.OutboxEntry) bool { return e.State == ci.OutboxPending })
	})
	return list
}

func TestAnAppReportsStatuses(t *testing.T) {
	h, hub := mustApp(t, ci.ReportStatuses)
	h.mustRun(h.options())
	run := h.mustStart(nil)
	h.mustSettle(run.ID)
	h.mustFinish(h.mustClaim(), store.Result{State: ci.Succeeded})
	h.mustSettle(run.ID)
	list := hub.Statuses(run.Source.Commit, "docket/api")
	if n := len(list); n == 0 || list[n-1].State != "success" || list[n-1].URL != runURL(run.ID) {
		t.Fatalf("%+v", list)
	}
	if n := len(hub.Calls("POST /app/installations/")); n != 1 {
		t.Errorf("%d tokens were asked for, want 1", n)
	}
	for _, s := range append(hub.Tokens(), "BEGIN RSA") {
		if b, err := os.ReadFile(h.path); err != nil || strings.Contains(string(b), s) {
			t.Errorf("the store's file holds a secret: %v", err)
		}
	}
}

// Ensure that a commit that GitHub takes no more statuses for costs the entry
// and nothing else.
func TestTheLastStatusOfACommitIsThe1000th(t *testing.T) {
	h, hub := mustApp(t, ci.ReportStatuses)
	h.mustRun(h.options())
	run := h.mustStart(nil)
	h.mustSettle(run.ID)
	hub.FillStatuses("acme/api", run.Source.Commit, "docket/api", 998)
	run = h.mustClaim()
	h.mustSettle(run.ID)
	h.mustFinish(run, store.Result{State: ci.Succeeded})
	list := h.mustSettle(run.ID)
	e := list[len(list)-1]
	if e.State != ci.OutboxDead || e.Attempts != 1 || !strings.Contains(e.LastError, "1000") {
		t.Errorf("%+v", e)
	}
	if now, err := h.store.Run(run.ID); err != nil || now.State != ci.Succeeded {
		t.Errorf("the run is %s, %v", now.State, err)
	}
}

// Ensure that nothing is lost while GitHub gives no token, and that a clock
// that is off is what the entry says.
func TestAnEntryWaitsWhereTheAppIsNotLetIn(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(h *house, hub *forgetest.GitHub)
		mend  func(hub *forgetest.GitHub)
		want  string
		wait  time.Duration
	}{
		"the token endpoint is down": {
			spoil: func(_ *house, hub *forgetest.GitHub) {
				hub.Script("POST /app/installations/", forgetest.Message(502, "Bad gateway"))
			}, want: "502 Bad Gateway", wait: 5 * time.Second,
		},
		"the token endpoint does not answer": {
			spoil: func(_ *house, hub *forgetest.GitHub) {
				hub.Script("POST /app/installations/", forgetest.Answer{Lose: true})
			}, want: "could not be reached", wait: 5 * time.Second,
		},
		"the clock is ahead": {
			spoil: func(_ *house, hub *forgetest.GitHub) { hub.Skew(-95 * time.Second) },
			mend:  func(hub *forgetest.GitHub) { hub.Skew(0) },
			want:  "this machine's clock is 95 s ahead of GitHub's; set it by NTP", wait: 5 * time.Second,
		},
		"a limit of the token endpoint": {
			spoil: func(_ *house, hub *forgetest.GitHub) {
				hub.Script("POST /app/installations/", forgetest.TooMany(40*time.Second))
			}, want: "rate limit", wait: 40 * time.Second,
		},
		"a new token is not taken": {
			spoil: func(_ *house, hub *forgetest.GitHub) {
				hub.Script("POST /repos/", forgetest.Message(401, "Bad credentials"), forgetest.Message(401, "Bad credentials"))
			}, want: "does not accept a new token", wait: 5 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, hub := mustApp(t, ci.ReportStatuses)
			c.spoil(h, hub)
			h.mustRun(h.options())
			run := h.mustStart(nil)
			e := h.mustWait(h.mustFind(run, ci.OutboxGitHubStatus).ID, 1)
			if !strings.Contains(e.LastError, c.want) || strings.HasPrefix(c.want, "this machine") && e.LastError != c.want {
				t.Errorf("it says %q", e.LastError)
			}
			if wait := e.NextAttemptAt.Sub(noon); wait != c.wait {
				t.Errorf("it waits %s, want %s", wait, c.wait)
			}
			if c.mend != nil {
				c.mend(hub)
			}
			h.clock.add(c.wait)
			h.mustState(e.ID, ci.OutboxSent)
		})
	}
}

// Ensure that what no further try can help is given up at once, with a reason.
func TestAnEntryOfAnAppIsDead(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(h *house, hub *forgetest.GitHub)
		want  string
	}{
		"the installation is suspended": {func(_ *house, hub *forgetest.GitHub) { hub.Suspend(forgetest.Installation, true) }, "suspended"},
		"the installation is removed":   {func(_ *house, hub *forgetest.GitHub) { hub.RemoveInstallation(forgetest.Installation) }, "it was removed"},
		"the installation is not ours any more": {func(h *house, _ *forgetest.GitHub) {
			h.config.Integrations[0].Installations = []int64{99}
		}, "not among the installations"},
		"the permission is missing": {func(_ *house, hub *forgetest.GitHub) {
			hub.Permit(forgetest.Installation, map[string]string{"contents": "read"})
		}, "grant it the permission"},
		"the permission is refused": {func(_ *house, hub *forgetest.GitHub) {
			hub.Script("POST /repos/", forgetest.Message(403, "Resource not accessible by integration"))
		}, "Resource not accessible by integration"},
		"the repository is gone": {func(_ *house, hub *forgetest.GitHub) { hub.RemoveRepository("acme/api") }, "knows no repository acme/api"},
		"the key is wrong": {func(_ *house, hub *forgetest.GitHub) {
			hub.Script("POST /app/installations/", forgetest.Message(401, "A JSON web token could not be decoded"))
		}, "/etc/docket/app.pem"},
		"the key is no key": {func(h *house, _ *forgetest.GitHub) {
			h.config.Integrations[0].App.PrivateKey = ci.NewSecret("/etc/docket/app.pem", "nonsense")
		}, "no RSA key"},
	} {
		t.Run(name, func(t *testing.T) {
			h, hub := mustApp(t, ci.ReportStatuses)
			c.spoil(h, hub)
			h.mustRun(h.options())
			e := h.mustState(h.mustFind(h.mustStart(nil), ci.OutboxGitHubStatus).ID, ci.OutboxDead)
			if !strings.Contains(e.LastError, c.want) || e.Attempts != 1 {
				t.Errorf("after %d attempts it says %q", e.Attempts, e.LastError)
			}
		})
	}
}

// Ensure that each shape of a limit holds its installation and no other one,
// that the hold survives a restart, and that all arrives in the end.
func TestALimitHoldsOneInstallation(t *testing.T) {
	for name, limit := range map[string]func(*forgetest.GitHub) forgetest.Answer{
		"primary":   func(hub *forgetest.GitHub) forgetest.Answer { return hub.PrimaryLimit(time.Minute) },
		"secondary": func(*forgetest.GitHub) forgetest.Answer { return forgetest.SecondaryLimit(0) },
		"429":       func(*forgetest.GitHub) forgetest.Answer { return forgetest.TooMany(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			h, hub := mustApp(t, ci.ReportStatuses)
			hub.AddInstallation(99, "acme/api")
			in := &h.config.Integrations[0]
			in.Installations = append(in.Installations, 99)
			hub.Script("POST /repos/", limit(hub))
			_, stop := h.mustRun(h.options())
			first := h.mustFind(h.mustStart(nil), ci.OutboxGitHubStatus)
			h.mustWait(first.ID, 1)
			stop()
			h.mustReopen()
			h.mustRun(h.options())
			second := h.mustFind(h.mustStart(nil), ci.OutboxGitHubStatus)
			other := h.mustFind(h.mustStart(func(d *ci.Draft) { d.Installation = 99 }), ci.OutboxGitHubStatus)
			h.mustState(other.ID, ci.OutboxSent)
			h.mustPass()
			if e, err := h.store.Entry(second.ID); err != nil || e.Attempts != 0 {
				t.Fatalf("%d attempts while the installation was held, %v", e.Attempts, err)
			}
			h.clock.add(61 * time.Second)
			h.mustState(first.ID, ci.OutboxSent)
			h.mustState(second.ID, ci.OutboxSent)
		})
	}
}
