package egress

import (
	"context"
	"net/netip"
	"syscall"
)

// special4 are the IPv4 blocks of the IANA special-purpose registry, and the
// one public address that means the host's own cloud.
var special4 = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // carrier-grade NAT; some clouds put metadata there
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // Azure's wire server
	"169.254.0.0/16",   // link-local; metadata of most clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.31.196.0/24",  // AS112
	"192.52.193.0/24",  // AMT
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"192.175.48.0/24",  // AS112
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast
)

// global6 is all of IPv6 that is handed out for global unicast. Loopback, ULA,
// link-local, site-local, multicast, IPv4-mapped, IPv4-compatible and NAT64
// (64:ff9b::/96, 64:ff9b:1::/48) addresses lie outside.
var global6 = netip.MustParsePrefix("2000::/3")

// special6 are the blocks inside global6 that are no places of their own.
var special6 = prefixes(
	"2001::/23",         // protocol assignments: Teredo, benchmarks, ORCHID
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4: carries any IPv4 address
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
)

// isPublic tells whether addr is a public place on the internet. It is a list
// of what may pass for IPv6, whose unknown blocks are many, and of what may not
// for IPv4.
func isPublic(addr netip.Addr) bool {
	if addr.Is4() {
		return !within(addr, special4)
	}
	// No prefix contains an address with a zone.
	return global6.Contains(addr) && !within(addr, special6)
}

// isLoopback leaves out the IPv4-mapped form: nobody needs it.
func isLoopback(addr netip.Addr) bool {
	return addr.IsLoopback() && !addr.Is4In6()
}

// control is a net.Dialer.ControlContext. It sees the very address that the
// socket is about to be connected to: a check of the name, or of an earlier
// answer of DNS, could be undone by the next answer (rebinding).
type control func(ctx context.Context, network, address string, conn syscall.RawConn) error

// dialPublic lets through port 443 of public addresses.
func dialPublic(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || to.Port() != 443 || !isPublic(to.Addr()) {
		return ErrForbiddenAddress
	}
	return nil
}

// dialLoopback lets through loopback addresses.
func dialLoopback(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !isLoopback(to.Addr()) {
		return ErrForbiddenAddress
	}
	return nil
}

// dialEither lets through what either of the two does.
func dialEither(ctx context.Context, network, address string, conn syscall.RawConn) error {
	if dialLoopback(ctx, network, address, conn) == nil {
		return nil
	}
	return dialPublic(ctx, network, address, conn)
}

func within(addr netip.Addr, blocks []netip.Prefix) bool {
	for _, block := range blocks {
		if block.Contains(addr) {
			return true
		}
	}
	return false
}

func prefixes(texts ...string) []netip.Prefix {
	blocks := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		blocks = append(blocks, netip.MustParsePrefix(text))
	}
	return blocks
}
