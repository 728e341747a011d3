package discovery

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ExamineSaved reads a saved Agent Card as a strict agent does, and the saved OAuth
// metadata beside it where there is any. It asks nobody.
func ExamineSaved(data, oauth []byte) []Line {
	var e examination
	parsed, err := readCard(data)
	if !e.say("card", "", err, "an agent card of "+parsed.Name) {
		return e.lines
	}
	at := parsed.interfaceURL()
	e.say("identity", "", parsed.identity(), "agents are recognised by a pa-jwt")
	flow, metadataURL, err := parsed.delegation()
	if !e.say("delegation", "", err, fmt.Sprintf("%d scopes", len(flow.Scopes))) {
		return e.lines
	}
	e.say("requirements", "", requirements(data), "without delegation, and with it")
	if metadataURL == "" {
		metadataURL = at + "/oauth" + metadataPath
	}
	b := Brand{Card: at + cardPath, Interface: at}
	e.say("origin", "", b.oneOrigin(false, map[string]string{
		"deviceAuthorizationUrl": flow.DeviceURL, "tokenUrl": flow.TokenURL, "oauth2MetadataUrl": metadataURL,
	}), "every address is on the interface's own origin, "+at)
	if oauth == nil {
		return e.lines
	}
	m, err := readMetadata(oauth)
	if e.say("metadata", "", err, "OAuth metadata") {
		e.say("issuer", "", m.belongsTo(at, metadataURL, false), m.Issuer)
		e.say("endpoints", "", m.agreesWith(flow), "are those of the card")
	}
	return e.lines
}

// requirements wants the entry with the pa-jwt alone and one that names delegation
// too (M8).
func requirements(data []byte) error {
	var c struct {
		SecurityRequirements []struct {
			Schemes map[string]json.RawMessage `json:"schemes"`
		} `json:"securityRequirements"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("%w: securityRequirements: %v", ErrCard, err)
	}
	var found []string
	for _, r := range c.SecurityRequirements {
		names := slices.Sorted(maps.Keys(r.Schemes))
		found = append(found, strings.ReplaceAll(strings.Join(names, "+"), "platformJwt", "paJwt"))
	}
	slices.Sort(found)
	if !slices.Equal(found, []string{"paJwt", "paJwt+userDelegation"}) {
		return fmt.Errorf("%w: securityRequirements are to be the pa-jwt alone, and the pa-jwt with userDelegation (M8)", ErrCard)
	}
	return nil
}
