package agent

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// B88: neither a million dots nor as many as fit cost an allocation.
func TestDotsCostNothing(t *testing.T) {
	for name, text := range map[string]string{
		"a million":         strings.Repeat(".", 1_000_000),
		"8 KiB":             strings.Repeat(".", maxToken),
		"8 KiB of segments": strings.Repeat("a.", maxToken/2),
		"8 KiB without":     strings.Repeat("a", maxToken),
	} {
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := parse(text); !errors.Is(err, ErrRefused) {
				t.Fatalf("%s: %v, want a refusal", name, err)
			}
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations, want 0", name, allocations)
		}
	}
}

func TestTooLongIsRefusedBeforeParsing(t *testing.T) { // B88
	if _, err := parse(strings.Repeat("a", maxToken+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v, want ErrTooLong", err)
	}
}

func token64(parts ...string) string {
	for i, part := range parts {
		parts[i] = base64.RawURLEncoding.EncodeToString([]byte(part))
	}
	return strings.Join(parts, ".")
}

// What parses has one way of being written and keeps within every bound.
func FuzzParseToken(f *testing.F) {
	const header = `{"alg":"ES256","kid":"k"}`
	const payload = `{"iss":"https://a.example","sub":"u","aud":"https://p.example","iat":1790000000,"exp":1790000100.5}`
	f.Add(token64(header, payload, "signature"))
	f.Add(token64(`{"alg":"RS256"}`, strings.Replace(payload, "iat", "Iat", 1), "s"))
	f.Add(token64(`{"alg":"RS256"}`, strings.Replace(payload, `"u"`, `"\ud800"`, 1), "s"))
	f.Add(token64(`{"alg":"ES256","crit":null}`, payload, "s"))
	f.Add(token64(`{"alg":"ES256","alg":"none"}`, payload, "s"))
	f.Add(strings.Repeat(".", maxToken))
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parse(text)
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Fatalf("%v is no refusal", err)
			}
			return
		}
		parts := strings.Split(text, ".")
		if len(parts) != 3 || len(text) > maxToken {
			t.Fatalf("%d parts, %d bytes", len(parts), len(text))
		}
		for _, part := range parts {
			raw, err := base64.RawURLEncoding.DecodeString(part)
			if err != nil || base64.RawURLEncoding.EncodeToString(raw) != part {
				t.Fatalf("part %q has another way of being written", part)
			}
		}
		if got.signed != parts[0]+"."+parts[1] {
			t.Fatal("the signature would cover something else")
		}
		c := got.claims
		for _, s := range []string{c.issuer, c.subject, c.audience, got.kid} {
			if !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError) {
				t.Fatalf("%q was not as written", s)
			}
		}
		if n := utf8.RuneCountInString(c.subject); n < 1 || n > maxSubject {
			t.Fatalf("subject of %d characters", n)
		}
		if got.alg != es256 && got.alg != rs256 || c.issued.IsZero() || c.expires.IsZero() {
			t.Fatalf("accepted %+v", got)
		}
	})
}
