package server

import (
	"net/http"
	"strings"

	"docket/server/gitea"
	"docket/server/github"
	"docket/store/ci"
)

// dialect is how one provider's webhooks are read. All of it is pure, and the
// packages of the providers have the promises.
type dialect struct {
	// challenge is the header that a refused signature asks for.
	challenge string
	// kept are prefixes of the headers, in canonical form, that are kept beside
	// a body.
	kept []string

	contentType func(http.Header) (form bool, err error)
	verify      func(secrets []ci.Secret, h http.Header, body []byte) (secret string, err error)
	known       func(http.Header) (event, delivery string) // unverified
	identify    func(http.Header) (event, delivery string, err error)
	payload     func(contentType string, body []byte) ([]byte, error)
	parse       func(event string, payload []byte) (ci.Event, error)
}

// dialectOf returns how an integration's webhooks are read; ok is false where
// there is no integration, or its provider is not known.
func dialectOf(in *ci.Integration) (d dialect, ok bool) {
	if in == nil {
		return dialect{}, false
	}
	switch in.Provider {
	case ci.ProviderGitHub, "":
		return dialect{
			challenge: github.HeaderSignature, kept: []string{"X-Github-"},
			contentType: github.ContentType, verify: github.Verify, known: github.Known, identify: github.Identify,
			payload: github.Payload, parse: github.Parse,
		}, true
	case ci.ProviderGitea:
		return dialect{
			challenge: gitea.HeaderSignature, kept: []string{"X-Gitea-", "X-Forgejo-", "X-Github-"},
			contentType: gitea.ContentType, verify: gitea.Verify, known: gitea.Known, identify: gitea.Identify,
			payload: gitea.Payload, parse: gitea.Parse,
		}, true
	}
	return dialect{}, false
}

// ReadEvent reads what a delivery to an integration says, from its JSON and
// the kind that its header names. CodeMalformed where the JSON is none;
// CodeNotFound where the integration's provider sends no webhooks.
func ReadEvent(in *ci.Integration, kind string, text []byte) (ci.Event, error) {
	d, ok := dialectOf(in)
	if !ok {
		return ci.Event{}, ci.Errorf(ci.CodeNotFound, "the integration takes no webhooks")
	}
	return d.read("application/json", kind, text)
}

// claimed is what a delivery to nobody knows whom says that it is: every
// provider also sends GitHub's headers.
func claimed(h http.Header) (event, delivery string) { return github.Known(h) }

// read reads the payload out of a body and the event out of the payload.
func (d dialect) read(contentType, kind string, body []byte) (ci.Event, error) {
	text, err := d.payload(contentType, body)
	if err != nil {
		return ci.Event{}, err
	}
	return d.parse(kind, text)
}

// keeps reports whether a header is one that the provider says something about
// its hook in. Signatures are not kept: they would help to guess the secret.
func (d dialect) keeps(name string) bool {
	if strings.Contains(name, "Signature") {
		return false
	}
	for _, prefix := range d.kept {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
