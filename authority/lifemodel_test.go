package authority_test

import (
	"errors"
	"slices"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// life is the model of everything that can happen to grants: what stands, and
// what each call must answer. It knows no SQL, no races and no instances.
type life struct {
	now      time.Time
	brands   map[tenants.BrandID]*tenants.Brand // as the card is now
	paused   map[tenants.BrandID]bool
	off      map[string]bool // agents
	away     map[login]bool  // suspended
	grants   []*lifeGrant
	requests []*lifeRequest
	refresh  []*lifeRefresh
	access   []*lifeAccess
}

type login struct {
	brand   tenants.BrandID
	subject string
}

// lifeGrant is one grant, from its first day to its end.
type lifeGrant struct {
	login
	who     authority.Caller
	id      uuid.UUID // as the service names it
	scopes  []string
	expires time.Time
	ended   string    // the reason; empty: nobody has ended it
	letIn   time.Time // when its person was last let in again
	indexes int       // how many status indexes it has had
	events  []string  // what the Brand was told
}

type lifeRequest struct {
	brand   tenants.BrandID
	who     authority.Caller
	started authority.Started
	scopes  []string
	expires time.Time
	state   string
	decided time.Time
	grant   *lifeGrant
}

type lifeRefresh struct {
	grant  *lifeGrant
	text   string
	family int
	used   bool
	usedAt time.Time
	next   *lifeRefresh
}

type lifeAccess struct {
	grant   *lifeGrant
	payload []byte
	jws     string
	scopes  []string
	expires time.Time
	index   int // the grant's when it was signed
}

func (m *life) alive(g *lifeGrant) bool { return g.ended == "" && m.now.Before(g.expires) }

// open is what every call of an agent must pass first.
func (m *life) open(brand tenants.BrandID, who authority.Caller) error {
	switch {
	case m.off[who.Agent]:
		return authority.ErrAgentDisabled
	case m.paused[brand]:
		return authority.ErrPaused
	}
	return nil
}

// card is what the Brand offers now, in its order.
func (m *life) card(brand tenants.BrandID) []string {
	var ids []string
	for _, s := range m.brands[brand].Scopes {
		ids = append(ids, s.ID)
	}
	return ids
}

// payable is what a token may say: requested first, then the card's order.
func (m *life) payable(g *lifeGrant, requested []string) []string {
	return intersected(union(requested, m.card(g.brand)), g.scopes, m.card(g.brand))
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func intersected(first []string, others ...[]string) []string {
	return slices.DeleteFunc(slices.Clone(first), func(s string) bool {
		return slices.ContainsFunc(others, func(o []string) bool { return !slices.Contains(o, s) })
	})
}

// unended is the grant of these four that nobody has ended, run out or not.
func (m *life) unended(r *lifeRequest, subject string) *lifeGrant {
	i := slices.IndexFunc(m.grants, func(g *lifeGrant) bool {
		return g.ended == "" && g.who == r.who && g.login == login{r.brand, subject}
	})
	if i < 0 {
		return nil
	}
	return m.grants[i]
}

// answerable is what stands between a person and any decision of a request.
func (m *life) answerable(r *lifeRequest) error {
	switch {
	case r.state != "pending":
		return authority.ErrDecided
	case !m.now.Before(r.expires):
		return authority.ErrExpired
	}
	return nil
}

func (m *life) decidable(r *lifeRequest, subject string) error {
	if err := m.answerable(r); err != nil {
		return err
	}
	if err := m.open(r.brand, r.who); err != nil {
		return err
	}
	if m.away[login{r.brand, subject}] {
		return authority.ErrSuspended
	}
	return nil
}

// approve decides as the service must, and says what it must answer.
func (m *life) approve(r *lifeRequest, subject string, ticked []string, days int) error {
	if err := m.decidable(r, subject); err != nil {
		return err
	}
	g := m.unended(r, subject)
	stale := g
	if g != nil && !m.alive(g) {
		g = nil
	} else {
		stale = nil
	}
	offered := r.scopes
	if g != nil {
		offered = union(offered, g.scopes)
	}
	granted := intersected(m.card(r.brand), offered, ticked)
	if len(granted) == 0 && len(intersected(ticked, offered)) > 0 {
		return authority.ErrChanged
	}
	r.decided = m.now
	if stale != nil {
		m.end(stale, "expired")
	}
	if len(granted) == 0 {
		r.state = "denied"
		if g != nil {
			m.end(g, "all_unticked")
		}
		return authority.ErrDenied
	}
	r.state = "approved"
	ends := m.now.AddDate(0, 0, days)
	if g == nil {
		g = &lifeGrant{login: login{r.brand, subject}, who: r.who, scopes: granted, expires: ends, indexes: 1, events: []string{"grant.created"}}
		m.grants = append(m.grants, g)
	} else {
		m.rewrite(g, granted, ends)
	}
	r.grant = g
	return nil
}

func (m *life) rewrite(g *lifeGrant, scopes []string, ends time.Time) {
	lost := len(intersected(g.scopes, scopes)) < len(g.scopes) || ends.Before(g.expires)
	gained := len(intersected(scopes, g.scopes)) < len(scopes) || ends.After(g.expires)
	g.scopes, g.expires = scopes, ends
	if lost {
		g.indexes++
		g.events = append(g.events, "grant.narrowed")
	}
	if gained {
		g.events = append(g.events, "grant.widened")
	}
}

func (m *life) end(g *lifeGrant, reason string) {
	g.ended = reason
	event := "grant.revoked"
	if reason == "expired" || reason == "reuse_detected" {
		event = "grant." + reason
	}
	g.events = append(g.events, event)
}

// proceed is one Continue, without checkboxes.
func (m *life) proceed(r *lifeRequest, subject string) error {
	if err := m.decidable(r, subject); err != nil {
		return err
	}
	g := m.unended(r, subject)
	another := slices.ContainsFunc(m.grants, func(o *lifeGrant) bool {
		return m.alive(o) && o.who == r.who && o.brand == r.brand && o.subject != subject
	})
	if g == nil || !m.alive(g) || another || len(intersected(r.scopes, g.scopes, m.card(r.brand))) < len(r.scopes) ||
		// The token carries all that is held (M15), and not only what is asked for.
		slices.ContainsFunc(intersected(g.scopes, m.card(r.brand)), m.highImpact(r.brand)) {
		return authority.ErrChanged
	}
	r.state, r.decided, r.grant = "approved", m.now, g
	return nil
}

func (m *life) highImpact(brand tenants.BrandID) func(string) bool {
	return func(id string) bool { s, _ := m.brands[brand].Scope(id); return s.Impact == "high" }
}

// poll says what the caller must hear, and nil where a token must come.
// Pending and too early are one to it: time between polls is another test's.
func (m *life) poll(r *lifeRequest, who authority.Caller, brand tenants.BrandID) error {
	if who != r.who || brand != r.brand {
		return m.foreign(who)
	}
	if err := m.open(r.brand, r.who); err != nil {
		return err
	}
	switch r.state {
	case "denied":
		return authority.ErrDenied
	case "redeemed":
		return authority.ErrRedeemed
	case "pending":
		if !m.now.Before(r.expires) {
			return authority.ErrExpired
		}
		return authority.ErrPending
	}
	late := r.decided.Add(time.Minute)
	switch {
	case !m.now.Before(r.expires) && !m.now.Before(late):
		return authority.ErrExpired
	case !m.alive(r.grant):
		return authority.ErrEnded
	case m.away[r.grant.login]:
		return authority.ErrSuspended
	case len(m.payable(r.grant, nil)) == 0 || m.lastMoment(r.grant):
		return authority.ErrEnded
	}
	return nil
}

// lastMoment is too late for a token: it ends with the grant, in whole seconds.
func (m *life) lastMoment(g *lifeGrant) bool {
	return !g.expires.Truncate(time.Second).After(m.now.Truncate(time.Second))
}

// foreign is what whoever does not hold a code or token hears.
func (m *life) foreign(who authority.Caller) error {
	if m.off[who.Agent] {
		return authority.ErrAgentDisabled
	}
	return authority.ErrUnknown
}

// back notes that the person may be acted for again.
func (m *life) back(user login) {
	for _, g := range m.grants {
		if g.login == user && g.ended == "" {
			g.letIn = m.now
		}
	}
}

// present says what the caller must hear who comes with a refresh token; nil
// where a successor must come.
func (m *life) present(t *lifeRefresh, who authority.Caller, brand tenants.BrandID, narrow []string) error {
	if who != t.grant.who || brand != t.grant.brand {
		return m.foreign(who)
	}
	if err := m.open(brand, who); err != nil {
		return err
	}
	if !m.alive(t.grant) {
		return authority.ErrEnded
	}
	if m.away[t.grant.login] {
		return authority.ErrSuspended
	}
	if t.used {
		since := t.usedAt
		if !t.next.used && t.grant.letIn.After(since) { // nobody could answer before
			since = t.grant.letIn
		}
		age, grace := m.now.Sub(since), m.brands[brand].Grace
		const flight = 2 * time.Second
		switch {
		case grace > 0 && age <= grace && !t.next.used:
		case age <= max(grace, flight):
			return authority.ErrUnknown
		default:
			m.end(t.grant, "reuse_detected")
			return authority.ErrReused
		}
	}
	can := m.payable(t.grant, nil)
	switch {
	case len(intersected(narrow, can)) < len(narrow):
		return authority.ErrScope
	case len(can) == 0 || m.lastMoment(t.grant):
		return authority.ErrEnded
	}
	return nil
}

// worth is what the access token must be worth now; nothing is nil.
func (m *life) worth(t *lifeAccess) []string {
	if !m.now.Before(t.expires) || !m.alive(t.grant) || m.away[t.grant.login] || m.open(t.grant.brand, t.grant.who) != nil {
		return nil
	}
	return intersected(t.scopes, t.grant.scopes, m.card(t.grant.brand))
}

// endAll ends what the filter names and says how many.
func (m *life) endAll(reason string, which func(*lifeGrant) bool) int {
	n := 0
	for _, g := range m.grants {
		if g.ended == "" && which(g) {
			m.end(g, reason)
			n++
		}
	}
	return n
}

// must compares an answer with the one that is due.
func must(rt *rapid.T, what string, got, want error) {
	rt.Helper()
	if errors.Is(want, authority.ErrPending) && errors.Is(got, authority.ErrTooSoon) {
		return
	}
	if !errors.Is(got, want) || want == nil && got != nil {
		rt.Fatalf("%s: %v, the model says %v", what, got, want)
	}
}
