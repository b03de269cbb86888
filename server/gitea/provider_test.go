package gitea_test

import (
	"net/http"
	"strings"
	"testing"

	"docket/server/gitea"
	"docket/store/ci"
)

func TestIdentify(t *testing.T) {
	const id = "f6266f16-1bf3-46a5-9ea4-602e06ead473"
	forgejo := headers(
		"X-Forgejo-Event", "push", "X-Forgejo-Event-Type", "push", "X-Forgejo-Delivery", id,
		"X-Gitea-Event", "push", "X-Gitea-Event-Type", "push", "X-Gitea-Delivery", id,
		"X-Gogs-Event", "push", "X-Gogs-Delivery", id, "X-GitHub-Event", "push", "X-GitHub-Event-Type", "push", "X-GitHub-Delivery", id)
	with := func(pairs ...string) http.Header {
		h := forgejo.Clone()
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for what, tc := range map[string]struct {
		header http.Header
		event  string // with the id; "" for malformed
		says   string
	}{
		"as Forgejo sends it":             {forgejo, "push", ""},
		"Gitea's names alone":             {headers("X-Gitea-Event", "push", "X-Gitea-Delivery", id), "push", ""},
		"Forgejo's names alone":           {headers("X-Forgejo-Event", "release", "X-Forgejo-Delivery", id), "release", ""},
		"GitHub's names alone":            {headers("X-GitHub-Event", "push", "X-GitHub-Delivery", id), "push", ""},
		"one of each":                     {headers("X-Gitea-Event", "push", "X-GitHub-Delivery", id), "push", ""},
		"Gogs' names alone":               {headers("X-Gogs-Event", "push", "X-Gogs-Delivery", id), "", "X-Gitea-Event is missing"},
		"Gogs' names that differ":         {with("X-Gogs-Event", "create", "X-Gogs-Delivery", "x"), "push", ""},
		"a kind without a word":           {headers("X-Gitea-Event", "", "X-Gitea-Event-Type", "package", "X-GitHub-Event", "", "X-Gitea-Delivery", id), "package", ""},
		"a kind without a word or type":   {headers("X-Gitea-Event", "", "X-Gitea-Delivery", id), "", "X-Gitea-Event-Type is missing"},
		"a kind with an unprintable type": {headers("X-Gitea-Event", "", "X-Gitea-Event-Type", "é", "X-Gitea-Delivery", id), "", "printable"},
		"kinds that differ":               {with("X-GitHub-Event", "create"), "", "X-Forgejo-Event and X-GitHub-Event differ"},
		"kinds of which one is empty":     {with("X-Forgejo-Event", ""), "", "differ"},
		"ids that differ":                 {with("X-GitHub-Delivery", "x"), "", "X-Forgejo-Delivery and X-GitHub-Delivery differ"},
		"an id that is empty":             {with("X-Gitea-Delivery", ""), "", "X-Gitea-Delivery is not 1 to 200"},
		"no id":                           {headers("X-Gitea-Event", "push"), "", "X-Gitea-Delivery is missing"},
		"an id of 10 KB":                  {headers("X-Gitea-Event", "push", "X-Gitea-Delivery", strings.Repeat("x", 10<<10)), "", "200"},
		"a kind given twice":              {headers("X-Gitea-Event", "push", "X-Gitea-Event", "push", "X-Gitea-Delivery", id), "", "2 times"},
	} {
		t.Run(what, func(t *testing.T) {
			event, delivery, err := gitea.Identify(tc.header)
			if tc.event == "" {
				if ci.CodeOf(err) != ci.CodeMalformed || !strings.Contains(ci.MessageOf(err), tc.says) {
					t.Fatalf("Identify = %q, %q, %v; want an error that says %q", event, delivery, err, tc.says)
				}
				return
			}
			if err != nil || event != tc.event || delivery != id {
				t.Fatalf("Identify = %q, %q, %v", event, delivery, err)
			}
		})
	}
}

func TestContentType_NamesGiteasSetting(t *testing.T) {
	_, err := gitea.ContentType(headers("Content-Type", "text/plain"))
	if ci.CodeOf(err) != ci.CodeUnsupportedMedia || !strings.Contains(ci.MessageOf(err), `"POST Content Type" in the webhook's settings on Gitea`) {
		t.Error(err)
	}
}

func TestKnown(t *testing.T) {
	event, id := gitea.Known(headers("X-Gitea-Event", "\x01", "X-Forgejo-Event", "push", "X-GitHub-Delivery", "d"))
	if event != "push" || id != "d" {
		t.Errorf("Known = %q, %q", event, id)
	}
}
