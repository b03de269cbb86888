package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"docket/store/ci"
)

// Tabs are the outcomes.
func (p *DeliveriesPage) Tabs() []link {
	return tabs("/deliveries", "outcome", string(p.Outcome),
		[2]string{"", "All"}, [2]string{string(ci.Accepted), "Accepted"}, [2]string{string(ci.Ignored), "Ignored"})
}

// Advice says what to do about a refusal.
func (r Refusal) Advice() string {
	switch r.Reason {
	case "integration":
		return "The address pasted at the provider ends in a name that no integration has: compare it with the one under Setup."
	case "method":
		return "Something other than a webhook called this address: a provider's delivery is a POST."
	case "content_type":
		return "Set the webhook's content type to application/json at the provider, then redeliver."
	case "size":
		return "The payload is larger than limits.body; raise that if such pushes are wanted."
	case "body":
		return "The body did not arrive whole: look for a proxy in between that cuts or changes requests, then redeliver."
	case "signature":
		return "The secret at the provider is not one of webhook_secrets, or something in between changes the body: paste the configured secret at the provider, then redeliver."
	case "header":
		return "A header that every delivery has is missing, unprintable or changed: let the proxy in between pass X-GitHub-Event and X-GitHub-Delivery on, or X-Gitea-Event and X-Gitea-Delivery."
	case "json":
		return "The payload is not JSON although its signature holds: choose application/json at the provider."
	case "installation":
		return "If this installation is yours, add its number to the integration's installations; else remove the App there."
	case "repository":
		return "Add a project for this repository, or remove its webhook. If it was made anew under an old name, docket projects repin accepts it."
	case "conflict":
		return "Two different bodies came under one delivery id. Providers do not do that: find out who else knows the secret, and rotate it."
	}
	return "Look at the server's log for more."
}

// List gives the runs the time that their ages are counted from.
func (p *DeliveryPage) List(rows []RunRow) runList { return runList{rows, p.Now} }

// Facts are what the receipt says of the delivery.
func (p *DeliveryPage) Facts() []fact {
	r := p.Receipt
	var list []fact
	add := func(name, value string, mono bool) {
		if value != "" {
			list = append(list, fact{name, value, mono})
		}
	}
	add("Receipt", r.ID, true)
	if !r.ReceivedAt.IsZero() {
		add("Received", human(r.ReceivedAt.Time), false)
	}
	add("Repository", r.Repository.FullName, false)
	if r.Repository.ID > 0 {
		add("Repository id", strconv.FormatInt(r.Repository.ID, 10), true)
	}
	add("Ref", r.Ref, true)
	add("Commit", r.Commit, true)
	add("Secret", r.Secret, false)
	add("SHA-256", r.BodySHA256, true)
	return list
}

// Headers are the kept headers by name.
func (p *DeliveryPage) Headers() []fact {
	list := make([]fact, 0, len(p.Header))
	for _, k := range slices.Sorted(maps.Keys(p.Header)) {
		list = append(list, fact{Name: k, Value: p.Header[k]})
	}
	return list
}

// Raw is the body as received, as far as a page shows it.
func (p *DeliveryPage) Raw() string {
	return strings.ToValidUTF8(string(p.Body[:min(len(p.Body), BodyShown)]), "\ufffd")
}

// BodyCut is how many bytes Raw shows where that is not all, else 0.
func (p *DeliveryPage) BodyCut() int64 {
	if len(p.Body) > BodyShown {
		return BodyShown
	}
	return 0
}

// Pretty is the body indented, "" if it is too long for a page or not JSON.
func (p *DeliveryPage) Pretty() string {
	if len(p.Body) > BodyShown {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, p.Body, "", "  "); err != nil || b.Len() > 4*BodyShown {
		return ""
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}
