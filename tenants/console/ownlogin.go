package console

import (
	"strings"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// ownLoginForm is for a Brand whose customers prove who they are on its own page,
// which signs an assertion (wire.md §6). It is beside the OpenID provider's form:
// whichever was saved last is the candidate.
func (v *visit) ownLoginForm(c connecting) pages.Invite {
	d, problems := c.draft, c.problems
	if d.Kind != tenants.KindAssertion {
		d, problems = tenants.ConnectionDraft{}, nil
	}
	issuer := v.field("issuer", d.Issuer, problems)
	issuer.Element, issuer.Label, issuer.Hint = "own-issuer", v.text("console.ownlogin.issuer"), v.text("console.ownlogin.issuer.hint")
	return pages.Invite{
		Heading: v.text("console.ownlogin.heading"), Lead: v.say("console.ownlogin.lead"),
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "login"), Button: v.say("console.connect.set.button"),
			Hidden: []ui.Hidden{{Name: "kind", Value: tenants.KindAssertion}},
			Fields: []ui.Field{
				v.field("login_url", d.LoginURL, problems), issuer, v.field("jwks_uri", d.JWKSURI, problems),
				v.field("login_origin", d.LoginOrigin, problems),
			},
		},
	}
}

// typedOwnLogin reads it.
func (v *visit) typedOwnLogin() connecting {
	typed := func(name string) string { return strings.TrimSpace(v.form.Get(name)) }
	return connecting{draft: tenants.ConnectionDraft{
		Kind: tenants.KindAssertion, Issuer: typed("issuer"), JWKSURI: typed("jwks_uri"),
		LoginURL: typed("login_url"), LoginOrigin: typed("login_origin"),
	}}
}

// ownLoginPairs are what such a connection consists of.
func (v *visit) ownLoginPairs(c tenants.Connection) []pages.Pair {
	return []pages.Pair{
		{Label: v.text("console.ownlogin.url"), Value: c.LoginURL, Code: true},
		{Label: v.text("console.ownlogin.issuer"), Value: c.Issuer, Code: true},
		{Label: v.text("console.ownlogin.keys"), Value: c.JWKSURI, Code: true},
		{Label: v.text("console.ownlogin.origin"), Value: c.LoginOrigin, Code: true},
	}
}
