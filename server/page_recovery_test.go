package server_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"docket/store/ci"
)

// Ensure that the pages show heads without a run, and that a click starts one
// exactly once.
func TestRecoveryPages(t *testing.T) {
	p := newPages(t)
	ctx := context.Background()
	withMissedHeads(t, p.store, mainHead(), pullHead())
	m := ci.MissedDelivery{Receipt: "github/-/" + evil, Integration: "github", Event: "push", StatusCode: 401, FirstAt: ci.At(time.Now()), GaveUp: "docket refused it " + evil}
	if err := p.store.PutMissed(ctx, m); err != nil {
		t.Fatal(err)
	}
	if err := p.store.RecordRecovery(ctx, ci.Recovery{Integration: "github", ComparedAt: ci.At(time.Now()), Problem: "the token needs the repository permission Webhooks"}, false); err != nil {
		t.Fatal(err)
	}
	b, v := p.browser().mustLogin("operator"), p.browser().mustLogin("viewer")
	wantIn(t, wantPage(t, v.get("/setup"), 200), "No run for these heads", "not:Start the run", "Deliveries that did not arrive", "docket refused it")
	const action = "/projects/api/heads/start"
	for _, path := range []string{"/setup", "/projects/api"} {
		wantIn(t, wantPage(t, b.get(path), 200), "No run for these heads", "#4", `action="`+action+`"`, "Start the run")
	}
	form := []string{"head", "refs/heads/main", "commit", commitB}
	if a := v.post(action, form...); a.status != 403 {
		t.Fatalf("a viewer starts it: %v", a)
	}
	wantGo(t, b.post(action, form...), "/runs/api-1")
	wantGo(t, b.post(action, form...), "/runs/api-1")
	wantIn(t, wantPage(t, b.get("/projects/api"), 200), "not:value=\"refs/heads/main\"", "#4", "api-1")
	for _, bad := range [][]string{{}, {"head", "refs/heads/main"}, {"head", "refs/heads/main", "commit", "x"}} {
		if a := b.post(action, bad...); a.status != 422 {
			t.Errorf("%v: %v", bad, a.status)
		}
	}
	if a := b.post("/projects/"+url.PathEscape("gone")+"/heads/start", form...); a.status != 404 {
		t.Errorf("another project's: %v", a.status)
	}
}
