package console

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// The facts about login connections that owners hear of.
const (
	eventCandidate    = "login.candidate"
	eventLive         = "login.live"
	eventLoginRemoved = "login.removed"
)

// connecting is what the page shows beside what is stored.
type connecting struct {
	draft    tenants.ConnectionDraft // in the form; its secret is never shown
	age      string                  // max_age as it was typed
	problems map[string]string
	notices  []ui.Notice
	found    pages.Checks
}

// showConnections is GET login.
func (v *visit) showConnections() error {
	notices := v.told("saved", "console.connect.saved")
	notices = append(notices, v.told("live", "console.connect.madelive")...)
	return v.tellConnections(http.StatusOK, nil, notices, pages.Checks{})
}

// tellConnections is the page with the candidate, or the live connection, in the
// form. draft takes its place, if there is one.
func (v *visit) tellConnections(status int, draft *tenants.ConnectionDraft, notices []ui.Notice, found pages.Checks) error {
	all, err := tenants.Connections(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	c := connecting{notices: notices, found: found}
	if len(all) > 0 {
		c.draft = draftOf(all[len(all)-1])
	}
	if draft != nil {
		c.draft = *draft
	}
	if c.draft.MaxAge != nil {
		c.age = strconv.Itoa(*c.draft.MaxAge)
	}
	return v.renderConnections(status, all, c)
}

// draftOf is what one would say to have the connection; but for its secret.
func draftOf(c tenants.Connection) tenants.ConnectionDraft {
	return tenants.ConnectionDraft{
		Kind: c.Kind, JWKSURI: c.JWKSURI, LoginURL: c.LoginURL, LoginOrigin: c.LoginOrigin,
		Issuer: c.Issuer, ClientID: c.ClientID, Auth: c.Auth, SubjectClaim: c.SubjectClaim, Scopes: c.Scopes, Prompt: c.Prompt, MaxAge: c.MaxAge,
	}
}

func (v *visit) renderConnections(status int, all []tenants.Connection, c connecting) error {
	frame, err := v.brandFrame("login", "console.connect.heading")
	if err != nil {
		return err
	}
	ours := v.h.PublicURL + "/b/" + string(v.brand.ID)
	view := pages.ConnectionsView{
		Frame: frame, Heading: v.say("console.connect.heading"), Lead: []ui.Phrase{v.say("console.connect.lead")},
		Notices: c.notices, ProblemHeading: v.text("code.problem"), Cards: v.connectionCards(all), Checks: c.found,
		RegisterText: v.say("console.connect.register.lead"),
		Register: pages.Publication{Heading: v.text("console.connect.register"), Pairs: []pages.Pair{
			{Label: v.text("console.connect.redirect"), Value: ours + "/callback", Code: true},
			{Label: v.text("console.connect.jwks"), Value: ours + "/login/jwks.json", Code: true},
		}},
		Otherwise: v.otherwise(v.calls("GET connections", `PUT connections/candidate {"issuer":"https://login.example.com","client_id":"countersign","client_secret":"…"}`,
			"POST connections/ID/check", "POST connections/ID/tries", "GET tries/ID", "POST connections/ID/live", "DELETE connections/ID"), v.ofBrand("idp list", "idp set --issuer https://login.example.com --client-id countersign --client-secret env:SECRET",
			"idp check --id ID", "idp try --id ID", "idp tried --id ID", "idp live --id ID")),
	}
	if May(v.member.Role, LookOutside) {
		look := v.field("issuer", c.draft.Issuer, c.problems)
		view.Look = pages.Invite{
			Heading: v.text("console.connect.look"), Lead: v.say("console.connect.look.lead"),
			Form: pages.Form{Action: pageOf(v.brand.ID, "login/look"), Button: v.say("console.connect.look.button"), Fields: []ui.Field{look}},
		}
	}
	if May(v.member.Role, PrepareLogin) {
		view.Set, view.Own = v.connectionForm(c), v.ownLoginForm(c)
		view.Look.Form.Fields[0].Problem = "" // it is said at the form that was sent
	}
	return v.render(status, pages.Connections(view))
}

func (v *visit) connectionForm(c connecting) pages.Invite {
	d := c.draft
	if d.Kind == tenants.KindAssertion { // it stands in the other form
		d, c.problems = tenants.ConnectionDraft{}, nil
	}
	issuer := v.field("issuer", d.Issuer, c.problems)
	issuer.Element, issuer.Hint = "candidate-issuer", v.text("console.connect.issuer.again")
	secret := v.field("client_secret", "", c.problems)
	secret.Secret = true
	return pages.Invite{
		Heading: v.text("console.connect.set"), Lead: v.say("console.connect.set.lead"),
		Form: pages.Form{
			Action: pageOf(v.brand.ID, "login"), Button: v.say("console.connect.set.button"),
			Fields: []ui.Field{
				issuer, v.field("client_id", d.ClientID, c.problems),
				v.choice("auth", d.Auth, c.problems, [2]string{tenants.AuthSecret, "console.connect.auth.secret"}, [2]string{tenants.AuthPrivateKey, "console.connect.auth.key"}),
				secret, v.field("subject_claim", d.SubjectClaim, c.problems), v.field("scopes", strings.Join(d.Scopes, " "), c.problems),
				v.choice("prompt", d.Prompt, c.problems,
					[2]string{"", "console.connect.prompt.none"}, [2]string{"login", "console.connect.prompt.login"},
					[2]string{"consent", "console.connect.prompt.consent"}, [2]string{"select_account", "console.connect.prompt.account"}),
				v.field("max_age", c.age, c.problems),
			},
		},
	}
}

// connectionCards are the live connection and the candidate, or that there is none.
func (v *visit) connectionCards(all []tenants.Connection) []pages.ConnectionCard {
	var live, candidate *tenants.Connection
	for i := range all {
		if all[i].Live {
			live = &all[i]
		} else {
			candidate = &all[i]
		}
	}
	first := pages.ConnectionCard{Heading: v.text("console.connect.live"), Note: v.say("console.connect.live.none")}
	if live != nil {
		first = v.connectionCard(*live)
		first.Heading, first.Note = v.text("console.connect.live"), v.say("console.connect.live.note")
	}
	second := pages.ConnectionCard{Heading: v.text("console.connect.candidate"), Note: v.say("console.connect.candidate.none")}
	if candidate != nil {
		second = v.connectionCard(*candidate)
		second.Heading, second.Note = v.text("console.connect.candidate"), v.say("console.connect.candidate.note")
		if May(v.member.Role, ChangeLogin) {
			second.Live = v.liveForm(*candidate)
			second.Remove = pages.Drop{
				Label: v.text("console.connect.remove"), Text: v.say("console.connect.remove.why"),
				Form: pages.Form{Action: pageOf(v.brand.ID, "login/"+candidate.ID.String()+"/remove"), Button: v.say("console.connect.remove.button")},
			}
		}
	}
	return []pages.ConnectionCard{first, second}
}

func (v *visit) connectionCard(c tenants.Connection) pages.ConnectionCard {
	auth := "console.connect.auth.secret"
	if c.Auth == tenants.AuthPrivateKey {
		auth = "console.connect.auth.key"
	}
	if c.Kind == tenants.KindAssertion {
		return pages.ConnectionCard{Pairs: v.ownLoginPairs(c), Check: v.checkPost(c)}
	}
	card := pages.ConnectionCard{Pairs: []pages.Pair{
		{Label: v.text("console.connect.issuer"), Value: c.Issuer, Code: true},
		{Label: v.text("console.connect.client"), Value: c.ClientID, Code: true},
		{Label: v.text("console.connect.auth"), Value: v.text(auth)},
		{Label: v.text("console.connect.claim"), Value: c.SubjectClaim, Code: true},
		{Label: v.text("console.connect.scopes"), Value: strings.Join(c.Scopes, " "), Code: true},
	}}
	if c.Prompt != "" {
		card.Pairs = append(card.Pairs, pages.Pair{Label: v.text("console.connect.prompt"), Value: c.Prompt, Code: true})
	}
	if c.MaxAge != nil {
		card.Pairs = append(card.Pairs, pages.Pair{Label: v.text("console.connect.age"), Value: strconv.Itoa(*c.MaxAge), Code: true})
	}
	card.Check = v.checkPost(c)
	if May(v.member.Role, TryLogin) {
		card.Try = v.link("console.connect.try", pageOf(v.brand.ID, "login/"+c.ID.String()+"/try"))
	}
	return card
}

// checkPost looks at what the provider, or the Brand's own page, says of itself.
func (v *visit) checkPost(c tenants.Connection) ui.Post {
	if !May(v.member.Role, LookOutside) {
		return ui.Post{}
	}
	return v.post("console.connect.check", "login/"+c.ID.String()+"/check")
}

// liveForm names the candidate as it is shown: another one, slid under the yes,
// does not go live by it.
func (v *visit) liveForm(c tenants.Connection) pages.Form {
	return pages.Form{
		Action: pageOf(v.brand.ID, "login/"+c.ID.String()+"/live"), Button: v.say("console.connect.makelive"),
		Hidden: []ui.Hidden{{Name: "shown", Value: c.Shown()}},
	}
}

// lookAtIssuer is POST login/look: what the provider says of itself, before
// anything is stored.
func (v *visit) lookAtIssuer() error {
	d := tenants.ConnectionDraft{}
	all, err := tenants.Connections(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	if len(all) > 0 && all[len(all)-1].Kind != tenants.KindAssertion {
		d = draftOf(all[len(all)-1])
	}
	d.Issuer = strings.TrimSpace(v.form.Get("issuer"))
	if d.Issuer == "" {
		return v.renderConnections(http.StatusUnprocessableEntity, all, connecting{draft: d, notices: []ui.Notice{v.warning("console.connect.look.empty")}})
	}
	if err := v.limited(v.h.looks, string(v.brand.ID)); err != nil {
		return err
	}
	lines := v.h.ExamineLogin(v.ctx(), tenants.LoginConnection{Issuer: d.Issuer})
	found := v.checks("console.connect.found", "console.connect.found.lead", lines, func(l tenants.Line) ui.Post {
		return v.correction("login/look", l.Offer)
	})
	return v.tellConnections(http.StatusOK, &d, nil, found)
}

// correction takes what the provider calls itself, by one button (B54).
func (v *visit) correction(path, offer string) ui.Post {
	return ui.Post{
		Action: pageOf(v.brand.ID, path), Hidden: []ui.Hidden{{Name: "issuer", Value: offer}},
		Button: ui.Button{Label: v.say("console.connect.take", "issuer", offer)},
	}
}

// typedDraft reads the form.
func (v *visit) typedDraft() (connecting, bool) {
	if v.form.Get("kind") == tenants.KindAssertion {
		return v.typedOwnLogin(), true
	}
	c := connecting{age: strings.TrimSpace(v.form.Get("max_age")), draft: tenants.ConnectionDraft{
		Issuer: strings.TrimSpace(v.form.Get("issuer")), ClientID: strings.TrimSpace(v.form.Get("client_id")), Auth: v.form.Get("auth"),
		Secret: strings.TrimSpace(v.form.Get("client_secret")), SubjectClaim: strings.TrimSpace(v.form.Get("subject_claim")),
		Scopes: strings.FieldsFunc(v.form.Get("scopes"), func(r rune) bool { return unicode.IsSpace(r) || r == ',' }),
		Prompt: v.form.Get("prompt"),
	}}
	if c.age != "" {
		n, err := strconv.Atoi(c.age)
		if err != nil {
			c.problems = map[string]string{"max_age": v.text("console.connect.age.number")}
			return c, false
		}
		c.draft.MaxAge = &n
	}
	return c, true
}

// saveCandidate is POST login: nobody comes in through it yet.
func (v *visit) saveCandidate() error {
	c, ok := v.typedDraft()
	if !ok {
		return v.unsaved(http.StatusUnprocessableEntity, c)
	}
	_, err := tenants.SaveCandidate(v.ctx(), v.h.DB, v.edits(eventCandidate), v.h.Sealer, v.h.Site, v.brand.ID, c.draft)
	if problems, ok := v.toMend(err); ok {
		c.problems = problems
		return v.unsaved(http.StatusUnprocessableEntity, c)
	}
	if errors.Is(err, tenants.ErrConnectionMoved) {
		c.notices = []ui.Notice{v.warning("console.connect.movedon")}
		return v.unsaved(http.StatusConflict, c)
	}
	if err != nil {
		return err
	}
	return v.made("login?saved")
}

func (v *visit) unsaved(status int, c connecting) error {
	all, err := tenants.Connections(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return err
	}
	return v.renderConnections(status, all, c)
}

// connection finds the one in the address.
func (v *visit) connection() (tenants.Connection, error) {
	id, err := uuid.Parse(v.r.PathValue("connection"))
	if err != nil {
		return tenants.Connection{}, problem{kind: notFound}
	}
	all, err := tenants.Connections(v.ctx(), v.h.DB, v.brand.ID)
	if err != nil {
		return tenants.Connection{}, err
	}
	i := slices.IndexFunc(all, func(c tenants.Connection) bool { return c.ID == id })
	if i < 0 {
		return tenants.Connection{}, problem{kind: notFound}
	}
	return all[i], nil
}

// opened is the connection in the address with its secret, for a look or a try.
func (v *visit) opened() (tenants.Connection, tenants.LoginConnection, error) {
	c, err := v.connection()
	if err != nil {
		return c, tenants.LoginConnection{}, err
	}
	l, err := tenants.Candidate(v.ctx(), v.h.DB, v.h.Sealer, v.brand.ID, c.ID)
	if errors.Is(err, tenants.ErrNoLogin) {
		err = problem{kind: notFound}
	}
	return c, l, err
}

// checkConnection is POST login/{connection}/check.
func (v *visit) checkConnection() error {
	c, l, err := v.opened()
	if err != nil {
		return err
	}
	if err := v.limited(v.h.looks, string(v.brand.ID)); err != nil {
		return err
	}
	var offer func(tenants.Line) ui.Post
	if !c.Live && May(v.member.Role, PrepareLogin) {
		offer = func(l tenants.Line) ui.Post { return v.correction("login/"+c.ID.String()+"/issuer", l.Offer) }
	}
	found := v.checks("console.connect.found", "console.connect.found.lead", v.h.ExamineLogin(v.ctx(), l), offer)
	return v.tellConnections(http.StatusOK, nil, nil, found)
}

// correctIssuer is POST login/{connection}/issuer: the candidate with the
// provider's own spelling.
func (v *visit) correctIssuer() error {
	c, err := v.connection()
	if err != nil {
		return err
	}
	if c.Live {
		return problem{kind: stale, retry: pageOf(v.brand.ID, "login")}
	}
	d := draftOf(c)
	d.Issuer = v.form.Get("issuer")
	_, err = tenants.SaveCandidate(v.ctx(), v.h.DB, v.edits(eventCandidate), v.h.Sealer, v.h.Site, v.brand.ID, d)
	if problems, ok := v.toMend(err); ok {
		u := connecting{draft: d, problems: problems}
		if d.MaxAge != nil {
			u.age = strconv.Itoa(*d.MaxAge)
		}
		return v.unsaved(http.StatusUnprocessableEntity, u)
	}
	if err != nil && !errors.Is(err, tenants.ErrConnectionMoved) {
		return err
	}
	return v.made("login?saved")
}

// makeLive is POST login/{connection}/live.
func (v *visit) makeLive() error {
	c, err := v.connection()
	if err != nil {
		return err
	}
	if v.form.Get("shown") != c.Shown() {
		return problem{kind: stale, retry: pageOf(v.brand.ID, "login")}
	}
	err = tenants.MakeShownLive(v.ctx(), v.edits(eventLive), v.h.Site, v.brand.ID, c)
	problems, ok := v.toMend(err)
	switch {
	case errors.Is(err, tenants.ErrChangeStale):
		return problem{kind: stale, retry: pageOf(v.brand.ID, "login")}
	case errors.Is(err, tenants.ErrNoConnection):
		return problem{kind: notFound}
	case ok:
		return v.tellConnections(http.StatusConflict, nil, warnings(problems), pages.Checks{})
	case err != nil:
		return err
	}
	return v.made("login?live")
}

// removeConnection is POST login/{connection}/remove.
func (v *visit) removeConnection() error {
	c, err := v.connection()
	if err != nil {
		return err
	}
	err = tenants.RemoveConnection(v.ctx(), v.edits(eventLoginRemoved), v.brand.ID, c.ID)
	switch {
	case errors.Is(err, tenants.ErrLive):
		return v.tellConnections(http.StatusConflict, nil, []ui.Notice{v.warning("console.connect.islive")}, pages.Checks{})
	case errors.Is(err, tenants.ErrNoConnection):
		return problem{kind: notFound}
	case err != nil:
		return err
	}
	return v.made("login")
}
