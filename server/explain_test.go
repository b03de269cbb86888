package server_test

import (
	"testing"

	"docket/store/ci"
)

// explainedAnswer is what an explanation of a receipt says.
type explainedAnswer struct {
	Receipt string         `json:"receipt"`
	Then    ci.Verdict     `json:"then"`
	Runs    []string       `json:"runs"`
	Now     ci.Explanation `json:"now"`
}

// Ensure that a receipt is explained by the configuration in force, beside what
// was decided then, and that nothing comes of asking.
func TestExplainReceipt(t *testing.T) {
	r := newRig(t)
	r.deliver("push", "d-1", mainPush())
	r.deliver("push", "d-2", pushBody("refs/heads/dev", commitB, commitA))
	ask := func(id string) explainedAnswer {
		t.Helper()
		a := r.call(ci.Viewer, "GET", "/receipts/github/-/"+id+"/explain", "")
		if a.status != 200 {
			t.Fatalf("answer %v", a)
		}
		return mustDecode[explainedAnswer](t, a)
	}
	x := ask("d-1")
	if x.Receipt != "github/-/d-1" || x.Then.Outcome != ci.Accepted || len(x.Runs) != 1 || x.Now.Outcome != ci.Accepted || len(x.Now.Projects) != 1 {
		t.Errorf("%+v", x)
	}
	if p := x.Now.Projects[0]; !p.Matches || p.Reason != `branch "main" matches "main" in on.push.branches` || p.Run == nil || p.Run.Context != "docket/api" || p.Run.State != ci.Queued {
		t.Errorf("%+v", p)
	}
	r.reconfigure(func(c *ci.Config) { c.Projects[0].On.Push.Branches = []string{"dev"} })
	if x := ask("d-1"); x.Then.Outcome != ci.Accepted || x.Now.Outcome != ci.Ignored || x.Now.Projects[0].Reason != `branch "main" matches none of on.push.branches [dev]` {
		t.Errorf("after a change: %+v", x)
	}
	if x := ask("d-2"); x.Then.Outcome != ci.Ignored || len(x.Runs) != 0 || x.Now.Outcome != ci.Accepted {
		t.Errorf("after a change: %+v", x)
	}
	r.reconfigure(func(c *ci.Config) { c.Projects[0].Repository, c.Projects[0].RepositoryID = "acme/else", 99 })
	if x := ask("d-1"); x.Now.Outcome != ci.Refused || x.Now.Reason == "" || len(x.Now.Projects) != 0 {
		t.Errorf("of a project that is gone: %+v", x)
	}
	r.reconfigure(func(c *ci.Config) { c.Integrations[0].Name = "else" })
	wantProblem(t, r.call(ci.Viewer, "GET", "/receipts/github/-/d-1/explain", ""), 409)
	wantProblem(t, r.call(ci.Viewer, "GET", "/receipts/github/-/none/explain", ""), 404)
	if n := len(r.runs()); n != 1 {
		t.Errorf("%d runs came of asking", n)
	}
}

// Ensure that a delivery's page says what each project would make of it now.
func TestDeliveryPage_SaysWhatIsInForce(t *testing.T) {
	p := newPages(t)
	p.deliver("push", "d-1", pushBody("refs/heads/dev", commitB, commitA))
	b := p.browser().mustLogin("viewer")
	const page = "/deliveries/github/-/d-1"
	wantIn(t, wantPage(t, b.get(page), 200), "Under the configuration in force", "matches none of on.push.branches [main]", "not:its status is")
	p.reconfigure(func(c *ci.Config) { c.Projects[0].On.Push.Branches = []string{"dev"} })
	wantIn(t, wantPage(t, b.get(page), 200), "in on.push.branches", "its status is docket/api", "What each project would make of the same bytes")
	p.reconfigure(func(c *ci.Config) { c.Projects[0].Repository, c.Projects[0].RepositoryID = "acme/else", 99 })
	wantIn(t, wantPage(t, b.get(page), 200), "would be refused today", "belongs to no project")
	p.reconfigure(func(c *ci.Config) { c.Integrations[0].Name = "else" })
	wantIn(t, wantPage(t, b.get(page), 200), "not:Under the configuration in force")
}
