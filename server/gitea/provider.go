package gitea

import (
	"net/http"

	"docket/server/payload"
)

func provider() payload.Provider {
	return payload.Provider{Name: "Gitea", TypeField: "POST Content Type"}
}

// ContentType reports whether the body is a form (else it is JSON). See
// payload.Provider.
func ContentType(header http.Header) (form bool, err error) { return provider().ContentType(header) }

// Payload returns the JSON text in a body whose signature holds. See
// payload.Provider.
func Payload(contentType string, body []byte) ([]byte, error) {
	return provider().Payload(contentType, body)
}

// The names under which a delivery carries what it is. Gitea sends the first
// and the last, Forgejo all three; X-Gogs-* says the same again and is not
// looked at.
func eventHeaders() []string {
	return []string{"X-Gitea-Event", "X-Forgejo-Event", "X-GitHub-Event"}
}

func typeHeaders() []string {
	return []string{"X-Gitea-Event-Type", "X-Forgejo-Event-Type", "X-GitHub-Event-Type"}
}

func deliveryHeaders() []string {
	return []string{"X-Gitea-Delivery", "X-Forgejo-Delivery", "X-GitHub-Delivery"}
}

// Identify returns the kind and the id of a delivery. Each is given under
// several names, which must agree. Kinds for which Gitea has no word of its
// own (packages) are known by their finer X-Gitea-Event-Type. Errors are
// CodeMalformed.
func Identify(header http.Header) (event, delivery string, err error) {
	if event, err = agreed(header, eventHeaders(), true); err != nil {
		return "", "", err
	}
	if event == "" {
		if event, err = agreed(header, typeHeaders(), false); err != nil {
			return "", "", err
		}
	}
	delivery, err = agreed(header, deliveryHeaders(), false)
	return event, delivery, err
}

// agreed returns the one value that a delivery gives under several names. An
// empty one is none, and an error unless it is allowed.
func agreed(header http.Header, names []string, empty bool) (value string, err error) {
	first := ""
	for _, name := range names {
		if len(header.Values(name)) == 0 {
			continue
		}
		v := ""
		if !empty || header.Get(name) != "" || len(header.Values(name)) > 1 {
			if v, err = payload.Header(header, name); err != nil {
				return "", err
			}
		}
		if first != "" && v != value {
			return "", payload.Malformed("the headers %s and %s differ; a delivery gives the same under both, so see what the proxy in between changes", first, name)
		}
		first, value = name, v
	}
	if first == "" {
		return "", payload.Malformed("the header %s is missing; every delivery of Gitea and Forgejo has it", names[0])
	}
	return value, nil
}

// Known returns the kind and the id that an unverified delivery claims, for
// logs and lists: "" for what is not printable or not there.
func Known(header http.Header) (event, delivery string) {
	return payload.Claimed(header, eventHeaders()...), payload.Claimed(header, deliveryHeaders()...)
}
