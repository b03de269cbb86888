package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"docket/store/ci"
)

const giteaDelivery = "f6266f16-1bf3-46a5-9ea4-602e06ead473"

// ofGitea makes the integration a Gitea's.
func ofGitea(c *ci.Config) {
	in := &c.Integrations[0]
	in.Name, in.Provider, in.APIURL = "forge", ci.ProviderGitea, "https://git.example.org/api/v1/"
	for i := range c.Projects {
		c.Projects[i].Integration = "forge"
	}
}

func bareSign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// giteaPush is a push as Gitea has it: no created, deleted or forced.
func giteaPush() string {
	return `{"ref":"refs/heads/main","before":"` + commitB + `","after":"` + commitA + `","commits":[],"total_commits":1,"head_commit":null,` +
		`"repository":{"id":7,"full_name":"acme/api","updated_at":"2022-03-09T16:23:53+09:00"},"pusher":{"login":"gopher"},"sender":{"login":"gopher"}}`
}

// deliverGitea sends a body with headers, as name, value pairs, and what every
// delivery has.
func (r *rig) deliverGitea(body string, pairs ...string) answer {
	r.t.Helper()
	req := mustRequest(r.t, http.MethodPost, r.url+"/hooks/forge", body)
	for i := 0; i < len(pairs); i += 2 {
		req.Header.Set(pairs[i], pairs[i+1])
	}
	return r.do(req)
}

// asGitea are the headers that Gitea sends with a body.
func asGitea(event, body string) []string {
	sum := bareSign(hookSecret, body)
	return []string{
		"X-Gitea-Event", event, "X-Gitea-Event-Type", event, "X-Gitea-Delivery", giteaDelivery, "X-Gitea-Signature", sum,
		"X-Gogs-Event", event, "X-Gogs-Delivery", giteaDelivery, "X-Gogs-Signature", sum, "X-Hub-Signature", "sha1=" + sum[:40],
		"X-Hub-Signature-256", "sha256=" + sum, "X-GitHub-Event", event, "X-GitHub-Event-Type", event, "X-GitHub-Delivery", giteaDelivery,
	}
}

func TestGiteaDelivery(t *testing.T) {
	r := newRig(t, ofGitea)
	a := r.deliverGitea(giteaPush(), asGitea("push", giteaPush())...)
	got := mustDecode[hookAnswer](t, a)
	if a.status != 202 || got.Outcome != "accepted" || got.Receipt != "forge/-/"+giteaDelivery || len(got.Runs) != 1 {
		t.Fatalf("answer %v", a)
	}
	run := mustDecode[ci.Run](t, r.call(ci.Viewer, "GET", "/runs/api-1", ""))
	if run.Source.Commit != commitA || run.Cause.Actor != "gopher" || run.Source.RepositoryID != 7 {
		t.Errorf("run %+v", run)
	}
	header, body, err := r.store.ReceiptBody(ci.NewReceiptID("forge", 0, giteaDelivery))
	if err != nil || string(body) != giteaPush() {
		t.Fatalf("body %s, %v", body, err)
	}
	for name, want := range map[string]string{
		"X-Gitea-Event": "push", "X-Gitea-Event-Type": "push", "X-Github-Event": "push", "X-Gogs-Event": "",
		"X-Gitea-Signature": "", "X-Hub-Signature-256": "",
	} {
		if header[name] != want {
			t.Errorf("the header %s is kept as %q, want %q", name, header[name], want)
		}
	}
	// The same again, and with the headers of the other names alone.
	for _, pairs := range [][]string{
		asGitea("push", giteaPush()),
		{"X-Forgejo-Event", "push", "X-Forgejo-Delivery", giteaDelivery, "X-Forgejo-Signature", bareSign(hookSecret, giteaPush())},
		{"X-GitHub-Event", "push", "X-GitHub-Delivery", giteaDelivery, "X-Hub-Signature-256", sign(hookSecret, giteaPush())},
	} {
		again := mustDecode[hookAnswer](t, r.deliverGitea(giteaPush(), pairs...))
		if !again.Duplicate || again.Receipt != got.Receipt {
			t.Errorf("%v: %+v", pairs, again)
		}
	}
}

func TestGiteaDelivery_Form(t *testing.T) {
	r := newRig(t, ofGitea)
	pairs := append(asGitea("push", giteaPush()), "Content-Type", "application/x-www-form-urlencoded") // signed over the JSON
	form := url.Values{"payload": {giteaPush()}}.Encode()
	if a := r.deliverGitea(form, pairs...); a.status != 202 || len(mustDecode[hookAnswer](t, a).Runs) != 1 {
		t.Fatalf("answer %v", a)
	}
	a := r.call(ci.Operator, "POST", "/receipts/forge/-/"+giteaDelivery+"/replay", "{}", "Idempotency-Key", "k")
	if rec := mustDecode[ci.Receipt](t, a); a.status != 200 || len(rec.Runs) != 2 {
		t.Errorf("replay: %v", a)
	}
	wantProblem(t, r.deliverGitea(form+"&x=1", pairs...), 401)
}

func TestGiteaRefusals(t *testing.T) {
	body := giteaPush()
	change := func(pairs ...string) []string { return append(asGitea("push", body), pairs...) }
	for what, tt := range map[string]struct {
		pairs  []string
		status int
		reason string
		says   string
	}{
		"unsigned, with GitHub's event alone": {[]string{"X-GitHub-Event", "push", "X-GitHub-Delivery", "d"}, 401, "signature", "Secret"},
		"two signatures that differ":          {change("X-Hub-Signature-256", sign("other", body)), 401, "signature", "differ"},
		"an empty secret at Gitea":            {change("X-Gitea-Signature", "", "X-Hub-Signature-256", "sha256=", "X-Hub-Signature", "sha1="), 401, "signature", "not signed"},
		"two ids that differ":                 {change("X-GitHub-Delivery", "d"), 400, "header", "differ"},
		"two kinds that differ":               {change("X-GitHub-Event", "create"), 400, "header", "differ"},
		"a type of another kind":              {change("Content-Type", "text/plain"), 415, "content_type", "POST Content Type"},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, ofGitea)
			a := r.deliverGitea(body, tt.pairs...)
			if p := wantProblem(t, a, tt.status); !strings.Contains(p.Detail, tt.says) {
				t.Errorf("the refusal says %q, want %q in it", p.Detail, tt.says)
			}
			if tt.status == 401 && a.header.Get("WWW-Authenticate") != "X-Gitea-Signature" {
				t.Errorf("header %v", a.header)
			}
			if n := len(r.receipts()); n != 0 {
				t.Errorf("%d receipts", n)
			}
			metrics := string(r.do(mustRequest(t, "GET", r.url+"/metrics", "")).body)
			if want := `docket_refusals_total{integration="forge",reason="` + tt.reason + `"} 1`; !strings.Contains(metrics, want) {
				t.Errorf("the metrics lack %s", want)
			}
		})
	}
}

// Ensure that an integration takes its own provider's signature alone.
func TestGiteasSignatureIsNoneOfGitHubs(t *testing.T) {
	r := newRig(t)
	body := mainPush()
	req := r.delivery(r.url, "push", "d-1", body)
	req.Header.Del("X-Hub-Signature-256")
	req.Header.Set("X-Gitea-Signature", bareSign(hookSecret, body))
	if p := wantProblem(t, r.do(req), 401); !strings.Contains(p.Detail, "X-Hub-Signature-256 is missing") {
		t.Errorf("detail %q", p.Detail)
	}
}

// Ensure that kinds which Gitea does not name are on record all the same.
func TestGiteaDelivery_OfAKindWithoutAName(t *testing.T) {
	r := newRig(t, ofGitea)
	body := `{"action":"created","repository":{"id":7,"full_name":"acme/api"}}`
	pairs := append(asGitea("package", body), "X-Gitea-Event", "", "X-GitHub-Event", "")
	got := mustDecode[hookAnswer](t, r.deliverGitea(body, pairs...))
	if got.Outcome != "ignored" || !strings.Contains(got.Reason, `"package"`) {
		t.Errorf("%+v", got)
	}
}
