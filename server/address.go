package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress returns the address that a request comes from, by the
// configuration in force.
func (s *Server) clientAddress(r *http.Request) string {
	return clientAddress(r, s.config().TrustedProxies)
}

// clientAddress returns the address that a request comes from. Each proxy adds
// the address that it was called from at the end of X-Forwarded-For; that is
// believed as far back as the proxies are on this machine or among the trusted
// ones. From anywhere else the header is only somebody's word.
func clientAddress(r *http.Request, trusted []netip.Prefix) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	from := peer.Addr().Unmap().WithZone("")
	list := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(list) - 1; i >= 0 && believed(from, trusted); i-- {
		a, err := netip.ParseAddr(strings.TrimSpace(list[i]))
		if err != nil {
			break
		}
		from = a.Unmap().WithZone("")
	}
	return from.String()
}

// believed reports whether a proxy's word is taken.
func believed(a netip.Addr, trusted []netip.Prefix) bool {
	return a.IsLoopback() || slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Network returns what one person has of addresses: an IPv4 address, or the
// 64 bits that an IPv6 network begins with.
func Network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil || a.Is4() {
		return address
	}
	p, err := a.Prefix(64)
	if err != nil {
		return address
	}
	return p.String()
}
