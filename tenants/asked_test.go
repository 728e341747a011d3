package tenants_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// asking is a Brand at which a program asks and an owner decides.
type asking struct {
	*authoritytest.World
	t           *testing.T
	asks        *tenants.Asks
	keys        *signing.Keys
	edit, owner tenants.Editor
	first       uuid.UUID // the owner who decides, where one does so in their own name
	hook        string
}

func newAsking(t *testing.T) *asking {
	t.Helper()
	w := authoritytest.New(t)
	a := &asking{
		World: w, t: t, keys: w.NewKeys(),
		edit:  w.Authority(nil).Editor(authority.By{Actor: "admin", ID: "abcdefghijkl", Channel: "api"}),
		owner: w.Authority(nil).Editor(authority.ByMember(uuid.NewString())),
	}
	a.asks = &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Appliers: tenants.SettingsAppliers(w.DB, tenants.Site{})}
	a.asks = a.asks.With(signing.Appliers(a.keys, func(context.Context, tenants.BrandID) (signing.Policy, error) {
		return signing.Policy{Alg: signing.ES256, Backend: "local"}, nil
	}))
	return a
}

// joins makes somebody a member of the hotel.
func (a *asking) joins(email string, role tenants.Role) uuid.UUID {
	a.t.Helper()
	id := uuid.New()
	a.Exec(a.t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, $2, $2, 'P', 'en', $3)`, id, email, a.Clock.Now())
	a.Exec(a.t, `INSERT INTO memberships (brand_id, person_id, role, since, confirmed_at) VALUES ('harbor-hotel', $1, $2, $3, $3)`, id, role, a.Clock.Now())
	return id
}

// Whatever gives back what was stopped, says whose the Brand is, or changes what is
// signed with, waits for an owner, once, and comes about once.
func TestWhatOnlyATouchMakesIsAskedFor(t *testing.T) {
	const hotel, by = tenants.BrandID("harbor-hotel"), "abcdefghijkl"
	a := newAsking(t)
	ctx := t.Context()
	a.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at) VALUES ('harbor-hotel', 'old.example', 'x', $1)`, a.Clock.Now())
	a.Exec(t, `UPDATE brands SET agents = 'listed' WHERE id = 'harbor-hotel'`)
	hook, _, err := tenants.CreateWebhook(ctx, a.owner, a.Master, tenants.Site{}, hotel, tenants.WebhookDraft{URL: "https://hotel.example/hook"})
	if err == nil {
		err = errors.Join(
			tenants.EnableWebhook(ctx, a.owner, hotel, hook.ID, false, ""),
			tenants.RetireScope(ctx, a.owner, hotel, "extras:order"), tenants.Stop(ctx, a.owner, hotel),
		)
	}
	if err != nil {
		t.Fatal(err)
	}
	var next string
	for _, c := range []struct {
		kind    string
		ask     func() (tenants.PendingChange, error)
		is      string // true once it came about
		becomes error  // of the same wish, then
	}{
		{
			tenants.ChangeResume,
			func() (tenants.PendingChange, error) { return a.asks.AskResume(ctx, a.edit, hotel, by, "api") },
			`SELECT count(*) FROM brands WHERE id = 'harbor-hotel' AND state = 'active'`, tenants.ErrNotPaused,
		},
		{
			tenants.ChangeRestore,
			func() (tenants.PendingChange, error) {
				return a.asks.AskRestore(ctx, a.edit, hotel, "extras:order", by, "api")
			},
			`SELECT count(*) FROM brand_scopes WHERE brand_id = 'harbor-hotel' AND id = 'extras:order' AND retired_at IS NULL`, tenants.ErrOnCard,
		},
		{
			tenants.ChangeDomainAdd,
			func() (tenants.PendingChange, error) {
				return a.asks.AskDomain(ctx, a.edit, hotel, "New.Example", by, "api")
			},
			`SELECT count(*) FROM brand_domains WHERE host = 'new.example'`, tenants.ErrHaveDomain,
		},
		{
			tenants.ChangeDomainRemove,
			func() (tenants.PendingChange, error) {
				return a.asks.AskDomainRemoval(ctx, a.edit, hotel, "old.example", by, "api")
			},
			`SELECT 1 - count(*) FROM brand_domains WHERE host = 'old.example'`, tenants.ErrNoDomain,
		},
		{
			tenants.ChangeHookEnable,
			func() (tenants.PendingChange, error) {
				return a.asks.AskWebhookOn(ctx, a.edit, hotel, hook.ID, by, "api")
			},
			`SELECT count(*) FROM webhook_endpoints WHERE enabled`, tenants.ErrHookOn,
		},
		{
			tenants.ChangeRule,
			func() (tenants.PendingChange, error) {
				return a.asks.AskRule(ctx, a.edit, hotel, tenants.AgentsRegistered, by, "api")
			},
			`SELECT count(*) FROM brands WHERE id = 'harbor-hotel' AND agents = 'registered'`, tenants.ErrWide,
		},
		{
			tenants.ChangeSigningNext,
			func() (tenants.PendingChange, error) { return a.keys.AskNext(ctx, a.asks, a.edit, hotel, by, "api") },
			`SELECT count(*) FROM signing_keys WHERE brand_id = 'harbor-hotel' AND state = 'next'`, signing.ErrNextExists,
		},
		{
			tenants.ChangeSigningRetire,
			func() (tenants.PendingChange, error) {
				if next == "" {
					if err := a.Owner.QueryRow(ctx, `SELECT kid FROM signing_keys WHERE state = 'next'`).Scan(&next); err != nil {
						t.Fatal(err)
					}
				}
				return a.keys.AskRetire(ctx, a.asks, a.edit, hotel, next, by, "api")
			},
			`SELECT 1 - count(*) FROM signing_keys WHERE state = 'next'`, signing.ErrNoNext,
		},
	} {
		first, err := c.ask()
		if err != nil || first.Kind != c.kind || first.State != "pending" {
			t.Fatalf("%s: %+v, %v", c.kind, first, err)
		}
		if a.Count(t, c.is) != 0 {
			t.Errorf("%s: it did not wait", c.kind)
		}
		if again, err := c.ask(); err != nil || again.ID != first.ID {
			t.Errorf("%s: asked twice it waits twice, %v", c.kind, err)
		}
		if _, err := a.asks.Apply(ctx, a.owner, a.Shop.ID, first.ID, "x"); !errors.Is(err, tenants.ErrChangeOver) {
			t.Errorf("%s: the shop applies it: %v", c.kind, err)
		}
		if _, err := a.asks.Apply(ctx, a.owner, hotel, first.ID, "x"); err != nil || a.Count(t, c.is) != 1 {
			t.Errorf("%s: applied: %v", c.kind, err)
		}
		if _, err := a.asks.Apply(ctx, a.owner, hotel, first.ID, "x"); !errors.Is(err, tenants.ErrChangeOver) {
			t.Errorf("%s: applied twice: %v", c.kind, err)
		}
		if _, err := c.ask(); !errors.Is(err, c.becomes) {
			t.Errorf("%s: asked for what is so: %v", c.kind, err)
		}
	}
	if n := a.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'change.asked'`); n != 8 {
		t.Errorf("%d of 8 stand in the trail", n)
	}
}

// What an owner said yes to is what happens: where things have moved on, nothing.
func TestWhatWasAskedForMayBeStale(t *testing.T) {
	const hotel, by = tenants.BrandID("harbor-hotel"), "abcdefghijkl"
	a := newAsking(t)
	ctx := t.Context()
	must := func(c tenants.PendingChange, err error) uuid.UUID {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	// The key has changed by itself meanwhile.
	next := must(a.keys.AskNext(ctx, a.asks, a.edit, hotel, by, "api"))
	a.Exec(t, `UPDATE signing_keys SET kid = 'another' WHERE brand_id = 'harbor-hotel'`)
	if _, err := a.asks.Apply(ctx, a.owner, hotel, next, "x"); !errors.Is(err, tenants.ErrChangeStale) {
		t.Errorf("a second rotation: %v", err)
	}
	a.Exec(t, `UPDATE brands SET agents = 'listed' WHERE id = 'harbor-hotel'`)
	rule := must(a.asks.AskRule(ctx, a.edit, hotel, tenants.AgentsRegistered, by, "api"))
	a.Exec(t, `UPDATE brands SET agents = 'open' WHERE id = 'harbor-hotel'`)
	if _, err := a.asks.Apply(ctx, a.owner, hotel, rule, "x"); !errors.Is(err, tenants.ErrChangeStale) {
		t.Errorf("another rule: %v", err)
	}
	domain := must(a.asks.AskDomain(ctx, a.edit, hotel, "new.example", by, "api"))
	a.Clock.Advance(tenants.PendingLife)
	if _, err := a.asks.Apply(ctx, a.owner, hotel, domain, "x"); !errors.Is(err, tenants.ErrChangeOver) {
		t.Errorf("after its time: %v", err)
	}
	if n := a.Count(t, `SELECT count(*) FROM brand_domains`); n != 0 {
		t.Errorf("%d domains", n)
	}
}

// B98: every owner hears of a change that waits, once, in the transaction that
// makes it wait; nobody else does, and nothing of what it says stands there. Who
// asks without end does not fill anybody's mailbox.
func TestEveryOwnerHearsOfWhatWaits(t *testing.T) {
	const hotel = tenants.BrandID("harbor-hotel")
	a := newAsking(t)
	ctx := t.Context()
	olga, otto := a.joins("olga@hotel.example", tenants.Owner), a.joins("otto@hotel.example", tenants.Owner)
	a.joins("sami@hotel.example", tenants.Security)
	told := func(kind string) int {
		t.Helper()
		return a.Count(t, `SELECT count(*) FROM notices WHERE brand_id = 'harbor-hotel' AND kind = 'change.asked' AND detail->>'change' = $1
			AND person_id IN ($2, $3)`, kind, olga, otto)
	}
	// Eight at once ask for the same: one waits, and each owner gets one letter.
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := a.asks.AskInvitation(ctx, a.edit, hotel, "new@hotel.example", tenants.Viewer, "abcdefghijkl", "api")
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := a.Count(t, `SELECT count(*) FROM pending_changes`); n != 1 || told(tenants.ChangeMemberInvite) != 2 {
		t.Errorf("%d changes wait, %d letters", n, told(tenants.ChangeMemberInvite))
	}
	if n := a.Count(t, `SELECT count(*) FROM notices WHERE kind = 'change.asked'`); n != 2 {
		t.Errorf("%d letters in all", n)
	}
	if n := a.Count(t, `SELECT count(*) FROM notices WHERE detail::text LIKE '%new@%'`); n != 0 {
		t.Error("the letter names somebody")
	}
	notices, err := tenants.ClaimNotices(ctx, a.DB, hotel, a.Clock.Now(), 100)
	if err != nil || len(notices) != 2 || notices[0].By != (tenants.Asker{Name: "abcdefghijkl", Channel: "api"}) || notices[0].Change != tenants.ChangeMemberInvite {
		t.Errorf("%+v, %v", notices, err)
	}
	// What cannot be written down in the trail is not told either.
	a.Exec(t, `REVOKE INSERT ON audit_events FROM countersign_app`)
	if _, err := a.asks.AskDomain(ctx, a.edit, hotel, "new.example", "x", "cli"); err == nil || told(tenants.ChangeDomainAdd) != 0 {
		t.Errorf("told of nothing: %v", err)
	}
	a.Exec(t, `GRANT INSERT ON audit_events TO countersign_app`)
	for range 25 {
		c, err := a.asks.AskDomain(ctx, a.edit, hotel, "new.example", "x", "cli")
		if err == nil {
			err = a.asks.Reject(ctx, a.edit, hotel, c.ID, "x")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := told(tenants.ChangeDomainAdd); n != 2*19 {
		t.Errorf("%d letters in one hour", n)
	}
	a.Clock.Advance(time.Hour)
	if _, err := a.asks.AskDomain(ctx, a.edit, hotel, "new.example", "x", "cli"); err != nil || told(tenants.ChangeDomainAdd) != 2*20 {
		t.Errorf("%d letters an hour later, %v", told(tenants.ChangeDomainAdd), err)
	}
}
