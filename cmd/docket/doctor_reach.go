package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"docket/server"
	"docket/store/ci"
)

// target is a receiver of notifications, by its host.
type target struct {
	name   string // scheme and host, for people
	scheme string
	host   string // HOST:PORT
}

// targets returns every host that notifications go to, once.
func (d *doctor) targets() (list []target) {
	seen := map[string]bool{}
	for i := range d.cfg.Projects {
		for _, n := range d.cfg.Projects[i].Notify {
			u, err := url.Parse(n.URL.Reveal())
			if err != nil || u.Host == "" || seen[u.Scheme+u.Host] {
				continue
			}
			seen[u.Scheme+u.Host] = true
			list = append(list, target{u.Scheme + "://" + u.Host, u.Scheme, hostPort(u)})
		}
	}
	return list
}

func hostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// connectTimeout bounds one connection.
const connectTimeout = 8 * time.Second

// lookAtTarget connects to a receiver and sends nothing.
func lookAtTarget(ctx context.Context, t target) finding {
	const mend = "check the address, the firewall and the receiver"
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: t.scheme, Host: t.host}}); err == nil && proxy != nil {
		t = target{"the proxy " + proxy.Redacted() + " to " + t.name, "http", hostPort(proxy)}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var dial interface {
		DialContext(context.Context, string, string) (net.Conn, error)
	} = &net.Dialer{}
	if t.scheme == "https" {
		dial = &tls.Dialer{}
	}
	conn, err := dial.DialContext(ctx, "tcp", t.host)
	if err != nil {
		return wrong(mend, "%s cannot be reached: %s", t.name, short(err))
	}
	defer conn.Close()
	if c, ok := conn.(*tls.Conn); ok {
		if f := lookAtCertificate(t.name, c.ConnectionState(), time.Now()); f.State != stateOK {
			return f
		}
	}
	return fine("%s can be reached", t.name)
}

// When a certificate's end is worth a word.
const certificateWarning = 14 * 24 * time.Hour

func lookAtCertificate(name string, s tls.ConnectionState, now time.Time) finding {
	if len(s.PeerCertificates) == 0 {
		return fine("%s has no certificate", name)
	}
	end := s.PeerCertificates[0].NotAfter
	if now.After(end) {
		return wrong("renew it", "the certificate of %s ended on %s", name, end.UTC().Format("2006-01-02"))
	}
	if left := end.Sub(now); left < certificateWarning {
		return warning("renew it", "the certificate of %s ends in %d days, on %s", name, int(left.Hours()/24), end.UTC().Format("2006-01-02"))
	}
	return fine("the certificate of %s holds until %s", name, end.UTC().Format("2006-01-02"))
}

// short is the part of a network error that says why, without addresses that
// may hold secrets.
func short(err error) string {
	var unverified *tls.CertificateVerificationError
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &unverified):
		return unverified.Error()
	case errors.As(err, &dns):
		return "its name cannot be resolved"
	case errors.Is(err, context.DeadlineExceeded):
		return "it does not answer in time"
	case errors.As(err, &op):
		if op.Timeout() {
			return "it does not answer in time"
		}
		return op.Err.Error()
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

// plain is a client that follows no redirect and keeps no connection.
func plain() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	return &http.Client{Transport: t, CheckRedirect: noRedirect, Timeout: connectTimeout}
}

// ask makes a request without a body or credentials, whose answer's body is
// not read.
func ask(ctx context.Context, c *http.Client, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "docket/"+buildInfo().Version)
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	return resp, resp.Body.Close()
}

// lookAtPublicURL asks the address that people use, and looks whether it is
// this docket that answers.
func (d *doctor) lookAtPublicURL(ctx context.Context) []finding {
	base := d.cfg.PublicURL
	if base == "" {
		return []finding{warning("set public_url", "public_url is not set, so that statuses have no links and webhooks cannot be found at the provider")}
	}
	own, err := ask(ctx, d.local.http, d.local.base+"/healthz")
	if err != nil {
		return []finding{warning("start docket to have it looked at", "%s was not asked, since no server runs here", base)}
	}
	resp, err := ask(ctx, plain(), base+"/healthz")
	const mend = "check DNS, the proxy before docket and its firewall: it has to pass /healthz and /hooks/ on"
	switch {
	case err != nil:
		return []finding{wrong(mend, "%s/healthz cannot be reached from here: %s", base, short(err))}
	case resp.StatusCode != http.StatusOK:
		return []finding{wrong(mend, "%s/healthz answers %d", base, resp.StatusCode)}
	}
	list := []finding{fine("%s/healthz answers, and it is this docket", base)}
	if theirs, ours := resp.Header.Get(server.InstanceHeader), own.Header.Get(server.InstanceHeader); ours != "" && theirs != ours {
		what := "another docket"
		if theirs == "" {
			what = "something that is not docket, or a proxy that drops its headers"
		}
		list = []finding{wrong("correct public_url, or where it leads", "%s/healthz is answered by %s", base, what)}
	}
	if resp.TLS != nil {
		list = append(list, lookAtCertificate(base, *resp.TLS, d.a.now()))
	}
	return list
}

// When the clock's distance from the provider's is worth a word. An App's
// tokens stop being accepted at about a minute.
const (
	clockWarning = 5 * time.Second
	clockWrong   = 60 * time.Second
)

// lookAtClock compares this machine's clock with the provider's.
func (d *doctor) lookAtClock(ctx context.Context, in *ci.Integration) []finding {
	address := in.APIURL
	if in.Provider == ci.ProviderGitea {
		address += "version"
	}
	before := d.a.now()
	resp, err := ask(ctx, plain(), address)
	if err != nil {
		return []finding{wrong("check api_url, DNS and the firewall", "%s cannot be reached: %s", address, short(err))}
	}
	middle := before.Add(d.a.now().Sub(before) / 2)
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return []finding{warning("", "%s does not tell the time", address)}
	}
	ahead := middle.Sub(date.Add(time.Second / 2)) // the header has whole seconds
	way := "ahead of"
	if ahead < 0 {
		way = "behind"
	}
	says := fmt.Sprintf("this machine's clock is %d s %s that of %s", int64(ahead.Abs().Seconds()), way, resp.Request.URL.Host)
	switch {
	case ahead.Abs() >= clockWrong:
		return []finding{wrong("set it by NTP", "%s, so that a GitHub App is not let in and notifications are refused", says)}
	case ahead.Abs() >= clockWarning:
		return []finding{warning("set it by NTP", "%s", says)}
	}
	return []finding{fine("%s", says)}
}
