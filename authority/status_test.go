package authority_test

import (
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// allowed makes a grant and returns its id and its index.
func allowed(t *testing.T, w *authoritytest.World, a *authority.Authority, brand *tenants.Brand, who authority.Caller, subject string, scopes ...string) (uuid.UUID, int) {
	t.Helper()
	s := authoritytest.Begin(t, a, brand, who, scopes...)
	authoritytest.Approve(t, a, brand, s, subject, scopes...)
	var id uuid.UUID
	var index int
	const q = `SELECT id, status_idx FROM grants WHERE brand_id = $1 AND agent = $2 AND agent_sub = $3 AND subject = $4 AND ended_at IS NULL`
	if err := w.Owner.QueryRow(t.Context(), q, brand.ID, who.Agent, who.Sub, subject).Scan(&id, &index); err != nil {
		t.Fatal(err)
	}
	return id, index
}

// waiting returns once n sessions of the database wait for a lock.
func waiting(t *testing.T, w *authoritytest.World, n int) {
	t.Helper()
	const q = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	for late := time.Now().Add(10 * time.Second); w.Count(t, q) != n; {
		if time.Now().After(late) {
			t.Fatalf("not %d sessions wait for a lock", n)
		}
	}
}

// R91 (in part): two changes that touch the same lists in opposite order come
// one after the other; neither fails with a deadlock.
func TestChangesOfSeveralListsDoNotWaitForOneAnother(t *testing.T) {
	w := authoritytest.New(t)
	a, b := w.Authority(nil), w.Authority(nil)
	mine, _ := allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read", "account:read")
	sam := authority.Caller{Agent: authoritytest.OtherAgent, Sub: "sam-laptop"}
	allowed(t, w, a, w.Hotel, sam, "guest-8", "bookings:read")
	w.Exec(t, `UPDATE status_lists SET used = $1`, authority.StatusListSize/2)
	allowed(t, w, a, w.Hotel, sam, "guest-9", "bookings:read") // in the next list

	holder, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `UPDATE status_lists SET used = used WHERE list = 0`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { // voids in both lists
		_, err := a.End(t.Context(), w.Hotel.ID, authority.ByOperator(), authority.Which{Agent: sam.Agent})
		done <- err
	}()
	waiting(t, w, 1)
	go func() { // takes an index of the second list, voids one in the first
		done <- b.EndScopeByUser(t.Context(), w.Hotel.ID, "guest-7", mine, "account:read")
	}()
	waiting(t, w, 2)
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
