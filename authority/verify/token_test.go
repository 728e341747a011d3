package verify

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	brandIssuer = "https://harbor.example/oauth"
	brandURL    = "https://harbor.example"
	aria        = "https://aria.example"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// signer signs with the standard library alone, to have a second opinion on the
// JOSE library that verifies.
type signer struct{ key *ecdsa.PrivateKey }

func newSigner(t testing.TB) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key}
}

func (s signer) jwk(extra string) string {
	point, err := s.key.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":%q,"y":%q%s}`,
		encode(point[1:33]), encode(point[33:]), extra)
}

func (s signer) sign(t testing.TB, header, claims string) string {
	t.Helper()
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	digest := sha256.Sum256([]byte(text))
	r, sv, err := ecdsa.Sign(rand.Reader, s.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	sv.FillBytes(signature[32:])
	return text + "." + encode(signature)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func delegationClaims() map[string]any {
	return map[string]any{
		"iss": brandIssuer, "aud": brandURL, "sub": "guest-1", "client_id": aria,
		"scope": "orders:read orders:cancel", "grant_id": "g1", "jti": "t1",
		"iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
	}
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const tokenHeader = `{"alg":"ES256","kid":"k1","typ":"at+jwt"}`

func TestTokenSaysWhoMayDoWhat(t *testing.T) {
	s := newSigner(t)
	keys := keysOf(t, []byte(`{"keys":[`+s.jwk(`,"kid":"k1"`)+`]}`))
	got, report, err := Token(keys, s.sign(t, tokenHeader, marshal(t, delegationClaims())),
		Options{Issuer: brandIssuer, Audience: brandURL, Agent: aria, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	want := Delegation{
		ID: "t1", Grant: "g1", User: "guest-1", Agent: aria,
		Scopes: []string{"orders:read", "orders:cancel"}, Issued: noon, Expires: noon.Add(time.Hour),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, check := range report {
		names = append(names, check.Name)
	}
	order := "shape header key signature iss aud exp iat client_id sub scope grant_id jti"
	if diff := cmp.Diff(order, strings.Join(names, " ")); diff != "" {
		t.Errorf("order of the checks: %s", diff)
	}
}

// M18: forgetting who showed the token must not turn the rule off.
func TestAForgottenAgentRefusesEverything(t *testing.T) {
	s := newSigner(t)
	keys := keysOf(t, []byte(`{"keys":[`+s.jwk(`,"kid":"k1"`)+`]}`))
	token := s.sign(t, tokenHeader, marshal(t, delegationClaims()))
	for _, opts := range []Options{
		{Issuer: brandIssuer, Audience: brandURL, Now: noon},
		{Issuer: brandIssuer, Agent: aria, Now: noon},
		{Audience: brandURL, Agent: aria, Now: noon},
	} {
		if _, _, err := Token(keys, token, opts); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	if _, _, err := PAJWT(keys, token, "", noon); !errors.Is(err, ErrOptions) {
		t.Errorf("pa-jwt without an audience: %v", err)
	}
}

func TestATokenAloneIsJudgedButSaidToBe(t *testing.T) {
	s := newSigner(t)
	keys := keysOf(t, []byte(`{"keys":[`+s.jwk(`,"kid":"k1"`)+`]}`))
	_, report, err := Token(keys, s.sign(t, tokenHeader, marshal(t, delegationClaims())),
		Options{Issuer: brandIssuer, Audience: brandURL, Alone: true, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range report {
		if check.Name == "client_id" && check.Result != Skipped {
			t.Errorf("client_id is reported as %s though nothing was compared", check.Result)
		}
	}
}

func TestTheReportShowsEverythingThatIsWrong(t *testing.T) {
	s := newSigner(t)
	keys := keysOf(t, []byte(`{"keys":[`+s.jwk(`,"kid":"k1"`)+`]}`))
	claims := delegationClaims()
	claims["iss"], claims["exp"] = "https://ferry.example/oauth", noon.Unix()
	_, report, err := Token(keys, s.sign(t, tokenHeader, marshal(t, claims)),
		Options{Issuer: brandIssuer, Audience: brandURL, Agent: aria, Now: noon})
	if !errors.Is(err, ErrIssuer) {
		t.Errorf("the first broken rule is the issuer, got %v", err)
	}
	var failed []string
	for _, check := range report {
		if check.Result == Failed {
			failed = append(failed, check.Name)
		}
	}
	if diff := cmp.Diff([]string{"iss", "exp"}, failed); diff != "" {
		t.Error(diff)
	}
}

// Nothing behind a bad signature may be reported as if it were known.
func TestABadSignatureEndsTheReport(t *testing.T) {
	s, other := newSigner(t), newSigner(t)
	keys := keysOf(t, []byte(`{"keys":[`+s.jwk(`,"kid":"k1"`)+`]}`))
	_, report, err := Token(keys, other.sign(t, tokenHeader, marshal(t, delegationClaims())),
		Options{Issuer: brandIssuer, Audience: brandURL, Agent: aria, Now: noon})
	if !errors.Is(err, ErrSignature) {
		t.Fatal(err)
	}
	if last := report[len(report)-1]; last.Name != "signature" || last.Result != Failed {
		t.Errorf("last check: %+v", last)
	}
}

func TestATokenOverEightKiBIsRefusedBeforeParsing(t *testing.T) {
	_, report, err := Token(Keys{}, strings.Repeat("x", maxToken+1),
		Options{Issuer: brandIssuer, Audience: brandURL, Agent: aria, Now: noon})
	if !errors.Is(err, ErrMalformed) || !strings.Contains(report[0].Detail, "bytes") {
		t.Errorf("%v, %+v", err, report)
	}
}

func TestTheZeroKeysVerifyNothing(t *testing.T) {
	s := newSigner(t)
	_, _, err := Token(Keys{}, s.sign(t, tokenHeader, marshal(t, delegationClaims())),
		Options{Issuer: brandIssuer, Audience: brandURL, Agent: aria, Now: noon})
	if !errors.Is(err, ErrUnknownKey) {
		t.Errorf("%v", err)
	}
}

// One token has one reading: what opens is exactly what its parts say again.
func FuzzOpen(f *testing.F) {
	v, opts := readVectors(f)
	for _, tt := range v.Tokens {
		f.Add(tt.Token)
	}
	keys := keysOf(f, v.JWKS)
	f.Fuzz(func(t *testing.T, token string) {
		_, report, err := Token(keys, token, opts)
		if len(report) == 0 {
			t.Fatal("no report")
		}
		if _, openErr := open(token, maxToken); openErr != nil {
			if err == nil {
				t.Fatal("accepted, but does not open")
			}
			return
		}
		parts := strings.Split(token, ".")
		for i, part := range parts {
			data, err := decodePart(part)
			if err != nil {
				t.Fatalf("opened, but part %d does not decode: %v", i, err)
			}
			if encode(data) != part {
				t.Fatalf("part %d has two spellings", i)
			}
		}
	})
}
