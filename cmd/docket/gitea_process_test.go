package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that every real push and pull request of Gitea and Forgejo gets its
// work done, from the signed delivery to the last status on its commit.
func TestGiteasRealPayloadsRunToSuccess(t *testing.T) {
	t.Parallel()
	forge := newFakeGitea(t)
	var list []*carried
	for _, p := range realPayloads(t) {
		if p.forge == "" || p.event != ci.EventPush && p.event != ci.EventPullRequest {
			continue
		}
		c := carry(t, p)
		forge.knows(c.repo, c.commit)
		list = append(list, c)
	}
	if len(list) != 5 {
		t.Fatalf("%d payloads ask for work, want 5", len(list))
	}
	d := newDaemon(t, nil, func(d *daemon) {
		mustWrite(t, filepath.Join(d.dir, "gitea.token"), giteaToken+"\n")
		d.config["limits"].(obj)["concurrent_runs"] = len(list)
		integrations := []obj{}
		for _, c := range list {
			integrations = append(integrations, forge.integration(c.name))
			d.addPayload(c.realPayload, nil, c.repo.dir,
				step("look", `test "$(git rev-parse HEAD)" = "$DOCKET_COMMIT"
cat name; echo; echo "$DOCKET_EVENT $DOCKET_REF"; cat "$DOCKET_EVENT_FILE" >"$ROOM/event.$DOCKET_RUN"`),
				waitStep("work"))
		}
		d.config["integrations"] = integrations
	})
	d.start()
	for i, c := range list {
		reply := mustReply(d, d.deliver(delivery{integration: c.name, forge: c.forge, event: c.event, id: fmt.Sprintf("d-%d", i), body: c.body}), http.StatusAccepted)
		if len(reply.Runs) != 1 {
			t.Fatalf("%s: answered %+v", c.name, reply)
		}
	}
	for _, c := range list {
		d.mustSucceed(&forge.fakeGitHub, c)
	}
}

// teahouse is a docket with one project of a Gitea's repository.
type teahouse struct {
	*daemon
	forge *fakeGitea
	repo  *repository
	n     int
}

func newTeahouse(t *testing.T) *teahouse {
	t.Helper()
	h := &teahouse{forge: newFakeGitea(t), repo: newRepository(t, "acme/api", 7)}
	h.daemon = newDaemon(t, nil, func(d *daemon) {
		mustWrite(t, filepath.Join(d.dir, "gitea.token"), giteaToken+"\n")
		mustWrite(t, filepath.Join(d.dir, "step.secret"), "not for strangers\n")
		d.config["limits"].(obj)["concurrent_runs"] = 1
		d.config["integrations"] = []obj{h.forge.integration("tea")}
		d.addProject("api", h.repo, obj{
			"integration": "tea", "default_branch": "main", "secrets": obj{"PASSWORD": obj{"file": "step.secret"}},
			"on": obj{
				"push":         obj{"branches": []string{"**"}, "tags": []string{"v*"}},
				"pull_request": obj{"skip": obj{"labels": []string{"no-ci"}}},
				"release":      obj{"types": []string{"published"}},
			},
		}, step("look", `cat name; echo; echo "${PASSWORD:-no password}"`), waitStep("work"))
	})
	h.start()
	return h
}

// commit makes a commit that the forge knows too.
func (h *teahouse) commit(ref string, parents ...string) string {
	c := h.repo.commit(ref, parents...)
	h.forge.knows(h.repo, c)
	return c
}

// send delivers an event of Gitea's.
func (h *teahouse) send(event string, payload obj) hookReply {
	h.t.Helper()
	return h.sendAs(forgeGitea, event, payload)
}

func (h *teahouse) sendAs(forge, event string, payload obj) hookReply {
	h.t.Helper()
	h.n++
	payload["repository"] = obj{"id": h.repo.id, "full_name": h.repo.fullName, "updated_at": "2022-03-09T16:23:53+09:00"}
	payload["sender"] = obj{"login": "gopher"}
	w := delivery{integration: "tea", forge: forge, event: event, id: fmt.Sprintf("tea-%d", h.n), body: mustMarshal(h.t, payload)}
	reply := mustReply(h.daemon, h.deliver(w), http.StatusAccepted)
	again := mustReply(h.daemon, h.deliver(w), http.StatusOK)
	if !again.Duplicate || again.Receipt != reply.Receipt || len(again.Runs) != len(reply.Runs) {
		h.t.Errorf("%s again: %+v, first %+v", event, again, reply)
	}
	return reply
}

// starts delivers what must start one run.
func (h *teahouse) starts(run, event string, payload obj) {
	h.t.Helper()
	if reply := h.send(event, payload); len(reply.Runs) != 1 || reply.Runs[0].ID != run {
		h.t.Fatalf("%s: answered %+v, want the run %s", event, reply, run)
	}
}

// startsNothing delivers what must be ignored for a reason.
func (h *teahouse) startsNothing(reason, event string, payload obj) {
	h.t.Helper()
	if reply := h.send(event, payload); len(reply.Runs) != 0 || !strings.Contains(reply.Reason, reason) {
		h.t.Fatalf("%s: answered %+v, want nothing because of %q", event, reply, reason)
	}
}

// movedTo is a push's payload as Gitea has it: whether the ref is new, gone or
// was forced it does not say.
func movedTo(ref, before, after string) obj {
	zero := strings.Repeat("0", 40)
	if before == "" {
		before = zero
	}
	if after == "" {
		after = zero
	}
	return obj{"ref": ref, "before": before, "after": after, "commits": []obj{}, "total_commits": 0, "head_commit": nil, "pusher": obj{"login": "gopher"}}
}

func (h *teahouse) pull(action string, number int, head obj, labels ...string) obj {
	list := []obj{}
	for _, l := range labels {
		list = append(list, obj{"id": 1, "name": l})
	}
	return obj{
		"action": action, "number": number, "review": nil,
		"pull_request": obj{
			"number": number, "title": "Change it", "state": "open", "labels": list, "head": head,
			"base": obj{"label": "main", "ref": "main", "repo_id": h.repo.id}, "merge_base": strings.Repeat("1", 40), "merge_commit_sha": nil,
		},
	}
}

// Ensure that Gitea's events start and end runs as GitHub's do, each in its own
// shape, and that the last status of every commit is a final one.
func TestGiteasEventsStartAndEndRuns(t *testing.T) {
	t.Parallel()
	h := newTeahouse(t)
	main := h.commit("refs/heads/main")
	if reply := h.sendAs(forgeForgejoOnly, ci.EventPush, movedTo("refs/heads/main", "", main)); len(reply.Runs) != 1 {
		t.Fatalf("answered %+v", reply)
	}
	h.waitStarted("work", "api-1") // which keeps the only slot

	// A branch is made, pushed and gone again: Gitea says that once, by delete.
	topic := h.commit("refs/heads/topic", main)
	h.startsNothing("create starts nothing", ci.EventCreate, obj{"ref": "topic", "ref_type": "branch", "sha": topic})
	h.starts("api-2", ci.EventPush, movedTo("refs/heads/topic", "", topic))
	h.startsNothing("refs/heads/topic was deleted", ci.EventDelete, obj{"ref": "topic", "ref_type": "branch", "pusher_type": "user"})
	h.waitRun("api-2", ci.Cancelled)
	h.forge.waitFor(t, topic, "api-2", "error", "the branch topic was deleted")

	// A tag is told of twice when it is made, and when it is gone.
	tagged := h.commit("refs/tags/v1", main)
	h.starts("api-3", ci.EventPush, movedTo("refs/tags/v1", "", tagged))
	h.startsNothing("create starts nothing", ci.EventCreate, obj{"ref": "v1", "ref_type": "tag", "sha": tagged})
	h.startsNothing("refs/tags/v0 was deleted", ci.EventPush, movedTo("refs/tags/v0", main, ""))
	h.startsNothing("refs/tags/v0 was deleted", ci.EventDelete, obj{"ref": "v0", "ref_type": "tag"})

	// A pull request of our own, until a label takes it out.
	ours := h.commit("refs/pull/4/head", main)
	head := obj{"label": "topic", "ref": "topic", "sha": ours, "repo_id": h.repo.id}
	h.starts("api-4", ci.EventPullRequest, h.pull("opened", 4, head))
	h.startsNothing(`"labeled" starts nothing`, ci.EventPullRequest, h.pull("label_updated", 4, head, "bug"))
	h.startsNothing(`the label "no-ci"`, ci.EventPullRequest, h.pull("label_updated", 4, head, "bug", "no-ci"))
	h.waitRun("api-4", ci.Cancelled)
	h.forge.waitFor(t, ours, "api-4", "error", `has the label "no-ci"`)

	// One that anybody may push, though it names our repository as its own.
	stranger := h.commit("refs/pull/5/head", main)
	h.starts("api-5", ci.EventPullRequest, h.pull("synchronized", 5, obj{"label": "", "ref": "refs/pull/5/head", "sha": stranger, "repo_id": h.repo.id}))
	h.waitRun("api-5", ci.Held)
	h.mustAct(http.StatusOK, "api-5", "approve")

	h.startsNothing("release action", ci.EventRelease, obj{"action": "updated", "release": obj{"tag_name": "v1"}})
	h.starts("api-6", ci.EventRelease, obj{"action": "published", "release": obj{"tag_name": "v1", "name": "One", "target_commitish": "main", "draft": false}})
	h.startsNothing(`event "pull_request_approved" starts nothing`, "pull_request_approved", h.pull("reviewed", 5, head))

	h.open("all")
	for _, run := range []string{"api-1", "api-3", "api-5", "api-6"} {
		h.waitRun(run, ci.Succeeded)
	}
	for run, want := range map[string]string{
		"api-3": "commit 3 of acme/api\n***\n", "api-5": "commit 5 of acme/api\nno password\n", "api-6": "commit 3 of acme/api\n***\n",
	} {
		if log := h.call("GET", apiPrefix+"/runs/"+run+"/logs?step=look", "", nil); string(log.body) != want {
			t.Errorf("%s said %q, want %q", run, log.body, want)
		}
	}
	h.waitSettled()
	for commit, context := range map[string]string{main: "docket/api", topic: "docket/api", tagged: "docket/api", ours: "docket/api/pr", stranger: "docket/api/pr"} {
		s := h.forge.last(commit)
		if s.State == "pending" || s.State == "" || s.Context != context || s.Repository != "acme/api" {
			t.Errorf("the last status of %s is %+v", commit, s)
		}
	}
}

// Ensure that a forge which asks to be left alone is, and is told afterwards,
// and that what it refuses for good waits for a person.
func TestGiteaAsksForPatience(t *testing.T) {
	t.Parallel()
	h := newTeahouse(t)
	h.troubled = true // what is given up is logged as a fault
	h.forge.script = []fakeAnswer{{status: http.StatusTooManyRequests, header: map[string]string{"Retry-After": "1"}, body: "slow down"}}
	h.open("all")
	main := h.commit("refs/heads/main")
	h.starts("api-1", ci.EventPush, movedTo("refs/heads/main", "", main))
	h.forge.waitFor(t, main, "api-1", "success", "succeeded")

	h.forge.mu.Lock()
	h.forge.script = []fakeAnswer{{status: http.StatusForbidden, body: "token does not have at least one of required scope(s): [write:repository]"}}
	h.forge.mu.Unlock()
	// Test Delivery sends a push that moves nothing.
	next := h.commit("refs/heads/main", main)
	h.starts("api-2", ci.EventPush, movedTo("refs/heads/main", next, next))
	h.waitRun("api-2", ci.Succeeded)
	dead := 0
	for _, e := range h.waitSettled() {
		if e.State != ci.OutboxDead {
			continue
		}
		if dead++; e.Kind != ci.OutboxGiteaStatus || !strings.Contains(e.LastError, "write:repository") {
			t.Errorf("entry %+v", e)
		}
	}
	if dead != 1 {
		t.Errorf("%d entries were given up, want the one that was refused", dead)
	}
}
