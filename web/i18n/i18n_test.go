package i18n

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"
	"pgregory.net/rapid"
)

func mustLoad(t *testing.T) *Catalogue {
	t.Helper()
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOurCatalogueIsComplete(t *testing.T) {
	if got := len(mustLoad(t).Languages()); got != len(files) {
		t.Errorf("%d languages, want %d", got, len(files))
	}
}

// A key that stands twice would quietly lose one of its texts: the last is read.
func TestNoKeyStandsTwice(t *testing.T) {
	for _, tag := range files {
		text, err := embedded.ReadFile("languages/" + tag + ".json")
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for _, m := range regexp.MustCompile(`(?m)^\s*"([a-z0-9_.]+\.[a-z0-9_.]+)":`).FindAllSubmatch(text, -1) {
			if seen[string(m[1])] {
				t.Errorf("%s: %s", tag, m[1])
			}
			seen[string(m[1])] = true
		}
		if len(seen) < 100 {
			t.Errorf("%s: %d keys found", tag, len(seen))
		}
	}
}

const whole = `{"name":"A","calendar":{"months":["1","2","3","4","5","6","7","8","9","10","11","12"],` +
	`"date":"{day} {month} {year}","datetime":"{date} {time} {zone}"},"messages":{"hello":"Hello {name}","days":{"one":"a day","other":"{count} days"}}}`

// B115: a language that lags behind is found when the program starts, not by a
// reader.
func TestLoadRefusesALanguageThatLagsBehind(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"key missing", `"hello":"Hello {name}",`, ``, "lacks key hello"},
		{"key too many", `"hello":`, `"more":"x","hello":`, "unknown key more"},
		{"placeholder missing", `Hello {name}`, `Hello`, "key hello: placeholders"},
		{"placeholder renamed", `{name}`, `{who}`, "key hello: placeholders"},
		{"empty", `Hello {name}`, ``, "is empty"},
		{"neither text nor forms", `"Hello {name}"`, `7`, "neither text"},
		{"month missing", `"1",`, ``, "11 months"},
		{"date without year", ` {year}`, ``, "lacks {year}"},
		{"no name", `"name":"A"`, `"name":""`, "has no name"},
		{"not JSON", `{"name"`, `{{"name"`, "invalid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			broken := strings.Replace(whole, tt.old, tt.new, 1)
			_, err := load([]string{"en", "de"}, map[string][]byte{"en": []byte(whole), "de": []byte(broken)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := load([]string{"en", "de"}, map[string][]byte{"en": []byte(whole), "de": []byte(whole)}); err != nil {
		t.Errorf("a whole language: %v", err)
	}
}

func TestTextFillsTheGaps(t *testing.T) {
	c, err := load([]string{"en"}, map[string][]byte{"en": []byte(whole)})
	if err != nil {
		t.Fatal(err)
	}
	en := c.Languages()[0]
	for _, tt := range []struct{ got, want string }{
		{en.Text("hello", "name", "Ann"), "Hello Ann"},
		{en.Text("hello", "name", "{count}"), "Hello {count}"},
		{en.Text("days", "count", 1), "a day"},
		{en.Text("days", "count", 0), "0 days"},
		{en.Text("days", "count", 2), "2 days"},
		{en.Text("no such key"), ""},
		{Language{}.Text("hello"), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// B115: whatever a visitor wishes for, something is spoken.
func TestMatchHearsTheVisitor(t *testing.T) {
	c := mustLoad(t)
	long := strings.Repeat("zh-Hant-x-aaaaaaaa,", 600)
	for _, tt := range []struct{ name, locales, accept, want string }{
		{"nothing", "", "", "en"},
		{"anything", "", "*", "en"},
		{"Taiwan", "", "zh-TW,zh;q=0.9,en;q=0.8", "zh-Hant"},
		{"Hong Kong", "", "zh-HK", "zh-Hant"},
		{"Hong Kong, as browsers there ask", "", "zh-HK,zh;q=0.9,en-US;q=0.8,en;q=0.7", "zh-Hant"},
		{"Macau", "", "zh-MO,zh,en", "zh-Hant"},
		{"British", "", "en-GB,en;q=0.9", "en"},
		{"unknown only", "", "eo, tlh", "en"},
		{"unknown first", "", "eo, zh-TW", "zh-Hant"},
		{"the link wins", "zh-Hant", "en", "zh-Hant"},
		{"the link, second wish", "xx zh-TW en", "en", "zh-Hant"},
		{"the link wishes for what we lack", "fr", "zh-TW", "zh-Hant"},
		{"the link is broken", "\x00 -- %%", "zh-TW", "zh-Hant"},
		{"the header is broken", "", "en;;q=zz,\xff", "en"},
		{"10 KB of header", "", long, "zh-Hant"},
		{"10 KB of one wish", "", strings.Repeat("a", 10240), "en"},
		{"10 KB of link", strings.Repeat("zh-TW ", 1700), "", "zh-Hant"},
		{"10 KB of dashes", strings.Repeat("-", 10240), strings.Repeat("-", 10240), "en"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := c.Match(tt.locales, tt.accept).Tag; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestMatchNeverFails(t *testing.T) {
	c := mustLoad(t)
	rapid.Check(t, func(t *rapid.T) {
		if c.Match(rapid.String().Draw(t, "locales"), rapid.String().Draw(t, "accept")).Tag == "" {
			t.Fatal("no language")
		}
	})
}

func TestWishesAreCutBeforeTheyAreRead(t *testing.T) {
	if got := cut(strings.Repeat("zh-TW,", 2000), ","); len(got) > longestWish || !strings.HasSuffix(got, "zh-TW") {
		t.Errorf("cut to %d bytes, ending in %q", len(got), got[max(0, len(got)-8):])
	}
	if got := len(parseAccept(strings.Repeat("en,", 80))); got > mostWishes {
		t.Errorf("%d wishes", got)
	}
}

// B114: the direction follows the script, for languages we may add one day too.
func TestDirectionFollowsTheScript(t *testing.T) {
	for tag, want := range map[string]string{
		"ar": "rtl", "he": "rtl", "fa": "rtl", "ur": "rtl", "ckb": "rtl", "yi": "rtl", "dv": "rtl", "az-Arab": "rtl",
		"en": "ltr", "de": "ltr", "ja": "ltr", "zh-Hant": "ltr", "az": "ltr", "und": "ltr", "tlh": "ltr",
	} {
		if got := direction(language.Make(tag)); got != want {
			t.Errorf("%s: %s, want %s", tag, got, want)
		}
	}
	for _, l := range mustLoad(t).Languages() {
		if l.Dir != "ltr" {
			t.Errorf("%s is turned round", l.Tag)
		}
	}
}

// B112: a day is written in a zone, and a time never without its name.
func TestDatesNameTheirZone(t *testing.T) {
	c := mustLoad(t)
	en, zh := c.Languages()[0], c.Languages()[1]
	space := strings.NewReplacer("\u00a0", " ")
	late := time.Date(2026, 12, 31, 23, 30, 0, 0, time.UTC)
	kathmandu := late.In(time.FixedZone("", 5*3600+45*60))
	for _, tt := range []struct{ got, want string }{
		{en.Date(late), "31 December 2026"},
		{en.Date(kathmandu), "1 January 2027"},
		{en.DateTime(late), "31 December 2026, 23:30 UTC"},
		{en.DateTime(kathmandu), "1 January 2027, 05:15 UTC+05:45"},
		{en.DateTime(late.In(time.FixedZone("+0545", 20700))), "1 January 2027, 05:15 UTC+05:45"},
		{zh.Date(late), "2026年12月31日"},
		{zh.DateTime(late), "2026年12月31日 23:30 UTC"},
		{en.Date(time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC)), "29 February 2028"},
		{Language{}.Date(late), "2026-12-31"},
	} {
		if got := space.Replace(tt.got); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// Words of the trade never reach a person. The dashboard's readers run servers
// that check tokens, and read the standards: it calls things as these do.
func TestNoJargon(t *testing.T) {
	for _, l := range mustLoad(t).Languages() {
		for key, m := range l.messages {
			for _, p := range append(m.one, m.other...) {
				for _, word := range []string{"scope", "grant", "token", "oauth", "idp", "consent", "delegat", "revoke", "authori", "session", "client", "權杖", "授權伺服器"} {
					theirs := strings.HasPrefix(key, "console.") && !slices.Contains([]string{"idp", "delegat", "authori", "session"}, word)
					if strings.Contains(strings.ToLower(p.Text), word) && !theirs {
						t.Errorf("%s %s: says %q", l.Tag, key, word)
					}
				}
			}
		}
	}
}
