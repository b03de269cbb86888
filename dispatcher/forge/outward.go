package forge

import (
	"io"
	"net/http"
)

// Outward returns a client for calls to others, over base's transport or, if
// there is none, one of its own. It never follows a redirect, keeps no cookies
// and reads no more than limit bytes of any answer. Time-outs are the caller's
// context's.
func Outward(base *http.Client, limit int64) *http.Client {
	var next http.RoundTripper
	if base != nil {
		next = base.Transport
	}
	if next == nil {
		next = http.DefaultTransport.(*http.Transport).Clone()
	}
	return &http.Client{
		Transport:     bounded{next, limit},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type bounded struct {
	next  http.RoundTripper
	limit int64
}

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = boundedBody{io.LimitReader(resp.Body, b.limit), resp.Body}
	return resp, nil
}

// CloseIdleConnections lets http.Client reach the transport below.
func (b bounded) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type boundedBody struct {
	io.Reader
	io.Closer
}
