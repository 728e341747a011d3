package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// vectors are tokens made by another implementation.
type vectors struct {
	Now                                     int64
	Issuer, Interface, Agent, Provider, JTI string
	JWKS                                    json.RawMessage
	PAJWKS                                  json.RawMessage `json:"pa_jwks"`
	Tokens                                  []vector
	PAJWTs                                  []vector `json:"pa_jwts"`
}

type vector struct{ Name, Refused, Token string }

var refusals = map[string]error{
	"malformed": ErrMalformed, "header": ErrHeader, "type": ErrType, "algorithm": ErrAlgorithm,
	"unknown key": ErrUnknownKey, "signature": ErrSignature, "issuer": ErrIssuer, "audience": ErrAudience,
	"expired": ErrExpired, "future": ErrNotYetValid, "lifetime": ErrLifetime, "subject": ErrSubject,
	"scope": ErrScope, "incomplete": ErrIncomplete, "not transferable": ErrNotTransferable,
}

func readVectors(t testing.TB) (vectors, Options) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v, Options{Issuer: v.Issuer, Audience: v.Interface, Agent: v.Agent, Now: time.Unix(v.Now, 0)}
}

func keysOf(t testing.TB, jwks []byte) Keys {
	t.Helper()
	keys, err := ParseKeys(jwks)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Answers P28, P29, P41, M1, M17 and M18 offline.
func TestTokenGivesTheVerdictOfTheVectors(t *testing.T) {
	v, opts := readVectors(t)
	keys := keysOf(t, v.JWKS)
	for _, tt := range v.Tokens {
		t.Run(tt.Name, func(t *testing.T) {
			d, report, err := Token(keys, tt.Token, opts)
			judgeVector(t, tt, report, err)
			if err != nil && !cmp.Equal(d, Delegation{}) {
				t.Errorf("a refused token still yields %+v", d)
			}
		})
	}
}

// Answers M1 and M3–M5, P3 and P4 offline.
func TestPAJWTGivesTheVerdictOfTheVectors(t *testing.T) {
	v, _ := readVectors(t)
	keys := keysOf(t, v.PAJWKS)
	for _, tt := range v.PAJWTs {
		t.Run(tt.Name, func(t *testing.T) {
			a, report, err := PAJWT(keys, tt.Token, v.Provider, time.Unix(v.Now, 0))
			judgeVector(t, tt, report, err)
			if err == nil && a.Issuer != v.Agent {
				t.Errorf("issuer %q", a.Issuer)
			}
			if err != nil && a != (Agent{}) {
				t.Errorf("a refused pa-jwt still yields %+v", a)
			}
		})
	}
}

func judgeVector(t *testing.T, tt vector, report Report, err error) {
	t.Helper()
	if tt.Refused == "" {
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
	} else if want := refusals[tt.Refused]; want == nil || !errors.Is(err, want) {
		t.Fatalf("got %v, want %q", err, tt.Refused)
	}
	failed := 0
	for _, check := range report {
		if check.Result == Failed {
			failed++
		}
		for part := range strings.SplitSeq(tt.Token, ".") {
			if len(part) > 20 && strings.Contains(check.Detail, part) {
				t.Errorf("the report of %q holds a part of the token", check.Name)
			}
		}
	}
	if (failed > 0) != (err != nil) {
		t.Errorf("%d failed checks in the report, but error %v", failed, err)
	}
}

// The kit, which judges in another order and fetches what it needs, gives the same
// verdicts: P29, P41, M1, M17 and M18 for tokens, M1 and M3–M5 for pa-jwts.
func TestTheKitGivesTheVerdictOfTheVectors(t *testing.T) {
	v, opts := readVectors(t)
	agent := newSite(t)
	agent.text("/jwks.json", string(v.PAJWKS))
	now := func() time.Time { return opts.Now }
	agents, err := NewAgents(AgentsConfig{
		Audience: v.Provider, Known: []KnownAgent{{v.Agent, agent.URL + "/jwks.json"}}, AllowLoopback: true, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	// The vectors' tokens name no status list.
	door, err := New(Config{Issuer: v.Issuer, Interface: v.Interface, Agents: agents, FailOpen: true, HTTP: publishing(v.JWKS), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range v.PAJWTs {
		a, err := agents.Verify(t.Context(), tt.Token)
		if (err == nil) != (tt.Refused == "") || err == nil && a.Issuer != v.Agent || err != nil && a != (Agent{}) {
			t.Errorf("pa-jwt, %s: %+v, %v", tt.Name, a, err)
		}
	}
	for _, tt := range v.Tokens {
		d, err := door.delegation(t.Context(), tt.Token, Agent{Issuer: v.Agent})
		if (err == nil) != (tt.Refused == "") || err == nil && d.ID != v.JTI {
			t.Errorf("token, %s: %+v, %v", tt.Name, d, err)
		}
	}
}

// publishing is a client to which everything on the net is this key set.
func publishing(jwks []byte) *http.Client {
	return &http.Client{Transport: answering(func(*http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(jwks))}
	})}
}

type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

// R33: (r, n-s) verifies as well as (r, s), so the text of a token is not its
// identity; both texts are the same token by jti.
func TestARewrittenSignatureIsTheSameToken(t *testing.T) {
	v, opts := readVectors(t)
	keys := keysOf(t, v.JWKS)
	var texts []string
	for _, tt := range v.Tokens {
		if tt.Name != "good" && tt.Name != "good, signature rewritten to n-s" {
			continue
		}
		texts = append(texts, tt.Token)
		d, _, err := Token(keys, tt.Token, opts)
		if err != nil || d.ID != v.JTI {
			t.Errorf("%s: jti %q, error %v", tt.Name, d.ID, err)
		}
	}
	if len(texts) != 2 || texts[0] == texts[1] {
		t.Fatal("two different texts of one token are needed")
	}
}
