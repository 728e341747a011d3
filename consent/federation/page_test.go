package federation

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"countersign.dev/consent/federation/logintest"
)

const pageAudience = "https://countersign.example/b/harbor-hotel/consent"

var visitor = logintest.User{Username: "alex", Subject: "C-77", Email: "alex@harbor.example"}

func startPage(t *testing.T, now *clock) *logintest.Page {
	t.Helper()
	p, err := logintest.Start(logintest.Config{Back: "https://countersign.example", Users: []logintest.User{visitor}, Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func pageOf(p *logintest.Page) Page {
	return Page{Brand: "harbor-hotel", Issuer: p.Issuer(), JWKSURI: p.JWKSURI(), LoginURL: p.LoginURL(), AllowLoopbackHTTP: true}
}

// take verifies an honest assertion, signed by the key.
func take(c *Client, page Page, p *logintest.Page, key logintest.Key) error {
	_, err := c.Assertion(context.Background(), page, key.Sign(map[string]any{}, p.Claims(pageAudience, visitor, "WDJB-MJHT")), pageAudience)
	return err
}

func TestAnAssertionSaysWhoAndForWhat(t *testing.T) {
	t.Parallel()
	now := newClock()
	p := startPage(t, now)
	c := newClient(t, now)
	for _, key := range []logintest.Key{p.Key(), logintest.NewRSAKey("rsa", 2048)} {
		p.Rotate(key)
		now.turn(cooldown)
		text := p.Assert(pageAudience, visitor, "wdjbmjht", func(c map[string]any) { c["name"] = "Somebody else" })
		a, err := c.Assertion(t.Context(), pageOf(p), text, pageAudience)
		if err != nil {
			t.Fatalf("%s: %v", key.Alg, err)
		}
		if a.Subject != "C-77" || a.Account != "alex@harbor.example" || a.UserCode != "wdjbmjht" || a.ID == "" ||
			!a.AuthTime.Equal(now.Now().Truncate(time.Second)) || !a.Expires.Equal(a.AuthTime.Add(2*time.Minute+skew)) {
			t.Errorf("%+v", a)
		}
	}
	for name, email := range map[string]any{"none": nil, "no text": 7, "direction marks": "\u202ealex\u202c"} {
		text := p.Assert(pageAudience, visitor, "", func(c map[string]any) { c["email"] = email })
		a, err := c.Assertion(t.Context(), pageOf(p), text, pageAudience)
		if err != nil || strings.ContainsAny(a.Account, "\u202e\u202c") || a.Account == "" {
			t.Errorf("%s: %q, %v", name, a.Account, err)
		}
	}
}

// The signature is looked at with no key but the page's own of the right kind.
func TestOtherKeysProveNothing(t *testing.T) {
	t.Parallel()
	now := newClock()
	p := startPage(t, now)
	own := p.Key()
	small := logintest.NewRSAKey("small", 1024)
	p.Rotate(small, own)
	is(t, "small RSA", take(newClient(t, now), pageOf(p), p, small), ErrInvalid)
	is(t, "beside a good one", take(newClient(t, now), pageOf(p), p, own), nil)
	// Without a good one there is nothing to go by, and the Brand must act.
	p.Rotate(small)
	is(t, "small RSA alone", take(newClient(t, now), pageOf(p), p, small), ErrMisconfigured)

	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]any{
		"another curve": &curve.PublicKey,
		"huge RSA":      &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), largestRSA), E: 65537},
		"Ed25519":       ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)),
	} {
		_, err := forAssertions([]publicKey{{Key: key}})
		is(t, name, err, ErrMisconfigured)
	}
}

// As agents' keys: a key that is not known is looked for once per cooldown, and
// found after a rotation.
func TestAnUnknownKeyIsLookedForOncePerCooldown(t *testing.T) {
	t.Parallel()
	now := newClock()
	p := startPage(t, now)
	c, page := newClient(t, now), pageOf(p)
	is(t, "first", take(c, page, p, p.Key()), nil)
	for range 10 {
		is(t, "a made-up key", take(c, page, p, logintest.NewKey(rand.Text())), ErrInvalid)
	}
	if hits := p.Hits(); hits != 2 {
		t.Errorf("fetched %d times", hits)
	}
	// Another Brand at the same address has a cooldown of its own.
	fresh := logintest.NewKey("second")
	p.Rotate(fresh)
	neighbour := page
	neighbour.Brand = "fern-and-fell"
	is(t, "the neighbour", take(c, neighbour, p, fresh), nil)
	is(t, "within the cooldown", take(c, page, p, fresh), ErrInvalid)
	now.turn(cooldown)
	is(t, "after it", take(c, page, p, fresh), nil)
}

// A failed fetch keeps the old keys, for a day at most.
func TestOldKeysGoOnWhileTheNewCannotBeHad(t *testing.T) {
	t.Parallel()
	now := newClock()
	p := startPage(t, now)
	c, page := newClient(t, now), pageOf(p)
	key := p.Key()
	is(t, "first", take(c, page, p, key), nil)
	p.Break(true)
	now.turn(23 * time.Hour)
	is(t, "broken", take(c, page, p, key), nil)
	is(t, "a foreign key meanwhile", take(c, page, p, logintest.NewKey("x")), ErrInvalid)
	hits := p.Hits()
	for range 5 {
		is(t, "again", take(c, page, p, key), nil)
	}
	if p.Hits() != hits {
		t.Error("a server that fails is asked by every login")
	}
	now.turn(time.Hour + time.Second)
	is(t, "for more than a day", take(c, page, p, key), ErrUnreachable)
	p.Break(false)
	now.turn(cooldown)
	is(t, "there again", take(c, page, p, key), nil)
	// A key that the Brand took away is not believed for long.
	p.Rotate(logintest.NewKey("second"))
	now.turn(keysLife)
	is(t, "taken away", take(c, page, p, key), ErrInvalid)
}

// R69: one Brand's page that hangs costs another nothing.
func TestAHangingPageIsItsOwnBrandsTrouble(t *testing.T) {
	t.Parallel()
	now := newClock()
	healthy, hanging := startPage(t, now), startPage(t, now)
	release := hanging.Hang()
	defer release()
	c := newClient(t, now)
	c.patience = quick
	ended := make(chan error)
	other := pageOf(hanging)
	other.Brand = "fern-and-fell"
	go func() { ended <- take(c, other, hanging, hanging.Key()) }()
	is(t, "the healthy one", take(c, pageOf(healthy), healthy, healthy.Key()), nil)
	is(t, "the hanging one", <-ended, ErrUnreachable)
}

func TestExaminePageSaysWhatToMend(t *testing.T) {
	t.Parallel()
	now := newClock()
	p := startPage(t, now)
	c := newClient(t, now)
	state := func(page Page) map[string]string {
		out := make(map[string]string)
		for _, f := range c.ExaminePage(t.Context(), page) {
			out[f.Field] = f.State
			if f.State != fine && f.Mend == "" {
				t.Errorf("%s is %s, and nobody says what to do", f.Field, f.State)
			}
		}
		return out
	}
	good := pageOf(p)
	for name, tt := range map[string]struct {
		change        func(*Page)
		keys, loginAt string
	}{
		"as it is":         {func(*Page) {}, fine, warning}, // without return_to this page answers 400
		"no keys there":    {func(g *Page) { g.JWKSURI = p.Issuer() + "/nothing" }, bad, warning},
		"plain http":       {func(g *Page) { g.JWKSURI = "http://login.example/jwks.json" }, bad, warning},
		"nobody there":     {func(g *Page) { g.JWKSURI, g.LoginURL = "http://127.0.0.1:1/", "http://127.0.0.1:1/" }, bad, warning},
		"a page":           {func(g *Page) { g.LoginURL = p.ConnectedURL() }, fine, fine},
		"no page's scheme": {func(g *Page) { g.LoginURL = "ftp://login.example/" }, fine, bad},
	} {
		page := good
		tt.change(&page)
		if got := state(page); got["jwks_uri"] != tt.keys || got["login_url"] != tt.loginAt {
			t.Errorf("%s: %v", name, got)
		}
	}
	p.Rotate(logintest.NewRSAKey("small", 1024))
	if got := state(good); got["jwks_uri"] != bad {
		t.Errorf("a small key: %v", got)
	}
	p.Rotate(logintest.NewKey(""), logintest.NewKey("b"))
	if got := state(good); got["jwks_uri"] != warning {
		t.Errorf("one of two without kid: %v", got)
	}
}

// One text has one reading: whatever parts takes, written again from what it read,
// has the same bytes in its signed part.
func FuzzParts(f *testing.F) {
	now := newClock()
	key := logintest.NewKey("k")
	f.Add(key.Sign(map[string]any{}, map[string]any{"iss": "x", "iat": now.Now().Unix()}))
	f.Add("e30.e30.AA")
	f.Add("e30=.e30.AA")
	f.Fuzz(func(t *testing.T, text string) {
		header, payload, err := parts(text)
		if err != nil {
			if !errors.Is(err, errCompact) || header != nil && payload != nil {
				t.Errorf("%v, with %v and %v", err, header, payload)
			}
			return
		}
		if len(text) > longestAssertion || strings.Count(text, ".") != 2 || strings.ContainsAny(text, "=+/ \r\n\t") {
			t.Errorf("taken: %q", text)
		}
	})
}
