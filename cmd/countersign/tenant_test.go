package main

import (
	"strings"
	"testing"

	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// A Brand begins and ends by an owner's word, or the operator's own, of which owners
// hear; nobody is given a Brand who could not get into it.
func TestATenantsLifeFromTheShell(t *testing.T) {
	b := newBench(t)
	seal := []string{"--master-key-file", b.keyFile}
	line := func(text string, more ...string) []string { return append(strings.Fields(text), more...) }
	create := "tenant create --id beach --name Beach --organisation Harbor "
	if out, _ := b.run(0, line(create+"--brand harbor-hotel", seal...)...); !strings.Contains(out, "(brand.create) waits for an owner") {
		t.Errorf("%s", out)
	}
	if _, errs := b.run(2, line(create)...); !strings.Contains(errs, "--brand is required") {
		t.Errorf("%s", errs)
	}
	const mine = "--as-operator --public-url https://countersign.example --provider demo --owner olga@example.com"
	if _, errs := b.run(1, line(create+mine)...); !strings.Contains(errs, "sign up at /console first") {
		t.Errorf("%s", errs)
	}
	olga := uuid.New()
	b.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, 'olga@example.com', 'olga@example.com', 'Olga', 'en', now())`, olga)
	b.run(1, line(create+mine)...) // one lost device would lock her out
	b.Exec(t, `INSERT INTO memberships (brand_id, person_id, role, since, confirmed_at) VALUES ('harbor-hotel', $1, 'owner', now(), now())`, olga)
	if n := b.Count(t, `SELECT count(*) FROM brands`); n != 2 {
		t.Fatalf("%d Brands", n)
	}
	b.Exec(t, `INSERT INTO passkeys (id, person_id, data, sign_count, created_at) VALUES ('k', $1, '{}', 0, now()), ('l', $1, '{}', 0, now())`, olga)
	if out, _ := b.run(0, line(create+mine)...); !strings.Contains(out, "beach is made") {
		t.Errorf("%s", out)
	}
	b.run(1, line(create+mine)...) // an id is given once
	if n := b.Count(t, `SELECT count(*) FROM memberships m JOIN brands b ON b.id = m.brand_id WHERE b.id = 'beach' AND b.state = 'pending' AND m.person_id = $1`, olga); n != 1 {
		t.Error("it is not hers")
	}
	if n := b.Count(t, `SELECT count(*) FROM notices WHERE brand_id = 'beach' AND person_id = $1 AND kind = 'brand.created' AND detail->>'asked_by' = 'operator'`, olga); n != 1 {
		t.Errorf("%d letters tell her of it", n)
	}

	if out, _ := b.run(0, line("tenant show --brand harbor-hotel")...); !strings.Contains(out, "1, 1 owners") || !strings.Contains(out, "active") {
		t.Errorf("%s", out)
	}
	b.run(0, line("tenant pause --brand harbor-hotel")...)
	if out, _ := b.run(0, line("tenant resume --brand harbor-hotel", seal...)...); !strings.Contains(out, "(brand.resume) waits") || b.Reload(t, b.Hotel.ID).State != tenants.Paused {
		t.Errorf("%s", out)
	}
	if out, _ := b.run(0, line("tenant resume --as-operator --brand harbor-hotel")...); !strings.Contains(out, "is active") {
		t.Errorf("%s", out)
	}
	b.run(2, line("tenant close --brand harbor-hotel", seal...)...)
	if out, _ := b.run(0, line("tenant close --yes --brand harbor-hotel", seal...)...); !strings.Contains(out, "(brand.close) waits") || b.Reload(t, b.Hotel.ID).State != tenants.Active {
		t.Errorf("%s", out)
	}
	for kind, want := range map[string]int{"brand.paused": 1, "brand.resumed": 1} {
		if n := b.Count(t, `SELECT count(*) FROM notices WHERE kind = $1 AND detail->>'channel' = 'cli' AND person_id = $2`, kind, olga); n != want {
			t.Errorf("%d letters of %s", n, kind)
		}
	}
	var id string
	if err := b.Owner.QueryRow(t.Context(), `SELECT id::text FROM pending_changes WHERE kind = 'brand.create'`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	// It would be nobody's.
	if _, errs := b.run(1, line("change apply --as-operator --brand harbor-hotel --id "+id, seal...)...); !strings.Contains(errs, tenants.ErrOwnerDecides.Error()) {
		t.Errorf("%s", errs)
	}
	if err := b.Owner.QueryRow(t.Context(), `SELECT id::text FROM pending_changes WHERE kind = 'brand.close'`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	b.run(0, line("change apply --as-operator --brand harbor-hotel --id "+id, seal...)...)
	if b.Reload(t, b.Hotel.ID).State != tenants.Closed {
		t.Error("it is not closed")
	}
	if out, _ := b.run(0, line("tenant show --brand harbor-hotel")...); !strings.Contains(out, "closed since") {
		t.Errorf("%s", out)
	}
}

// The shell counts, filters, says no and asks as the dashboard does.
func TestTheShellSeesWhatTheDashboardSees(t *testing.T) {
	b := newBench(t)
	hotel := []string{"--brand", "harbor-hotel"}
	if out, _ := b.run(0, append([]string{"usage", "show", "--days", "2"}, hotel...)...); strings.Count(out, "\n") != 3 {
		t.Errorf("%s", out)
	}
	b.run(2, append([]string{"usage", "show", "--days", "0"}, hotel...)...)
	b.run(0, append([]string{"brand", "pause"}, hotel...)...)
	list := func(want int, filters ...string) string {
		t.Helper()
		out, errs := b.run(want, append(append([]string{"audit", "list"}, hotel...), filters...)...)
		return out + errs
	}
	if out := list(0, "--event", "brand.paused"); !strings.Contains(out, "operator") || strings.Count(out, "\n") != 2 {
		t.Errorf("%s", out)
	}
	if out := list(0, "--actor", "nobody"); strings.Count(out, "\n") != 1 {
		t.Errorf("%s", out)
	}
	if out := list(0, "--until", "2020-01-01"); strings.Count(out, "\n") != 1 {
		t.Errorf("%s", out)
	}
	for _, bad := range [][]string{{"--from", "yesterday"}, {"--grant", "x"}} {
		list(1, bad...)
	}
	list(2, "--expect", "1:x")
	if out, _ := b.run(0, append([]string{"audit", "export", "--event", "brand.paused"}, hotel...)...); strings.Count(out, "\n") != 1 {
		t.Errorf("%s", out)
	}
	b.run(2, append([]string{"audit", "verify", "--event", "brand.paused"}, hotel...)...)
	id := uuid.NewString()
	if _, errs := b.run(1, append([]string{"member", "deny", "--id", id}, hotel...)...); !strings.Contains(errs, "no such recovery") {
		t.Errorf("%s", errs)
	}
	for _, verb := range []string{"confirm", "vouch"} {
		b.run(1, append([]string{"member", verb, "--id", id, "--master-key-file", b.keyFile}, hotel...)...)
	}
}
