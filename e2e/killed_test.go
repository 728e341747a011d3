package e2e

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// told is a Security Event Token that came.
type told struct {
	ID     string                     `json:"jti"`
	Events map[string]json.RawMessage `json:"events"`
	Sub    struct {
		Session struct{ ID string } `json:"session"`
	} `json:"sub_id"`
}

const sessionRevoked = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"

// R52: the person ends an agent on the portal, and the service is killed with the
// Brand's answer still out. Started again, it tells the Brand: the very token of before,
// by its jti, so that the receiver sees that it is no second ending.
func TestARevocationIsToldThoughTheServiceIsKilled(t *testing.T) {
	came := make(chan told, 100)
	hold := make(chan struct{}) // until then nobody is answered
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		parts := strings.Split(string(body), ".")
		if err != nil || len(parts) != 3 || r.Header.Get("Content-Type") != "application/secevent+jwt" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var set told
		raw, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil || json.Unmarshal(raw, &set) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		came <- set
		if set.Events[sessionRevoked] != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(receiver.Close)
	revoked := func(within time.Duration) told {
		t.Helper()
		for limit := time.After(within); ; {
			select {
			case set := <-came:
				if set.Events[sessionRevoked] != nil {
					return set
				}
			case <-limit:
				t.Fatalf("the Brand was not told within %s", within)
			}
		}
	}

	folder := filepath.Join(t.TempDir(), "killed")
	p, err := start(folder, "data", "localhost:0")
	if p != nil {
		t.Cleanup(func() { p.kill() })
	}
	if err != nil {
		t.Fatal(err)
	}
	p.operate(t, "webhook", "create", "--as-operator", "--brand", "harbor-hotel", "--format", "set", "--url", receiver.URL,
		"--allow-loopback", "--master-key-file", p.MasterKey)
	i := &inspector{newPerson(t, p), axe(t), map[string]bool{}}
	one := i.allowed(userOf(t), "bookings:read")
	i.open(p.page(p.hotel(t), "agents"))
	i.follow(`a[href*="end=` + one.grant + `"]`)
	i.follow("main form button")
	i.mustRead("Aria can no longer act on your Harbor Hotel account.")
	first := revoked(10 * time.Second)
	if first.Sub.Session.ID != one.grant {
		t.Errorf("%+v is not about %s", first, one.grant)
	}

	public, err := url.Parse(p.PublicURL)
	if err != nil {
		t.Fatal(err)
	}
	p.kill()
	close(hold)
	again, err := start(folder, "data", public.Host)
	if again != nil {
		t.Cleanup(func() { again.kill() })
	}
	if err != nil {
		t.Fatal(err)
	}
	// A claim runs out after half a minute, upkeep rings every minute.
	if second := revoked(3 * time.Minute); second.ID != first.ID || second.Sub.Session.ID != one.grant {
		t.Errorf("told %+v, and before the end %+v", second, first)
	}
	one.product = again
	one.mustHold("")
}
