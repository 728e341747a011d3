package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign.dev/tenants/egress"
)

// discover finds where an agent publishes its keys (OpenID Connect Discovery 1.0
// §4). The document must name the very issuer it was asked for: otherwise one
// host could speak for another.
func (a *Agents) discover(ctx context.Context, issuer string) (string, error) {
	select {
	case a.discovering <- struct{}{}:
		defer func() { <-a.discovering }()
	default:
		// Anybody can name issuers; we are not the hammer for their nails.
		return "", errors.New("too many agents are being looked up")
	}
	doc, _, err := get(ctx, a.HTTP, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", "", maxKeySet)
	if err != nil {
		return "", err
	}
	return readDiscovery(doc.body, issuer, a.AllowLoopback)
}

func readDiscovery(body []byte, issuer string, allowLoopback bool) (string, error) {
	said, err := parseObject(body)
	if err != nil {
		return "", err
	}
	if err := exactly(said, "issuer", issuer, ErrIssuer); err != nil {
		return "", err
	}
	uri, err := said.text("jwks_uri")
	if err != nil {
		return "", err
	}
	if err := egress.CheckURL(uri, allowLoopback); err != nil {
		return "", fmt.Errorf("jwks_uri: %w", err)
	}
	return uri, nil
}
