package server

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientAddress returns the address that a request comes from. Behind a proxy
// on this machine it is the last entry of X-Forwarded-For, the one that the
// proxy itself wrote. From anywhere else the header is only somebody's word.
func clientAddress(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	from := peer.Addr().Unmap().WithZone("")
	if from.IsLoopback() {
		list := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if a, err := netip.ParseAddr(strings.TrimSpace(list[len(list)-1])); err == nil {
			from = a.Unmap().WithZone("")
		}
	}
	return from.String()
}

// network returns what one person has of addresses: an IPv4 address, or the
// 64 bits that an IPv6 network begins with.
func network(address string) string {
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
