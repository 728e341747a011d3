package authority_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// heldAt is one agent with a paid-out grant, a waiting request and an approved one.
type heldAt struct {
	paid              authority.Tokens
	waiting, approved authority.Started
}

func rawPayload(t *testing.T, jws string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(jws, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func holdAt(t *testing.T, w *authoritytest.World, a *authority.Authority) heldAt {
	t.Helper()
	first := authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, first, "guest-1", "bookings:read")
	paid, err := a.Poll(t.Context(), w.Hotel, authoritytest.Alex, first.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	h := heldAt{paid: paid, waiting: authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:read")}
	h.approved = authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, h.approved, "guest-1", "bookings:read")
	return h
}

// refusedAt tries every door that the agent has at the Hotel.
func refusedAt(t *testing.T, w *authoritytest.World, a *authority.Authority, h heldAt) {
	t.Helper()
	ctx := t.Context()
	try := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	_, err := a.Begin(ctx, w.Hotel, authoritytest.Alex, []string{"bookings:read"})
	try("begin", err, authority.ErrAgentDisabled)
	_, err = a.Poll(ctx, w.Hotel, authoritytest.Alex, h.waiting.DeviceCode)
	try("poll a waiting code", err, authority.ErrAgentDisabled)
	_, err = a.Poll(ctx, w.Hotel, authoritytest.Alex, h.approved.DeviceCode)
	try("poll an approved code", err, authority.ErrAgentDisabled)
	_, err = a.Poll(ctx, w.Hotel, authoritytest.Alex, "dc_unknown")
	try("poll nonsense", err, authority.ErrAgentDisabled)
	_, err = a.Refresh(ctx, w.Hotel, authoritytest.Alex, h.paid.Refresh, nil)
	try("refresh", err, authority.ErrAgentDisabled)
	_, err = a.Standing(ctx, w.Hotel, rawPayload(t, h.paid.JWS))
	try("introspect", err, authority.ErrEnded)
	try("approve", authoritytest.TryApprove(ctx, a, w.Hotel, h.waiting, "guest-1", "bookings:read"), authority.ErrAgentDisabled)
	q, err := a.Ask(ctx, w.Hotel.ID, h.waiting.ID, "guest-1")
	if err != nil || q.AgentOn {
		t.Errorf("the page would ask: %v", err)
	}
}

// M14 for each Brand: an agent that the Brand keeps out is out at once, at every
// door, and comes back to what it had.
func TestBrandKeepsAgentsOut(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	edit := a.Editor(authority.ByOperator())
	ctx, id := t.Context(), w.Hotel.ID
	h := holdAt(t, w, a)
	policy := func(p string) {
		t.Helper()
		_, err := tenants.ChangeSettings(ctx, edit, tenants.Site{}, id, func(s *tenants.Settings) error {
			s.Agents = p
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func(allowed bool) {
		t.Helper()
		if err := tenants.ListAgent(ctx, edit, id, authoritytest.Agent, allowed); err != nil {
			t.Fatal(err)
		}
	}
	list(false)
	refusedAt(t, w, a, h)
	// Elsewhere it is as welcome as before.
	authoritytest.Begin(t, a, w.Shop, authoritytest.Alex, "orders:read")

	if err := tenants.UnlistAgent(ctx, edit, id, authoritytest.Agent); err != nil {
		t.Fatal(err)
	}
	policy(tenants.AgentsListed)
	refusedAt(t, w, a, h)

	list(true)
	if _, err := a.Begin(ctx, w.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "x"}, []string{"bookings:read"}); !errors.Is(err, authority.ErrAgentDisabled) {
		t.Errorf("an agent that is not on the list: %v", err)
	}
	if _, err := a.Poll(ctx, w.Hotel, authoritytest.Alex, h.approved.DeviceCode); err != nil {
		t.Errorf("poll after: %v", err)
	}
	if _, err := a.Refresh(ctx, w.Hotel, authoritytest.Alex, h.paid.Refresh, nil); err != nil {
		t.Errorf("refresh after: %v", err)
	}
	// A denial counts under either rule, and the operator's word above both.
	policy(tenants.AgentsRegistered)
	list(false)
	if _, err := a.Begin(ctx, w.Hotel, authoritytest.Alex, []string{"bookings:read"}); !errors.Is(err, authority.ErrAgentDisabled) {
		t.Errorf("denied: %v", err)
	}
	list(true)
	w.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, authoritytest.Agent)
	if _, err := a.Begin(ctx, w.Hotel, authoritytest.Alex, []string{"bookings:read"}); !errors.Is(err, authority.ErrAgentDisabled) {
		t.Errorf("disabled by the operator: %v", err)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NULL`); n != 1 {
		t.Errorf("%d living grants", n)
	}
	var p tenants.Problems
	if err := tenants.ListAgent(ctx, edit, id, "https://nobody.example", true); !errors.As(err, &p) {
		t.Errorf("listed an agent nobody knows: %v", err)
	}
}

// Until a Brand has proved a domain it is worked with for trial only: anyone
// could call himself a bank on our origin.
func TestUnprovenBrandsHaveTestAgentsOnly(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	h := holdAt(t, w, a)
	w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Proven = false })
	refusedAt(t, w, a, h)
	w.Exec(t, `UPDATE agents SET test = true WHERE issuer = $1`, authoritytest.Agent)
	if _, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, h.paid.Refresh, nil); err != nil {
		t.Errorf("a test agent: %v", err)
	}
	// Allowing it by name is not enough: that would be the Brand's own word.
	w.Exec(t, `UPDATE agents SET test = false WHERE issuer = $1`, authoritytest.Agent)
	if err := tenants.ListAgent(t.Context(), a.Editor(authority.ByOperator()), w.Hotel.ID, authoritytest.Agent, true); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Begin(t.Context(), w.Hotel, authoritytest.Alex, []string{"bookings:read"}); !errors.Is(err, authority.ErrAgentDisabled) {
		t.Errorf("allowed by name: %v", err)
	}
}
