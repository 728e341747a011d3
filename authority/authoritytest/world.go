// Package authoritytest sets up a world for tests of the rules and of their
// doors: a database of its own, two Brands, an agent, keys, and a clock that
// only the test turns.
package authoritytest

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/migrations/pgtest"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Clock is a clock that stands still until it is moved.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// World is a database with two Brands and whoever works on it.
type World struct {
	Clock  *Clock
	DB     *tenants.DB
	Owner  *pgxpool.Pool // sees through the fence
	Master *signing.Master
	Keys   *signing.Keys
	Brands *tenants.Directory
	Hotel  *tenants.Brand
	Shop   *tenants.Brand
	app    *pgxpool.Pool
}

// The agent that World knows, and one that it does not.
const (
	Agent      = "https://agent.example"
	OtherAgent = "https://other.example"
)

// PublicURL is where World's pages live.
const PublicURL = "https://countersign.example"

// Alex is the agent's User.
var Alex = authority.Caller{Agent: Agent, Sub: "alex-phone"}

// New sets up a World at noon of a fixed day.
func New(t testing.TB) *World {
	t.Helper()
	return NewAt(t, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
}

// NewAt sets up a World at the given time, for tests that meet servers with
// clocks of their own.
func NewAt(t testing.TB, now time.Time) *World {
	t.Helper()
	db := pgtest.New(t)
	w := &World{
		Clock:  &Clock{now: now.UTC().Truncate(time.Microsecond)},
		Owner:  db.Owner(t),
		app:    db.App(t),
		Master: signing.NewMaster(),
	}
	w.DB = tenants.NewDB(w.app)
	w.Keys = w.NewKeys()
	w.Brands = tenants.NewDirectory(w.DB, w.Clock.Now)
	w.Hotel = w.brand(t, "harbor-hotel", "Harbor Hotel", []tenants.Scope{
		{ID: "bookings:read", Description: "See your bookings", Effect: "sees", Impact: "low"},
		{ID: "bookings:change", Description: "Change or cancel a booking", Effect: "changes", Impact: "medium"},
		{ID: "extras:order", Description: "Order extras to your room", Effect: "pays", Impact: "high"},
		{ID: "account:read", Description: "See your name and contact details", Effect: "sees", Impact: "low"},
	})
	w.Shop = w.brand(t, "fern-and-fell", "Fern & Fell", []tenants.Scope{
		{ID: "orders:read", Description: "See your orders", Effect: "sees", Impact: "low"},
		{ID: "bookings:read", Description: "See your fitting appointments", Effect: "sees", Impact: "low"},
	})
	for _, issuer := range []string{Agent, OtherAgent} {
		w.Exec(t, `INSERT INTO agents (issuer, jwks_uri, name, enabled, created_at, updated_at)
			VALUES ($1, $1 || '/jwks.json', 'Aria', true, $2, $2)`, issuer, w.Clock.Now())
	}
	return w
}

func (w *World) brand(t testing.TB, id tenants.BrandID, name string, scopes []tenants.Scope) *tenants.Brand {
	t.Helper()
	ctx := t.Context()
	err := tenants.SaveProvider(ctx, w.DB, tenants.Provider{ID: "demo", Name: "Demo", Audience: "https://provider.example", Shared: true}, w.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := tenants.Brand{
		ID: id, Provider: "demo", Name: name, Description: "Support of " + name + ".", Mode: tenants.Hosted,
		State: tenants.Active, Delegation: true, InterfaceURL: PublicURL + "/a2a/" + string(id),
		Issuer: PublicURL + "/a2a/" + string(id) + "/oauth", IdentityScheme: "paJwt", Colour: "#1f3a5f",
		TokenLifetime: 15 * time.Minute, Grace: 30 * time.Second, GrantDays: []int{7, 30, 90}, GrantDefault: 30,
		SigningAlg: "ES256", RotationDays: 90, Scopes: scopes, Proven: true,
	}
	if err := tenants.SaveBrand(ctx, w.DB, b, w.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	if err := w.Keys.Ensure(ctx, id, "local", signing.ES256); err != nil {
		t.Fatal(err)
	}
	return w.Reload(t, id)
}

// StayCharge is a type of authorization_details for the Hotel.
func StayCharge() tenants.DetailType {
	return tenants.DetailType{
		Type: "stay_charge", Scope: "extras:order",
		Schema: json.RawMessage(`{"type": "object", "additionalProperties": false, "required": ["amount", "currency"],
			"properties": {"amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 10000},
			               "currency": {"type": "string", "pattern": "^[A-Z]{3}$"}, "shop": {"type": "string"}}}`),
		Words: "Up to {amount} {currency}[ at {shop}]",
		Texts: map[string]string{"zh-Hant": "最多 {amount} {currency}[（{shop}）]"},
	}
}

// Detailed gives the Hotel the types, and returns it as it then is.
func (w *World) Detailed(t testing.TB, types ...tenants.DetailType) *tenants.Brand {
	t.Helper()
	for _, one := range types {
		err := tenants.SaveDetailType(t.Context(), w.Authority(nil).Editor(authority.ByOperator()), w.Hotel.ID, one)
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Hotel = w.Reload(t, w.Hotel.ID)
	return w.Hotel
}

// NewKeys returns a Keys with caches of its own, as another instance has.
func (w *World) NewKeys() *signing.Keys {
	return signing.NewKeys(signing.Config{
		DB: w.DB, Backends: []signing.Backend{local.New(w.DB, w.Master, w.Clock.Now)},
		Log: slog.New(slog.DiscardHandler), Now: w.Clock.Now,
	})
}

// Authority returns the rules as one more instance over the same database. A
// nil signer is the World's keyring.
func (w *World) Authority(signer authority.Signer) *authority.Authority {
	if signer == nil {
		signer = w.NewKeys()
	}
	return authority.New(authority.Config{DB: w.DB, Signer: signer, Verifier: w.Keys, Master: w.Master, Now: w.Clock.Now})
}

// Reload reads the Brand as it stands in the database.
func (w *World) Reload(t testing.TB, id tenants.BrandID) *tenants.Brand {
	t.Helper()
	w.Brands.Forget(id)
	b, err := w.Brands.Brand(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Save changes a Brand's settings and returns it as it then stands.
func (w *World) Save(t testing.TB, b *tenants.Brand, change func(*tenants.Brand)) *tenants.Brand {
	t.Helper()
	edited := *b
	change(&edited)
	if err := tenants.SaveBrand(t.Context(), w.DB, edited, w.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	return w.Reload(t, b.ID)
}

// Exec runs SQL behind the fence's back.
func (w *World) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := w.Owner.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Count answers a SELECT of one number behind the fence's back.
func (w *World) Count(t testing.TB, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := w.Owner.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Begin starts a request that must succeed.
func Begin(t testing.TB, a *authority.Authority, b *tenants.Brand, who authority.Caller, scopes ...string) authority.Started {
	t.Helper()
	s, err := a.Begin(t.Context(), b, who, scopes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Approve decides a request as the Brand user would on the page.
func Approve(t testing.TB, a *authority.Authority, b *tenants.Brand, s authority.Started, subject string, ticked ...string) {
	t.Helper()
	if err := TryApprove(t.Context(), a, b, s, subject, ticked...); err != nil {
		t.Fatal(err)
	}
}

// TryApprove is Approve that may fail.
func TryApprove(ctx context.Context, a *authority.Authority, b *tenants.Brand, s authority.Started, subject string, ticked ...string) error {
	q, err := a.Ask(ctx, b.ID, s.ID, subject)
	if err != nil {
		return err
	}
	return a.Approve(ctx, b, Answer(b, q, subject, ticked...))
}

// Answer is what the page would send for the question, read in English.
func Answer(b *tenants.Brand, q *authority.Question, subject string, ticked ...string) authority.Decision {
	d := authority.Decision{
		Request: q.ID, Subject: subject, Ticked: ticked, SeenVersion: q.GrantVersion, Days: b.GrantDefault,
		Seen: authority.Seen{Language: "en", Agent: q.Agent, AgentName: q.AgentName, Days: b.GrantDays},
	}
	for _, s := range b.Scopes {
		held := slices.Contains(q.Held, s.ID)
		if held || slices.Contains(q.Requested, s.ID) {
			seen := authority.SeenAs(s, "en")
			seen.Held = held
			d.Seen.Scopes = append(d.Seen.Scopes, seen)
		}
	}
	return d
}
