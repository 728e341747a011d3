package demoidp_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"countersign.dev/consent/federation/demoidp"
)

func TestAPersonSignsIn(t *testing.T) {
	t.Parallel()
	p := start(t)
	rp, b := discover(t, p), newBrowser(t)
	began := time.Now()

	shown := b.open(t, rp.authURL())
	if shown.status != http.StatusOK || find(shown.page, "input", "username") == nil || find(shown.page, "input", "password") == nil {
		t.Fatalf("no login form at %s", shown.at)
	}
	back := b.signIn(t, shown, "alex", "tide")
	if back.callback.Get("state") != "s-1" || back.callback.Get("iss") != p.Issuer() {
		t.Errorf("came back with %v", back.callback)
	}
	got := rp.redeem(t, back.callback.Get("code"))
	if since := time.Unix(got.AuthTime, 0).Sub(began); since < -2*time.Second || since > time.Minute {
		t.Errorf("auth_time is %v from the login", since)
	}
	got.AuthTime = 0
	want := claims{Subject: "u-1", Email: "alex@harbor.example", Username: "alex", Name: "Alex Reed", Customer: "C-77", Nonce: "n-1"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestASecondLoginIsSilentUnlessAFreshOneIsAskedFor(t *testing.T) {
	t.Parallel()
	p := start(t)
	rp, b := discover(t, p), newBrowser(t)
	b.signIn(t, b.open(t, rp.authURL()), "alex", "tide")
	for _, tt := range []struct {
		name   string
		extra  []string
		silent bool
	}{
		{"plain", nil, true},
		{"prompt=none", []string{"prompt", "none"}, true},
		{"young enough", []string{"max_age", "3600"}, true},
		{"max_age=0", []string{"max_age", "0"}, false},
		{"prompt=login", []string{"prompt", "login"}, false},
		{"both", []string{"prompt", "login", "max_age", "0"}, false},
		{"another account", []string{"prompt", "select_account"}, false},
	} {
		if got := b.open(t, rp.authURL(tt.extra...)); (got.callback.Get("code") != "") != tt.silent {
			t.Errorf("%s: silent is not %v", tt.name, tt.silent)
		}
	}
	// Another person at the same browser.
	back := b.signIn(t, b.open(t, rp.authURL("max_age", "0")), "kim", "pier")
	if got := rp.redeem(t, back.callback.Get("code")); got.Subject != "u-2" {
		t.Errorf("signed in as %s", got.Subject)
	}
	if got := rp.redeem(t, b.open(t, rp.authURL()).callback.Get("code")); got.Subject != "u-2" {
		t.Errorf("the old session came back: %s", got.Subject)
	}
}

func TestNoPromptWithoutASessionIsRefused(t *testing.T) {
	t.Parallel()
	rp, b := discover(t, start(t)), newBrowser(t)
	if got := b.open(t, rp.authURL("prompt", "none")); got.callback.Get("error") != "login_required" || got.callback.Get("state") != "s-1" {
		t.Errorf("came back with %v", got.callback)
	}
}

func TestAWrongPasswordKeepsTheName(t *testing.T) {
	t.Parallel()
	rp, b := discover(t, start(t)), newBrowser(t)
	shown := b.signIn(t, b.open(t, rp.authURL()), "alex", "wrong")
	if shown.status != http.StatusUnauthorized || find(shown.page, "p", "wrong") == nil {
		t.Errorf("status %d, no error shown", shown.status)
	}
	if got := attr(find(shown.page, "input", "username"), "value"); got != "alex" {
		t.Errorf("name is %q", got)
	}
	if got := attr(find(shown.page, "input", "password"), "value"); got != "" {
		t.Errorf("the password came back: %q", got)
	}
	if back := b.signIn(t, shown, "alex", "tide"); back.callback.Get("code") == "" {
		t.Error("the second try did not work")
	}
}

func TestCancelGoesBackWithARefusal(t *testing.T) {
	t.Parallel()
	p := start(t)
	rp, b := discover(t, p), newBrowser(t)
	shown := b.open(t, rp.authURL())
	link, err := shown.at.Parse(attr(find(shown.page, "a", ""), "href"))
	if err != nil {
		t.Fatal(err)
	}
	back := b.open(t, link.String()).callback
	if back.Get("error") != "access_denied" || back.Get("state") != "s-1" || back.Get("iss") != p.Issuer() {
		t.Errorf("came back with %v", back)
	}
	if again := b.open(t, link.String()); again.status != http.StatusNotFound {
		t.Errorf("the cancelled request is still there: %d", again.status)
	}
}

func TestHintsReachThePage(t *testing.T) {
	t.Parallel()
	rp, b := discover(t, start(t)), newBrowser(t)
	shown := b.open(t, rp.authURL("login_hint", `kim"><b>`, "ui_locales", "fr de en"))
	if got := attr(find(shown.page, "input", "username"), "value"); got != `kim"><b>` {
		t.Errorf("hint is %q", got)
	}
	if got := attr(find(shown.page, "html", ""), "lang"); got != "de" {
		t.Errorf("language is %q", got)
	}
}

func TestThePageIsGuarded(t *testing.T) {
	t.Parallel()
	rp, b := discover(t, start(t)), newBrowser(t)
	shown := b.open(t, rp.authURL())
	policy := shown.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self' http://localhost:1"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if find(shown.page, "script", "") != nil || find(shown.page, "style", "") != nil {
		t.Error("the page has a script or a style of its own")
	}
	// Another site posts its own account into the person's login.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shown.at.String(), strings.NewReader("username=kim&password=pier"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	response, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("status %d for a foreign post", response.StatusCode)
	}
}

func TestACodeIsGoodForOneClientOnceWithItsVerifier(t *testing.T) {
	t.Parallel()
	rp, b := discover(t, start(t)), newBrowser(t)
	b.signIn(t, b.open(t, rp.authURL()), "alex", "tide")
	code := func() string { return b.open(t, rp.authURL()).callback.Get("code") }

	stranger := rp
	stranger.config.ClientSecret = "guess"
	if _, err := stranger.config.Exchange(t.Context(), code(), oauth2.VerifierOption(rp.verifier)); err == nil {
		t.Error("redeemed with a wrong secret")
	}
	tried := code()
	if _, err := rp.config.Exchange(t.Context(), tried, oauth2.VerifierOption(oauth2.GenerateVerifier())); err == nil {
		t.Error("redeemed with a wrong verifier")
	}
	if _, err := rp.config.Exchange(t.Context(), tried, oauth2.VerifierOption(rp.verifier)); err == nil {
		t.Error("redeemed after a wrong verifier")
	}
	used := code()
	rp.redeem(t, used)
	if _, err := rp.config.Exchange(t.Context(), used, oauth2.VerifierOption(rp.verifier)); err == nil {
		t.Error("redeemed twice")
	}
	plain := rp.config.AuthCodeURL("s-1")
	if got := b.open(t, plain); got.callback.Get("error") != "invalid_request" || got.callback.Get("state") != "s-1" {
		t.Errorf("without PKCE: %v", got.callback)
	}
}

func TestOnlyTheRegisteredRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	p := start(t)
	rp, b := discover(t, p), newBrowser(t)
	for _, uri := range []string{redirectURI + "/", redirectURI + "?x=1", "http://localhost:2/callback", "http://evil.example/callback"} {
		other := rp
		other.config.RedirectURL = uri
		if got := b.open(t, other.authURL()); got.status != http.StatusBadRequest || got.callback != nil {
			t.Errorf("%s: status %d, %v", uri, got.status, got.callback)
		}
	}
	p.SetRedirectURIs(redirectURI + "?x=1")
	rp.config.RedirectURL = redirectURI + "?x=1"
	if got := b.open(t, rp.authURL()); got.status != http.StatusOK {
		t.Errorf("the new redirect URI is not known: %d", got.status)
	}
}

// Two providers in one process, as `countersign dev` runs them.
func TestProvidersDoNotShareASession(t *testing.T) {
	t.Parallel()
	one, two := start(t), start(t)
	b := newBrowser(t)
	rp1, rp2 := discover(t, one), discover(t, two)
	b.signIn(t, b.open(t, rp1.authURL()), "alex", "tide")
	if got := b.open(t, rp2.authURL()); got.callback != nil {
		t.Error("a login at one provider counted at the other")
	}
	b.signIn(t, b.open(t, rp2.authURL()), "kim", "pier")
	if got := rp1.redeem(t, b.open(t, rp1.authURL()).callback.Get("code")); got.Subject != "u-1" {
		t.Errorf("signed in as %s", got.Subject)
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	t.Parallel()
	p, err := demoidp.New(demoidp.Config{Name: "Harbor Hotel", ClientID: "c", ClientSecret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := p.Start(l); err == nil {
		p.Close()
		t.Error("it listens to the network")
	}
}

func TestMistakesAreNamedTogether(t *testing.T) {
	t.Parallel()
	_, err := demoidp.New(demoidp.Config{Colour: "red;}", Users: []demoidp.User{{Username: "x"}}})
	for _, want := range []string{"client id", "colour", `user "x"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// R40: the library logs refused requests, and we cannot choose where to.
//
// Not parallel: it replaces the process's logger.
func TestNoStateOrCodeIsLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(before)

	p := start(t)
	rp, b := discover(t, p), newBrowser(t)
	back := b.signIn(t, b.open(t, rp.authURL()), "alex", "tide")
	code := back.callback.Get("code")
	rp.redeem(t, code)
	if _, err := rp.config.Exchange(t.Context(), code, oauth2.VerifierOption(rp.verifier)); err == nil {
		t.Error("redeemed twice")
	}
	// A refusal that the library answers itself.
	if got := b.open(t, rp.config.AuthCodeURL("s-1")); got.callback.Get("state") != "s-1" {
		t.Errorf("came back with %v", got.callback)
	}
	if log.Len() == 0 {
		t.Fatal("nothing was logged: nothing is tested here")
	}
	for _, secret := range []string{"s-1", code, rp.verifier, "tide", "shared", "alex"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log:\n%s", secret, log.String())
		}
	}
}

func TestFaultsDoWhatTheySay(t *testing.T) {
	t.Parallel()
	p := start(t)
	rp, b := discover(t, p), newBrowser(t)
	back := b.signIn(t, b.open(t, rp.authURL()), "alex", "tide")
	rp.redeem(t, back.callback.Get("code"))
	silent := func() url.Values { return b.open(t, rp.authURL()).callback }
	raw := func() string {
		token, err := rp.config.Exchange(t.Context(), silent().Get("code"), oauth2.VerifierOption(rp.verifier))
		if err != nil {
			t.Fatal(err)
		}
		id, _ := token.Extra("id_token").(string)
		return id
	}
	verify := func(id string) (*oidc.IDToken, error) {
		fresh, err := oidc.NewProvider(context.WithoutCancel(t.Context()), p.Issuer())
		if err != nil {
			t.Fatal(err)
		}
		return fresh.Verifier(&oidc.Config{ClientID: "countersign", SupportedSigningAlgs: []string{"RS256", "HS256"}}).Verify(t.Context(), id)
	}

	p.SetFaults(demoidp.Faults{AuthorizeError: "server_error", AuthorizeErrorDescription: "<b>", OmitState: true, ResponseIssuer: "https://other.example"})
	if got := silent(); got.Get("error") != "server_error" || got.Get("error_description") != "<b>" || got.Has("state") || got.Get("iss") != "https://other.example" {
		t.Errorf("authorize error: %v", got)
	}
	if got := silent(); got.Has("error") {
		t.Errorf("the error was answered twice: %v", got)
	}
	p.SetFaults(demoidp.Faults{OmitIssuer: true})
	if got := silent(); got.Has("iss") || got.Get("state") != "s-1" {
		t.Errorf("omitted iss: %v", got)
	}

	p.SetFaults(demoidp.Faults{ClockOffset: 90 * time.Second, EditIDToken: func(c map[string]any) { c["nonce"] = "other" }})
	token, err := verify(raw())
	if err != nil {
		t.Fatal(err)
	}
	if ahead := time.Until(token.IssuedAt); ahead < 80*time.Second || token.Nonce != "other" {
		t.Errorf("iat %v ahead, nonce %q", ahead, token.Nonce)
	}
	for _, alg := range []string{"none", "HS256"} {
		p.SetFaults(demoidp.Faults{SignAs: alg})
		if _, err := verify(raw()); err == nil {
			t.Errorf("%s verifies", alg)
		}
	}

	p.SetFaults(demoidp.Faults{})
	before := raw()
	if err := p.RotateKeys(true); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(before); err != nil {
		t.Errorf("the old key is gone too early: %v", err)
	}
	if err := p.RotateKeys(false); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(before); err == nil {
		t.Error("the old key is still there")
	}
	if _, err := verify(raw()); err != nil {
		t.Errorf("the new key does not verify: %v", err)
	}

	p.SetFaults(demoidp.Faults{Discovery: demoidp.Answer{Status: 500, Body: "garbage"}, JWKS: demoidp.Answer{Hang: true}})
	hits := p.Hits(demoidp.PathDiscovery)
	response, err := b.Get(p.Issuer() + demoidp.PathDiscovery)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != 500 || string(text) != "garbage" || p.Hits(demoidp.PathDiscovery) != hits+1 {
		t.Errorf("discovery: %d %q", response.StatusCode, text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Issuer()+demoidp.PathJWKS, nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := b.Do(r); err == nil {
		response.Body.Close()
		t.Error("the keys were answered")
	}
}
