package github

import (
	"net/http"

	"docket/server/payload"
)

// The headers that name a delivery.
const (
	HeaderEvent    = "X-GitHub-Event"
	HeaderDelivery = "X-GitHub-Delivery"
)

func provider() payload.Provider {
	return payload.Provider{Name: "GitHub", TypeField: "Content type"}
}

// ContentType reports whether the body is a form (else it is JSON). See
// payload.Provider.
func ContentType(header http.Header) (form bool, err error) { return provider().ContentType(header) }

// Payload returns the JSON text in a body whose signature holds. See
// payload.Provider.
func Payload(contentType string, body []byte) ([]byte, error) {
	return provider().Payload(contentType, body)
}

// Identify returns the kind and the id of a delivery. Errors are
// CodeMalformed.
func Identify(header http.Header) (event, delivery string, err error) {
	if event, err = payload.Header(header, HeaderEvent); err != nil {
		return "", "", err
	}
	delivery, err = payload.Header(header, HeaderDelivery)
	return event, delivery, err
}

// Known returns the kind and the id that an unverified delivery claims, for
// logs and lists: "" for what is not printable or not there.
func Known(header http.Header) (event, delivery string) {
	return payload.Claimed(header, HeaderEvent), payload.Claimed(header, HeaderDelivery)
}
