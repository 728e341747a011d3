package authority_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// indexes returns every status index of the Brand with whether it is still valid.
func indexes(t *testing.T, w *authoritytest.World, brand *tenants.Brand) map[int]bool {
	t.Helper()
	rows, err := w.Owner.Query(t.Context(), `SELECT idx, invalid_at IS NULL FROM status_entries WHERE brand_id = $1`, brand.ID)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[int]bool)
	var idx int
	var valid bool
	if _, err := pgx.ForEachRow(rows, []any{&idx, &valid}, func() error { out[idx] = valid; return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func present(t *testing.T, w *authoritytest.World, grant any) int {
	t.Helper()
	return w.Count(t, `SELECT status_idx FROM grants WHERE id = $1`, grant)
}

// trailed is what the Hotel's trail holds of the events of one kind.
func trailed(t *testing.T, w *authoritytest.World, a *authority.Authority, event string) []authority.EventData {
	t.Helper()
	var out []authority.EventData
	err := a.Trail(t.Context(), w.Hotel.ID, authority.Events{Event: event}, 100, func(e authority.Entry) error {
		var data authority.EventData
		err := json.Unmarshal([]byte(e.Detail), &data)
		out = append(out, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Widening keeps a version's index, since its tokens are worth what they say;
// narrowing, an earlier end and ending make it INVALID.
func TestAnIndexLivesAsLongAsItsTokensSayTheTruth(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	first := delegated(t, w, a, "bookings:read", "bookings:change")
	born := present(t, w, first.GrantID)

	widen := authoritytest.Begin(t, a, w.Hotel, alex, "account:read")
	authoritytest.Approve(t, a, w.Hotel, widen, "guest-7", "bookings:read", "bookings:change", "account:read")
	if got := present(t, w, first.GrantID); got != born {
		t.Errorf("widening moved the index from %d to %d", born, got)
	}

	if err := a.EndScopeByUser(t.Context(), w.Hotel.ID, "guest-7", first.GrantID, "bookings:change"); err != nil {
		t.Fatal(err)
	}
	narrowed := present(t, w, first.GrantID)
	if narrowed == born || indexes(t, w, w.Hotel)[born] || !indexes(t, w, w.Hotel)[narrowed] {
		t.Errorf("narrowing: %d, then %d, of %v", born, narrowed, indexes(t, w, w.Hotel))
	}

	sooner := authoritytest.Begin(t, a, w.Hotel, alex, "account:read")
	q, err := a.Ask(t.Context(), w.Hotel.ID, sooner.ID, "guest-7")
	if err != nil {
		t.Fatal(err)
	}
	answer := authoritytest.Answer(w.Hotel, q, "guest-7", "bookings:read", "account:read")
	answer.Days = 7
	if err := a.Approve(t.Context(), w.Hotel, answer); err != nil {
		t.Fatal(err)
	}
	earlier := present(t, w, first.GrantID)
	if earlier == narrowed || indexes(t, w, w.Hotel)[narrowed] {
		t.Errorf("an earlier end kept the index %d", narrowed)
	}

	// The trail says what the end was before.
	const day = 24 * time.Hour
	if e := trailed(t, w, a, "grant.narrowed"); len(e) != 2 || !e[1].WasUntil.Equal(w.Clock.Now().Add(30*day)) || !e[1].Until.Equal(w.Clock.Now().Add(7*day)) {
		t.Errorf("%+v", e)
	}

	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", first.GrantID); err != nil {
		t.Fatal(err)
	}
	if e := trailed(t, w, a, "grant.revoked"); len(e) != 1 || !e[0].WasUntil.Equal(w.Clock.Now().Add(7*day)) {
		t.Errorf("%+v", e)
	}
	for idx, valid := range indexes(t, w, w.Hotel) {
		if valid {
			t.Errorf("index %d outlives its grant", idx)
		}
	}
}

// An index may come again only when no token that names it can live.
func TestAnIndexComesAgainOnlyAfterItsTokens(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", tokens.GrantID); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		wait time.Duration
		left int
	}{{time.Hour + time.Minute, 1}, {time.Hour, 0}} {
		w.Clock.Advance(step.wait)
		if _, err := a.Purge(t.Context(), w.Hotel.ID); err != nil {
			t.Fatal(err)
		}
		if got := len(indexes(t, w, w.Hotel)); got != step.left {
			t.Fatalf("%v later %d indexes are taken, not %d", step.wait, got, step.left)
		}
	}
	if used := w.Count(t, `SELECT used FROM status_lists`); used != 0 {
		t.Errorf("the list counts %d", used)
	}
}

// A full list is left for the next; freed room is used again.
func TestAListIsFilledByHalf(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	w.Exec(t, `INSERT INTO status_lists VALUES ('harbor-hotel', 0, $1, 0)`, authority.StatusListSize/2)
	full := delegated(t, w, a, "bookings:read")
	if list := w.Count(t, `SELECT status_list FROM grants WHERE id = $1`, full.GrantID); list != 1 {
		t.Errorf("allotted in list %d", list)
	}
	w.Exec(t, `UPDATE status_lists SET used = 0 WHERE list = 0`)
	w.Exec(t, `UPDATE status_lists SET used = $1 WHERE list = 1`, authority.StatusListSize/2)
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", full.GrantID); err != nil {
		t.Fatal(err)
	}
	again := delegated(t, w, a, "bookings:read")
	if list := w.Count(t, `SELECT status_list FROM grants WHERE id = $1`, again.GrantID); list != 0 {
		t.Errorf("allotted in list %d, though list 0 has room", list)
	}
}

// Whatever many do at once to one Brand's grants, nobody waits for anybody for
// ever, the trail has no gap, and each fact is told once.
func TestManyChangesAtOnceMakeOneTrail(t *testing.T) {
	w := authoritytest.New(t)
	instances := []*authority.Authority{w.Authority(nil), w.Authority(nil)}
	const people, rounds = 8, 6
	var wg sync.WaitGroup
	failed := make(chan error, people*rounds*8)
	for p := range people {
		subject := "guest-" + string(rune('a'+p%4)) // two work on the same person
		who := authority.Caller{Agent: alex.Agent, Sub: subject}
		wg.Go(func() {
			for i := range rounds {
				a := instances[(p+i)%2]
				s, err := a.Begin(context.Background(), w.Hotel, who, []string{"bookings:read", "account:read"})
				if err != nil {
					failed <- err
					continue
				}
				err = authoritytest.TryApprove(context.Background(), a, w.Hotel, s, subject, "bookings:read", "account:read")
				if err != nil && !errors.Is(err, authority.ErrChanged) {
					failed <- err
				}
				switch i % 3 {
				case 0:
					_, err = a.End(context.Background(), w.Hotel.ID, authority.ByOperator(), authority.Which{Agent: alex.Agent})
				case 1:
					_, err = a.End(context.Background(), w.Hotel.ID, authority.ByOperator(), authority.Which{Subject: subject})
				default:
					err = a.Suspend(context.Background(), w.Hotel.ID, authority.ByOperator(), subject)
					err = errors.Join(err, a.Resume(context.Background(), w.Hotel.ID, authority.ByOperator(), subject))
				}
				if err != nil {
					failed <- err
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		if !errors.Is(err, authority.ErrSuspended) {
			t.Error(err)
		}
	}
	if n := w.Count(t, `SELECT count(*) - max(seq) FROM audit_events WHERE brand_id = 'harbor-hotel'`); n != 0 {
		t.Errorf("the trail has a gap of %d", n)
	}
	created := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.created'`)
	if n := w.Count(t, `SELECT count(*) FROM grants`); n != created {
		t.Errorf("%d grants, %d told", n, created)
	}
	ended := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.revoked'`)
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != ended {
		t.Errorf("%d ended, %d told", n, ended)
	}
}

// Events reach the outbox in the transaction that makes them true: where the
// outbox fails, nothing has happened.
func TestNothingHappensThatCannotBeTold(t *testing.T) {
	w := authoritytest.New(t)
	var heard []string
	full := errors.New("the outbox is full")
	var refuse bool
	a := authority.New(authority.Config{
		DB: w.DB, Signer: w.NewKeys(), Master: w.Master, Now: w.Clock.Now,
		Announce: func(_ context.Context, _ pgx.Tx, brand tenants.BrandID, events []authority.Event) error {
			if refuse {
				return full
			}
			for _, e := range events {
				if e.Brand != brand || e.Seq == 0 {
					t.Errorf("event %+v", e)
				}
				heard = append(heard, e.Type)
			}
			return nil
		},
	})
	tokens := delegated(t, w, a, "bookings:read", "account:read")
	refuse = true
	wantErr(t, a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", tokens.GrantID), full)
	if got := grants(t, w, a, w.Hotel, "guest-7"); len(got) != 1 {
		t.Error("the grant ended, and nobody was told")
	}
	refuse = false
	if err := a.EndScopeByUser(t.Context(), w.Hotel.ID, "guest-7", tokens.GrantID, "account:read"); err != nil {
		t.Fatal(err)
	}
	more := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:change")
	authoritytest.Approve(t, a, w.Hotel, more, "guest-7", "bookings:read", "bookings:change")
	w.Clock.Advance(31 * 24 * time.Hour)
	if n, err := a.Expire(t.Context(), w.Hotel.ID); n != 1 || err != nil {
		t.Fatalf("%d expired, %v", n, err)
	}
	if n, err := a.Expire(t.Context(), w.Hotel.ID); n != 0 || err != nil {
		t.Fatalf("%d expired twice, %v", n, err)
	}
	want := []string{"grant.created", "grant.narrowed", "grant.widened", "grant.expired"}
	if !slices.Equal(heard, want) {
		t.Errorf("told %v, want %v", heard, want)
	}
}

// B28: a person who allows the same agent again right after its grant ended for
// reuse says that it was no theft; the trail shows it.
func TestAllowingAgainAfterReuseIsNoted(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	if _, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(2 * time.Minute)
	_, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil)
	wantErr(t, err, authority.ErrReused)
	delegated(t, w, a, "bookings:read")
	const q = `SELECT count(*) FROM audit_events WHERE event = 'request.approved' AND detail->>'after_reuse' = 'true'`
	if n := w.Count(t, q); n != 1 {
		t.Errorf("%d approvals after a reuse are noted", n)
	}
}
