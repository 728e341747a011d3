package authority_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// allowedBy makes one grant for each of the agent's people, whose Brand users are
// guest-0, guest-1 …
func allowedBy(t *testing.T, w *authoritytest.World, a *authority.Authority, brand *tenants.Brand, agent string, people int) []uuid.UUID {
	t.Helper()
	var out []uuid.UUID
	for i := range people {
		who := authority.Caller{Agent: agent, Sub: fmt.Sprintf("person-%d", i)}
		s := authoritytest.Begin(t, a, brand, who, "bookings:read")
		authoritytest.Approve(t, a, brand, s, fmt.Sprintf("guest-%d", i), "bookings:read")
		var id uuid.UUID
		const q = `SELECT id FROM grants WHERE brand_id = $1 AND agent = $2 AND agent_sub = $3`
		if err := w.Owner.QueryRow(t.Context(), q, brand.ID, agent, who.Sub).Scan(&id); err != nil {
			t.Fatal(err)
		}
		out = append(out, id)
	}
	return out
}

// What a page says would end is what then ends: what lives, at this Brand, of
// those that were named, and nothing where nobody was named.
func TestTheTollIsPaid(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	one := allowedBy(t, w, a, w.Hotel, authoritytest.Agent, 3)
	two := allowedBy(t, w, a, w.Hotel, authoritytest.OtherAgent, 2)
	shop := allowedBy(t, w, a, w.Shop, authoritytest.Agent, 2)
	by := authority.ByMember("m")
	toll := func(which authority.Which, these ...uuid.UUID) authority.Toll {
		t.Helper()
		got, err := a.Toll(t.Context(), w.Hotel.ID, which, these)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, tt := range []struct {
		got, want authority.Toll
	}{
		{toll(authority.Which{}), authority.Toll{}},
		{toll(authority.Which{Agent: authoritytest.Agent}), authority.Toll{Grants: 3, People: 3, Agents: 1}},
		{toll(authority.Which{Subject: "guest-1"}), authority.Toll{Grants: 2, People: 1, Agents: 2}},
		{toll(authority.Which{Subject: "guest-1", Agent: authoritytest.OtherAgent}), authority.Toll{Grants: 1, People: 1, Agents: 1}},
		{toll(authority.Which{Grant: one[0]}), authority.Toll{Grants: 1, People: 1, Agents: 1}},
		{toll(authority.Which{Grant: shop[0]}), authority.Toll{}},
		{toll(authority.Which{}, one[0], two[0], shop[0]), authority.Toll{Grants: 2, People: 1, Agents: 2}},
	} {
		if tt.got != tt.want {
			t.Errorf("%+v, want %+v", tt.got, tt.want)
		}
	}
	end := func(want int, these ...uuid.UUID) {
		t.Helper()
		if n, err := a.EndThese(t.Context(), w.Hotel.ID, by, these); err != nil || n != want {
			t.Errorf("%d ended, want %d (%v)", n, want, err)
		}
	}
	end(0)
	end(0, shop...)                    // another Brand's
	end(2, one[0], two[0], shop[0])    // only this Brand's
	end(1, one[0], one[1], uuid.New()) // what has ended stays ended
	if got := toll(authority.Which{Agent: authoritytest.Agent}); got.Grants != 1 {
		t.Errorf("%+v are left", got)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE brand_id = 'fern-and-fell' AND ended_at IS NULL`); n != 2 {
		t.Errorf("%d are left at the other Brand", n)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.revoked' AND actor = 'admin' AND actor_id = 'm' AND channel = 'console'`); n != 3 {
		t.Errorf("%d facts", n)
	}
	if _, err := a.EndSome(t.Context(), w.Hotel.ID, by, authority.Which{}); !errors.Is(err, authority.ErrUnknown) {
		t.Errorf("ending nobody's: %v", err)
	}
	w.Clock.Advance(91 * 24 * time.Hour)
	if got := toll(authority.Which{Subject: "guest-1"}); got.Grants != 0 {
		t.Errorf("%+v of what ran out", got)
	}
	end(0, one[2])
}

// Two admins tick the same ones at the same moment: each ends once.
func TestTwoAdminsEndTheSame(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	these := allowedBy(t, w, a, w.Hotel, authoritytest.Agent, 6)
	var both sync.WaitGroup
	ended := make([]int, 2)
	for i := range ended {
		both.Go(func() {
			mine := slices.Clone(these)
			if i == 1 {
				slices.Reverse(mine)
			}
			var err error
			if ended[i], err = a.EndThese(t.Context(), w.Hotel.ID, authority.ByMember(fmt.Sprint(i)), mine); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if ended[0]+ended[1] != len(these) {
		t.Errorf("%v ended", ended)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.revoked'`); n != len(these) {
		t.Errorf("%d facts", n)
	}
}

// EndSome stops after some thousands, and goes on where it stopped.
func TestEndSomeEndsAllInTheEnd(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	const many = 5_600
	w.Exec(t, `INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at)
		SELECT 'harbor-hotel', gen_random_uuid(), $1, 'p' || n, 'guest-' || n, '{bookings:read}', $2, $2::timestamptz + interval '9 days'
		  FROM generate_series(1, $3::int) AS n`, authoritytest.Agent, w.Clock.Now(), many)
	which := authority.Which{Agent: authoritytest.Agent}
	for i, want := range []int{5_000, 600, 0} {
		if n, err := a.EndSome(t.Context(), w.Hotel.ID, authority.ByMember("m"), which); err != nil || n != want {
			t.Errorf("time %d: %d ended, want %d (%v)", i+1, n, want, err)
		}
	}
}

// The trail is found by who, what and when, from its newest end, and a page goes
// on where the one before it stopped (R82).
func TestTheTrailIsFound(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	began := w.Clock.Now()
	happen(t, w, w.Hotel.ID, 40, func(i int) string { return plain(i % 4) })
	w.Clock.Advance(3 * time.Hour)
	happen(t, w, w.Hotel.ID, 5, plain)
	w.Clock.Advance(3 * time.Hour)
	happen(t, w, w.Hotel.ID, 5, func(int) string { return "" })
	happen(t, w, w.Shop.ID, 9, plain)
	// One that somebody began before the last ones, and wrote after them.
	w.Exec(t, `INSERT INTO audit_events (brand_id, at, actor, event) VALUES ('harbor-hotel', $1, 'system', 'late')`, began.Add(6*time.Hour-time.Minute))
	seqs := func(which authority.Events, before int64, limit int) []int64 {
		t.Helper()
		got, err := a.Latest(t.Context(), w.Hotel.ID, which, before, limit)
		if err != nil {
			t.Fatal(err)
		}
		var out []int64
		for _, e := range got {
			out = append(out, e.Seq)
		}
		return out
	}
	second, third := began.Add(3*time.Hour), began.Add(6*time.Hour)
	for name, tt := range map[string]struct{ got, want []int64 }{
		"the newest":       {seqs(authority.Events{}, 0, 3), []int64{51, 50, 49}},
		"the next page":    {seqs(authority.Events{}, 49, 2), []int64{48, 47}},
		"who":              {seqs(authority.Events{Actor: "guest-3"}, 0, 3), []int64{44, 40, 36}},
		"who, on":          {seqs(authority.Events{Actor: "guest-3"}, 36, 2), []int64{32, 28}},
		"what":             {seqs(authority.Events{Event: "late"}, 0, 9), []int64{51}},
		"what is not":      {seqs(authority.Events{Event: "lat"}, 0, 9), nil},
		"from":             {seqs(authority.Events{From: third}, 0, 99), []int64{50, 49, 48, 47, 46}},
		"from, with late":  {seqs(authority.Events{From: third.Add(-2 * time.Minute)}, 0, 2), []int64{51, 50}},
		"until":            {seqs(authority.Events{Until: third}, 0, 2), []int64{51, 45}},
		"between":          {seqs(authority.Events{From: second, Until: second.Add(2 * time.Microsecond)}, 0, 9), []int64{42, 41}},
		"who, in between":  {seqs(authority.Events{Actor: "guest-1", From: second, Until: second.Add(time.Hour)}, 0, 9), []int64{42}},
		"before the first": {seqs(authority.Events{Until: began}, 0, 9), nil},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
}
