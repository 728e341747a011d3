package check

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// A pipe whose first half failed brings nothing: that is no verdict on a token.
func TestWithoutATokenThereIsNoVerdict(t *testing.T) {
	s := newScene(t)
	for _, stdin := range []string{"", "\n", "Bearer ", "Bearer \n"} {
		code, out, errs := verifyCommand(stdin, "token", "-", "--card", s.url)
		if code != exitUnknown || out != "" || !strings.Contains(errs, "no token came in") {
			t.Errorf("%q: exit %d, %q, %q", stdin, code, out, errs)
		}
	}
}

// A token in the place of FILE is told apart, and printed nowhere.
func TestATokenIsNoFile(t *testing.T) {
	s := newScene(t)
	token := s.token(nil)
	code, out, errs := verifyCommand("", "token", token, "--card", s.url)
	if code != exitUnknown || !strings.Contains(errs, "pipe it in") || strings.Contains(out+errs, token) {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

func TestMistakesOfTheCardHaveRemedies(t *testing.T) {
	s := newScene(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	for card, want := range map[string]string{
		gone.URL:                                   " dev running?",
		s.url + "/nowhere":                         "the interface URL?",
		strings.TrimPrefix(s.url, "http://"):       "begin with http:// or https://",
		strings.Replace(s.url, "http", "https", 1): "begin with http://",
	} {
		code, _, errs := verifyCommand(s.token(nil), "token", "-", "--card", card)
		if code != exitUnknown || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %q", card, code, errs)
		}
	}
}
