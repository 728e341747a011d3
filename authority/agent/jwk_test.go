package agent

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// A point on P-256 (the generator), and moduli of several sizes. Nobody has the
// private halves; only their form is judged here.
const (
	pointX = "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY"
	pointY = "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"
)

func b64(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func modulus(bits uint, odd bool) string {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	if odd {
		n.SetBit(n, 0, 1)
	}
	return b64(n.Bytes())
}

func ecKey(extra string) string {
	return fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":"%s","y":"%s"%s}`, pointX, pointY, extra)
}

func rsaKey(n, e, extra string) string {
	return fmt.Sprintf(`{"kty":"RSA","n":"%s","e":"%s"%s}`, n, e, extra)
}

// R28, M1: which published keys may verify.
func TestKeysAreJudged(t *testing.T) {
	good := modulus(2048, true)
	zero := strings.Repeat("A", 43)
	for _, tt := range []struct {
		name, jwk string
		ok        bool
	}{
		{"P-256", ecKey(""), true},
		{"P-256 for sig and ES256", ecKey(`,"use":"sig","alg":"ES256","key_ops":["verify"],"kid":"k"`), true},
		{"RSA 2048", rsaKey(good, "AQAB", ""), true},
		{"RSA 8192", rsaKey(modulus(8192, true), "AQAB", ""), true},
		{"RSA with a leading zero", rsaKey(b64(append([]byte{0}, mustDecode(good)...)), "AQAB", ""), true},
		{"RSA 2047", rsaKey(modulus(2047, true), "AQAB", ""), false},
		{"RSA 8193", rsaKey(modulus(8193, true), "AQAB", ""), false},
		{"RSA of a million bits", rsaKey(modulus(300_000, true), "AQAB", ""), false},
		{"RSA even", rsaKey(modulus(2048, false), "AQAB", ""), false},
		{"RSA e 1", rsaKey(good, "AQ", ""), false},
		{"RSA e 3", rsaKey(good, "Aw", ""), false},
		{"RSA e even", rsaKey(good, "AQAC", ""), false},
		{"RSA e 2^31+1", rsaKey(good, "gAAAAQ", ""), false},
		{"RSA e huge", rsaKey(good, strings.Repeat("_", 400), ""), false},
		{"RSA e empty", rsaKey(good, "", ""), false},
		{"RSA without n", `{"kty":"RSA","e":"AQAB"}`, false},
		{"RSA n padded", rsaKey(good+"=", "AQAB", ""), false},
		{"RSA n in standard base64", rsaKey("+/"+good[2:], "AQAB", ""), false},
		{"RSA n with a line break", rsaKey(`\n`+good, "AQAB", ""), false},
		{"point off the curve", strings.Replace(ecKey(""), pointY, pointX, 1), false},
		{"point at infinity", fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":"%s","y":"%s"}`, zero, zero), false},
		{"x cut short", strings.Replace(ecKey(""), pointX, pointX[:42], 1), false},
		{"y missing", fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":"%s"}`, pointX), false},
		{"P-384", strings.Replace(ecKey(""), "P-256", "P-384", 1), false},
		{"secp256k1", strings.Replace(ecKey(""), "P-256", "secp256k1", 1), false},
		{"no crv", strings.Replace(ecKey(""), "crv", "curve", 1), false},
		{"oct", `{"kty":"oct","k":"AAAA"}`, false},
		{"OKP", `{"kty":"OKP","crv":"Ed25519","x":"` + pointX + `"}`, false},
		{"no kty", strings.Replace(ecKey(""), `"kty":"EC",`, "", 1), false},
		{"Kty", strings.Replace(ecKey(""), "kty", "Kty", 1), false},
		{"kty twice", `{"kty":"RSA",` + ecKey("")[1:], false},
		{"use enc", ecKey(`,"use":"enc"`), false},
		{"use of its own", ecKey(`,"use":"tls"`), false},
		{"use null", ecKey(`,"use":null`), false},
		{"key_ops sign", ecKey(`,"key_ops":["sign"]`), false},
		{"key_ops none", ecKey(`,"key_ops":[]`), false},
		{"key_ops a string", ecKey(`,"key_ops":"verify"`), false},
		{"alg ES384", ecKey(`,"alg":"ES384"`), false},
		{"alg of the other kind", ecKey(`,"alg":"RS256"`), false},
		{"alg PS256", rsaKey(good, "AQAB", `,"alg":"PS256"`), false},
		{"alg a number", ecKey(`,"alg":256`), false},
		{"kid a number", ecKey(`,"kid":1`), false},
		{"with d", ecKey(`,"d":"AAAA"`), false},
		{"with d null", ecKey(`,"d":null`), false},
		{"with p", rsaKey(good, "AQAB", `,"p":"AAAA"`), false},
		{"with oth", rsaKey(good, "AQAB", `,"oth":[]`), false},
		{"an array", `[]`, false},
		{"null", `null`, false},
		{"a string", `"key"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// One key that cannot be used takes no other with it.
			set, err := parseKeySet([]byte(`{"keys":[` + tt.jwk + `,` + ecKey(`,"kid":"other"`) + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(set.keys) == 2; got != tt.ok {
				t.Errorf("usable: %v, want %v", got, tt.ok)
			}
		})
	}
}

func mustDecode(s string) []byte {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return raw
}

// R28: no input brings in a key that another library would not also take for a
// sane public key, and what was read reads the same again.
func FuzzParseJWKS(f *testing.F) {
	f.Add([]byte(`{"keys":[]}`))
	f.Add([]byte(`{"keys":[` + ecKey(`,"kid":"a","use":"sig"`) + `,` + rsaKey(modulus(2048, true), "AQAB", "") + `]}`))
	f.Add([]byte(`{"keys":[` + ecKey(`,"d":"AAAA"`) + `,{"kty":"oct"},null,[[]]]}`))
	f.Add([]byte(`{"keys":[` + rsaKey(modulus(8193, true), "Aw", "") + `],"keys":[]}`))
	f.Add([]byte(`{"keys":` + strings.Repeat("[", 1000)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		set, err := parseKeySet(raw)
		if err != nil {
			return
		}
		if len(set.keys) > maxKeys {
			t.Fatalf("%d keys", len(set.keys))
		}
		for _, k := range set.keys {
			var public any = k.rsa
			switch {
			case k.alg == es256 && k.ec != nil && k.rsa == nil:
				public = k.ec
			case k.alg != rs256 || k.rsa == nil || k.ec != nil:
				t.Fatalf("%s on %v and %v", k.alg, k.ec, k.rsa)
			case k.rsa.N.BitLen() < minRSABits || k.rsa.N.BitLen() > maxRSABits || k.rsa.E < minRSAExp:
				t.Fatalf("RSA of %d bits, e %d", k.rsa.N.BitLen(), k.rsa.E)
			}
			written := jose.JSONWebKey{Key: public, KeyID: k.kid}
			if !written.Valid() || !written.IsPublic() {
				t.Fatal("go-jose takes it for no public key")
			}
			one, err := json.Marshal(written)
			if err != nil {
				t.Fatal(err)
			}
			again, err := parseKey(one)
			if err != nil || again.id != k.id || again.kid != k.kid {
				t.Fatalf("read again: %v, the same: %v", err, again.id == k.id)
			}
			// Judging a signature of any length does not panic.
			k.verifies(make([]byte, 32), raw)
		}
	})
}
