package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// ErrMetadata marks authorization server metadata that an agent cannot trust.
var ErrMetadata = errors.New("OAuth metadata not usable")

// DeviceGrant is the grant type of RFC 8628 §3.4.
const DeviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

const metadataPath = "/.well-known/oauth-authorization-server"

// metadata is the part of RFC 8414 §2 that an agent needs.
type metadata struct {
	Issuer             string   `json:"issuer"`
	DeviceEndpoint     string   `json:"device_authorization_endpoint"`
	TokenEndpoint      string   `json:"token_endpoint"`
	RevocationEndpoint string   `json:"revocation_endpoint"`
	JWKSURI            string   `json:"jwks_uri"`
	GrantTypes         []string `json:"grant_types_supported"`
}

func readMetadata(data []byte) (metadata, error) {
	var m metadata
	if err := json.Unmarshal(data, &m); err != nil {
		return metadata{}, fmt.Errorf("%w: %v", ErrMetadata, err)
	}
	return m, nil
}

// agreesWith refuses metadata that tells another story than the card: one of the
// two would then be lying about where the person's approval goes.
func (m metadata) agreesWith(flow deviceFlow) error {
	switch {
	case m.DeviceEndpoint != flow.DeviceURL:
		return fmt.Errorf("%w: device_authorization_endpoint %q, but the card says %q", ErrMetadata, m.DeviceEndpoint, flow.DeviceURL)
	case m.TokenEndpoint != flow.TokenURL:
		return fmt.Errorf("%w: token_endpoint %q, but the card says %q", ErrMetadata, m.TokenEndpoint, flow.TokenURL)
	case flow.RefreshURL != "" && flow.RefreshURL != m.TokenEndpoint:
		return fmt.Errorf("%w: refreshUrl %q on the card is not the token_endpoint %q", ErrMetadata, flow.RefreshURL, m.TokenEndpoint)
	case m.GrantTypes != nil && !slices.Contains(m.GrantTypes, DeviceGrant):
		return fmt.Errorf("%w: the device code grant is not among its grant types", ErrMetadata)
	}
	return nil
}

// belongsTo checks the issuer. Strict agents want it to be the interface URL
// plus "/oauth"; where a split is allowed, the document must at least lie where
// its issuer says that it lies (RFC 8414 §3.3).
func (m metadata) belongsTo(interfaceURL, from string, allowSplit bool) error {
	if m.Issuer == interfaceURL+"/oauth" {
		return nil
	}
	if !allowSplit {
		return fmt.Errorf("%w: issuer %q is not the interface URL + \"/oauth\" (%q); --allow-split accepts that", ErrMetadata, m.Issuer, interfaceURL+"/oauth")
	}
	issuer, err := Address("issuer", m.Issuer)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMetadata, err)
	}
	if from == m.Issuer+metadataPath || from == insertedPath(issuer) {
		return nil
	}
	return fmt.Errorf("%w: issuer %q does not publish its metadata at %q", ErrMetadata, m.Issuer, from)
}

// insertedPath is the well-known address with the issuer's path behind it.
func insertedPath(issuer *url.URL) string {
	return issuer.Scheme + "://" + issuer.Host + metadataPath + strings.TrimRight(issuer.EscapedPath(), "/")
}
