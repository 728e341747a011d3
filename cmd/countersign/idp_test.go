package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/consent/federation/logintest"
	"countersign.dev/tenants"
)

// An operator sets, checks and makes live the Brand's own login page, and a file
// of the Brand carries it.
func TestALoginPageFromTheCommandLine(t *testing.T) {
	w := authoritytest.NewAt(t, time.Now())
	page, err := logintest.Start(logintest.Config{Back: "https://countersign.example"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = page.Close() })
	master := filepath.Join(t.TempDir(), "master.key")
	if _, err := signing.LoadMaster(master); err != nil {
		t.Fatal(err)
	}
	run := func(want int, words ...string) string {
		t.Helper()
		words = append(words, "--brand", string(w.Hotel.ID), "--allow-loopback", "--database-url", serviceURL(t, w))
		code, out, errs := typed(t, words...)
		if code != want {
			t.Fatalf("%s: exit %d\n%s%s", strings.Join(words[:2], " "), code, out, errs)
		}
		return out + errs
	}
	set := []string{"idp", "set", "--kind", "assertion", "--issuer", page.Issuer()} // nothing is sealed
	if said := run(2, set...); !strings.Contains(said, "--jwks-uri") || !strings.Contains(said, "--login-url") || strings.Contains(said, "--client-id") {
		t.Errorf("what is missing: %s", said)
	}
	set = append(set, "--jwks-uri", page.JWKSURI(), "--login-url", page.ConnectedURL())
	if said := run(1, append(set, "--client-id", "us", "--login-origin", page.Issuer()+"/")...); !strings.Contains(said, "client_id: is of no use") || !strings.Contains(said, "login_origin: ") {
		t.Errorf("mistakes: %s", said)
	}
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(run(0, set...))
	if said := run(0, "idp", "check", "--id", id, "--master-key-file", master); !strings.Contains(said, "jwks_uri") || strings.Contains(said, "bad") {
		t.Errorf("checked: %s", said)
	}
	page.Break(true)
	if said := run(1, "idp", "check", "--id", id, "--master-key-file", master); !strings.Contains(said, "publish a JWK set") {
		t.Errorf("checked without keys: %s", said)
	}
	run(0, "idp", "live", "--id", id, "--as-operator")
	if said := run(0, "idp", "list"); !strings.Contains(said, "live") || !strings.Contains(said, "assertion") || !strings.Contains(said, page.ConnectedURL()) {
		t.Errorf("listed: %s", said)
	}
	try := []string{"idp", "try", "--public-url", "http://localhost:8080", "--master-key-file", master, "--id"}
	if said := run(1, append(try, id)...); !strings.Contains(said, "own login page") {
		t.Errorf("tried: %s", said)
	}
	provider := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(run(0, "idp", "set", "--issuer", "http://127.0.0.1:1", "--client-id", "us", "--auth", "private_key_jwt", "--master-key-file", master))
	if said := run(1, append(try, provider)...); !strings.Contains(said, "it does not work: unreachable") {
		t.Errorf("tried: %s", said)
	}
	run(1, "idp", "tried", "--id", provider) // no try
	run(2, "idp", "tried")
	file := filepath.Join(t.TempDir(), "brand.yaml")
	shown := run(0, "brand", "show")
	if !strings.Contains(shown, "kind: assertion") || !strings.Contains(shown, "login_url: "+page.ConnectedURL()) {
		t.Fatalf("shown: %s", shown)
	}
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	apply := func() string {
		code, out, errs := typed(t, "brand", "apply", "-f", file, "--allow-loopback", "--yes", "--as-operator", "--master-key-file", master, "--database-url", serviceURL(t, w))
		if code != 0 {
			t.Fatalf("apply: exit %d\n%s%s", code, out, errs)
		}
		return out
	}
	save(shown)
	if said := apply(); strings.Contains(said, "login:") {
		t.Errorf("the same again is a change: %s", said)
	}
	save(strings.Replace(shown, "login_url: "+page.ConnectedURL(), "login_url: "+page.LoginURL(), 1))
	if said := apply(); !strings.Contains(said, "login: on the Brand's own page "+page.LoginURL()) {
		t.Errorf("another page: %s", said)
	}
	l, err := tenants.Login(t.Context(), w.DB, w.Master, w.Hotel.ID)
	if err != nil || l.LoginURL != page.LoginURL() {
		t.Errorf("%+v, %v", l, err)
	}
}
