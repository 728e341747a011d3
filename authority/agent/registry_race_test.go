package agent

import (
	"testing"
	"time"

	"countersign.dev/migrations/pgtest"
)

// P5: a read that began before SetEnabled must not be remembered after it. The
// order is forced: the read is remembered last.
func TestReadDoesNotOvertakeDisabling(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	r := NewRegistry(RegistryConfig{DB: pgtest.New(t).App(t), Now: func() time.Time { return at }})
	a := Agent{Issuer: "https://agent.example", JWKSURI: "https://agent.example/jwks", Name: "Aria", Enabled: true}
	if err := r.Register(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	_, before := r.sighted(a.Issuer)
	read, err := r.Find(t.Context(), a.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetEnabled(t.Context(), a.Issuer, false); err != nil {
		t.Fatal(err)
	}
	r.see(read, before)
	got, err := r.current(t.Context(), a.Issuer)
	if err != nil || got.Enabled {
		t.Errorf("enabled: %v, %v; want disabled", got.Enabled, err)
	}
}
