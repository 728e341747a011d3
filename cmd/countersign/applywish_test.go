package main

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// trusting is a bench whose hotel has everything that a file can name.
func trusting(t *testing.T) (b *bench, olga uuid.UUID) {
	t.Helper()
	b = newBench(t)
	edit := b.Authority(nil).Editor(authority.ByOperator())
	olga = uuid.New()
	now := b.Clock.Now()
	b.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, 'olga@hotel.example', 'Olga@hotel.example', 'Olga', 'en', $2)`, olga, now)
	b.Exec(t, `INSERT INTO memberships VALUES ('harbor-hotel', $1, 'owner', $2, $2)`, olga, now)
	b.Exec(t, `INSERT INTO invitations (brand_id, id, email, role, invited_by, created_at, expires_at)
		VALUES ('harbor-hotel', gen_random_uuid(), 'sami@hotel.example', 'support', $1, $2, $2::timestamptz + interval '7 days')`, olga, now)
	b.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at) VALUES ('harbor-hotel', 'hotel.example', 'x', $1)`, now)
	for _, url := range []string{"https://hotel.example/hook", "https://hotel.example/old"} {
		w, _, err := tenants.CreateWebhook(t.Context(), edit, b.Master, tenants.Site{}, "harbor-hotel", tenants.WebhookDraft{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(url, "old") {
			if err := tenants.EnableWebhook(t.Context(), edit, "harbor-hotel", w.ID, false, "x"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := tenants.NewAPIKey(t.Context(), edit, "harbor-hotel", tenants.KeyDraft{Name: "checkout", Rights: []tenants.Right{"introspect", "verify"}}); err != nil {
		t.Fatal(err)
	}
	if err := tenants.SetLogo(t.Context(), edit, "harbor-hotel", dot(t, 9)); err != nil {
		t.Fatal(err)
	}
	return b, olga
}

func dot(t *testing.T, side int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// everything counts what a file could change.
func (b *bench) everything() string {
	b.t.Helper()
	var out string
	const q = `
		SELECT (SELECT string_agg(url || enabled || events::text, ' ' ORDER BY url) FROM webhook_endpoints) ||
		       (SELECT string_agg(name || (revoked_at IS NULL), ' ' ORDER BY name) FROM api_keys) ||
		       (SELECT string_agg(role || person_id, ' ' ORDER BY person_id) FROM memberships) ||
		       (SELECT string_agg(email || (withdrawn_at IS NULL), ' ' ORDER BY email) FROM invitations) ||
		       (SELECT string_agg(host, ' ' ORDER BY host) FROM brand_domains) ||
		       (SELECT string_agg(hash, ' ') FROM brand_logos)`
	if err := b.Owner.QueryRow(b.t.Context(), q).Scan(&out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// What show writes of trust is what is there: no secret is in it, and applied it
// changes nothing and asks for nothing, also while something waits.
func TestAFileHoldsWhatABrandTrusts(t *testing.T) {
	b, _ := trusting(t)
	shown, _ := b.run(0, "brand", "show", "--brand", "harbor-hotel")
	for _, want := range []string{"https://hotel.example/hook", "enabled: false", "Olga@hotel.example", "sami@hotel.example", "name: checkout", "- hotel.example", "logo: sha256:"} {
		if !strings.Contains(shown, want) {
			t.Errorf("it lacks %q:\n%s", want, shown)
		}
	}
	for _, secret := range []string{"whsec_", "cs_"} {
		if strings.Contains(shown, secret) {
			t.Errorf("a secret is in it:\n%s", shown)
		}
	}
	b.run(0, "apikey", "create", "--brand", "harbor-hotel", "--name", "waiting", "--master-key-file", b.keyFile)
	before := b.everything()
	if out, _ := b.run(0, "brand", "apply", "-f", b.file(shown), "--yes"); !strings.Contains(out, "as the file says") || b.everything() != before {
		t.Errorf("what show writes differs:\n%s", out)
	}
}

// Who and what is trusted waits for an owner; what only stops something does not.
// The same file again asks for nothing more.
func TestAFileAsksForTrust(t *testing.T) {
	b, olga := trusting(t)
	const text = `
brand: harbor-hotel
domains: [new.example]
webhooks:
  - {url: "https://hotel.example/new", events: [grant.revoked]}
members:
  - {email: olga@hotel.example, role: owner}
  - {email: nils@hotel.example, role: viewer}
api_keys:
  - {name: checkout, rights: [introspect]}
`
	file := b.file(text)
	before := b.everything()
	out, _ := b.run(0, "brand", "apply", "-f", file)
	for _, want := range []string{
		"domain new.example: to be proved", "domain hotel.example: taken away", "webhook https://hotel.example/new: made, for grant.revoked",
		"webhook https://hotel.example/hook: off", "member nils@hotel.example: invited as viewer", "invitation of sami@hotel.example: taken back",
		`API key "checkout": made, with [introspect]`, "revoked", "nothing has changed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the difference lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "olga") || b.everything() != before {
		t.Errorf("a look has changed something, or says so of who stays:\n%s", out)
	}
	if _, errs := b.run(1, "brand", "apply", "-f", file, "--yes"); !strings.Contains(errs, "master-key-file") || b.everything() != before {
		t.Errorf("half of it was done: %s", errs)
	}
	b.run(0, "brand", "apply", "-f", file, "--yes", "--master-key-file", b.keyFile)
	const waiting = `SELECT count(*) FROM pending_changes WHERE state = 'pending'`
	if n := b.Count(t, waiting); n != 7 {
		t.Errorf("%d wait", n)
	}
	for _, q := range []string{
		`SELECT 1 - count(*) FROM webhook_endpoints WHERE enabled`, `SELECT count(*) FROM invitations WHERE withdrawn_at IS NULL`,
		`SELECT count(*) FROM api_keys WHERE revoked_at IS NOT NULL`, `SELECT count(*) FROM brand_domains WHERE host <> 'hotel.example'`,
	} {
		if n := b.Count(t, q); n != 0 {
			t.Errorf("%s: %d", q, n)
		}
	}
	out, _ = b.run(0, "brand", "apply", "-f", file, "--yes", "--master-key-file", b.keyFile)
	if n := b.Count(t, waiting); n != 7 {
		t.Errorf("asked for twice: %d\n%s", n, out)
	}
	b.decideAll(olga)
	if out, _ := b.run(0, "brand", "apply", "-f", file, "--yes"); !strings.Contains(out, "as the file says") {
		t.Errorf("after an owner's yes:\n%s", out)
	}
	// Members are no operator's, whatever is typed.
	again := b.file("brand: harbor-hotel\nmembers: [{email: olga@hotel.example, role: owner}]\n")
	if out, _ := b.run(0, "brand", "apply", "-f", again, "--yes", "--as-operator", "--master-key-file", b.keyFile); !strings.Contains(out, "taken back") {
		t.Errorf("%s", out)
	}
	other := b.file("brand: harbor-hotel\nmembers: [{email: rita@hotel.example, role: owner}]\n")
	if out, _ := b.run(0, "brand", "apply", "-f", other, "--yes", "--as-operator", "--master-key-file", b.keyFile); strings.Count(out, "waits for an owner") != 2 || b.Count(t, `SELECT count(*) FROM memberships`) != 1 {
		t.Errorf("%s", out)
	}
}

// decideAll is an owner's yes to everything that waits, the oldest first.
func (b *bench) decideAll(owner uuid.UUID) {
	b.t.Helper()
	rules := b.Authority(nil)
	master, err := signing.OpenMaster(b.keyFile)
	if err != nil {
		b.t.Fatal(err)
	}
	asks := &tenants.Asks{DB: b.DB, Sealer: master, Now: b.Clock.Now, Appliers: appliers(b.DB, master, tenants.Site{})}
	all, err := asks.Waiting(b.t.Context(), "harbor-hotel")
	if err != nil {
		b.t.Fatal(err)
	}
	record := func(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, by uuid.UUID, event string, detail map[string]any) error {
		return rules.Note(ctx, tx, brand, authority.ByMember(by.String()), event, detail)
	}
	act := func(event string) tenants.Act {
		return tenants.Act{Brand: "harbor-hotel", By: owner, Event: event, Record: record, Now: b.Clock.Now()}
	}
	for _, c := range slices.Backward(all) { // as they were asked for
		if _, err := asks.For(act).Apply(b.t.Context(), rules.Editor(authority.ByMember(owner.String())), "harbor-hotel", c.ID, owner.String()); err != nil {
			b.t.Fatalf("%s: %v", c.Kind, err)
		}
	}
}

// A webhook that another takes over from is told until an owner allows both: nobody
// hears nothing. One that only goes is off at once.
func TestAWebhookIsToldUntilAnotherTakesOver(t *testing.T) {
	b, olga := trusting(t)
	const hook, next = `SELECT count(*) FROM webhook_endpoints WHERE enabled AND url LIKE '%hook'`, `SELECT count(*) FROM webhook_endpoints WHERE enabled AND url LIKE '%new'`
	apply := func(webhooks string, flags ...string) string {
		t.Helper()
		out, _ := b.run(0, append([]string{"brand", "apply", "-f", b.file("brand: harbor-hotel\nwebhooks: [" + webhooks + "]\n"), "--yes", "--master-key-file", b.keyFile}, flags...)...)
		return out
	}
	// Also where what takes over is there and off.
	for _, takesOver := range []string{`{url: "https://hotel.example/new"}`, `{url: "https://hotel.example/old"}`} {
		if out := apply(takesOver); strings.Count(out, "waits for an owner") != 2 || b.Count(t, hook) != 1 {
			t.Fatalf("%s: nobody is told:\n%s", takesOver, out)
		}
	}
	b.Exec(t, `UPDATE pending_changes SET state = 'rejected', decided_at = now(), payload_sealed = NULL WHERE kind = 'webhook.enable'`)
	b.decideAll(olga)
	if b.Count(t, hook) != 0 || b.Count(t, next) != 1 {
		t.Error("an owner's yes changes nothing")
	}
	apply(`{url: "https://hotel.example/hook"}`, "--as-operator")
	if b.Count(t, hook) != 1 || b.Count(t, next) != 0 {
		t.Error("as the operator it waits")
	}
	if out := apply(""); strings.Contains(out, "waits") || b.Count(t, hook) != 0 {
		t.Errorf("to stop waits:\n%s", out)
	}
}

// Where all ten are on, one is off before another takes its place: at once as the
// operator, by an owner's two words otherwise. Eleven are refused before any is made.
func TestAFullListOfWebhooksIsChanged(t *testing.T) {
	b, olga := trusting(t)
	const on = `SELECT count(*) FROM webhook_endpoints WHERE enabled`
	file := func(names ...string) string {
		text := "brand: harbor-hotel\nwebhooks:\n"
		for _, name := range names {
			text += "  - {url: 'https://hotel.example/" + name + "}\n"
		}
		return b.file(text)
	}
	full := []string{"a'", "b'", "c'", "d'", "e'", "f'", "g'", "h'", "i'", "j'"}
	operator := []string{"--yes", "--as-operator", "--master-key-file", b.keyFile}
	apply := func(code int, names []string, flags ...string) string {
		t.Helper()
		out, errs := b.run(code, append([]string{"brand", "apply", "-f", file(names...)}, flags...)...)
		return out + errs
	}
	apply(0, full, operator...)
	if n := b.Count(t, on); n != 10 {
		t.Fatalf("%d are on", n)
	}
	for _, step := range [][]string{
		append([]string{"new'"}, full[1:]...),                           // left out
		append([]string{"newer'", "new', enabled: false"}, full[1:]...), // said to be off
		append([]string{"new'", "newer', enabled: false"}, full[1:]...), // one that is there takes over
	} {
		apply(0, step, operator...)
		if again := apply(0, step, operator...); b.Count(t, on) != 10 || !strings.Contains(again, "as the file says") {
			t.Fatalf("%q: %d are on; %s", step, b.Count(t, on), again)
		}
	}
	if out := apply(1, append([]string{"k'"}, full...), operator...); b.Count(t, on) != 10 || !strings.Contains(out, "10 may be") {
		t.Errorf("%d are on; %s", b.Count(t, on), out)
	}
	apply(0, full, "--yes", "--master-key-file", b.keyFile)
	b.decideAll(olga)
	if n := b.Count(t, on+` AND url LIKE '%/a'`); n != 1 || b.Count(t, on) != 10 {
		t.Error("an owner's words do not change it")
	}
}

// The format belongs to what a file says: another one is another endpoint, which an
// owner allows, and what show writes changes nothing.
func TestAFileSaysTheFormatOfAWebhook(t *testing.T) {
	b, olga := trusting(t)
	if shown, _ := b.run(0, "brand", "show", "--brand", "harbor-hotel"); strings.Contains(shown, "format: json") {
		t.Errorf("it says what goes without saying:\n%s", shown)
	}
	file := b.file("brand: harbor-hotel\nwebhooks: [{url: 'https://hotel.example/hook', format: set}]\n")
	b.run(0, "brand", "apply", "-f", file, "--yes", "--master-key-file", b.keyFile)
	b.decideAll(olga)
	const hooks = `SELECT count(*) FROM webhook_endpoints WHERE enabled AND url LIKE '%hook' AND format = 'set'`
	if b.Count(t, hooks) != 1 || b.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE enabled`) != 1 {
		t.Error("the format is not as the file says")
	}
	shown, _ := b.run(0, "brand", "show", "--brand", "harbor-hotel")
	if out, _ := b.run(0, "brand", "apply", "-f", b.file(shown), "--yes"); !strings.Contains(shown, "format: set") || !strings.Contains(out, "as the file says") {
		t.Errorf("%s\n%s", shown, out)
	}
	if _, errs := b.run(1, "brand", "apply", "-f", b.file("brand: harbor-hotel\nwebhooks: [{url: 'https://hotel.example/x', format: xml}]\n"), "--yes"); !strings.Contains(errs, "webhooks.format") {
		t.Errorf("%s", errs)
	}
}

// A role that changes and events that change wait too, and keep what they are of.
func TestAFileChangesRolesAndEvents(t *testing.T) {
	b, olga := trusting(t)
	rita := uuid.New()
	b.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, 'rita@hotel.example', 'rita@hotel.example', 'Rita', 'en', $2)`, rita, b.Clock.Now())
	b.Exec(t, `INSERT INTO memberships VALUES ('harbor-hotel', $1, 'viewer', $2, $2)`, rita, b.Clock.Now())
	file := b.file(`
brand: harbor-hotel
webhooks:
  - {url: "https://hotel.example/hook", events: [grant.revoked]}
  - {url: "https://hotel.example/old"}
members:
  - {email: olga@hotel.example, role: owner}
  - {email: rita@hotel.example, role: security}
  - {email: sami@hotel.example, role: support}
`)
	hook := `SELECT count(*) FROM webhook_endpoints WHERE enabled AND url LIKE '%hook' AND events = '{grant.revoked}'`
	b.run(0, "brand", "apply", "-f", file, "--yes", "--master-key-file", b.keyFile)
	if n := b.Count(t, `SELECT count(*) FROM pending_changes WHERE kind IN ('webhook.events', 'webhook.enable', 'member.role')`); n != 3 || b.Count(t, hook) != 0 {
		t.Fatalf("%d wait, %d changed", n, b.Count(t, hook))
	}
	secret := func() (sealed []byte) {
		_ = b.Owner.QueryRow(t.Context(), `SELECT secret_sealed FROM webhook_endpoints WHERE url LIKE '%hook'`).Scan(&sealed)
		return sealed
	}
	before := secret()
	b.decideAll(olga)
	if b.Count(t, hook) != 1 || !bytes.Equal(secret(), before) || b.Count(t, `SELECT count(*) FROM memberships WHERE role = 'security'`) != 1 {
		t.Error("it did not come about, or the secret is another")
	}
}

// What cannot be is said before anything is done, when the difference is looked at too,
// and all of it together.
func TestAFileThatCannotBe(t *testing.T) {
	b, _ := trusting(t)
	const facts = `SELECT (SELECT count(*) FROM audit_events) + (SELECT count(*) FROM pending_changes)`
	before, n := b.everything(), b.Count(t, facts)
	flags := []string{"--master-key-file", b.keyFile, "--public-url", authoritytest.PublicURL}
	cannot := map[string]string{
		"members: [{email: olga@hotel.example, role: viewer}]":                                           "name no owner",
		"members: [{email: olga@hotel.example, role: owner}, {email: Olga@hotel.example, role: viewer}]": "twice",
		"members: [{email: nobody, role: owner}]":                                                        "no e-mail address",
		"members: [{email: olga@hotel.example, role: owner}, {email: x@y.example, role: king}]":          "role",
		"webhooks: [{url: 'http://10.0.0.1/x'}]":                                                         "webhooks.url",
		"webhooks: [{url: 'https://hotel.example/x', events: [everything]}]":                             "webhooks.events",
		"webhooks: [{url: 'https://hotel.example/x', secret: whsec_x}]":                                  "unknown field",
		"webhooks: [{url: 'https://hotel.example/x', enabled: false}]":                                   "only to be off",
		"api_keys: [{name: x, rights: [everything]}]":                                                    "api_keys.x.rights",
		"api_keys: [{name: x, rights: [verify], secret: cs_x}]":                                          "unknown field",
		"logo: sha256:x":                        "its digest alone makes none",
		"logo: https://hotel.example/logo.png":  "file:PATH",
		"logo: file:missing.png":                "no such file",
		"domains: [rooms]":                      "domains.rooms: is not a public name",
		"agent_endpoint: 'ftp://hotel.example'": "url: is no address that we call",
		"interface: {mode: fronted, interface_url: 'https://hotel.example/'}": "interface_url: ends with a slash",
		"interface: {mode: split}":                                                   "interface_url: is no absolute URL",
		"interface: {mode: hosted, audience: another}":                               "audience: is not that of the Provider",
		"interface: {mode: sideways}":                                                "mode: is none of the words",
		"login: {issuer: 'http://x', client_id: c, client_secret: 'file:/dev/null'}": "issuer: is not https",
		"login: {issuer: 'https://x.example', client_id: c, subject_claim: email}":   "subject_claim: is an e-mail address",
		"login: {issuer: 'https://x.example', client_id: c}":                         "client_secret: is missing",
		"login: {kind: assertion, issuer: 'https://x.example', jwks_uri: 'https://x.example/keys', login_url: 'http://x.example'}": "login_url: is not https",
	}
	for text, want := range cannot {
		for _, how := range [][]string{nil, {"--yes"}, {"--yes", "--as-operator", "--confirm", "harbor-hotel"}} {
			line := append(append([]string{"brand", "apply", "-f", b.file("brand: harbor-hotel\nsettings: {name: Other}\n" + text + "\n")}, flags...), how...)
			if _, errs := b.run(1, line...); !strings.Contains(errs, want) {
				t.Errorf("%s %v: %s, want %q", text, how, errs, want)
			}
			if b.everything() != before || b.Count(t, facts) != n || b.Reload(t, b.Hotel.ID).Name != "Harbor Hotel" {
				t.Fatalf("%s %v: something was done", text, how)
			}
		}
	}
	all := b.file(`
brand: harbor-hotel
settings: {name: ""}
interface: {mode: fronted, interface_url: "https://hotel.example/"}
login: {issuer: "http://x", client_id: c, subject_claim: email}
agent_endpoint: "ftp://hotel.example"
logo: sha256:x
domains: [rooms, "10.0.0.1"]
members: [{email: nobody, role: king}]
api_keys: [{name: x, rights: [everything]}, {name: z, rights: [nothing]}]
`)
	out, errs := b.run(1, append([]string{"brand", "apply", "-f", all}, flags...)...)
	for _, field := range []string{
		"name: is missing", "interface_url:", "issuer:", "subject_claim:", "client_secret:", "url: is no address", "logo:",
		"domains.rooms:", "domains.10.0.0.1:", "members:", "api_keys.x.rights:", "api_keys.z.rights:",
	} {
		if !strings.Contains(errs, field) {
			t.Errorf("nothing is said of %s\n%s", field, errs)
		}
	}
	if strings.Contains(out, "nothing has changed") || strings.Contains(out, "null") {
		t.Errorf("%s", out)
	}
}

// What only this command line lacks is told before anything is done, too; and what
// follows from a move is no difference.
func TestAFileIsNotDoneByHalf(t *testing.T) {
	b := newBench(t)
	const moves = "interface: {mode: fronted, interface_url: 'https://hotel.example'}"
	for _, tt := range []struct {
		text, want string
		flags      []string
	}{
		{moves, "confirm: is not the Brand's id", []string{"--as-operator", "--public-url", authoritytest.PublicURL}},
		{moves, "public-url", []string{"--as-operator", "--confirm", "harbor-hotel"}},
		{moves, "master-key-file", []string{"--public-url", authoritytest.PublicURL}},
		{"agent_endpoint: 'https://hotel.example/turn'", "master-key-file", []string{"--as-operator"}},
		{"login: {issuer: 'https://x.example', client_id: us, auth: private_key_jwt}", "master-key-file", []string{"--as-operator"}},
		{"login: {issuer: 'https://x.example', client_id: us, auth: private_key_jwt, client_secret: 'env:NOT_THERE'}", "NOT_THERE", []string{"--as-operator", "--master-key-file", b.keyFile}},
	} {
		line := append([]string{"brand", "apply", "--yes", "-f", b.file("brand: harbor-hotel\nsettings: {name: Other}\n" + tt.text + "\n")}, tt.flags...)
		if _, errs := b.run(1, line...); !strings.Contains(errs, tt.want) || b.Reload(t, b.Hotel.ID).Name != "Harbor Hotel" || b.Count(t, `SELECT count(*) FROM audit_events`) != 0 {
			t.Errorf("%s %v: %s, want %q; it is called %s", tt.text, tt.flags, errs, tt.want, b.Reload(t, b.Hotel.ID).Name)
		}
	}
	out, _ := b.run(0, "brand", "apply", "-f", b.file("brand: harbor-hotel\n"+moves+"\n"), "--public-url", authoritytest.PublicURL)
	if !strings.Contains(out, `interface_url: "`) || !strings.Contains(out, `mode: "hosted" → "fronted"`) || strings.Contains(out, "null") || strings.Contains(out, "audience") || strings.Contains(out, "provider") {
		t.Errorf("%s", out)
	}
	// A Brand that has proved nothing cannot be open, whoever says so.
	b.Exec(t, `UPDATE brands SET proven = false`)
	open := b.file("brand: harbor-hotel\nsettings: {name: Other, agents: open}\n")
	for _, how := range [][]string{nil, {"--yes"}, {"--yes", "--as-operator"}} {
		if _, errs := b.run(1, append([]string{"brand", "apply", "-f", open, "--master-key-file", b.keyFile}, how...)...); !strings.Contains(errs, "before a domain is proven") || b.Reload(t, b.Hotel.ID).Name != "Harbor Hotel" {
			t.Errorf("%v: %s", how, errs)
		}
	}
}

// A file keeps the domains that the Brand stands on, as it will be by the same file.
func TestAFileKeepsWhatABrandStandsOn(t *testing.T) {
	b := newBench(t)
	for _, host := range []string{"old.example", "new.example"} {
		b.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method) VALUES ('harbor-hotel', $1, 'x', $2, $2, 'dns')`, host, b.Clock.Now())
	}
	b.Exec(t, `UPDATE brands SET support_url = 'https://old.example/help'`)
	apply := func(code int, text string, flags ...string) string {
		t.Helper()
		out, errs := b.run(code, append([]string{"brand", "apply", "-f", b.file("brand: harbor-hotel\n" + text), "--master-key-file", b.keyFile}, flags...)...)
		return out + errs
	}
	for _, how := range [][]string{nil, {"--yes"}, {"--yes", "--as-operator"}} {
		if said := apply(1, "settings: {name: Other}\ndomains: [new.example]\n", how...); !strings.Contains(said, "support_url: stands on old.example") {
			t.Errorf("%v: %s", how, said)
		}
		if said := apply(1, "settings: {name: Other, support_url: ''}\ndomains: []\n", how...); !strings.Contains(said, "is the last proven one") {
			t.Errorf("%v: %s", how, said)
		}
	}
	if b.Reload(t, b.Hotel.ID).Name != "Harbor Hotel" || b.Count(t, `SELECT count(*) FROM brand_domains`) != 2 || b.Count(t, `SELECT count(*) FROM pending_changes`) != 0 {
		t.Error("half of it was done")
	}
	apply(0, "settings: {name: Other, support_url: 'https://new.example/help'}\ndomains: [new.example]\n", "--yes", "--as-operator")
	if b.Reload(t, b.Hotel.ID).Name != "Other" || b.Count(t, `SELECT count(*) FROM brand_domains`) != 1 {
		t.Error("it was not done")
	}
}

// A picture lies beside the file, whatever folder the command runs in.
func TestAFileNamesItsLogo(t *testing.T) {
	b, _ := trusting(t)
	file := b.file("brand: harbor-hotel\nlogo: file:logo.png\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "logo.png"), dot(t, 20), 0o600); err != nil {
		t.Fatal(err)
	}
	before := b.Reload(t, b.Hotel.ID).Logo
	if out, _ := b.run(0, "brand", "apply", "-f", file); !strings.Contains(out, "logo: another") || b.Reload(t, b.Hotel.ID).Logo != before {
		t.Errorf("%s", out)
	}
	b.run(0, "brand", "apply", "-f", file, "--yes")
	if now := b.Reload(t, b.Hotel.ID).Logo; now == before || now == "" {
		t.Errorf("%q", now)
	}
	if out, _ := b.run(0, "brand", "apply", "-f", file, "--yes"); !strings.Contains(out, "as the file says") {
		t.Errorf("twice: %s", out)
	}
	b.run(0, "brand", "apply", "-f", b.file("brand: harbor-hotel\nlogo: ''\n"), "--yes")
	if now := b.Reload(t, b.Hotel.ID).Logo; now != "" {
		t.Errorf("taken away: %q", now)
	}
}
