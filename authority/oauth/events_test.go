package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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
	"countersign.dev/tenants"
)

// wire.md §10: the Brand's own key with the right events, in the header alone.
func TestStreamsAreForTheBrandAlone(t *testing.T) {
	d := newTold(t, 0, 0)
	key := d.newKey(t, d.Hotel, tenants.RightEvents)
	get := func(method, path, key string) *http.Response {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, method, d.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	for what, try := range map[string]struct {
		method, path, key string
		want              int
	}{
		"no key":            {"GET", "harbor-hotel/oauth/events", "", 401},
		"in the query":      {"GET", "harbor-hotel/oauth/events?access_token=" + key + "&key=" + key, "", 401},
		"nonsense":          {"GET", "harbor-hotel/oauth/events", "cs_x", 401},
		"another Brand's":   {"GET", "harbor-hotel/oauth/events", d.newKey(t, d.Shop, tenants.RightEvents), 401},
		"at another Brand":  {"GET", "fern-and-fell/oauth/events", key, 401},
		"without the right": {"GET", "harbor-hotel/oauth/events", d.newKey(t, d.Hotel, tenants.RightIntrospect, tenants.RightAdmin), 403},
		"unknown Brand":     {"GET", "nobody/oauth/events", key, 404},
		"another method":    {"POST", "harbor-hotel/oauth/events", key, 405},
		"as it should be":   {"GET", "harbor-hotel/oauth/events", key, 200},
	} {
		if got := get(try.method, try.path, try.key).StatusCode; got != try.want {
			t.Errorf("%s: %d, want %d", what, got, try.want)
		}
	}
	d.Hotel = d.Save(t, d.Hotel, func(b *tenants.Brand) { b.Delegation = false })
	if got := get("GET", "harbor-hotel/oauth/events", key).StatusCode; got != http.StatusNotFound {
		t.Errorf("without delegation: %d", got)
	}
}

// A stream begins now, tells what webhooks tell, and goes on from where it
// stopped without loss or repetition.
func TestAStreamGoesOnWhereItStopped(t *testing.T) {
	d := newTold(t, 0, 0)
	key := d.newKey(t, d.Hotel, tenants.RightEvents)
	d.change(t)
	r := d.open(t, d.Hotel, key)
	if h := r.answer.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", h)
	}
	place := r.first(t)
	if place.id != strconv.Itoa(d.Count(t, `SELECT seq FROM audit_heads WHERE brand_id = 'harbor-hotel'`)) {
		t.Errorf("it begins at %+v", place)
	}
	r.mustHearNothing(t, 100*time.Millisecond)
	d.change(t)
	created, revoked := r.next(t), r.next(t)
	list, err := authority.Told(t.Context(), d.DB, d.Hotel.ID, 0, 100)
	if err != nil || len(list) != 4 {
		t.Fatalf("%d, %v", len(list), err)
	}
	for i, h := range []heard{created, revoked} {
		want, err := events.Message(list[2+i])
		if err != nil || h.data != string(want) || h.event != list[2+i].Type || h.id != strconv.FormatInt(list[2+i].Seq, 10) {
			t.Errorf("heard %+v, want %s", h, want)
		}
		var body struct{ Type string }
		if json.Unmarshal([]byte(h.data), &body) != nil || body.Type != h.event {
			t.Errorf("%s", h.data)
		}
	}
	// From each place that was given, what is after it and no more.
	for _, tt := range []struct {
		last string
		want []authority.Event
	}{{"0", list}, {place.id, list[2:]}, {created.id, list[3:]}} {
		again := d.open(t, d.Hotel, key, "Last-Event-ID", tt.last)
		for _, e := range tt.want {
			if h := again.next(t); h.id != strconv.FormatInt(e.Seq, 10) {
				t.Errorf("from %s: %s, want %d", tt.last, h.id, e.Seq)
			}
		}
		again.mustHearNothing(t, 100*time.Millisecond)
	}
	for _, bad := range []string{"x", "-1", "1.5", "99999999999999999999", strconv.FormatInt(list[3].Seq+1, 10)} {
		if r := d.open(t, d.Hotel, key, "Last-Event-ID", bad); r.answer.StatusCode != http.StatusBadRequest {
			t.Errorf("from %q: %d", bad, r.answer.StatusCode)
		}
	}
}

// Whoever comes and goes while much happens at once hears all, once, in order.
func TestNothingIsLostBetweenStreams(t *testing.T) {
	d := newTold(t, 0, 0)
	key := d.newKey(t, d.Hotel, tenants.RightEvents)
	const people, rounds = 4, 15
	var all sync.WaitGroup
	for p := range people {
		all.Go(func() {
			who := authority.Caller{Agent: authoritytest.Agent, Sub: "sub-" + strconv.Itoa(p)}
			for range rounds {
				s, err := d.rules.Begin(context.Background(), d.Hotel, who, []string{"bookings:read"})
				if err == nil {
					err = authoritytest.TryApprove(context.Background(), d.rules, d.Hotel, s, who.Sub, "bookings:read")
				}
				if err == nil {
					_, err = d.rules.End(context.Background(), d.Hotel.ID, authority.ByOperator(), authority.Which{Subject: who.Sub})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	last, got := "0", []int64(nil)
	for len(got) < 2*people*rounds {
		r := d.open(t, d.Hotel, key, "Last-Event-ID", last)
		for range min(7, 2*people*rounds-len(got)) {
			last = r.next(t).id
			seq, _ := strconv.ParseInt(last, 10, 64)
			got = append(got, seq)
		}
		r.answer.Body.Close()
	}
	all.Wait()
	list, err := authority.Told(t.Context(), d.DB, d.Hotel.ID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]int64, len(list))
	for i, e := range list {
		want[i] = e.Seq
	}
	if !slices.Equal(got, want) {
		t.Errorf("heard %v, want %v", got, want)
	}
}

// wire.md §10: a stream ends within two seconds of its key or its Brand. The
// seconds are real: nothing but time tells the stream.
func TestAStreamEndsWithItsRight(t *testing.T) {
	t.Parallel()
	for why, end := range map[string]func(d *told, id string){
		"the key is revoked": func(d *told, id string) {
			if err := tenants.RevokeAPIKey(t.Context(), d.DB, d.Hotel.ID, id, d.Clock.Now()); err != nil {
				t.Error(err)
			}
		},
		"the key loses its right": func(d *told, id string) {
			d.Exec(t, `UPDATE api_keys SET rights = '{introspect}' WHERE id = $1`, id)
		},
		"the Brand is closed": func(d *told, _ string) {
			if err := tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Closed); err != nil {
				t.Error(err)
			}
		},
		"delegation is off": func(d *told, _ string) {
			d.Exec(t, `UPDATE brands SET delegation = false WHERE id = 'harbor-hotel'`)
		},
	} {
		d := newTold(t, 0, 0)
		key := d.newKey(t, d.Hotel, tenants.RightEvents)
		other := d.open(t, d.Shop, d.newKey(t, d.Shop, tenants.RightEvents))
		r := d.open(t, d.Hotel, key)
		r.first(t)
		end(d, strings.Split(key, "_")[1])
		d.Clock.Advance(time.Second) // what is known of keys and Brands may be so old
		r.mustEnd(t, why, 4*time.Second)
		other.mustHearNothing(t, 100*time.Millisecond) // another Brand's goes on
	}
}

// A paused Brand is told all the same: its grants can still end.
func TestAPausedBrandIsStillTold(t *testing.T) {
	d := newTold(t, 0, 0)
	r := d.open(t, d.Hotel, d.newKey(t, d.Hotel, tenants.RightEvents))
	r.first(t)
	d.change(t)
	if err := tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Paused); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(2 * time.Second)
	r.next(t)
	r.next(t)
	r.mustHearNothing(t, time.Second)
}

// Stopping the service ends streams at once.
func TestStreamsEndWithTheService(t *testing.T) {
	d := newTold(t, 0, 0)
	r := d.open(t, d.Hotel, d.newKey(t, d.Hotel, tenants.RightEvents))
	r.first(t)
	d.stop()
	r.mustEnd(t, "the service stops", time.Second)
}

// No deadline of the server cuts a stream, and an idle one says that it lives.
// Real time is the subject.
func TestAStreamOutlivesTheServersDeadlines(t *testing.T) {
	t.Parallel()
	d := newTold(t, 300*time.Millisecond, 500*time.Millisecond)
	r := d.open(t, d.Hotel, d.newKey(t, d.Hotel, tenants.RightEvents))
	r.first(t)
	select {
	case h, ok := <-r.heard:
		if !ok || h.comment == "" {
			t.Fatalf("heard %+v, %v", h, ok)
		}
	case <-time.After(20 * time.Second): // the patience with other requests is 10 s
		t.Fatal("an idle stream says nothing")
	}
	d.change(t)
	r.next(t)
	r.next(t)
}

// A notification that nobody hears costs two seconds at most, and a connection
// that listens and is lost comes again.
func TestALostNotificationCostsTwoSeconds(t *testing.T) {
	t.Parallel()
	d := newTold(t, 0, 0)
	r := d.open(t, d.Hotel, d.newKey(t, d.Hotel, tenants.RightEvents))
	r.first(t)
	// A connection that was asked whether it lives has woken everybody before,
	// for what it may have missed.
	listens := func() {
		t.Helper()
		const q = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = '-- ping'`
		for deadline := time.Now().Add(10 * time.Second); d.Count(t, q) != 1; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no connection listens")
			}
		}
	}
	listens()
	d.Exec(t, `ALTER TABLE audit_events DISABLE TRIGGER USER`)
	d.Exec(t, `INSERT INTO audit_events (brand_id, seq, at, actor, event, grant_id, salt, digest, hash, detail)
		SELECT 'harbor-hotel', 1, now(), 'system', 'grant.revoked', gen_random_uuid(), '', '', '', '{"agent":"a","subject":"s","scopes":[]}'`)
	d.Exec(t, `INSERT INTO audit_heads VALUES ('harbor-hotel', 1, '')`)
	d.Exec(t, `ALTER TABLE audit_events ENABLE TRIGGER USER`)
	began := time.Now()
	r.next(t)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
	const cut = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query = '-- ping'`
	if n := d.Count(t, cut); n != 1 {
		t.Fatalf("%d connections listen", n)
	}
	d.change(t)
	began = time.Now()
	r.next(t)
	r.next(t)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("without a connection it took %s", took)
	}
	listens()
	d.change(t)
	began = time.Now()
	r.next(t)
	r.next(t)
	// Without one it is the next glance that finds them.
	if took := time.Since(began); took > time.Second {
		t.Errorf("with a new connection it took %s", took)
	}
}

// One who does not read is let go, and costs no memory until then: what he has
// not read waits in the trail.
func TestASlowReaderIsLetGo(t *testing.T) {
	t.Parallel()
	d := newTold(t, 0, 0)
	key := d.newKey(t, d.Hotel, tenants.RightEvents)
	d.Exec(t, `ALTER TABLE audit_events DISABLE TRIGGER USER`)
	const many = 60_000
	d.Exec(t, `INSERT INTO audit_events (brand_id, seq, at, actor, event, grant_id, salt, digest, hash, detail)
		SELECT 'harbor-hotel', n, now(), 'system', 'grant.revoked', gen_random_uuid(), '', '', '', '{"agent":"https://agent.example","subject":"s","scopes":[]}'
		  FROM generate_series(1, $1) n`, many)
	d.Exec(t, `INSERT INTO audit_heads VALUES ('harbor-hotel', $1, '')`, many)
	conn, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSuffix(d.url, "/a2a/"), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(conn, "GET /a2a/harbor-hotel/oauth/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nLast-Event-ID: 0\r\n\r\n", key)
	time.Sleep(12 * time.Second) // longer than a reader may take for one piece
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := io.Copy(io.Discard, conn)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the connection is still open")
	}
	const each = 250 // bytes at least
	if n == 0 || n > many*each {
		t.Errorf("he was sent %d bytes", n)
	}
	// Another one hears all of it.
	r := d.open(t, d.Hotel, key, "Last-Event-ID", "0")
	for i := range many {
		if h := r.next(t); h.id != strconv.Itoa(i+1) {
			t.Fatalf("heard %s, want %d", h.id, i+1)
		}
	}
}

// A Brand has so many streams and no more; one that ends makes room.
func TestStreamsHaveACap(t *testing.T) {
	d := newTold(t, 0, 0)
	key := d.newKey(t, d.Hotel, tenants.RightEvents)
	const most = 20
	var all []*reader
	for range most {
		r := d.open(t, d.Hotel, key)
		r.first(t)
		all = append(all, r)
	}
	r := d.open(t, d.Hotel, key)
	if r.answer.StatusCode != http.StatusTooManyRequests || r.answer.Header.Get("Retry-After") == "" {
		t.Fatalf("%d", r.answer.StatusCode)
	}
	if r := d.open(t, d.Shop, d.newKey(t, d.Shop, tenants.RightEvents)); r.answer.StatusCode != http.StatusOK {
		t.Errorf("another Brand: %d", r.answer.StatusCode)
	}
	all[0].answer.Body.Close()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		r := d.open(t, d.Hotel, key)
		if r.answer.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("one that ended makes no room")
		}
	}
}
