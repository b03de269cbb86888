package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"docket/store/ci"
)

// over sends a request over TLS on a connection of its own, and returns the
// serial number of the certificate that answered.
func (d *daemon) over(listener int, trust *x509.CertPool, method, path string, header http.Header, body []byte) (answer, int64) {
	return d.overHost("ci.example.org", listener, trust, method, path, header, body)
}

// overHost is over for another host than ci.example.org.
func (d *daemon) overHost(host string, listener int, trust *x509.CertPool, method, path string, header http.Header, body []byte) (answer, int64) {
	req, err := http.NewRequest(method, "https://"+d.addresses[listener]+path, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}, 0
	}
	req.Header = header
	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trust, ServerName: host},
	}}
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}, 0
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: b, err: err}, resp.TLS.PeerCertificates[0].SerialNumber.Int64()
}

// Ensure that docket speaks TLS on a socket that it was given, before and
// after it became another program, that it takes a new certificate without a
// restart, and that a plain listener sends people there and takes webhooks.
func TestTLS(t *testing.T) {
	t.Parallel()
	m, repo := newServiceManager(t), newRepository(t, "acme/api", 7)
	held, address := heldSocket(t)
	trust := x509.NewCertPool()
	put := func(dir string, serial int64) {
		t.Helper()
		cert, key := newPair(t, "ci.example.org", serial)
		trust.AppendCertsFromPEM([]byte(cert))
		mustWrite(t, filepath.Join(dir, "tls.key"), key)
		mustWrite(t, filepath.Join(dir, "tls.crt"), cert)
	}
	d := newDaemon(t, nil, func(d *daemon) {
		put(d.dir, 1)
		d.config["listen"] = []obj{
			{"address": "127.0.0.1:0"}, {"address": address, "tls": obj{"cert": "tls.crt", "key": "tls.key"}},
			{"address": "127.0.0.1:0", "redirect": true},
		}
		d.addProject("api", repo, nil)
	})
	d.environ, d.sockets = []string{"NOTIFY_SOCKET=" + m.path}, []*os.File{held}
	d.start()
	m.wait("READY=1")
	push := repo.push("refs/heads/main", "", repo.commit("refs/heads/main"))
	deliver := func(id string) int64 {
		t.Helper()
		w := delivery{event: ci.EventPush, id: id, body: push}
		a, serial := d.over(1, trust, "POST", "/hooks/github", w.header(), w.body)
		if a.status != http.StatusAccepted || a.header.Get("Strict-Transport-Security") == "" {
			t.Fatalf("over TLS: %v %v", a, a.header)
		}
		return serial
	}
	deliver("d-1")
	d.signal(syscall.SIGUSR2)
	m.wait("RELOADING=1")
	m.wait("READY=1")
	if n := deliver("d-2"); n != 1 {
		t.Errorf("certificate %d", n)
	}
	put(d.dir, 2)
	eventually(t, "the new certificate is in force", func() bool {
		a, serial := d.over(1, trust, "GET", "/healthz", nil, nil)
		return a.status == 200 && serial == 2
	})
	a := d.call("GET", "/metrics", "", nil)
	mustContain(t, "the metrics", string(a.body), `docket_certificate_expiry_timestamp_seconds{address="`+address+`",name="ci.example.org"} `,
		`docket_certificate_broken{address="`+address+`",name="ci.example.org"} 0`)
	if c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trust, ServerName: "ci.example.org", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("TLS 1.1 is spoken")
	}
	d.redirects(address, push)
}

// redirects checks the third listener.
func (d *daemon) redirects(secure string, push []byte) {
	t := d.t
	t.Helper()
	noFollow := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: noRedirect}
	resp, err := noFollow.Get("http://" + d.addresses[2] + "/runs/api-1?x=y")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusPermanentRedirect || to != "https://"+secure+"/runs/api-1?x=y" {
		t.Errorf("redirect: %d to %s", resp.StatusCode, to)
	}
	if a := d.deliver(delivery{listener: 2, event: ci.EventPush, id: "d-3", body: push}); a.status != http.StatusAccepted {
		t.Errorf("a webhook to the listener that redirects: %v", a)
	}
	if a := request("GET", "http://"+d.addresses[2]+"/healthz", nil, nil); a.status != 200 || strings.Contains(string(a.body), "https") {
		t.Errorf("healthz: %v", a)
	}
}
