package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Line is one thing that a strict agent looks at, and what it makes of it.
type Line struct {
	What string // card, identity, delegation, interface, origin, metadata, issuer, endpoints, jwks
	At   string // the address that was asked; may be empty
	OK   bool
	Say  string // what was found, or what is wrong
}

// Expected is what the Brand's own settings say.
type Expected struct {
	Interface, Issuer string
	// Split: the issuer is elsewhere, which strict agents refuse.
	Split bool
	// KIDs are the keys that stand in the JWKS.
	KIDs []string
}

// Examine reads the Brand through its public URLs as a strict agent does, goes on
// where an agent would stop, and tells each thing by itself. It sees what stands
// between the world and us: a proxy, DNS, a certificate.
func (c Client) Examine(ctx context.Context, want Expected) []Line {
	e := examination{Client: c, want: want}
	flow, metadataURL := e.card(ctx)
	m, ok := e.metadata(ctx, metadataURL)
	if ok {
		e.compare(m, flow)
		e.jwks(ctx, m)
	}
	return e.lines
}

type examination struct {
	Client
	want  Expected
	lines []Line
}

func (e *examination) say(what, at string, err error, found string) bool {
	l := Line{What: what, At: at, OK: err == nil, Say: found}
	if err != nil {
		l.Say = err.Error()
	}
	e.lines = append(e.lines, l)
	return err == nil
}

// card returns what the card says of delegation; empty where it says nothing.
func (e *examination) card(ctx context.Context) (flow deviceFlow, metadataURL string) {
	metadataURL = e.want.Issuer + metadataPath
	at := e.want.Interface + cardPath
	data, err := e.Get(ctx, "the agent card", at)
	if !e.say("card", at, err, "answers") {
		return deviceFlow{}, metadataURL
	}
	parsed, err := readCard(data)
	if err != nil {
		e.say("card", at, err, "")
		return deviceFlow{}, metadataURL
	}
	e.say("identity", "", parsed.identity(), "agents are recognised by a pa-jwt")
	e.say("interface", "", equal("the interface URL on the card", parsed.interfaceURL(), e.want.Interface), e.want.Interface)
	flow, named, err := parsed.delegation()
	if !e.say("delegation", "", err, fmt.Sprintf("%d scopes", len(flow.Scopes))) {
		return deviceFlow{}, metadataURL
	}
	if named != "" {
		metadataURL = named
	}
	b := Brand{Card: at, Interface: e.want.Interface}
	e.say("origin", "", b.oneOrigin(e.want.Split, map[string]string{
		"deviceAuthorizationUrl": flow.DeviceURL, "tokenUrl": flow.TokenURL, "oauth2MetadataUrl": metadataURL,
	}), "every address is on the interface's own origin")
	return flow, metadataURL
}

func (e *examination) metadata(ctx context.Context, at string) (metadata, bool) {
	data, err := e.Get(ctx, "the OAuth metadata", at)
	if !e.say("metadata", at, err, "answers") {
		return metadata{}, false
	}
	m, err := readMetadata(data)
	if err != nil {
		return metadata{}, e.say("metadata", at, err, "")
	}
	// Many clients know only the form with the issuer's path behind (RFC 8414 §3.1).
	if issuer, err := Address("issuer", e.want.Issuer); err == nil && insertedPath(issuer) != at {
		again, err := e.Get(ctx, "the OAuth metadata", insertedPath(issuer))
		if err == nil && string(again) != string(data) {
			err = errors.New("is another document than at " + at)
		}
		e.say("metadata", insertedPath(issuer), err, "answers the same")
	}
	return m, true
}

func (e *examination) compare(m metadata, flow deviceFlow) {
	err := equal("the issuer", m.Issuer, e.want.Issuer)
	if err == nil && e.want.Split {
		e.say("issuer", "", nil, m.Issuer+"; it is not on the interface's origin: strict agents refuse that")
	} else {
		if err == nil {
			err = m.belongsTo(e.want.Interface, e.want.Issuer+metadataPath, false)
		}
		e.say("issuer", "", err, m.Issuer)
	}
	e.say("endpoints", "", m.agreesWith(flow), "are those of the card")
}

func (e *examination) jwks(ctx context.Context, m metadata) {
	data, err := e.Get(ctx, "the keys", m.JWKSURI)
	if err != nil {
		e.say("jwks", m.JWKSURI, err, "")
		return
	}
	var set struct {
		Keys []struct {
			KID string          `json:"kid"`
			D   json.RawMessage `json:"d"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		e.say("jwks", m.JWKSURI, errors.New("is no key set"), "")
		return
	}
	published := map[string]bool{}
	for _, k := range set.Keys {
		published[k.KID] = true
		if len(k.D) > 0 {
			err = errors.New("publishes a private key")
		}
	}
	var missing []string
	for _, kid := range e.want.KIDs {
		if !published[kid] {
			missing = append(missing, kid)
		}
	}
	if err == nil && len(missing) > 0 {
		err = errors.New("lacks " + strings.Join(missing, ", ") + ": does something on the way keep an old answer?")
	}
	e.say("jwks", m.JWKSURI, err, fmt.Sprintf("%d keys", len(set.Keys)))
}

func equal(what, got, want string) error {
	if got != want {
		return fmt.Errorf("%s is %q, but the settings say %q", what, got, want)
	}
	return nil
}
