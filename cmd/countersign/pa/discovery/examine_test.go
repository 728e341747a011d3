package discovery

import (
	"net/http"
	"strings"
	"testing"
)

// Each thing a strict agent looks at is told by itself, also what comes after the
// first fault.
func TestExamineTellsLineByLine(t *testing.T) {
	const elsewhere = "http://127.0.0.1:9"
	for _, tt := range []struct {
		name, part, old, new string
		bad                  string // the lines that are not OK
	}{
		{"all is well", "card", "URL", "URL", ""},
		{"two identity schemes", "card", `"paJwt":`, `"platformJwt": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}}, "paJwt":`, "identity"},
		{"another interface", "card", `"url": "URL/a2a/harbor"`, `"url": "URL/a2a/harbor/"`, "interface"},
		{"no delegation", "card", `"userDelegation"`, `"other"`, "delegation endpoints"},
		{"token endpoint elsewhere", "card", `"tokenUrl": "URL`, `"tokenUrl": "` + elsewhere, "origin endpoints"},
		{"a card that is a page", "card", `{`, `<html>`, "card endpoints"},
		{"an old issuer", "metadata", `"issuer": "URL/a2a/harbor/oauth"`, `"issuer": "URL/a2a/ferry/oauth"`, "issuer"},
		{"another token endpoint", "metadata", `oauth/token`, `oauth/Token`, "endpoints"},
		{"old keys", "keys", `"k1"`, `"k0"`, "jwks"},
		{"a private key", "keys", `"kid"`, `"d":"x","kid"`, "jwks"},
		{"no metadata", "metadata", `{`, `<html>`, "metadata"},
	} {
		s := newStranger(t)
		keys := `{"keys":[{"kid":"k1"}]}`
		switch tt.part {
		case "card":
			s.card = replaced(t, s.card, tt.old, tt.new)
		case "metadata":
			s.metadata = replaced(t, s.metadata, tt.old, tt.new)
		case "keys":
			keys = replaced(t, keys, tt.old, tt.new)
		}
		s.Config.Handler.(*http.ServeMux).HandleFunc("GET /a2a/harbor/oauth/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(keys))
		})
		at := s.URL + "/a2a/harbor"
		var bad []string
		for _, l := range (Client{}).Examine(t.Context(), Expected{Interface: at, Issuer: at + "/oauth", KIDs: []string{"k1"}}) {
			if l.Say == "" {
				t.Errorf("%s: %s says nothing", tt.name, l.What)
			}
			if !l.OK && (len(bad) == 0 || bad[len(bad)-1] != l.What) {
				bad = append(bad, l.What)
			}
		}
		if got := strings.Join(bad, " "); got != tt.bad {
			t.Errorf("%s: %q is wrong, want %q", tt.name, got, tt.bad)
		}
	}
}

// A proxy that forwards everything but the metadata at the path-insertion address
// is seen.
func TestExamineTriesBothMetadataAddresses(t *testing.T) {
	s := newStranger(t)
	old := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/oauth") {
			http.NotFound(w, r)
			return
		}
		old.ServeHTTP(w, r)
	})
	at := s.URL + "/a2a/harbor"
	for _, l := range (Client{}).Examine(t.Context(), Expected{Interface: at, Issuer: at + "/oauth"}) {
		if l.What == "metadata" && !l.OK && strings.Contains(l.At, "/.well-known/oauth-authorization-server/a2a/harbor/oauth") {
			return
		}
	}
	t.Error("not seen")
}
