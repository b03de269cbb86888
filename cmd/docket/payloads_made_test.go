package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// madePayloads are the shapes that no recorded payload has, made from those.
// tip is a commit that the repository has.
func madePayloads(t *testing.T, recorded []*realPayload, tip string) (list []*realPayload) {
	t.Helper()
	make := func(name, from string, change func(o obj)) {
		i := slices.IndexFunc(recorded, func(p *realPayload) bool { return p.file == from })
		if i < 0 {
			t.Fatalf("there is no payload %s", from)
		}
		var o obj
		if err := json.Unmarshal(recorded[i].body, &o); err != nil {
			t.Fatal(err)
		}
		change(o)
		list = append(list, madePayload(t, name, recorded[i].event, mustMarshal(t, o)))
	}
	const sha = "3f150d39b92dd50cdd0248f5edea5767c2172584"
	none := func(keys ...string) func(o obj) {
		return func(o obj) {
			o["commits"], o["head_commit"] = []any{}, nil
			for _, k := range keys {
				delete(o, k)
			}
		}
	}
	make("null-head-commit-branch", "push/branch.json", none("deleted", "created", "forced"))
	make("null-head-commit-tag", "push/tag.json", func(o obj) { none("deleted")(o); o["after"] = tip })
	make("deleted-by-its-id-alone", "push/branch-deleted.json", func(o obj) { delete(o, "deleted") })
	make("deleted-by-its-flag-alone", "push/tag-deleted.json", func(o obj) { o["after"] = sha })
	make("commit-in-capitals", "push/branch.json", func(o obj) { o["after"] = strings.ToUpper(sha) })
	for name, ref := range map[string]string{"hash": "refs/heads/fix/#12", "plus": "refs/heads/c++", "umlaut": "refs/heads/größe/日本", "percent": "refs/heads/100%25"} {
		make("ref-with-"+name, "push/branch.json", func(o obj) { o["ref"] = ref })
	}
	make("ref-with-space", "push/branch.json", func(o obj) { o["ref"] = "refs/heads/a b" })
	make("merge-queue-branch", "push/branch.json", func(o obj) { o["ref"] = "refs/heads/gh-readonly-queue/main/pr-1-" + sha })
	many := func(n int) func(o obj) {
		return func(o obj) { o["commits"] = slices.Repeat(o["commits"].([]any), n) }
	}
	make("commits-50", "push/branch.json", many(50))
	make("commits-2048", "push/branch.json", many(2048))
	message := func(s string) func(o obj) {
		return func(o obj) { o["head_commit"].(map[string]any)["message"] = s }
	}
	make("skip-on-line-1", "push/branch.json", message("docs [CI SKIP]"))
	make("skip-on-line-7", "push/branch.json", message("docs\n\n\n\n\n\n[skip ci]"))
	make("skip-on-a-tag", "push/tag.json", message("docs [skip ci]"))
	head := func(repo any) func(o obj) {
		return func(o obj) { o["pull_request"].(map[string]any)["head"].(map[string]any)["repo"] = repo }
	}
	make("deleted-fork", "pull_request/opened-from-fork.json", head(nil))
	make("fork-of-the-same-name", "pull_request/opened.json", head(obj{"id": 5, "full_name": "CODERTOCAT/hello-world", "fork": false}))
	for _, action := range []string{"edited", "labeled", "unlabeled", "converted_to_draft", "auto_merge_enabled"} {
		make("pull-request-"+action, "pull_request/opened.json", func(o obj) { o["action"] = action })
	}
	make("pull-request-into-another-base", "pull_request/opened.json", func(o obj) {
		o["action"], o["changes"] = "edited", obj{"base": obj{"ref": obj{"from": "dev"}, "sha": obj{"from": sha}}}
	})
	make("pull-request-merged", "pull_request/closed.json", func(o obj) { o["pull_request"].(map[string]any)["merged"] = true })
	make("merge-group-destroyed", "merge_group/checks_requested.json", func(o obj) { o["action"], o["reason"] = "destroyed", "dequeued" })
	make("release-of-a-draft", "release/published.json", func(o obj) { o["release"].(map[string]any)["draft"] = true })
	make("release-edited", "release/published.json", func(o obj) { o["action"] = "edited" })
	make("dispatch-to-no-branch", "repository_dispatch/custom.json", func(o obj) { delete(o, "branch") })
	make("repository-null", "push/branch.json", func(o obj) { o["repository"] = nil })
	for name, text := range map[string]string{"object": `{}`, "list": `[]`, "string": `"x"`} {
		for _, event := range []string{"push", "pull_request", "merge_group", "check_run", "release", "installation", "quux"} {
			list = append(list, madePayload(t, "an-empty-"+name+"-as-"+event, event, []byte(text)))
		}
	}
	slices.SortFunc(list, func(a, b *realPayload) int { return strings.Compare(a.file, b.file) })
	return list
}

func madePayload(t *testing.T, name, event string, body []byte) *realPayload {
	t.Helper()
	p := &realPayload{file: "made/" + name + ".json", name: "made." + name, event: event, body: body}
	if body[0] == '{' {
		if err := json.Unmarshal(body, p); err != nil {
			t.Fatal(err)
		}
	}
	return p
}
