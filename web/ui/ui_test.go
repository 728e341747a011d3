package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"pgregory.net/rapid"
)

// Any colour a Brand chooses can be read, on our paper and under its own text,
// by day and by night (WCAG 1.4.3).
func TestBrandColourIsAlwaysReadable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := colour{rapid.Uint8().Draw(t, "r"), rapid.Uint8().Draw(t, "g"), rapid.Uint8().Draw(t, "b")}
		for _, paper := range []struct{ on, pole colour }{{paperLight, black}, {paperDark, white}} {
			got := c.against(paper.on, paper.pole)
			if contrast(got, paper.on) < readable || contrast(got, got.text()) < readable {
				t.Fatalf("%s became %s: %.2f on paper, %.2f under text", c, got, contrast(got, paper.on), contrast(got, got.text()))
			}
		}
	})
}

func TestReadableColourIsLeftAlone(t *testing.T) {
	if css := string(BrandCSS("#0F766E")); !strings.HasPrefix(css, ":root{--brand:#0f766e;--on-brand:#ffffff}") {
		t.Error(css)
	}
}

func TestContrastIsWCAGs(t *testing.T) {
	if got := contrast(colour{}, white); got < 20.99 || got > 21.01 {
		t.Errorf("black on white is %.2f", got)
	}
	if got := contrast(colour{0x76, 0x76, 0x76}, white); got < 4.53 || got > 4.55 {
		t.Errorf("#767676 on white is %.2f", got)
	}
}

var justColours = regexp.MustCompile(`^:root\{--brand:#[0-9a-f]{6};--on-brand:#[0-9a-f]{6}\}@media \(prefers-color-scheme:dark\)\{:root\{--brand:#[0-9a-f]{6};--on-brand:#[0-9a-f]{6}\}\}\n$`)

// P23 in a style sheet: nothing a Brand types becomes a rule.
func TestBrandCSSHoldsNothingButColours(t *testing.T) {
	for _, hostile := range []string{
		"", "#", "red", "#12345", "#1234567", "#+12345", "0x1234", "}body{display:none", "#fff}*{x:y", "url(//evil.example)", "日本語", "#00 000",
	} {
		css := BrandCSS(hostile)
		if !justColours.Match(css) {
			t.Errorf("%q gave %s", hostile, css)
		}
		if !bytes.Equal(css, BrandCSS(house.String())) {
			t.Errorf("%q did not give our own colour", hostile)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if css := BrandCSS(rapid.String().Draw(t, "hex")); !justColours.Match(css) {
			t.Fatalf("%s", css)
		}
	})
	if !bytes.Equal(BrandCSS("#0af"), BrandCSS("00AAFF")) {
		t.Error("the short form is another colour")
	}
}

var cssPair = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)

// The papers in Go are those of the style sheet, and its own colours can be
// read as well.
func TestStylesheetColoursAreReadable(t *testing.T) {
	css, err := os.ReadFile("../static/files/pages.css")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(string(css), "@media (prefers-color-scheme: dark)", 2)
	for i, scheme := range []struct {
		name  string
		paper colour
	}{{"light", paperLight}, {"dark", paperDark}} {
		palette := map[string]colour{}
		for _, m := range cssPair.FindAllStringSubmatch(parts[i], -1) {
			palette[m[1]], _ = parseColour(m[2])
		}
		if palette["paper"] != scheme.paper {
			t.Errorf("%s paper is %s in the style sheet and %s in Go", scheme.name, palette["paper"], scheme.paper)
		}
		for _, pair := range []struct {
			ink, on string
			least   float64
		}{
			{"text", "paper", 7},
			{"text", "sheet", 7},
			{"text", "wash", 7},
			{"text", "care-wash", 7},
			{"text", "tint", 7},
			{"soft", "paper", readable},
			{"soft", "sheet", readable},
			{"soft", "tint", readable},
			{"ink", "paper", readable},
			{"ink", "sheet", readable},
			{"ink", "wash", readable},
			{"ink", "tint", readable},
			{"on-ink", "ink", readable},
			{"care", "paper", readable},
			{"care", "sheet", readable},
			{"care", "care-wash", readable},
			{"edge", "paper", 3},
			{"edge", "sheet", 3}, // borders of controls, WCAG 1.4.11
		} {
			if got := contrast(palette[pair.ink], palette[pair.on]); got < pair.least {
				t.Errorf("%s: %s on %s is %.2f, want %.1f", scheme.name, pair.ink, pair.on, got, pair.least)
			}
		}
	}
}

// An error half-way leaves the answer untouched, for the page that tells of it.
func TestRenderWritesAllOrNothing(t *testing.T) {
	broken := templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, _ = io.WriteString(w, "half a page")
		return errors.New("broken")
	})
	w := httptest.NewRecorder()
	if err := Render(t.Context(), w, 200, broken); err == nil {
		t.Error("no error")
	}
	if w.Body.Len() != 0 || len(w.Header()) != 0 {
		t.Errorf("wrote %q %v", w.Body, w.Header())
	}
	w = httptest.NewRecorder()
	if err := Render(t.Context(), w, 410, Plain("gone")); err != nil {
		t.Fatal(err)
	}
	if w.Code != 410 || w.Body.String() != "gone" || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
}

// B114, P23: other people's words are isolated and escaped; a link goes nowhere
// but to a page.
func TestPhraseSetsForeignWordsApart(t *testing.T) {
	var b strings.Builder
	p := Phrase{
		{Text: "Let "},
		{Text: "<b>فندق</b>", Origin: Foreign},
		{Text: " at "},
		{Text: "h.example", Origin: Proven},
		{Text: " & "},
		{Text: "x", Href: "javascript:alert(1)"},
		{Text: "y", Href: "/a?b=1&c=2"},
	}
	if err := p.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	want := `Let <bdi>&lt;b&gt;فندق&lt;/b&gt;</bdi> at <strong><bdi>h.example</bdi></strong> &amp; ` +
		`<a href="about:invalid#TemplFailedSanitizationURL">x</a><a href="/a?b=1&amp;c=2">y</a>`
	if b.String() != want {
		t.Errorf("got  %s\nwant %s", b.String(), want)
	}
	if got := p.String(); got != "Let <b>فندق</b> at h.example & xy" {
		t.Errorf("title %q", got)
	}
}

// What is said of a Brand's colour is what its stylesheet makes of it.
func TestShadesAreThoseOfTheStylesheet(t *testing.T) {
	for hex, moved := range map[string][2]bool{"#ffee00": {true, false}, "#1f3a5f": {false, true}, "#000000": {false, true}} {
		light, dark, ok := Shades(hex)
		if !ok || light.Moved != moved[0] || dark.Moved != moved[1] {
			t.Errorf("%s: %+v %+v %v", hex, light, dark, ok)
		}
		css := string(BrandCSS(hex))
		for _, s := range []Shade{light, dark} {
			if !strings.Contains(css, "--brand:"+s.Hex) || s.Moved != (s.Contrast < ReadableContrast) {
				t.Errorf("%s: %+v is not in %s", hex, s, css)
			}
		}
	}
	if _, _, ok := Shades("red"); ok {
		t.Error("a word is a colour")
	}
}
