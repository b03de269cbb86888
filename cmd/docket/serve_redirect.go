package main

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// strictTransport tells browsers to come by https alone, for a year.
const strictTransport = "max-age=31536000"

// secure puts around the listeners what https asks for: the header that keeps
// browsers there, ACME's challenges on plain ones, and the way over.
func (d *appliance) secure(list []*listener) {
	port := ""
	for _, l := range list {
		if l.secure == nil {
			continue
		}
		if _, p, err := net.SplitHostPort(l.address); err == nil && port == "" {
			port = p
		}
		l.handler = strict(l.handler)
	}
	for i, l := range list {
		if l.secure != nil {
			continue
		}
		if d.config.Listen[i].Redirect {
			l.handler = redirect(l.handler, func(r *http.Request) string { return d.secureOrigin(r, port) })
		}
		for _, s := range list {
			if s.secure != nil && s.secure.acme != nil {
				l.handler = s.secure.acme.HTTPHandler(l.handler)
			}
		}
	}
}

// strict adds the header that keeps browsers at https.
func strict(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", strictTransport)
		h.ServeHTTP(w, r)
	})
}

// redirect sends requests on to an origin by 308, which keeps their method.
// Webhooks are answered where they come: their senders follow no redirect, so
// that each would be lost. So are probes.
func redirect(h http.Handler, origin func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; p == "/healthz" || strings.HasPrefix(p, "/hooks/") {
			h.ServeHTTP(w, r)
			return
		}
		to := origin(r)
		if to == "" {
			http.Error(w, "the Host header names no host", http.StatusBadRequest)
			return
		}
		path := r.URL.EscapedPath()
		if !strings.HasPrefix(path, "/") {
			path = "/"
		}
		if r.URL.RawQuery != "" {
			path += "?" + r.URL.RawQuery
		}
		w.Header().Set("Location", to+path)
		w.WriteHeader(http.StatusPermanentRedirect)
	})
}

// secureOrigin is where a request to a plain listener should have gone: to
// public_url if that is https, else to the host that it names, at the port of
// the listener with TLS. "" if it names none.
func (d *appliance) secureOrigin(r *http.Request, port string) string {
	if u, err := url.Parse(d.current.Load().PublicURL); err == nil && strings.EqualFold(u.Scheme, "https") {
		return "https://" + u.Host
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if _, err := netip.ParseAddr(host); err != nil && !hostPattern().MatchString(host) {
		return ""
	}
	if port == "443" {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return "https://" + host
	}
	return "https://" + net.JoinHostPort(host, port)
}
