package events_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/events"
	"countersign.dev/authority/events/eventstest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// house is a World whose Brands are told.
type house struct {
	*authoritytest.World
	rules   *authority.Authority
	courier *events.Courier
	logs    *log
}

// log may be written by many at once.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// newHouse stands in the present, as the job queue does, but its clock stands
// still. Nobody delivers until work or Drain.
func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{World: authoritytest.NewAt(t, time.Now()), logs: &log{}}
	h.courier = h.newCourier(t)
	h.rules = authority.New(authority.Config{
		DB: h.DB, Signer: h.NewKeys(), Master: h.Master, Now: h.Clock.Now, Announce: h.courier.Announce,
	})
	return h
}

// newCourier is one more instance's.
func (h *house) newCourier(t testing.TB) *events.Courier {
	t.Helper()
	c, err := events.NewCourier(events.Config{
		DB: h.DB, Sealer: h.Master, Signer: h.NewKeys(), Now: h.Clock.Now, AllowLoopback: true,
		Edit: h.Authority(nil).Editor(authority.ByUpkeep()),
		Log:  slog.New(slog.NewTextHandler(h.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// work lets the courier work until the test ends or the returned function is called.
func work(t testing.TB, c *events.Courier) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// endpoint registers the receiver at the Brand.
func (h *house) endpoint(t testing.TB, b *tenants.Brand, r *eventstest.Receiver, types ...string) (id, secret string) {
	t.Helper()
	w, secret, err := tenants.CreateWebhook(t.Context(), h.Authority(nil).Editor(authority.ByOperator()), h.Master, tenants.Site{AllowLoopback: true}, b.ID, tenants.WebhookDraft{URL: r.URL, Events: types})
	if err != nil {
		t.Fatal(err)
	}
	return w.ID, secret
}

// allow makes a grant of the Hotel and returns it.
func (h *house) allow(t testing.TB, subject string, scopes ...string) uuid.UUID {
	t.Helper()
	who := authority.Caller{Agent: authoritytest.Agent, Sub: "phone of " + subject}
	s := authoritytest.Begin(t, h.rules, h.Hotel, who, scopes...)
	authoritytest.Approve(t, h.rules, h.Hotel, s, subject, scopes...)
	grants, err := h.rules.Grants(t.Context(), h.Hotel.ID, subject)
	if err != nil || len(grants) == 0 {
		t.Fatal(err)
	}
	return grants[0].ID
}

func (h *house) revoke(t testing.TB, subject string, grant uuid.UUID) {
	t.Helper()
	if err := h.rules.EndByUser(t.Context(), h.Hotel.ID, subject, grant); err != nil {
		t.Fatal(err)
	}
}

// drain delivers what is due at the Hotel's endpoint, without the job queue.
func (h *house) drain(t testing.TB, endpoint string) time.Time {
	t.Helper()
	next, err := h.courier.Drain(t.Context(), h.Hotel.ID, endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func (h *house) deliveries(t testing.TB, endpoint string) []events.Delivery {
	t.Helper()
	list, err := events.Deliveries(t.Context(), h.DB, h.Hotel.ID, endpoint, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var discard = slog.New(slog.DiscardHandler)

// until waits for what happens elsewhere in real time.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to be that " + what)
		}
	}
}
