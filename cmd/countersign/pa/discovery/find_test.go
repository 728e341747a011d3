package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stranger serves a card and metadata that a test may spoil. URL is replaced by
// its own address.
type stranger struct {
	*httptest.Server
	card, metadata string
}

const goodCard = `{
	"name": "Harbor Hotel",
	"supportedInterfaces": [{"url": "URL/a2a/harbor", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}],
	"securitySchemes": {
		"paJwt": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
		"userDelegation": {"oauth2SecurityScheme": {
			"flows": {"deviceCode": {
				"deviceAuthorizationUrl": "URL/a2a/harbor/oauth/device_authorization",
				"tokenUrl": "URL/a2a/harbor/oauth/token",
				"refreshUrl": "URL/a2a/harbor/oauth/token",
				"scopes": {"z:read": "See your bookings", "a:write": "Change your bookings", "m:pay": "Pay"}
			}},
			"oauth2MetadataUrl": "URL/a2a/harbor/oauth/.well-known/oauth-authorization-server"
		}}
	}
}`

const goodMetadata = `{
	"issuer": "URL/a2a/harbor/oauth",
	"device_authorization_endpoint": "URL/a2a/harbor/oauth/device_authorization",
	"token_endpoint": "URL/a2a/harbor/oauth/token",
	"revocation_endpoint": "URL/a2a/harbor/oauth/revoke",
	"jwks_uri": "URL/a2a/harbor/oauth/jwks.json",
	"grant_types_supported": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]
}`

func newStranger(t *testing.T) *stranger {
	s := &stranger{card: goodCard, metadata: goodMetadata}
	mux := http.NewServeMux()
	serve := func(text *string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(strings.ReplaceAll(*text, "URL", s.URL)))
		}
	}
	mux.HandleFunc("GET /a2a/harbor/.well-known/agent-card.json", serve(&s.card))
	mux.HandleFunc("GET /a2a/harbor/oauth/.well-known/oauth-authorization-server", serve(&s.metadata))
	mux.HandleFunc("GET /.well-known/oauth-authorization-server/a2a/harbor/oauth", serve(&s.metadata))
	mux.HandleFunc("GET /a2a/other/.well-known/oauth-authorization-server", serve(&s.metadata))
	mux.HandleFunc("GET /moved/.well-known/agent-card.json", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/a2a/harbor/.well-known/agent-card.json", http.StatusFound)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestFindByInterfaceOrCard(t *testing.T) {
	s := newStranger(t)
	for _, given := range []string{"/a2a/harbor", "/a2a/harbor/", "/a2a/harbor/.well-known/agent-card.json"} {
		got, err := Client{}.Find(context.Background(), s.URL+given, false)
		if err != nil {
			t.Fatal(err)
		}
		want := Brand{
			Card: s.URL + "/a2a/harbor/.well-known/agent-card.json", Name: "Harbor Hotel",
			Interface: s.URL + "/a2a/harbor", Issuer: s.URL + "/a2a/harbor/oauth",
			// P38: the Brand's order, not the alphabet's.
			Scopes:             []Scope{{"z:read", "See your bookings"}, {"a:write", "Change your bookings"}, {"m:pay", "Pay"}},
			DeviceEndpoint:     s.URL + "/a2a/harbor/oauth/device_authorization",
			TokenEndpoint:      s.URL + "/a2a/harbor/oauth/token",
			RevocationEndpoint: s.URL + "/a2a/harbor/oauth/revoke",
			JWKS:               s.URL + "/a2a/harbor/oauth/jwks.json",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestOlderCardsAndOtherSpellingsAreUnderstood(t *testing.T) {
	for _, tt := range []struct{ name, old, new string }{
		{"url instead of supportedInterfaces", `"supportedInterfaces": [{"url": "URL/a2a/harbor", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]`, `"url": "URL/a2a/harbor"`},
		{"platformJwt", `"paJwt"`, `"platformJwt"`},
		{"scheme in lower case", `"Bearer"`, `"bearer"`},
		{"no refreshUrl", `"refreshUrl": "URL/a2a/harbor/oauth/token",`, ``},
		{"metadata in the path-insertion place", `URL/a2a/harbor/oauth/.well-known/oauth-authorization-server`, `URL/.well-known/oauth-authorization-server/a2a/harbor/oauth`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStranger(t)
			s.card = replaced(t, s.card, tt.old, tt.new)
			if _, err := (Client{}).Find(context.Background(), s.URL+"/a2a/harbor", false); err != nil {
				t.Error(err)
			}
		})
	}
}

// M8, P38 and design decision 1, from the agent's side.
func TestStoriesThatDoNotFitAreRefused(t *testing.T) {
	const elsewhere = "http://127.0.0.1:9"
	for _, tt := range []struct {
		name, card, old, new string
		want                 error
	}{
		{"two identity schemes", "card", `"paJwt":`, `"platformJwt": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}}, "paJwt":`, ErrCard},
		{"no identity scheme", "card", `"paJwt"`, `"apiKey"`, ErrCard},
		{"identity not a JWT", "card", `"bearerFormat": "JWT"`, `"bearerFormat": "opaque"`, ErrCard},
		{"no delegation", "card", `"userDelegation"`, `"other"`, ErrCard},
		{"no device flow", "card", `"deviceCode"`, `"authorizationCode"`, ErrCard},
		{"a scope twice", "card", `"a:write"`, `"z:read"`, ErrCard},
		{"no scopes", "card", `{"z:read": "See your bookings", "a:write": "Change your bookings", "m:pay": "Pay"}`, `{}`, ErrCard},
		{"not JSON", "card", `{`, `<html>`, ErrCard},
		{"interface missing", "card", `"url": "URL/a2a/harbor"`, `"url": ""`, ErrAddress},
		{"interface elsewhere", "card", `"url": "URL/a2a/harbor"`, `"url": "https://bank.example/a2a"`, ErrAddress},
		{"device endpoint elsewhere", "card", `URL/a2a/harbor/oauth/device_authorization`, elsewhere + "/d", ErrAddress},
		{"token endpoint elsewhere", "card", `"tokenUrl": "URL`, `"tokenUrl": "` + elsewhere, ErrAddress},
		{"metadata elsewhere", "card", `"oauth2MetadataUrl": "URL`, `"oauth2MetadataUrl": "` + elsewhere, ErrAddress},
		{"plain http", "card", `"tokenUrl": "URL`, `"tokenUrl": "http://harbor.example`, ErrAddress},
		{"issuer is the interface", "metadata", `"issuer": "URL/a2a/harbor/oauth"`, `"issuer": "URL/a2a/harbor"`, ErrMetadata},
		{"issuer with a slash behind", "metadata", `"issuer": "URL/a2a/harbor/oauth"`, `"issuer": "URL/a2a/harbor/oauth/"`, ErrMetadata},
		{"issuer of another Brand", "metadata", `"issuer": "URL/a2a/harbor/oauth"`, `"issuer": "URL/a2a/ferry/oauth"`, ErrMetadata},
		{"another device endpoint", "metadata", `oauth/device_authorization`, `oauth/device_authorization/`, ErrMetadata},
		{"another token endpoint", "metadata", `oauth/token`, `oauth/Token`, ErrMetadata},
		{"device grant not supported", "metadata", `"urn:ietf:params:oauth:grant-type:device_code", `, ``, ErrMetadata},
		{"keys elsewhere", "metadata", `"jwks_uri": "URL`, `"jwks_uri": "` + elsewhere, ErrAddress},
		{"no keys", "metadata", `"jwks_uri"`, `"other"`, ErrAddress},
		{"revocation elsewhere", "metadata", `"revocation_endpoint": "URL`, `"revocation_endpoint": "` + elsewhere, ErrAddress},
		{"refreshUrl is not the token endpoint", "card", `"refreshUrl": "URL/a2a/harbor/oauth/token"`, `"refreshUrl": "URL/a2a/harbor/oauth/refresh"`, ErrMetadata},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStranger(t)
			if !strings.Contains(tt.name, "refreshUrl") { // it would be found out of step first
				s.card = replaced(t, s.card, `"refreshUrl": "URL/a2a/harbor/oauth/token",`, ``)
			}
			if tt.card == "card" {
				s.card = replaced(t, s.card, tt.old, tt.new)
			} else {
				s.metadata = replaced(t, s.metadata, tt.old, tt.new)
			}
			_, err := Client{}.Find(context.Background(), s.URL+"/a2a/harbor", false)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// A split Brand is met only on purpose, and even then the metadata must lie
// where its issuer says (RFC 8414 §3.3).
func TestASplitBrandNeedsAllowSplit(t *testing.T) {
	authority, brand := newStranger(t), newStranger(t)
	brand.card = strings.ReplaceAll(brand.card, "URL/a2a/harbor/oauth", authority.URL+"/a2a/harbor/oauth")
	ctx := context.Background()
	if _, err := (Client{}).Find(ctx, brand.URL+"/a2a/harbor", false); !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), "--allow-split") {
		t.Errorf("%v", err)
	}
	got, err := Client{}.Find(ctx, brand.URL+"/a2a/harbor", true)
	if err != nil || got.Issuer != authority.URL+"/a2a/harbor/oauth" || got.Interface != brand.URL+"/a2a/harbor" {
		t.Errorf("%+v, %v", got, err)
	}
	authority.metadata = replaced(t, authority.metadata, `"issuer": "URL/a2a/harbor/oauth"`, `"issuer": "URL/a2a/ferry/oauth"`)
	if _, err := (Client{}).Find(ctx, brand.URL+"/a2a/harbor", true); !errors.Is(err, ErrMetadata) {
		t.Errorf("%v", err)
	}
}

// Metadata that is sound in itself, but of another issuer than interface +
// "/oauth", is what strict agents refuse and a split Brand has.
func TestASoundIssuerInAnotherPlaceNeedsAllowSplit(t *testing.T) {
	s := newStranger(t)
	s.card = replaced(t, s.card, `"oauth2MetadataUrl": "URL/a2a/harbor/oauth/`, `"oauth2MetadataUrl": "URL/a2a/other/`)
	s.metadata = replaced(t, s.metadata, `"issuer": "URL/a2a/harbor/oauth"`, `"issuer": "URL/a2a/other"`)
	if _, err := (Client{}).Find(context.Background(), s.URL+"/a2a/harbor", false); !errors.Is(err, ErrMetadata) {
		t.Errorf("%v", err)
	}
	if got, err := (Client{}).Find(context.Background(), s.URL+"/a2a/harbor", true); err != nil || got.Issuer != s.URL+"/a2a/other" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	s := newStranger(t)
	_, err := Client{}.Find(context.Background(), s.URL+"/moved", false)
	var redirect RedirectError
	if !errors.As(err, &redirect) {
		t.Errorf("%v", err)
	}
}

func TestLongAnswersAreCutOff(t *testing.T) {
	s := newStranger(t)
	s.card = replaced(t, s.card, `"Harbor Hotel"`, `"`+strings.Repeat("x", maxAnswer)+`"`)
	_, err := Client{}.Find(context.Background(), s.URL+"/a2a/harbor", false)
	var tooLong TooLongError
	if !errors.As(err, &tooLong) {
		t.Errorf("%v", err)
	}
}

func TestAddressesAStrictAgentUses(t *testing.T) {
	for raw, ok := range map[string]bool{
		"https://harbor.example/a": true, "http://localhost:8080/a": true, "http://127.0.0.1/a": true,
		"http://[::1]:1/a": true, "http://demo.localhost/a": true,
		"http://harbor.example/a": false, "http://localhost.example/a": false, "http://127.0.0.1.example": false,
		"https://harbor.example/a#b": false, "https://harbor.example/a#": false, "https://u:p@harbor.example/": false,
		"//harbor.example/a": false, "/a": false, "": false, "javascript:alert(1)": false, "https:harbor.example": false,
		"ftp://harbor.example/a": false, "https://harbor.example/\x1b[2J": false,
	} {
		if _, err := Address("it", raw); (err == nil) != ok {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// The order of scopes survives a round trip, whatever the ids are.
func FuzzScopesKeepTheirOrder(f *testing.F) {
	f.Add([]byte(`{"b":"1","a":"2"}`))
	f.Add([]byte(`{"a":"1","a":"2"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var scopes orderedScopes
		if json.Unmarshal(data, &scopes) != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range scopes {
			if s.ID == "" || seen[s.ID] {
				t.Fatalf("%q twice or empty", s.ID)
			}
			seen[s.ID] = true
		}
		var plain map[string]string
		if err := json.Unmarshal(data, &plain); err != nil || len(plain) != len(scopes) {
			t.Fatalf("%d scopes of %d: %v", len(scopes), len(plain), err)
		}
	})
}

func replaced(t *testing.T, s, old, new string) string {
	t.Helper()
	if !strings.Contains(s, old) {
		t.Fatalf("nothing to replace: %q", old)
	}
	return strings.ReplaceAll(s, old, new)
}
