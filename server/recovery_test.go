package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"docket/server"
	"docket/store"
	"docket/store/ci"
)

const commitC = "00d8d4ab0b1d0f1cc4a0a9a7f6d54c6b5ac3a1e2"

// withMissedHeads has docket know a head of api's main and find it moved.
func withMissedHeads(t *testing.T, st *store.Store, heads ...ci.Head) {
	t.Helper()
	c := store.HeadChanges{
		Project: "api", Base: &ci.HeadsBase{Repository: ci.Repository{ID: repoID, FullName: "acme/api"}, Heads: 1},
		Known: map[string]string{"refs/heads/main": commitC},
	}
	for _, h := range heads {
		c.Open = append(c.Open, ci.MissedHead{Head: h, Before: commitC, SeenAt: ci.At(time.Now()), ListedAt: ci.At(time.Now())})
	}
	if err := st.RecordHeads(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

func mainHead() ci.Head { return ci.Head{Ref: "refs/heads/main", Commit: commitB, Message: "Fix it"} }

func pullHead() ci.Head {
	return ci.Head{Ref: "refs/pull/4/head", Commit: commitB, PullRequest: &ci.PullRequest{Number: 4, Title: "Ours " + evil, Base: "main", Head: "x", Fork: true}}
}

// Ensure that heads without a run are listed and started by the API, each once.
func TestHeads(t *testing.T) {
	r := newRig(t)
	withMissedHeads(t, r.store, mainHead(), pullHead())
	a := r.call(ci.Viewer, "GET", "/heads?project=api", "")
	for _, want := range []string{`"key":"refs/heads/main"`, `"branch":"main"`, `"commit":"` + commitB, `"before":"` + commitC, `"key":"#4"`, `"next_cursor":""`} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("heads %s lack %s", a.body, want)
		}
	}
	wantProblem(t, r.call(ci.Viewer, "GET", "/heads?project=other", ""), 404)
	for _, bad := range []string{`{}`, `{"project":"api","commit":"` + commitB + `"}`, `{"project":"api","ref":"refs/heads/main","pull_request":4,"commit":"` + commitB + `"}`,
		`{"project":"api","ref":"refs/heads/main","commit":"abc"}`, `{"project":"api","pull_request":-1,"commit":"` + commitB + `"}`} {
		wantProblem(t, r.call(ci.Operator, "POST", "/heads/start", bad), 422)
	}
	wantProblem(t, r.call(ci.Operator, "POST", "/heads/start", `{"project":"api","ref":"refs/heads/x","commit":"`+commitB+`"}`), 404)
	wantProblem(t, r.call(ci.Operator, "POST", "/heads/start", `{"project":"gone","ref":"refs/heads/x","commit":"`+commitB+`"}`), 404)

	start := `{"project":"api","ref":"refs/heads/main","commit":"` + commitB + `"}`
	first, again := r.call(ci.Operator, "POST", "/heads/start", start), r.call(ci.Operator, "POST", "/heads/start", start)
	if first.status != 201 || again.status != 200 || mustDecode[ci.Run](t, first).ID != "api-1" || mustDecode[ci.Run](t, again).ID != "api-1" {
		t.Fatalf("%v, then %v", first, again)
	}
	run := mustDecode[ci.Run](t, r.call(ci.Operator, "POST", "/heads/start", `{"project":"api","pull_request":4,"commit":"`+commitB+`"}`))
	if run.State != ci.Held || run.Cause.Kind != ci.CauseRecovery {
		t.Errorf("a fork's %+v", run)
	}
	if a := r.call(ci.Viewer, "GET", "/heads", ""); !strings.Contains(string(a.body), `"heads":[]`) {
		t.Errorf("afterwards %s", a.body)
	}
}

// Ensure that a head whose delivery came meanwhile is a conflict.
func TestHeads_DeliveryCameMeanwhile(t *testing.T) {
	r := newRig(t)
	a := r.deliver("push", "d-1", mainPush())
	commit := mustDecode[struct{ Runs []struct{ ID string } }](t, a).Runs[0].ID
	run, err := r.store.Run(commit)
	if err != nil {
		t.Fatal(err)
	}
	h := mainHead()
	h.Commit = run.Source.Commit
	withMissedHeads(t, r.store, h)
	p := wantProblem(t, r.call(ci.Operator, "POST", "/heads/start", `{"project":"api","ref":"refs/heads/main","commit":"`+h.Commit+`"}`), 409)
	if !strings.Contains(p.Detail, run.ID) {
		t.Errorf("%q does not name %s", p.Detail, run.ID)
	}
}

// Ensure that a round is made on an operator's word, and that states and gaps
// are shown.
func TestRecover(t *testing.T) {
	r := newRig(t)
	wantProblem(t, r.call(ci.Operator, "POST", "/recover", ""), 409)
	var got struct {
		integration string
		since       time.Duration
		by          ci.By
	}
	srv := server.New(server.Options{Store: r.store, Config: r.config, Version: "test", Pages: renderer(),
		Recover: func(_ context.Context, integration string, since time.Duration, by ci.By) ([]ci.Recovery, error) {
			if integration == "gone" {
				return nil, ci.Wrap(ci.CodeNotFound, errors.New("x"), "no integration gone")
			}
			got.integration, got.since, got.by = integration, since, by
			return []ci.Recovery{{Integration: "github", Last: ci.Round{Asked: 3}}}, nil
		}})
	r.url = r.mustListen(srv.Handler())
	a := r.call(ci.Operator, "POST", "/recover", `{"integration":"github","since":"24h"}`)
	if a.status != 200 || !strings.Contains(string(a.body), `"asked":3`) || got.since != 24*time.Hour || got.by.Name != "the-operator" || got.integration != "github" {
		t.Errorf("%v, asked for %+v", a, got)
	}
	for _, since := range []string{"x", "-1h", "0s", "169h"} {
		wantProblem(t, r.call(ci.Operator, "POST", "/recover", `{"since":"`+since+`"}`), 422)
	}
	wantProblem(t, r.call(ci.Operator, "POST", "/recover", `{"integration":"gone"}`), 404)

	ctx := context.Background()
	if _, _, _, err := r.store.Began(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.store.Stopped(ctx, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, ok, _, err := r.store.Began(ctx); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if a := r.call(ci.Viewer, "GET", "/gaps", ""); !strings.Contains(string(a.body), `"id":"gap-1"`) || !strings.Contains(string(a.body), `"exact":true`) {
		t.Errorf("gaps %s", a.body)
	}
	m := ci.MissedDelivery{Receipt: "github/-/x", Integration: "github", Event: "push", StatusCode: 401, GaveUp: "docket refused it"}
	if err := r.store.PutMissed(ctx, m); err != nil {
		t.Fatal(err)
	}
	if a := r.call(ci.Viewer, "GET", "/recoveries", ""); !strings.Contains(string(a.body), `"gave_up":"docket refused it"`) || !strings.Contains(string(a.body), `"why":"it has neither token nor app`) {
		t.Errorf("recoveries %s", a.body)
	}
}
