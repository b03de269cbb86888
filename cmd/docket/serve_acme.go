package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"docket/store/ci"
)

// newAuthority asks a certificate authority for the names of a listener, and
// keeps what it gives in a directory.
func newAuthority(c *ci.ACME, dir string) *autocert.Manager {
	return &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(dir), HostPolicy: only(c.Domains), Email: c.Email,
		Client: &acme.Client{
			DirectoryURL: cmp.Or(c.Directory, autocert.DefaultACMEDirectory),
			HTTPClient:   &http.Client{Transport: &orders{next: http.DefaultTransport, known: map[string]string{}}},
		},
	}
}

// only lets certificates be asked for in these names. A challenge over HTTP may
// come with a port in its Host header, where another than 80 is forwarded here.
func only(domains []string) autocert.HostPolicy {
	known := autocert.HostWhitelist(domains...)
	return func(ctx context.Context, host string) error {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		return known(ctx, host)
	}
}

// orders adds to the answer to an order's end the address of the order, where
// an authority leaves it out: RFC 8555 does not ask for it, and x/crypto/acme
// does not find the certificate without it.
type orders struct {
	next http.RoundTripper

	mu    sync.Mutex
	known map[string]string // by where an order is finalized
}

const (
	mostOrders = 100 // under way
	mostOrder  = 1 << 20
)

// RoundTrip implements http.RoundTripper.
func (o *orders) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	at := resp.Header.Get("Location")
	switch {
	case at == "":
		if order := o.order(r.URL.String()); order != "" {
			resp.Header.Set("Location", order)
		}
	case resp.StatusCode == http.StatusCreated:
		b, err := io.ReadAll(io.LimitReader(resp.Body, mostOrder))
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(b))
		var order struct{ Finalize string }
		if json.Unmarshal(b, &order) == nil && order.Finalize != "" {
			o.note(order.Finalize, at)
		}
	}
	return resp, nil
}

func (o *orders) order(finalize string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[finalize]
}

func (o *orders) note(finalize, order string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.known) >= mostOrders {
		clear(o.known)
	}
	o.known[finalize] = order
}
