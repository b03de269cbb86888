package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docket/store/ci"
)

// realPayload is one recorded payload, with what a configuration needs to
// take it.
type realPayload struct {
	file  string // below DOCKET_PAYLOADS
	name  string // of its integration and project
	forge string // whose headers it comes with; "" for GitHub's
	event string
	body  []byte

	Repository   ci.Repository
	Installation struct{ ID int64 }
	Action       string
	Ref          string
	After        string
	Number       int
	PullRequest  struct {
		Head struct{ SHA string }
	} `json:"pull_request"`
}

// realPayloads reads every file below DOCKET_PAYLOADS.
func realPayloads(t *testing.T) (list []*realPayload) {
	t.Helper()
	dir := os.Getenv("DOCKET_PAYLOADS")
	if dir == "" {
		t.Skip("DOCKET_PAYLOADS is unset: set it to a folder of EVENT/NAME.json payloads to run this test")
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		p := &realPayload{}
		if p.file, err = filepath.Rel(dir, path); err != nil {
			return err
		}
		if p.body, err = os.ReadFile(path); err != nil {
			return err
		}
		p.event, _, _ = strings.Cut(p.file, "/")
		if p.event == forgeGitea || p.event == forgeForgejo {
			p.forge = p.event
			p.event, _, _ = strings.Cut(strings.TrimSuffix(filepath.Base(p.file), ".json"), "-")
		}
		p.name = strings.ReplaceAll(strings.TrimSuffix(p.file, ".json"), "/", ".")
		list = append(list, p)
		return json.Unmarshal(p.body, p)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("only %d payloads lie below %s", len(list), dir)
	}
	return list
}

// addPayload configures an integration and a project for a payload: with its
// installation where it has one.
func (d *daemon) addPayload(p *realPayload, hub *fakeGitHub, cloneURL string, steps ...obj) {
	var installations []int64
	if p.Installation.ID != 0 {
		installations = []int64{p.Installation.ID}
	}
	in := integration(p.name, hub, installations...)
	if p.forge != "" {
		in["provider"], in["api_url"] = "gitea", "https://git.example.org/api/v1/"
	}
	d.config["integrations"] = append(d.config["integrations"].([]obj), in)
	repo := &repository{fullName: p.Repository.FullName, dir: cloneURL}
	if repo.fullName == "" {
		repo.fullName = "acme/none"
	}
	d.addProject(p.name, repo, obj{
		"integration": p.name,
		"on": obj{
			"push": obj{"branches": []string{"**"}, "tags": []string{"**"}}, "pull_request": obj{},
			"merge_group": obj{}, "release": obj{}, "dispatch": obj{},
		},
	}, steps...)
}

// Ensure that every real payload, and every shape that none of them has, gets
// a receipt with a run or a reason and its commit the status, those that stand
// in testdata/payloads.golden, and can be read back as it came. With
// DOCKET_UPDATE_GOLDEN set the file is written instead.
func TestEveryRealPayload(t *testing.T) {
	t.Parallel()
	list := realPayloads(t)
	hub := newFakeGitHub(t)
	repo := newRepository(t, "acme/hold", 1000)
	tip := repo.commit("refs/heads/main")
	for _, ref := range []string{"refs/heads/master", "refs/tags/0.3.0", "refs/tags/v0.0.1"} { // that are resolved
		repo.git("", "update-ref", ref, tip)
	}
	list = append(list, madePayloads(t, list, tip)...)
	d := newDaemon(t, hub, func(d *daemon) {
		d.config["limits"].(obj)["concurrent_runs"] = 1
		d.addProject("hold", repo, nil, waitStep("work"))
		for _, p := range list {
			if p.forge == "" {
				d.addPayload(p, hub, repo.dir)
			} else {
				d.addPayload(p, nil, repo.dir)
			}
		}
	})
	d.start()
	d.mustStart("hold", "K", obj{"commit": tip}) // keeps the only slot
	d.waitStarted("work", "hold-1")

	var lines []string
	for i, p := range list {
		lines = append(lines, d.became(p, fmt.Sprintf("id/%d?%%", i)))
	}
	d.waitSettled()
	var got strings.Builder
	for i, p := range list {
		got.WriteString(strings.ReplaceAll(lines[i], tip, "(tip)"))
		for _, s := range hub.on("") {
			if strings.HasPrefix(s.Description, p.name+"-1 ") {
				fmt.Fprintf(&got, "    %s %s: %s\n", s.Context, s.State, s.Description)
			}
		}
	}
	mustBeGolden(t, "payloads.golden", got.String())
}

// became delivers a payload and says what became of it.
func (d *daemon) became(p *realPayload, id string) string {
	d.t.Helper()
	a := d.deliver(delivery{integration: p.name, forge: p.forge, event: p.event, id: id, body: p.body})
	if a.status/100 != 2 {
		d.t.Errorf("%s: answered %v", p.file, a)
		return fmt.Sprintf("%s %d\n", p.file, a.status)
	}
	reply := mustReply(d, a, a.status)
	rec := d.receiptOf(p, reply)
	if rec.Reason != reply.Reason || (reply.Reason == "") != (len(reply.Runs) == 1) {
		d.t.Errorf("%s: answered %v, but the receipt is %+v", p.file, a, rec)
	}
	said := fmt.Sprintf("%s %d %s", p.file, a.status, reply.Outcome)
	if reply.Reason != "" {
		return said + ": " + reply.Reason + "\n"
	}
	var run ci.Run
	eventually(d.t, "the run of "+p.file+" is prepared", func() bool {
		run = d.run(reply.Runs[0].ID)
		return run.State != ci.Preparing
	})
	return said + fmt.Sprintf(": %s %s %s branch=%q tag=%q commit=%s fork=%t\n",
		run.State, run.Cause.Event, run.Source.Ref, run.Source.Branch, run.Source.Tag, run.Source.Commit, run.Fork)
}

// receiptOf reads the receipt of a reply, and its body, which must be the
// bytes that were sent.
func (d *daemon) receiptOf(p *realPayload, reply hookReply) ci.Receipt {
	d.t.Helper()
	id, err := ci.ParseReceiptID(reply.Receipt)
	if err != nil {
		d.t.Fatal(err)
	}
	a := d.call("GET", apiPrefix+"/receipts/"+id.Path()+"/body", "", nil)
	if a.status != http.StatusOK || !bytes.Equal(a.body, p.body) {
		d.t.Errorf("%s: its body comes back with %d and %d bytes, want its %d", p.file, a.status, len(a.body), len(p.body))
	}
	return get[ci.Receipt](d, "/receipts/"+id.Path())
}

func mustBeGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("DOCKET_UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, path, got)
		return
	}
	want := strings.Split(mustRead(t, path), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(want) || line != want[i] {
			t.Errorf("%s line %d:\n got %s\nwant %s", path, i+1, line, strings.Join(want[i:min(i+1, len(want))], ""))
		}
	}
	if n := strings.Count(got, "\n") + 1; n != len(want) {
		t.Errorf("%d lines, %s has %d", n, path, len(want))
	}
}

// carried is a real payload whose commit was put into a repository of ours.
type carried struct {
	*realPayload
	repo   *repository
	commit string
	fork   bool
}

// carry makes a repository that has the payload's ref, at a commit of its own,
// and puts that commit's id into the payload in place of the recorded one.
// The ids and names of repositories stay as they are. It returns nil for a
// payload that starts nothing.
func carry(t *testing.T, p *realPayload) *carried {
	t.Helper()
	recorded, ref := p.After, p.Ref
	if p.event == ci.EventPullRequest {
		recorded, ref = p.PullRequest.Head.SHA, fmt.Sprintf("refs/pull/%d/head", p.Number)
	}
	if ci.IsZeroCommit(recorded) || p.event == ci.EventPullRequest && !strings.HasPrefix(p.Action, "synchronize") && p.Action != "opened" {
		return nil
	}
	repo := newRepository(t, p.Repository.FullName, p.Repository.ID)
	repo.label = p.name
	c := &carried{realPayload: p, repo: repo, fork: strings.Contains(p.file, "fork") && p.event == ci.EventPullRequest}
	c.commit = repo.commit(ref, repo.commit("refs/heads/somewhere-else"))
	p.body = bytes.ReplaceAll(p.body, []byte(recorded), []byte(c.commit))
	return c
}

// annotated turns the push of a tag into one of an annotated tag: the payload
// names the tag's own object, and the commit only as the head.
func annotated(t *testing.T, p *realPayload) *carried {
	t.Helper()
	tag := *p
	tag.name += ".annotated"
	c := carry(t, &tag)
	c.repo.git("", "tag", "--force", "--annotate", "--message=a release", strings.TrimPrefix(p.Ref, "refs/tags/"), c.commit)
	object := c.repo.git("", "rev-parse", p.Ref)
	after := regexp.MustCompile(`("after": *")` + c.commit)
	c.body = after.ReplaceAll(c.body, []byte("${1}"+object))
	if object == c.commit || !bytes.Contains(c.body, []byte(object)) {
		t.Fatalf("the tag's object %s is not in the payload", object)
	}
	return c
}

// Ensure that every real push and pull request that asks for work gets it
// done, from the signed delivery to the last status on its commit.
func TestRealPayloadsRunToSuccess(t *testing.T) {
	t.Parallel()
	var list []*carried
	for _, p := range realPayloads(t) {
		if folder := filepath.Dir(p.file); folder != ci.EventPush && folder != ci.EventPullRequest {
			continue
		}
		original := *p
		if c := carry(t, p); c != nil {
			list = append(list, c)
		}
		if p.file == "push/tag.json" {
			list = append(list, annotated(t, &original))
		}
	}
	if len(list) < 15 {
		t.Fatalf("only %d payloads ask for work", len(list))
	}
	hub := newFakeGitHub(t)
	d := newDaemon(t, hub, func(d *daemon) {
		d.config["limits"].(obj)["concurrent_runs"] = len(list)
		for _, c := range list {
			d.addPayload(c.realPayload, hub, c.repo.dir,
				step("look", `test "$(git rev-parse HEAD)" = "$DOCKET_COMMIT"; test -z "$(git status --porcelain)"
cat name; echo; echo "$DOCKET_EVENT $DOCKET_REF"; cat "$DOCKET_EVENT_FILE" >"$ROOM/event.$DOCKET_RUN"`),
				waitStep("work"))
		}
	})
	d.start()
	for i, c := range list {
		a := d.deliver(delivery{integration: c.name, event: c.event, id: fmt.Sprintf("d-%d", i), body: c.body})
		reply := mustReply(d, a, http.StatusAccepted)
		if want := c.name + "-1"; len(reply.Runs) != 1 || reply.Runs[0].ID != want {
			t.Fatalf("%s: answered %v, want the run %s", c.name, a, want)
		}
	}
	for _, c := range list {
		d.mustSucceed(hub, c)
	}
	ours := map[string]bool{}
	for _, c := range list {
		ours[c.commit] = true
	}
	for _, s := range hub.on("") {
		if !ours[s.Commit] {
			t.Errorf("a status on a commit that no run is of: %+v", s)
		}
	}
}

// mustSucceed follows a payload's run to its end and to what GitHub was told.
func (d *daemon) mustSucceed(hub *fakeGitHub, c *carried) {
	d.t.Helper()
	id := c.name + "-1"
	said := func(state, text string) status {
		context := "docket/" + c.name
		if c.event == ci.EventPullRequest {
			context += "/pr"
		}
		return status{c.repo.fullName, c.commit, context, state, id + " " + text, "http://docket.test/runs/" + id}
	}
	want := []status{said("pending", "is queued"), said("pending", "is running"), said("success", "succeeded")}
	if c.fork {
		d.waitRun(id, ci.Held)
		hub.waitFor(d.t, c.commit, id, "pending", "waits for approval")
		d.mustAct(http.StatusOK, id, "approve")
		want = append([]status{said("pending", "waits for approval")}, want...)
	}
	d.waitStarted("work", id)
	hub.waitFor(d.t, c.commit, id, "pending", "is running") // else a quick run's end would overtake it
	d.open(id)
	run := d.waitRun(id, ci.Succeeded)
	hub.waitFor(d.t, c.commit, id, "success", "succeeded")
	if got := hub.on(c.commit); !slices.Equal(got, want) {
		d.t.Errorf("%s: GitHub was told\n%+v, want\n%+v", c.file, got, want)
	}
	if run.Source.Commit != c.commit || run.Fork != c.fork || run.Attempt != 1 {
		d.t.Errorf("%s: the run is %+v", c.file, run)
	}
	log := d.call("GET", apiPrefix+"/runs/"+id+"/logs?step=look", "", nil)
	if want := fmt.Sprintf("commit 2 of %s\n%s %s\n", c.name, c.event, run.Source.Ref); string(log.body) != want {
		d.t.Errorf("%s: the log is %q, want %q", c.file, log.body, want)
	}
	if event := mustRead(d.t, filepath.Join(d.room, "event."+id)); event != string(c.body) {
		d.t.Errorf("%s: the step got another payload of %d bytes, want %d", c.file, len(event), len(c.body))
	}
}
