package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrCard marks an Agent Card that an agent cannot work with.
var ErrCard = errors.New("agent card not usable")

// Scope is something a Brand lets a User allow, in the Brand's own words.
type Scope struct {
	ID          string
	Description string
}

// card is the part of the Agent Card (A2A 1.0) that delegation needs.
type card struct {
	Name                string `json:"name"`
	URL                 string `json:"url"`
	SupportedInterfaces []struct {
		URL string `json:"url"`
	} `json:"supportedInterfaces"`
	SecuritySchemes map[string]scheme `json:"securitySchemes"`
}

type scheme struct {
	HTTPAuth *struct {
		Scheme       string `json:"scheme"`
		BearerFormat string `json:"bearerFormat"`
	} `json:"httpAuthSecurityScheme"`
	OAuth2 *struct {
		Flows struct {
			DeviceCode *deviceFlow `json:"deviceCode"`
		} `json:"flows"`
		MetadataURL string `json:"oauth2MetadataUrl"`
	} `json:"oauth2SecurityScheme"`
}

type deviceFlow struct {
	DeviceURL  string        `json:"deviceAuthorizationUrl"`
	TokenURL   string        `json:"tokenUrl"`
	RefreshURL string        `json:"refreshUrl"`
	Scopes     orderedScopes `json:"scopes"`
}

func readCard(data []byte) (card, error) {
	var c card
	if err := json.Unmarshal(data, &c); err != nil {
		return card{}, fmt.Errorf("%w: %v", ErrCard, err)
	}
	return c, nil
}

// interfaceURL is where the Brand's agent answers, and the aud of its tokens.
func (c card) interfaceURL() string {
	if len(c.SupportedInterfaces) > 0 {
		return c.SupportedInterfaces[0].URL
	}
	return c.URL
}

// identity checks that agents are recognised by a pa-jwt. The scheme has one of
// two names in the wild; both at once would leave open which one is meant (M8).
func (c card) identity() error {
	var found []string
	for _, name := range []string{"paJwt", "platformJwt"} {
		if s, there := c.SecuritySchemes[name]; there {
			if s.HTTPAuth == nil || !strings.EqualFold(s.HTTPAuth.Scheme, "Bearer") || !strings.EqualFold(s.HTTPAuth.BearerFormat, "JWT") {
				return fmt.Errorf("%w: security scheme %s is not HTTP Bearer with a JWT", ErrCard, name)
			}
			found = append(found, name)
		}
	}
	switch len(found) {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("%w: no paJwt (or platformJwt) security scheme, so this is not a PACT Brand", ErrCard)
	}
	return fmt.Errorf("%w: paJwt and platformJwt at once", ErrCard)
}

// delegation is the device flow and the metadata address.
func (c card) delegation() (deviceFlow, string, error) {
	s, there := c.SecuritySchemes["userDelegation"]
	if !there {
		return deviceFlow{}, "", fmt.Errorf("%w: this Brand offers no delegation (no userDelegation on its card)", ErrCard)
	}
	if s.OAuth2 == nil || s.OAuth2.Flows.DeviceCode == nil {
		return deviceFlow{}, "", fmt.Errorf("%w: userDelegation has no device code flow", ErrCard)
	}
	flow := *s.OAuth2.Flows.DeviceCode
	if len(flow.Scopes) == 0 {
		return deviceFlow{}, "", fmt.Errorf("%w: userDelegation has no scopes", ErrCard)
	}
	return flow, s.OAuth2.MetadataURL, nil
}

// orderedScopes keeps the Brand's order, which a Go map would lose, and which is
// the order people read.
type orderedScopes []Scope

func (o *orderedScopes) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return errors.New("scopes is not an object")
	}
	seen := map[string]bool{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		s := Scope{ID: name.(string)} // a member name is always a string
		if s.ID == "" || seen[s.ID] {
			return fmt.Errorf("scope %q is empty or occurs twice", s.ID)
		}
		seen[s.ID] = true
		if err := decoder.Decode(&s.Description); err != nil {
			return fmt.Errorf("scope %q has no description", s.ID)
		}
		*o = append(*o, s)
	}
	return nil
}
