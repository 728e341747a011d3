package tenants_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

func draft() tenants.ConnectionDraft {
	return tenants.ConnectionDraft{Issuer: "https://login.example", ClientID: "us", Secret: "hush-hush"}
}

func candidate(t *testing.T, w *authoritytest.World, d tenants.ConnectionDraft) (tenants.Connection, error) {
	t.Helper()
	return tenants.SaveCandidate(t.Context(), w.DB, editor(w), w.Master, site, w.Hotel.ID, d)
}

func mustCandidate(t *testing.T, w *authoritytest.World, d tenants.ConnectionDraft) tenants.Connection {
	t.Helper()
	c, err := candidate(t, w, d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Mistakes of a connection are told before anything is tried with it.
func TestConnectionsSayHowToMendThem(t *testing.T) {
	w := authoritytest.New(t)
	ten, year := 10, 366*24*3600
	for name, tt := range map[string]struct {
		change func(*tenants.ConnectionDraft)
		field  string
	}{
		"as it is":              {func(*tenants.ConnectionDraft) {}, ""},
		"plain http":            {func(d *tenants.ConnectionDraft) { d.Issuer = "http://login.example" }, "issuer"},
		"this machine":          {func(d *tenants.ConnectionDraft) { d.Issuer = "http://localhost:9" }, "issuer"},
		"no issuer":             {func(d *tenants.ConnectionDraft) { d.Issuer = "" }, "issuer"},
		"issuer with query":     {func(d *tenants.ConnectionDraft) { d.Issuer += "?x" }, "issuer"},
		"the discovery address": {func(d *tenants.ConnectionDraft) { d.Issuer += "/.well-known/openid-configuration" }, "issuer"},
		"no client":             {func(d *tenants.ConnectionDraft) { d.ClientID = "" }, "client_id"},
		"no secret":             {func(d *tenants.ConnectionDraft) { d.Secret = "" }, "client_secret"},
		"e-mail as id":          {func(d *tenants.ConnectionDraft) { d.SubjectClaim = "Email" }, "subject_claim"},
		"a made-up way":         {func(d *tenants.ConnectionDraft) { d.Auth = "none" }, "auth"},
		"key and secret":        {func(d *tenants.ConnectionDraft) { d.Auth = "private_key_jwt" }, "client_secret"},
		"prompt none":           {func(d *tenants.ConnectionDraft) { d.Prompt = "none" }, "prompt"},
		"max_age":               {func(d *tenants.ConnectionDraft) { d.MaxAge = &ten }, ""},
		"an age":                {func(d *tenants.ConnectionDraft) { d.MaxAge = &year }, "max_age"},
		"two scopes in one":     {func(d *tenants.ConnectionDraft) { d.Scopes = []string{"openid email"} }, "scopes"},
	} {
		d := draft()
		tt.change(&d)
		got := []string{}
		if p := d.Check(site, tenants.Hosts{}); len(p) > 0 {
			got = problemFields(t, p)
		}
		if tt.field == "client_secret" && d.Secret == "" {
			_, err := candidate(t, w, d)
			got = problemFields(t, err)
		}
		if tt.field == "" && len(got) > 0 || tt.field != "" && !slices.Contains(got, tt.field) {
			t.Errorf("%s: problems with %v", name, got)
		}
	}
}

// B62: a candidate stands beside the live connection and takes nobody in before it
// is made live; and the way back is the same step.
func TestCandidateBesideTheLiveOne(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	live := func() string {
		t.Helper()
		c, err := tenants.Login(ctx, w.DB, w.Master, id)
		if err != nil {
			return err.Error()
		}
		return c.Issuer + " " + c.ClientSecret
	}
	first := mustCandidate(t, w, draft())
	if got := live(); got != tenants.ErrNoLogin.Error() {
		t.Errorf("a candidate takes people in: %s", got)
	}
	for range 2 {
		if err := tenants.MakeLive(ctx, edit, site, id, first.ID); err != nil {
			t.Fatal(err)
		}
	}
	d := draft()
	d.Issuer, d.Secret = "https://new.example", "other"
	second := mustCandidate(t, w, d)
	if got := live(); second.ID == first.ID || got != "https://login.example hush-hush" {
		t.Errorf("live is %s", got)
	}
	if got, err := tenants.Candidate(ctx, w.DB, w.Master, id, second.ID); err != nil || got.ClientSecret != "other" {
		t.Errorf("%v %v", got.Issuer, err)
	}
	if err := tenants.RemoveConnection(ctx, edit, id, first.ID); !errors.Is(err, tenants.ErrLive) {
		t.Errorf("removed the live one: %v", err)
	}
	for _, other := range []struct {
		what string
		err  error
	}{
		{"another Brand makes it live", tenants.MakeLive(ctx, edit, site, w.Shop.ID, second.ID)},
		{"another Brand removes it", tenants.RemoveConnection(ctx, edit, w.Shop.ID, second.ID)},
		{"an unknown one", tenants.MakeLive(ctx, edit, site, id, uuid.New())},
	} {
		if !errors.Is(other.err, tenants.ErrNoConnection) {
			t.Errorf("%s: %v", other.what, other.err)
		}
	}
	for _, step := range []struct {
		id   uuid.UUID
		want string
	}{{second.ID, "https://new.example other"}, {first.ID, "https://login.example hush-hush"}} {
		if err := tenants.MakeLive(ctx, edit, site, id, step.id); err != nil {
			t.Fatal(err)
		}
		if got := live(); got != step.want {
			t.Errorf("live is %s, want %s", got, step.want)
		}
	}
	if err := tenants.RemoveConnection(ctx, edit, id, second.ID); err != nil {
		t.Fatal(err)
	}
	all, err := tenants.Connections(ctx, w.DB, id)
	if err != nil || len(all) != 1 || !all[0].Live {
		t.Errorf("%+v, %v", all, err)
	}
	if n := w.Count(t, `SELECT count(*) FROM login_connections WHERE ended_at IS NOT NULL AND client_secret_sealed <> ''`); n != 0 {
		t.Error("the secret of a removed connection is kept")
	}
}

// A secret is written and never read; and it follows the connection nowhere else,
// or whoever may edit one could have it sent to himself.
func TestSecretIsWriteOnlyAndStays(t *testing.T) {
	w := authoritytest.New(t)
	c := mustCandidate(t, w, draft())
	shown, _ := json.Marshal(c)
	if strings.Contains(string(shown), "hush") || w.Count(t, `SELECT count(*) FROM audit_events WHERE detail::text LIKE '%hush%'`) != 0 {
		t.Error("the secret is shown")
	}
	d := draft()
	d.Secret, d.SubjectClaim = "", "guest_number"
	if again := mustCandidate(t, w, d); again.ID != c.ID || again.SubjectClaim != "guest_number" {
		t.Errorf("%+v", again)
	}
	if got, err := tenants.Candidate(t.Context(), w.DB, w.Master, w.Hotel.ID, c.ID); err != nil || got.ClientSecret != "hush-hush" {
		t.Errorf("the secret was lost: %v", err)
	}
	for name, change := range map[string]func(*tenants.ConnectionDraft){
		"another issuer": func(d *tenants.ConnectionDraft) { d.Issuer = "https://evil.example" },
		"another client": func(d *tenants.ConnectionDraft) { d.ClientID = "them" },
	} {
		moved := d
		change(&moved)
		if _, err := candidate(t, w, moved); !slices.Equal(problemFields(t, err), []string{"client_secret"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With private_key_jwt the key is made here; its public half is published, and
// what is published is what signs.
func TestLoginKeyIsPublished(t *testing.T) {
	w := authoritytest.New(t)
	ctx := context.Background()
	d := draft()
	d.Auth, d.Secret = tenants.AuthPrivateKey, ""
	c := mustCandidate(t, w, d)
	key := func() (public map[string]string, private *tenants.LoginKey) {
		t.Helper()
		keys, err := tenants.LoginKeys(ctx, w.DB, w.Hotel.ID)
		if err != nil || len(keys) != 1 {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		if err := json.Unmarshal(keys[0], &public); err != nil {
			t.Fatal(err)
		}
		got, err := tenants.Candidate(ctx, w.DB, w.Master, w.Hotel.ID, c.ID)
		if err != nil || got.Key == nil || got.ClientSecret != "" {
			t.Fatalf("%+v, %v", got.Key, err)
		}
		return public, got.Key
	}
	public, private := key()
	if public["kid"] != private.ID || public["d"] != "" || public["crv"] != "P-256" || public["use"] != "sig" {
		t.Errorf("published %v", public)
	}
	d.Prompt = "login"
	mustCandidate(t, w, d)
	if again, _ := key(); again["kid"] != public["kid"] {
		t.Error("an edit changed the key")
	}
	d.ClientID = "another"
	mustCandidate(t, w, d)
	if again, _ := key(); again["kid"] == public["kid"] {
		t.Error("another client has the same key")
	}
	if keys, err := tenants.LoginKeys(ctx, w.DB, w.Shop.ID); err != nil || len(keys) != 0 {
		t.Errorf("the shop publishes %d keys, %v", len(keys), err)
	}
	mustCandidate(t, w, draft())
	if keys, err := tenants.LoginKeys(ctx, w.DB, w.Hotel.ID); err != nil || len(keys) != 0 {
		t.Errorf("with a secret: %d keys, %v", len(keys), err)
	}
}

// Two who begin a candidate at once: one of them has it.
func TestOneCandidateOnly(t *testing.T) {
	w := authoritytest.New(t)
	done := make(chan error)
	for range 6 {
		go func() {
			_, err := tenants.SaveCandidate(context.Background(), w.DB, editor(w), w.Master, site, w.Hotel.ID, draft())
			done <- err
		}()
	}
	for range 6 {
		if err := <-done; err != nil && !errors.Is(err, tenants.ErrConnectionMoved) {
			t.Error(err)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM login_connections WHERE NOT live AND ended_at IS NULL`); n != 1 {
		t.Errorf("%d candidates", n)
	}
}

// B54: a slip in how the issuer is written is mended without the secret, because it
// is the same server; anything else is another one.
func TestSecretStaysForTheProvidersOwnSpelling(t *testing.T) {
	w := authoritytest.New(t)
	for _, tt := range []struct {
		before, after string
		stays         bool
	}{
		{"https://login.example/x", "https://login.example/x/", true},
		{"https://login.example/x/", "https://login.example/x", true},
		{"https://Login.EXAMPLE", "https://login.example", true},
		{"https://login.example:443", "https://login.example/", true},
		{"https://login.example", "https://login.example:8443", false},
		{"https://login.example", "https://login.example/x", false},
		{"https://login.example/x", "https://login.example/X", false},
		{"https://login.example/x", "https://login.example/x//", false},
		{"https://login.example", "https://login.example.evil.example", false},
		{"https://login.example", "https://login.example%2eevil", false},
	} {
		d := draft()
		d.Issuer = tt.before
		mustCandidate(t, w, d)
		d.Issuer, d.Secret = tt.after, ""
		if _, err := candidate(t, w, d); (err == nil) != tt.stays {
			t.Errorf("%s to %s: %v", tt.before, tt.after, err)
		}
	}
}

// What goes live is what was shown: a candidate that changed meanwhile does not.
func TestWhatGoesLiveIsWhatWasShown(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	shown := mustCandidate(t, w, draft())
	d := draft()
	d.SubjectClaim = "guest_number"
	now := mustCandidate(t, w, d)
	if err := tenants.MakeShownLive(ctx, edit, site, id, shown); !errors.Is(err, tenants.ErrChangeStale) {
		t.Errorf("another one went live: %v", err)
	}
	for range 2 { // twice is once
		if err := tenants.MakeShownLive(ctx, edit, site, id, now); err != nil {
			t.Error(err)
		}
	}
	if l, err := tenants.Login(ctx, w.DB, w.Master, id); err != nil || l.SubjectClaim != "guest_number" {
		t.Errorf("%+v, %v", l.SubjectClaim, err)
	}
}
