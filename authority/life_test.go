package authority_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// R32, R36, R38, R46, R48, R51, as a property: whatever two Brands, two agents,
// two of their users and two Brand users do, in whatever order and on whichever
// instance, every call answers as the model says, and after every step no token
// outlives or outgrows what it allows.
func TestNoTokenOutlivesOrOutgrowsWhatWasAllowed(t *testing.T) {
	w := authoritytest.New(t)
	// The Hotel has the usual grace window, the Shop none. How long an agent may
	// stay away is another test's.
	w.Save(t, w.Hotel, func(b *tenants.Brand) { b.SkipConsent, b.IdleDays = true, 366 })
	w.Save(t, w.Shop, func(b *tenants.Brand) { b.SkipConsent, b.Grace, b.IdleDays = true, 0, 366 })
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		l := newLived(t, w, run)
		defer l.leave()
		rt.Repeat(map[string]func(*rapid.T){
			"": l.stands,
			// Some things happen more often than others.
			"delegate": l.delegate, "delegate too": l.delegate, "begin": l.begin,
			"approve": l.approve, "approve too": l.approve, "deny": l.deny, "proceed": l.proceed,
			"poll": l.poll, "poll too": l.poll,
			"refresh": l.renew, "refresh too": l.renew, "lost reply": l.loseReply, "lost reply too": l.loseReply, "replay": l.replay,
			"narrow": l.narrow, "end by user": l.endByUser, "end by token": l.endByToken,
			"end by agent": l.endByAgent, "end many": l.endMany, "expire": l.expire,
			"suspend": l.suspend, "agent": l.turnAgent, "scope": l.turnScope, "pause": l.turnBrand,
			"moment": l.moment, "moment more": l.moment, "time": l.time, "last minutes": l.lastMinutes,
		})
	})
}

// lived is a run of the model beside the service.
type lived struct {
	*life
	t         *testing.T
	w         *authoritytest.World
	instances []*authority.Authority
	callers   []authority.Caller
	subjects  []string
	families  int
}

func newLived(t *testing.T, w *authoritytest.World, run int) *lived {
	t.Helper()
	l := &lived{
		t: t, w: w, instances: []*authority.Authority{w.Authority(nil), w.Authority(nil)},
		life: &life{
			brands: make(map[tenants.BrandID]*tenants.Brand), paused: make(map[tenants.BrandID]bool),
			off: make(map[string]bool), away: make(map[login]bool),
		},
	}
	for i := range 2 {
		l.subjects = append(l.subjects, fmt.Sprintf("guest-%d-%d", run, i))
		for _, agent := range []string{authoritytest.Agent, authoritytest.OtherAgent} {
			l.callers = append(l.callers, authority.Caller{Agent: agent, Sub: fmt.Sprintf("person-%d-%d", run, i)})
		}
	}
	l.reload()
	return l
}

// leave makes room for the next run: nothing lives, everything is open.
func (l *lived) leave() {
	l.w.Exec(l.t, `UPDATE agents SET enabled = true`)
	l.w.Exec(l.t, `UPDATE brands SET state = 'active'`)
	l.w.Exec(l.t, `UPDATE brand_scopes SET retired_at = NULL`)
	for brand := range l.brands {
		for _, who := range l.callers {
			if _, err := l.instances[0].End(l.t.Context(), brand, authority.ByOperator(), authority.Which{AgentSub: who.Sub}); err != nil {
				l.t.Error(err)
			}
		}
		if _, err := l.instances[0].Expire(l.t.Context(), brand); err != nil { // what ran out, End leaves alone
			l.t.Error(err)
		}
	}
}

func (l *lived) reload() {
	l.now = l.w.Clock.Now()
	for _, id := range []tenants.BrandID{l.w.Hotel.ID, l.w.Shop.ID} {
		l.brands[id] = l.w.Reload(l.t, id)
	}
}

func (l *lived) a(rt *rapid.T) *authority.Authority {
	return l.instances[rapid.IntRange(0, len(l.instances)-1).Draw(rt, "instance")]
}

func (l *lived) brand(rt *rapid.T) tenants.BrandID {
	return rapid.SampledFrom([]tenants.BrandID{l.w.Hotel.ID, l.w.Shop.ID}).Draw(rt, "brand")
}

func (l *lived) subject(rt *rapid.T) string { return rapid.SampledFrom(l.subjects).Draw(rt, "subject") }

// where is the rightful place to come with what belongs to who at the brand, or
// now and then another.
func (l *lived) where(rt *rapid.T, who authority.Caller, brand tenants.BrandID) (authority.Caller, tenants.BrandID) {
	if !seldom(rt, 5, "stranger") {
		return who, brand
	}
	return rapid.SampledFrom(l.callers).Draw(rt, "caller"), l.brand(rt)
}

// rarely skips most turns of what would leave nothing alive.
func (l *lived) rarely(rt *rapid.T) {
	if !seldom(rt, 5, "at all") {
		rt.Skip()
	}
}

// seldom is true one time in n.
func seldom(rt *rapid.T, n int, what string) bool { return rapid.IntRange(1, n).Draw(rt, what) == n }

// one draws one of the newest few, or skips the step: the old ones are over.
func one[T any](rt *rapid.T, all []T, what string) T {
	if len(all) == 0 {
		rt.Skip()
	}
	const few = 6
	return rapid.SampledFrom(all[max(0, len(all)-few):]).Draw(rt, what)
}

func some(rt *rapid.T, ids []string, least int, what string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(ids), least, len(ids), rapid.ID[string]).Draw(rt, what)
}

// sold is everything the Brand ever offered.
func (l *lived) sold(brand tenants.BrandID) []string {
	if brand == l.w.Hotel.ID {
		return []string{"bookings:read", "bookings:change", "extras:order", "account:read"}
	}
	return []string{"orders:read", "bookings:read"}
}

// delegate is the whole of it, as it mostly goes, so that there is something to
// lose: asked, allowed in full, paid out.
func (l *lived) delegate(rt *rapid.T) {
	i, brand := rapid.IntRange(0, len(l.callers)-1).Draw(rt, "caller"), l.brand(rt)
	r := l.start(rt, brand, l.callers[i], some(rt, l.sold(brand), 1, "asked"))
	l.decide(rt, r, l.subjects[i/2], true)
	l.collect(rt, r, r.who, r.brand)
}

func (l *lived) begin(rt *rapid.T) {
	brand := l.brand(rt)
	l.start(rt, brand, rapid.SampledFrom(l.callers).Draw(rt, "caller"), some(rt, l.sold(brand), 1, "asked"))
}

func (l *lived) start(rt *rapid.T, brand tenants.BrandID, who authority.Caller, scopes []string) *lifeRequest {
	const enough = 28 // the limit of starts is another test's
	if len(l.requests) == enough {
		rt.Skip()
	}
	started, err := l.a(rt).Begin(l.t.Context(), l.brands[brand], who, scopes)
	want := l.open(brand, who)
	if len(intersected(scopes, l.card(brand))) < len(scopes) {
		want = authority.ErrScope
	}
	if must(rt, "begin", err, want); err != nil {
		rt.Skip()
	}
	r := &lifeRequest{brand: brand, who: who, started: started, scopes: scopes, state: "pending", expires: l.now.Add(authority.RequestLife)}
	l.requests = append(l.requests, r)
	return r
}

// answer is what the person would send who sees the request.
func (l *lived) answer(rt *rapid.T, r *lifeRequest, subject string, all bool) authority.Decision {
	q, err := l.a(rt).Ask(l.t.Context(), r.brand, r.started.ID, subject)
	if err != nil {
		rt.Fatal(err)
	}
	ticked := union(q.Requested, q.Held)
	if !all {
		ticked = some(rt, l.sold(r.brand), 0, "ticked")
	}
	d := authoritytest.Answer(l.brands[r.brand], q, subject, ticked...)
	d.Days = rapid.SampledFrom(l.brands[r.brand].GrantDays).Draw(rt, "days")
	return d
}

// undecided draws a request that mostly still waits.
func (l *lived) undecided(rt *rapid.T) *lifeRequest {
	if seldom(rt, 5, "decided too") {
		return one(rt, l.requests, "request")
	}
	return one(rt, slices.DeleteFunc(slices.Clone(l.requests), func(r *lifeRequest) bool { return l.answerable(r) != nil }), "waiting")
}

func (l *lived) approve(rt *rapid.T) {
	l.decide(rt, l.undecided(rt), l.subject(rt), rapid.Bool().Draw(rt, "everything"))
}

func (l *lived) decide(rt *rapid.T, r *lifeRequest, subject string, all bool) {
	d := l.answer(rt, r, subject, all)
	err := l.a(rt).Approve(l.t.Context(), l.brands[r.brand], d)
	must(rt, "approve", err, l.life.approve(r, subject, d.Ticked, d.Days))
}

func (l *lived) deny(rt *rapid.T) {
	r, subject := l.undecided(rt), l.subject(rt)
	err := l.a(rt).Deny(l.t.Context(), r.brand, authority.Decision{Request: r.started.ID, Subject: subject})
	want := l.answerable(r)
	must(rt, "deny", err, want)
	if want == nil {
		r.state, r.decided = "denied", l.now
	}
}

func (l *lived) proceed(rt *rapid.T) {
	g := l.living(rt)
	r, subject := l.start(rt, g.brand, g.who, some(rt, g.scopes, 1, "again")), g.subject
	if seldom(rt, 4, "another") {
		subject = l.subject(rt)
	}
	d := l.answer(rt, r, subject, true)
	err := l.a(rt).Proceed(l.t.Context(), l.brands[r.brand], d)
	must(rt, "proceed", err, l.life.proceed(r, subject))
}

func (l *lived) living(rt *rapid.T) *lifeGrant {
	return one(rt, slices.DeleteFunc(slices.Clone(l.grants), func(g *lifeGrant) bool { return !l.alive(g) }), "living")
}

func (l *lived) poll(rt *rapid.T) {
	r := one(rt, l.requests, "request")
	who, brand := l.where(rt, r.who, r.brand)
	l.collect(rt, r, who, brand)
}

func (l *lived) collect(rt *rapid.T, r *lifeRequest, who authority.Caller, brand tenants.BrandID) {
	tokens, err := l.a(rt).Poll(l.t.Context(), l.brands[brand], who, r.started.DeviceCode)
	must(rt, "poll", err, l.life.poll(r, who, brand))
	if err != nil {
		return
	}
	r.state = "redeemed"
	l.families++
	l.paid(rt, tokens, r.grant, l.payable(r.grant, r.scopes))
	l.refresh = append(l.refresh, &lifeRefresh{grant: r.grant, text: tokens.Refresh, family: l.families})
}

// paid compares what came with what may come, and remembers it.
func (l *lived) paid(rt *rapid.T, tokens authority.Tokens, g *lifeGrant, scopes []string) {
	if !slices.Equal(tokens.Scopes, scopes) {
		rt.Fatalf("paid %v, the model says %v", tokens.Scopes, scopes)
	}
	claims := payloadOf(l.t, tokens.JWS)
	expires := time.Unix(int64(claims["exp"].(float64)), 0)
	if expires.After(g.expires) || tokens.ExpiresIn > time.Hour || claims["scope"] != strings.Join(scopes, " ") || claims["sub"] != g.subject {
		rt.Fatalf("token %v for a grant until %v", claims, g.expires)
	}
	if g.id == uuid.Nil {
		g.id = tokens.GrantID // the first to name it
	}
	if g.id != tokens.GrantID {
		rt.Fatalf("token of grant %s, not %s", tokens.GrantID, g.id)
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens.JWS, ".")[1])
	if err != nil {
		rt.Fatal(err)
	}
	index := claims["status"].(map[string]any)["status_list"].(map[string]any)["idx"].(float64)
	l.access = append(l.access, &lifeAccess{
		grant: g, payload: payload, jws: tokens.JWS, scopes: scopes, expires: expires, index: int(index),
	})
}

func (l *lived) renew(rt *rapid.T) { l.spend(rt, l.token(rt, false)) }

func (l *lived) replay(rt *rapid.T) { l.spend(rt, l.token(rt, true)) }

// loseReply comes back with a token a moment after it was spent, before or after
// its successor.
func (l *lived) loseReply(rt *rapid.T) {
	token := l.token(rt, false)
	l.spend(rt, token)
	for range 2 {
		l.moment(rt)
		if token.used && rapid.Bool().Draw(rt, "successor") {
			l.spend(rt, token.next)
		} else {
			l.spend(rt, token)
		}
	}
}

// token draws a refresh token that is spent or not, and mostly one whose grant
// still lives.
func (l *lived) token(rt *rapid.T, used bool) *lifeRefresh {
	dead := seldom(rt, 6, "dead too")
	return one(rt, slices.DeleteFunc(slices.Clone(l.refresh), func(t *lifeRefresh) bool {
		return t.used != used || !dead && !l.alive(t.grant)
	}), "token")
}

func (l *lived) spend(rt *rapid.T, token *lifeRefresh) {
	who, brand := l.where(rt, token.grant.who, token.grant.brand)
	var narrow []string
	if seldom(rt, 3, "narrower") {
		narrow = some(rt, l.sold(brand), 0, "narrow")
	}
	tokens, err := l.a(rt).Refresh(l.t.Context(), l.brands[brand], who, token.text, narrow)
	must(rt, "refresh", err, l.present(token, who, brand, narrow))
	if err != nil {
		return
	}
	scopes := l.payable(token.grant, nil)
	if len(narrow) > 0 {
		scopes = narrow
	}
	l.paid(rt, tokens, token.grant, scopes)
	if !token.used {
		token.used, token.usedAt = true, l.now
		token.next = &lifeRefresh{grant: token.grant, text: tokens.Refresh, family: token.family}
		l.refresh = append(l.refresh, token.next)
	}
	if token.next.text != tokens.Refresh {
		rt.Fatal("a second successor")
	}
}

func (l *lived) narrow(rt *rapid.T) {
	g, subject := one(rt, l.grants, "grant"), l.subject(rt)
	scope := rapid.SampledFrom(l.sold(g.brand)).Draw(rt, "scope")
	err := l.a(rt).EndScopeByUser(l.t.Context(), g.brand, subject, g.id, scope)
	if g.subject != subject || !l.alive(g) || !slices.Contains(g.scopes, scope) {
		must(rt, "narrow", err, authority.ErrUnknown)
		return
	}
	must(rt, "narrow", err, nil)
	left := slices.DeleteFunc(slices.Clone(g.scopes), func(s string) bool { return s == scope })
	if len(left) == 0 {
		l.end(g, "revoked_by_user")
		return
	}
	l.rewrite(g, left, g.expires)
}

func (l *lived) endByUser(rt *rapid.T) {
	l.rarely(rt)
	g, subject, brand := one(rt, l.grants, "grant"), l.subject(rt), l.brand(rt)
	err := l.a(rt).EndByUser(l.t.Context(), brand, subject, g.id)
	if g.login != (login{brand, subject}) || !l.alive(g) { // what ran out is over, whether or not Expire came by
		must(rt, "end by user", err, authority.ErrUnknown)
		return
	}
	must(rt, "end by user", err, nil)
	l.end(g, "revoked_by_user")
}

func (l *lived) endByToken(rt *rapid.T) {
	l.rarely(rt)
	g, text := (*lifeGrant)(nil), ""
	if rapid.Bool().Draw(rt, "refresh token") {
		token := one(rt, l.refresh, "token")
		g, text = token.grant, token.text
	} else {
		token := one(rt, l.access, "token")
		g, text = token.grant, token.jws
	}
	who, brand := l.where(rt, g.who, g.brand)
	err := l.a(rt).EndByToken(l.t.Context(), brand, who, text)
	if l.off[who.Agent] {
		must(rt, "end by token", err, authority.ErrAgentDisabled)
		return
	}
	must(rt, "end by token", err, nil)
	if who == g.who && brand == g.brand && l.alive(g) {
		l.end(g, "revoked_by_agent")
	}
}

func (l *lived) endByAgent(rt *rapid.T) {
	l.rarely(rt)
	g := one(rt, l.grants, "grant")
	who, brand := l.where(rt, g.who, g.brand)
	err := l.a(rt).EndByAgent(l.t.Context(), brand, who, g.id)
	if l.off[who.Agent] || who != g.who || brand != g.brand || !l.alive(g) {
		must(rt, "end by agent", err, l.foreign(who))
		return
	}
	must(rt, "end by agent", err, nil)
	l.end(g, "revoked_by_agent")
}

// endMany ends what the operator names: seldom everything of an agent.
func (l *lived) endMany(rt *rapid.T) {
	l.rarely(rt)
	who, brand := rapid.SampledFrom(l.callers).Draw(rt, "caller"), l.brand(rt)
	which := authority.Which{AgentSub: who.Sub}
	if which.Subject = l.subject(rt); seldom(rt, 6, "of any user") {
		which.Subject = ""
	}
	if seldom(rt, 2, "of one agent") {
		which.Agent = who.Agent
	}
	n, err := l.a(rt).End(l.t.Context(), brand, authority.ByOperator(), which)
	must(rt, "end many", err, nil)
	want := l.endAll("revoked_by_operator", func(g *lifeGrant) bool {
		return l.alive(g) && g.brand == brand && g.who.Sub == which.AgentSub && (which.Agent == "" || g.who.Agent == which.Agent) &&
			(which.Subject == "" || g.subject == which.Subject)
	})
	if n != want {
		rt.Fatalf("%d ended, the model says %d", n, want)
	}
}

func (l *lived) expire(rt *rapid.T) {
	brand := l.brand(rt)
	n, err := l.a(rt).Expire(l.t.Context(), brand)
	must(rt, "expire", err, nil)
	want := l.endAll("expired", func(g *lifeGrant) bool { return g.brand == brand && !l.alive(g) })
	if n != want {
		rt.Fatalf("%d expired, the model says %d", n, want)
	}
}

func (l *lived) suspend(rt *rapid.T) {
	user := login{l.brand(rt), l.subject(rt)}
	was := l.away[user]
	l.away[user] = turn(rt, was)
	if was {
		l.back(user)
	}
	act := l.a(rt).Resume
	if l.away[user] {
		act = l.a(rt).Suspend
	}
	must(rt, "suspend", act(l.t.Context(), user.brand, authority.ByOperator(), user.subject), nil)
}

func (l *lived) turnAgent(rt *rapid.T) {
	for _, agent := range []string{authoritytest.Agent, authoritytest.OtherAgent} {
		l.off[agent] = turn(rt, l.off[agent])
		l.w.Exec(l.t, `UPDATE agents SET enabled = $2 WHERE issuer = $1`, agent, !l.off[agent])
	}
}

func (l *lived) turnScope(rt *rapid.T) {
	brand := l.brand(rt)
	for _, scope := range l.sold(brand) {
		off := turn(rt, !slices.Contains(l.card(brand), scope))
		l.w.Exec(l.t, `UPDATE brand_scopes SET retired_at = CASE WHEN $3 THEN now() END WHERE brand_id = $1 AND id = $2`, brand, scope, off)
	}
	l.reload()
}

func (l *lived) turnBrand(rt *rapid.T) {
	for _, brand := range []tenants.BrandID{l.w.Hotel.ID, l.w.Shop.ID} {
		l.paused[brand] = turn(rt, l.paused[brand])
		state := map[bool]tenants.State{true: tenants.Paused, false: tenants.Active}[l.paused[brand]]
		l.w.Exec(l.t, `UPDATE brands SET state = $2 WHERE id = $1`, brand, string(state))
	}
	l.reload()
}

func (l *lived) moment(rt *rapid.T) {
	l.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 6 * time.Second, 29 * time.Second, time.Minute}).Draw(rt, "moment"))
}

func (l *lived) time(rt *rapid.T) {
	l.rarely(rt)
	l.pass(rapid.SampledFrom([]time.Duration{
		9 * time.Minute, 16 * time.Minute, 8 * time.Hour, 31 * 24 * time.Hour,
	}).Draw(rt, "time"))
}

// lastMinutes refreshes shortly before a grant's end, or right at it.
func (l *lived) lastMinutes(rt *rapid.T) {
	l.rarely(rt)
	token := l.token(rt, false)
	left := token.grant.expires.Sub(l.now) - time.Duration(rapid.IntRange(0, 300).Draw(rt, "seconds"))*time.Second
	if left > 0 {
		l.pass(left)
	}
	l.spend(rt, token)
}

func (l *lived) pass(d time.Duration) {
	l.w.Clock.Advance(d)
	l.now = l.w.Clock.Now()
}
