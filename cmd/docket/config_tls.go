package main

import (
	"crypto/tls"
	"net/netip"
	"strings"

	"docket/store/ci"
)

// tlsKeys are the keys of a listener's certificate.
func tlsKeys() map[section]mapping {
	return map[section]mapping{
		sectionTLS: {about: "Where a listener's certificate comes from", oneOf: []string{"cert", "acme"}, keys: []key{
			{name: "cert", about: "The path of the certificate with its chain, in PEM; it is read again when it changes."},
			{name: "key", about: "The path of its private key, in PEM; needed with cert."},
			{name: "acme", shape: isMapping, section: sectionACME, about: "Ask a certificate authority such as Let's Encrypt for it."},
		}},
		sectionACME: {about: "Certificates by ACME (RFC 8555)", keys: []key{
			{name: "domains", shape: isTexts, required: true, most: maxDomains, about: "The host names that certificates are asked for; no others ever are."},
			{name: "email", about: "Where the certificate authority may write to."},
			{name: "directory", shape: isAddress, about: "The directory of another certificate authority than Let's Encrypt."},
		}},
	}
}

// maxDomains bounds the names of one listener: each is a certificate of its own.
const maxDomains = 100

// tls reads where a listener's certificate comes from; nil for a plain one.
// Certificate files are read too, so that a pair that is none is told early.
func (l *loader) tls(lo *object) *ci.TLS {
	if !lo.has("tls") {
		return nil
	}
	o := l.object(lo.field("tls"), sectionTLS, "listen: tls")
	if o == nil {
		return nil
	}
	if o.has("cert") == o.has("acme") {
		l.at(o.node, "listen: tls needs exactly one of cert and acme; write {cert: PATH, key: PATH} or {acme: {domains: [ci.example.org]}}")
		return nil
	}
	if o.has("acme") {
		if o.has("key") {
			l.at(o.fields["key"].key, "listen: tls: acme makes its own key; remove this one")
		}
		return &ci.TLS{ACME: l.acme(o)}
	}
	if !o.need("key", "/etc/docket/tls.key") {
		return nil
	}
	t := &ci.TLS{}
	cert, key := l.pemFile(o, "cert", &t.Cert), l.pemFile(o, "key", &t.Key)
	if cert == nil || key == nil {
		return nil
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		o.at("cert", "listen: tls: %s and %s are no certificate and its private key (%s); give the chain and the key in PEM, as the certificate authority wrote them", t.Cert, t.Key, pairTrouble(err))
	}
	return t
}

// pemFile reads the file that a key names; nil after a fault.
func (l *loader) pemFile(o *object, key string, path *string) []byte {
	name := o.text(key)
	if name == "" {
		o.emptyText(key)
		return nil
	}
	*path = l.path(name)
	b, err := l.readFile(*path)
	if err != nil {
		o.at(key, "listen: tls: %s: %s", key, fileTrouble(*path, err))
		return nil
	}
	return b
}

// pairTrouble is what crypto/tls says against a pair, without its own name.
func pairTrouble(err error) string { return strings.TrimPrefix(err.Error(), "tls: ") }

func (l *loader) acme(to *object) *ci.ACME {
	o := l.object(to.field("acme"), sectionACME, "listen: tls: acme")
	if o == nil || !o.need("domains", "[ci.example.org]") {
		return nil
	}
	a := &ci.ACME{}
	if nodes := l.list(o.field("domains"), "listen: tls: acme: domains"); len(nodes) > maxDomains {
		o.at("domains", "listen: tls: acme: domains has %d names; give at most %d", len(nodes), maxDomains)
	} else {
		for _, n := range nodes {
			name, ok := l.text(n, "listen: tls: acme: domains")
			if !ok {
				continue
			}
			name = strings.ToLower(name)
			if trouble := domainTrouble(name); trouble != "" {
				l.at(n, "listen: tls: acme: domains: %q %s", name, trouble)
				continue
			}
			a.Domains = append(a.Domains, name)
		}
		if len(nodes) == 0 {
			o.at("domains", "listen: tls: acme: domains is empty; name the hosts that docket answers for")
		}
	}
	if a.Email = o.text("email"); a.Email == "" {
		o.emptyText("email")
	}
	if o.has("directory") {
		a.Directory = o.address("directory")
	}
	return a
}

// domainTrouble says why no certificate can be asked for in a name, or "".
func domainTrouble(name string) string {
	if strings.HasPrefix(name, "*.") {
		return "is a wildcard, which needs a challenge in the DNS that docket does not answer; name each host, or use cert and key"
	}
	_, err := netip.ParseAddr(name)
	if err == nil || len(name) > 253 || !strings.Contains(name, ".") || strings.Contains(name, "_") || !hostPattern().MatchString(name) {
		return "is not a full host name; write one, as in ci.example.org"
	}
	return ""
}

// redirects checks that what is to be redirected has somewhere to go.
func (l *loader) redirects(entries []*object, list []ci.Listen) {
	secure := false
	for _, one := range list {
		secure = secure || one.TLS != nil
	}
	for i, o := range entries {
		switch {
		case !list[i].Redirect:
		case o.has("tls"):
			o.at("redirect", "listen: redirect is for a plain listener, and this one has tls; remove one of the two")
		case !secure:
			o.at("redirect", "listen: redirect has nowhere to go; give another listener tls, or let the proxy that has it redirect")
		}
	}
}
