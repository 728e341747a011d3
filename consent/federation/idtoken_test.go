package federation

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/consent/federation/demoidp"
)

// R68, B54, B86, P22 (the ID token): everything about the ID token is checked.
func TestTheIDTokenIsVerified(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	at := func(d time.Duration) int64 { return now.Now().Add(d).Unix() }
	const beyond = 31 * time.Second
	set := func(name string, value any) func(map[string]any) {
		return func(c map[string]any) { c[name] = value }
	}
	unset := func(name string) func(map[string]any) {
		return func(c map[string]any) { delete(c, name) }
	}
	for _, tt := range []struct {
		name string
		edit func(map[string]any)
		want error
	}{
		{"as it is", func(map[string]any) {}, nil},
		{"another issuer", set("iss", "https://other.example"), ErrInvalid},
		{"issuer with a slash", set("iss", p.Issuer()+"/"), ErrInvalid},
		{"issuer in capitals", set("iss", strings.ToUpper(p.Issuer())), ErrInvalid},
		{"no issuer", unset("iss"), ErrInvalid},
		{"another audience", set("aud", "another-client"), ErrInvalid},
		{"no audience", unset("aud"), ErrInvalid},
		{"one audience, unnamed party", unset("azp"), nil},
		{"two audiences, ours the party", set("aud", []string{"api", "countersign"}), nil},
		{"two audiences, another party", func(c map[string]any) {
			c["aud"], c["azp"] = []string{"countersign", "another-client"}, "another-client"
		}, ErrInvalid},
		{"two audiences, unnamed party", func(c map[string]any) {
			c["aud"] = []string{"countersign", "another-client"}
			delete(c, "azp")
		}, ErrInvalid},
		{"another party", set("azp", "another-client"), ErrInvalid},
		{"a party that is no text", set("azp", 7), ErrInvalid},
		{"another nonce", set("nonce", "another"), ErrInvalid},
		{"no nonce", unset("nonce"), ErrInvalid},
		{"an empty nonce", set("nonce", ""), ErrInvalid},
		{"another access token's", set("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"), ErrInvalid},
		{"no at_hash", unset("at_hash"), nil},
		{"issued 29 s ahead", set("iat", at(29*time.Second)), nil},
		{"issued 31 s ahead", set("iat", at(beyond+time.Second)), ErrInvalid},
		{"issued 31 s ago", set("iat", at(-beyond)), nil},
		{"no iat", unset("iat"), ErrInvalid},
		{"expired 29 s ago", set("exp", at(-29*time.Second)), nil},
		{"expired 31 s ago", set("exp", at(-beyond)), ErrInvalid},
		{"no exp", unset("exp"), ErrInvalid},
		{"valid in 29 s", set("nbf", at(29*time.Second)), nil},
		{"valid in 31 s", set("nbf", at(beyond+time.Second)), ErrInvalid},
		{"no subject", unset("sub"), ErrMisconfigured},
		{"an empty subject", set("sub", ""), ErrMisconfigured},
		{"a subject that is a list", set("sub", []string{"u-1"}), ErrInvalid},
	} {
		p.SetFaults(demoidp.Faults{EditIDToken: tt.edit})
		_, err := logIn(t, c, conn, now)
		is(t, tt.name, err, tt.want)
	}
}

// B54: go-oidc lets one well-known provider leave the scheme out of iss. An exception
// for one is a door for all who can serve under its name.
func TestNoProviderIsExcusedFromTheExactIssuer(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	conn := connectionTo(p)
	conn.Issuer = "https://accounts.google.com"
	c := newClient(t, now)
	c.http.Transport = redirected{"accounts.google.com", strings.TrimPrefix(p.Issuer(), "http://")}
	for iss, want := range map[string]error{conn.Issuer: nil, "accounts.google.com": ErrInvalid} {
		p.SetFaults(demoidp.Faults{
			ResponseIssuer: conn.Issuer,
			EditDiscovery:  func(d map[string]any) { d["issuer"] = conn.Issuer },
			EditIDToken:    func(c map[string]any) { c["iss"] = iss },
		})
		_, err := logIn(t, c, conn, now)
		is(t, iss, err, want)
	}
}

// redirected is a name service of our own.
type redirected struct{ name, address string }

func (d redirected) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == d.name {
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host = "http", d.address
	}
	return http.DefaultTransport.RoundTrip(r)
}

// R68: the algorithm is the one that was agreed, whatever the token says.
func TestOnlyTheProvidersSignatureCounts(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	for _, alg := range []string{"none", "HS256"} {
		// Even if the provider's description allows it.
		p.SetFaults(demoidp.Faults{SignAs: alg, EditDiscovery: func(d map[string]any) {
			d["id_token_signing_alg_values_supported"] = []string{"RS256", alg}
		}})
		_, err := logIn(t, newClient(t, now), conn, now)
		is(t, alg, err, ErrInvalid)
	}
	p.SetFaults(demoidp.Faults{EditToken: func(a map[string]any) {
		token := a["id_token"].(string)
		head, signature, _ := strings.Cut(token[strings.Index(token, ".")+1:], ".")
		a["id_token"] = token[:strings.Index(token, ".")] + "." + head + "." + strings.Repeat("A", len(signature))
	}})
	before := p.Hits(demoidp.PathJWKS)
	_, err := logIn(t, c, conn, now)
	is(t, "a broken signature", err, ErrInvalid)
	if asked := p.Hits(demoidp.PathJWKS) - before; asked > 2 {
		t.Errorf("the keys were fetched %d times for one bad token", asked)
	}
	p.SetFaults(demoidp.Faults{EditToken: func(a map[string]any) { a["id_token"] = "CANARY" }})
	_, err = logIn(t, c, conn, now)
	is(t, "garbage", err, ErrInvalid)
	p.SetFaults(demoidp.Faults{EditDiscovery: func(d map[string]any) {
		d["id_token_signing_alg_values_supported"] = []string{"HS256", "none"}
	}})
	is(t, "no algorithm left", c.Check(t.Context(), conn), ErrMisconfigured)
}

// R70: the provider changes its key between our redirect and its answer.
func TestAKeyRotationInMidLoginCostsOneFetch(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	if _, err := logIn(t, c, conn, now); err != nil {
		t.Fatal(err)
	}
	b := begin()
	query := answer(t, c, conn, b, demoidp.NewVisitor())
	if err := p.RotateKeys(false); err != nil {
		t.Fatal(err)
	}
	before := p.Hits(demoidp.PathJWKS)
	if _, err := c.Finish(t.Context(), conn, finish(b, query, now)); err != nil {
		t.Fatal(err)
	}
	if _, err := logIn(t, c, conn, now); err != nil {
		t.Fatal(err)
	}
	if asked := p.Hits(demoidp.PathJWKS) - before; asked != 1 {
		t.Errorf("the keys were fetched %d times", asked)
	}
}

// A key that the provider withdraws is not believed for ever.
func TestAWithdrawnKeyIsForgotten(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c, conn := newClient(t, now), connectionTo(p)
	if _, err := logIn(t, c, conn, now); err != nil {
		t.Fatal(err)
	}
	p.SetFaults(demoidp.Faults{JWKS: demoidp.Answer{Status: 200, Body: `{"keys":[]}`}})
	_, err := logIn(t, c, conn, now)
	is(t, "within the keys' life", err, nil)
	now.turn(keysLife)
	p.SetFaults(demoidp.Faults{
		JWKS:        demoidp.Answer{Status: 200, Body: `{"keys":[]}`},
		EditIDToken: func(c map[string]any) { delete(c, "auth_time"); c["exp"] = now.Now().Unix() + 60 },
	})
	_, err = logIn(t, c, conn, now)
	is(t, "after it", err, ErrMisconfigured)
}

func TestThePersonIsReadFromTheClaims(t *testing.T) {
	t.Parallel()
	read := func(text string) claims {
		t.Helper()
		c, err := decodeClaims([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, tt := range []struct{ text, want string }{
		{`{"sub":"u-1"}`, "u-1"},
		{`{"sub":77}`, "77"},
		{`{"sub":9007199254740993}`, "9007199254740993"}, // not …992
		{`{"sub":7.7e1}`, ""},
		{`{"sub":-7}`, ""},
		{`{"sub":true}`, ""},
		{`{"sub":null}`, ""},
		{`{"sub":" u-1"}`, ""},
		{`{"sub":"u\u00001"}`, ""},
		{`{"sub":"` + strings.Repeat("x", 256) + `"}`, ""},
		{`{"sub":"` + strings.Repeat("x", 255) + `"}`, strings.Repeat("x", 255)},
	} {
		got, err := read(tt.text).subject("")
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: subject %q, error %v", tt.text, got, err)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{`{"email":"a@b.example","preferred_username":"a","name":"A"}`, "a@b.example"},
		{`{"preferred_username":"a","name":"A"}`, "a"},
		{`{"email":"","name":"A"}`, "A"},
		{`{"email":7}`, "the subject"},
		{`{"email":"a\u202egro.b@\u0000c"}`, "agro.b@c"},
		{`{"name":"` + strings.Repeat("é", 101) + `"}`, strings.Repeat("é", 99) + "…"},
	} {
		if got := read(tt.text).account("the subject"); got != tt.want {
			t.Errorf("%s: account %q", tt.text, got)
		}
	}
}
