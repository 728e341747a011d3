package agent_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/migrations/pgtest"
)

const week = 7 * 24 * time.Hour

func (w *world) there(t *testing.T, issuer string) bool {
	t.Helper()
	_, err := w.registry.Find(t.Context(), issuer)
	if err != nil && !errors.Is(err, agent.ErrNotRegistered) {
		t.Fatal(err)
	}
	return err == nil
}

func (w *world) forgets(t *testing.T, want int) {
	t.Helper()
	if n, err := w.registry.ForgetAway(t.Context()); n != want || err != nil {
		t.Errorf("%d forgotten, %v, want %d", n, err, want)
	}
}

// Who stays away for a week is forgotten, and found anew when it comes again; who
// comes, to whatever door, and whom somebody registered, stays.
func TestStrangersThatStayAwayAreForgotten(t *testing.T) {
	w := newWorld(t)
	known, away, regular, visitor := w.pa(t), w.stranger(t), w.stranger(t), w.stranger(t)
	for _, pa := range []*agenttest.PA{away, regular, visitor} {
		w.meets(t, pa.Token(t, agenttest.Claims{}))
	}
	w.forgets(t, 0)
	w.clock.Advance(week)
	w.forgets(t, 0)
	w.meets(t, regular.Token(t, agenttest.Claims{}))
	w.accepts(t, visitor.Token(t, agenttest.Claims{}))
	w.clock.Advance(time.Minute)
	w.forgets(t, 1)
	if w.there(t, away.Issuer) || !w.there(t, regular.Issuer) || !w.there(t, visitor.Issuer) || !w.there(t, known.Issuer) {
		t.Error("the wrong ones are forgotten")
	}
	w.refuses(t, away.Token(t, agenttest.Claims{}), agent.ErrIssuer)
	w.meets(t, away.Token(t, agenttest.Claims{}))
	if !w.there(t, away.Issuer) || away.Looks() != 2 {
		t.Errorf("it is not found anew: %d looks", away.Looks())
	}
}

// Who comes while it is being forgotten stays.
func TestWhoComesInTheLastMomentStays(t *testing.T) {
	w := newWorld(t)
	pa := w.stranger(t)
	w.meets(t, pa.Token(t, agenttest.Claims{}))
	w.clock.Advance(week + time.Minute)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `UPDATE agents SET came_at = $1 WHERE issuer = $2`, w.clock.Now(), pa.Issuer); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.forgets(t, 0)
	}()
	for waits := false; !waits; {
		const q = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`
		if err := w.pool.QueryRow(t.Context(), q).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	if !w.there(t, pa.Issuer) {
		t.Error("it is forgotten")
	}
}

// Within an hour nothing is written: a poll every five seconds costs no row each.
func TestAVisitIsTakenDownOnceAnHour(t *testing.T) {
	w := newWorld(t)
	pa := w.stranger(t)
	came := func() time.Time {
		a, err := w.registry.Find(t.Context(), pa.Issuer)
		if err != nil {
			t.Fatal(err)
		}
		return a.CameAt
	}
	w.meets(t, pa.Token(t, agenttest.Claims{}))
	first := came()
	w.clock.Advance(59 * time.Minute)
	w.meets(t, pa.Token(t, agenttest.Claims{}))
	if !came().Equal(first) {
		t.Error("it is taken down again")
	}
	w.clock.Advance(time.Minute)
	w.meets(t, pa.Token(t, agenttest.Claims{}))
	if got := came(); !got.Equal(w.clock.Now()) {
		t.Errorf("taken down at %s", got)
	}
}

// The operator's and a Brand's word outlive an absence: else whoever was shut out
// would only have to wait.
func TestWhoWasShutOutIsNotForgotten(t *testing.T) {
	db := pgtest.New(t)
	w := newWorldIn(t, db)
	banned, denied, other := w.stranger(t), w.stranger(t), w.stranger(t)
	for _, pa := range []*agenttest.PA{banned, denied, other} {
		w.meets(t, pa.Token(t, agenttest.Claims{}))
	}
	if err := w.registry.SetEnabled(t.Context(), banned.Issuer, false); err != nil {
		t.Fatal(err)
	}
	owner := db.Owner(t)
	for _, q := range []string{
		`INSERT INTO providers (id, name, audience, created_at) VALUES ('p', 'P', 'urn:p', now())`,
		`INSERT INTO brands (id, provider_id, name, organisation, mode, state, delegation, interface_url, issuer, created_at)
		 VALUES ('lake', 'p', 'Lake', 'Lake', 'hosted', 'active', true, 'https://c.example/a2a/lake', 'https://c.example/a2a/lake/oauth', now())`,
		`ALTER TABLE brand_agents NO FORCE ROW LEVEL SECURITY`,
		`INSERT INTO brand_agents VALUES ('lake', '` + denied.Issuer + `', false, now())`,
		`ALTER TABLE brand_agents FORCE ROW LEVEL SECURITY`,
	} {
		if _, err := owner.Exec(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	w.clock.Advance(week + time.Minute)
	w.forgets(t, 1)
	if !w.there(t, banned.Issuer) || !w.there(t, denied.Issuer) || w.there(t, other.Issuer) {
		t.Error("a word is forgotten")
	}
	w.forgets(t, 0)
	w.shuns(t, banned.Token(t, agenttest.Claims{}), agent.ErrDisabled)
	// Nor does the schema let the program remove whom the operator knows.
	known := w.pa(t)
	if _, err := w.pool.Exec(t.Context(), `DELETE FROM agents WHERE issuer = $1`, known.Issuer); err == nil || !w.there(t, known.Issuer) {
		t.Error("a registered agent can be removed")
	}
}

// One site, of which somebody may have any number of hosts, uses up its own room only,
// and has it back when its agents stay away.
func TestOneSiteCannotUseUpTheRoomForStrangers(t *testing.T) {
	w := newWorld(t)
	late, elsewhere := w.stranger(t), w.stranger(t)
	u, err := url.Parse(late.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	const crowd = `
		INSERT INTO agents (issuer, jwks_uri, name, enabled, discovered, created_at, updated_at, came_at, site)
		SELECT 'https://a' || n || '.evil.example', 'https://evil.example/jwks', 'a' || n, true, true, $1, $1, $1, $2
		  FROM generate_series(1, 100) n`
	if _, err := w.pool.Exec(t.Context(), crowd, w.clock.Now(), u.Host); err != nil {
		t.Fatal(err)
	}
	w.shuns(t, late.Token(t, agenttest.Claims{}), agent.ErrIssuer)
	w.meets(t, elsewhere.Token(t, agenttest.Claims{}))
	w.clock.Advance(week + time.Minute)
	w.meets(t, elsewhere.Token(t, agenttest.Claims{}))
	w.forgets(t, 100)
	w.meets(t, late.Token(t, agenttest.Claims{}))
}
