package oauth_test

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/events"
	"countersign.dev/authority/oauth"
	"countersign.dev/tenants"
	"countersign.dev/web"
)

// told is a World with a server whose streams work.
type told struct {
	*authoritytest.World
	rules *authority.Authority
	url   string
	stop  context.CancelFunc // of the service
	tally int
}

// newTold serves as in production, but with the deadlines of the connection that
// are given, and small buffers.
func newTold(t testing.TB, read, write time.Duration) *told {
	t.Helper()
	w := authoritytest.New(t)
	d := &told{World: w, rules: w.Authority(nil)}
	log := slog.New(slog.DiscardHandler)
	feed := events.NewFeed(w.DB, log)
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	var running sync.WaitGroup
	running.Go(func() { feed.Run(ctx) })
	mux := http.NewServeMux()
	oauth.New(oauth.Config{
		Brands: w.Brands, Authority: d.rules, Keys: w.Keys, Credentials: tenants.NewCredentials(w.DB, w.Clock.Now),
		Feed: feed, PublicURL: authoritytest.PublicURL, Log: log,
	}).Routes(mux)
	s := httptest.NewUnstartedServer(web.Chain(mux, web.Deadline, web.Record(log, time.Now), web.EveryAnswer(true)))
	s.Config.ReadTimeout, s.Config.WriteTimeout = read, write
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
		return ctx
	}
	s.Start()
	t.Cleanup(func() { cancel(); running.Wait(); s.Close() })
	d.url = s.URL + "/a2a/"
	return d
}

func (d *told) newKey(t testing.TB, b *tenants.Brand, rights ...tenants.Right) string {
	t.Helper()
	key, err := tenants.CreateAPIKey(t.Context(), d.DB, b.ID, "test", rights, d.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// change makes a grant and ends it: two events.
func (d *told) change(t testing.TB) {
	t.Helper()
	d.tally++
	subject := "guest-" + strconv.Itoa(d.tally)
	s := authoritytest.Begin(t, d.rules, d.Hotel, authority.Caller{Agent: authoritytest.Agent, Sub: subject}, "bookings:read")
	authoritytest.Approve(t, d.rules, d.Hotel, s, subject, "bookings:read")
	if n, err := d.rules.End(t.Context(), d.Hotel.ID, authority.ByOperator(), authority.Which{Subject: subject}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

// reader reads a stream.
type reader struct {
	answer *http.Response
	heard  chan heard // closed at the stream's end
}

// heard is one block of the stream.
type heard struct {
	id, event, data, comment string
	at                       time.Time
}

func (d *told) open(t testing.TB, b *tenants.Brand, key string, header ...string) *reader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+string(b.ID)+"/oauth/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	r := &reader{answer: resp, heard: make(chan heard, 10_000)}
	go r.read()
	return r
}

func (r *reader) read() {
	defer close(r.heard)
	var h heard
	for lines := bufio.NewScanner(r.answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			h.at = time.Now()
			r.heard <- h
			h = heard{}
		case name == "":
			h.comment = value
		case name == "id":
			h.id = value
		case name == "event":
			h.event = value
		case name == "data":
			h.data += value
		}
	}
}

// next is the next event; blocks without one are passed over.
func (r *reader) next(t testing.TB) heard {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case h, ok := <-r.heard:
			if !ok {
				t.Fatal("the stream ended")
			}
			if h.event != "" {
				return h
			}
		case <-timeout:
			t.Fatal("nothing was told")
		}
	}
}

// first is the block that gives the reader its place.
func (r *reader) first(t testing.TB) heard {
	t.Helper()
	select {
	case h := <-r.heard:
		return h
	case <-time.After(5 * time.Second):
		t.Fatal("the stream did not begin")
		panic("unreachable")
	}
}

// mustEnd fails unless the stream ends within the time.
func (r *reader) mustEnd(t testing.TB, why string, within time.Duration) {
	t.Helper()
	began, timeout := time.Now(), time.After(within)
	for {
		select {
		case _, ok := <-r.heard:
			if !ok {
				t.Logf("%s: ended after %s", why, time.Since(began))
				return
			}
		case <-timeout:
			t.Errorf("%s: the stream goes on after %s", why, within)
			return
		}
	}
}

// mustHearNothing fails if an event comes; the stream goes on.
func (r *reader) mustHearNothing(t testing.TB, d time.Duration) {
	t.Helper()
	timeout := time.After(d)
	for {
		select {
		case h, ok := <-r.heard:
			if !ok || h.event != "" {
				t.Fatalf("heard %+v, %v", h, ok)
			}
		case <-timeout:
			return
		}
	}
}
