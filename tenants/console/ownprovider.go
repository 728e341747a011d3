package console

import (
	"net/http"
	"slices"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// providers are the organisation whose audience agents name, and the one that the
// Brand made.
func (v *visit) providers() ([]pages.Publication, []tenants.ProviderView, error) {
	all, err := tenants.ProvidersOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return nil, nil, err
	}
	var out []pages.Publication
	for _, p := range all {
		one := pages.Publication{Heading: p.Name, Pairs: []pages.Pair{
			{Label: v.text("console.provider.id"), Value: p.ID, Code: true},
			{Label: v.text("console.interface.audience"), Value: p.Audience, Code: true},
		}}
		who := "console.provider.other"
		switch {
		case p.Shared:
			who = "console.provider.shared"
		case p.Own:
			who = "console.provider.own"
		}
		one.Pairs = append(one.Pairs, pages.Pair{Label: v.text("console.provider.whose"), Value: v.text(who)})
		for _, b := range p.Brands {
			one.Pairs = append(one.Pairs, pages.Pair{Label: v.text("console.provider.brand"), Value: string(b), Code: true})
		}
		out = append(out, one)
	}
	return out, all, nil
}

// providerForm names the Provider that the Brand made, or makes it.
func (v *visit) providerForm(all []tenants.ProviderView, problems map[string]string) pages.Invite {
	if !May(v.member.Role, NameProvider) {
		return pages.Invite{}
	}
	name := v.field("provider_name", v.form.Get("provider_name"), problems)
	name.Longest, name.Plain = 200, false
	form := pages.Form{Action: pageOf(v.brand.ID, "interface/provider"), Button: v.say("console.provider.make.button"), Fields: []ui.Field{name}}
	out := pages.Invite{Heading: v.text("console.provider.make"), Lead: v.say("console.provider.make.why")}
	for _, p := range all {
		if !p.Own || p.ID != string(v.brand.ID) {
			continue
		}
		if len(problems) == 0 {
			form.Fields[0].Value = p.Name
		}
		form.Button = v.say("console.provider.name.button")
		out.Heading, out.Lead, out.Form = v.text("console.provider.name"), v.say("console.provider.name.why"), form
		return out
	}
	form.Fields = append(form.Fields, v.field("provider_audience", v.form.Get("provider_audience"), problems))
	out.Form = form
	return out
}

// providerChoices are where the Brand can move: what fits, its own, and those of
// other Brands that this owner owns too.
func (v *visit) providerChoices(chosen string, problems map[string]string) (ui.Field, error) {
	own := string(v.brand.ID)
	f := v.choice("provider", chosen, problems, [2]string{"", "console.interface.provider.fits"}, [2]string{own, "console.interface.provider.own"})
	more, err := tenants.Joinable(v.ctx(), v.h.DB, v.brand.ID, v.person.ID)
	if err != nil {
		return f, err
	}
	mine, err := tenants.ProvidersOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return f, err
	}
	for _, p := range mine {
		if p.Own && p.ID != own {
			more = append(more, p)
		}
	}
	for _, p := range more {
		f.Options = append(f.Options, ui.Option{Value: p.ID, Label: v.text("console.interface.provider.of", "name", p.Name, "id", p.ID), Chosen: p.ID == chosen})
	}
	return f, nil
}

// nameProvider is POST interface/provider.
func (v *visit) nameProvider() error {
	err := tenants.NameProvider(v.ctx(), v.edits(), v.h.Site, v.brand.ID, v.typed("provider_name"), v.typed("provider_audience"))
	problems, err := mistakesIn(err)
	if err != nil {
		return err
	}
	if len(problems) == 0 {
		return v.made("interface?named#provider")
	}
	for i := range problems {
		problems[i].Field = "provider_" + problems[i].Field
	}
	wrong, _ := v.toMend(problems)
	now, err := tenants.InterfaceOf(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	return v.tellInterface(http.StatusUnprocessableEntity, now, now, wrong, pages.Checks{})
}

// joinsAnothers reports whether the move comes to share another Brand's audience.
func (v *visit) joinsAnothers(provider, before string) (bool, error) {
	if provider == before {
		return false, nil
	}
	more, err := tenants.Joinable(v.ctx(), v.h.DB, v.brand.ID, v.person.ID)
	return slices.ContainsFunc(more, func(p tenants.ProviderView) bool { return p.ID == provider }), err
}
