package discovery

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// The commonest mistakes of a newcomer, each with what to do about it.
func TestCommonMistakesHaveRemedies(t *testing.T) {
	s := newStranger(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	other := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	for _, tt := range []struct{ name, card, want string }{
		{"dev does not run", gone.URL + "/a2a/harbor", " dev running? It is not answering at " + strings.TrimPrefix(gone.URL, "http://")},
		{"a page instead of the interface", s.URL + "/b/harbor", "Is this the interface URL?"},
		{"no scheme", strings.TrimPrefix(s.URL, "http://") + "/a2a/harbor", "must begin with http:// or https://"},
		{"no scheme, and a name", "localhost:8080/a2a/harbor", "must begin with http:// or https://"},
		{"TLS where there is none", strings.Replace(s.URL, "http", "https", 1) + "/a2a/harbor", "begin with http://"},
		{"another name of this machine", other + "/a2a/harbor", "use the Brand's own address: --card " + s.URL + "/a2a/harbor"},
	} {
		_, err := Client{}.Find(context.Background(), tt.card, false)
		if err == nil {
			t.Fatalf("%s: no error", tt.name)
		}
		if told := err.Error() + "\n" + Remedy(err); !strings.Contains(told, tt.want) || strings.Contains(told, "allow-split") {
			t.Errorf("%s: %s", tt.name, told)
		}
	}
}

// Only a Brand on this machine can be a demo that does not run.
func TestASilentStrangerIsNoDemo(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://harbor.example/x", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
	if got := Remedy(refused); strings.Contains(got, "dev") || !strings.Contains(got, "harbor.example") {
		t.Error(got)
	}
	for _, err := range []error{
		errors.New("other"),
		StatusError{"https://harbor.example" + cardPath, http.StatusBadGateway},
		StatusError{"https://harbor.example/jwks.json", http.StatusNotFound},
		ErrMetadata,
	} {
		if got := Remedy(err); got != "" {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// A card may lie beside its Brand on purpose; then trust is the person's to give.
func TestACardOfAnotherOriginMayBeTrusted(t *testing.T) {
	card, _ := url.Parse("https://www.harbor.example/x")
	at, _ := url.Parse("https://api.harbor.example/a2a/$(id)")
	err := ownCard(card, at, false)
	if !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), "--card 'https://api.harbor.example/a2a/$(id)'") || !strings.Contains(err.Error(), "--allow-split") {
		t.Error(err)
	}
	if err := ownCard(card, at, true); err != nil {
		t.Error(err)
	}
}
