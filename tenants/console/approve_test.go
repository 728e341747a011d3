package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// What is done in an owner's name is done in that of the owner who approves: the
// new Brand is theirs, the member comes back on their word, and nobody vouches for
// themselves.
func TestAnOwnerApprovesInTheirOwnName(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	const brand, at, by = "harbor-hotel", hotel + "changes", "abcdefghijkl"
	self := uuid.UUID(owner.device.keys[0].user)
	ask := func(c tenants.PendingChange, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return at + "/" + c.ID.String() + "/approve"
	}
	sami := s.become(t, "sami@example.com", "Sami")
	s.own(t, sami, brand, tenants.Support)
	samis := uuid.UUID(sami.device.keys[0].user)
	s.drain(t)

	second := ask(s.asks.AskBrand(t.Context(), s.program(), brand, tenants.BrandDraft{ID: "beach", Name: "Beach", Organisation: "Harbor"}, by, "api"))
	itself := ask(s.asks.AskVouching(t.Context(), s.program(), brand, self, by, "api"))
	vouch := ask(s.asks.AskVouching(t.Context(), s.program(), brand, samis, by, "api"))
	owner.open(at).must(http.StatusOK, "Make another Brand", "beach", "The new Brand is yours", "Help a member back in", "sami@example.com", "talk to them first")
	owner.post(second, nil, at).mustGo(at + "?applied")
	if n := s.Count(t, `SELECT count(*) FROM memberships m JOIN brands b ON b.id = m.brand_id WHERE m.brand_id = 'beach' AND m.person_id = $1 AND m.role = 'owner' AND b.state = 'active'`, self); n != 1 {
		t.Error("the new Brand is not the owner's")
	}
	owner.post(itself, nil, at).must(http.StatusConflict, "another owner must approve")
	owner.post(vouch, nil, at).mustGo(at + "?applied")
	link := s.linkTo(t, "sami@example.com")
	if strings.Contains(owner.open(at).body, tokenOf(link)) {
		t.Error("the link is on a page")
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'member.vouched' AND actor_id = $1`, self.String()); n != 1 {
		t.Errorf("%d stand in the trail", n)
	}
	if _, err := s.asks.AskConfirmation(t.Context(), s.program(), brand, samis, by, "api"); err == nil || !strings.Contains(err.Error(), "does not rest") {
		t.Errorf("%v", err)
	}
	s.Exec(t, `UPDATE people SET restored_at = $2 WHERE id = $1`, samis, s.Clock.Now().Add(time.Second))
	s.Clock.Advance(2 * time.Second)
	owner.touch()
	owner.post(ask(s.asks.AskConfirmation(t.Context(), s.program(), brand, samis, by, "api")), nil, at).mustGo(at + "?applied")
	if m, err := tenants.MemberOf(t.Context(), s.DB, brand, samis); err != nil || m.Held {
		t.Errorf("%+v, %v", m, err)
	}
}

// Closing that a key asked for is an owner's touch away, is final, and everybody
// hears of it; the key alone closes nothing.
func TestAnOwnerClosesWhatAKeyAskedFor(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	const brand, at = "harbor-hotel", hotel + "changes"
	if _, err := s.asks.AskClose(t.Context(), s.program(), brand, "", "abcdefghijkl", "api"); err == nil {
		t.Error("closed without being named")
	}
	c, err := s.asks.AskClose(t.Context(), s.program(), brand, brand, "abcdefghijkl", "api")
	if err != nil || s.Reload(t, brand).State != tenants.Active {
		t.Fatalf("%v", err)
	}
	owner.open(at).must(http.StatusOK, "Close the Brand for good", "ends every living permission", "Closing is final")
	approve := at + "/" + c.ID.String() + "/approve"
	owner.post(approve, nil, at).mustGo(hotel + "leave")
	if s.Reload(t, brand).State != tenants.Closed {
		t.Error("it is not closed")
	}
	owner.post(approve, nil, at).must(http.StatusConflict, "decided already")
	s.told(t, "change.applied", 1)
	s.told(t, "brand.closed", 1)
	if s.Count(t, `SELECT count(*) FROM pending_changes WHERE state = 'pending'`) != 0 {
		t.Error("it waits on")
	}
}
