package console

import (
	"errors"
	"slices"
	"strings"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// toMend tells whether err is mistakes in what was typed, and words them by field.
func (v *visit) toMend(err error) (map[string]string, bool) {
	var all tenants.Problems
	if !errors.As(err, &all) {
		return nil, false
	}
	out := make(map[string]string)
	for _, p := range all {
		if out[p.Field] == "" {
			out[p.Field] = v.text("console.setup.mend", "field", v.fieldName(p.Field), "say", v.mistake(p))
		}
	}
	return out, true
}

// warnings say the problems above a page, where no form has their fields.
func warnings(problems map[string]string) []ui.Notice {
	var out []ui.Notice
	for _, text := range sortedTexts(problems) {
		out = append(out, ui.Notice{Text: ui.Plain(text), Warning: true})
	}
	return out
}

// fieldNames are the forms' fields, by the names that API and file give them.
var fieldNames = map[string]string{
	"host": "console.domains.host", "mode": "console.interface.mode", "interface_url": "console.interface.url",
	"provider": "console.interface.provider", "audience": "console.interface.audience", "confirm": "console.move.confirm",
	"provider_name": "console.provider.called", "provider_audience": "console.provider.aud",
	"issuer": "console.connect.issuer", "client_id": "console.connect.client", "client_secret": "console.connect.secret",
	"auth": "console.connect.auth", "subject_claim": "console.connect.claim", "scopes": "console.connect.scopes",
	"login_url": "console.ownlogin.url", "jwks_uri": "console.ownlogin.keys", "login_origin": "console.ownlogin.origin",
	"proven": "console.pending.field.proven", "scope": "console.pending.field.scope", "description": "console.pending.field.description",
	"impact": "console.pending.field.impact", "follows": "console.pending.field.follows", "key": "console.pending.field.key",
	"state": "console.pending.field.state", "agents": "console.pending.field.agents", "webhook": "console.pending.field.webhook",
	"brand": "console.field.id", "organisation": "console.field.organisation", "email": "console.members.who", "role": "console.members.role",
	"url": "console.webhooks.url", "events": "console.webhooks.events", "format": "console.webhook.format",
	"name": "console.pending.field.name", "rights": "console.apikeys.rights", "kind": "console.pending.field.kind",
	"signing_alg": "console.pending.field.alg", "rotation_days": "console.set.field.rotation_days",
	"prompt": "console.connect.prompt", "max_age": "console.connect.age",
}

func (v *visit) fieldName(field string) string {
	if key, ok := fieldNames[field]; ok {
		return v.text(key)
	}
	return field
}

// field is one thing to fill in, with its own hint and what is wrong with it.
func (v *visit) field(name, value string, problems map[string]string) ui.Field {
	key := fieldNames[name]
	return ui.Field{
		Name: name, Label: v.text(key), Hint: v.text(key + ".hint"), Value: value, Plain: true, Longest: 2048, Problem: problems[name],
	}
}

// choice is a field with its options; labels are keys of the catalogue.
func (v *visit) choice(name, chosen string, problems map[string]string, options ...[2]string) ui.Field {
	f := v.field(name, "", problems)
	for _, o := range options {
		f.Options = append(f.Options, ui.Option{Value: o[0], Label: v.text(o[1]), Chosen: o[0] == chosen})
	}
	return f
}

// english is the language in which rules and outside looks speak.
const english = "en"

// verdicts are how a line that was looked at stands.
var verdicts = map[string][2]string{
	"ok":   {"console.check.ok", "good"},
	"warn": {"console.check.warn", "care"},
	"bad":  {"console.check.bad", "bad"},
}

// checks words what was found. offer is what one button does about a line; it may
// be empty.
func (v *visit) checks(heading, lead string, lines []tenants.Line, offer func(tenants.Line) ui.Post) pages.Checks {
	c := pages.Checks{
		Heading: v.text(heading), Lead: v.say(lead),
		Head: [3]string{v.text("console.check.what"), v.text("console.check.found"), v.text("console.check.result")},
	}
	for _, l := range lines {
		verdict := verdicts[l.State]
		line := pages.CheckLine{What: l.What, At: l.At, Verdict: pages.Verdict{Word: v.text(verdict[0]), Kind: verdict[1]}}
		if name := v.text("console.look.at." + l.What); name != "" {
			line.What = name
		}
		if l.Code != "" {
			line.Say = v.text("console.look."+l.Code, "one", v.cause(l.About[0]), "two", l.About[1])
		}
		if line.Say == "" {
			line.Say, line.Lang = said(l), english
		}
		if l.Offer != "" && offer != nil {
			line.Offer = offer(l)
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}

// said is what a line says by itself.
func said(l tenants.Line) string {
	parts := slices.DeleteFunc([]string{l.Say, l.Mend}, func(s string) bool { return s == "" })
	return strings.Join(parts, "; ")
}

// touchFirst asks for the passkey before anything is typed that the way to it
// would lose.
func (v *visit) touchFirst(action Action) []ui.Notice {
	if !May(v.member.Role, action) || v.isFresh() {
		return nil
	}
	text := v.say("console.setup.touch")
	text = append(text, ui.Span{Text: " "}, ui.Span{Text: v.text("console.setup.touch.link"), Href: withBack("/console/touch", back(v.r.URL.RequestURI()))})
	return []ui.Notice{{Text: text}}
}

func (v *visit) told(query, key string) []ui.Notice {
	if v.r.Method == "GET" && v.r.URL.Query().Has(query) {
		return []ui.Notice{{Text: v.say(key)}}
	}
	return nil
}

// post is a button that changes something of the Brand.
func (v *visit) post(key, path string, hidden ...ui.Hidden) ui.Post {
	return ui.Post{Action: pageOf(v.brand.ID, path), Hidden: hidden, Button: ui.Button{Label: v.say(key)}}
}
