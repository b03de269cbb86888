package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"docket/store/ci"
)

// acmeHost is the name that certificates are asked for.
const acmeHost = "ci.docket.test"

// pebble is Let's Encrypt's certificate authority for tests, as a process.
type pebble struct {
	t       *testing.T
	dir     string
	trust   string // the file of the certificate that its directory has
	address string // of its directory
	manage  string
	stop    func()
}

// newPebble prepares an authority, which must be known before docket is.
func newPebble(t *testing.T) *pebble {
	t.Helper()
	if os.Getenv("DOCKET_PEBBLE") == "" {
		t.Skip("DOCKET_PEBBLE is not set: it names the program of Let's Encrypt's test authority; `make acme-test` builds it and sets it")
	}
	p := &pebble{t: t, dir: t.TempDir(), address: freeAddress("127.0.0.1:0"), manage: freeAddress("127.0.0.1:0"), stop: func() {}}
	cert, key := newPair(t, "localhost", 1)
	p.trust = filepath.Join(p.dir, "tls.crt")
	mustWrite(t, p.trust, cert)
	mustWrite(t, filepath.Join(p.dir, "tls.key"), key)
	return p
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// directory is what docket is told of it.
func (p *pebble) directory() string { return "https://localhost:" + portOf(p.t, p.address) + "/dir" }

// start lets the authority validate at the ports of two listeners.
func (p *pebble) start(plain, secure string) {
	p.t.Helper()
	mustWrite(p.t, filepath.Join(p.dir, "config.json"), fmt.Sprintf(`{"pebble": {
		"listenAddress": %q, "managementListenAddress": %q, "certificate": "tls.crt", "privateKey": "tls.key",
		"httpPort": %s, "tlsPort": %s, "retryAfter": {"authz": 1, "order": 1}}}`,
		p.address, p.manage, portOf(p.t, plain), portOf(p.t, secure)))
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(os.Getenv("DOCKET_PEBBLE"), "-config", "config.json", "-dnsserver", newResolver(p.t))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, []string{"PEBBLE_VA_NOSLEEP=1"}, log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.stop = func() {
		p.stop = func() {}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	p.t.Cleanup(func() {
		p.stop()
		if p.t.Failed() {
			p.t.Logf("the authority's log:\n%s", mustRead(p.t, log.Name()))
		}
	})
}

// root waits until the authority is there, and returns the certificate that
// it signs with.
func (p *pebble) root() *x509.CertPool {
	p.t.Helper()
	pool := x509.NewCertPool()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its own, of this test
	}}
	eventually(p.t, "the authority answers", func() bool {
		resp, err := client.Get("https://" + p.manage + "/roots/0")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		pem, err := io.ReadAll(resp.Body)
		return err == nil && pool.AppendCertsFromPEM(pem)
	})
	return pool
}

// newResolver is a name server for which every name is this machine.
func newResolver(t *testing.T) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = resolve(c)
			c.Close()
		}
	}()
	return ln.Addr().String()
}

// resolve answers one question.
func resolve(c net.Conn) error {
	_ = c.SetDeadline(time.Now().Add(patience))
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		return err
	}
	m.Response, m.Additionals = true, nil
	for _, q := range m.Questions {
		if q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	return err
}

// Ensure that docket obtains a certificate from a real authority, by either of
// the challenges that it answers, takes deliveries under it, and after a restart
// has it still, without the authority.
func TestCertificateFromAnAuthority(t *testing.T) {
	for name, open := range map[string]func(d *daemon, p *pebble){
		"by TLS-ALPN-01": func(d *daemon, p *pebble) { p.start(freeAddress("127.0.0.1:0"), d.addresses[1]) },
		"by HTTP-01":     func(d *daemon, p *pebble) { p.start(d.addresses[0], freeAddress("127.0.0.1:0")) },
	} {
		t.Run(name, func(t *testing.T) {
			p, repo := newPebble(t), newRepository(t, "acme/api", 7)
			d := newDaemon(t, nil, func(d *daemon) {
				d.config["listen"] = []obj{{"address": "127.0.0.1:0"}, {"address": freeAddress("127.0.0.1:0"), "tls": obj{
					"acme": obj{"domains": []string{acmeHost}, "email": "ops@docket.test", "directory": p.directory()},
				}}}
				d.addProject("api", repo, nil)
			})
			d.environ = []string{"SSL_CERT_FILE=" + p.trust}
			d.start()
			open(d, p)
			trust := p.root()
			push := repo.push("refs/heads/main", "", repo.commit("refs/heads/main"))
			deliver := func(id string) int64 {
				t.Helper()
				w := delivery{event: ci.EventPush, id: id, body: push}
				a, serial := d.overHost(acmeHost, 1, trust, "POST", "/hooks/github", w.header(), w.body)
				if a.status != http.StatusAccepted {
					t.Fatalf("over TLS: %v\n%s", a, d.logText())
				}
				return serial
			}
			first := deliver("d-1")
			p.stop()
			if again := deliver("d-2"); again != first {
				t.Error("a second handshake had another certificate")
			}
			d.stop()
			d.start()
			if again := deliver("d-3"); again != first {
				t.Error("the certificate was not kept over a restart")
			}
			mustContain(t, "the metrics", string(d.call("GET", "/metrics", "", nil).body),
				`docket_certificate_broken{address="`+d.addresses[1]+`",name="`+acmeHost+`"} 0`)
			if a, _ := d.overHost("other.docket.test", 1, trust, "GET", "/healthz", nil, nil); a.err == nil {
				t.Errorf("a name that is not configured: %v", a)
			}
		})
	}
}
