package main

import (
	"strings"
	"testing"
)

// From a shell and by a file a Brand is only asked to be open to agents that nobody
// registered; the operator can decide in its owners' place.
func TestOpeningWaitsForAnOwner(t *testing.T) {
	b := newBench(t)
	opened := func() bool { return b.Count(t, `SELECT count(*) FROM brands WHERE agents = 'open'`) != 0 }
	file := b.file("brand: harbor-hotel\nsettings: {agents: open}\n")
	for _, line := range [][]string{
		{"brand", "set", "--brand", "harbor-hotel", "--set", "agents=open", "--master-key-file", b.keyFile},
		{"brand", "apply", "-f", file, "--yes", "--master-key-file", b.keyFile},
	} {
		if out, _ := b.run(0, line...); opened() || !strings.Contains(out, "waits for an owner") {
			t.Errorf("%v: %s", line, out)
		}
	}
	if out, _ := b.run(0, "brand", "apply", "-f", file); opened() || !strings.Contains(out, "agents: open") {
		t.Errorf("the difference: %s", out)
	}
	b.run(1, "brand", "set", "--brand", "harbor-hotel", "--set", "agents=open", "--set", "token_seconds=600")
	b.run(0, "brand", "set", "--brand", "harbor-hotel", "--set", "agents=open", "--as-operator")
	if !opened() {
		t.Error("the operator opened nothing")
	}
	if out, _ := b.run(0, "brand", "apply", "-f", file, "--yes"); !strings.Contains(out, "as the file says") {
		t.Errorf("twice is not once: %s", out)
	}
}

// What signs, and when it changes, waits for an owner too, however it is wished for;
// the rest of the file does not. As the operator it is so at once, and owners hear of it.
func TestAnotherRuleOfSigningKeysWaitsForAnOwner(t *testing.T) {
	b, olga := trusting(t)
	const waiting = `SELECT count(*) FROM pending_changes WHERE kind = 'key.rule' AND state = 'pending'`
	is := func(alg string, days int) {
		t.Helper()
		if got := b.Reload(t, b.Hotel.ID); got.SigningAlg != alg || got.RotationDays != days {
			t.Errorf("%s, every %d days; want %s, %d", got.SigningAlg, got.RotationDays, alg, days)
		}
	}
	seal := []string{"--master-key-file", b.keyFile}
	file := b.file("brand: harbor-hotel\nsettings: {name: Harbour, signing_alg: RS256, rotation_days: 1}\n")
	out, _ := b.run(0, "brand", "apply", "-f", file)
	for _, want := range []string{`signing_alg: "ES256" → "RS256"`, "rotation_days: 90 → 1", `name: "Harbor Hotel" → "Harbour"`, "nothing has changed"} {
		if !strings.Contains(out, want) {
			t.Errorf("the difference lacks %q:\n%s", want, out)
		}
	}
	if b.run(1, "brand", "apply", "-f", file, "--yes"); b.Reload(t, b.Hotel.ID).Name != "Harbor Hotel" {
		t.Error("done by half: nobody could be asked")
	}
	for range 2 { // twice is once
		if out, _ := b.run(0, append([]string{"brand", "apply", "-f", file, "--yes"}, seal...)...); strings.Count(out, "(key.rule) waits for an owner") != 1 || b.Count(t, waiting) != 1 {
			t.Errorf("%d wait:\n%s", b.Count(t, waiting), out)
		}
	}
	if is("ES256", 90); b.Reload(t, b.Hotel.ID).Name != "Harbour" {
		t.Error("the rest waits too")
	}
	// Single settings ask for the same; in one with others it is refused.
	set := func(code int, flags ...string) string {
		t.Helper()
		out, errs := b.run(code, append(append([]string{"brand", "set", "--brand", "harbor-hotel"}, seal...), flags...)...)
		return out + errs
	}
	if said := set(0, "--set", "signing_alg=RS256", "--set", "rotation_days=1"); !strings.Contains(said, "waits for an owner") || strings.Contains(said, "is set") || b.Count(t, waiting) != 1 {
		t.Errorf("%d wait: %s", b.Count(t, waiting), said)
	}
	if said := set(1, "--set", "signing_alg=RS256", "--set", "name=Haven"); !strings.Contains(said, "signing_alg: is changed by an owner alone") {
		t.Errorf("%s", said)
	}
	if said := set(1, "--set", "rotation_days=0"); !strings.Contains(said, "give 1 to 366 days") {
		t.Errorf("%s", said)
	}
	is("ES256", 90)
	b.decideAll(olga)
	is("RS256", 1)
	if out, _ := b.run(0, "brand", "apply", "-f", file, "--yes"); !strings.Contains(out, "as the file says") {
		t.Errorf("after an owner's yes:\n%s", out)
	}
	letters := func() int {
		return b.Count(t, `SELECT count(*) FROM notices WHERE kind = 'brand.settings' AND person_id = $1`, olga)
	}
	before := letters()
	if said := set(0, "--as-operator", "--set", "rotation_days=30"); !strings.Contains(said, "harbor-hotel is set") {
		t.Errorf("%s", said)
	}
	is("RS256", 30)
	b.run(0, "brand", "apply", "-f", file, "--yes", "--as-operator")
	if is("RS256", 1); letters()-before != 2 || b.Count(t, waiting) != 0 {
		t.Errorf("%d letters of two changes, %d wait", letters()-before, b.Count(t, waiting))
	}
}
