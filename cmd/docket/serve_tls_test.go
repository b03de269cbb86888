package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/acme"

	"docket/store/ci"
)

// newPair makes a certificate that is its own authority, and its key.
func newPair(t *testing.T, host string, serial int64) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", secret)
}

// Ensure that a new pair is taken, that one that does not fit leaves the old
// one in force and is told once, and that files are looked at only so often.
func TestCertificateFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	p := &pair{cert: filepath.Join(dir, "a.crt"), key: filepath.Join(dir, "a.key"), log: slog.New(slog.NewTextHandler(&log, nil))}
	put := func(cert, key string) {
		t.Helper()
		mustWrite(t, p.cert, cert)
		mustWrite(t, p.key, key)
	}
	serial := func() int64 {
		t.Helper()
		c, err := p.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.Int64()
	}
	later := func() { p.looked = p.looked.Add(-lookEvery) }
	put(newPair(t, "a.example", 1))
	if err := p.look(); err != nil {
		t.Fatal(err)
	}
	cert, key := newPair(t, "a.example", 2)
	put(cert, "x")
	if n := serial(); n != 1 || log.Len() != 0 {
		t.Errorf("looked at once: %d, %s", n, &log)
	}
	later()
	if n := serial(); n != 1 {
		t.Errorf("serial %d of a pair that does not fit", n)
	}
	later()
	serial()
	if n := strings.Count(log.String(), "the old one stays in force"); n != 1 || !p.certificates()[0].broken {
		t.Errorf("told %d times:\n%s", n, &log)
	}
	put(cert, key)
	later()
	if n := serial(); n != 2 || p.certificates()[0].broken {
		t.Errorf("serial %d of the new pair", n)
	}
	if err := os.Remove(p.key); err != nil {
		t.Fatal(err)
	}
	later()
	if n := serial(); n != 2 || !p.certificates()[0].broken {
		t.Errorf("serial %d without a key", n)
	}
}

// Ensure that ACME is wired: its protocol is offered, only the configured
// names are asked for, and its directory is its owner's alone.
func TestACMEIsWired(t *testing.T) {
	asked := 0
	ca := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Error(w, "not today", http.StatusServiceUnavailable)
	}))
	defer ca.Close()
	d := &appliance{config: &ci.Config{DataDir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	s, err := newSecure(d, &ci.TLS{ACME: &ci.ACME{Domains: []string{"a.example.org"}, Directory: ca.URL}})
	if err != nil {
		t.Fatal(err)
	}
	if c := s.config; !slices.Contains(c.NextProtos, acme.ALPNProto) || slices.Contains(c.NextProtos, "h2") || c.MinVersion != tls.VersionTLS12 {
		t.Errorf("%v from %x", c.NextProtos, c.MinVersion)
	}
	if info, err := os.Stat(filepath.Join(d.config.DataDir, acmeDir)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := s.config.GetCertificate(&tls.ClientHelloInfo{ServerName: "b.example.org"}); err == nil || asked > 0 || len(s.certificates()) > 0 {
		t.Errorf("another name: %v, %d requests, %v", err, asked, s.certificates())
	}
}

// Ensure that the challenges of a certificate authority are answered: over TLS
// in its own protocol alone, and over HTTP on a plain listener.
func TestACMEChallengesAreAnswered(t *testing.T) {
	d := &appliance{config: &ci.Config{DataDir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	s, err := newSecure(d, &ci.TLS{ACME: &ci.ACME{Domains: []string{"a.example.org"}, Directory: "http://127.0.0.1:1/"}})
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(d.config.DataDir, acmeDir)
	cert, key := newPair(t, "a.example.org", 5)
	mustWrite(t, filepath.Join(cache, "a.example.org+token"), key+cert)
	mustWrite(t, filepath.Join(cache, "tok+http-01"), "the answer")
	ecdsaOnly := []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}
	hello := &tls.ClientHelloInfo{ServerName: "a.example.org", SupportedProtos: []string{acme.ALPNProto}, SignatureSchemes: ecdsaOnly}
	if c, err := s.config.GetCertificate(hello); err != nil || c.Leaf.SerialNumber.Int64() != 5 || len(s.certificates()) > 0 {
		t.Errorf("the challenge's certificate: %v, %v", err, s.certificates())
	}
	hello.SupportedProtos = []string{"http/1.1"}
	if _, err := s.config.GetCertificate(hello); err == nil || len(s.certificates()) != 1 || !s.certificates()[0].broken {
		t.Errorf("no authority, and yet %v, %v", err, s.certificates())
	}
	d.config.Listen = []ci.Listen{{Address: ":443"}, {Address: ":80"}}
	list := []*listener{{address: "0.0.0.0:443", secure: s, handler: http.NotFoundHandler()}, {address: "0.0.0.0:80", handler: http.NotFoundHandler()}}
	d.secure(list)
	for host, want := range map[string]int{"a.example.org": 200, "a.example.org:8080": 200, "b.example.org": 403, "b.example.org:80": 403} {
		w := httptest.NewRecorder()
		list[1].handler.ServeHTTP(w, httptest.NewRequest("GET", "http://"+host+"/.well-known/acme-challenge/tok", nil))
		if w.Code != want || want == 200 && w.Body.String() != "the answer" {
			t.Errorf("the challenge over HTTP for %s: %d %s", host, w.Code, w.Body)
		}
	}
}

// Ensure that an authority may leave out where an order is when it answers its
// end, and that what it says otherwise is left as it is.
func TestAnOrderIsFoundAgain(t *testing.T) {
	ca := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/new":
			w.Header().Set("Location", "/order/1")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"finalize": "http://%s/end/1"}`, r.Host)
		case "/end/2":
			w.Header().Set("Location", "/order/2")
		}
	}))
	defer ca.Close()
	client := &http.Client{Transport: newAuthority(&ci.ACME{}, t.TempDir()).Client.HTTPClient.Transport}
	defer client.CloseIdleConnections()
	for _, row := range [][2]string{{"/end/1", ""}, {"/new", "/order/1"}, {"/end/1", "/order/1"}, {"/end/2", "/order/2"}, {"/end/3", ""}} {
		resp, err := client.Post(ca.URL+row[0], "", nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := resp.Header.Get("Location"); got != row[1] || row[0] == "/new" && !strings.Contains(string(b), "/end/1") {
			t.Errorf("%s: %q, %s", row[0], got, b)
		}
	}
}

// Ensure that a plain listener answers challenges, webhooks and probes itself,
// and sends everything else to where TLS is, whatever it is called.
func TestRedirect(t *testing.T) {
	d := &appliance{config: &ci.Config{DataDir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	d.config.Listen = []ci.Listen{{Address: ":443"}, {Address: ":80", Redirect: true}}
	d.current.Store(d.config)
	s, err := newSecure(d, &ci.TLS{ACME: &ci.ACME{Domains: []string{"a.example.org"}}})
	if err != nil {
		t.Fatal(err)
	}
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})
	list := []*listener{{address: "0.0.0.0:8443", secure: s, handler: ok}, {address: "0.0.0.0:80", handler: ok}}
	d.secure(list)
	get := func(l *listener, host, path string) *http.Response {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", path, nil)
		r.Host = host
		l.handler.ServeHTTP(w, r)
		return w.Result()
	}
	if a := get(list[0], "a.example.org", "/runs"); a.StatusCode != 200 || a.Header.Get("Strict-Transport-Security") != "max-age=31536000" {
		t.Errorf("over TLS: %v", a)
	}
	for path, want := range map[string]int{
		"/hooks/github": 200, "/healthz": 200, "/hooksx": 308, "/readyz": 308, "/": 308, "/.well-known/acme-challenge/x": 404,
	} {
		if a := get(list[1], "a.example.org", path); a.StatusCode != want || a.Header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: %v, want %d", path, a, want)
		}
	}
	for host, want := range map[string]string{
		"a.example.org": "https://a.example.org:8443/x%2Fy?q=1", "[::1]:80": "https://[::1]:8443/x%2Fy?q=1", "a b": "", "": "",
	} {
		if a := get(list[1], host, "/x%2Fy?q=1"); a.Header.Get("Location") != want || want == "" && a.StatusCode != 400 {
			t.Errorf("%q: %v", host, a)
		}
	}
	d.current.Store(&ci.Config{PublicURL: "https://ci.example.org/docket"})
	if a := get(list[1], "evil.example", "//x"); a.Header.Get("Location") != "https://ci.example.org//x" {
		t.Errorf("to public_url: %v", a)
	}
}
