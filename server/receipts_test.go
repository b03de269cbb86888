package server_test

import (
	"net/url"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that any printable delivery id works in a path.
func TestDeliveryIDsInPaths(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{
		"72d3162e-cc78-11e3-81ab-4c9367dc0958", "a/b", "a?b", "a%b", "a%2Fb", "a%25", "%", "/", "?", "#", "a b", "a+b", "a;b", "a&b=c",
		"body", "replay", "a/body", "..", ".", "../../runs", "a//b", `a"b\c<d>`, strings.Repeat("/", 200),
	} {
		if a := r.deliver("push", id, mainPush()); a.status != 202 {
			t.Fatalf("%q: %v", id, a)
		}
		path := "/receipts/" + ci.NewReceiptID("github", 0, id).Path()
		rec := mustDecode[ci.Receipt](t, r.call(ci.Viewer, "GET", path, ""))
		if rec.Delivery != id || rec.ID != "github/-/"+id {
			t.Errorf("%q is %+v", id, rec)
		}
		if a := r.call(ci.Viewer, "GET", path+"/body", ""); string(a.body) != mainPush() {
			t.Errorf("the body of %q: %v", id, a)
		}
		if a := r.call(ci.Operator, "POST", path+"/replay", ""); a.status != 200 || mustDecode[ci.Receipt](t, a).Delivery != id {
			t.Errorf("the replay of %q: %v", id, a)
		}
	}
	wantProblem(t, r.call(ci.Viewer, "GET", "/receipts/github/-/"+url.PathEscape("a/c"), ""), 404)
	wantProblem(t, r.call(ci.Viewer, "GET", "/receipts/github/1/a%2Fb", ""), 404)
}

func TestReceiptBody(t *testing.T) {
	r := newRig(t)
	body := "\ufeff" + mainPush() + "\r\n"
	req := r.delivery(r.url, "push", "d-1", body)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "GitHub-Hookshot/1")
	req.Header.Set("X-GitHub-Hook-ID", "7")
	req.Header.Set("X-Other", "no")
	if a := r.do(req); a.status != 202 {
		t.Fatal(a)
	}
	a := r.call(ci.Viewer, "GET", "/receipts/github/-/d-1/body", "")
	h := a.header
	if string(a.body) != body || h.Get("Content-Type") != "application/octet-stream" || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("X-Docket-Content-Type") != "application/json; charset=utf-8" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") {
		t.Errorf("answer %v %v", a, h)
	}
	kept, _, err := r.store.ReceiptBody(ci.NewReceiptID("github", 0, "d-1"))
	if err != nil {
		t.Fatal(err)
	}
	if kept["User-Agent"] != "GitHub-Hookshot/1" || kept["X-Github-Hook-Id"] != "7" || kept["X-Github-Event"] != "push" {
		t.Errorf("kept headers %v", kept)
	}
	for name := range kept {
		if strings.Contains(name, "Signature") || name == "X-Other" || name == "Authorization" {
			t.Errorf("the header %s was kept", name)
		}
	}
}

func TestReplay(t *testing.T) {
	r := newRig(t)
	body := pushBody("refs/heads/dev", commitB, commitA)
	r.deliver("push", "d-1", body)
	replay := func(key string) answer {
		if key == "" {
			return r.call(ci.Operator, "POST", "/receipts/github/-/d-1/replay", "")
		}
		return r.call(ci.Operator, "POST", "/receipts/github/-/d-1/replay", "", "Idempotency-Key", key)
	}
	a := replay("")
	if rec := mustDecode[ci.Receipt](t, a); a.status != 200 || rec.Outcome != ci.Ignored || len(rec.Runs) != 0 || len(rec.Verdicts) != 2 {
		t.Errorf("under the same configuration: %v", a)
	}
	r.reconfigure(func(c *ci.Config) { c.Projects[0].On.Push.Branches = []string{"dev"} })
	a = replay("k")
	if rec := mustDecode[ci.Receipt](t, a); a.status != 200 || rec.Outcome != ci.Accepted || len(rec.Runs) != 1 {
		t.Fatalf("under another: %v", a)
	}
	run := mustDecode[ci.Run](t, r.call(ci.Viewer, "GET", "/runs/api-1", ""))
	if run.Cause.Kind != ci.CauseReplay || run.Cause.Receipt != "github/-/d-1" {
		t.Errorf("run %+v", run)
	}
	if a := replay("k"); a.header.Get("Idempotency-Replayed") != "true" || len(r.runs()) != 1 {
		t.Errorf("the same key again: %v, %d runs", a, len(r.runs()))
	}
	r.reconfigure(func(c *ci.Config) { c.Projects[0].Repository, c.Projects[0].RepositoryID = "acme/x", 7 })
	wantProblem(t, replay("k2"), 409)
	r.reconfigure(func(c *ci.Config) { c.Integrations[0].Name = "other" })
	wantProblem(t, replay("k3"), 409)
}

// Ensure that a form is read again as the form that it was.
func TestReplayOfAForm(t *testing.T) {
	r := newRig(t)
	body := "payload=" + url.QueryEscape(mainPush())
	req := r.delivery(r.url, "push", "d-1", body)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; x="+strings.Repeat("y", 300))
	if a := r.do(req); a.status != 202 || mustDecode[hookAnswer](t, a).Outcome != "accepted" {
		t.Fatal(a)
	}
	if a := r.call(ci.Operator, "POST", "/receipts/github/-/d-1/replay", ""); a.status != 200 || len(mustDecode[ci.Receipt](t, a).Runs) != 2 {
		t.Errorf("replay: %v", a)
	}
}
