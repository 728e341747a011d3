package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// The facts about changes that owners hear of.
const (
	eventApplied  = "change.applied"
	eventRejected = "change.rejected"
)

// changesPage is how many changes one page holds.
const changesPage = 50

// showChanges is GET changes.
func (v *visit) showChanges() error {
	return v.listChanges(http.StatusOK, v.told("applied", "console.pending.applied.now"))
}

func (v *visit) listChanges(status int, notices []ui.Notice) error {
	frame, err := v.brandFrame("changes", "console.pending.heading")
	if err != nil {
		return err
	}
	before := uuid.Nil
	if raw := v.r.URL.Query().Get("before"); raw != "" {
		if before, err = uuid.Parse(raw); err != nil {
			return problem{kind: notFound}
		}
	}
	all, err := v.h.Asks.Changes(v.ctx(), v.brand.ID, before, changesPage+1)
	if err != nil {
		return err
	}
	view := pages.PendingView{
		Frame: frame, Heading: v.say("console.pending.heading"), Lead: []ui.Phrase{v.say("console.pending.lead")},
		Notices: append(notices, v.touchFirst(ApproveChange)...), Empty: v.text("console.pending.empty"),
		PastHeading: v.text("console.pending.past"),
		PastHead: [4]string{
			v.text("console.pending.what"), v.text("console.pending.who"), v.text("console.pending.end"), v.text("console.pending.when"),
		},
		Otherwise: v.otherwise(v.calls("GET changes", "GET changes/ID", "DELETE changes/ID"), v.ofBrand("change list", "change reject --id ID")),
	}
	if len(all) > changesPage {
		all = all[:changesPage]
		view.Older = v.link("console.pending.older", pageOf(v.brand.ID, "changes?before="+all[changesPage-1].ID.String()))
	}
	waiting, err := v.h.Asks.Waiting(v.ctx(), v.brand.ID)
	if err != nil {
		return err
	}
	for _, c := range waiting { // on every page: none of them is to be missed
		view.Waiting = append(view.Waiting, v.changeCard(c))
	}
	for _, c := range all {
		if c.State == "pending" {
			continue
		}
		when := c.ExpiresAt
		if c.DecidedAt != nil {
			when = *c.DecidedAt
		}
		view.Past = append(view.Past, pages.PastChange{What: changeKind(v.lang, c.Kind), Who: asker(v.lang, c.AskedBy, c.Channel), End: v.text(changeEnds[c.State]), When: v.date(when)})
	}
	return v.render(status, pages.Pending(view))
}

var changeKinds = map[string]string{
	tenants.ChangeInterface: "console.pending.interface", tenants.ChangeLogin: "console.pending.login",
	tenants.ChangeOpen:   "console.pending.open",
	tenants.ChangeKeyNew: "console.pending.key", tenants.ChangeKeyRotate: "console.pending.rotate",
	tenants.ChangeAgentEndpoint: "console.pending.endpoint", tenants.ChangeAgentSecret: "console.pending.endpoint.rotate",
	tenants.ChangeHookNew: "console.pending.hook", tenants.ChangeHookRotate: "console.pending.hooksecret",
	tenants.ChangeMemberInvite: "console.pending.invite", tenants.ChangeMemberRole: "console.pending.role",
	tenants.ChangeMemberRemove:  "console.pending.remove",
	tenants.ChangeMemberConfirm: "console.pending.confirm", tenants.ChangeMemberVouch: "console.pending.vouch",
	tenants.ChangeBrandNew: "console.pending.brand", tenants.ChangeClose: "console.pending.close",
	tenants.ChangeDomainAdd: "console.pending.domain.add", tenants.ChangeDomainRemove: "console.pending.domain.remove",
	tenants.ChangeRestore: "console.pending.restore", tenants.ChangeResume: "console.pending.resume",
	tenants.ChangeHookOff:    "console.pending.hook.disable",
	tenants.ChangeHookEvents: "console.pending.hook.events", tenants.ChangeKeyEnd: "console.pending.key.end",
	tenants.ChangeHookEnable: "console.pending.hook.enable", tenants.ChangeRule: "console.pending.rule",
	tenants.ChangeKeyRule:     "console.pending.key.rule",
	tenants.ChangeSigningNext: "console.pending.signing.next", tenants.ChangeSigningRetire: "console.pending.signing.retire",
}

// secretsOf are the kinds that make a secret, and how its page is headed.
var secretsOf = map[string]string{
	tenants.ChangeKeyNew: "console.secret.heading", tenants.ChangeKeyRotate: "console.secret.heading",
	tenants.ChangeHookNew: "console.secret.hook", tenants.ChangeHookRotate: "console.secret.hook",
	tenants.ChangeAgentEndpoint: "console.secret.endpoint", tenants.ChangeAgentSecret: "console.secret.endpoint",
}

// careOf are the kinds of which more is to be said than what they change.
var careOf = map[string]string{
	tenants.ChangeClose: "console.pending.close.care", tenants.ChangeMemberVouch: "console.pending.vouch.care",
	tenants.ChangeMemberConfirm: "console.pending.confirm.care", tenants.ChangeBrandNew: "console.pending.brand.care",
	tenants.ChangeDomainAdd: "console.pending.domain.care", tenants.ChangeHookOff: "console.pending.hook.disable.care",
}

var changeEnds = map[string]string{
	"applied": "console.pending.applied", "rejected": "console.pending.rejected", "expired": "console.pending.expired",
}

func changeKind(l i18n.Language, kind string) string {
	if key, ok := changeKinds[kind]; ok {
		return l.Text(key)
	}
	return l.Text("console.pending.other", "kind", kind)
}

// asker is who asked, and by which way.
func asker(l i18n.Language, by, channel string) string {
	switch {
	case channel == "api":
		return l.Text("console.pending.by.key", "key", by)
	case channel == "":
		return l.Text("console.actor.operator")
	case by == "operator":
		by = l.Text("console.actor.operator")
	}
	if channel == "cli" {
		channel = l.Text("console.pending.shell")
	}
	return l.Text("console.pending.by", "who", by, "way", channel)
}

func (v *visit) changeCard(c tenants.PendingChange) pages.ChangeCard {
	rows, ends := v.changeDiff(c.Diff)
	unseen := !May(v.member.Role, seenWith(c.Kind))
	if unseen {
		rows = pages.Diff{}
	}
	card := pages.ChangeCard{
		Heading: changeKind(v.lang, c.Kind), Diff: rows,
		Text: v.say("console.pending.asked", "who", asker(v.lang, c.AskedBy, c.Channel), "date", v.date(c.AskedAt), "until", v.date(c.ExpiresAt)),
	}
	if unseen {
		card.Care = append(card.Care, ui.Notice{Text: v.say("console.pending.unseen")})
	}
	if ends {
		card.Care = append(card.Care, v.warning("console.pending.ends"))
	}
	if care := careOf[c.Kind]; care != "" {
		card.Care = append(card.Care, v.warning(care))
	}
	if secretsOf[c.Kind] != "" {
		card.Care = append(card.Care, ui.Notice{Text: v.say("console.pending.once")})
	}
	if May(v.member.Role, ApproveChange) {
		card.Approve = v.post("console.pending.approve", "changes/"+c.ID.String()+"/approve")
	}
	if May(v.member.Role, RejectChange) {
		card.Reject = v.post("console.pending.reject", "changes/"+c.ID.String()+"/reject")
	}
	return card
}

// seenWith is what lets somebody read what a change of the kind holds.
func seenWith(kind string) Action {
	switch {
	case tenants.OfWebhook(kind):
		return SeeWebhooks
	case tenants.OfAgentEndpoint(kind):
		return SeeAgentEndpoint
	}
	return See
}

// changeDiff words what a change says of itself: fields before and after, one
// thing before and after, or only what will be.
func (v *visit) changeDiff(raw json.RawMessage) (d pages.Diff, ends bool) {
	var whole struct {
		Changed map[string]tenants.Difference `json:"changed"`
		Ends    bool                          `json:"ends_all_grants"`
		Before  map[string]any                `json:"before"`
		After   map[string]any                `json:"after"`
	}
	var all map[string]any
	if json.Unmarshal(raw, &all) != nil || json.Unmarshal(raw, &whole) != nil {
		return v.diff(map[string]tenants.Difference{"": {After: string(raw)}}, false, true), false
	}
	switch {
	case whole.Changed != nil:
		return v.diff(whole.Changed, true, true), whole.Ends
	case whole.After != nil || whole.Before != nil:
		diff := tenants.Diff(whole.Before, whole.After)
		for _, inner := range []string{"id", "live", "created_at"} { // ours, and no choice of anybody
			delete(diff, inner)
		}
		for _, name := range []string{"email", "url"} { // whom, or what, the rest is about
			if is, there := whole.After[name]; there {
				diff[name] = tenants.Difference{Before: whole.Before[name], After: is}
			}
		}
		return v.diff(diff, whole.Before != nil, whole.After != nil), whole.Ends
	}
	diff := make(map[string]tenants.Difference, len(all))
	for name, value := range all {
		diff[name] = tenants.Difference{After: value}
	}
	return v.diff(diff, false, true), whole.Ends
}

// rejectChange is POST changes/{change}/reject.
func (v *visit) rejectChange() error {
	c, err := v.change()
	if err != nil {
		return err
	}
	err = v.h.Asks.Reject(v.ctx(), v.edits(eventRejected), v.brand.ID, c.ID, v.person.ID.String())
	if notice := v.undecided(err); notice != nil {
		return v.listChanges(http.StatusConflict, notice)
	}
	if err != nil {
		return err
	}
	return v.made("changes")
}

// change finds the one in the address.
func (v *visit) change() (tenants.PendingChange, error) {
	id, err := uuid.Parse(v.r.PathValue("change"))
	if err != nil {
		return tenants.PendingChange{}, problem{kind: notFound}
	}
	c, err := v.h.Asks.Change(v.ctx(), v.brand.ID, id)
	if errors.Is(err, tenants.ErrNoChange) {
		return c, problem{kind: notFound}
	}
	return c, err
}

// outdated are the answers of appliers that find the thing gone that a change was
// asked about.
var outdated = []error{
	tenants.ErrChangeStale, tenants.ErrNoConnection, tenants.ErrBadKey, tenants.ErrNoWebhook, tenants.ErrNoAgentEndpoint, tenants.ErrNoRole,
	tenants.ErrNoDomain, tenants.ErrLastDomain, tenants.ErrNoScope, tenants.ErrBrandTaken,
	signing.ErrNextExists, signing.ErrInUse, signing.ErrNoKey,
}

// undecided says why a change did not come about, as the page does on which one
// makes it oneself; nil where it did, or where we are to blame.
func (v *visit) undecided(err error) []ui.Notice {
	var wrong tenants.Problems
	switch {
	case errors.Is(err, tenants.ErrChangeOver), errors.Is(err, tenants.ErrClosed):
		return []ui.Notice{v.warning("console.pending.over")}
	case errors.Is(err, tenants.ErrLastOwner):
		return []ui.Notice{v.warning("console.problem.lastowner")}
	case errors.Is(err, tenants.ErrOwnWord):
		return []ui.Notice{v.warning("console.pending.ownword")}
	case errors.Is(err, tenants.ErrMember):
		return []ui.Notice{v.warning("console.problem.member")}
	case errors.Is(err, tenants.ErrTooManyWebhooks):
		return []ui.Notice{v.warning("console.webhook.toomany")}
	case errors.Is(err, signing.ErrUnavailable):
		return []ui.Notice{v.warning("console.signingkeys.unmade")}
	case slices.ContainsFunc(outdated, func(target error) bool { return errors.Is(err, target) }):
		return []ui.Notice{v.warning("console.pending.stale")}
	case errors.As(err, &wrong):
		problems, _ := v.toMend(err)
		return warnings(problems)
	}
	return nil
}
