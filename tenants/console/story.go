package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// storyFacts is how much of a grant's trail its page tells.
const storyFacts = 200

// showStory is GET grants/{grant}: a grant's life.
func (v *visit) showStory() error {
	id, err := uuid.Parse(v.r.PathValue("grant"))
	if err != nil || id == uuid.Nil {
		return problem{kind: notFound}
	}
	r, err := v.h.Authority.Look(v.ctx(), v.brand.ID, id)
	if err != nil {
		return err
	}
	frame, err := v.brandFrame("grants", "console.story.heading", "agent", v.agentName(r), "user", r.Subject)
	if err != nil {
		return err
	}
	view := pages.StoryView{
		Frame: frame, Heading: v.say("console.story.heading", "agent", v.agentName(r), "user", r.Subject),
		Lead:    []ui.Phrase{v.say("console.story.lead")},
		Facts:   v.presentFacts(r),
		May:     pages.Rights{Heading: v.text("console.grants.may")},
		Life:    pages.Life{Heading: v.text("console.story.life")},
		Nothing: v.say("console.story.done.none"),
		Back:    v.link("console.end.back", pageOf(v.brand.ID, "grants")),
		Otherwise: v.otherwise(
			[]string{v.call(http.MethodGet, "grants/"+id.String(), ""), v.call(http.MethodGet, "grants/"+id.String()+"/receipts", "")},
			[]string{"grants show --brand " + string(v.brand.ID) + " --grant " + id.String()},
		),
	}
	living := r.Living(v.now)
	for _, scope := range r.Scopes {
		row := pages.RightRow{Text: v.permission(scope), ID: scope}
		if living && May(v.member.Role, EndGrants) && len(r.Scopes) > 1 {
			row.End = v.link("console.story.endscope", v.inQuery("grants/end", "g", id.String(), "scope", scope))
		}
		view.May.Rows = append(view.May.Rows, row)
	}
	if living && May(v.member.Role, EndGrants) {
		view.Ways = append(view.Ways, v.link("console.story.end", v.inQuery("grants/end", "g", id.String())))
	}
	view.Ways = append(view.Ways, v.link("console.story.user", v.inQuery("grants", "subject", r.Subject)))
	if view.Life.Moments, err = v.life(r); err != nil {
		return err
	}
	if view.Done, err = v.done(id); err != nil {
		return err
	}
	view.Life.More = v.link("console.story.trail", v.inQuery("trail", "grant", id.String()))
	return v.render(http.StatusOK, pages.Story(view))
}

// presentFacts is how the grant stands now.
func (v *visit) presentFacts(r authority.Record) []pages.NamedFact {
	state, until := v.grantState(r)
	used := v.say("console.story.unused")
	if r.LastUsed != nil {
		used = ui.Plain(v.date(*r.LastUsed))
	}
	return []pages.NamedFact{
		{Name: v.text("console.grants.state"), Text: ui.Plain(state + " – " + until)},
		{Name: v.text("console.grants.agent"), Text: foreign(v.agentName(r) + " (" + r.Agent + ")")},
		{Name: v.text("console.grants.user"), Text: foreign(r.Subject)},
		{Name: v.text("console.grants.since"), Text: ui.Plain(v.date(r.CreatedAt))},
		{Name: v.text("console.story.used"), Text: used},
		{Name: v.text("console.story.id"), Text: foreign(r.ID.String())},
	}
}

// moment is one of a timeline, with its place in time.
type moment struct {
	at time.Time
	pages.Moment
}

// life is the grant's timeline: what the trail tells of it and of its user, with
// the pages that led to it.
func (v *visit) life(r authority.Record) ([]pages.Moment, error) {
	answers, err := v.h.Authority.Answers(v.ctx(), v.brand.ID, r.ID)
	if err != nil {
		return nil, err
	}
	names, err := v.names()
	if err != nil {
		return nil, err
	}
	shown := make(map[uuid.UUID]*authority.Answered) // by request
	var all []moment
	add := func(at time.Time, what string, who ui.Phrase, lines ...ui.Phrase) *moment {
		all = append(all, moment{at, pages.Moment{When: v.date(at), What: what, Who: who, Lines: lines}})
		return &all[len(all)-1]
	}
	for _, a := range answers {
		if a.RequestID == nil {
			continue
		}
		shown[*a.RequestID] = &a
		// A request's id begins with the moment in which it was made, by the clock of
		// whichever instance made it; it was before the answer in any case.
		asked := time.Unix(a.RequestID.Time().UnixTime()).UTC()
		if asked.After(a.At) {
			asked = a.At
		}
		add(asked, v.text("console.story.asked", "agent", v.agentName(r)), nil)
	}
	err = v.h.Authority.Trail(v.ctx(), v.brand.ID, authority.Events{Grant: r.ID}, storyFacts, func(e authority.Entry) error {
		at, err := time.Parse(time.RFC3339Nano, e.At)
		if err != nil {
			return err
		}
		who := v.say("console.story.by", "who", v.who(e.Actor, e.ActorID, e.Channel, names))
		m := add(at, what(v.lang, e.Event), who, v.inWords(e)...)
		m.IsCare = e.Event == "grant.reuse_detected"
		if e.RequestID != nil && strings.HasPrefix(e.Event, "request.") {
			if id, err := uuid.Parse(*e.RequestID); err == nil && shown[id] != nil {
				m.Shown = v.shown(shown[id])
				delete(shown, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	away, err := v.h.Authority.Suspensions(v.ctx(), v.brand.ID, r.Subject)
	if err != nil {
		return nil, err
	}
	for _, s := range away {
		if s.At.Before(r.CreatedAt) || r.EndedAt != nil && s.At.After(*r.EndedAt) {
			continue
		}
		add(s.At, what(v.lang, s.Event), v.say("console.story.by", "who", v.who(s.Actor, s.ActorID, s.Channel, names)))
	}
	if r.LastUsed != nil {
		add(*r.LastUsed, v.text("console.story.refreshed"), nil)
	}
	if r.EndedAt != nil && r.EndReason == "expired" && !slices.ContainsFunc(all, func(m moment) bool { return m.What == what(v.lang, "grant.expired") }) {
		add(*r.EndedAt, what(v.lang, "grant.expired"), nil) // before upkeep has come by
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	out := make([]pages.Moment, len(all))
	for i, m := range all {
		out[i] = m.Moment
	}
	return out, nil
}

// shown is the page that led to an answer, as its record keeps it.
func (v *visit) shown(a *authority.Answered) *pages.Shown {
	var rec struct {
		authority.Seen
		ForDays int `json:"for_days"`
	}
	if json.Unmarshal(a.Record, &rec) != nil {
		return nil
	}
	out := &pages.Shown{Summary: v.text("console.story.shown"), Lang: a.Language}
	if rec.Reason != "" {
		out.Lines = append(out.Lines, v.say("console.story.reason", "reason", rec.Reason))
	}
	signedIn := v.say("console.story.login", "date", v.date(rec.Login.At))
	if rec.Login.By != "" {
		signedIn = v.say("console.story.login.by", "date", v.date(rec.Login.At), "issuer", rec.Login.By)
	}
	out.Lines = append(out.Lines, signedIn)
	if rec.ForDays > 0 {
		out.Lines = append(out.Lines, v.say("console.story.days", "count", rec.ForDays))
	}
	for _, n := range rec.Notices {
		out.Lines = append(out.Lines, v.say("console.story.notice", "notice", n))
	}
	for _, s := range rec.Scopes {
		answer := "console.story.unticked"
		if slices.Contains(a.Ticked, s.ID) {
			answer = "console.story.ticked"
		} else if a.Answer == "continued" {
			answer = "console.story.held"
		}
		out.Rows = append(out.Rows, pages.ShownRow{Answer: v.text(answer), Description: s.Description, Undo: s.Undo})
	}
	return out
}

// who names whoever did it: a member by name, everybody else by what they are.
func (v *visit) who(actor, id, channel string, names map[string]string) string {
	switch {
	case actor == "admin" && names[id] != "":
		return names[id]
	case actor == "admin" && channel == "api":
		return v.text("console.trail.apikey", "id", id)
	case (actor == "user" || actor == "agent") && id != "":
		return v.text("console.actor."+actor) + " – " + id
	}
	return v.text("console.actor." + actor)
}

// kept is what the trail keeps of grants and answers.
type kept struct {
	Agent     string
	Subject   string
	Scopes    []string
	Before    []string
	Until     time.Time
	Reason    string
	Requested []string
	Granted   []string
	Kind      string
}

// inWords explains an event from its details. Erased ones say nothing.
func (v *visit) inWords(e authority.Entry) []ui.Phrase {
	var d kept
	if json.Unmarshal([]byte(e.Detail), &d) != nil {
		return nil
	}
	lacks := func(ids, others []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(s string) bool { return slices.Contains(others, s) })
	}
	var out []ui.Phrase
	list := func(key string, ids []string) {
		if len(ids) > 0 {
			out = append(out, v.say(key, "permissions", v.permissions(ids)))
		}
	}
	switch e.Event {
	case "grant.created":
		list("console.trail.may", d.Scopes)
	case "grant.widened":
		list("console.trail.also", lacks(d.Scopes, d.Before))
	case "grant.narrowed":
		list("console.trail.nomore", lacks(d.Before, d.Scopes))
	case "grant.revoked", "grant.expired", "grant.reuse_detected":
		list("console.trail.could", d.Before)
		if key := reasons[d.Reason]; key != "" {
			out = append(out, v.say(key))
		}
		return out
	case "request.approved":
		list("console.trail.requested", d.Requested)
		if d.Kind == "stepup" {
			out = append(out, v.say("console.trail.stepup"))
		}
		return out
	case "user.suspended", "user.resumed":
		return []ui.Phrase{v.say("console.trail.user", "user", d.Subject)}
	default:
		return nil
	}
	if !d.Until.IsZero() {
		out = append(out, v.say("console.trail.until", "date", v.date(d.Until)))
	}
	return out
}

// reasons are the words of why a grant ended.
var reasons = map[string]string{
	"revoked_by_user":     "console.trail.reason.user",
	"revoked_by_agent":    "console.trail.reason.agent",
	"revoked_by_admin":    "console.trail.reason.admin",
	"revoked_by_operator": "console.trail.reason.operator",
	"all_unticked":        "console.trail.reason.unticked",
	"idle":                "console.trail.reason.idle",
	"expired":             "console.trail.reason.expired",
	"reuse_detected":      "console.trail.reason.reuse",
	"interface_changed":   "console.trail.reason.interface",
}
