package static

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestEveryFileIsServedUnderItsHash(t *testing.T) {
	for _, name := range names {
		w := httptest.NewRecorder()
		Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, URL(name), nil))
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %d bytes", name, w.Code, w.Body.Len())
		}
		if got := w.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: Cache-Control %q", name, got)
		}
		if w.Header().Get("Content-Type") == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", name, w.Header())
		}
		if !regexp.MustCompile(`\.[0-9a-f]{12}\.\w+$`).MatchString(URL(name)) {
			t.Errorf("%s: no hash in %s", name, URL(name))
		}
	}
}

func TestNothingElseIsServed(t *testing.T) {
	for _, path := range []string{
		"/static/", "/static/pages.css", "/static/../static.go", "/static/files/pages.css",
		"/static/pages.000000000000.css",
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/static/", nil)
		r.URL.Path = path
		Handler().ServeHTTP(w, r)
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

var (
	cssURL      = regexp.MustCompile(`url\(([^)]*)\)`)
	cssPhysical = regexp.MustCompile(`(?m)(^|[\s;{])((margin|padding|border)-(left|right)|left|right|text-align:\s*(left|right)|float)\s*[:;]`)
)

// Everything comes from our own origin (R107), and the stylesheet names only
// files that exist.
func TestStylesheetPointsAtOurOwnFiles(t *testing.T) {
	css := string(byName["pages.css"].content)
	found := cssURL.FindAllStringSubmatch(css, -1)
	if len(found) == 0 {
		t.Fatal("the display face is not linked")
	}
	for _, m := range found {
		if _, ok := byURL[m[1]]; !ok {
			t.Errorf("url(%s) is not one of our files", m[1])
		}
	}
	if strings.Contains(css, "@import") || strings.Contains(css, "//") {
		t.Error("the stylesheet reaches outside")
	}
}

// B114: a page turns round by logical properties alone; one physical side is
// enough to break Arabic.
func TestStylesheetKnowsNoLeftAndRight(t *testing.T) {
	css := string(byName["pages.css"].content)
	if m := cssPhysical.FindString(css); m != "" {
		t.Errorf("physical side in the stylesheet: %q", m)
	}
}

// B51: the rule that lets Allow wait is there, and is not taken for movement
// and switched off. A browser tries it in consent/pages.
func TestStylesheetLetsAllowWait(t *testing.T) {
	css := string(byName["pages.css"].content)
	if want := ".decide :is([value=\"allow\"], [value=\"continue\"]) {\n\tanimation: wait 1s;"; !strings.Contains(css, want) {
		t.Errorf("lacks %q", want)
	}
	if strings.Contains(css, "prefers-reduced-motion") {
		t.Error("nothing moves, so nothing may be switched off")
	}
}
