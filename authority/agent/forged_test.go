package agent_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"github.com/go-jose/go-jose/v4"
)

type members = map[string]any

// with is base with changes; a nil value takes a member out.
func with(base, changes members) members {
	m := maps.Clone(base)
	maps.Copy(m, changes)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	return m
}

// joseToken is made with go-jose, so that a forgery is not only what we think
// one looks like.
func joseToken(t *testing.T, alg jose.SignatureAlgorithm, key any, extra members, payload members) string {
	t.Helper()
	o := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	for name, value := range extra {
		o.ExtraHeaders[jose.HeaderKey(name)] = value
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func newRSA(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// R17, B82, P3, M1, M7: all refused, all with the same shape. R23: and nothing
// that a token names is fetched.
func TestForgedTokensAreRefused(t *testing.T) {
	var trapped atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { trapped.Add(1) }))
	defer trap.Close()

	w := newWorld(t)
	pa := w.pa(t)
	ec, ecKID := pa.Key()
	big, weak, enc := newRSA(t, 2048), newRSA(t, 1024), newRSA(t, 2048)
	mallory := agenttest.NewKey(t)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaked, wrongAlg, signOnly := agenttest.NewKey(t), newRSA(t, 2048), agenttest.NewKey(t)
	leakedJWK := jose.JSONWebKey{Key: leaked, KeyID: "leaked"} // with d
	pa.Publish(
		pa.PublicJWK(),
		jose.JSONWebKey{Key: big.Public(), KeyID: "rsa"},
		jose.JSONWebKey{Key: weak.Public(), KeyID: "weak"},
		jose.JSONWebKey{Key: enc.Public(), KeyID: "enc", Use: "enc"},
		jose.JSONWebKey{Key: p384.Public(), KeyID: "p384"},
		jose.JSONWebKey{Key: wrongAlg.Public(), KeyID: "wrong-alg", Algorithm: "RS512"},
		leakedJWK,
		ecJWK(signOnly, "sign-only", members{"key_ops": []string{"sign"}}),
	)

	header := members{"alg": "ES256", "kid": ecKID, "typ": "JWT"}
	rsaHeader := members{"alg": "RS256", "kid": "rsa"}
	payload := pa.Members(agenttest.Claims{})
	good := pa.ES256(t)
	rs256 := agenttest.RSA(t, big, crypto.SHA256)
	forge := func(header, payload any, sign agenttest.Sign) string {
		return agenttest.Forge(t, header, payload, sign)
	}
	rsaDER, err := x509.MarshalPKIXPublicKey(big.Public())
	if err != nil {
		t.Fatal(err)
	}
	rsaPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsaDER})
	ecPublic, err := pa.PublicJWK().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	whole := pa.Token(t, agenttest.Claims{})
	parts := strings.Split(whole, ".")
	rawSignature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}

	for name, ok := range map[string]string{
		"as it should be":             whole,
		"by hand":                     forge(header, payload, good),
		"without kid":                 forge(with(header, members{"kid": nil}), payload, good),
		"RS256":                       forge(rsaHeader, payload, rs256),
		"RS256 with go-jose":          joseToken(t, jose.RS256, jose.JSONWebKey{Key: big, KeyID: "rsa"}, nil, payload),
		"RS256 without kid":           forge(members{"alg": "RS256"}, payload, rs256),
		"typ of its own":              forge(with(header, members{"typ": "pa+jwt"}), payload, good),
		"unknown members":             forge(with(header, members{"x": 1}), with(payload, members{"x": members{"y": []int{1}}}), good),
		"white space in its payload":  forge(header, " "+mustJSON(t, payload)+"\n", good),
		"members Iss, EXP, Aud (B84)": forge(header, with(payload, members{"Iss": "https://victim.example", "EXP": 1, "Aud": []string{"x"}}), good),
	} {
		t.Run("accepted: "+name, func(t *testing.T) { w.accepts(t, ok) })
	}

	for _, tt := range []struct {
		name, token string
		why         error
	}{
		{"alg none", forge(members{"alg": "none"}, payload, agenttest.Fixed(nil)), agent.ErrAlgorithm},
		{"alg none with a signature", forge(with(header, members{"alg": "none"}), payload, good), agent.ErrAlgorithm},
		{"alg None", forge(with(header, members{"alg": "None"}), payload, good), agent.ErrAlgorithm},
		{"alg nOnE", forge(with(header, members{"alg": "nOnE"}), payload, good), agent.ErrAlgorithm},
		{"alg with a space", forge(with(rsaHeader, members{"alg": " RS256"}), payload, rs256), agent.ErrAlgorithm},
		{"alg in lower case", forge(with(header, members{"alg": "es256"}), payload, good), agent.ErrAlgorithm},
		{"no alg", forge(with(header, members{"alg": nil}), payload, good), agent.ErrAlgorithm},
		{"alg under another case", forge(members{"Alg": "ES256", "kid": ecKID}, payload, good), agent.ErrAlgorithm},
		{"alg a number", forge(with(header, members{"alg": 256}), payload, good), agent.ErrAlgorithm},
		{"alg an array", forge(with(header, members{"alg": []string{"ES256"}}), payload, good), agent.ErrAlgorithm},
		{"alg twice", forge(`{"alg":"none","alg":"ES256"}`, payload, good), agent.ErrMalformed},
		{"HS256 with the RSA key as DER", forge(members{"alg": "HS256", "kid": "rsa"}, payload, agenttest.HS256(rsaDER)), agent.ErrAlgorithm},
		{"HS256 with the RSA key as PEM", forge(members{"alg": "HS256", "kid": "rsa"}, payload, agenttest.HS256(rsaPEM)), agent.ErrAlgorithm},
		{"HS256 with the public JWK", forge(members{"alg": "HS256", "kid": ecKID}, payload, agenttest.HS256(ecPublic)), agent.ErrAlgorithm},
		{"HS256 with go-jose", joseToken(t, jose.HS256, rsaPEM, nil, payload), agent.ErrAlgorithm},
		{"ES256 that is an HMAC", forge(header, payload, agenttest.HS256(ecPublic)), agent.ErrSignature},
		{"PS256", joseToken(t, jose.PS256, jose.JSONWebKey{Key: big, KeyID: "rsa"}, nil, payload), agent.ErrAlgorithm},
		{"RS512", joseToken(t, jose.RS512, jose.JSONWebKey{Key: big, KeyID: "rsa"}, nil, payload), agent.ErrAlgorithm},
		{"ES384", joseToken(t, jose.ES384, jose.JSONWebKey{Key: p384, KeyID: "p384"}, nil, payload), agent.ErrAlgorithm},
		{"EdDSA", forge(with(header, members{"alg": "EdDSA"}), payload, good), agent.ErrAlgorithm},
		{"RS256 signed with SHA-512", forge(rsaHeader, payload, agenttest.RSA(t, big, crypto.SHA512)), agent.ErrSignature},
		{"RS256 signed as PS256", forge(rsaHeader, payload, pss(t, big)), agent.ErrSignature},
		{"ES256 on an RSA key", forge(members{"alg": "ES256", "kid": "rsa"}, payload, good), agent.ErrWrongKey},
		{"RS256 on an EC key", forge(members{"alg": "RS256", "kid": ecKID}, payload, rs256), agent.ErrWrongKey},
		{"ES256 on a P-384 key", forge(members{"alg": "ES256", "kid": "p384"}, payload, es384(t, p384)), agent.ErrUnknownKey},
		{"RSA of 1024 bits", forge(members{"alg": "RS256", "kid": "weak"}, payload, agenttest.RSA(t, weak, crypto.SHA256)), agent.ErrUnknownKey},
		{"key for encryption", forge(members{"alg": "RS256", "kid": "enc"}, payload, agenttest.RSA(t, enc, crypto.SHA256)), agent.ErrUnknownKey},
		{"key for encryption, no kid", forge(members{"alg": "RS256"}, payload, agenttest.RSA(t, enc, crypto.SHA256)), agent.ErrUnknownKey},
		{"key for another alg", forge(members{"alg": "RS256", "kid": "wrong-alg"}, payload, agenttest.RSA(t, wrongAlg, crypto.SHA256)), agent.ErrUnknownKey},
		{"key that may not verify", forge(members{"alg": "ES256", "kid": "sign-only"}, payload, agenttest.ES256(t, signOnly)), agent.ErrUnknownKey},
		{"key whose private half is published", forge(members{"alg": "ES256", "kid": "leaked"}, payload, agenttest.ES256(t, leaked)), agent.ErrUnknownKey},
		{"same kid, other key", forge(header, payload, agenttest.ES256(t, mallory)), agent.ErrSignature},
		{"no kid, other key", forge(members{"alg": "ES256"}, payload, agenttest.ES256(t, mallory)), agent.ErrUnknownKey},
		{"kid of nobody", forge(with(header, members{"kid": "nobody"}), payload, good), agent.ErrUnknownKey},
		{"kid empty", forge(with(header, members{"kid": ""}), payload, good), agent.ErrMalformed},
		{"kid a number", forge(with(header, members{"kid": 1}), payload, good), agent.ErrMalformed},
		{"kid null", forge(`{"alg":"ES256","kid":null}`, payload, good), agent.ErrMalformed},
		{"jwk in the header, go-jose", joseToken(t, jose.ES256, mallory, members{"jwk": jose.JSONWebKey{Key: mallory.Public()}}, payload), agent.ErrHeader},
		{"jwk in the header, own key", forge(with(header, members{"jwk": json.RawMessage(ecPublic)}), payload, good), agent.ErrHeader},
		{"jku", forge(with(header, members{"jku": trap.URL + "/jwks"}), payload, good), agent.ErrHeader},
		{"jku by mallory", joseToken(t, jose.ES256, mallory, members{"jku": trap.URL + "/jwks"}, payload), agent.ErrHeader},
		{"x5u", forge(with(header, members{"x5u": trap.URL + "/cert"}), payload, good), agent.ErrHeader},
		{"x5c", forge(with(header, members{"x5c": []string{"MIIB"}}), payload, good), agent.ErrHeader},
		{"crit", forge(with(header, members{"crit": []string{"exp"}, "exp": 1}), payload, good), agent.ErrHeader},
		{"crit null", forge(`{"alg":"ES256","crit":null}`, payload, good), agent.ErrHeader},
		{"b64", forge(with(header, members{"b64": false}), payload, good), agent.ErrHeader},
		{"signature all zero", forge(header, payload, agenttest.Fixed(make([]byte, 64))), agent.ErrSignature},
		{"signature all ones", forge(header, payload, agenttest.Fixed([]byte(strings.Repeat("\xff", 64)))), agent.ErrSignature},
		{"signature as DER", forge(header, payload, der(t, ec)), agent.ErrSignature},
		{"signature cut short", forge(header, payload, agenttest.Fixed(rawSignature[:63])), agent.ErrSignature},
		{"signature with a byte more", parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(append(rawSignature, 0)), agent.ErrSignature},
		{"signature of another token", parts[0] + "." + strings.Split(pa.Token(t, agenttest.Claims{Sub: "victim"}), ".")[1] + "." + parts[2], agent.ErrSignature},
		{"no signature", parts[0] + "." + parts[1] + ".", agent.ErrMalformed},
		{"two parts", parts[0] + "." + parts[1], agent.ErrMalformed},
		{"four parts", whole + "." + parts[2], agent.ErrMalformed},
		{"JWE of five parts", whole + ".e30.e30", agent.ErrMalformed},
		{"empty", "", agent.ErrMalformed},
		{"not a token", "not-a-jwt", agent.ErrMalformed},
		{"padded", whole + "==", agent.ErrMalformed},
		{"line break inside", parts[0] + "." + parts[1] + ".\n" + parts[2], agent.ErrMalformed},
		{"standard base64", strings.ReplaceAll(strings.ReplaceAll(forge(header, with(payload, members{"x": "???>>>"}), good), "_", "/"), "-", "+"), agent.ErrMalformed},
		{"left-over bits", parts[0] + "." + parts[1] + "." + parts[2][:85] + nextLetter(parts[2][85]), agent.ErrMalformed},
		{"JSON serialisation", `{"payload":"` + parts[1] + `","signatures":[{"protected":"` + parts[0] + `","signature":"` + parts[2] + `"}]}`, agent.ErrMalformed},
		{"header an array", forge(`["ES256"]`, payload, good), agent.ErrMalformed},
		{"header null", forge("null", payload, good), agent.ErrMalformed},
		{"payload a string", forge(header, `"iss"`, good), agent.ErrMalformed},
		{"payload with something after it", forge(header, mustJSON(t, payload)+"{}", good), agent.ErrMalformed},
		{"payload with broken UTF-8", forge(header, strings.Replace(mustJSON(t, payload), "user-1", "user-\xff", 1), good), agent.ErrMalformed},
		{"iss twice", forge(header, strings.Replace(mustJSON(t, payload), "{", `{"iss":"https://victim.example",`, 1), good), agent.ErrMalformed},
		{"longer than 8 KiB", forge(header, with(payload, members{"x": strings.Repeat("x", 8<<10)}), good), agent.ErrTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) { w.refuses(t, tt.token, tt.why) })
	}
	if trapped.Load() != 0 {
		t.Errorf("tokens made us fetch %d times, want 0", trapped.Load())
	}
}

// R18, M2 to M5, B84: each claim is checked, under its exact name and as what it
// has to be.
func TestEveryClaimIsChecked(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	now := w.clock.Now().Unix()
	pile := strings.Repeat("é", 256)
	for name, extra := range map[string]members{
		"sub of 256 characters": {"sub": pile},
		"sub of one":            {"sub": "1"},
		"iat and exp decimals":  {"iat": json.RawMessage("1790000000.25"), "exp": json.RawMessage("1790000300.25")},
		"nbf now":               {"nbf": now},
		"no jti":                {"jti": nil},
	} {
		t.Run("accepted: "+name, func(t *testing.T) {
			w.accepts(t, agenttest.Forge(t, members{"alg": "ES256"}, with(pa.Members(agenttest.Claims{}), extra), pa.ES256(t)))
		})
	}
	for _, tt := range []struct {
		name  string
		extra members
		why   error
	}{
		{"no iss", members{"iss": nil}, agent.ErrIssuer},
		{"Iss for iss", members{"iss": nil, "Iss": pa.Issuer}, agent.ErrIssuer},
		{"iss of nobody", members{"iss": "https://nobody.example"}, agent.ErrIssuer},
		{"iss with a slash", members{"iss": pa.Issuer + "/"}, agent.ErrIssuer},
		{"iss in capitals", members{"iss": strings.ToUpper(pa.Issuer)}, agent.ErrIssuer},
		{"iss with a NUL", members{"iss": pa.Issuer + "\x00"}, agent.ErrIssuer},
		{"iss an array", members{"iss": []string{pa.Issuer}}, agent.ErrIssuer},
		{"iss too long", members{"iss": pa.Issuer + strings.Repeat("x", 2048)}, agent.ErrIssuer},
		{"no sub", members{"sub": nil}, agent.ErrSubject},
		{"sub empty", members{"sub": ""}, agent.ErrSubject},
		{"sub a number", members{"sub": 1}, agent.ErrSubject},
		{"sub of 257 characters", members{"sub": pile + "x"}, agent.ErrSubject},
		{"sub with a NUL", members{"sub": "a\x00b"}, agent.ErrSubject},
		{"sub with a line break", members{"sub": "a\nb"}, agent.ErrSubject},
		{"sub with a C1 control", members{"sub": "a\u0085b"}, agent.ErrSubject},
		{"sub a lone surrogate", members{"sub": json.RawMessage(`"\ud800"`)}, agent.ErrSubject},
		{"Sub for sub", members{"sub": nil, "Sub": "user-1"}, agent.ErrSubject},
		{"no aud", members{"aud": nil}, agent.ErrAudience},
		{"aud of another Provider (R19)", members{"aud": "https://other.example"}, agent.ErrAudience},
		{"aud an array of the right one", members{"aud": []string{audience}}, agent.ErrAudience},
		{"aud an array of two", members{"aud": []string{audience, "https://other.example"}}, agent.ErrAudience},
		{"aud with a slash", members{"aud": audience + "/"}, agent.ErrAudience},
		{"aud longer", members{"aud": audience + ".evil.example"}, agent.ErrAudience},
		{"aud empty", members{"aud": ""}, agent.ErrAudience},
		{"Aud for aud", members{"aud": nil, "Aud": audience}, agent.ErrAudience},
		{"no iat", members{"iat": nil}, agent.ErrTimes},
		{"no exp", members{"exp": nil}, agent.ErrTimes},
		{"EXP for exp", members{"exp": nil, "EXP": now + 60}, agent.ErrTimes},
		{"exp a string", members{"exp": "1790000100"}, agent.ErrTimes},
		{"exp null", members{"exp": json.RawMessage("null")}, agent.ErrTimes},
		{"exp true", members{"exp": true}, agent.ErrTimes},
		{"exp with an exponent", members{"exp": json.RawMessage("1.79e9")}, agent.ErrTimes},
		{"exp beyond all years", members{"exp": json.RawMessage("9223372036854775807")}, agent.ErrTimes},
		{"exp beyond the year 9999", members{"exp": json.RawMessage("253402300800")}, agent.ErrTimes},
		{"iat negative", members{"iat": -1}, agent.ErrTimes},
		{"iat of many decimals", members{"iat": json.RawMessage("1790000000.0000000001")}, agent.ErrTimes},
		{"nbf a string", members{"nbf": "soon"}, agent.ErrTimes},
		{"nbf null", members{"nbf": json.RawMessage("null")}, agent.ErrTimes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			payload := with(pa.Members(agenttest.Claims{}), tt.extra)
			w.refuses(t, agenttest.Forge(t, members{"alg": "ES256"}, payload, pa.ES256(t)), tt.why)
		})
	}
}

// P4, R21, B86, M5: to the second and beyond.
func TestTimesAtTheirEdges(t *testing.T) {
	w := newWorld(t)
	pa := w.pa(t)
	now := w.clock.Now()
	at := func(d time.Duration) json.RawMessage { return numericDate(now.Add(d)) }
	for _, tt := range []struct {
		name     string
		iat, exp time.Duration
		nbf      time.Duration
		why      error // nil: accepted
	}{
		{"iat 30 s ahead", 30 * time.Second, 60 * time.Second, 0, nil},
		{"iat 31 s ahead", 31 * time.Second, 60 * time.Second, 0, agent.ErrEarly},
		{"iat 30 s and a bit ahead", 30*time.Second + 1, 60 * time.Second, 0, agent.ErrEarly},
		{"expired 29 s ago", -60 * time.Second, -29 * time.Second, 0, nil},
		{"expired 30 s ago but for a bit", -60 * time.Second, -30*time.Second + 1, 0, nil},
		{"expired 30 s ago", -60 * time.Second, -30 * time.Second, 0, agent.ErrExpired},
		{"lives 300 s", 0, 300 * time.Second, 0, nil},
		{"lives 300 s and a bit", 0, 300*time.Second + 1, 0, agent.ErrLifetime},
		{"lives 301 s", 0, 301 * time.Second, 0, agent.ErrLifetime},
		{"lives 301 s, mostly over", -200 * time.Second, 101 * time.Second, 0, agent.ErrLifetime},
		{"lives for ever", 0, 1000 * time.Hour, 0, agent.ErrLifetime},
		{"lives no time", 10 * time.Second, 10 * time.Second, 0, agent.ErrLifetime},
		{"ends before it begins", 20 * time.Second, 10 * time.Second, 0, agent.ErrLifetime},
		{"nbf 30 s ahead", 0, 60 * time.Second, 30 * time.Second, nil},
		{"nbf 31 s ahead", 0, 60 * time.Second, 31 * time.Second, agent.ErrEarly},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := agenttest.Claims{Extra: members{"iat": at(tt.iat), "exp": at(tt.exp)}}
			if tt.nbf != 0 {
				c.Extra["nbf"] = at(tt.nbf)
			}
			token := pa.Token(t, c)
			for _, pass := range []string{"at first", "again"} { // remembered tokens obey the same rules
				if tt.why != nil {
					w.refuses(t, token, tt.why)
				} else if got := w.accepts(t, token); !got.Expires.Equal(now.Add(tt.exp)) {
					t.Errorf("%s: expires %s, want %s", pass, got.Expires, now.Add(tt.exp))
				}
			}
		})
	}
}

func ecJWK(key *ecdsa.PrivateKey, kid string, extra members) members {
	raw, err := key.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	return with(members{
		"kty": "EC", "crv": "P-256", "kid": kid,
		"x": base64.RawURLEncoding.EncodeToString(raw[1:33]),
		"y": base64.RawURLEncoding.EncodeToString(raw[33:]),
	}, extra)
}

func pss(t *testing.T, key *rsa.PrivateKey) agenttest.Sign {
	return func(input []byte) []byte {
		digest := sha256.Sum256(input)
		s, err := rsa.SignPSS(rand.Reader, key, crypto.SHA256, digest[:], nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func es384(t *testing.T, key *ecdsa.PrivateKey) agenttest.Sign {
	return func(input []byte) []byte {
		digest := sha512.Sum384(input)
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		signature := make([]byte, 96)
		r.FillBytes(signature[:48])
		s.FillBytes(signature[48:])
		return signature
	}
}

func der(t *testing.T, key *ecdsa.PrivateKey) agenttest.Sign {
	return func(input []byte) []byte {
		digest := sha256.Sum256(input)
		s, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// nextLetter writes the same bits with different left-over ones: an ES256
// signature ends in a letter of which only two bits count.
func nextLetter(c byte) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(letters[strings.IndexByte(letters, c)+1])
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// numericDate is at as seconds with nine decimals.
func numericDate(at time.Time) json.RawMessage {
	return fmt.Appendf(nil, "%d.%09d", at.Unix(), at.Nanosecond())
}
