package federation

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/consent/federation/demoidp"
	"countersign.dev/tenants"
	jose "github.com/go-jose/go-jose/v4"
)

func found(findings []Finding, field string) Finding {
	for _, f := range findings {
		if f.Field == field {
			return f
		}
	}
	return Finding{}
}

// B54: the usual slips in an issuer are seen, and the provider's own spelling is
// offered; another issuer is offered only with a warning.
func TestIssuerSlipsAreOfferedForCorrection(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	c := newClient(t, now)
	c.http.Transport = redirected{"login.example.com", strings.TrimPrefix(p.Issuer(), "http://")}
	const issuer = "https://login.example.com"
	named := issuer
	p.SetFaults(demoidp.Faults{EditDiscovery: func(d map[string]any) { d["issuer"] = named }})
	for typed, want := range map[string]string{
		issuer:                      "",
		issuer + "/":                issuer,
		issuer + ":443":             issuer,
		issuer + ":8443":            issuer,
		"https://LOGIN.example.com": issuer,
		" " + issuer:                issuer,
		"login.example.com":         issuer,
		issuer + "/.well-known/openid-configuration": issuer,
	} {
		conn := connectionTo(p)
		conn.Issuer = typed
		f := found(c.Examine(t.Context(), conn), "issuer")
		if f.Offer != want || (f.State == fine) != (want == "") || f.State != fine && f.Mend == "" {
			t.Errorf("%s: %+v, want offer %q", typed, f, want)
		}
	}
	named = "https://another.example"
	conn := connectionTo(p)
	conn.Issuer = issuer
	if f := found(c.Examine(t.Context(), conn), "issuer"); f.State != bad || !strings.Contains(f.Mend, "only if you know") {
		t.Errorf("another issuer: %+v", f)
	}
}

// Each field is told by itself, all of them in one go.
func TestDiscoveryIsShownFieldByField(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	for name, tt := range map[string]struct {
		edit  func(map[string]any)
		conn  func(*Connection)
		field string
		state string
	}{
		"a script as endpoint": {func(d map[string]any) { d["authorization_endpoint"] = "javascript:alert(1)" }, nil, "authorization_endpoint", bad},
		"no keys":              {func(d map[string]any) { d["jwks_uri"] = p.Issuer() + "/nothing" }, nil, "keys", bad},
		"HS256 alone":          {func(d map[string]any) { d["id_token_signing_alg_values_supported"] = []string{"HS256"} }, nil, "id_token_signing_alg_values_supported", bad},
		"no secret taken":      {func(d map[string]any) { d["token_endpoint_auth_methods_supported"] = []string{"none"} }, nil, "token_endpoint_auth_methods_supported", bad},
		"no code flow":         {func(d map[string]any) { d["response_types_supported"] = []string{"id_token"} }, nil, "response_types_supported", bad},
		"no PKCE":              {func(d map[string]any) { delete(d, "code_challenge_methods_supported") }, nil, "code_challenge_methods_supported", warning},
		"an unknown scope":     {nil, func(c *Connection) { c.Scopes = []string{"crm"} }, "scopes_supported", warning},
		"an unknown claim":     {nil, func(c *Connection) { c.SubjectClaim = "crm_id" }, "claims_supported", warning},
		"e-mail as id":         {nil, func(c *Connection) { c.SubjectClaim = "email" }, "subject_claim", bad},
	} {
		p.SetFaults(demoidp.Faults{EditDiscovery: tt.edit})
		conn := connectionTo(p)
		if tt.conn != nil {
			tt.conn(&conn)
		}
		findings := newClient(t, now).Examine(t.Context(), conn)
		if f := found(findings, tt.field); f.State != tt.state || f.Mend == "" {
			t.Errorf("%s: %+v", name, f)
		}
		if len(findings) < 7 {
			t.Errorf("%s: only %d lines", name, len(findings))
		}
	}
	p.SetFaults(demoidp.Faults{})
	for _, f := range newClient(t, now).Examine(t.Context(), connectionTo(p)) {
		if f.State != fine {
			t.Errorf("a good provider: %+v", f)
		}
	}
	p.Close()
	if f := newClient(t, now).Examine(t.Context(), connectionTo(p)); len(f) != 1 || f[0].State != bad || f[0].Mend == "" {
		t.Errorf("a dead one: %+v", f)
	}
}

func withKey(t *testing.T, p *demoidp.Provider, conn Connection) Connection {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.SetClientKey(jose.JSONWebKey{Key: key.Public(), KeyID: "k1", Algorithm: "ES256"})
	conn.ClientSecret, conn.Key = "", &tenants.LoginKey{ID: "k1", Private: key}
	return conn
}

// With private_key_jwt no secret goes over the wire, and another's key opens
// nothing.
func TestPrivateKeyJWT(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	conn := withKey(t, p, connectionTo(p))
	id, err := logIn(t, newClient(t, now), conn, now)
	if err != nil || id.Subject != "u-1" {
		t.Fatalf("%+v, %v", id, err)
	}
	if err := newClient(t, now).Check(t.Context(), conn); err != nil {
		t.Error(err)
	}
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other := conn
	other.Key = &tenants.LoginKey{ID: "k1", Private: stranger}
	_, err = logIn(t, newClient(t, now), other, now)
	is(t, "a stranger's key", err, ErrRefused) // in this provider's words
	secret := conn
	secret.Key, secret.ClientSecret = nil, clientSecret
	_, err = logIn(t, newClient(t, now), secret, now)
	is(t, "the secret of former days", err, ErrMisconfigured)

	p.SetFaults(demoidp.Faults{EditDiscovery: func(d map[string]any) {
		d["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	}})
	_, err = newClient(t, now).Begin(t.Context(), conn, begin())
	is(t, "a provider that takes none", err, ErrMisconfigured)
}

// R72: the provider is asked for prompt and max_age, and a login that is older all
// the same does not count. Where a fresh one is needed, that is what is asked for.
func TestPromptAndMaxAge(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	hour := 3600
	conn := connectionTo(p)
	conn.Prompt, conn.MaxAge = "select_account", &hour
	asked := func(b BeginParams) url.Values {
		t.Helper()
		to, err := newClient(t, now).Begin(t.Context(), conn, b)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query()
	}
	if q := asked(begin()); q.Get("prompt") != "select_account" || q.Get("max_age") != "3600" {
		t.Errorf("asked with %v", q)
	}
	fresh := begin()
	fresh.Fresh = true
	if q := asked(fresh); len(q["prompt"]) != 1 || q.Get("prompt") != "login" || len(q["max_age"]) != 1 || q.Get("max_age") != "0" {
		t.Errorf("fresh asked with %v", q)
	}
	at := func(d time.Duration) func(map[string]any) {
		return func(c map[string]any) { c["auth_time"] = now.Now().Add(d).Unix() }
	}
	for _, tt := range []struct {
		name string
		edit func(map[string]any)
		want error
	}{
		{"a young login", at(-time.Minute), nil},
		{"just young enough", at(-time.Hour - 20*time.Second), nil},
		{"too old", at(-time.Hour - 40*time.Second), ErrInvalid},
		{"of no known age", func(c map[string]any) { delete(c, "auth_time") }, ErrInvalid},
	} {
		p.SetFaults(demoidp.Faults{EditIDToken: tt.edit})
		_, err := logIn(t, newClient(t, now), conn, now)
		is(t, tt.name, err, tt.want)
	}
}

// A try shows what came, also where the subject claim is not among it; and nothing
// of an answer that does not verify.
func TestTryShowsTheClaims(t *testing.T) {
	t.Parallel()
	p, now := startProvider(t), newClock()
	conn := connectionTo(p)
	conn.SubjectClaim = "crm_id"
	try := func() (Identity, map[string]any, error) {
		t.Helper()
		c, b := newClient(t, now), begin()
		return c.Try(t.Context(), conn, finish(b, answer(t, c, conn, b, demoidp.NewVisitor()), now))
	}
	_, claims, err := try()
	is(t, "a claim that does not come", err, ErrMisconfigured)
	if claims["customer_id"] != "C-77" {
		t.Errorf("claims %v", claims)
	}
	conn.SubjectClaim = "customer_id"
	if id, _, err := try(); err != nil || id.Subject != "C-77" {
		t.Errorf("%+v, %v", id, err)
	}
	p.SetFaults(demoidp.Faults{EditIDToken: func(c map[string]any) { c["aud"] = "another" }})
	if _, claims, err := try(); err == nil || claims != nil {
		t.Errorf("another client's token: %v, %v", claims, err)
	}
}
