package main

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"docket/store/ci"
)

// tracesKeys is where spans go.
func tracesKeys() mapping {
	return mapping{about: "Where spans go, by OTLP over HTTP", keys: []key{
		{name: "endpoint", shape: isAddress, required: true, about: "The collector's address, as OTEL_EXPORTER_OTLP_ENDPOINT has it: " + tracesPath + " is added where it does not end so."},
		{name: "headers", shape: isHeaders, about: "Headers of each request to it, as names to secrets."},
		{name: "sample", shape: isShare, def: "1", about: "The share of traces that are sent, whole ones: all from 1, a tenth from 0.1."},
	}}
}

// tracesPath is where OTLP over HTTP takes traces.
const tracesPath = "/v1/traces"

// traces reads where spans go; nil for nowhere.
func (l *loader) traces(top *object) *ci.Traces {
	if !top.has("traces") {
		return nil
	}
	o := l.object(top.field("traces"), sectionTraces, "traces")
	if o == nil || !o.need("endpoint", "https://collector.example.org:4318") {
		return nil
	}
	return &ci.Traces{Endpoint: l.tracesEndpoint(o), Headers: l.tracesHeaders(o), Sample: o.share("sample")}
}

func (l *loader) tracesEndpoint(o *object) string {
	s := o.address("endpoint")
	if s == "" {
		return ""
	}
	if strings.ContainsAny(s, "?#") {
		o.at("endpoint", "traces: endpoint must end with its path; remove what follows ? or #, and put what is secret into headers")
		return ""
	}
	if u, err := url.Parse(s); err == nil && u.Port() == "4317" {
		o.at("endpoint", "traces: the port 4317 is OTLP over gRPC, and docket speaks it over HTTP; give the collector's port for that, which is 4318 by default")
		return ""
	}
	s = strings.TrimRight(s, "/")
	if !strings.HasSuffix(s, tracesPath) {
		s += tracesPath
	}
	return s
}

// headerName is a token of RFC 9110.
func headerName() *regexp.Regexp { return regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$") }

// ownHeaders are what the exporter says of the request itself.
func ownHeaders() []string {
	return []string{"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Trailer", "Transfer-Encoding", "Upgrade"}
}

func (l *loader) tracesHeaders(o *object) map[string]ci.Secret {
	if !o.has("headers") {
		return nil
	}
	list, ok := l.entries(l.resolve(o.field("headers")), "traces: headers", 0)
	if !ok {
		return nil
	}
	headers, names := map[string]ci.Secret{}, newNamed("header")
	for _, e := range list {
		name := http.CanonicalHeaderKey(e.name)
		switch {
		case !headerName().MatchString(e.name):
			l.at(e.key, "traces: headers: %q cannot be the name of a header; use letters, digits and -", printableText(e.name))
		case slices.Contains(ownHeaders(), name):
			l.at(e.key, "traces: headers: %s is docket's own to say; remove it", name)
		default:
			names.once(l.reader, e.key, name)
		}
		headers[name] = l.secretOf(e.value, "traces: headers: "+printableText(e.name), secretHeaderValue)
	}
	return headers
}
