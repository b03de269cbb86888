package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/dispatcher/forge/forgetest"
	"docket/store/ci"
)

// watched is a docket with a GitHub that delivers to it and can be asked.
type watched struct {
	*daemon
	hub  *forgetest.GitHub
	hook int64
	repo *repository
}

// newWatched prepares a docket that compares with GitHub each second, at an
// address that it keeps over restarts.
func newWatched(t *testing.T, project obj) *watched {
	t.Helper()
	w := &watched{hub: forgetest.New(t), repo: newRepository(t, "acme/api", 7)}
	w.hub.AddRepository("acme/api", 7)
	w.hub.AddToken(statusToken)
	address := unusedAddress(t)
	w.hook = w.hub.AddHook(forgetest.Hook{
		Repository: "acme/api", URL: "http://docket.test/hooks/github", Target: "http://" + address + "/hooks/github", Secret: hookSecret,
	})
	w.daemon = newDaemon(t, nil, func(d *daemon) {
		d.config["listen"] = []obj{{"address": address}}
		in := d.config["integrations"].([]obj)[0]
		in["api_url"], in["token"] = w.hub.API(), obj{"file": "github.token"}
		d.addProject("api", w.repo, project)
		d.setControl("recover", "1s")
	})
	return w
}

// unusedAddress is one of this machine that nobody listens on.
func unusedAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// push makes GitHub deliver a push of main.
func (w *watched) push(before, after string) forgetest.Attempt {
	w.t.Helper()
	return w.hub.Deliver(w.hook, ci.EventPush, w.repo.push("refs/heads/main", before, after))
}

func (w *watched) recovery() recoveryState {
	w.t.Helper()
	list := all[recoveryState](w.daemon, "recoveries", "/recoveries")
	if len(list) != 1 {
		w.t.Fatalf("recoveries %+v", list)
	}
	return list[0]
}

func (w *watched) waitCompared() {
	w.t.Helper()
	eventually(w.t, "heads and deliveries are compared", func() bool {
		r := w.recovery()
		return !r.HeadsAt.IsZero() && !r.ComparedAt.IsZero()
	})
}

// cli runs a command against the server and returns what it prints.
func (w *watched) cli(args ...string) string {
	w.t.Helper()
	out, err := w.command(append(args, "-c", w.configPath())...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("docket %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func fakeCommit(n int) string { return fmt.Sprintf("%040x", n+1) }

// Ensure that two hundred deliveries that GitHub made while docket was dead,
// some of them several times, all have their receipt and run in the end, none
// of them twice: over a rate limit in the middle and a second kill.
func TestMissed_TwoHundredWhileDead(t *testing.T) {
	w := newWatched(t, obj{"supersede": "none"})
	w.start()
	if a := w.call("POST", apiPrefix+"/runs/pause", "", obj{"reason": "the runs are not what this is about"}); a.status/100 != 2 {
		t.Fatal(a)
	}
	if a := w.push("", fakeCommit(0)); a.Code != http.StatusAccepted {
		t.Fatalf("%+v", a)
	}
	w.waitCompared()
	w.kill()
	const missed = 200
	want := map[string]bool{}
	for n := 1; n <= missed; n++ {
		a := w.push(fakeCommit(n-1), fakeCommit(n))
		want[a.GUID] = true
		if n%20 == 0 { // somebody presses Redeliver meanwhile
			w.redeliver(a.ID)
		}
	}
	limit := "POST /repos/acme/api/hooks/"
	for range 90 {
		w.hub.Script(limit, forgetest.Answer{})
	}
	w.hub.Script(limit, forgetest.TooMany(2*time.Second))

	w.launch()
	w.waitListening()
	eventually(t, "some of them arrive", func() bool { return len(w.receipts()) > 40 })
	w.kill()
	w.start()
	within(t, time.Minute, "all of them arrive", func() bool { return len(w.receipts()) >= missed+1 })
	eventually(t, "nothing is missing any more", func() bool { r := w.recovery(); return len(r.Missed) == 0 && r.Problem == "" })

	for _, r := range w.receipts() {
		if r.Outcome != ci.Accepted || len(r.Runs) != 1 {
			t.Errorf("receipt %s is %s with the runs %v", r.ID, r.Outcome, r.Runs)
		}
		delete(want, r.Delivery)
	}
	if len(want) > 0 {
		t.Errorf("%d never arrived", len(want))
	}
	if runs := all[ci.Run](w.daemon, "runs", "/runs"); len(runs) != missed+1 {
		t.Errorf("%d runs, want %d", len(runs), missed+1)
	}
	asked := map[string]int{}
	for _, a := range w.hub.Attempts(w.hook) {
		if a.Redelivery {
			if asked[a.GUID]++; asked[a.GUID] > 5 {
				t.Errorf("%s was asked for %d times", a.GUID, asked[a.GUID])
			}
		}
	}
	w.checkRecords(missed)
	if text := w.cli("receipts", "recover"); !strings.Contains(text, "nothing is missing") {
		t.Errorf("docket receipts recover says %q", text)
	}
}

// redeliver presses GitHub's own button.
func (w *watched) redeliver(id int64) {
	w.t.Helper()
	a := request("POST", fmt.Sprintf("%srepos/acme/api/hooks/%d/deliveries/%d/attempts", w.hub.API(), w.hook, id),
		http.Header{"Authorization": {"Bearer " + statusToken}}, nil)
	if a.status != http.StatusAccepted {
		w.t.Fatal(a)
	}
}

// checkRecords looks at what is on record of a recovery: gaps and decisions.
func (w *watched) checkRecords(missed int) {
	w.t.Helper()
	found, recovered := 0, 0
	gaps := all[ci.Gap](w.daemon, "gaps", "/gaps")
	for _, g := range gaps {
		if g.Exact || !g.From.Before(g.To.Time) || g.ComparedAt.IsZero() {
			w.t.Errorf("gap %+v", g)
		}
		found, recovered = found+g.Missed, recovered+g.Recovered
	}
	if len(gaps) != 2 || found != missed || recovered != missed {
		w.t.Errorf("%d gaps, %d missed, %d recovered; want 2, %d, %d", len(gaps), found, recovered, missed, missed)
	}
	decided := map[string]bool{}
	for _, d := range all[ci.Decision](w.daemon, "decisions", "/decisions") {
		if d.Kind == ci.DecisionRecovered && d.By.Kind == ci.ByScheduler && d.Integration == "github" {
			decided[d.Receipt] = true
		}
	}
	if len(decided) < missed-10 { // what arrived before the kill may lack its decision
		w.t.Errorf("%d decisions on %d deliveries", len(decided), missed)
	}
	if text := w.cli("receipts", "gaps"); strings.Count(text, "about ") != 2 {
		w.t.Errorf("docket receipts gaps says %q", text)
	}
}

func (w *watched) heads() (keys []string) {
	w.t.Helper()
	for _, h := range all[missedHead](w.daemon, "heads", "/heads") {
		keys = append(keys, h.Key)
	}
	return keys
}

// Ensure that what GitHub never sends is found in the heads: a push while the
// webhook is switched off, and four tags in one push. One click starts a head
// exactly once, and its delivery finds the twin when it comes after all.
func TestMissed_HeadsThatNothingToldOf(t *testing.T) {
	w := newWatched(t, obj{"on": obj{"push": obj{"branches": []string{"main"}, "tags": []string{"v*"}}}})
	first := w.repo.commit("refs/heads/main")
	old := w.repo.commit("refs/heads/old")
	w.hub.SetBranch("acme/api", "main", first)
	for i := range 150 {
		w.hub.SetTag("acme/api", fmt.Sprintf("v0.%d", i), old)
	}
	w.start()
	w.waitCompared()
	w.push("", first)
	w.hub.SwitchHook(w.hook, false)
	head := w.repo.commit("refs/heads/main", first)
	w.hub.SetBranch("acme/api", "main", head)
	w.push(first, head) // goes nowhere
	for n := 1; n <= 4; n++ {
		w.repo.git("", "update-ref", fmt.Sprintf("refs/tags/v%d", n), head)
		w.hub.SetTag("acme/api", fmt.Sprintf("v%d", n), head)
	}
	w.hub.SetTag("acme/api", "other", head)
	const want = "refs/heads/main refs/tags/v1 refs/tags/v2 refs/tags/v3 refs/tags/v4"
	eventually(t, "the heads are listed", func() bool { return strings.Join(w.heads(), " ") == want })
	eventually(t, "the webhook is said to be switched off", func() bool { return strings.Contains(w.recovery().Problem, "switched off") })

	body := obj{"project": "api", "ref": "refs/heads/main", "commit": head}
	ids := map[string]int{}
	var mu sync.Mutex
	var clicks sync.WaitGroup
	for range 8 {
		clicks.Go(func() {
			a := w.call("POST", apiPrefix+"/heads/start", "", body)
			mu.Lock()
			defer mu.Unlock()
			if a.status != http.StatusCreated && a.status != http.StatusOK {
				t.Errorf("start: %v", a)
			}
			ids[string(a.header.Get("Location"))]++
		})
	}
	clicks.Wait()
	if len(ids) != 1 || ids["/api/v1/runs/api-2"] != 8 {
		t.Fatalf("eight clicks started %v", ids)
	}
	eventually(t, "the head's run succeeds", func() bool { return w.run("api-2").State == ci.Succeeded })
	if r := w.run("api-2"); r.Cause.Kind != ci.CauseRecovery || r.Source.Before != first || r.Source.Commit != head {
		t.Errorf("run %+v", r)
	}
	if id := strings.TrimSpace(w.cli("projects", "heads", "api", "--start", "refs/tags/v3")); id != "api-3" {
		t.Errorf("docket projects heads --start says %q", id)
	}
	if text := w.cli("projects", "heads"); strings.Count(text, "refs/tags/v") != 3 || strings.Contains(text, "refs/heads/") {
		t.Errorf("docket projects heads says %q", text)
	}
	w.hub.SwitchHook(w.hook, true)
	late := w.push(first, head)
	eventually(t, "the late delivery has its receipt", func() bool {
		a := w.call("GET", apiPrefix+"/receipts/github/-/"+late.GUID, "", nil)
		return a.status == http.StatusOK && mustBe[ci.Receipt](w.daemon, a, http.StatusOK).TwinRun == "api-2"
	})
	if a := w.call("POST", apiPrefix+"/heads/start", "", body); a.status != http.StatusOK {
		t.Errorf("another click: %v", a)
	}
	metrics := string(w.call("GET", "/metrics", "", nil).body)
	for _, line := range []string{`docket_recovery_heads{project="api"} 3`, `docket_recovery_missed{integration="github",state="waiting"} 0`, `docket_recovery_rounds_total{integration="github",outcome="whole"}`} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics have no %s", line)
		}
	}
}

// Ensure that with `recover: run` docket starts a head itself, and only once
// over a kill.
func TestMissed_HeadsStartedByDocket(t *testing.T) {
	w := newWatched(t, obj{"recover": "run"})
	first := w.repo.commit("refs/heads/main")
	w.hub.SetBranch("acme/api", "main", first)
	w.start()
	w.waitCompared()
	w.kill()
	head := w.repo.commit("refs/heads/main", first)
	w.hub.SetBranch("acme/api", "main", head)
	w.start()
	eventually(t, "its run succeeds", func() bool {
		runs := all[ci.Run](w.daemon, "runs", "/runs")
		return len(runs) == 1 && runs[0].State == ci.Succeeded && runs[0].Source.Commit == head && runs[0].Cause.Kind == ci.CauseRecovery
	})
	w.kill()
	w.start()
	at := w.recovery().ComparedAt
	eventually(t, "two more rounds are made", func() bool { return w.recovery().ComparedAt.Sub(at.Time) > 2*time.Second })
	if runs := all[ci.Run](w.daemon, "runs", "/runs"); len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
}

// Ensure that a GitHub App's deliveries are recovered too, without any
// permission, and that those of repositories that nobody configured are left
// alone.
func TestMissed_OfAnApp(t *testing.T) {
	hub := forgetest.New(t)
	hub.AddRepository("acme/api", 7)
	hub.AddRepository("acme/other", 8)
	hub.Permit(forgetest.Installation, map[string]string{"contents": "read", "pull_requests": "read", "statuses": "write"})
	address := unusedAddress(t)
	hub.SetAppHook(forgetest.Hook{URL: "http://docket.test/hooks/github", Target: "http://" + address + "/hooks/github", Secret: hookSecret})
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		mustWrite(t, filepath.Join(d.dir, "app.pem"), hub.PrivateKey())
		d.config["listen"] = []obj{{"address": address}}
		in := d.config["integrations"].([]obj)[0]
		in["api_url"], in["installations"] = hub.API(), []int{forgetest.Installation}
		in["app"] = obj{"id": forgetest.AppID, "private_key": obj{"file": "app.pem"}}
		d.addProject("api", repo, obj{"clone_url": repo.dir})
		d.setControl("recover", "1s")
	})
	push := func(id int64, before, after string) forgetest.Attempt {
		var payload obj
		r := &repository{t: t, fullName: "acme/api", id: id}
		if err := json.Unmarshal(r.push("refs/heads/main", before, after), &payload); err != nil {
			t.Fatal(err)
		}
		payload["installation"] = obj{"id": forgetest.Installation}
		return hub.Deliver(0, ci.EventPush, mustMarshal(t, payload))
	}
	d.start()
	if a := push(7, "", fakeCommit(0)); a.Code != http.StatusAccepted {
		t.Fatalf("%+v", a)
	}
	d.kill()
	missed := push(7, fakeCommit(0), fakeCommit(1))
	push(8, "", fakeCommit(2))
	d.start()
	eventually(t, "the delivery arrives", func() bool {
		return d.call("GET", fmt.Sprintf("%s/receipts/github/%d/%s", apiPrefix, forgetest.Installation, missed.GUID), "", nil).status == http.StatusOK
	})
	var r recoveryState
	eventually(t, "nothing is missing", func() bool {
		r = all[recoveryState](d, "recoveries", "/recoveries")[0]
		return r.Problem == "" && len(r.Missed) == 0 && !r.HeadsAt.IsZero()
	})
	if len(r.Hooks) != 1 || !r.Hooks[0].App {
		t.Errorf("hooks %+v", r.Hooks)
	}
	again := 0
	for _, a := range hub.Attempts(0) {
		if a.Redelivery {
			again++
		}
	}
	if again != 1 {
		t.Errorf("%d redeliveries, want the one of the configured repository", again)
	}
}

// Ensure that a GitHub that does not answer holds up nothing: docket is
// ready, takes deliveries, and stops in time.
func TestMissed_ProviderAway(t *testing.T) {
	reached := make(chan struct{}, 100)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte("{}"))
			return
		}
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hub.Close)
	d := newDaemon(t, nil, func(d *daemon) {
		in := d.config["integrations"].([]obj)[0]
		in["api_url"], in["token"] = hub.URL+"/", obj{"file": "github.token"}
		d.addProject("api", newRepository(t, "acme/api", 7), nil)
		d.setControl("recover", "1m")
	})
	d.start()
	eventually(t, "GitHub is asked", func() bool { return len(reached) > 0 })
	repo := &repository{t: t, fullName: "acme/api", id: 7}
	d.mustDeliver(http.StatusAccepted, "a", repo.push("refs/heads/main", "", fakeCommit(1)))
	if a := d.call("GET", "/readyz", "", nil); a.status != http.StatusOK {
		t.Error(a)
	}
	began := time.Now()
	d.stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	if strings.Contains(mustRead(t, filepath.Join(d.dir, "log.1")), "comparison with the provider not made") {
		t.Error("the shutdown is told as a fault of the provider's")
	}
}
