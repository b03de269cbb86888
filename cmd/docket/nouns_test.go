package main

import (
	"strings"
	"testing"
)

const receiptJSON = `{"id": "github/-/a/b?%", "integration": "github", "installation": "-", "delivery": "a/b?%", "event": "pull_request", "action": "opened",
 "outcome": "ignored", "reason": "no project asked for it", "runs": [], "repository": {"id": 7, "full_name": "acme/hello"}, "ref": "refs/heads/main",
 "commit": "6dcb09b5b57875f334f61aebed695e2e4193db5e", "body_sha256": "ab", "body_bytes": 66, "secret": "github.secret",
 "received_at": "2026-01-02T03:04:05.678Z", "verdicts": [{"at": "2026-01-02T03:04:05.678Z", "outcome": "ignored", "reason": "no project asked for it"}]}`

// Ensure that a delivery id is percent-encoded on its way, whatever it holds.
func TestReceipts(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	api.on("GET /api/v1/receipts", jsonAnswer(200, `{"receipts": [`+receiptJSON+`], "next_cursor": ""}`))
	const path = "/api/v1/receipts/github/-/a%2Fb%3F%25"
	api.on("GET "+path, jsonAnswer(200, receiptJSON))
	api.on("GET "+path+"/body", jsonAnswer(200, "\x00exact\r\n"))

	mustContain(t, "the listing", w.must("receipts", "list", "--outcome", "ignored"),
		"RECEIVED             EVENT                OUTCOME  RUNS  RECEIPT         REASON\n",
		local(t, "2026-01-02T03:04:05Z")+"  pull_request.opened  ignored  -     github/-/a/b?%  no project asked for it\n")
	mustContain(t, "the receipt", w.must("receipts", "show", "github/-/a/b?%"),
		"repository:  acme/hello (id 7)\n", "body:        66 bytes, sha256 ab\n", "secret:      github.secret\n")
	mustContain(t, "the JSON", w.must("receipts", "show", "github/-/a/b?%", "-o", "json"), `"body_bytes": 66`)
	if out := w.must("receipts", "show", "github/-/a/b?%", "--body"); out != "\x00exact\r\n" {
		t.Errorf("the body came as %q", out)
	}
	if got := api.lines()[0]; got != "GET /api/v1/receipts?limit=50&outcome=ignored" {
		t.Errorf("asked %q", got)
	}
}

// Ensure that what a receipt led to and what it would lead to now stand side by
// side, rule by rule.
func TestReceiptsExplain(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	api.on("GET /api/v1/receipts/github/-/d1/explain", jsonAnswer(200, `{"receipt": "github/-/d1", "runs": ["api-1"],
 "then": {"at": "2026-01-02T03:04:05.678Z", "outcome": "accepted", "reason": ""},
 "now": {"receipt": "github/-/d1", "event": "push", "action": "", "repository": {"id": 7, "full_name": "acme/api"}, "ref": "refs/heads/main", "commit": "6dcb09b",
  "outcome": "accepted", "reason": "", "projects": [
   {"project": "api", "matches": false, "reason": "branch \"main\" matches none of on.push.branches [dev]"},
   {"project": "web", "matches": true, "reason": "branch \"main\" matches on.push", "run": {"state": "queued", "held": false, "context": "docket/web", "ref": "refs/heads/main", "commit": "6dcb09b", "steps": ["test"], "supersede": "pending"}}]}}`))
	mustContain(t, "the explanation", w.must("receipts", "explain", "github/-/d1"),
		"then:    accepted\n", "runs:    api-1\n", "\nunder the configuration in force:\n", "outcome:     accepted\n",
		"\napi: branch \"main\" matches none of on.push.branches [dev]\n",
		"\nweb: branch \"main\" matches on.push\n  starts a run of refs/heads/main at 6dcb09b, queued\n  its status is docket/web\n  its steps are test\n")
	mustContain(t, "the JSON", w.must("receipts", "explain", "github/-/d1", "-o", "json"), `"project": "web"`)
	if r := w.run("receipts", "explain", "d1"); r.code != exitUsage {
		t.Errorf("an id that is none: %+v", r)
	}
}

// Ensure that replay prints the new runs, or why there are none.
func TestReceiptsReplay(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	const path = "/api/v1/receipts/github/-/d1"
	had := strings.Replace(receiptJSON, `"runs": []`, `"runs": ["hello-1"]`, 1)
	more := strings.Replace(receiptJSON, `"runs": []`, `"runs": ["hello-1", "hello-2"]`, 1)
	api.on("GET "+path, jsonAnswer(200, had))
	api.on("POST "+path+"/replay", jsonAnswer(200, more))
	if out := w.must("receipts", "replay", "github/-/d1"); out != "hello-2\n" {
		t.Errorf("got %q", out)
	}
	api.on("GET "+path, jsonAnswer(200, more))
	if out := w.must("receipts", "replay", "github/-/d1", "--key", "k"); out != "hello-1\nhello-2\n" {
		t.Errorf("a repeat under the same key: got %q", out)
	}
	r := w.run("receipts", "replay", "github/-/d1")
	if r.code != exitFailed || !strings.Contains(r.err, "nothing was started by github/-/a/b?%: no project asked for it") {
		t.Errorf("got %+v", r)
	}
}

func TestProjects(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	const p = `{"name": "hello", "integration": "github", "repository": "acme/hello", "repository_id": 0, "default_branch": "main",
		"inputs": [{"name": "target", "default": "staging", "options": ["staging", "production"]}], "supersede": "pending",
		"latest": {"main": {"run": "hello-9", "state": "succeeded", "commit": "6dcb09b5b57875f334f61aebed695e2e4193db5e"}, "a": {"run": "hello-3", "state": "failed", "commit": ""}}}`
	api.on("GET /api/v1/projects", jsonAnswer(200, `{"projects": [`+p+`], "next_cursor": ""}`))
	api.on("GET /api/v1/projects/hello", jsonAnswer(200, p))
	api.on("POST /api/v1/projects/hello/repin", jsonAnswer(200, p))

	if out, want := w.must("projects", "list"), "PROJECT  REPOSITORY  ID              BRANCH  LATEST   STATE\n"+
		"hello    acme/hello  not pinned yet  main    hello-9  succeeded\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	mustContain(t, "the project", w.must("projects", "show", "hello"), "repository id:   not pinned yet\n",
		"target  staging  staging, production\n", "a       hello-3  failed     -\nmain    hello-9  succeeded  6dcb09b\n")
	mustContain(t, "the JSON", w.must("projects", "show", "hello", "-o", "json"), `"supersede": "pending"`)
	mustContain(t, "repin", w.must("projects", "repin", "hello"), "the next signed delivery pins hello\n")
	mustContain(t, "repin", w.must("projects", "repin", "hello", "--id", "7"), "hello is pinned to the repository id 7\n")
	got := api.all()
	if n := len(got); got[n-2].body != `{"id":0}` || got[n-1].body != `{"id":7}` {
		t.Errorf("sent %+v", got)
	}
}

func TestOutbox(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	const e = `{"id": "e1", "kind": "webhook", "run": "hello-42", "lane": "l", "target": "https://h.example/x", "state": "pending", "attempts": 3,
		"next_attempt_at": "2026-01-02T03:04:05.678Z", "last_error": "500: oh\nno", "created_at": "2026-01-02T03:04:05.678Z", "finished_at": null,
		"event": "run.failed", "payload": {"type": "run.failed"}}`
	api.on("GET /api/v1/outbox", jsonAnswer(200, `{"entries": [`+e+`], "next_cursor": ""}`))
	api.on("GET /api/v1/outbox/e1", jsonAnswer(200, e))
	api.on("POST /api/v1/outbox/e1/retry", jsonAnswer(200, e))
	api.on("POST /api/v1/outbox/e1/discard", jsonAnswer(200, e))

	mustContain(t, "the listing", w.must("outbox", "list", "--state", "pending"),
		"e1     webhook  run.failed  hello-42  pending  3         "+local(t, "2026-01-02T03:04:05Z")+"  500: oh no\n")
	mustContain(t, "the entry", w.must("outbox", "show", "e1"), "target:        https://h.example/x\n", `"type": "run.failed"`)
	mustContain(t, "the JSON", w.must("outbox", "list", "-o", "json"), `"entries": [`)
	if out := w.must("outbox", "retry", "e1"); out != "e1 is due now\n" {
		t.Errorf("got %q", out)
	}
	if out := w.must("outbox", "discard", "e1", "--reason", "gone"); out != "e1 is given up\n" {
		t.Errorf("got %q", out)
	}
	if got := api.all(); got[len(got)-1].body != `{"reason":"gone"}` || got[0].line != "GET /api/v1/outbox?limit=50&state=pending" {
		t.Errorf("asked %+v", got)
	}
}
