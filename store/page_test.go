package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// tagged makes a push one of a tag.
func tagged(name string) func(*store.Acceptance) {
	return func(a *store.Acceptance) {
		for i := range a.Drafts {
			src := &a.Drafts[i].Source
			src.Ref, src.Branch, src.Tag = "refs/tags/"+name, "", name
			a.Drafts[i].Scope = ""
		}
	}
}

func idsOf(list []ci.Run) []string {
	var ids []string
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

// Ensure that a run's entries are its own, in order, and go with retention.
func TestEntriesOf(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	for i := range 11 { // api-1 and api-10 are not the same prefix
		mustPush(t, s, fmt.Sprint("d-", i), i, i+1, withPolicy(ci.SupersedeNone), withSpec(notifying("https://hooks.example.org")))
	}
	for _, id := range []string{"api-1", "api-10", "api-11"} {
		got, more, err := s.EntriesOf(id, 50)
		mustNil(t, err)
		if want := entriesOf(t, s, id, ""); len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) || more {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	if got, more, err := s.EntriesOf("api-1", 1); err != nil || len(got) != 1 || !more {
		t.Errorf("one of more: %v %t %v", got, more, err)
	}
	if got, more, err := s.EntriesOf("api-99", 9); err != nil || len(got) != 0 || more {
		t.Errorf("of no run: %v %t %v", got, more, err)
	}
	_, _, err := s.EntriesOf("nonsense", 9)
	mustCode(t, err, ci.CodeNotFound)

	mustFinish(t, s, mustClaim(t, s, "api-1"), ci.Succeeded)
	for {
		due, _, err := s.DueEntries(c.now(), 100)
		mustNil(t, err)
		if len(due) == 0 {
			break
		}
		for _, e := range due {
			mustEnd(t, s, mustBegin(t, s, e.ID), store.AttemptResult{State: ci.OutboxSent})
		}
	}
	if _, err := s.Prune(t.Context(), c.add(time.Hour), 1000); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.EntriesOf("api-1", 50); err != nil || len(got) != 0 {
		t.Errorf("after pruning: %v %v", got, err)
	}
}

// Ensure that runs are listed by the kind of what they build, with every other
// filter, and that none is lost between pages.
func TestRuns_ByKind(t *testing.T) {
	s := storetest.MustOpen(t)
	none := withPolicy(ci.SupersedeNone)
	mustPush(t, s, "d-1", 0, 1, none)
	mustPush(t, s, "d-2", 0, 2, none, tagged("v1"))
	mustAccept(t, s, pushed("d-3", "api", "patch", 1, 3, fromFork(5)))
	mustPush(t, s, "d-4", 1, 4, none)
	mustAccept(t, s, pushed("d-5", "web", "main", 0, 5))
	mustPush(t, s, "d-6", 0, 6, none, tagged("v2"))
	mustAccept(t, s, pushed("d-7", "api", "main", 1, 7, fromFork(6))) // a head branch called main
	mustFinish(t, s, mustClaim(t, s, "api-1"), ci.Failed)
	for what, tc := range map[string]struct {
		f    store.RunFilter
		want string
	}{
		"branches":                   {store.RunFilter{Ref: store.KindBranch}, "web-1 api-4 api-1"},
		"branches of a project":      {store.RunFilter{Project: "api", Ref: store.KindBranch}, "api-4 api-1"},
		"tags":                       {store.RunFilter{Ref: store.KindTag}, "api-5 api-2"},
		"pull requests":              {store.RunFilter{Project: "api", Ref: store.KindPull}, "api-6 api-3"},
		"failed branches":            {store.RunFilter{Ref: store.KindBranch, State: ci.Failed}, "api-1"},
		"queued tags":                {store.RunFilter{Ref: store.KindTag, State: ci.Queued}, "api-5 api-2"},
		"failed tags":                {store.RunFilter{Ref: store.KindTag, State: ci.Failed}, ""},
		"the branch main":            {store.RunFilter{Project: "api", Ref: store.KindBranch, Branch: "main"}, "api-4 api-1"},
		"pull requests of main":      {store.RunFilter{Project: "api", Ref: store.KindPull, Branch: "main"}, "api-6"},
		"held pull requests of main": {store.RunFilter{Ref: store.KindPull, Branch: "main", State: ci.Held}, "api-6"},
		"tags of a branch":           {store.RunFilter{Ref: store.KindTag, Branch: "main"}, ""},
	} {
		for _, limit := range []int{1, 50} {
			var got []string
			for p := (store.Page{Limit: limit}); ; {
				list, next, err := s.Runs(tc.f, p)
				mustNil(t, err)
				got = append(got, idsOf(list)...)
				if p.Cursor = next; next == "" {
					break
				}
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%s by %d: %v, want %s", what, limit, got, tc.want)
			}
		}
	}
}

// Ensure that each way to break the two indexes is named.
func TestVerify_NamesBrokenPageIndexes(t *testing.T) {
	for what, tc := range map[string]struct {
		break_ func(c cut)
		says   string
	}{
		"an entry that is not filed":        {func(c cut) { c.drop("run_entries", string(key("api", 2))) }, "filings of"},
		"a filing under another run":        {func(c cut) { c.put("run_entries", append(key("api", 9), be(1)...), nil) }, "is not of run api-9"},
		"a filing of no entry":              {func(c cut) { c.put("run_entries", append(key("api", 1), be(99)...), nil) }, "notification 99 is not of run api-1"},
		"a filing that cannot be read":      {func(c cut) { c.put("run_entries", []byte("api"), nil) }, "run_entries:"},
		"a pull request that is not filed":  {func(c cut) { c.drop("kinds", "api\x00p") }, "0 filings of 1 runs"},
		"a branch's run filed as a tag":     {func(c cut) { c.put("kinds", append([]byte("api\x00t"), be(1)...), be(1)) }, "run api-1 is filed as"},
		"a pull request filed as a tag too": {func(c cut) { c.put("kinds", append([]byte("api\x00t"), be(3)...), be(3)) }, "run api-3 is filed as"},
		"a filing with another order":       {func(c cut) { c.put("kinds", append([]byte("api\x00p"), be(3)...), be(9)) }, "run api-3 is filed as"},
		"a kind of no run":                  {func(c cut) { c.put("kinds", append([]byte("api\x00t"), be(99)...), be(99)) }, "has no such run"},
		"a kind that cannot be read":        {func(c cut) { c.put("kinds", []byte("api"), be(99)) }, "kinds:"},
	} {
		t.Run(what, func(t *testing.T) {
			bad := dbPath(t)
			copyFile(t, mustFullFile(t), bad)
			surgery(t, bad, func(tx *bolt.Tx) error { tc.break_(cut{t, tx}); return nil })
			broken, err := store.VerifyFile(t.Context(), bad)
			mustNil(t, err)
			if !slices.ContainsFunc(broken, func(s string) bool { return strings.Contains(s, tc.says) }) {
				t.Fatalf("nothing says %q: %q", tc.says, broken)
			}
		})
	}
}

func TestFindDelivery(t *testing.T) {
	s := storetest.MustOpen(t)
	const uuid = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	through := func(integration string, installation int64) func(*store.Acceptance) {
		return func(a *store.Acceptance) {
			a.Delivery.Integration, a.Delivery.Installation = integration, installation
			a.Drafts, a.Reason, a.Projects = nil, "x", nil
		}
	}
	for _, id := range []string{uuid, "d/1 %", "other"} {
		mustAccept(t, s, pushed(id, "api", "main", 0, 1, through("github", 1)))
	}
	mustAccept(t, s, pushed(uuid, "api", "main", 0, 2, through("github", 0)))
	mustAccept(t, s, pushed(uuid, "api", "main", 0, 3, through("gitea", 0)))
	for id, want := range map[string]string{
		uuid: "gitea/-/" + uuid + " github/-/" + uuid + " github/1/" + uuid, "d/1 %": "github/1/d/1 %", "none": "", "": "", "\x00": "",
	} {
		list, err := s.FindDelivery(id, 10)
		mustNil(t, err)
		var got []string
		for _, r := range list {
			got = append(got, r.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", id, got, want)
		}
	}
	if list, err := s.FindDelivery(uuid, 2); err != nil || len(list) != 2 {
		t.Errorf("at most two: %v %v", list, err)
	}
	for in, want := range map[string]string{"github": "github/-/" + uuid, "gitea": "gitea/-/" + uuid, "git": "", "githu": ""} {
		if r, ok, err := s.LatestReceipt(in); err != nil || ok != (want != "") || r.ID != want {
			t.Errorf("latest of %s: %q %t %v", in, r.ID, ok, err)
		}
	}
}

// Ensure that those that wait come in the order in which they were made, over
// states and projects, and are counted.
func TestWaitingAndAttention(t *testing.T) {
	s := storetest.MustOpen(t)
	if p, err := s.Progress(); err != nil || p != (store.Progress{}) {
		t.Errorf("progress of nothing: %+v %v", p, err)
	}
	none := withPolicy(ci.SupersedeNone)
	mustPush(t, s, "d-1", 0, 1, none)
	mustAccept(t, s, pushed("d-2", "web", "main", 0, 2, none))
	mustAccept(t, s, pushed("d-3", "api", "patch", 1, 3, fromFork(5)))
	mustRequest(t, s, manualRun("k-1", "main", 0)) // preparing
	mustAccept(t, s, pushed("d-5", "web", "dev", 0, 5, none))
	wait := func(limit int) string {
		list, more, err := s.Waiting(limit)
		mustNil(t, err)
		return strings.Join(idsOf(list), " ") + fmt.Sprint(" +", more)
	}
	if got := wait(10); got != "api-1 web-1 api-2 api-3 web-2 +0" {
		t.Errorf("waiting: %s", got)
	}
	if got := wait(2); got != "api-1 web-1 +3" {
		t.Errorf("two of them: %s", got)
	}
	if n, err := s.Ahead(mustRun(t, s, "web-2")); err != nil || n != 2 {
		t.Errorf("ahead of web-2: %d %v", n, err)
	}
	mustFinish(t, s, mustClaim(t, s, "api-1"), ci.Succeeded)
	if got := wait(10); got != "web-1 api-2 api-3 web-2 +0" {
		t.Errorf("waiting: %s", got)
	}
	dead := entriesOf(t, s, "web-1", "")[0]
	mustEnd(t, s, mustBegin(t, s, dead.ID), store.AttemptResult{State: ci.OutboxDead, Error: "404"})
	if a, err := s.Attention(); err != nil || a != (store.Attention{Held: 1, Dead: 1}) {
		t.Errorf("attention: %+v %v", a, err)
	}
	if p, err := s.Progress(); err != nil || p != (store.Progress{Delivered: true, Started: true, Succeeded: true}) {
		t.Errorf("progress: %+v %v", p, err)
	}
	if n := s.OpenReads(); n != 0 {
		t.Errorf("%d reads are open", n)
	}
}

// Ensure that decisions are listed by kind, of all runs and of one, page by page.
func TestDecisionsOfKind(t *testing.T) {
	s := storetest.MustOpen(t)
	none := withPolicy(ci.SupersedeNone)
	for i := range 3 {
		run := mustPush(t, s, fmt.Sprint("d-", i), i, i+1, none)
		_, _, err := s.CancelRun(t.Context(), store.Action{Run: run.ID, Key: fmt.Sprint("c-", i), By: operator, Reason: `"kind":"rerun"`})
		mustNil(t, err)
		_, _, err = s.Rerun(t.Context(), action(run.ID, fmt.Sprint("r-", i)))
		mustNil(t, err)
	}
	for what, tc := range map[string]struct {
		run, kind, want string
	}{
		"all of a kind":      {"", ci.DecisionCancelled, "api-5 api-3 api-1"},
		"of a kind on a run": {"api-3", ci.DecisionRerun, "api-4"},
		"a kind of nothing":  {"", "no\"thing", ""},
		"a kind of none":     {"", ci.DecisionApproved, ""},
	} {
		var got []string
		for p := (store.Page{Limit: 1}); ; {
			list, next, err := s.DecisionsOfKind(tc.run, tc.kind, p)
			mustNil(t, err)
			for _, d := range list {
				got = append(got, d.Run)
			}
			if p.Cursor = next; next == "" {
				break
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", what, got, tc.want)
		}
	}
}
