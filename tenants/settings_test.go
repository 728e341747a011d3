package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// B16: settings that would make clients spin or tokens immortal are refused when
// they are written.
func TestSettingsAreBounded(t *testing.T) {
	w := authoritytest.New(t)
	for name, change := range map[string]func(*tenants.Brand){
		"token life 0":         func(b *tenants.Brand) { b.TokenLifetime = 0 },
		"token life -1":        func(b *tenants.Brand) { b.TokenLifetime = -time.Second },
		"token life two hours": func(b *tenants.Brand) { b.TokenLifetime = 2 * time.Hour },
		"grace three minutes":  func(b *tenants.Brand) { b.Grace = 3 * time.Minute },
		"rotation never":       func(b *tenants.Brand) { b.RotationDays = 0 },
		"no choice of days":    func(b *tenants.Brand) { b.GrantDays = nil },
		"a negative choice":    func(b *tenants.Brand) { b.GrantDays = []int{30, -7} },
		"a choice of ages":     func(b *tenants.Brand) { b.GrantDays = []int{30, 2000000000} },
		"plain http": func(b *tenants.Brand) {
			b.InterfaceURL = "http://brand.example/a2a"
			b.Issuer = b.InterfaceURL + "/oauth"
		},
		"default not a choice": func(b *tenants.Brand) { b.GrantDefault = 31 },
		"issuer elsewhere":     func(b *tenants.Brand) { b.Issuer = "https://evil.example/oauth" },
		"interface with query": func(b *tenants.Brand) { b.InterfaceURL += "?x=1"; b.Issuer = b.InterfaceURL + "/oauth" },
		"interface with slash": func(b *tenants.Brand) { b.InterfaceURL += "/"; b.Issuer = b.InterfaceURL + "/oauth" },
		"scopes but for case": func(b *tenants.Brand) { // B84
			b.Scopes = append(append([]tenants.Scope(nil), b.Scopes...), tenants.Scope{ID: "Bookings:Read", Description: "x", Effect: "sees", Impact: "low"})
		},
		"scope with a space": func(b *tenants.Brand) {
			b.Scopes = []tenants.Scope{{ID: "a b", Description: "x", Effect: "sees", Impact: "low"}}
		},
		"scope without words":  func(b *tenants.Brand) { b.Scopes = []tenants.Scope{{ID: "a", Effect: "sees", Impact: "low"}} },
		"colour with a script": func(b *tenants.Brand) { b.Colour = "red;}" },
		"another's interface": func(b *tenants.Brand) {
			b.InterfaceURL, b.Issuer = w.Shop.InterfaceURL, w.Shop.Issuer
		},
	} {
		edited := *w.Hotel
		change(&edited)
		if err := tenants.SaveBrand(t.Context(), w.DB, edited, w.Clock.Now()); err == nil {
			t.Errorf("%s was saved", name)
		}
	}
	if err := tenants.SaveProvider(t.Context(), w.DB, tenants.Provider{ID: "demo", Name: "Demo", Audience: "https://new.example"}, w.Clock.Now()); err == nil {
		t.Error("a Provider's audience was changed")
	}
	if err := tenants.SaveProvider(t.Context(), w.DB, tenants.Provider{ID: "other", Name: "Other", Audience: "https://provider.example"}, w.Clock.Now()); err == nil {
		t.Error("two Providers share an audience")
	}
}

// Decision 2: a Brand whose mode changes goes to the Provider that is named, and
// with it to another audience.
func TestBrandMovesToItsNewProvider(t *testing.T) {
	w := authoritytest.New(t)
	own := tenants.Provider{ID: "own", Name: "Own", Audience: "https://own.example"}
	if err := tenants.SaveProvider(t.Context(), w.DB, own, w.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	b := w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Mode, b.Provider = tenants.Fronted, "own" })
	if b.Audience != own.Audience {
		t.Fatalf("audience %s", b.Audience)
	}
}

// Scopes keep the order they are given, through changes and comebacks.
func TestScopesKeepTheirOrder(t *testing.T) {
	w := authoritytest.New(t)
	all := w.Hotel.Scopes
	order := func(b *tenants.Brand) string {
		var ids string
		for _, s := range b.Scopes {
			ids += s.ID + " "
		}
		return ids
	}
	for _, pick := range [][]int{{3, 2, 1, 0}, {1}, {0, 3}, {2, 0}, {0, 1, 2, 3}, {3, 0, 2, 1}} {
		var scopes []tenants.Scope
		for _, i := range pick {
			scopes = append(scopes, all[i])
		}
		got := w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Scopes = scopes })
		if want := (&tenants.Brand{Scopes: scopes}); order(got) != order(want) {
			t.Fatalf("got %s, want %s", order(got), order(want))
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM brand_scopes WHERE brand_id = $1`, w.Hotel.ID); n != 4 {
		t.Errorf("%d rows: scopes are retired, never deleted", n)
	}
}

// Decision 4: the IdP's secret is not in the database, opens only for its Brand,
// and a new connection takes the place of the old one.
func TestLoginSecretIsSealed(t *testing.T) {
	w := authoritytest.New(t)
	ctx := t.Context()
	if _, err := tenants.Login(ctx, w.DB, w.Master, w.Hotel.ID); !errors.Is(err, tenants.ErrNoLogin) {
		t.Fatal(err)
	}
	for i := range 2 {
		c := tenants.LoginConnection{
			ID: uuid.New(), Issuer: fmt.Sprintf("https://idp%d.example", i), ClientID: "c",
			ClientSecret: "hush-hush", SubjectClaim: "sub", Scopes: []string{"openid"},
		}
		if err := tenants.SaveLogin(ctx, w.DB, w.Master, w.Hotel.ID, c, w.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		got, err := tenants.Login(ctx, w.DB, w.Master, w.Hotel.ID)
		if err != nil || got.ClientSecret != "hush-hush" || got.Issuer != c.Issuer {
			t.Fatalf("%+v, %v", got.Issuer, err)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM login_connections WHERE position('hush' in encode(client_secret_sealed, 'escape')) > 0`); n != 0 {
		t.Error("the secret stands in clear")
	}
	// Moved to another Brand's row, it does not open.
	w.Exec(t, `INSERT INTO login_connections SELECT 'fern-and-fell', id, issuer, client_id, client_secret_sealed, subject_claim, scopes, live, created_at FROM login_connections WHERE live`)
	if _, err := tenants.Login(ctx, w.DB, w.Master, w.Shop.ID); err == nil {
		t.Error("one Brand's secret opened as another's")
	}
	if _, err := tenants.Login(ctx, w.DB, w.Master, "nobody"); !errors.Is(err, tenants.ErrNoLogin) {
		t.Error(err)
	}
}

// awayable is a sealer that can be away.
type awayable struct {
	tenants.Sealer
	away bool
}

func (a *awayable) Open(ctx context.Context, b tenants.BrandID, purpose string, sealed []byte) ([]byte, error) {
	if a.away {
		return nil, errors.New("sealed")
	}
	return a.Sealer.Open(ctx, b, purpose, sealed)
}

// R83 (in part): people can log in while the keeper of the secrets is away, for a
// while; a connection that was taken away is taken away at once.
func TestLoginsOutliveAnOutage(t *testing.T) {
	w := authoritytest.New(t)
	sealer := &awayable{Sealer: w.Master}
	c := tenants.LoginConnection{ID: uuid.New(), Issuer: "https://idp.example", ClientID: "c", ClientSecret: "s", SubjectClaim: "sub", Scopes: []string{"openid"}}
	if err := tenants.SaveLogin(t.Context(), w.DB, sealer, w.Hotel.ID, c, w.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	logins := tenants.NewLogins(w.DB, sealer, w.Clock.Now)
	if _, err := logins.Login(t.Context(), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	sealer.away = true
	w.Clock.Advance(9 * time.Minute)
	if got, err := logins.Login(t.Context(), w.Hotel.ID); err != nil || got.ClientSecret != "s" {
		t.Fatalf("in an outage: %v", err)
	}
	w.Clock.Advance(time.Hour)
	if _, err := logins.Login(t.Context(), w.Hotel.ID); err == nil {
		t.Fatal("for ever")
	}
	sealer.away = false
	w.Exec(t, `UPDATE login_connections SET live = false`)
	if _, err := logins.Login(t.Context(), w.Hotel.ID); !errors.Is(err, tenants.ErrNoLogin) {
		t.Fatal(err)
	}
}

// Paused can be undone, closed cannot.
func TestClosedIsFinal(t *testing.T) {
	w := authoritytest.New(t)
	for _, s := range []tenants.State{tenants.Paused, tenants.Active, tenants.Closed} {
		if err := tenants.SetState(t.Context(), w.DB, w.Hotel.ID, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := tenants.SetState(t.Context(), w.DB, w.Hotel.ID, tenants.Active); !errors.Is(err, tenants.ErrClosed) {
		t.Fatal(err)
	}
	if err := tenants.SaveBrand(t.Context(), w.DB, *w.Hotel, w.Clock.Now()); err == nil {
		t.Fatal("saving its settings opened it again")
	}
	ids, err := w.Brands.IDs(t.Context())
	if err != nil || len(ids) != 2 { // upkeep is owed to closed Brands too
		t.Errorf("%v, %v", ids, err)
	}
}

// R63: an id is exactly itself or nobody.
func TestBrandIDsAreCanonical(t *testing.T) {
	w := authoritytest.New(t)
	for _, id := range []tenants.BrandID{"", "Harbor-Hotel", "harbor-hotel ", "harbor-hotel.", "harbor-hotel/", "harbor%2dhotel", "-", "härbor", tenants.BrandID(make([]byte, 100))} {
		if _, err := w.Brands.Brand(t.Context(), id); !errors.Is(err, tenants.ErrNoBrand) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// A Memo shares loads, serves old answers through an outage and no longer, and
// never remembers that something failed.
func TestMemo(t *testing.T) {
	clock := &authoritytest.Clock{}
	clock.Advance(time.Hour)
	var loads atomic.Int32
	var fail atomic.Bool
	missing := errors.New("missing")
	gate := make(chan struct{})
	m := tenants.Memo[string, int]{
		Fresh: time.Second, Stale: time.Minute, Now: clock.Now,
		Missing: func(err error) bool { return errors.Is(err, missing) },
		Load: func(_ context.Context, key string) (int, error) {
			n := int(loads.Add(1))
			if key == "slow" {
				<-gate
			}
			if key == "none" {
				return 0, missing
			}
			if fail.Load() {
				return 0, errors.New("down")
			}
			return n, nil
		},
	}
	get := func(key string) (int, error) { return m.Get(t.Context(), key) }
	first, err := get("a")
	if again, _ := get("a"); err != nil || again != first {
		t.Fatal("not remembered")
	}
	clock.Advance(time.Second)
	if next, _ := get("a"); next == first {
		t.Fatal("remembered for too long")
	}
	fail.Store(true)
	clock.Advance(30 * time.Second)
	if _, err := get("a"); err != nil {
		t.Fatalf("an outage is felt at once: %v", err)
	}
	clock.Advance(time.Minute)
	if _, err := get("a"); err == nil {
		t.Fatal("an old answer outlives the outage's bound")
	}
	fail.Store(false)
	if _, err := get("a"); err != nil {
		t.Fatal("the failure was remembered")
	}
	if _, err := get("none"); !errors.Is(err, missing) {
		t.Fatal(err)
	}
	// In an outage an old value is served without asking at every call, and
	// made-up keys leave nothing behind that would crowd it out.
	fail.Store(true)
	clock.Advance(2 * time.Second)
	tried := loads.Load()
	for range 5 {
		if _, err := get("a"); err != nil {
			t.Fatal(err)
		}
	}
	if n := loads.Load() - tried; n != 1 {
		t.Errorf("%d loads in one outage's second", n)
	}
	for i := range 10_001 {
		_, _ = get(fmt.Sprint("made-up", i))
	}
	if _, err := get("a"); err != nil {
		t.Error("made-up keys crowded out a real one")
	}
	fail.Store(false)
	before := loads.Load()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := get("slow"); err != nil {
				t.Error(err)
			}
		})
	}
	// Somebody who goes away does not take the load with him.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for loads.Load() == before {
		time.Sleep(time.Millisecond) // until the load has begun
	}
	if _, err := m.Get(gone, "slow"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left got %v", err)
	}
	close(gate)
	wg.Wait()
	if n := loads.Load() - before; n != 1 {
		t.Errorf("%d loads for ten callers", n)
	}
}

// An answer is as old as the question: a slow load may have read what was changed
// while it was under way.
func TestMemoCountsFromTheQuestion(t *testing.T) {
	clock := &authoritytest.Clock{}
	clock.Advance(time.Hour)
	loads := 0
	m := tenants.Memo[string, int]{Fresh: time.Second, Now: clock.Now, Load: func(context.Context, string) (int, error) {
		loads++
		clock.Advance(600 * time.Millisecond)
		return loads, nil
	}}
	for i, want := range []int{1, 1, 2} {
		if v, err := m.Get(t.Context(), "a"); err != nil || v != want {
			t.Errorf("question %d: %d, %v", i, v, err)
		}
		clock.Advance(200 * time.Millisecond)
	}
}

// A load that panics leaves nobody waiting for it.
func TestMemoSurvivesAPanic(t *testing.T) {
	calls := 0
	m := tenants.Memo[string, int]{Now: time.Now, Load: func(context.Context, string) (int, error) {
		if calls++; calls == 1 {
			panic("x")
		}
		return 7, nil
	}}
	func() {
		defer func() { _ = recover() }()
		_, _ = m.Get(t.Context(), "a")
	}()
	if v, err := m.Get(t.Context(), "a"); err != nil || v != 7 {
		t.Fatal(v, err)
	}
}
