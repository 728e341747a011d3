package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// Addresses finds where a visitor comes from.
type Addresses struct {
	// Trusted are our own proxies. Only they are believed about who came before
	// them; everybody can write a header (B95).
	Trusted []netip.Prefix
}

// Of returns the visitor's address as limits should count it: an IPv6 address
// by its /64, because a household has all of one. It is empty if unknown.
func (a Addresses) Of(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	addr := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && a.trusts(addr); i-- {
		before, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = before.Unmap()
	}
	if addr.Is6() {
		if p, err := addr.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.String()
}

func (a Addresses) trusts(addr netip.Addr) bool {
	for _, p := range a.Trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
