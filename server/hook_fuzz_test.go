package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"docket/server"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that no delivery is taken whose bytes are not signed, that one that
// is answered with 2xx lies on disk byte for byte, and that none is docket's
// own fault.
func FuzzHook(f *testing.F) {
	st := storetest.MustOpen(f)
	cfg := mustConfig(func(c *ci.Config) {
		c.Integrations = append(c.Integrations, ci.Integration{
			Name: "gitea", Provider: ci.ProviderGitea, APIURL: "https://git.example.org/api/v1/",
			WebhookSecrets: []ci.Secret{ci.NewSecret("first", hookSecret)},
		})
	})
	h := server.New(server.Options{Store: st, Config: func() *ci.Config { return cfg }, Pages: renderer()}).Handler(server.PartHooks)
	for i, body := range []string{
		mainPush(), pushBody("refs/heads/main", commitA, zeros), `{}`, `[]`, "\ufeff{}", `{"zen":"x"}`, `{"repository":{"id":1,"full_name":"a/b"}}`, "{", "\xff",
		`{"action":"opened","pull_request":{"number":1,"head":{"sha":"` + commitA + `","ref":"x","repo":{"id":2}},"base":{"ref":"main"}},"repository":{"id":186853002,"full_name":"acme/api"}}`,
		"payload=" + url.QueryEscape(mainPush()), "payload=%zz", "payload=1&payload=2",
	} {
		f.Add(uint8(i), true, i%3 == 0, "push", "d-"+string(rune('a'+i)), []byte(body))
		f.Add(uint8(i), i%2 == 0, i >= 10, "pull_request", "d/%2F?", []byte(body))
	}
	f.Fuzz(func(t *testing.T, bits uint8, signed, form bool, event, delivery string, body []byte) {
		r := hookRequest(bits, signed, form, event, delivery, body)
		before := newestReceipt(t, st)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch code := w.Code; {
		case code == 200 || code == 202:
			var got hookAnswer
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || !signed {
				t.Fatalf("%d %s, signed %t: %v", code, w.Body, signed, err)
			}
			id, err := ci.ParseReceiptID(got.Receipt)
			if err != nil || id.Delivery != delivery {
				t.Fatalf("receipt %q of %q: %v", got.Receipt, delivery, err)
			}
			if _, stored, err := st.ReceiptBody(id); err != nil || !bytes.Equal(stored, body) {
				t.Fatalf("%q is on disk as %q, %v", body, stored, err)
			}
			for _, run := range got.Runs {
				if _, err := st.Run(run.ID); err != nil {
					t.Fatal(err)
				}
			}
		case code == 400 || code == 401 || code == 403 || code == 409 || code == 413 || code == 415 || code == 429:
			if !signed && code != 401 && code != 413 && code != 429 {
				t.Fatalf("%d before its signature: %s", code, w.Body)
			}
			if after := newestReceipt(t, st); after != before {
				t.Fatalf("%d, and the receipt %s is new", code, after)
			}
			if !json.Valid(w.Body.Bytes()) || bytes.Contains(w.Body.Bytes(), []byte(hookSecret)) {
				t.Fatalf("%d %q", code, w.Body)
			}
		default:
			t.Fatalf("%d %s", code, w.Body)
		}
	})
}

// hookRequest is a delivery to one of two integrations, as both providers mark
// theirs.
func hookRequest(bits uint8, signed, form bool, event, delivery string, body []byte) *http.Request {
	to, prefix, signature := "/hooks/github", "X-Github-", "X-Hub-Signature-256"
	if bits&1 != 0 {
		to, prefix, signature = "/hooks/gitea", "X-Gitea-", "X-Gitea-Signature"
	}
	r := httptest.NewRequest(http.MethodPost, to, bytes.NewReader(body))
	r.Header[prefix+"Event"] = []string{event}
	r.Header[prefix+"Delivery"] = []string{delivery}
	r.Header.Set("Content-Type", "application/json")
	if form {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	sum := sign(hookSecret, string(body))
	if !signed { // of other bytes, or with another secret
		sum = []string{sign(hookSecret, string(body)+" "), sign("k-02", string(body)), sign("", string(body)), "sha256=", ""}[bits/2%5]
	}
	if bits&1 != 0 {
		sum = strings.TrimPrefix(sum, "sha256=")
	}
	r.Header.Set(signature, sum)
	return r
}

func newestReceipt(t *testing.T, st *store.Store) string {
	t.Helper()
	list, _, err := st.Receipts("", store.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return ""
	}
	return list[0].ID
}
