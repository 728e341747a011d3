package a2a_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"countersign.dev/authority/a2a"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/events"
	"countersign.dev/e2e/bench/yardstick"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// BenchmarkHosted is one turn after the other at an agent that answers at once:
// called directly with a signed request, and through us without a delegation and
// with one, whose turns are countersigned and kept. What the latter take longer is
// what a hosted interface costs.
func BenchmarkHosted(b *testing.B) {
	d := newDoor(b)
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Done.","actions":[{"tool":"look","args":{"days":7}}]}`)
	})
	direct := d.direct(b)
	b.Run("agent called directly, "+yardstick.Called(1), func(b *testing.B) { direct.Benchmark(b, 1) })
	for _, tt := range []struct {
		name      string
		delegated bool
	}{{"turn without a delegation", false}, {"turn, countersigned", true}} {
		b.Run(tt.name+", "+yardstick.Called(1), func(b *testing.B) {
			jwt, token, n := "", "", 0
			yardstick.Callers(b, 1, func(int) error {
				// The limit is by the minute, and so is a pa-jwt's life: both are made anew
				// now and then, which is a few microseconds a turn.
				d.Clock.Advance(1100 * time.Millisecond)
				if n%60 == 0 {
					jwt = d.pa.Token(b, agenttest.Claims{Sub: "alex"})
				}
				if n%600 == 0 && tt.delegated {
					token = d.delegated(d.pa, "alex", "guest-1", "bookings:read").JWS
				}
				n++
				a := d.call(http.MethodPost, "/message:send", jwt, token, said(uuid.NewString(), "", "Hi"))
				if a.status != http.StatusOK || tt.delegated == (len(a.json.Message.Metadata) == 0) {
					return fmt.Errorf("%d %s", a.status, a.body)
				}
				return nil
			})
			direct.Beside(b, 1)
		})
	}
}

// direct is what a Brand's agent costs its caller without us.
func (d *door) direct(b *testing.B) yardstick.Raw {
	b.Helper()
	body, err := json.Marshal(a2a.Turn{Type: "turn", Text: "Hi", ContextID: uuid.NewString(), Scopes: []string{}})
	if err != nil {
		b.Fatal(err)
	}
	keys := []tenants.WebhookKey{{Key: []byte(d.agent.secret)}}
	return yardstick.Raw{Unit: yardstick.UnitDirect, Do: func(ctx context.Context, _ int) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.agent.URL, bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		events.Sign(r.Header, keys, uuid.New(), time.Now(), body)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close()
	}}
}
