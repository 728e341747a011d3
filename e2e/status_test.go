package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// verdict is what an independent implementation reads in the status list.
type verdict struct {
	URI     string
	Index   int `json:"idx"`
	Text    string
	Bits    int
	Indexes int
	Status  int
	Life    int
}

// statusOf asks that implementation about a token.
func statusOf(t *testing.T, b brand, token string) verdict {
	t.Helper()
	c := exec.CommandContext(t.Context(), "node", "statuslist.mjs", b.Issuer)
	c.Stdin = strings.NewReader(token)
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		t.Fatalf("node statuslist.mjs (npm ci --prefix e2e): %v\n%s", err, complaint.String())
	}
	var v verdict
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return v
}

// mustBecome waits until the list says so of the token, three seconds at most,
// and then asks our own verifier, which has nothing but the saved list.
func (p *product) mustBecome(t *testing.T, b brand, token string, status int) verdict {
	t.Helper()
	const promised = 3 * time.Second
	changed := time.Now()
	asked := changed
	v := statusOf(t, b, token)
	for v.Status != status {
		if asked.Sub(changed) > promised {
			t.Fatalf("index %d says %d after %s, not %d", v.Index, v.Status, promised, status)
		}
		asked = time.Now()
		v = statusOf(t, b, token)
	}
	file := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(file, []byte(v.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	says := [...]string{"✓ status", "Refused: revoked", "Refused: suspended"}[status]
	out, exit := p.run(t, token, "verify", "token", "-", "--card", b.CardURL, "--status", file)
	if exit != min(status, 1) || !strings.Contains(out, says) {
		t.Errorf("countersign verify: exit %d\n%s", exit, out)
	}
	return v
}

// B29, B34, R54: whoever verifies offline learns from the signed status list,
// within seconds, that a person was suspended and is back, that a grant became
// narrower and that it ended. A list is read by code of others, with the keys
// that we publish; the neighbour's token stays as good as it was.
func TestStatusListTellsOfflineVerifiers(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	const valid, invalid, suspended = 0, 1, 2
	alex, asked := question(t, p, "bookings:read", "bookings:change")
	alex.allow()
	alex.mustSee(allowedHeading)
	first := asked.poll().AccessToken
	other := p.ask(t, hotel, userOf(t)+"-sam", "bookings:read")
	sam := newPerson(t, p)
	sam.reachQuestion(other.Link, "sam")
	sam.allow()
	sam.mustSee(allowedHeading)
	neighbour := other.poll().AccessToken

	v := p.mustBecome(t, hotel, first, valid)
	if v.Bits != 2 || v.Indexes != 1<<17 || v.Life != 600 || !strings.HasPrefix(v.URI, hotel.Issuer+"/status/") {
		t.Errorf("%d bits, %d indexes, good for %d s, at %s", v.Bits, v.Indexes, v.Life, v.URI)
	}
	user := hotel.Users[0].Subject
	p.operate(t, "user", "suspend", "--brand", hotel.ID, "--subject", user)
	resume := func() { p.operate(t, "user", "resume", "--brand", hotel.ID, "--subject", user) }
	t.Cleanup(resume)
	p.mustBecome(t, hotel, first, suspended)
	p.mustBecome(t, hotel, neighbour, valid)
	resume()
	p.mustBecome(t, hotel, first, valid)

	again := p.ask(t, hotel, userOf(t), "bookings:read", "bookings:change")
	alex = newPerson(t, p)
	alex.reachQuestion(again.Link, "alex")
	alex.untick("bookings:change")
	alex.allow()
	alex.mustSee(allowedHeading)
	second := again.poll().AccessToken
	p.mustBecome(t, hotel, first, invalid)
	p.mustBecome(t, hotel, second, valid)

	if status := again.post("/revoke", url.Values{"token": {second}}, &struct{}{}); status != http.StatusOK {
		t.Fatalf("revoke: %d", status)
	}
	p.mustBecome(t, hotel, second, invalid)
	p.mustBecome(t, hotel, neighbour, valid)
}
