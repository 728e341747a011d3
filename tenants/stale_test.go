package tenants_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// What an owner allows is what they read. Where somebody has changed it since it was
// asked, the old wish does not undo that; where nobody has, it comes about, and once
// more does no harm, for whoever lost the answer.
func TestAnOldWishUndoesNothing(t *testing.T) {
	const hotel, by = tenants.BrandID("harbor-hotel"), "abcdefghijkl"
	type asked = tenants.PendingChange
	hook := func(a *asking) string {
		w, _, err := tenants.CreateWebhook(a.t.Context(), a.owner, a.Master, tenants.Site{}, hotel, tenants.WebhookDraft{URL: "https://hotel.example/hook"})
		if err != nil {
			a.t.Fatal(err)
		}
		return w.ID
	}
	turn := func(a *asking, id string, on ...bool) (err error) {
		for _, o := range on {
			err = errors.Join(err, tenants.EnableWebhook(a.t.Context(), a.owner, hotel, id, o, ""))
		}
		return err
	}
	cases := []struct {
		name  string
		begin func(a *asking, member uuid.UUID) (asked, error)
		since func(a *asking, member uuid.UUID) error // what somebody else does meanwhile
	}{
		{
			"another role", func(a *asking, member uuid.UUID) (asked, error) {
				return a.asks.AskRole(a.t.Context(), a.edit, hotel, member, tenants.Support, by, "api")
			},
			func(a *asking, member uuid.UUID) error {
				return tenants.ChangeRole(a.t.Context(), a.DB, a.act("member.role_changed"), member, tenants.Owner)
			},
		},
		{
			"removed as a viewer, an owner since", func(a *asking, member uuid.UUID) (asked, error) {
				return a.asks.AskRemoval(a.t.Context(), a.edit, hotel, member, by, "api")
			},
			func(a *asking, member uuid.UUID) error {
				return tenants.ChangeRole(a.t.Context(), a.DB, a.act("member.role_changed"), member, tenants.Owner)
			},
		},
		{
			"removed, and back by an invitation since", func(a *asking, member uuid.UUID) (asked, error) {
				return a.asks.AskRemoval(a.t.Context(), a.edit, hotel, member, by, "api")
			},
			func(a *asking, member uuid.UUID) error {
				a.Exec(a.t, `UPDATE memberships SET since = since + interval '1 day' WHERE person_id = $1`, member)
				return nil
			},
		},
		{
			"vouched for as a viewer, an owner since", func(a *asking, member uuid.UUID) (asked, error) {
				return a.asks.AskVouching(a.t.Context(), a.edit, hotel, member, by, "api")
			},
			func(a *asking, member uuid.UUID) error {
				return tenants.ChangeRole(a.t.Context(), a.DB, a.act("member.role_changed"), member, tenants.Owner)
			},
		},
		{
			"confirmed, and restored anew since", func(a *asking, member uuid.UUID) (asked, error) {
				a.Exec(a.t, `UPDATE people SET restored_at = $2 WHERE id = $1`, member, a.Clock.Now().Add(time.Second))
				return a.asks.AskConfirmation(a.t.Context(), a.edit, hotel, member, by, "api")
			},
			func(a *asking, member uuid.UUID) error {
				a.Exec(a.t, `UPDATE people SET restored_at = $2 WHERE id = $1`, member, a.Clock.Now().Add(2*time.Second))
				return nil
			},
		},
		{
			"invited otherwise", func(a *asking, _ uuid.UUID) (asked, error) {
				return a.asks.AskInvitation(a.t.Context(), a.edit, hotel, "new@hotel.example", tenants.Viewer, by, "api")
			},
			func(a *asking, _ uuid.UUID) error {
				_, err := tenants.Invite(a.t.Context(), a.DB, a.act("member.invited"), "new@hotel.example", tenants.Owner)
				return err
			},
		},
		{
			"paused anew", func(a *asking, _ uuid.UUID) (asked, error) {
				if err := tenants.Stop(a.t.Context(), a.owner, hotel); err != nil {
					a.t.Fatal(err)
				}
				return a.asks.AskResume(a.t.Context(), a.edit, hotel, by, "api")
			},
			func(a *asking, _ uuid.UUID) error {
				return errors.Join(tenants.Start(a.t.Context(), a.owner, hotel), tenants.Stop(a.t.Context(), a.owner, hotel))
			},
		},
		{
			"retired anew", func(a *asking, _ uuid.UUID) (asked, error) {
				if err := tenants.RetireScope(a.t.Context(), a.owner, hotel, "extras:order"); err != nil {
					a.t.Fatal(err)
				}
				return a.asks.AskRestore(a.t.Context(), a.edit, hotel, "extras:order", by, "api")
			},
			func(a *asking, _ uuid.UUID) error {
				a.Clock.Advance(time.Second)
				return errors.Join(
					tenants.RestoreScope(a.t.Context(), a.owner, hotel, "extras:order"),
					tenants.RetireScope(a.t.Context(), a.owner, hotel, "extras:order"),
				)
			},
		},
		{
			"a scope in other words", func(a *asking, _ uuid.UUID) (asked, error) {
				if err := tenants.RetireScope(a.t.Context(), a.owner, hotel, "extras:order"); err != nil {
					a.t.Fatal(err)
				}
				return a.asks.AskRestore(a.t.Context(), a.edit, hotel, "extras:order", by, "api")
			},
			func(a *asking, _ uuid.UUID) error {
				a.Exec(a.t, `UPDATE brand_scopes SET description = 'Close the account' WHERE brand_id = $1 AND id = 'extras:order'`, hotel)
				return nil
			},
		},
		{
			"a domain that is proven since", func(a *asking, _ uuid.UUID) (asked, error) {
				a.Exec(a.t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method) VALUES ($1, 'first.example', 'x', $2, $2, 'dns')`, hotel, a.Clock.Now())
				a.Exec(a.t, `INSERT INTO brand_domains (brand_id, host, token, added_at) VALUES ($1, 'old.example', 'y', $2)`, hotel, a.Clock.Now())
				return a.asks.AskDomainRemoval(a.t.Context(), a.edit, hotel, "old.example", by, "api")
			},
			func(a *asking, _ uuid.UUID) error {
				a.Exec(a.t, `UPDATE brand_domains SET proven_at = $1, method = 'dns' WHERE host = 'old.example'`, a.Clock.Now())
				return nil
			},
		},
		{
			"a domain that was added anew", func(a *asking, _ uuid.UUID) (asked, error) {
				a.Exec(a.t, `INSERT INTO brand_domains (brand_id, host, token, added_at) VALUES ($1, 'anew.example', 'y', $2)`, hotel, a.Clock.Now())
				return a.asks.AskDomainRemoval(a.t.Context(), a.edit, hotel, "anew.example", by, "api")
			},
			func(a *asking, _ uuid.UUID) error {
				a.Clock.Advance(time.Second)
				err := tenants.RemoveDomain(a.t.Context(), a.owner, hotel, "anew.example")
				if err == nil {
					_, err = tenants.AddDomain(a.t.Context(), a.DB, a.owner, hotel, "anew.example")
				}
				return err
			},
		},
		{
			"open to agents, by another rule since", func(a *asking, _ uuid.UUID) (asked, error) {
				a.Exec(a.t, `UPDATE brands SET agents = 'registered', proven = true WHERE id = $1`, hotel)
				return a.asks.AskOpen(a.t.Context(), a.edit, hotel, by, "api")
			},
			func(a *asking, _ uuid.UUID) error {
				_, err := set(a.t, a.World, func(s *tenants.Settings) { s.Agents = tenants.AgentsListed })
				return err
			},
		},
		{
			"an endpoint turned off anew", func(a *asking, _ uuid.UUID) (asked, error) {
				a.hook = hook(a)
				if err := turn(a, a.hook, false); err != nil {
					a.t.Fatal(err)
				}
				return a.asks.AskWebhookOn(a.t.Context(), a.edit, hotel, a.hook, by, "api")
			},
			func(a *asking, _ uuid.UUID) error { return turn(a, a.hook, true, false) },
		},
		{
			"an endpoint turned on anew", func(a *asking, _ uuid.UUID) (asked, error) {
				a.hook = hook(a)
				return a.asks.AskWebhookOff(a.t.Context(), a.edit, hotel, a.hook, by, "cli")
			},
			func(a *asking, _ uuid.UUID) error { return turn(a, a.hook, false, true) },
		},
		{
			"another login live", func(a *asking, _ uuid.UUID) (asked, error) {
				if err := tenants.MakeLive(a.t.Context(), a.owner, site, hotel, mustCandidate(a.t, a.World, draft()).ID); err != nil {
					a.t.Fatal(err)
				}
				d := draft()
				d.Issuer = "https://first.example"
				return a.asks.AskLive(a.t.Context(), a.edit, hotel, mustCandidate(a.t, a.World, d).ID, by, "api")
			},
			func(a *asking, _ uuid.UUID) error {
				a.Exec(a.t, `UPDATE login_connections SET issuer = 'https://other.example' WHERE brand_id = $1 AND live`, hotel)
				return nil
			},
		},
		{
			"a secret of another place", func(a *asking, _ uuid.UUID) (asked, error) {
				if _, err := tenants.SetAgentEndpoint(a.t.Context(), a.owner, a.Master, tenants.Site{}, hotel, "https://hotel.example/agent"); err != nil {
					a.t.Fatal(err)
				}
				return a.asks.AskAgentSecret(a.t.Context(), a.edit, hotel, by, "api")
			},
			func(a *asking, _ uuid.UUID) error {
				_, err := tenants.SetAgentEndpoint(a.t.Context(), a.owner, a.Master, tenants.Site{}, hotel, "https://hotel.example/other")
				return err
			},
		},
	}
	for _, meddled := range []bool{true, false} {
		a := newAsking(t)
		a.first = a.joins("olga@hotel.example", tenants.Owner)
		a.asks = a.asks.With(tenants.AgentAppliers(a.DB, a.Master, tenants.Site{})).For(a.act)
		for _, c := range cases {
			member := a.joins(uuid.NewString()+"@hotel.example", tenants.Viewer)
			change, err := c.begin(a, member)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			a.Clock.Advance(3 * time.Second)
			var want error
			if meddled {
				want = tenants.ErrChangeStale
				if err := c.since(a, member); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
			}
			if _, err := a.asks.Apply(t.Context(), a.owner, hotel, change.ID, "x"); !errors.Is(err, want) {
				t.Errorf("%s, changed meanwhile %v: %v", c.name, meddled, err)
			}
		}
	}
}

// act is what the first owner does under their own name.
func (a *asking) act(event string) tenants.Act {
	return tenants.Act{
		Brand: "harbor-hotel", By: a.first, Event: event, Now: a.Clock.Now(),
		Record: func(context.Context, pgx.Tx, tenants.BrandID, uuid.UUID, string, map[string]any) error { return nil },
	}
}

// An owner's yes whose answer was lost can be given again.
func TestAWishComesAboutTwice(t *testing.T) {
	const hotel, by = tenants.BrandID("harbor-hotel"), "abcdefghijkl"
	a := newAsking(t)
	a.first = a.joins("olga@hotel.example", tenants.Owner)
	a.asks = a.asks.For(a.act)
	sami := a.joins("sami@hotel.example", tenants.Viewer)
	if err := tenants.Stop(t.Context(), a.owner, hotel); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func() (tenants.PendingChange, error){
		"role": func() (tenants.PendingChange, error) {
			return a.asks.AskRole(t.Context(), a.edit, hotel, sami, tenants.Support, by, "api")
		},
		"invitation": func() (tenants.PendingChange, error) {
			return a.asks.AskInvitation(t.Context(), a.edit, hotel, "new@hotel.example", tenants.Viewer, by, "api")
		},
		"resume": func() (tenants.PendingChange, error) { return a.asks.AskResume(t.Context(), a.edit, hotel, by, "api") },
	} {
		c, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		var sealed []byte
		if err := a.Owner.QueryRow(t.Context(), `SELECT payload_sealed FROM pending_changes WHERE id = $1`, c.ID).Scan(&sealed); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := a.asks.Apply(t.Context(), a.owner, hotel, c.ID, "x"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			a.Exec(t, `UPDATE pending_changes SET state = 'pending', payload_sealed = $2, decided_at = NULL WHERE id = $1`, c.ID, sealed)
		}
	}
}
