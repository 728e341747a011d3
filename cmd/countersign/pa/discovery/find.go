package discovery

import (
	"context"
	"fmt"
	"net/url"

	"countersign.dev/cmd/countersign/shell"
)

// Brand is what an agent must know of a Brand before it asks for anything.
type Brand struct {
	Card      string // where the card was found
	Name      string // what the Brand calls itself
	Interface string // the aud of delegation tokens
	Issuer    string // their iss
	Scopes    []Scope

	DeviceEndpoint     string
	TokenEndpoint      string
	RevocationEndpoint string // empty when the Brand has none
	JWKS               string
}

// Find fetches the card – by its own URL or by the interface URL – and the
// metadata, and checks one against the other. With allowSplit the OAuth URLs may
// lie on another origin than the interface.
func (c Client) Find(ctx context.Context, card string, allowSplit bool) (Brand, error) {
	address, err := cardURL(card)
	if err != nil {
		return Brand{}, err
	}
	data, err := c.Get(ctx, "the agent card", address)
	if err != nil {
		return Brand{}, err
	}
	parsed, err := readCard(data)
	if err != nil {
		return Brand{}, err
	}
	if err := parsed.identity(); err != nil {
		return Brand{}, err
	}
	flow, metadataURL, err := parsed.delegation()
	if err != nil {
		return Brand{}, err
	}
	b := Brand{
		Card: address, Name: parsed.Name, Interface: parsed.interfaceURL(), Scopes: flow.Scopes,
		DeviceEndpoint: flow.DeviceURL, TokenEndpoint: flow.TokenURL,
	}
	if metadataURL == "" {
		metadataURL = b.Interface + "/oauth" + metadataPath
	}
	// Before anything is fetched from it: the card's own URLs.
	if err := b.oneOrigin(allowSplit, map[string]string{
		"deviceAuthorizationUrl": flow.DeviceURL, "tokenUrl": flow.TokenURL, "oauth2MetadataUrl": metadataURL,
	}); err != nil {
		return Brand{}, err
	}
	return c.withMetadata(ctx, b, flow, metadataURL, allowSplit)
}

func (c Client) withMetadata(ctx context.Context, b Brand, flow deviceFlow, from string, allowSplit bool) (Brand, error) {
	data, err := c.Get(ctx, "the OAuth metadata", from)
	if err != nil {
		return Brand{}, err
	}
	m, err := readMetadata(data)
	if err != nil {
		return Brand{}, err
	}
	if err := m.belongsTo(b.Interface, from, allowSplit); err != nil {
		return Brand{}, err
	}
	if err := m.agreesWith(flow); err != nil {
		return Brand{}, err
	}
	urls := map[string]string{"jwks_uri": m.JWKSURI}
	if m.RevocationEndpoint != "" {
		urls["revocation_endpoint"] = m.RevocationEndpoint
	}
	if err := b.oneOrigin(allowSplit, urls); err != nil {
		return Brand{}, err
	}
	b.Issuer, b.RevocationEndpoint, b.JWKS = m.Issuer, m.RevocationEndpoint, m.JWKSURI
	return b, nil
}

// oneOrigin wants every URL to be usable and, like the card, on the interface's
// own origin: whoever controls one origin must not speak for another.
func (b Brand) oneOrigin(allowSplit bool, urls map[string]string) error {
	at, err := Address("interface URL on the card", b.Interface)
	if err != nil {
		return err
	}
	card, err := Address("card URL", b.Card)
	if err != nil {
		return err
	}
	if err := ownCard(card, at, allowSplit); err != nil {
		return err
	}
	for what, raw := range urls {
		u, err := Address(what, raw)
		if err != nil {
			return err
		}
		if err := sameOrigin(what, u, at, allowSplit); err != nil {
			return err
		}
	}
	return nil
}

// ownCard wants the card from the interface's own origin. Where it lay elsewhere,
// such as at 127.0.0.1 for localhost, the Brand's own address is the safer way
// out: it takes no trust in anybody else.
func ownCard(card, at *url.URL, allowSplit bool) error {
	if allowSplit || origin(card) == origin(at) {
		return nil
	}
	advice := "use the Brand's own address: --card " + shell.Quote(at.String())
	if !loopback(at.Hostname()) {
		advice += "; if it has no card and you trust both, say --allow-split"
	}
	return fmt.Errorf("%w: card is on %s, but the Brand's interface is on %s; %s", ErrAddress, origin(card), origin(at), advice)
}

func sameOrigin(what string, u, at *url.URL, allowSplit bool) error {
	if allowSplit || origin(u) == origin(at) {
		return nil
	}
	return fmt.Errorf("%w: %s is on %s, but the Brand's interface is on %s; if you trust both, say --allow-split",
		ErrAddress, what, origin(u), origin(at))
}
