package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"docket/store/ci"
)

// acmeDir is the name in the data directory of what ACME gave.
const acmeDir = "acme"

// secure is how a listener speaks TLS, and what is known of its certificates.
type secure struct {
	config *tls.Config
	pair   *pair
	acme   *autocert.Manager // nil: pair
	names  *issued           // of acme
}

// certificateState is what is known of one certificate.
type certificateState struct {
	name    string // a host
	expires time.Time
	broken  bool // what should take its place cannot be used
}

// newSecure prepares TLS for a listener. A pair of files that cannot be used
// is an error.
func newSecure(d *appliance, t *ci.TLS) (*secure, error) {
	// HTTP/2 is not offered: its streams would go around the bounds that a
	// listener has on connections.
	s := &secure{config: &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}}
	if t.ACME == nil {
		s.pair = &pair{cert: t.Cert, key: t.Key, log: d.log}
		if err := s.pair.look(); err != nil {
			return nil, err
		}
		s.config.GetCertificate = s.pair.get
		return s, nil
	}
	dir := filepath.Join(d.config.DataDir, acmeDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory %s of certificates cannot be made; let docket write to data_dir: %w", dir, err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory %s holds private keys and must be docket's own; give it to docket's user: %w", dir, err)
	}
	s.acme = newAuthority(t.ACME, dir)
	s.names = &issued{domains: t.ACME.Domains, log: d.log, known: map[string]certificateState{}}
	s.config.NextProtos = append(s.config.NextProtos, acme.ALPNProto)
	s.config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, err := s.acme.GetCertificate(hello)
		if !slices.Contains(hello.SupportedProtos, acme.ALPNProto) {
			s.names.note(hello.ServerName, c, err, time.Now())
		}
		return c, err
	}
	return s, nil
}

// certificates returns what is known of the certificates.
func (s *secure) certificates() []certificateState {
	if s.pair != nil {
		return s.pair.certificates()
	}
	return s.names.certificates()
}

// lookEvery is how often a handshake looks whether certificate files changed.
const lookEvery = 3 * time.Second

// pair is a certificate and its key in two files, as they last were in order.
type pair struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	seen    [2]pemState // what was last read, good or not
	current *tls.Certificate
	broken  bool // what was last read cannot be used
}

// pemState tells a file from what it was.
type pemState struct {
	written time.Time
	info    os.FileInfo
}

func (f pemState) same(g pemState) bool {
	if f.info == nil || g.info == nil {
		return f.info == nil && g.info == nil
	}
	return f.written.Equal(g.written) && f.info.Size() == g.info.Size() && os.SameFile(f.info, g.info)
}

func stateOf(path string) pemState {
	info, err := os.Stat(path)
	if err != nil {
		return pemState{}
	}
	return pemState{info.ModTime(), info}
}

// get is tls.Config.GetCertificate.
func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return p.current, nil
}

func (p *pair) certificates() []certificateState {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return []certificateState{{nameOf(p.current), p.current.Leaf.NotAfter, p.broken}}
}

// refresh looks at the files unless it did lately. A pair that cannot be used
// is told once, and the one before stays.
func (p *pair) refresh() {
	if time.Since(p.looked) < lookEvery {
		return
	}
	if err := p.look(); err != nil {
		p.log.Error("the new certificate cannot be used; the old one stays in force", keyCert, p.cert, keyError, err)
	}
}

// look reads the files if they are not those that it read before.
func (p *pair) look() error {
	p.looked = time.Now()
	now := [2]pemState{stateOf(p.cert), stateOf(p.key)} // before they are read: what changes meanwhile is seen next time
	if p.current != nil && now[0].same(p.seen[0]) && now[1].same(p.seen[1]) {
		return nil
	}
	p.seen, p.broken = now, true
	c, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return fmt.Errorf("%s and %s are no certificate and its private key (%s); put both in place again", p.cert, p.key, pairTrouble(err))
	}
	if p.current != nil {
		p.log.Info("the certificate was read again", keyCert, p.cert, keyExpires, c.Leaf.NotAfter)
	}
	p.current, p.broken = &c, false
	return nil
}

// nameOf is the first host that a certificate is for.
func nameOf(c *tls.Certificate) string {
	if len(c.Leaf.DNSNames) > 0 {
		return c.Leaf.DNSNames[0]
	}
	return c.Leaf.Subject.CommonName
}

// issued is what came of asking for certificates by ACME.
type issued struct {
	domains []string
	log     *slog.Logger

	mu    sync.Mutex
	known map[string]certificateState
	told  time.Time // of a failure
}

// note takes down what a handshake for a name got. Names that are not
// configured are anybody's words.
func (i *issued) note(name string, c *tls.Certificate, err error, now time.Time) {
	if !slices.Contains(i.domains, name) {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	was := i.known[name]
	was.name, was.broken = name, err != nil
	if err == nil {
		was.expires = c.Leaf.NotAfter
	} else if now.Sub(i.told) > time.Minute {
		i.told = now
		i.log.Error("no certificate was given; see that the certificate authority reaches this machine by that name, on port 443 or 80", keyHost, name, keyError, err)
	}
	i.known[name] = was
}

func (i *issued) certificates() (list []certificateState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range i.known {
		list = append(list, s)
	}
	return list
}

// Keys of log lines about certificates.
const (
	keyCert    = "cert"
	keyExpires = "expires"
	keyHost    = "name"
)
