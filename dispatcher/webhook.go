package dispatcher

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"docket/store/ci"
)

// Webhook sends notifications as Standard Webhooks has them
// (https://www.standardwebhooks.com): the entry's id is the message's, the
// same on every attempt, so that a receiver can drop what it knows.
//
// 2xx is sent. 429, 5xx and 403 with Retry-After are tried again; a
// Retry-After, of a second to a day, holds the target. All else is dead.
type Webhook struct {
	Client *http.Client
	Config func() *ci.Config
	Now    func() time.Time
	Agent  string
}

// Send implements Adapter.
func (w *Webhook) Send(ctx context.Context, e ci.OutboxEntry) Result {
	n, missing := configured(w.Config(), e)
	if missing != "" {
		return Result{Outcome: Dead, Detail: missing}
	}
	header, err := w.header(e, n.Secret)
	if err != nil {
		return Result{Outcome: Dead, Detail: e.Target + " cannot be signed for: " + err.Error()}
	}
	address := n.Target
	if !n.URL.IsZero() {
		address = n.URL.Reveal()
	}
	secret := n.Secret.Reveal()
	a, err := post(ctx, w.Client, address, header, e.Payload)
	if err != nil {
		return silence(err, e.Target, secret)
	}
	if a.ok() {
		return Result{Outcome: Sent}.to(a.status)
	}
	return judge(a, e.Target, w.Now(), true, secret).to(a.status)
}

// header returns the request's header. Without a configured secret there is
// no signature: one made with an empty key would only look like one.
func (w *Webhook) header(e ci.OutboxEntry, secret ci.Secret) (http.Header, error) {
	now := w.Now()
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", w.Agent)
	h.Set(standardwebhooks.HeaderWebhookID, e.ID)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	if secret.IsZero() {
		return h, nil
	}
	signer, err := signerOf(secret.Reveal())
	if err != nil {
		return nil, err
	}
	signature, err := signer.Sign(e.ID, now, e.Payload)
	if err != nil {
		return nil, err
	}
	h.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return h, nil
}

// signerOf takes whsec_ and base64 as Standard Webhooks does, and any other
// text as the key's own bytes.
func signerOf(secret string) (*standardwebhooks.Webhook, error) {
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) > 0 {
			return standardwebhooks.NewWebhookRaw(key)
		}
	}
	return standardwebhooks.NewWebhookRaw([]byte(secret))
}
