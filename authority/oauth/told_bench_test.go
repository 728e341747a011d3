package oauth_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/events"
	"countersign.dev/authority/events/eventstest"
	"countersign.dev/authority/signing"
	"countersign.dev/e2e/bench/yardstick"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// BenchmarkTold is how long it takes from a person's click on "end" until the
// Brand knows: the call of the rule, its commit, and the way to a stream or a
// receiver on this machine. One op is one of some hundred revocations a second,
// at least 200 of them.
func BenchmarkTold(b *testing.B) {
	d := newTold(b, 0, 0)
	courier, err := events.NewCourier(events.Config{
		DB: d.DB, Sealer: d.Master, Now: d.Clock.Now, Log: slog.New(slog.DiscardHandler), AllowLoopback: true,
		Edit: d.Authority(nil).Editor(authority.ByUpkeep()),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { courier.Run(ctx) })
	b.Cleanup(func() { cancel(); working.Wait() })
	d.rules = authority.New(authority.Config{DB: d.DB, Signer: d.Keys, Master: d.Master, Now: d.Clock.Now, Announce: courier.Announce})

	receiver := eventstest.New(b)
	if _, _, err := tenants.CreateWebhook(b.Context(), d.Authority(nil).Editor(authority.ByOperator()), d.Master, tenants.Site{AllowLoopback: true}, d.Hotel.ID, tenants.WebhookDraft{URL: receiver.URL}); err != nil {
		b.Fatal(err)
	}
	key := d.newKey(b, d.Hotel, tenants.RightEvents, tenants.RightIntrospect)
	b.Run("revoke to webhook", func(b *testing.B) {
		d.measure(b, func() (string, time.Time) {
			c := receiver.Next(b, 30*time.Second)
			return c.Data.GrantID, c.At
		})
	})
	b.Run("revoke to stream", func(b *testing.B) {
		r := d.open(b, d.Hotel, key)
		r.first(b)
		d.measure(b, func() (string, time.Time) {
			h := r.next(b)
			return member([]byte(h.data), "grant_id"), h.at
		})
	})
	b.Run("revoke to introspection", func(b *testing.B) { d.asked(b, key) })
}

// measure ends grants, one after the other, and waits until each was heard of.
func (d *told) measure(b *testing.B, hear func() (grant string, at time.Time)) {
	b.Helper()
	const many, pause = 200, 5 * time.Millisecond
	var took []time.Duration
	for range b.N {
		b.StopTimer()
		ids := d.grants(b, many)
		b.StartTimer()
		asked := make(map[string]time.Time, many)
		var mu sync.Mutex
		var ending sync.WaitGroup
		ending.Go(func() {
			for _, id := range ids {
				mu.Lock()
				asked[id.String()] = time.Now()
				mu.Unlock()
				if err := d.rules.EndByUser(b.Context(), d.Hotel.ID, "guest-7", id); err != nil {
					b.Error(err)
				}
				time.Sleep(pause)
			}
		})
		for range many {
			grant, at := hear()
			mu.Lock()
			took = append(took, at.Sub(asked[grant]))
			mu.Unlock()
		}
		ending.Wait()
	}
	report(b, took)
}

// report says how long each took.
func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	var total time.Duration
	for _, t := range took {
		total += t
	}
	b.ReportMetric(float64(total.Nanoseconds())/float64(len(took)), "ns/op")
	b.ReportMetric(float64(took[len(took)/2]), yardstick.UnitMedian)
	b.ReportMetric(float64(took[len(took)*99/100]), yardstick.UnitSlow)
}

// asked ends grants, one after the other, and asks at the door until it says that
// the token is worth nothing: from the end's own answer on, which the first
// question is to find.
func (d *told) asked(b *testing.B, key string) {
	b.Helper()
	const many = 200
	var took []time.Duration
	questions := 0
	for range b.N {
		b.StopTimer()
		ids := d.grants(b, many)
		tokens := make([]string, many)
		for i, id := range ids {
			now := d.Clock.Now()
			claims, err := json.Marshal(map[string]any{
				"iss": d.Hotel.Issuer, "aud": d.Hotel.InterfaceURL, "sub": "guest-7", "client_id": authoritytest.Agent, "scope": "bookings:read",
				"grant_id": id, "iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "jti": id,
			})
			if err != nil {
				b.Fatal(err)
			}
			if tokens[i], err = d.Keys.Sign(b.Context(), d.Hotel.ID, signing.TypToken, claims); err != nil {
				b.Fatal(err)
			}
		}
		alive := func(token string) bool {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, d.url+"harbor-hotel/oauth/introspect", strings.NewReader("token="+token))
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Authorization", "Bearer "+key)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK {
				b.Fatalf("%d %s, %v", resp.StatusCode, body, err)
			}
			return string(body) != `{"active":false}`
		}
		b.StartTimer()
		for i, id := range ids {
			if !alive(tokens[i]) { // or the bench measures nothing
				b.Fatal("dead before its end")
			}
			if err := d.rules.EndByUser(b.Context(), d.Hotel.ID, "guest-7", id); err != nil {
				b.Fatal(err)
			}
			ended := time.Now()
			for lives := true; lives; questions++ {
				lives = alive(tokens[i])
			}
			took = append(took, time.Since(ended))
		}
	}
	if questions != len(took) {
		b.Errorf("%d questions until %d ends were known: the first was to find each", questions, len(took))
	}
	report(b, took)
}

// grants makes as many of one person, with so many agents' Users.
func (d *told) grants(b *testing.B, many int) []uuid.UUID {
	b.Helper()
	ids := make([]uuid.UUID, many)
	const q = `
		WITH list AS (
			INSERT INTO status_lists AS l (brand_id, list, used, version) VALUES ('harbor-hotel', 0, 1, 0)
			ON CONFLICT (brand_id, list) DO UPDATE SET used = l.used + 1 RETURNING used - 1 AS idx
		), entry AS (
			INSERT INTO status_entries (brand_id, list, idx, grant_id) SELECT 'harbor-hotel', 0, idx, $1 FROM list
		)
		INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at, status_list, status_idx)
		SELECT 'harbor-hotel', $1, $2, $3, 'guest-7', '{bookings:read}', $4, $5, 0, idx FROM list`
	for i := range ids {
		ids[i] = uuid.New()
		d.Exec(b, q, ids[i], authoritytest.Agent, strconv.Itoa(i), d.Clock.Now(), d.Clock.Now().Add(24*time.Hour))
	}
	return ids
}
