package tenants_test

import (
	"testing"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// Who has taken a key can repeat things without end: an owner's mailbox is not
// filled with it. What tells of keys and members comes all the same.
func TestAKeyFillsNobodysMailbox(t *testing.T) {
	const hotel = tenants.BrandID("harbor-hotel")
	a := newAsking(t)
	olga := a.joins("olga@hotel.example", tenants.Owner)
	tell := func(event, channel string) {
		t.Helper()
		err := a.DB.Tx(t.Context(), hotel, func(tx pgx.Tx) error {
			return tenants.Asker{Name: "abcdefghijkl", Channel: channel}.TellOwners(t.Context(), tx, hotel, event, a.Clock.Now())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	told := func(event string) int {
		return a.Count(t, `SELECT count(*) FROM notices WHERE kind = $1 AND person_id = $2`, event, olga)
	}
	sent := func() { a.Exec(t, `UPDATE notices SET claimed_at = created_at, sent_at = created_at`) }
	for range 30 {
		for _, event := range []string{"login.candidate", "change.rejected", tenants.EventExported, "key.revoked", tenants.EventRecoveryCancelled, tenants.EventWithdrawn, "apikey.revoked"} {
			tell(event, "api")
		}
		tell("brand.paused", "cli")
		sent()
	}
	for event, want := range map[string]int{
		"login.candidate": 20, "change.rejected": 20, tenants.EventExported: 20, "brand.paused": 30,
		"key.revoked": 30, tenants.EventRecoveryCancelled: 30, tenants.EventWithdrawn: 30, "apikey.revoked": 30,
	} {
		if n := told(event); n != want {
			t.Errorf("%s: %d letters, want %d", event, n, want)
		}
	}
	a.Clock.Advance(time.Hour + time.Minute)
	tell("login.candidate", "api")
	if n := told("login.candidate"); n != 21 {
		t.Errorf("an hour later: %d letters", n)
	}
	a.Clock.Advance(time.Minute)
	for range 5 {
		tell("key.revoked", "api")
	}
	if n := told("key.revoked"); n != 31 {
		t.Errorf("five equal ones that wait are %d letters", n-30)
	}
	// The oldest is no hurry: what nobody can repeat comes first, a handful at a time.
	first, err := tenants.ClaimNotices(t.Context(), a.DB, hotel, a.Clock.Now(), 1)
	if err != nil || len(first) != 1 || first[0].Kind != "key.revoked" {
		t.Errorf("%+v, %v", first, err)
	}
}
