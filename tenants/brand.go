package tenants

import (
	"slices"
	"strconv"
	"time"
)

// Mode is where a Brand's interface and issuer live (design decision 1).
type Mode string

// The three ways to live.
const (
	Hosted  Mode = "hosted"  // we serve the interface
	Fronted Mode = "fronted" // the Brand's proxy forwards {interface}/oauth/* here
	Split   Mode = "split"   // interface at the Brand, issuer on our origin
)

// State is whether a Brand works.
type State string

// Pending is a Brand without a tried signing key: to agents it does not exist.
// Paused answers 503 and is reversible; Closed ends everything but the JWKS.
const (
	Pending State = "pending"
	Active  State = "active"
	Paused  State = "paused"
	Closed  State = "closed"
)

// Brand is one tenant as its settings describe it. Values are shared between
// callers and must not be changed.
type Brand struct {
	ID           BrandID
	Provider     string
	Audience     string // what a pa-jwt must name in aud (M3)
	Name         string
	Organisation string // who stands behind it
	Description  string
	Mode         Mode
	State        State
	Delegation   bool
	InterfaceURL string // the aud of its tokens
	Issuer       string // the iss of its tokens
	// IdentityScheme is the name of the card's JWT scheme: paJwt or platformJwt.
	IdentityScheme string
	Colour         string // #rrggbb
	SupportURL     string
	PrivacyURL     string
	TokenLifetime  time.Duration
	Grace          time.Duration // how long a spent refresh token still answers with its successor
	IdleDays       int           // how long an agent may stay away before its grant ends
	GrantDays      []int         // the choices a person has
	GrantDefault   int
	SigningAlg     string
	RotationDays   int // how often its key changes by itself
	// SkipConsent lets an agent that asks only for what it has through with one
	// Continue; never for high-impact scopes.
	SkipConsent bool
	// ConnectedURL, Languages and Agents are as in Settings.
	ConnectedURL string
	Languages    []string
	Agents       string
	// Proven: a domain is shown to be the Brand's own, or the operator let it in.
	// Until then only test agents work with it.
	Proven bool
	Domain string  // the first it proved whose proof still stands; empty: none
	Logo   string  // the hash of its logo; empty: it has none
	Scopes []Scope // on the card, in the Brand's order; retired ones are absent
	// DetailTypes are those whose scope is on the card, by name.
	DetailTypes []DetailType
}

// Exists reports whether the Brand is there for agents at all. One that is not
// answers 404, before anybody is asked who they are.
func (b *Brand) Exists() bool { return b.State != Pending && b.State != Closed }

// Open reports whether agents may come that nobody has registered. A Brand that
// has proved nothing is never open: whoever called himself a bank would draw them.
func (b *Brand) Open() bool { return b.State == Active && b.Proven && b.Agents == AgentsOpen }

// Scope is one thing a Brand lets agents do.
type Scope struct {
	ID          string
	Description string // the Brand's own words, shown verbatim
	Effect      string // sees, changes or pays
	Impact      string // low, medium or high
	Undo        string // the Brand's words on how to undo it; may be empty
	Texts       map[string]ScopeText
}

// ScopeText is a Brand-written translation of a scope. We never translate.
type ScopeText struct {
	Description string `json:"description"`
	Undo        string `json:"undo"`
}

// Text returns the scope's words in the language, or in the Brand's own where
// it wrote no translation.
func (s Scope) Text(lang string) ScopeText {
	if t, ok := s.Texts[lang]; ok && t.Description != "" {
		return t
	}
	return ScopeText{Description: s.Description, Undo: s.Undo}
}

// Scope returns the scope with the id, if it is on the card.
func (b *Brand) Scope(id string) (Scope, bool) {
	i := slices.IndexFunc(b.Scopes, func(s Scope) bool { return s.ID == id })
	if i < 0 {
		return Scope{}, false
	}
	return b.Scopes[i], true
}

// Endpoints of the Brand's issuer. They stand on the card and in the metadata
// and must be equal byte for byte in both (P38), so they are made only here.
func (b *Brand) DeviceAuthorizationEndpoint() string { return b.Issuer + "/device_authorization" }

// TokenEndpoint is the token and refresh URL.
func (b *Brand) TokenEndpoint() string { return b.Issuer + "/token" }

// RevocationEndpoint is the RFC 7009 URL.
func (b *Brand) RevocationEndpoint() string { return b.Issuer + "/revoke" }

// IntrospectionEndpoint is the RFC 7662 URL.
func (b *Brand) IntrospectionEndpoint() string { return b.Issuer + "/introspect" }

// GrantManagementEndpoint is what an agent puts the id of a grant behind, after a
// slash, to ask about it or to end it.
func (b *Brand) GrantManagementEndpoint() string { return b.Issuer + "/grants" }

// JWKSURI is where the Brand's public keys stand.
func (b *Brand) JWKSURI() string { return b.Issuer + "/jwks.json" }

// StatusListURI is where the status list with the number stands.
func (b *Brand) StatusListURI(list int) string { return b.Issuer + "/status/" + strconv.Itoa(list) }

// StatusListsURI is where the URIs of all its status lists stand.
func (b *Brand) StatusListsURI() string { return b.Issuer + "/status" }

// LogURI names the log of the Brand's receipts; what is public of it stands below.
func (b *Brand) LogURI() string { return b.Issuer + "/log" }

// MetadataURL is the RFC 8414 document in the form that appends to the issuer.
func (b *Brand) MetadataURL() string {
	return b.Issuer + "/.well-known/oauth-authorization-server"
}

// CardURL is the Brand's Agent Card.
func (b *Brand) CardURL() string { return b.InterfaceURL + "/.well-known/agent-card.json" }
