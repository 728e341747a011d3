package main

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// typed runs a command line as a shell would.
func typed(t *testing.T, line ...string) (code int, stdout, stderr string) {
	t.Helper()
	for _, c := range commands() {
		if c.name == line[0] {
			var out, errs bytes.Buffer
			code = c.run(t.Context(), line[1:], strings.NewReader(""), &out, &errs)
			return code, out.String(), errs.String()
		}
	}
	t.Fatalf("no command %q", line[0])
	return
}

// serviceURL is the world's database for the service's own role, which is all
// that an operator's commands need.
func serviceURL(t *testing.T, w *authoritytest.World) string {
	t.Helper()
	u, err := url.Parse(w.Owner.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("options", "-c role=countersign_app")
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

// An operation without its object must neither run nor seem to have run.
func TestNoOperationRunsWithoutItsObject(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	database := serviceURL(t, w)
	for line, missing := range map[string][]string{
		"agent add":     {"issuer", "jwks-uri", "name"},
		"agent enable":  {"issuer"},
		"agent allow":   {"brand", "issuer"},
		"agent deny":    {"brand", "issuer"},
		"agent unlist":  {"brand", "issuer"},
		"agent disable": {"issuer"},
		"brand pause":   {"brand"},
		"brand resume":  {"brand"},
		"user suspend":  {"brand", "subject"},
		"user resume":   {"brand", "subject"},
		"user erase":    {"brand", "subject", "yes"},
		"brand export":  {"brand"},
		"keys destroy":  {"brand"},
		"user suspend --brand " + string(w.Hotel.ID): {"subject"},
		"brand close":       {"brand", "yes"},
		"brand close --yes": {"brand"},
		"brand close --brand " + string(w.Hotel.ID): {"yes"},
		"grants list":   {"brand"},
		"grants show":   {"brand", "grant"},
		"audit verify":  {"brand"},
		"audit export":  {"brand"},
		"keys list":     {"brand"},
		"keys rotate":   {"brand"},
		"keys retire":   {"brand", "kid"},
		"keys revoke":   {"brand", "kid", "reason"},
		"member invite": {"brand", "email", "role", "master-key-file"},
		"member remove": {"brand", "id", "master-key-file"},
		"agent show":    {"issuer"},
		"agent logo":    {"issuer"},
		"tenant show":   {"brand"},
		"tenant name":   {"brand", "name"},
		"apikey create": {"brand"},
		"apikey list":   {"brand"},
		"apikey revoke": {"brand", "id"},

		"webhook create":     {"brand", "url", "master-key-file"},
		"endpoint show":      {"brand"},
		"endpoint set":       {"brand", "url", "master-key-file"},
		"endpoint remove":    {"brand", "master-key-file"},
		"endpoint rotate":    {"brand", "master-key-file"},
		"endpoint check":     {"brand", "master-key-file"},
		"webhook list":       {"brand"},
		"webhook rotate":     {"brand", "id", "master-key-file"},
		"webhook disable":    {"brand", "id"},
		"webhook enable":     {"brand", "id"},
		"webhook deliveries": {"brand"},
		"webhook replay":     {"brand", "id"},
	} {
		code, out, errs := typed(t, append(strings.Fields(line), "--database-url", database)...)
		if code != 2 || out != "" || strings.Count(errs, "is required") != len(missing) {
			t.Errorf("%s: exit %d, %q, %q", line, code, out, errs)
		}
		for _, name := range missing {
			if !strings.Contains(errs, "--"+name+" is required") {
				t.Errorf("%s: nothing about --%s: %q", line, name, errs)
			}
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM suspended_users`); n != 0 {
		t.Errorf("%d users are suspended", n)
	}
}

func TestEveryOperationHasAPromise(t *testing.T) {
	for _, noun := range []string{"agent", "brand", "user", "grants", "audit", "keys", "apikey", "webhook", "scope", "detail", "idp", "change", "member", "tenant", "endpoint", "usage"} {
		_, _, about := typed(t, noun)
		verbs, _, _ := strings.Cut(strings.TrimPrefix(about, "countersign "+noun+": "), " --")
		for verb := range strings.SplitSeq(verbs, " | ") {
			if _, ok := promises[noun+" "+verb]; !ok {
				t.Errorf("%s %s: nobody said what it needs", noun, verb)
			}
		}
	}
}

func TestAnUnknownBrandIsSaidToBeUnknown(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	database := serviceURL(t, w)
	for _, line := range []string{
		"brand pause", "brand resume", "user suspend --subject u1", "user resume --subject u1",
		"apikey create", "apikey list", "apikey revoke --id x", "keys list", "keys retire --kid k",
		"brand close --yes --as-operator", "grants list", "grants show --grant x", "grants revoke --subject u1", "audit verify", "audit export",
		"webhook list", "webhook deliveries", "webhook disable --id x", "webhook replay --id x",
	} {
		for _, brand := range []string{"nobody", "Not An Id"} {
			code, out, errs := typed(t, append(strings.Fields(line), "--brand", brand, "--database-url", database)...)
			if code != 1 || out != "" || !strings.Contains(errs, "no such brand") || strings.Contains(errs, "SQLSTATE") {
				t.Errorf("%s: exit %d, %q, %q", line, code, out, errs)
			}
		}
	}
}

// One line says that it is done; data stays data.
func TestSuccessIsSaid(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	database, hotel := serviceURL(t, w), string(w.Hotel.ID)
	picture, saved := filepath.Join(t.TempDir(), "logo.png"), filepath.Join(t.TempDir(), "saved.png")
	var raw bytes.Buffer
	if err := png.Encode(&raw, image.NewGray(image.Rect(0, 0, 9, 9))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(picture, raw.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ line, want string }{
		{"user suspend --subject guest-7 --brand " + hotel, "guest-7 is suspended at " + hotel},
		{"user resume --subject guest-7 --brand " + hotel, "guest-7 is not suspended"},
		{"brand pause --brand " + hotel, hotel + " is paused"},
		{"brand resume --as-operator --brand " + hotel, hotel + " is active"},
		{"agent add --name Bo --issuer https://bo.example --jwks-uri https://bo.example/jwks.json", "https://bo.example (Bo) is registered"},
		{"tenant name --name Harbors --brand " + hotel, "the Provider of " + hotel + " is called"},
		{"agent logo --issuer https://bo.example -f " + picture, "the logo of https://bo.example is changed"},
		{"agent logo --issuer https://bo.example --save " + saved, "the logo of https://bo.example is in " + saved},
		{"agent logo --issuer https://bo.example -f none", "the logo of https://bo.example is changed"},
		{"agent disable --issuer https://bo.example", "https://bo.example is disabled"},
		{"agent enable --issuer https://bo.example", "https://bo.example is enabled"},
		{"agent deny --issuer https://bo.example --brand " + hotel, hotel + " denies https://bo.example"},
		{"agent unlist --issuer https://bo.example --brand " + hotel, hotel + " leaves https://bo.example to its rule"},
		{"agent allow --issuer https://bo.example --brand " + hotel, hotel + " allows https://bo.example"},
	} {
		code, out, errs := typed(t, append(strings.Fields(step.line), "--database-url", database)...)
		if code != 0 || !strings.HasPrefix(out, step.want) || strings.Count(out, "\n") != 1 || errs != "" {
			t.Errorf("%s: exit %d, %q, %q", step.line, code, out, errs)
		}
	}
	if got, err := os.ReadFile(saved); err != nil || !bytes.HasPrefix(got, []byte("\x89PNG")) {
		t.Errorf("saved: %d bytes, %v", len(got), err)
	}
	if code, _, errs := typed(t, "agent", "logo", "--issuer", "https://bo.example", "--database-url", database); code == 0 || !strings.Contains(errs, "name one of -f") {
		t.Errorf("neither set nor saved: exit %d, %q", code, errs)
	}
	if b := w.Reload(t, w.Hotel.ID); b.State != tenants.Active {
		t.Errorf("the hotel is %s", b.State)
	}
	code, key, errs := typed(t, "apikey", "create", "--as-operator", "--brand", hotel, "--database-url", database)
	if code != 0 || strings.Count(key, "\n") != 1 || !strings.HasPrefix(key, "cs_") {
		t.Fatalf("exit %d, %d lines, %q", code, strings.Count(key, "\n"), errs)
	}
	id := strings.Split(key, "_")[1]
	if code, out, errs := typed(t, "apikey", "revoke", "--id", id, "--brand", hotel, "--database-url", database); code != 0 || !strings.Contains(out, id+" of "+hotel+" is revoked") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

func TestAnOperatorsMistakesHaveRemedies(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := "postgres://nobody@" + l.Addr().String() + "/countersign"
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		line string
		code int
		want string
	}{
		{"brand list --database-url " + silent, 1, "Is the database running?"},
		{"brand list --database-url http://localhost:8080", 1, "expected postgres://"},
		{"brand list", 2, "--database-url is required"},
		{"brand", 2, "list | pause | resume | close"},
		{"brand stop", 2, "list | pause | resume | close"},
		{"brand --help", 0, "list | pause | resume | close"},
		{"brand pause --help", 0, "--brand id"},
	} {
		code, out, errs := typed(t, strings.Fields(tt.line)...)
		if code != tt.code || out != "" || !strings.Contains(errs, tt.want) || strings.Contains(errs, "countersign countersign") {
			t.Errorf("%s: exit %d, %q, %q", tt.line, code, out, errs)
		}
	}
}

func TestADatabaseWithoutTablesIsSaidToBeUnprepared(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	w.Exec(t, `DROP TABLE brands CASCADE`)
	code, _, errs := typed(t, "brand", "list", "--database-url", serviceURL(t, w))
	if code != 1 || !strings.Contains(errs, " migrate comes first") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// What the page for operators shows is what the commands take.
func TestTheConsolesCommandsHaveTheFlagsTheyShow(t *testing.T) {
	for _, line := range (frontDoor{}).operations() {
		words := strings.Fields(strings.TrimPrefix(line, "countersign "))
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // whoever comes as far as the database has passed the flags
		for _, c := range commands() {
			if c.name != words[0] {
				continue
			}
			var out, errs bytes.Buffer
			if code := c.run(ctx, words[1:], nil, &out, &errs); code == 2 {
				t.Errorf("%s: %s", line, errs.String())
			}
		}
	}
}

// A next key is made where the Brand's keys are, under the service's own master
// key, or not at all: a mistyped file makes no second secret, and a key in
// another store would come to sign where the service does not look.
func TestKeysAreMadeWhereTheServiceLooks(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	database := serviceURL(t, w)
	mistyped := filepath.Join(t.TempDir(), "mastr.key")
	rotate := []string{"keys", "rotate", "--as-operator", "--brand", string(w.Hotel.ID), "--database-url", database}
	for what, extra := range map[string][]string{
		"no master key":         nil,
		"a mistyped master key": {"--master-key-file", mistyped},
	} {
		if code, _, errs := typed(t, append(rotate, extra...)...); code != 1 || errs == "" {
			t.Errorf("%s: exit %d, %q", what, code, errs)
		}
	}
	if _, err := os.Stat(mistyped); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a second master key was made")
	}
	w.Exec(t, `UPDATE signing_keys SET backend = 'vault' WHERE brand_id = $1`, w.Hotel.ID)
	other := filepath.Join(t.TempDir(), "master.key")
	if _, err := signing.LoadMaster(other); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := typed(t, append(rotate, "--master-key-file", other)...); code != 1 || !strings.Contains(errs, "--vault-addr") {
		t.Errorf("a Brand in Vault: exit %d, %q", code, errs)
	}
	if n := w.Count(t, `SELECT count(*) FROM signing_keys WHERE state = 'next'`); n != 0 {
		t.Errorf("%d next keys were made", n)
	}
	for _, flags := range [][]string{
		{"--vault-addr", "http://127.0.0.1:1", "--vault-name", "local"},
		{"--vault-addr", "http://127.0.0.1:1", "--former-vault-addr", "http://127.0.0.1:2"},
	} {
		if code, _, errs := typed(t, append(rotate, flags...)...); code != 1 || !strings.Contains(errs, "-name") {
			t.Errorf("%v: exit %d, %q", flags, code, errs)
		}
	}
}

// What an operator does to an agent or a key stands in the trail.
func TestOperatorsLeaveATrail(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	database := serviceURL(t, w)
	keys, err := w.Keys.List(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	next, err := w.Keys.Prepare(t.Context(), w.Hotel.ID, keys[0].Backend, keys[0].Alg)
	if err != nil {
		t.Fatal(err)
	}
	for event, line := range map[string][]string{
		"agent.disabled": {"agent", "disable", "--issuer", authoritytest.Agent},
		"key.retired":    {"keys", "retire", "--as-operator", "--brand", string(w.Hotel.ID), "--kid", next.KID},
	} {
		if code, _, stderr := typed(t, append(line, "--database-url", database)...); code != 0 {
			t.Fatalf("%v: %d %s", line, code, stderr)
		}
		n := w.Count(t, `SELECT count(*) FROM audit_events
			WHERE brand_id = 'harbor-hotel' AND event = $1 AND actor = 'operator' AND channel = 'cli'`, event)
		if n != 1 {
			t.Errorf("%s stands %d times in the trail", event, n)
		}
	}
}

// An operator approves the application that he looked at, and no other.
func TestAnApplicationIsApprovedAsItWasSeen(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	database := serviceURL(t, w)
	w.Exec(t, `INSERT INTO agent_applications (issuer, jwks_uri, name, contact, logo_hash, asked_at, state)
		VALUES ('https://bo.example', 'https://bo.example/jwks.json', 'Bo', 'ops@bo.example', '', now(), 'pending')`)
	approve := func(more ...string) (int, string) {
		code, _, errs := typed(t, append([]string{"agent", "approve", "--issuer", "https://bo.example", "--database-url", database}, more...)...)
		return code, errs
	}
	if code, errs := approve(); code != 2 || !strings.Contains(errs, "--seen is required") || !strings.Contains(errs, "agent pending") {
		t.Errorf("unseen: exit %d, %q", code, errs)
	}
	_, out, _ := typed(t, "agent", "pending", "--database-url", database)
	words := strings.Fields(out)
	seen := words[len(words)-1]
	w.Exec(t, `UPDATE agent_applications SET name = 'Your Bank'`)
	if code, errs := approve("--seen", seen); code != 1 || !strings.Contains(errs, "not as it was seen") || !strings.Contains(errs, "agent pending") {
		t.Errorf("changed since: exit %d, %q", code, errs)
	}
	w.Exec(t, `UPDATE agent_applications SET name = 'Bo'`)
	if code, errs := approve("--seen", seen); code != 0 {
		t.Errorf("as seen: exit %d, %q", code, errs)
	}
}

// Whoever approves an agent lets it in at every Brand, and reads it in a terminal: a
// host that is drawn otherwise stands there in both forms, whom it could be taken
// for is said, and what strangers wrote is quoted.
func TestOperatorsSeeWhomAnAgentPassesFor(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	database := serviceURL(t, w)
	w.Exec(t, `UPDATE brands SET interface_url = 'https://agents.hotel.example/a2a' WHERE id = 'harbor-hotel'`)
	apply := func(issuer, name string) {
		w.Exec(t, `INSERT INTO agent_applications (issuer, jwks_uri, name, contact, logo_hash, asked_at, state)
			VALUES ($1, $1 || '/jwks.json', $2, 'ops@bo.example', '', now(), 'pending')`, issuer, name)
	}
	apply("https://xn--gent-43d.example", "Bo") // a Cyrillic а
	apply("https://agents.h0tel.example", "Harb0r Hotel Support")
	apply("https://plain.example", "Zoe\u202e x") // as it could be written before
	lines := func(argv ...string) map[string]string {
		t.Helper()
		code, out, errs := typed(t, append(argv, "--database-url", database)...)
		if code != 0 {
			t.Fatalf("%v: exit %d, %s", argv, code, errs)
		}
		got := make(map[string]string)
		for _, line := range strings.Split(out, "\n") {
			issuer, rest, _ := strings.Cut(line, " ")
			got[issuer] = rest
		}
		return got
	}
	has := func(what, line string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(line, word) {
				t.Errorf("%s: %q is not in %q", what, word, line)
			}
		}
	}
	got := lines("agent", "pending")
	has("in another alphabet", got["https://xn--gent-43d.example"], `"аgent.example"`, "host like agent "+authoritytest.Agent)
	has("like a Brand", got["https://agents.h0tel.example"], "name like Brand harbor-hotel", "host like Brand harbor-hotel")
	has("like nobody", got["https://plain.example"], `"Zoe\u202e x"`)
	if plain := got["https://plain.example"]; strings.Contains(plain, " like ") {
		t.Errorf("like nobody: %q", plain)
	}

	w.Exec(t, `INSERT INTO agents (issuer, jwks_uri, name, enabled, test, contact, created_at, updated_at)
		SELECT issuer, jwks_uri, name, true, false, contact, asked_at, asked_at FROM agent_applications`)
	w.Exec(t, `UPDATE brands SET agents = 'registered' WHERE id = 'harbor-hotel'`)
	for _, argv := range [][]string{{"agent", "list"}, {"agent", "list", "--brand", "harbor-hotel", "--search", "gent"}} {
		got := lines(argv...)
		has("in another alphabet", got["https://xn--gent-43d.example"], `"аgent.example"`, "host like agent "+authoritytest.Agent)
		has("like a Brand", got["https://agents.h0tel.example"], `"Harb0r Hotel Support"`, "name like Brand harbor-hotel", "host like Brand harbor-hotel")
		has("the one it is like", got[authoritytest.Agent], "host like agent https://xn--gent-43d.example")
	}
	has("quoted", lines("agent", "list")["https://plain.example"], `"Zoe\u202e x"`)
	has("quoted", lines("agent", "list", "--brand", "harbor-hotel")["https://plain.example"], `"Zoe\u202e x"`)
}
