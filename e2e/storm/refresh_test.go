package storm

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// instance is the rules over a database of its own way.
func instance(w *authoritytest.World, db *tenants.DB) *authority.Authority {
	return authority.New(authority.Config{DB: db, Signer: w.NewKeys(), Master: w.Master, Now: w.Clock.Now})
}

// delegated is a first refresh token of the person at the Brand.
func delegated(t *testing.T, a *authority.Authority, brand *tenants.Brand, who authority.Caller) string {
	t.Helper()
	s := authoritytest.Begin(t, a, brand, who, "bookings:read")
	authoritytest.Approve(t, a, brand, s, "guest-of-"+who.Sub, "bookings:read")
	tokens, err := a.Poll(t.Context(), brand, who, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	return tokens.Refresh
}

// R44, B24, B25: twenty at once come with one refresh token to the doors of two
// instances whose database is 50 ms away, a thousand times. Nobody meets an error
// of ours; all who are paid hold the same successor, and where the Brand wants no
// window only one is paid; exactly one refresh token of the family lives on.
func TestTwentyAtOnceAThousandTimes(t *testing.T) {
	const (
		rounds, callers = 1000, 20
		people          = 8  // whose rounds run side by side: what a door lets in of a Brand is for all their calls
		connections     = 64 // of each instance: the server of the tests has 200
		away            = 50 * time.Millisecond
	)
	w := authoritytest.New(t)
	shop := w.Save(t, w.Shop, func(b *tenants.Brand) { b.Grace = 0 })
	dsn := w.DB.Pool().Config().ConnString()
	pa := newAgent(t, w)
	doors := make([]string, 2)
	for i := range doors {
		doors[i] = door(t, w, newLine(t, dsn, slow(away)).database(t, connections), connections*3/4)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: people * callers}}
	defer client.CloseIdleConnections()
	began := time.Now()
	var all sync.WaitGroup
	for i := range people {
		sub := fmt.Sprint("person-", i)
		c := &caller{client: client, brand: []*tenants.Brand{w.Hotel, shop}[i%2], agent: pa.Issuer, proof: pa.Token(t, agenttest.Claims{Sub: sub})}
		token := delegated(t, w.Authority(nil), c.brand, authority.Caller{Agent: pa.Issuer, Sub: sub})
		all.Go(func() {
			for range rounds / people {
				if token = rush(t, doors, c, token, callers); token == "" {
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d rounds of %d took %v", rounds, callers, time.Since(began).Round(time.Millisecond))
	const families = `SELECT count(*) FROM (SELECT FROM refresh_tokens GROUP BY family_id HAVING count(*) FILTER (WHERE used_at IS NULL) = 1) AS f`
	if n := w.Count(t, families); n != people {
		t.Errorf("%d of %d families have exactly one living token", n, people)
	}
	if n := w.Count(t, `SELECT count(*) FROM refresh_tokens`); n != rounds+people {
		t.Errorf("%d refresh tokens were made in %d rounds for %d people", n, rounds, people)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != 0 {
		t.Errorf("%d grants ended of a race", n)
	}
}

// rush lets many come with the token at once, and returns its one successor.
func rush(t *testing.T, doors []string, c *caller, token string, callers int) string {
	var mu sync.Mutex
	successors := make(map[string]int)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			<-start
			next, ok := c.refresh(t, doors[i%len(doors)], token)
			mu.Lock()
			defer mu.Unlock()
			if ok && next != "" {
				successors[next]++
			}
		})
	}
	close(start)
	all.Wait()
	if len(successors) != 1 {
		t.Errorf("%d different successors", len(successors))
		return ""
	}
	for next, paid := range successors {
		if want := map[bool]int{true: 1, false: callers}[c.brand.Grace == 0]; paid != want {
			t.Errorf("%d were paid, not %d", paid, want)
		}
		token = next
	}
	return token
}

// R47, B28: the database ends the connection before, inside or after each
// statement of a refresh. Whatever the agent has in hand then – the old token,
// as it heard of no new one – it can go on with.
func TestNoCutTakesBothTokens(t *testing.T) {
	w := authoritytest.New(t)
	dsn := w.DB.Pool().Config().ConnString()
	const most = 40
	cuts := 0
	for _, when := range []moment{beforeItIsSent, beforeItIsAnswered} {
		for n := 1; ; n++ {
			if n > most {
				t.Fatal("a refresh of more than 40 statements")
			}
			if !cutAt(t, w, dsn, n, when) {
				break // it went through in fewer
			}
			cuts++
		}
	}
	const least = 4 // the look and the rotation, twice
	if cuts < least {
		t.Errorf("only %d cuts: the line does not see the statements", cuts)
	}
	t.Logf("%d cuts", cuts)
}

// cutAt refreshes over a line that is cut at the n-th statement, and reports
// whether it was.
func cutAt(t *testing.T, w *authoritytest.World, dsn string, n int, when moment) bool {
	t.Helper()
	plain := w.Authority(nil)
	who := authority.Caller{Agent: authoritytest.Agent, Sub: fmt.Sprintf("person-%d-%d", when, n)}
	old := delegated(t, plain, w.Hotel, who)
	s := &saboteur{t: t, w: w, when: when, at: int64(n)}
	far := instance(w, newLine(t, dsn, s.carry).database(t, 1))
	tokens, err := far.Refresh(t.Context(), w.Hotel, who, old, nil)
	cut := s.enough()
	if err != nil && !tenants.Unavailable(err) && !errors.Is(err, authority.ErrUnavailable) {
		t.Errorf("cut at %d: %v, which is no 503", n, err)
	}
	w.Clock.Advance(10 * time.Second) // inside the window
	again, err := far.Refresh(t.Context(), w.Hotel, who, old, nil)
	if err != nil {
		t.Fatalf("cut at %d: with the old token: %v", n, err)
	}
	if tokens.Refresh != "" && tokens.Refresh != again.Refresh {
		t.Errorf("cut at %d: two successors", n)
	}
	if _, err := plain.Refresh(t.Context(), w.Hotel, who, again.Refresh, nil); err != nil {
		t.Errorf("cut at %d: with the new token: %v", n, err)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != 0 {
		t.Error("the cut ended the grant")
	}
	return cut
}

// R47: the same while the rotation waits inside the database.
func TestACutInsideTheRotationSpendsNothing(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	old := delegated(t, a, w.Hotel, authoritytest.Alex)
	held, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), `SELECT FROM grants FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() {
		_, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, old, nil)
		refused <- err
	}()
	const kill = `
		SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		 WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%UPDATE grants%'`
	for deadline := time.Now().Add(10 * time.Second); w.Count(t, kill) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the rotation does not wait for the grant")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := <-refused; !tenants.Unavailable(err) {
		t.Errorf("cut: %v, which is no 503", err)
	}
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(t, `SELECT count(*) FROM refresh_tokens WHERE used_at IS NOT NULL`); n != 0 {
		t.Error("the token was spent, and nobody was paid")
	}
	if _, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, old, nil); err != nil {
		t.Error(err)
	}
}
