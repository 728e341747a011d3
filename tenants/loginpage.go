package tenants

import (
	"net/url"
	"slices"
	"strings"

	"countersign.dev/tenants/egress"
)

// tidyPage is tidy for kind assertion. The person's id is always sub: the Brand
// writes the assertion itself and needs no other claim.
func (d *ConnectionDraft) tidyPage() {
	if d.SubjectClaim == "" {
		d.SubjectClaim = "sub"
	}
	if d.Scopes == nil {
		d.Scopes = []string{}
	}
	if d.LoginOrigin == "" {
		d.LoginOrigin = Origin(d.LoginURL)
	}
}

// checkPage checks the Brand's own login page. People are sent there, and believed
// when they come back, so it is at a place that the Brand has proved.
func (d ConnectionDraft) checkPage(p *Problems, site Site, hosts Hosts) {
	if err := egress.CheckURL(d.JWKSURI, site.AllowLoopback); err != nil || len(d.JWKSURI) > longestURL {
		p.add("jwks_uri", "is no address that keys can be fetched from", "publish the public keys as a JWK set at an https URL on port 443, and give that URL")
		p.kind(NoKeysURL)
	}
	if p.page("login_url", d.LoginURL, site, hosts) {
		u, err := url.Parse(d.LoginURL)
		if err == nil && u.Query().Has(returnTo) {
			p.add("login_url", "names "+returnTo+" already", "leave it out: it is added for each person")
			p.kind(NamesReturn, returnTo)
		}
	}
	if d.LoginOrigin != "" || d.LoginURL == "" {
		p.origin("login_origin", d.LoginOrigin, site, hosts)
	}
	if d.LoginOrigin != "" && d.LoginOrigin == Origin(site.PublicURL) {
		p.add("login_origin", "is this service's own", "give the origin of the Brand's page")
		p.kind(OurOrigin)
	}
	for _, o := range []struct {
		field string
		given bool
	}{
		{"client_id", d.ClientID != ""},
		{"client_secret", d.Secret != ""},
		{"auth", d.Auth != ""},
		{"scopes", len(d.Scopes) > 0},
		{"subject_claim", d.SubjectClaim != "sub"},
		{"prompt", d.Prompt != ""},
		{"max_age", d.MaxAge != nil},
	} {
		if o.given {
			p.add(o.field, "is of no use with kind assertion", "leave it out: it is for OpenID providers")
			p.kind(ForProviders)
		}
	}
}

// returnTo is the parameter of the login page that says where the person is to be
// brought back to.
const returnTo = "return_to"

// LoginLink is the address at which a person signs in on the Brand's own page and
// is brought back to the address back.
func (c LoginConnection) LoginLink(back string) string {
	joint := "?"
	if strings.Contains(c.LoginURL, "?") {
		joint = "&"
	}
	return c.LoginURL + joint + returnTo + "=" + url.QueryEscape(back)
}

// ownPage checks once more that the page is at a place that the Brand has proved:
// a domain may have gone since the connection was saved.
func (c Connection) ownPage(site Site, hosts Hosts) Problems {
	var p Problems
	if c.Kind == KindAssertion {
		p.page("login_url", c.LoginURL, site, hosts)
		p.page("login_origin", c.LoginOrigin, site, hosts)
	}
	return p
}

// page checks an address of the Brand's that people are sent to, on any port.
func (p *Problems) page(field, raw string, site Site, hosts Hosts) bool {
	before := len(*p)
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.User != nil || len(raw) > longestURL || strings.Contains(raw, "#") || strings.ContainsFunc(raw, unprintable):
		p.add(field, "is no absolute URL without user and fragment", "write it out, from https:// on")
		p.kind(NoURL)
	case site.AllowLoopback && loopback(u.Hostname()) && (u.Scheme == "http" || u.Scheme == "https"):
	case u.Scheme != "https":
		p.add(field, "is not https", "begin it with https://")
		p.kind(NoHTTPS)
	default:
		p.own(field, u, hosts)
	}
	return len(*p) == before
}

// origin checks that the text is one, to the byte as browsers write it in the
// Origin header: it is compared with that and nothing else.
func (p *Problems) origin(field, raw string, site Site, hosts Hosts) {
	if !p.page(field, raw, site, hosts) {
		return
	}
	if is := Origin(raw); is != raw {
		p.add(field, "is not written as browsers write an origin", "write "+is)
		p.kind(NotAsBrowsers, is)
	}
}

// Origin is the origin of the URL as browsers write it; empty if it has none.
func Origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	host, err := hostNames.ToASCII(u.Hostname())
	if err != nil { // an address, or a name of this machine
		host = strings.ToLower(u.Hostname())
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	usual := []string{"https 443", "http 80"}
	if port := u.Port(); port != "" && !slices.Contains(usual, u.Scheme+" "+port) {
		host += ":" + port
	}
	return u.Scheme + "://" + host
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }
