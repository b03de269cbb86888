package main

import (
	"net/netip"
)

// trustedProxies reads networks, or addresses alone.
func (l *loader) trustedProxies(o *object) (list []netip.Prefix) {
	if !o.has("trusted_proxies") {
		return nil
	}
	seen := newNamed("network")
	for _, n := range l.filled(o, "trusted_proxies", "names no network; name one, or remove the key") {
		s, ok := l.text(n, o.what+": trusted_proxies")
		if !ok {
			continue
		}
		p, err := netip.ParsePrefix(s)
		if a, alone := netip.ParseAddr(s); alone == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err != nil:
			l.at(n, "trusted_proxies: %q is no network; write its address and length, as in 10.0.0.0/8", s)
		case p.Masked() != p:
			l.at(n, "trusted_proxies: %s has address bits beyond its length; write %s", s, p.Masked())
		case p.Bits() == 0:
			l.at(n, "trusted_proxies: %s is everybody; name the proxies' own network", s)
		default:
			seen.once(l.reader, n, p.String())
			list = append(list, p)
		}
	}
	return list
}
