package check

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const aria = "https://aria.example"

// party is anybody with a key.
type party struct {
	t   *testing.T
	key jose.JSONWebKey
}

func newParty(t *testing.T, kid string) party {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return party{t, jose.JSONWebKey{Key: private, KeyID: kid, Algorithm: "ES256", Use: "sig"}}
}

func (p party) jwks() []byte {
	data, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{p.key.Public()}})
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

func (p party) sign(typ string, claims map[string]any) string {
	p.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, (&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		p.t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// scene is a Brand on the network, an agent, and a folder of files.
type scene struct {
	t            *testing.T
	brand, agent party
	url          string // the interface
	folder       string
	requests     *[]string
}

func newScene(t *testing.T) scene {
	s := scene{t: t, brand: newParty(t, "brand-1"), agent: newParty(t, "agent-1"), folder: t.TempDir(), requests: new([]string)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/agent-card.json", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"name":"Harbor Hotel","supportedInterfaces":[{"url":"%[1]s"}],"securitySchemes":{
			"paJwt":{"httpAuthSecurityScheme":{"scheme":"Bearer","bearerFormat":"JWT"}},
			"userDelegation":{"oauth2SecurityScheme":{"flows":{"deviceCode":{"deviceAuthorizationUrl":"%[1]s/oauth/d",
				"tokenUrl":"%[1]s/oauth/t","scopes":{"stay:read":"See your bookings"}}}}}}}`, s.url)
	})
	mux.HandleFunc("GET /oauth/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"issuer":"%[1]s/oauth","device_authorization_endpoint":"%[1]s/oauth/d","token_endpoint":"%[1]s/oauth/t","jwks_uri":"%[1]s/oauth/jwks.json"}`, s.url)
	})
	mux.HandleFunc("GET /oauth/jwks.json", func(w http.ResponseWriter, r *http.Request) { w.Write(s.brand.jwks()) })
	mux.HandleFunc("GET /agent/jwks.json", func(w http.ResponseWriter, r *http.Request) { w.Write(s.agent.jwks()) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*s.requests = append(*s.requests, r.URL.Path)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *scene) token(change map[string]any) string {
	now := time.Now()
	claims := map[string]any{
		"iss": s.url + "/oauth", "aud": s.url, "sub": "guest-1", "client_id": aria, "scope": "stay:read",
		"grant_id": "g1", "jti": "t1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for name, value := range change {
		claims[name] = value
	}
	return s.brand.sign("at+jwt", claims)
}

func (s *scene) paJWT(issuer string) string {
	now := time.Now()
	return s.agent.sign("JWT", map[string]any{
		"iss": issuer, "aud": "https://provider.example", "sub": "alex", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	})
}

func (s *scene) file(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func verifyCommand(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// The whole way: card, metadata, keys, each once; then every check with a mark.
func TestAGoodTokenHolds(t *testing.T) {
	s := newScene(t)
	token, paJWT := s.token(nil), s.paJWT(aria)
	code, out, errs := verifyCommand("", "token", s.file("token", token), "--card", s.url,
		"--pa-jwt", s.file("pa-jwt", paJWT+"\n"), "--pa-jwks", s.url+"/agent/jwks.json", "--pa-audience", "https://provider.example")
	if code != exitGood {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	for _, name := range []string{"signature", "iss", "aud", "exp", "client_id", "scope", "grant_id", "jti"} {
		if !strings.Contains(out, "✓ "+name) {
			t.Errorf("%s is missing:\n%s", name, out)
		}
	}
	if strings.ContainsAny(out, "✗–") {
		t.Errorf("a check failed or was left out:\n%s", out)
	}
	want := "/.well-known/agent-card.json /oauth/.well-known/oauth-authorization-server /oauth/jwks.json /agent/jwks.json"
	if got := strings.Join(*s.requests, " "); got != want {
		t.Errorf("fetched %s", got)
	}
}

func TestWithSavedKeysNothingIsFetched(t *testing.T) {
	s := newScene(t)
	code, out, errs := verifyCommand(s.token(nil), "token", "--jwks", s.file("jwks", string(s.brand.jwks())),
		"--issuer", s.url+"/oauth", "--audience", s.url, "-")
	if code != exitGood || len(*s.requests) != 0 {
		t.Errorf("exit %d, fetched %v\n%s%s", code, *s.requests, out, errs)
	}
	if !strings.Contains(out, "– client_id") {
		t.Errorf("without a pa-jwt M18 must be reported as not checked:\n%s", out)
	}
}

// P29 and P41 at the command line: the exit code and the reason.
func TestABadTokenIsRefusedWithItsReason(t *testing.T) {
	s := newScene(t)
	mallory := newParty(t, "brand-1")
	jwks := s.file("jwks", string(s.brand.jwks()))
	offline := []string{"--jwks", jwks, "--issuer", s.url + "/oauth", "--audience", s.url}
	for _, tt := range []struct {
		name, token string
		args        []string
		reason      string
	}{
		{"another key", mallory.sign("at+jwt", map[string]any{}), nil, "signature does not verify"},
		{"another Brand", s.token(map[string]any{"aud": "https://ferry.example"}), nil, "for another audience"},
		{"expired", s.token(nil), []string{"--at", time.Now().Add(2 * time.Hour).Format(time.RFC3339)}, "expired"},
		{"not yet", s.token(nil), []string{"--at", fmt.Sprint(time.Now().Add(-time.Minute).Unix())}, "from the future"},
		{"another agent (M18)", s.token(nil), []string{"--pa-jwt", s.paJWT("https://mallory.example")}, "issued to another agent"},
		{"a receipt", s.brand.sign("pact-receipt+jws", map[string]any{}), nil, "typ"},
		{"not a token", "not-a-jwt", nil, "well-formed"},
		{
			"another Brand's token, and so its key", newParty(t, "ferry-1").sign("at+jwt", map[string]any{"iss": "https://ferry.example/oauth"}), nil,
			`names another issuer: "https://ferry.example/oauth"`,
		},
		{"a new key of nobody", newParty(t, "mallory-1").sign("at+jwt", map[string]any{"iss": s.url + "/oauth"}), nil, "not published"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append(append([]string{"token", "-"}, offline...), tt.args...)
			code, out, errs := verifyCommand(tt.token, args...)
			if code != exitRefused || !strings.Contains(out, "✗") || !strings.Contains(out, tt.reason) {
				t.Errorf("exit %d\n%s%s", code, out, errs)
			}
		})
	}
}

// A pa-jwt that does not hold says nothing about who shows the token.
func TestABadPAJWTRefusesTheToken(t *testing.T) {
	s := newScene(t)
	mallory := newParty(t, "agent-1")
	code, out, _ := verifyCommand(s.token(nil), "token", "-", "--card", s.url, "--pa-jwt", mallory.sign("JWT", map[string]any{"iss": aria}),
		"--pa-jwks", s.file("pa-jwks", string(s.agent.jwks())), "--pa-audience", "https://provider.example")
	if code != exitRefused || strings.Contains(out, "client_id") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestATokenIsFoundInWhateverHoldsIt(t *testing.T) {
	s := newScene(t)
	token := s.token(nil)
	other := `"https://ferry.example/oauth":{"alex":{"access_token":"a.b.c","issuer":"https://ferry.example/oauth","interface":"https://ferry.example"}}`
	ours := fmt.Sprintf(`{"access_token":%q,"issuer":"%s/oauth","interface":%q}`, token, s.url, s.url)
	for name, content := range map[string]string{
		"raw":             token,
		"with blanks":     "\n " + token + "\r\n",
		"with its scheme": "Bearer " + token,
		"token answer":    fmt.Sprintf(`{"token_type":"Bearer","access_token":%q}`, token),
		"lines of login":  `{"event":"started","user_code":"X"}` + "\n" + strings.Replace(ours, `{`, `{"event":"approved",`, 1),
		"token file":      fmt.Sprintf(`{%s,"%s/oauth":{"alex":%s}}`, other, s.url, ours),
	} {
		code, out, errs := verifyCommand(content, "token", "-", "--card", s.url)
		if code != exitGood {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
	two := fmt.Sprintf(`{"%[1]s/oauth":{"alex":%[2]s,"bo":%[2]s}}`, s.url, ours)
	for name, content := range map[string]string{"two of this Brand": two, "none": `{"a":1}`, "broken": `{"access_token":`} {
		if code, _, errs := verifyCommand(content, "token", "-", "--card", s.url); code != exitUnknown || errs == "" {
			t.Errorf("%s: exit %d, %q", name, code, errs)
		}
	}
}

// P48: not in words, not in JSON, not when refused, not in an error.
func TestTheTokenIsNeverPrinted(t *testing.T) {
	s := newScene(t)
	for _, token := range []string{s.token(nil), s.token(map[string]any{"exp": 1}), s.token(nil) + "x"} {
		for _, format := range [][]string{nil, {"--json"}} {
			for _, at := range []string{s.url, s.url + "/nowhere"} {
				_, out, errs := verifyCommand(token, append([]string{"token", "-", "--card", at, "--pa-jwt", s.paJWT(aria)}, format...)...)
				for part := range strings.SplitSeq(token, ".") {
					if strings.Contains(out+errs, part) {
						t.Errorf("a part of the token is in\n%s%s", out, errs)
					}
				}
			}
		}
	}
}

func TestTheJSONVerdictSaysTheSame(t *testing.T) {
	s := newScene(t)
	var v struct {
		Valid      bool
		Reason     string
		Checks     []struct{ Name, Result, Detail string }
		Delegation *struct {
			Sub    string
			Scopes []string
		}
	}
	code, out, _ := verifyCommand(s.token(nil), "token", "-", "--card", s.url, "--json")
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitGood || !v.Valid || v.Delegation.Sub != "guest-1" || len(v.Checks) == 0 {
		t.Errorf("exit %d, %v, %s", code, err, out)
	}
	code, out, _ = verifyCommand(s.token(map[string]any{"scope": ""}), "token", "-", "--card", s.url, "--json")
	v.Delegation = nil
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitRefused || v.Valid || v.Reason == "" || v.Delegation != nil {
		t.Errorf("exit %d, %v, %s", code, err, out)
	}
}

func TestWhatCannotBeJudgedIsNotAVerdict(t *testing.T) {
	s := newScene(t)
	jwks := s.file("jwks", string(s.brand.jwks()))
	for _, args := range [][]string{
		{},
		{"receipt"},
		{"token"},
		{"token", "-"},
		{"token", "-", "--jwks", jwks},
		{"token", "-", "--jwks", jwks, "--issuer", "x"},
		{"token", "-", "--card", s.url + "/nowhere"},
		{"token", "-", "--card", s.url, "--at", "noon"},
		{"token", "-", "more", "--card", s.url},
		{"token", "-", "--card", s.url, "--pa-jwks", jwks},
		{"token", "-", "--card", s.url, "--pa-jwks", jwks, "--pa-jwt", s.paJWT(aria)},
		{"token", "-", "--card", s.url, "--pa-jwt", "eyJ.no.no"},
		{"token", "-", "--card", s.url, "--wrong"},
		{"token", filepath.Join(s.folder, "missing"), "--card", s.url},
		{"token", "-", "--jwks", s.file("bad", "{}"), "--issuer", "x", "--audience", "y"},
	} {
		if code, out, errs := verifyCommand(s.token(nil), args...); code != exitUnknown || out != "" || errs == "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
	if code, out, _ := verifyCommand("", "help"); code != exitGood || !strings.Contains(out, "--jwks") {
		t.Errorf("help: exit %d", code)
	}
}
