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
		before, ok := parseHop(strings.TrimSpace(hops[i]))
		if !ok {
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

// parseHop reads an address as proxies write it, some with the port.
func parseHop(hop string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(hop); err == nil {
		return addr, true
	}
	withPort, err := netip.ParseAddrPort(hop)
	return withPort.Addr(), err == nil
}

func (a Addresses) trusts(addr netip.Addr) bool {
	for _, p := range a.Trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
