package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hollow is a server with a card, metadata and keys as they must be, that answers
// everything else in one way.
func hollow(t *testing.T, rest http.HandlerFunc) Config {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	brand := server.URL + "/a2a/hollow"
	issuer := brand + "/oauth"
	scopes := json.RawMessage(`{"a:read":"See it","a:change":"Change it"}`)
	serve := func(path string, v any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	serve("/a2a/hollow"+cardPath, object{
		"supportedInterfaces": []object{{"url": brand}},
		"securitySchemes": object{"userDelegation": object{"oauth2SecurityScheme": object{
			"flows": object{"deviceCode": object{
				"deviceAuthorizationUrl": issuer + "/device_authorization", "tokenUrl": issuer + "/token", "scopes": scopes,
			}},
			"oauth2MetadataUrl": issuer + metadataPath,
		}}},
	})
	serve("/a2a/hollow/oauth"+metadataPath, object{
		"issuer": issuer, "device_authorization_endpoint": issuer + "/device_authorization", "token_endpoint": issuer + "/token",
		"revocation_endpoint": issuer + "/revoke", "introspection_endpoint": issuer + "/introspect", "jwks_uri": issuer + "/jwks.json",
		"scopes_supported": []string{"a:read", "a:change"}, "grant_management_endpoint": issuer + "/grants", "grant_management_actions_supported": []string{"query"},
	})
	serve("/a2a/hollow/oauth/jwks.json", object{"keys": []object{}})
	mux.HandleFunc("/", rest)
	agent, err := NewAgent("http://127.0.0.1:1", "anybody")
	if err != nil {
		t.Fatal(err)
	}
	other, err := agent.As("http://127.0.0.1:2", "anybody")
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Card: brand, OtherCard: brand, PA: agent, OtherPA: other, BrandKey: "key", Grace: time.Millisecond,
		People: &Forms{People: []Person{{"a", "b", "c"}, {"d", "e", "f"}}}, Texts: map[string]string{"a:read": "Read it"},
		Operator: func(context.Context, string, string) error { return nil },
	}
}

// Nothing that is not there keeps a rule, nor does a server that turns everybody
// away, or that says yes to everything.
func TestAHollowServerPassesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		rest http.HandlerFunc
		pass []string // what it does keep
	}{
		"nothing is there": {http.NotFound, nil},
		"nobody is let in": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", plain)
			w.WriteHeader(http.StatusUnauthorized)
		}, []string{"no pa-jwt: the plain 401 at every endpoint", "the pa-jwt comes before the body"}},
		"everybody is let in": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{}`))
		}, []string{"jti is not needed, and one pa-jwt serves many calls", "two agents' users may choose the same jti"}},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := Run(t.Context(), hollow(t, tt.rest))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				published := r.Rule == "M8"
				accepted := name == "everybody is let in" && (strings.HasSuffix(r.Check, "accepted") || strings.HasSuffix(r.Check, "tried")) // and the forgeries' checks fail
				if r.Result == Pass && !published && !accepted && !slices.Contains(tt.pass, r.Check) {
					t.Errorf("%s passes: %s", r.Rule, r.Check)
				}
			}
			if Verdict(results) != Fail {
				t.Errorf("the verdict: %s", Verdict(results))
			}
		})
	}
}

// Of the two doors where forgeries are shown, one that is not served says nothing
// of the other.
func TestADoorThatIsNotServedHidesNoVerdict(t *testing.T) {
	c := hollow(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/device_authorization") {
			http.NotFound(w, r)
		}
	})
	c.Only = []string{"M3", "M5"}
	results, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		want := Fail // whoever lets everybody in
		if strings.HasSuffix(r.Check, ", at message:send") {
			want = NotServed
		}
		if r.Result != want {
			t.Errorf("%s, %s: %s, not %s", r.Rule, r.Check, r.Result, want)
		}
	}
}

func TestWhatWasNotAskedIsNoPass(t *testing.T) {
	for want, results := range map[string][]Result{
		Pass:   {{Result: Pass}},
		NotRun: {{Result: Pass}, {Result: NotServed}},
		Fail:   {{Result: NotRun}, {Result: Fail}},
	} {
		if got := Verdict(results); got != want {
			t.Errorf("%v: %s", results, got)
		}
	}
	if Verdict(nil) != NotRun {
		t.Error("nothing at all passes")
	}
	c := hollow(t, http.NotFound)
	c.People, c.OtherPA, c.Operator, c.Only = nil, nil, nil, []string{"M13", "M14", "M20"}
	results, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Result == Pass {
			t.Errorf("%s passes without anybody: %s", r.Rule, r.Check)
		}
	}
}

func TestAnAgentComesFromAFile(t *testing.T) {
	agent, err := NewAgent("https://aria.example", "provider")
	if err != nil {
		t.Fatal(err)
	}
	write := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "agent")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	read, err := ReadAgent(write(agent), "", "")
	if err != nil || read.Issuer != agent.Issuer || string(read.JWKS()) != string(agent.JWKS()) {
		t.Errorf("an agent: %v", err)
	}
	if strings.Contains(string(agent.JWKS()), `"d":`) {
		t.Error("a private key is published")
	}
	key := write(agent.good[keyEC])
	if read, err := ReadAgent(key, "https://bo.example", "provider"); err != nil || read.Issuer != "https://bo.example" {
		t.Errorf("a key: %v", err)
	}
	for what, args := range map[string][3]string{
		"a key alone": {key, "", ""}, "a public key": {write(agent.Keys.Keys[0].Public()), "https://bo.example", "provider"},
		"an RSA key": {write(agent.good[keyRSA]), "https://bo.example", "provider"}, "no key": {write(1), "https://bo.example", "provider"},
		"no file": {filepath.Join(t.TempDir(), "none"), "", ""},
	} {
		if _, err := ReadAgent(args[0], args[1], args[2]); err == nil {
			t.Errorf("%s is taken for an agent", what)
		}
	}
}

func TestPeopleAtATerminalAreTold(t *testing.T) {
	var out strings.Builder
	people := Asked{In: bufio.NewReader(strings.NewReader("\n\n")), Out: &out, Names: []string{"Alex"}}
	for _, d := range []Decision{{Deny: true}, {Untick: []string{"a:read"}}} {
		if err := people.Decide(t.Context(), "https://brand.example/device", 0, d); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"https://brand.example/device", "Alex", "say no", "untick a:read"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
	if err := people.Decide(t.Context(), "", 0, Decision{}); err == nil {
		t.Error("nobody there, and no word of it")
	}
}

// A proxy takes eight headers over, and whichever an answer leaves out stands as a
// caller forged it. Empty is as good as any value.
func TestAProxyIsToldEveryHeader(t *testing.T) {
	all := []string{
		"Countersign-Agent", "Countersign-Agent-Subject", "Countersign-User", "Countersign-Scopes",
		"Countersign-Details", "Countersign-Grant", "Countersign-Token", "Countersign-Expires",
	}
	answer := http.Header{}
	for _, name := range all {
		answer.Set(name, "")
	}
	if missed := unset(answer); len(missed) != 0 {
		t.Errorf("%v are there", missed)
	}
	for _, name := range all {
		less := answer.Clone()
		less.Del(name)
		if missed := unset(less); !slices.Equal(missed, []string{name}) {
			t.Errorf("without %s: %v", name, missed)
		}
	}
}
