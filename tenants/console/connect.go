package console

import (
	"net/http"
	"strings"

	"countersign.dev/deploy/proxy"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// showConnect is GET connect: where everything of the Brand stands, and what leads
// there from an address of its own.
func (v *visit) showConnect() error {
	frame, err := v.brandFrame("connect", "console.reach.heading")
	if err != nil {
		return err
	}
	b := v.brand
	view := pages.ConnectView{
		Frame: frame, Heading: v.say("console.reach.heading"), Lead: []ui.Phrase{v.say("console.reach.lead"), v.living()},
		Card: v.link("console.reach.card", b.CardURL()),
		Places: pages.Table{Head: []string{
			v.text("console.reach.what"), v.text("console.reach.where"), v.text("console.reach.for"),
		}},
		Otherwise: v.otherwise(
			[]string{v.call(http.MethodGet, "interface", ""), v.call(http.MethodPost, "interface/check", "")},
			[]string{v.command("brand show"), v.command("brand check")},
		),
	}
	for _, p := range []struct{ what, why, url string }{
		{"console.reach.agentcard", "console.reach.agentcard.for", b.CardURL()},
		{"console.reach.metadata", "console.reach.metadata.for", b.MetadataURL()},
		{"console.reach.jwks", "console.reach.jwks.for", b.JWKSURI()},
		{"console.reach.archive", "console.reach.archive.for", b.Issuer + "/jwks-archive.json"},
		{"console.reach.status", "console.reach.status.for", b.StatusListsURI()},
		{"console.reach.events", "console.reach.events.for", b.Issuer + "/events"},
		{"console.reach.introspect", "console.reach.introspect.for", b.IntrospectionEndpoint()},
		{"console.reach.agent", "console.reach.agent.for", b.Issuer + "/agent"},
		{"console.reach.verify", "console.reach.verify.for", b.Issuer + "/verify"},
	} {
		view.Places.Rows = append(view.Places.Rows, pages.Row{cell(v.say(p.what)), {Code: p.url}, cell(v.say(p.why))})
	}
	front := b.InterfaceURL
	text := []ui.Phrase{v.say("console.reach.proxy.lead"), v.say("console.reach.proxy.headers")}
	if b.Mode != tenants.Fronted {
		// What would have to stand there, at an address that is nobody's.
		front = "https://agents.example/" + string(b.ID)
		text = append(text, v.say("console.reach.proxy.later", "host", "agents.example"))
	}
	view.Proxies = pages.Section{Heading: v.text("console.reach.proxy"), Text: text}
	snippets, err := proxy.Snippets(v.h.PublicURL, string(b.ID), strings.TrimSuffix(front, "/"))
	if err != nil {
		return err
	}
	guards, err := proxy.Guards(v.h.PublicURL, string(b.ID), strings.TrimSuffix(front, "/"))
	if err != nil {
		return err
	}
	view.Guard = pages.Section{Heading: v.text("console.reach.guard"), Text: []ui.Phrase{
		v.say("console.reach.guard.lead"), v.say("console.reach.guard.key"),
	}}
	view.Snippets, view.Guards = samples(snippets), samples(guards)
	return v.render(http.StatusOK, pages.Connect(view))
}

func samples(all []proxy.Snippet) []pages.Sample {
	list := make([]pages.Sample, len(all))
	for i, s := range all {
		list[i] = pages.Sample{Label: s.Name, Text: s.Text}
	}
	return list
}

// living says how the Brand lives.
func (v *visit) living() ui.Phrase {
	switch v.brand.Mode {
	case tenants.Fronted:
		return v.say("console.reach.fronted", "url", v.brand.InterfaceURL)
	case tenants.Split:
		return v.say("console.reach.split", "url", v.brand.InterfaceURL)
	}
	return v.say("console.reach.hosted", "url", v.brand.InterfaceURL)
}
