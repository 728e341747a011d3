package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const (
	cardPath     = "/.well-known/agent-card.json"
	metadataPath = "/.well-known/oauth-authorization-server"
)

// suite is one run against one Brand.
type suite struct {
	Config
	brand brand
}

// brand is what a server's public documents say.
type brand struct {
	card     string // its address
	at       string // the interface URL
	document cardDocument
	rawCard  []byte
	oauth    metadata
	rawOAuth []byte
	keys     []byte // the JWKS
}

type cardDocument struct {
	SupportedInterfaces []struct {
		URL string `json:"url"`
	} `json:"supportedInterfaces"`
	Capabilities         map[string]any             `json:"capabilities"`
	SecuritySchemes      map[string]json.RawMessage `json:"securitySchemes"`
	SecurityRequirements []struct {
		Schemes map[string]json.RawMessage `json:"schemes"`
	} `json:"securityRequirements"`
	delegation struct {
		OAuth2 struct {
			Flows struct {
				DeviceCode struct {
					DeviceURL  string          `json:"deviceAuthorizationUrl"`
					TokenURL   string          `json:"tokenUrl"`
					RefreshURL string          `json:"refreshUrl"`
					Scopes     json.RawMessage `json:"scopes"`
				} `json:"deviceCode"`
			} `json:"flows"`
			MetadataURL string `json:"oauth2MetadataUrl"`
		} `json:"oauth2SecurityScheme"`
	}
	scopes       []string // in the card's order
	descriptions map[string]string
}

type metadata struct {
	Issuer                 string   `json:"issuer"`
	DeviceEndpoint         string   `json:"device_authorization_endpoint"`
	TokenEndpoint          string   `json:"token_endpoint"`
	JWKSURI                string   `json:"jwks_uri"`
	RevocationEndpoint     string   `json:"revocation_endpoint"`
	IntrospectionEndpoint  string   `json:"introspection_endpoint"`
	Scopes                 []string `json:"scopes_supported"`
	GrantTypes             []string `json:"grant_types_supported"`
	TokenAuth              []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuth         []string `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionAuth      []string `json:"introspection_endpoint_auth_methods_supported"`
	StatusListsEndpoint    string   `json:"status_list_aggregation_endpoint"`
	GrantManagementActions []string `json:"grant_management_actions_supported"`
}

// find reads what everything else begins with.
func find(ctx context.Context, c Config) (*suite, error) {
	s := &suite{Config: c}
	if c.PA == nil {
		return nil, errors.New("no personal agent to ask with")
	}
	var err error
	s.brand, err = read(ctx, c.Card)
	return s, err
}

// read fetches a Brand's card, metadata and keys.
func read(ctx context.Context, address string) (brand, error) {
	b := brand{card: address}
	if !strings.HasSuffix(address, cardPath) {
		b.card = strings.TrimRight(address, "/") + cardPath
	}
	get := func(what, address string, into any) ([]byte, error) {
		a, err := (&trial{ctx: ctx}).send(call{method: http.MethodGet, url: address})
		switch {
		case err != nil:
			return nil, fmt.Errorf("fetch the %s: %w", what, err)
		case a.status != http.StatusOK:
			return nil, fmt.Errorf("fetch the %s: %s answered %d", what, address, a.status)
		}
		if err := json.Unmarshal(a.body, into); err != nil {
			return nil, fmt.Errorf("read the %s at %s: %w", what, address, err)
		}
		return a.body, nil
	}
	var err error
	if b.rawCard, err = get("agent card", b.card, &b.document); err != nil {
		return b, err
	}
	if len(b.document.SupportedInterfaces) == 0 {
		return b, fmt.Errorf("the card at %s names no interface", b.card)
	}
	b.at = b.document.SupportedInterfaces[0].URL
	delegation, there := b.document.SecuritySchemes["userDelegation"]
	if !there {
		return b, fmt.Errorf("the card at %s offers no delegation", b.card)
	}
	if err := json.Unmarshal(delegation, &b.document.delegation); err != nil {
		return b, fmt.Errorf("read userDelegation of the card at %s: %w", b.card, err)
	}
	d := b.document.delegation.OAuth2
	if b.document.scopes, b.document.descriptions, err = ordered(d.Flows.DeviceCode.Scopes); err != nil {
		return b, fmt.Errorf("read the scopes of the card at %s: %w", b.card, err)
	}
	if b.rawOAuth, err = get("metadata", d.MetadataURL, &b.oauth); err != nil {
		return b, err
	}
	var keys struct{}
	b.keys, err = get("JWKS", b.oauth.JWKSURI, &keys)
	return b, err
}

// ordered reads an object of texts in its own order.
func ordered(raw []byte) (names []string, texts map[string]string, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, nil, errors.New("not an object")
	}
	texts = make(map[string]string)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		var text string
		if err := d.Decode(&text); err != nil {
			return nil, nil, err
		}
		names, texts[name.(string)] = append(names, name.(string)), text
	}
	if len(names) < 2 {
		return nil, nil, errors.New("fewer than two scopes, which the checks need")
	}
	return names, texts, nil
}
