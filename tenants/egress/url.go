package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// CheckURL tells whether raw has the form of a URL that a Client fetches; if
// not, the error is ErrForbiddenURL and says what to change. It asks no DNS:
// that the host is public is known only when a connection is made.
func CheckURL(raw string, allowLoopback bool) error {
	// url.Parse cannot tell an empty fragment from none.
	if strings.Contains(raw, "#") {
		return fmt.Errorf("%w: it has a fragment", ErrForbiddenURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return fmt.Errorf("%w: it does not parse", ErrForbiddenURL)
	}
	return checkURL(u, allowLoopback)
}

func checkURL(u *url.URL, allowLoopback bool) error {
	loopback := allowLoopback && namesLoopback(u.Hostname())
	addr, err := netip.ParseAddr(u.Hostname())
	literal := err == nil
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback):
		return fmt.Errorf("%w: it is not https", ErrForbiddenURL)
	case u.Opaque != "" || u.Hostname() == "":
		return fmt.Errorf("%w: it names no host", ErrForbiddenURL)
	case u.User != nil:
		return fmt.Errorf("%w: it carries a user", ErrForbiddenURL)
	case u.Fragment != "":
		return fmt.Errorf("%w: it has a fragment", ErrForbiddenURL)
	case loopback:
		return nil
	case u.Port() != "" && u.Port() != "443":
		return fmt.Errorf("%w: its port is not 443", ErrForbiddenURL)
	// Go dials an IPv4-mapped literal as IPv4, so its form shows only here.
	case literal && !isPublic(addr):
		return fmt.Errorf("%w: its address is not public", ErrForbiddenURL)
	}
	return nil
}

// namesLoopback is about the name alone; that localhost really is loopback is
// checked when the connection is made.
func namesLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && isLoopback(addr)
}
