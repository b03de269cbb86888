package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

// commitFile makes a commit of one file beside the name, with a git mode: a
// regular file, a symbolic link to what content says, or a directory with a
// file of that content. "" makes a commit without it.
func (r *repository) commitFile(ref, path, kind, content string) string {
	r.t.Helper()
	tree := "100644 blob " + r.git("name\n", "hash-object", "-w", "--stdin") + "\tname\n"
	blob := r.git(content, "hash-object", "-w", "--stdin")
	switch kind {
	case "file":
		tree += "100644 blob " + blob + "\t" + path + "\n"
	case "link":
		tree += "120000 blob " + blob + "\t" + path + "\n"
	case "directory":
		tree += "040000 tree " + r.git("100644 blob "+blob+"\tf\n", "mktree") + "\t" + path + "\n"
	}
	commit := r.git("", "commit-tree", r.git(tree, "mktree"), "-m", "a "+kind)
	r.git("", "update-ref", ref, commit)
	return commit
}

// Ensure that each thing that can be wrong with a repository's pipeline file
// is a failed run whose reason says where and how to mend it, and a status
// that begins with the place; and that a sound one runs.
func TestPipelineFile(t *testing.T) {
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.addProject("api", repo, obj{"pipeline": ".docket.yml", "on": obj{"push": nil, "pull_request": nil}})
		delete(d.config["projects"].([]obj)[0], "steps")
	})
	d.start()
	big := "#" + strings.Repeat("x", pipeline.MaxFile) + "\n"
	for n, tc := range []struct{ kind, content, reason, status string }{
		{"", "", "there is no file .docket.yml in commit ", "failed: there is no file .docket.yml"},
		{"directory", "x", ".docket.yml in commit ", "is a directory, not a file; commit a file there"},
		{"link", "name", "is a symbolic link, which docket does not follow; commit the file itself", "is a symbolic link"},
		{"file", big, fmt.Sprintf("has %d bytes, more than the %d that docket reads; move long scripts", len(big), pipeline.MaxFile), "failed: .docket.yml in commit"},
		{"file", "steps: # caf\xe9\n", ".docket.yml:1:13: not UTF-8; save the file as UTF-8 text\n  1 | steps: # caf\ufffd\n    |             ^", ".docket.yml:1:13: not UTF-8; "},
		{
			"file", "steps:\n  - name: test\n    rum: make\n  - {name: test}\ntimeout: soon\n",
			".docket.yml:3:5: a step has no key \"rum\" (did you mean \"run\"?); it has name, run, deploy\n  3 |     rum: make\n    |     ^\n.docket.yml:4:5: ",
			".docket.yml:2:5: a step has no run; ",
		},
	} {
		ref := fmt.Sprintf("refs/heads/b%d", n)
		commit := repo.commitFile(ref, ".docket.yml", tc.kind, tc.content)
		id := d.mustDeliver(http.StatusAccepted, fmt.Sprintf("d-%d", n), repo.push(ref, "", commit)).Runs[0].ID
		run := d.waitRun(id, ci.Failed)
		if !strings.Contains(run.Reason, tc.reason) || len(run.Steps) != 0 || run.Attempt != 0 {
			t.Errorf("%s %.20q: %d steps, attempt %d, %s", tc.kind, tc.content, len(run.Steps), run.Attempt, run.Reason)
		}
		hub.waitFor(t, commit, id, "failure", tc.status)
		if said := hub.last(commit).Description; utf8.RuneCountInString(said) > 140 || strings.Contains(said, "\n") {
			t.Errorf("told %q", said)
		}
		if n == 5 {
			if !strings.HasPrefix(hub.last(commit).Description, id+" .docket.yml:2:5: ") || strings.Count(run.Reason, "\n.docket.yml:") != 4 {
				t.Errorf("told %q of\n%s", hub.last(commit).Description, run.Reason)
			}
			if out := d.output("runs", "show", id); !strings.Contains(out.out, "\n  3 |     rum: make\n    |     ^\n") {
				t.Errorf("runs show:\n%s", out.out)
			}
		}
	}
	base := repo.commitFile("refs/heads/main", ".docket.yml", "file", "steps: [{name: base, run: 'cat name'}]\n")
	id := d.mustDeliver(http.StatusAccepted, "good", repo.push("refs/heads/main", "", base)).Runs[0].ID
	if run := d.waitRun(id, ci.Succeeded); len(run.Steps) != 1 || run.Steps[0].Name != "base" {
		t.Errorf("%+v", run.Steps)
	}
	theirs := repo.commitFile("refs/pull/5/head", ".docket.yml", "file", "steps: [{name: theirs, run: 'touch $ROOM/taken'}]\n")
	a := d.deliver(delivery{event: ci.EventPullRequest, id: "fork", body: mustMarshal(t, obj{
		"action": "opened", "number": 5,
		"pull_request": obj{
			"number": 5, "title": "Take over", "state": "open", "draft": false,
			"head": obj{"ref": "patch", "sha": theirs, "repo": obj{"id": 1007, "full_name": "stranger/fork", "fork": true}},
			"base": obj{"ref": "main", "sha": base, "repo": obj{"id": repo.id, "full_name": repo.fullName}},
		},
		"repository": obj{"id": repo.id, "full_name": repo.fullName, "default_branch": "main"},
		"sender":     obj{"login": "stranger"},
	})})
	mustReply(d, a, http.StatusAccepted)
	run := d.waitRun(d.runs()[0].ID, ci.Held)
	if !run.Fork || run.Source.Commit != theirs || len(run.Steps) != 1 || run.Steps[0].Name != "base" {
		t.Errorf("the fork's run: %+v", run)
	}
}

// Ensure that check --pipeline finds what a run would find, in check's own
// format, without any configuration.
func TestCheckPipeline(t *testing.T) {
	w := newWorld(t)
	good := w.write("good.yml", "steps:\n  - {name: test, run: make}\n  - {name: deploy, run: ./deploy.sh, deploy: true}\n")
	bad := w.write("bad.yml", "steps:\n  - {name: test}\ntimeout: soon\n")
	link := w.path("link.yml")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path, out, err string
		code           int
	}{
		{good, "good.yml is in order\n  steps  test, deploy\n", "", 0},
		{bad, "", "bad.yml:2:5: a step has no run; give it a shell script, as in: {name: test, run: make test}\n  2 |   - {name: test}\n    |     ^\n" + bad + ":3:10: timeout", 1},
		{link, "", "link.yml: this is a symbolic link, which docket does not follow in a repository; ", 1},
		{w.dir, "", ": this is a directory; ", 1},
		{w.path("none.yml"), "", "none.yml: there is no such file; ", 1},
		{w.write("big.yml", "#"+strings.Repeat("x", pipeline.MaxFile)), "", "big.yml:1:1: the file has over 65536 bytes", 1},
	} {
		got := w.run("check", "--pipeline", tc.path)
		if got.code != tc.code || !strings.Contains(got.out, tc.out) || !strings.Contains(got.err, tc.err) {
			t.Errorf("%s: %d\n%s%s", tc.path, got.code, got.out, got.err)
		}
	}
	if got := w.run("check", "--pipeline", bad); !strings.Contains(got.err, "`docket check --pipeline "+bad+"`") {
		t.Errorf("it says to run something else: %s", got.err)
	}
	got := w.run("check", "--pipeline", bad, "-o", "json")
	if got.code != 1 || !strings.Contains(got.out, `"line": 2`) || !strings.Contains(got.out, `"ok": false`) || got.err != "" {
		t.Errorf("%d\n%s%s", got.code, got.out, got.err)
	}
	if got := w.run("check", "--pipeline", good, "-o", "json"); got.code != 0 || !strings.Contains(got.out, `"faults": []`) || !strings.Contains(got.out, `"deploy"`) {
		t.Errorf("%d\n%s%s", got.code, got.out, got.err)
	}
}
