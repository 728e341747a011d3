package console

import "countersign.dev/web/ui"

// A menuPage is one of the pages in the menu.
type menuPage struct {
	key, page string
	action    Action
}

// nav is the menu: the Brand's pages, by what somebody has come for.
var nav = []struct {
	key   string
	pages []menuPage
}{
	{"console.nav.home", []menuPage{{"console.nav.home", "", See}}},
	{"console.nav.activity", []menuPage{
		{"console.grants.nav", "grants", SeeGrants},
		{"console.usage.nav", "usage", SeeUsage},
		{"console.trail.nav", "trail", SeeTrail},
		{"console.nav.erase", "erase", EraseUser},
	}},
	{"console.nav.asked", []menuPage{
		{"console.nav.permissions", "permissions", See},
		{"console.nav.settings", "settings", See},
		{"console.nav.agents", "agents", See},
		{"console.nav.try", "try", TryOut},
	}},
	{"console.nav.reached", []menuPage{
		{"console.nav.domains", "domains", See},
		{"console.nav.login", "login", See},
		{"console.nav.interface", "interface", See},
		{"console.nav.supportagent", "support-agent", SeeAgentEndpoint},
		{"console.nav.connect", "connect", See},
	}},
	{"console.nav.machines", []menuPage{
		{"console.nav.apikeys", "api-keys", SeeAPIKeys},
		{"console.nav.webhooks", "webhooks", SeeWebhooks},
		{"console.nav.signingkeys", "signing-keys", SeeSigningKeys},
	}},
	{"console.nav.house", []menuPage{
		{"console.nav.members", "members", SeeMembers},
		{"console.nav.changes", "changes", See},
		{"console.nav.pause", "pause", See},
		{"console.nav.leave", "leave", SeeLeaving},
	}},
}

// menu is the way to every page that the member may see: the groups, and beneath
// them the pages of the one that page is in. A group leads to its first page.
func (v *visit) menu(page string) (groups, inGroup []ui.Link) {
	for _, g := range nav {
		var links []ui.Link
		here := false
		for _, p := range g.pages {
			if May(v.member.Role, p.action) {
				l := v.link(p.key, pageOf(v.brand.ID, p.page))
				l.Current = p.page == page
				here = here || l.Current
				links = append(links, l)
			}
		}
		if len(links) == 0 {
			continue
		}
		l := v.link(g.key, links[0].Href)
		l.Current = here
		groups = append(groups, l)
		if here && len(links) > 1 {
			inGroup = links
		}
	}
	return groups, inGroup
}
