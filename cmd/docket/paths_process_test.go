package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"docket/store/ci"
)

// commitFiles makes a commit of files by their names, whatever bytes they are,
// and points a ref at it.
func (r *repository) commitFiles(ref, parent string, names ...string) string {
	r.t.Helper()
	blob := r.git("x\n", "hash-object", "-w", "--stdin")
	var top strings.Builder
	dirs := map[string]string{}
	for _, name := range names {
		dir, base, nested := strings.Cut(name, "/")
		if nested {
			dirs[dir] += "100644 blob " + blob + "\t" + base + "\x00"
		} else {
			top.WriteString("100644 blob " + blob + "\t" + name + "\x00")
		}
	}
	for dir, entries := range dirs {
		top.WriteString("040000 tree " + r.git(entries, "mktree", "-z") + "\t" + dir + "\x00")
	}
	args := []string{"commit-tree", r.git(top.String(), "mktree", "-z"), "-m", "files"}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	commit := r.git("", args...)
	r.git("", "update-ref", ref, commit)
	return commit
}

// Ensure that paths decide by the bytes of names, that the run or its end says
// which rule decided, and that what a filter stops gets the status that the
// project wants: a success once, and never over a real result.
func TestPathsAreAskedOfGit(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.addProject("api", repo, obj{"on_skip": "report", "default_branch": "main", "on": obj{
			"push":         obj{"paths": []string{"critical/**", "inval*"}},
			"pull_request": obj{"paths_ignore": []string{"docs/**"}},
		}}, step("work", "echo ran"))
	})
	d.start()
	base := repo.commitFiles("refs/heads/main", "", "README")
	n := 0
	send := func(event string, body []byte) string {
		t.Helper()
		n++
		a := d.deliver(delivery{integration: "github", event: event, id: fmt.Sprintf("d-%d", n), body: body})
		reply := mustReply(d, a, http.StatusAccepted)
		if len(reply.Runs) != 1 {
			t.Fatalf("answered %v", a)
		}
		return reply.Runs[0].ID
	}
	branch := func(name string, files ...string) (commit, run string) {
		t.Helper()
		commit = repo.commitFiles("refs/heads/"+name, base, append([]string{"README"}, files...)...)
		return commit, send("push", repo.push("refs/heads/"+name, "", commit))
	}

	commit, id := branch("café", "critical/café.txt")
	d.waitRun(id, ci.Succeeded)
	hub.waitFor(t, commit, id, "success", "succeeded")
	log := d.call("GET", apiPrefix+"/runs/"+id+"/logs?follow=1", "", nil) // to its end
	if !strings.Contains(string(log.body), `the changed file \"critical/café.txt\" matches \"critical/**\" in on.push.paths`) {
		t.Errorf("the log does not say why it ran:\n%s", log.body)
	}
	_, id = branch("bytes", "inval\xff\xfeid")
	d.waitRun(id, ci.Succeeded)

	commit, id = branch("odd", "a \"b\".txt", "tab\there", "x\n::error::y", "-rf", strings.Repeat("n", 255))
	run := d.waitRun(id, ci.Cancelled)
	if want := "skipped: none of the 5 changed files matches on.push.paths [critical/** inval*]"; run.Reason != want || run.Attempt != 0 {
		t.Errorf("it ended with %q, attempt %d; want %q", run.Reason, run.Attempt, want)
	}
	hub.waitFor(t, commit, id, "success", "was skipped: none of the 5 changed files")

	// The same commit as a pull request is another context, and here it runs.
	pull := func(commit string) []byte {
		ref := "refs/pull/3/head"
		repo.git("", "update-ref", ref, commit)
		return mustMarshal(t, obj{
			"action": "opened", "number": 3, "repository": obj{"id": 7, "full_name": "acme/api"}, "sender": obj{"login": "octocat"},
			"pull_request": obj{
				"number": 3, "title": "x", "state": "open", "updated_at": fmt.Sprintf("2026-01-01T00:00:%02dZ", n),
				"head": obj{"ref": "odd", "sha": commit, "repo": obj{"id": 7, "full_name": "acme/api"}},
				"base": obj{"ref": "main", "sha": base, "repo": obj{"id": 7, "full_name": "acme/api"}},
			},
		})
	}
	id = send("pull_request", pull(commit))
	d.waitRun(id, ci.Succeeded)
	docs := repo.commitFiles("refs/heads/docs", base, "README", "docs/a")
	id = send("pull_request", pull(docs))
	if run := d.waitRun(id, ci.Cancelled); run.Reason != `skipped: the only changed file, "docs/a", does not match anything but on.pull_request.paths_ignore [docs/**]` {
		t.Errorf("it ended with %q", run.Reason)
	}
	// A push that lists what it changed needs no git at all.
	next := repo.commitFiles("refs/heads/main", base, "README", "other")
	body := strings.Replace(string(repo.push("refs/heads/main", base, next)), `"message":"Change it"}]`, `"message":"Change it","added":["other"],"modified":[],"removed":[]}]`, 1)
	id = send("push", []byte(body))
	if run := d.run(id); run.State != ci.Cancelled || run.Reason != `skipped: the only changed file, "other", does not match on.push.paths [critical/** inval*]` {
		t.Errorf("it is %s, %q", run.State, run.Reason)
	}
	hub.waitFor(t, next, id, "success", "was skipped")
}
