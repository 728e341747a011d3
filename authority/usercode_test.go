package authority

import (
	"crypto/rand"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// R2, P20: parse(format(code)) is the code, in any dress people give it.
func TestUserCodeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := UserCode(rapid.StringOfN(rapid.SampledFrom([]rune(userCodeAlphabet)), 8, 8, -1).Draw(t, "code"))
		shown := code.String()
		if rapid.Bool().Draw(t, "lower") {
			shown = strings.ToLower(shown)
		}
		shown = strings.ReplaceAll(shown, "-", rapid.SampledFrom([]string{"-", " ", "", "–", " - ", "\u2212"}).Draw(t, "dash"))
		if got, ok := ParseUserCode(shown); !ok || got != code {
			t.Fatalf("%q became %q, %v", shown, got, ok)
		}
	})
}

// R2: look-alikes, vowels, digits and wrong lengths are refused, never guessed.
func TestUserCodeRefusesWhatItIsNot(t *testing.T) {
	for _, tt := range []struct{ name, in string }{
		{"empty", ""},
		{"short", "BCDF-GHJ"},
		{"long", "BCDF-GHJK-L"},
		{"vowel", "BADF-GHJK"},
		{"Y", "BYDF-GHJK"},
		{"digit", "B0DF-GHJK"},
		{"cyrillic", "ВCDF-GHJK"},
		{"greek", "ΒCDF-GHJK"},
		{"kelvin sign", "BCDF-GHJ\u212a"},
		{"long s", "BCDF-GHJ\u017f"},
		{"control", "BCDF\x00GHJK"},
		{"huge", strings.Repeat("-", 1000) + "BCDFGHJK"},
	} {
		if got, ok := ParseUserCode(tt.in); ok {
			t.Errorf("%s: became %q", tt.name, got)
		}
	}
	if got, ok := ParseUserCode("ＢＣＤＦ－ｇｈｊｋ"); !ok || got != "BCDFGHJK" {
		t.Errorf("full width: %q, %v", got, ok)
	}
}

// P9: every letter equally likely (no modulo bias), nothing else.
func TestUserCodesAreUnbiased(t *testing.T) {
	const codes = 20_000
	var seen [256]int
	for range codes {
		code, err := drawUserCode(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(code) {
			seen[code[i]]++
		}
	}
	// Chi squared with 19 degrees of freedom: 60 is beyond one in two million;
	// a modulo of 256 by 20 would give over 700.
	expected := float64(codes*userCodeLength) / float64(len(userCodeAlphabet))
	chi, total := 0.0, 0
	for i := range len(userCodeAlphabet) {
		n := seen[userCodeAlphabet[i]]
		total += n
		chi += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	if total != codes*userCodeLength {
		t.Fatal("letters outside the alphabet")
	}
	if chi > 60 {
		t.Fatalf("letters are not equally likely: chi² = %.0f", chi)
	}
}

func FuzzParseUserCode(f *testing.F) {
	for _, s := range []string{"BCDF-GHJK", "bcdf ghjk", "ＢＣＤＦ－ＧＨＪＫ", "\xff\xfe", "BCDF\u200dGHJK"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		code, ok := ParseUserCode(in)
		if !ok {
			return
		}
		again, ok := ParseUserCode(code.String())
		if !ok || again != code {
			t.Fatalf("%q became %q, then %q", in, code, again)
		}
		// Nothing may turn into a letter that was not typed.
		letters := 0
		for _, r := range strings.ToUpper(in) {
			if r >= 'Ａ' && r <= 'Ｚ' {
				r = r - 'Ａ' + 'A'
			}
			if strings.ContainsRune(userCodeAlphabet, r) {
				letters++
			}
		}
		if letters != userCodeLength {
			t.Fatalf("%q has %d letters of the alphabet", in, letters)
		}
	})
}
