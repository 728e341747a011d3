package verify

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/statuslist"
)

const (
	listURI    = brandIssuer + "/status/0"
	listHeader = `{"alg":"ES256","kid":"k1","typ":"statuslist+jwt"}`
)

// statusScene is a Brand that signs lists, and a token at each of four indexes.
type statusScene struct {
	signer
	keys Keys
	lst  string // VALID, INVALID, SUSPENDED and a status without a meaning
}

func newStatusScene(t *testing.T) statusScene {
	t.Helper()
	s := statusScene{signer: newSigner(t)}
	s.keys = keysOf(t, []byte(`{"keys":[`+s.jwk(`,"kid":"k1"`)+`]}`))
	list := statuslist.New(4, statuslist.Valid)
	for i := range list.Len() {
		list.Set(i, statuslist.Status(i))
	}
	var err error
	if s.lst, err = list.Encode(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s statusScene) claims(change map[string]any) map[string]any {
	claims := map[string]any{
		"sub": listURI, "iat": noon.Unix(), "exp": noon.Add(10 * time.Minute).Unix(), "ttl": 5,
		"status_list": map[string]any{"bits": 2, "lst": s.lst},
	}
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

func (s statusScene) list(t *testing.T, change map[string]any) string {
	t.Helper()
	return s.sign(t, listHeader, marshal(t, s.claims(change)))
}

func (s statusScene) delegation(t *testing.T, status any) (Delegation, error) {
	t.Helper()
	claims := delegationClaims()
	if status != nil {
		claims["status"] = status
	}
	d, _, err := Token(s.keys, s.sign(t, tokenHeader, marshal(t, claims)), Options{Issuer: brandIssuer, Audience: brandURL, Agent: aria, Now: noon})
	return d, err
}

func at(index any, uri string) map[string]any {
	return map[string]any{"status_list": map[string]any{"idx": index, "uri": uri}}
}

// R54: what the list says decides, and what it does not say refuses.
func TestTheListSaysWhatATokenIsWorth(t *testing.T) {
	s := newStatusScene(t)
	l, report, err := ParseStatusList(s.keys, s.list(t, nil), noon)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, check := range report {
		names = append(names, check.Name)
	}
	if got := strings.Join(names, " "); got != "shape header key signature sub iat exp ttl list" {
		t.Errorf("checks: %s", got)
	}
	if l.URI != listURI || !l.Issued.Equal(noon) || l.TTL != 5*time.Second {
		t.Errorf("%+v", l)
	}
	for _, tt := range []struct {
		name   string
		status any
		want   error
	}{
		{"VALID", at(0, listURI), nil},
		{"INVALID", at(1, listURI), ErrRevoked},
		{"SUSPENDED", at(2, listURI), ErrSuspended},
		{"a status without a meaning", at(3, listURI), ErrStatusList},
		{"beyond the list", at(4, listURI), ErrStatusList},
		{"another list", at(0, brandIssuer+"/status/1"), ErrStatusList},
		{"another Brand's list", at(0, "https://ferry.example/oauth/status/0"), ErrStatusList},
		{"the same list, written otherwise", at(0, listURI+"/"), ErrStatusList},
		{"no status", nil, ErrStatusList},
		{"another mechanism", map[string]any{"other": map[string]any{}}, ErrStatusList},
	} {
		d, err := s.delegation(t, tt.status)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		report, err := l.Judge(d, noon)
		if !errors.Is(err, tt.want) || len(report) != 1 || (report[0].Result == Passed) != (tt.want == nil) {
			t.Errorf("%s: %v, %v", tt.name, err, report)
		}
	}
}

// R54, by the clock: a list is good to the last second before its exp, whether
// it is read then or was read before; then every token is refused.
func TestAnOldListRefusesEverything(t *testing.T) {
	s := newStatusScene(t)
	text := s.list(t, nil)
	held, _, err := ParseStatusList(s.keys, text, noon)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.delegation(t, at(0, listURI))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		after time.Duration
		want  error
	}{{-31 * time.Second, ErrNotYetValid}, {-30 * time.Second, nil}, {0, nil}, {10*time.Minute - time.Nanosecond, nil}, {10 * time.Minute, ErrExpired}, {time.Hour, ErrExpired}} {
		now := noon.Add(tt.after)
		if _, _, err := ParseStatusList(s.keys, text, now); !errors.Is(err, tt.want) || err != nil && !errors.Is(err, ErrStatusList) {
			t.Errorf("read after %v: %v", tt.after, err)
		}
		if errors.Is(tt.want, ErrNotYetValid) {
			continue
		}
		if _, err := held.Judge(d, now); !errors.Is(err, tt.want) || err != nil && !errors.Is(err, ErrStatusList) {
			t.Errorf("held until %v: %v", tt.after, err)
		}
	}
	if _, err := (StatusList{}).Judge(d, noon); !errors.Is(err, ErrStatusList) {
		t.Errorf("no list at all: %v", err)
	}
}

func TestABrokenListIsRefused(t *testing.T) {
	s := newStatusScene(t)
	mallory := newSigner(t)
	inner := func(change string, value any) map[string]any {
		m := map[string]any{"bits": 2, "lst": s.lst}
		if m[change] = value; value == nil {
			delete(m, change)
		}
		return map[string]any{"status_list": m}
	}
	for _, tt := range []struct {
		name, token string
		want        error
	}{
		{"another key under the same name", mallory.sign(t, listHeader, marshal(t, s.claims(nil))), ErrSignature},
		{"a key that is not published", mallory.sign(t, `{"alg":"ES256","kid":"k2","typ":"statuslist+jwt"}`, marshal(t, s.claims(nil))), ErrUnknownKey},
		{"not signed", encode([]byte(`{"alg":"none","typ":"statuslist+jwt"}`)) + "." + encode([]byte(marshal(t, s.claims(nil)))) + "." + encode([]byte("x")), ErrAlgorithm},
		{"brings its key", s.sign(t, `{"alg":"ES256","typ":"statuslist+jwt","jku":"https://mallory.example"}`, marshal(t, s.claims(nil))), ErrHeader},
		{"a token by its typ", s.sign(t, tokenHeader, marshal(t, s.claims(nil))), ErrType},
		{"no typ", s.sign(t, `{"alg":"ES256","kid":"k1"}`, marshal(t, s.claims(nil))), ErrType},
		{"no sub", s.list(t, map[string]any{"sub": nil}), ErrIncomplete},
		{"no iat", s.list(t, map[string]any{"iat": nil}), ErrIncomplete},
		{"no exp", s.list(t, map[string]any{"exp": nil}), ErrIncomplete},
		{"exp in words", s.list(t, map[string]any{"exp": "9999999999"}), ErrMalformed},
		{"a negative ttl", s.list(t, map[string]any{"ttl": -1}), ErrMalformed},
		{"no list", s.list(t, map[string]any{"status_list": nil}), ErrIncomplete},
		{"a list that is none", s.list(t, map[string]any{"status_list": []string{s.lst}}), ErrMalformed},
		{"no bits", s.list(t, inner("bits", nil)), ErrIncomplete},
		{"one bit", s.list(t, inner("bits", 1)), ErrMalformed},
		{"half bits", s.list(t, inner("bits", json.Number("2.0"))), ErrMalformed},
		{"no lst", s.list(t, inner("lst", nil)), ErrIncomplete},
		{"lst is not one", s.list(t, inner("lst", "AAAA")), statuslist.ErrMalformed},
		{"too long", s.list(t, inner("lst", strings.Repeat("A", maxStatusList))), ErrMalformed},
	} {
		l, _, err := ParseStatusList(s.keys, tt.token, noon)
		if !errors.Is(err, tt.want) || !errors.Is(err, ErrStatusList) || l.answers.Len() != 0 {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// A token whose status cannot be read is no token without a status.
func TestAnUnreadableStatusIsRefused(t *testing.T) {
	s := newStatusScene(t)
	for name, status := range map[string]any{
		"text": listURI, "null": json.RawMessage("null"), "list in text": map[string]any{"status_list": "0"},
		"no idx":   map[string]any{"status_list": map[string]any{"uri": listURI}},
		"no uri":   map[string]any{"status_list": map[string]any{"idx": 0}},
		"negative": at(-1, listURI), "in words": at("0", listURI), "a fraction": at(0.5, listURI),
		"an exponent": at(json.RawMessage("1e0"), listURI), "too big": at(1<<40, listURI), "no address": at(0, ""),
	} {
		if d, err := s.delegation(t, status); err == nil {
			t.Errorf("%s: taken for %+v", name, d.Status)
		}
	}
}

// A token is no list, and a list no token.
func TestAListIsNoToken(t *testing.T) {
	s := newStatusScene(t)
	_, _, err := Token(s.keys, s.list(t, nil), Options{Issuer: brandIssuer, Audience: brandURL, Alone: true, Now: noon})
	if !errors.Is(err, ErrType) {
		t.Error(err)
	}
}

// Whatever comes as a list is judged without a panic.
func FuzzStatusList(f *testing.F) {
	s := newSigner(f)
	keys := keysOf(f, []byte(`{"keys":[`+s.jwk(`,"kid":"k1"`)+`]}`))
	f.Add(`{"sub":"` + listURI + `","iat":1,"exp":2,"ttl":5,"status_list":{"bits":2,"lst":"eNo76fITAAPfAgc"}}`)
	f.Add(`{"status_list":{"bits":2}}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, claims string) {
		l, report, err := ParseStatusList(keys, s.sign(t, listHeader, claims), time.Unix(1, 0))
		if len(report) == 0 {
			t.Error("nothing was looked at")
		}
		if err == nil && (l.URI == "" || !l.Expires.After(time.Unix(1, 0))) {
			t.Errorf("accepted %q", claims)
		}
	})
}
