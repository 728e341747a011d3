package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// trial is a test login that this browser has left for. It is in the session of
// the member who began it, so its answer is of use to nobody else.
type trial struct {
	Brand      tenants.BrandID `json:"brand"`
	Connection uuid.UUID       `json:"connection"`
	Shown      string          `json:"shown"` // the connection as it was
	Try        tenants.Try     `json:"try"`
}

// TriedPath is where the answer to a test login is read: what matters of it is
// carried on, from the page that all logins come back to.
func TriedPath(brand tenants.BrandID, answer url.Values) string {
	carried := make(url.Values)
	for _, name := range []string{"state", "code", "iss", "error"} {
		if values, ok := answer[name]; ok {
			carried[name] = values
		}
	}
	if tenants.OfProgram(answer) { // this browser is no member's
		carried.Set("brand", string(brand))
		return "/console/tried?" + carried.Encode()
	}
	return pageOf(brand, "login/tried?"+carried.Encode())
}

// endTrial is GET tried: a browser comes back from a test login that a program
// began. Whoever it is reads whether it worked; what the provider said of them is
// kept nowhere, and the program does not learn it.
func (v *visit) endTrial() error {
	answer := v.r.URL.Query()
	b, err := v.h.Brands.Brand(v.ctx(), tenants.BrandID(answer.Get("brand")))
	if errors.Is(err, tenants.ErrNoBrand) {
		return problem{kind: notFound}
	}
	if err != nil {
		return err
	}
	answer.Del("brand")
	t, err := v.h.Trials.End(v.ctx(), b.ID, answer)
	if errors.Is(err, tenants.ErrNoTrial) {
		return problem{kind: stale}
	}
	if err != nil {
		return err
	}
	heading := "console.tried.heading"
	if t.Trouble != "" {
		heading = "console.tried.failed"
	}
	view := pages.TriedView{Frame: v.frame(heading), Heading: v.say(heading), Lead: []ui.Phrase{v.say("console.tried.program", "brand", b.Name)}}
	if t.Trouble != "" {
		view.Notices = []ui.Notice{v.warning(troubles[t.Trouble], "why", v.cause(t.Why))}
	}
	view.Frame.Page.Languages = nil // this page is shown once
	return v.render(http.StatusOK, pages.Tried(view))
}

// tryLogin is GET login/{connection}/try: it leaves for the provider, as a
// customer's browser would. It is a link, because Chromium holds every redirect of
// a form against form-action.
func (v *visit) tryLogin() error {
	c, l, err := v.opened()
	if err != nil {
		return err
	}
	if c.Kind == tenants.KindAssertion {
		return problem{kind: notFound} // the Brand's own page posts to people's pages alone
	}
	if site := v.r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return problem{kind: forged} // nobody else's page sends a member round
	}
	if err := v.limited(v.h.looks, string(v.brand.ID)); err != nil {
		return err
	}
	t := &trial{Brand: v.brand.ID, Connection: c.ID, Shown: c.Shown(), Try: tenants.Try{
		State: tenants.TryPrefix + rand.Text() + rand.Text(), Nonce: rand.Text() + rand.Text(), Verifier: rand.Text() + rand.Text(),
		RedirectURI: v.h.PublicURL + "/b/" + string(v.brand.ID) + "/callback", Began: v.now,
	}}
	to, failed := v.h.BeginTry(v.ctx(), l, t.Try, v.lang.Tag)
	if failed.Trouble != "" {
		return v.tellTried(c, failed)
	}
	v.session.Trial = t
	if err := v.save(); err != nil {
		return err
	}
	return v.redirect(to)
}

// tried is GET login/tried. What the provider said is shown on this page and
// nowhere else: it is neither kept nor logged, and a reload does not bring it
// back.
func (v *visit) tried() error {
	t, answer := v.session.Trial, v.r.URL.Query()
	again := problem{kind: stale, retry: pageOf(v.brand.ID, "login")}
	if t == nil || t.Brand != v.brand.ID || answer.Get("state") != t.Try.State {
		return again
	}
	v.session.Trial = nil // it counts once
	if err := v.save(); err != nil {
		return err
	}
	if v.now.Sub(t.Try.Began) > tenants.TrialLife {
		return again
	}
	v.r.SetPathValue("connection", t.Connection.String())
	c, l, err := v.opened()
	if p := (problem{}); errors.As(err, &p) && p.kind == notFound || err == nil && c.Shown() != t.Shown {
		return again // removed or changed while somebody typed a password
	}
	if err != nil {
		return err
	}
	return v.tellTried(c, v.h.FinishTry(v.ctx(), l, t.Try, answer))
}

// troubles word why a test login led nowhere.
var troubles = map[string]string{
	tenants.TryRefused: "console.tried.refused", tenants.TryUnreachable: "console.tried.unreachable",
	tenants.TryInvalid: "console.tried.invalid", tenants.TryMisconfigured: "console.tried.misconfigured",
}

func (v *visit) tellTried(c tenants.Connection, t tenants.Tried) error {
	heading := "console.tried.heading"
	if t.Trouble != "" {
		heading = "console.tried.failed"
	}
	frame, err := v.brandFrame("login", heading)
	if err != nil {
		return err
	}
	frame.Page.Languages = nil // this page is shown once
	view := pages.TriedView{
		Frame: frame, Heading: v.say(heading), Back: v.link("console.tried.back", pageOf(v.brand.ID, "login")),
		Claims: pages.Claims{
			Heading: v.text("console.tried.claims"), Head: [2]string{v.text("console.tried.name"), v.text("console.tried.value")},
		},
	}
	for _, claim := range t.Claims {
		row := pages.ClaimRow{Name: claim.Name, Value: claim.Value}
		if claim.Name == c.SubjectClaim && t.Subject != "" {
			row.Note = v.text("console.tried.becomes")
		}
		view.Claims.Rows = append(view.Claims.Rows, row)
	}
	if t.Trouble != "" {
		view.Notices = []ui.Notice{v.warning(troubles[t.Trouble], "why", v.cause(t.Why))}
		view.Lead = []ui.Phrase{v.say("console.tried.nothing")}
		return v.render(http.StatusOK, pages.Tried(view))
	}
	view.Lead = []ui.Phrase{v.say("console.tried.lead", "claim", c.SubjectClaim), v.say("console.tried.private")}
	view.Who = []pages.Pair{
		{Label: v.text("console.tried.sub"), Value: t.Subject, Code: true},
		{Label: v.text("console.tried.account"), Value: t.Account},
	}
	if !c.Live && May(v.member.Role, ChangeLogin) {
		view.Live = v.liveForm(c)
		view.Notices = []ui.Notice{{Text: v.say("console.tried.live")}}
	}
	return v.render(http.StatusOK, pages.Tried(view))
}
