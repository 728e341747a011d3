package federation

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Finding is one line of what was found at a provider, for whoever sets the
// connection up.
type Finding struct {
	Field string // as the discovery document calls it
	Value string // what stands there
	State string // ok, warn or bad
	Say   string // what is wrong; empty: nothing
	Mend  string // what to do
	Offer string // for issuer: what to take instead, if asked
	// Code names what Say and Mend say, and About what they speak of, for whoever
	// says it in another language.
	Code  string
	About string
}

// The states of a Finding.
const (
	fine    = "ok"
	warning = "warn" // logins may work all the same
	bad     = "bad"  // logins cannot work
)

// Examine fetches what the provider says of itself and compares it with the
// connection, field by field. It also tries the usual slips in an issuer – a slash
// at the end, a port, the discovery address itself – and offers what the provider
// calls itself (B54). It cannot tell whether the secret is right.
func (c *Client) Examine(ctx context.Context, conn Connection) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 2*c.patience)
	defer cancel()
	d, first := c.described(ctx, conn)
	findings := []Finding{first}
	if first.State == bad && d == nil {
		return findings
	}
	for _, e := range []struct{ field, address string }{
		{"authorization_endpoint", d.AuthorizationEndpoint},
		{"token_endpoint", d.TokenEndpoint},
		{"jwks_uri", d.JWKS},
	} {
		f := Finding{Field: e.field, Value: shown(e.address), State: fine}
		if !usable(e.address, conn.AllowLoopbackHTTP) {
			f.Code = "document.nohttps"
			f.State, f.Say, f.Mend = bad, "is no https URL", "ask whoever runs the provider to correct its discovery document"
		}
		findings = append(findings, f)
	}
	findings = append(findings, c.examineKeys(ctx, *d, conn), d.algorithms(), d.authentication(conn), d.flow())
	if f := d.pkce(); f.Say != "" {
		findings = append(findings, f)
	}
	findings = append(findings, d.scopes(conn)...)
	if f := d.subject(conn); f.Field != "" {
		findings = append(findings, f)
	}
	return findings
}

// described is the discovery document as far as connections can disagree with it.
type described struct {
	metadata
	ResponseTypes    []string `json:"response_types_supported"`
	Challenges       []string `json:"code_challenge_methods_supported"`
	Scopes           []string `json:"scopes_supported"`
	Claims           []string `json:"claims_supported"`
	AssertionSigning []string `json:"token_endpoint_auth_signing_alg_values_supported"`
}

// described fetches the document at the issuer or, where there is none, at what
// may have been meant; and says how the issuer was typed.
func (c *Client) described(ctx context.Context, conn Connection) (*described, Finding) {
	f := Finding{Field: "issuer", Value: shown(conn.Issuer), State: bad}
	var why error
	for i, issuer := range spellings(conn.Issuer) {
		if !usable(issuer, conn.AllowLoopbackHTTP) {
			continue
		}
		var d described
		err := c.getJSON(ctx, "discovery", strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", &d)
		if err != nil {
			if i == 0 || why == nil {
				why = err
			}
			continue
		}
		switch {
		case d.Issuer == conn.Issuer:
			f.State = fine
		case !usable(d.Issuer, conn.AllowLoopbackHTTP):
			f.Code = "issuer.unusable"
			f.Say, f.Mend = "names no usable issuer in its discovery document", "ask whoever runs the provider to correct it"
		case alike(d.Issuer, conn.Issuer):
			f.Code, f.About = "issuer.spelling", shown(d.Issuer)
			f.Say, f.Mend, f.Offer = "is written "+strconv.Quote(shown(d.Issuer))+" by the provider itself, and must be the same to the byte", "take the provider's spelling", d.Issuer
		default:
			f.Code, f.About = "issuer.other", shown(d.Issuer)
			f.Say, f.Mend, f.Offer = "calls itself "+strconv.Quote(shown(d.Issuer)), "take that only if you know it to be your provider", d.Issuer
		}
		return &d, f
	}
	switch {
	case why == nil:
		f.Code = "issuer.nohttps"
		f.Say, f.Mend = "is no https URL", "copy the issuer from the provider's own pages"
	case errors.Is(why, ErrUnreachable):
		f.Code = "issuer.unreachable"
		f.Say, f.Mend = "cannot be reached", "check host and port; only port 443 of public addresses is asked"
	default:
		f.Code, f.About = "issuer.nodocument", strings.TrimPrefix(why.Error(), ErrMisconfigured.Error()+": ")
		f.Say, f.Mend = "has no discovery document: "+f.About,
			"copy the issuer from the provider's own pages; its document is at issuer + /.well-known/openid-configuration"
	}
	return nil, f
}

// spellings are what may have been meant, the issuer as it was typed first.
func spellings(issuer string) []string {
	out := []string{issuer}
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	trimmed := strings.TrimSpace(issuer)
	trimmed = strings.TrimSuffix(strings.TrimSuffix(trimmed, "/"), "/.well-known/openid-configuration")
	add(trimmed)
	u, err := url.Parse(trimmed)
	if err != nil || u.Host == "" {
		if !strings.Contains(trimmed, "://") {
			add("https://" + trimmed)
		}
		return out
	}
	u.Host = strings.ToLower(u.Hostname())
	if strings.Contains(u.Host, ":") {
		u.Host = "[" + u.Host + "]"
	}
	add(u.String()) // without a port
	return out
}

// alike reports whether two issuers differ only in how one address is written.
func alike(a, b string) bool { return canonical(a) == canonical(b) }

func canonical(issuer string) string {
	trimmed := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(issuer), "/"), "/.well-known/openid-configuration")
	u, err := url.Parse(trimmed)
	if err != nil || u.Host == "" {
		return trimmed
	}
	port := u.Port()
	if port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		port = ""
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + port + strings.TrimSuffix(u.EscapedPath(), "/")
}

func (c *Client) examineKeys(ctx context.Context, d described, conn Connection) Finding {
	f := Finding{Field: "keys", State: bad}
	if !usable(d.JWKS, conn.AllowLoopbackHTTP) {
		f.Code = "keys.nowhere"
		f.Say, f.Mend = "cannot be fetched without jwks_uri", "see there"
		return f
	}
	keys, err := c.fetchKeys(ctx, d.JWKS)
	if err != nil {
		f.Code, f.About = "keys.unread", strings.TrimPrefix(err.Error(), ErrMisconfigured.Error()+": ")
		f.Say, f.Mend = f.About, "ask whoever runs the provider"
		return f
	}
	f.State, f.Value = fine, strconv.Itoa(len(keys))+" usable"
	f.Code, f.About = "keys.usable", strconv.Itoa(len(keys))
	return f
}

func (d described) algorithms() Finding {
	f := Finding{Field: "id_token_signing_alg_values_supported", Value: listed(d.Algorithms), State: fine}
	if len(d.Algorithms) > 0 && !slices.ContainsFunc(d.Algorithms, func(a string) bool { return slices.Contains(signing, a) }) {
		f.Code = "algorithms"
		f.State, f.Say, f.Mend = bad, "holds no algorithm that is accepted", "have ID tokens signed with RS256 or ES256"
	}
	return f
}

func (d described) authentication(conn Connection) Finding {
	m := d.metadata
	if len(m.AuthMethods) == 0 {
		m.AuthMethods = []string{"client_secret_basic"}
	}
	f := Finding{Field: "token_endpoint_auth_methods_supported", Value: listed(m.AuthMethods), State: fine}
	if conn.fits(m) != nil {
		f.State, f.Say = bad, "does not hold how this connection authenticates"
		f.Code, f.Mend = "auth.nokey", "use a client secret"
		if conn.Key == nil {
			f.Code = "auth.nosecret"
			f.Mend = "use private_key_jwt, if it stands there"
		}
	} else if conn.Key != nil && len(d.AssertionSigning) > 0 && !slices.Contains(d.AssertionSigning, "ES256") {
		f.Code = "auth.algorithm"
		f.State, f.Say, f.Mend = bad, "takes assertions, but none signed with ES256", "use a client secret"
	}
	return f
}

func (d described) flow() Finding {
	f := Finding{Field: "response_types_supported", Value: listed(d.ResponseTypes), State: fine}
	if len(d.ResponseTypes) > 0 && !slices.Contains(d.ResponseTypes, "code") {
		f.Code = "flow"
		f.State, f.Say, f.Mend = bad, "does not hold code", "switch on the authorization code flow at the provider"
	}
	return f
}

func (d described) pkce() Finding {
	f := Finding{Field: "code_challenge_methods_supported", Value: listed(d.Challenges), State: warning}
	if !slices.Contains(d.Challenges, "S256") {
		f.Code = "pkce"
		f.Say, f.Mend = "does not hold S256", "PKCE is always sent; a provider that heeds it is safer"
	}
	return f
}

func (d described) scopes(conn Connection) []Finding {
	var out []Finding
	for _, s := range conn.Scopes {
		if len(d.Scopes) > 0 && !slices.Contains(d.Scopes, s) {
			out = append(out, Finding{
				Field: "scopes_supported", Value: s, State: warning,
				Say: "does not hold this scope of the connection", Mend: "check its spelling, or leave it out", Code: "scope",
			})
		}
	}
	return out
}

func (d described) subject(conn Connection) Finding {
	claim := conn.SubjectClaim
	if claim == "" {
		claim = "sub"
	}
	if conn.subjectIsUsable() != nil {
		return Finding{Field: "subject_claim", Value: claim, State: bad, Say: "is an e-mail address, which can come to belong to somebody else", Mend: "name another claim", Code: "subject.mail"}
	}
	if claim != "sub" && len(d.Claims) > 0 && !slices.Contains(d.Claims, claim) {
		return Finding{
			Field: "claims_supported", Value: claim, State: warning,
			Say: "does not hold the subject claim", Mend: "a test login shows whether it comes all the same", Code: "subject.absent",
		}
	}
	return Finding{}
}

// shown bounds what a provider can put before an admin.
func shown(text string) string {
	const longest = 200
	if r := []rune(text); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return text
}

func listed(words []string) string { return shown(strings.Join(words, " ")) }
