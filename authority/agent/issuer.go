package agent

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
)

// Why an agent cannot be registered.
var (
	ErrBadIssuer  = errors.New("issuer must be an https URL without user, query and fragment")
	ErrBadJWKSURI = errors.New("JWKS URI cannot be fetched from")
	ErrBadName    = errors.New("name must have 1 to 200 plain characters")
)

const maxName = 200

// registrable tells whether a may be registered.
func registrable(a Agent, allowLoopback bool) error {
	if err := checkIssuer(a.Issuer, allowLoopback); err != nil {
		return err
	}
	if !plainURL(a.JWKSURI) {
		return ErrBadJWKSURI
	}
	if err := egress.CheckURL(a.JWKSURI, allowLoopback); err != nil {
		return fmt.Errorf("%w: %w", ErrBadJWKSURI, err)
	}
	plain := utf8.ValidString(a.Name) && !strings.ContainsFunc(a.Name, tenants.Invisible)
	if !plain || strings.TrimSpace(a.Name) == "" || utf8.RuneCountInString(a.Name) > maxName {
		return ErrBadName
	}
	return nil
}

// checkIssuer refuses what would make one agent look like another or be written
// in two ways. It changes nothing: issuers are compared byte for byte.
func checkIssuer(issuer string, allowLoopback bool) error {
	if !plainURL(issuer) || strings.ContainsAny(issuer, "?#") {
		return ErrBadIssuer
	}
	u, err := url.Parse(issuer)
	if err != nil {
		return ErrBadIssuer
	}
	// As an address to fetch, but on any port: an issuer is only a name.
	u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	if err := egress.CheckURL(u.String(), allowLoopback); err != nil {
		return fmt.Errorf("%w: %w", ErrBadIssuer, err)
	}
	return nil
}
