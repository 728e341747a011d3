package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// bench is a world with the flags that commands on it need.
type bench struct {
	*authoritytest.World
	t        *testing.T
	database string
	keyFile  string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{World: authoritytest.NewAt(t, time.Now()), t: t, keyFile: filepath.Join(t.TempDir(), "master.key")}
	b.database = serviceURL(t, b.World)
	if _, err := signing.LoadMaster(b.keyFile); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) run(want int, line ...string) (stdout, stderr string) {
	b.t.Helper()
	code, stdout, stderr := typed(b.t, append(line, "--database-url", b.database)...)
	if code != want {
		b.t.Fatalf("%v: exit %d, want %d\n%s%s", line, code, want, stdout, stderr)
	}
	return stdout, stderr
}

func (b *bench) file(text string) string {
	b.t.Helper()
	name := filepath.Join(b.t.TempDir(), "brand.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return name
}

// A Brand kept as one file: what show writes is what is there, a difference is
// shown before it is made, twice is once, and scopes that are not in it are retired.
func TestBrandIsKeptAsAFile(t *testing.T) {
	b := newBench(t)
	shown, _ := b.run(0, "brand", "show", "--brand", "harbor-hotel")
	if out, _ := b.run(0, "brand", "apply", "-f", b.file(shown)); !strings.Contains(out, "as the file says") {
		t.Errorf("what show writes differs:\n%s", out)
	}
	const edited = `
brand: harbor-hotel
settings:
  name: Harbour
  languages: [de]
scopes:
  - {id: "things:read", description: See things, effect: sees, impact: low, texts: {de: {description: Sehen}}}
  - {id: "bookings:read", description: See your bookings, effect: sees, impact: low, texts: {de: {description: Buchungen sehen}}}
agents:
  deny: [https://other.example]
`
	file := b.file(edited)
	out, _ := b.run(0, "brand", "apply", "-f", file)
	for _, want := range []string{`name: "Harbor Hotel" → "Harbour"`, "scope.added things:read", "scope.retired extras:order", "agent.denied https://other.example", "nothing has changed"} {
		if !strings.Contains(out, want) {
			t.Errorf("the difference lacks %q:\n%s", want, out)
		}
	}
	if got := b.Reload(t, b.Hotel.ID); got.Name != "Harbor Hotel" || len(got.Scopes) != 4 {
		t.Fatal("a look has changed something")
	}
	b.run(0, "brand", "apply", "-f", file, "--yes")
	got := b.Reload(t, b.Hotel.ID)
	if got.Name != "Harbour" || len(got.Scopes) != 2 || got.Scopes[0].ID != "things:read" || got.Languages[0] != "de" {
		t.Errorf("%+v", got)
	}
	n := b.Count(t, `SELECT count(*) FROM audit_events`)
	if out, _ := b.run(0, "brand", "apply", "-f", file, "--yes"); !strings.Contains(out, "as the file says") || b.Count(t, `SELECT count(*) FROM audit_events`) != n {
		t.Errorf("twice is more than once:\n%s", out)
	}
	// Back again: the scopes that were retired come back as they were, by an owner's
	// word or the operator's; the rest does not wait for that.
	back := b.file(strings.Replace(shown, "brand:", "# as before\nbrand:", 1))
	b.run(1, "brand", "apply", "-f", back, "--yes")
	if got := b.Reload(t, b.Hotel.ID); got.Name != "Harbour" {
		t.Error("done by half: nobody could be asked")
	}
	for range 2 { // twice is once
		if out, _ := b.run(0, "brand", "apply", "-f", back, "--yes", "--master-key-file", b.keyFile); strings.Count(out, "(scope.restore) waits for an owner") != 3 {
			t.Errorf("%s", out)
		}
	}
	if n := b.Count(t, `SELECT count(*) FROM pending_changes WHERE kind = 'scope.restore'`); n != 3 {
		t.Errorf("%d wait", n)
	}
	if got := b.Reload(t, b.Hotel.ID); got.Name != "Harbor Hotel" || len(got.Scopes) != 1 {
		t.Errorf("restored unasked: %+v", got.Scopes)
	}
	b.run(0, "brand", "apply", "-f", back, "--yes", "--as-operator")
	if got := b.Reload(t, b.Hotel.ID); got.Name != "Harbor Hotel" || len(got.Scopes) != 4 || got.Scopes[0].ID != "bookings:read" {
		t.Errorf("%+v", got.Scopes)
	}
	if b.Count(t, `SELECT count(*) FROM audit_events WHERE actor <> 'operator' OR channel <> 'cli'`) != 0 {
		t.Error("somebody else is said to have done it")
	}
}

// A slip in a file changes nothing, and is told.
func TestSlipsInAFileAreTold(t *testing.T) {
	b := newBench(t)
	for name, tt := range map[string]struct{ text, say string }{
		"a misspelt member":      {"brand: harbor-hotel\nsetings: {}\n", "setings"},
		"a misspelt setting":     {"brand: harbor-hotel\nsettings: {nmae: x}\n", "nmae"},
		"a member twice":         {"brand: harbor-hotel\nbrand: fern-and-fell\n", "brand"},
		"no Brand":               {"settings: {}\n", "brand: ID"},
		"an unknown Brand":       {"brand: nobody\n", "nobody"},
		"a bad value":            {"brand: harbor-hotel\nsettings: {token_seconds: 1}\n", "give 60 to 3600 seconds"},
		"a scope twice":          {"brand: harbor-hotel\nscopes: [{id: a, description: x, effect: sees, impact: low}, {id: a, description: x, effect: sees, impact: low}]\n", "twice"},
		"a scope without words":  {"brand: harbor-hotel\nscopes: [{id: a, effect: sees, impact: low}]\n", "scopes.a.description"},
		"an agent nobody knows":  {"brand: harbor-hotel\nagents: {allow: [https://nobody.example]}\n", "no registered agent"},
		"an agent both ways":     {"brand: harbor-hotel\nagents: {allow: [https://agent.example], deny: [https://agent.example]}\n", "allowed and denied"},
		"a secret in the file":   {"brand: harbor-hotel\nlogin: {issuer: https://x.example, client_id: us, client_secret: hush-hush}\n", "env:NAME or file:PATH"},
		"a secret that is unset": {"brand: harbor-hotel\nlogin: {issuer: https://x.example, client_id: us, client_secret: env:NOT_THERE}\n", "NOT_THERE"},
	} {
		_, stderr := b.run(1, "brand", "apply", "--yes", "-f", b.file(tt.text))
		if !strings.Contains(stderr, tt.say) || strings.Contains(stderr, "hush-hush") {
			t.Errorf("%s: %s", name, stderr)
		}
	}
	if n := b.Count(t, `SELECT count(*) FROM audit_events`); n != 0 {
		t.Errorf("%d facts", n)
	}
}

// Login and interface wait for an owner, unless the operator does it in his own
// name; the secret comes from where it is kept.
func TestFileAsksAnOwner(t *testing.T) {
	b := newBench(t)
	t.Setenv("IDP_SECRET", "hush-hush")
	file := b.file(`
brand: harbor-hotel
login: {issuer: "https://login.example", client_id: us, client_secret: "env:IDP_SECRET"}
interface: {mode: fronted, interface_url: "https://hotel.example"}
`)
	flags := []string{"brand", "apply", "--yes", "-f", file, "--master-key-file", b.keyFile, "--public-url", authoritytest.PublicURL}
	out, _ := b.run(0, flags...)
	if strings.Count(out, "waits for an owner") != 2 || strings.Contains(out, "hush-hush") {
		t.Errorf("%s", out)
	}
	if _, err := tenants.Login(t.Context(), b.DB, b.Master, b.Hotel.ID); err == nil || b.Reload(t, b.Hotel.ID).Mode != tenants.Hosted {
		t.Error("done without an owner")
	}
	// Again while they wait, as a pipeline does at each run: nothing is asked anew.
	facts := b.Count(t, `SELECT count(*) FROM audit_events`)
	if out, _ := b.run(0, flags...); strings.Count(out, "waits for an owner") != 2 {
		t.Errorf("%s", out)
	}
	if n := b.Count(t, `SELECT count(*) FROM audit_events`); n != facts {
		t.Errorf("twice is %d facts more", n-facts)
	}
	if out, _ := b.run(0, "change", "list", "--brand", "harbor-hotel"); strings.Count(out, "pending") != 2 {
		t.Errorf("%s", out)
	}
	t.Setenv("IDP_SECRET", "hush") // a candidate with another secret looks like the one that waits
	b.run(0, flags...)
	if n := b.Count(t, `SELECT count(*) FROM audit_events`); n != facts+1 {
		t.Errorf("another secret is %d facts more", n-facts)
	}
	t.Setenv("IDP_SECRET", "hush-hush")
	other := b.file("brand: harbor-hotel\ninterface: {mode: fronted, interface_url: \"https://agents.hotel.example\"}\n")
	b.run(0, "brand", "apply", "--yes", "-f", other, "--master-key-file", b.keyFile, "--public-url", authoritytest.PublicURL)
	if out, _ := b.run(0, "change", "list", "--brand", "harbor-hotel"); strings.Count(out, "pending") != 3 {
		t.Errorf("%s", out)
	}
	if _, stderr := b.run(1, append(flags, "--as-operator")...); !strings.Contains(stderr, "confirm") {
		t.Errorf("moved without a confirmation: %s", stderr)
	}
	b.run(0, append(flags, "--as-operator", "--confirm", "harbor-hotel")...)
	master, err := signing.OpenMaster(b.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tenants.Login(t.Context(), b.DB, master, b.Hotel.ID)
	if err != nil || l.ClientSecret != "hush-hush" || b.Reload(t, b.Hotel.ID).InterfaceURL != "https://hotel.example" {
		t.Errorf("%s, %v", l.Issuer, err)
	}
	if out, _ := b.run(0, flags...); !strings.Contains(out, "as the file says") {
		t.Errorf("twice: %s", out)
	}
	t.Setenv("IDP_SECRET", "another")
	if out, _ := b.run(0, flags...); !strings.Contains(out, "waits for an owner") {
		t.Errorf("a new secret: %s", out)
	}
}

// Single settings, scopes and domains from the command line.
func TestSettingsFromTheCommandLine(t *testing.T) {
	b := newBench(t)
	out, _ := b.run(0, "brand", "set", "--brand", "harbor-hotel", "--set", "name=Harbour: the hotel", "--set", "token_seconds=600", "--set", "grant_days=[7, 30]")
	if !strings.Contains(out, `name: "Harbor Hotel" → "Harbour: the hotel"`) || !strings.Contains(out, "token_seconds: 900 → 600") {
		t.Errorf("%s", out)
	}
	if _, stderr := b.run(1, "brand", "set", "--brand", "harbor-hotel", "--set", "nmae=x"); !strings.Contains(stderr, "nmae") {
		t.Errorf("%s", stderr)
	}
	b.run(0, "scope", "set", "--brand", "harbor-hotel", "--scope", "things:read", "--set", "description=See things", "--set", "texts.de.description=Sehen")
	b.run(0, "scope", "set", "--brand", "harbor-hotel", "--scope", "things:read", "--set", "impact=high")
	b.run(0, "scope", "retire", "--brand", "harbor-hotel", "--scope", "bookings:read")
	s, ok := b.Reload(t, b.Hotel.ID).Scope("things:read")
	if !ok || s.Impact != "high" || s.Description != "See things" || s.Texts["de"].Description != "Sehen" {
		t.Errorf("%+v", s)
	}
	if out, _ := b.run(0, "scope", "list", "--brand", "harbor-hotel"); !strings.Contains(out, "retired") {
		t.Errorf("%s", out)
	}
	detail := func(code int, verb string, set ...string) (string, string) {
		line := []string{"detail", verb, "--brand", "harbor-hotel"}
		for _, s := range set {
			line = append(line, "--set", s)
		}
		if verb != "list" {
			line = append(line, "--type", "stay_charge")
		}
		return b.run(code, line...)
	}
	detail(0, "set", "scope=things:read", "words=Up to {amount}", "texts.de=Bis {amount}",
		`schema={"type":"object","additionalProperties":false,"required":["amount"],"properties":{"amount":{"type":"number"}}}`)
	detail(0, "set", "words=No more than {amount}")
	if _, stderr := detail(1, "set", "words=As you like"); !strings.Contains(stderr, "do not name {amount}") {
		t.Errorf("%s", stderr)
	}
	if out, _ := detail(0, "list"); !strings.Contains(out, "stay_charge") || !strings.Contains(out, "No more than {amount}") {
		t.Errorf("%s", out)
	}
	detail(0, "remove")
	detail(1, "remove")
	if out, _ := b.run(0, "brand", "domain", "add", "--as-operator", "--brand", "harbor-hotel", "--host", "hotel.example"); !strings.Contains(out, "countersign-proof=") || !strings.Contains(out, "_countersign.hotel.example") {
		t.Errorf("%s", out)
	}
	b.run(0, "brand", "pause", "--brand", "harbor-hotel")
	if b.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'brand.paused' AND actor = 'operator'`) != 1 {
		t.Error("a pause leaves no trace")
	}
}
