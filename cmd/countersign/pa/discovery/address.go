package discovery

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// ErrAddress marks a URL that a strict agent does not use.
var ErrAddress = errors.New("address not usable")

// Address checks a URL for use over the network: absolute, without user info or
// fragment, and https – plain http only to this machine itself, for development.
func Address(what, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return nil, fmt.Errorf("%w: %s is missing", ErrAddress, what)
	case !strings.Contains(raw, "://"):
		return nil, fmt.Errorf("%w: %s %q must begin with http:// or https://", ErrAddress, what, raw)
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("%w: %s %q is not an absolute URL", ErrAddress, what, raw)
	case u.User != nil:
		return nil, fmt.Errorf("%w: %s holds a user name", ErrAddress, what)
	case strings.Contains(raw, "#"):
		return nil, fmt.Errorf("%w: %s %q has a fragment", ErrAddress, what, raw)
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("%w: %s %q must be https (plain http only on localhost)", ErrAddress, what, raw)
}

// OnThisMachine tells whether a link leads to the machine that it is opened on,
// so that it is of no use on another.
func OnThisMachine(link string) bool {
	u, err := url.Parse(link)
	return err == nil && loopback(u.Hostname())
}

func loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// origin is scheme, host and port, with the default port written out.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

const cardPath = "/.well-known/agent-card.json"

// cardURL accepts the interface URL and the URL of the card itself.
func cardURL(raw string) (string, error) {
	u, err := Address("card URL", raw)
	if err != nil {
		return "", err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return "", fmt.Errorf("%w: card URL %q has a query", ErrAddress, raw)
	}
	if strings.HasSuffix(raw, cardPath) {
		return raw, nil
	}
	return strings.TrimRight(raw, "/") + cardPath, nil
}
