package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"docket/store/ci"
)

// hookHeader is what a provider sends with a payload: what it is, under every
// name that the provider has for that, and its signature.
func hookHeader(provider, event, delivery string, secret ci.Secret, body []byte) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "docket-hook")
	for _, name := range hookNames(provider) {
		h.Set("X-"+name+"-Event", event)
		h.Set("X-"+name+"-Delivery", delivery)
	}
	signature := sign(secret, body)
	h.Set("X-Hub-Signature-256", signature)
	if provider == ci.ProviderGitea {
		h.Set("X-Gitea-Signature", signature[len(signaturePrefix):])
	}
	return h
}

func hookNames(provider string) []string {
	if provider == ci.ProviderGitea {
		return []string{"Gitea", "GitHub"}
	}
	return []string{"GitHub"}
}

// signaturePrefix stands before the digits in X-Hub-Signature-256.
const signaturePrefix = "sha256="

// sign returns a body's X-Hub-Signature-256.
func sign(secret ci.Secret, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	mac.Write(body)
	return signaturePrefix + hex.EncodeToString(mac.Sum(nil))
}

// postHook delivers a payload, as the provider would.
func postHook(ctx context.Context, to string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be delivered to: %w", to, err)
	}
	req.Header = header
	resp, err := (&http.Client{CheckRedirect: noRedirect}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s did not answer; start the server with `docket serve`, or name another address with --url: %w", to, err)
	}
	return resp, nil
}
