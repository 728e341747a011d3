package consent

import (
	"time"

	"countersign.dev/authority"
	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/tenants"
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
	"github.com/a-h/templ"
)

// What stands in a preview for somebody who is not there. The names are made up
// and the addresses lead nowhere.
const (
	previewAgent   = "https://aria.example"
	previewName    = "Aria"
	previewAccount = "alex@example.com"
	previewCode    = "WDJB-MJHT"
	previewAge     = time.Minute
)

// Preview is the question as the Brand's users would read it if the Brand were as
// b says, saved or not: the same words on the same page. said stands above it. css
// is the address of the Brand's colour. Nothing on it leads anywhere, and nobody
// may be let in by it: there is no request, and no token on its form.
func (h *Handler) Preview(b *tenants.Brand, lang i18n.Language, css string, said ui.Notice) templ.Component {
	v := &visit{h: h, brand: b, lang: lang}
	q := &authority.Question{Agent: previewAgent, AgentName: previewName}
	for _, s := range b.Scopes {
		q.Requested = append(q.Requested, s.ID)
	}
	now := h.Now()
	view := words.Ask(words.AskData{
		Common: v.branded(), Account: previewAccount, SwitchURL: "#", AgentsURL: "#",
		Agent: agentOf(q.Agent, q.AgentName), UserCode: previewCode, AskedAt: now.Add(-previewAge), Now: now,
		Scopes: v.scopes(q, journey{}), Until: v.until(journey{}),
	})
	view.Page.BrandCSS = css
	view.Opening.Notice = append([]ui.Notice{said}, view.Opening.Notice...)
	return pages.Ask(view)
}
