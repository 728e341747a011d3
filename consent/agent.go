package consent

import (
	"net/http"
	"slices"

	"countersign.dev/authority"
	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/web/ui"
)

// agent is all about one agent: each permission, to be ended by itself, what it
// did, and what the person answered, when, and in which words.
func (v *visit) agent(l login, g authority.Grant, ended, before string) error {
	said, err := v.h.Authority.Consents(v.ctx(), v.brand.ID, l.Subject, g.ID)
	if err != nil {
		return err
	}
	pause, err := v.pause(l)
	if err != nil {
		return err
	}
	done, err := v.deeds(g, said, before)
	if err != nil {
		return err
	}
	d := words.AgentData{
		Common: v.common(v.at("agents", "agent", g.ID.String())), Account: l.Account,
		SwitchURL: v.pages("login", "switch", "1"), BackURL: v.pages("agents"),
		Held: v.held(g), Pause: pause, JustEnded: v.justNarrowed(g, said, ended), Done: done,
	}
	for _, s := range v.brand.Scopes {
		if slices.Contains(g.Scopes, s.ID) {
			d.Rights = append(d.Rights, words.Right{
				Description: s.Text(v.lang.Tag).Description, Effect: words.Effect(s.Effect),
				Details: v.details(g.Details.Of(s.ID), v.lang.Tag),
				EndURL:  v.pages("agents", "end", g.ID.String(), "scope", s.ID),
			})
		}
	}
	for _, c := range said {
		o := words.Occasion{At: c.At, Language: c.Language, Days: c.Days, Continued: c.Answer == "continued"}
		for _, s := range c.Allowed {
			o.Allowed = append(o.Allowed, words.Once{Description: s.Description, Over: !slices.Contains(g.Scopes, s.ID)})
		}
		if len(o.Allowed) > 0 {
			d.History = append(d.History, o)
		}
	}
	return ui.Render(v.ctx(), v.w, http.StatusOK, pages.Agent(words.OneAgent(d)))
}

// justNarrowed is the permission that the address says was taken away: one that
// was allowed once, and is not any more.
func (v *visit) justNarrowed(g authority.Grant, said []authority.Consent, scope string) string {
	s, ok := v.brand.Scope(scope)
	once := slices.ContainsFunc(said, func(c authority.Consent) bool {
		return slices.ContainsFunc(c.Allowed, func(o authority.SeenScope) bool { return o.ID == scope })
	})
	if !ok || !once || slices.Contains(g.Scopes, scope) {
		return ""
	}
	return s.Text(v.lang.Tag).Description
}
