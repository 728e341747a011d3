package events_test

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/events/eventstest"
)

// R101: an endpoint that never answers, with much to deliver, delays no other
// endpoint of its Brand and no other Brand, and has few calls under way.
func TestASlowEndpointDelaysOnlyItself(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	dead, alive, shop := eventstest.New(t), eventstest.New(t), eventstest.New(t)
	var under, most atomic.Int64
	release := make(chan struct{})
	dead.Answer(func(eventstest.Call) int {
		now := under.Add(1)
		for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
		}
		<-release
		under.Add(-1)
		return http.StatusInternalServerError
	})
	// Released before the receivers close, which wait for it.
	t.Cleanup(func() { close(release) })
	h.endpoint(t, h.Hotel, dead)
	for i := range 60 { // more than are ever called at once
		h.allow(t, "before-"+strconv.Itoa(i), "bookings:read")
	}
	h.endpoint(t, h.Hotel, alive)
	h.endpoint(t, h.Shop, shop)
	stop := work(t, h.courier)
	for range 4 {
		dead.Next(t, 10*time.Second)
	}
	for i := range 20 {
		began := time.Now()
		h.allow(t, "guest-"+strconv.Itoa(i), "bookings:read")
		s := authoritytest.Begin(t, h.rules, h.Shop, authority.Caller{Agent: authoritytest.Agent, Sub: strconv.Itoa(i)}, "orders:read")
		authoritytest.Approve(t, h.rules, h.Shop, s, strconv.Itoa(i), "orders:read")
		alive.Next(t, 10*time.Second)
		shop.Next(t, 10*time.Second)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s beside an endpoint that does not answer", took)
		}
	}
	if n := most.Load(); n != 4 {
		t.Errorf("%d calls were under way to the slow one", n)
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("stopping took %s", took)
	}
	// What was interrupted is not the endpoint's fault and is not lost.
	if n := h.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'`); n != 80 {
		t.Errorf("%d are still to be delivered to the slow one", n)
	}
}

// An endpoint that fails is called by one at a time, rests in between, and is
// sent everything when it is well again.
func TestAFailingEndpointRests(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	var status atomic.Int64
	status.Store(http.StatusInternalServerError)
	r.Answer(func(eventstest.Call) int { return int(status.Load()) })
	for i := range 10 {
		h.allow(t, "guest-"+strconv.Itoa(i), "bookings:read")
	}
	h.drain(t, id)
	if n := len(r.All()); n != 4 {
		t.Fatalf("%d calls before the first failure was known", n)
	}
	h.drain(t, id)
	if n := len(r.All()); n != 4 {
		t.Fatalf("it was called while it rests: %d", n)
	}
	h.Clock.Advance(time.Minute)
	h.drain(t, id)
	if n := len(r.All()); n != 5 {
		t.Fatalf("%d calls, not one more", n-4)
	}
	status.Store(http.StatusOK)
	for range 3 { // those that were tried wait longer
		h.Clock.Advance(3 * time.Minute)
		h.drain(t, id)
	}
	if n := h.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'`); n != 10 {
		t.Errorf("%d delivered", n)
	}
}

// Several instances at once deliver each thing once, where nobody dies.
func TestInstancesDoNotRepeatOneAnother(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	h.endpoint(t, h.Hotel, r)
	for range 3 {
		work(t, h.newCourier(t))
	}
	const people, each = 4, 10
	var all sync.WaitGroup
	for p := range people {
		all.Go(func() {
			for i := range each {
				subject := strconv.Itoa(p) + "-" + strconv.Itoa(i)
				h.revoke(t, subject, h.allow(t, subject, "bookings:read"))
			}
		})
	}
	all.Wait()
	until(t, "all is delivered", func() bool {
		return h.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'`) == 2*people*each
	})
	seen := make(map[string]int)
	for _, c := range r.All() {
		seen[c.ID]++
	}
	if len(seen) != 2*people*each || len(r.All()) != 2*people*each {
		t.Errorf("%d ids in %d calls, want %d", len(seen), len(r.All()), 2*people*each)
	}
}

// A failure is tried again by the job queue itself, though nothing else happens.
func TestTheNextAttemptComesByItself(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := eventstest.New(t)
	h.endpoint(t, h.Hotel, r)
	var calls atomic.Int64
	r.Answer(func(eventstest.Call) int {
		if calls.Add(1) == 1 {
			return http.StatusBadGateway
		}
		return http.StatusOK
	})
	work(t, h.courier)
	h.allow(t, "guest-7", "bookings:read")
	first := r.Next(t, 5*time.Second)
	until(t, "the failure is noted", func() bool {
		return h.Count(t, `SELECT count(*) FROM webhook_lines WHERE wake_at IS NOT NULL`) == 1
	})
	h.Clock.Advance(10 * time.Second)
	if again := r.Next(t, 20*time.Second); again.ID != first.ID {
		t.Error("the id changed")
	}
}

// What is over goes; what was never tried for too long is ended and says so;
// what is due and forgotten, as after a backup was put back, is rung for.
func TestTheOutboxIsKeptTidy(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	tidy := func() {
		t.Helper()
		if err := h.courier.Tidy(t.Context(), h.Hotel.ID); err != nil {
			t.Fatal(err)
		}
	}
	h.allow(t, "guest-7", "bookings:read")
	h.drain(t, id)
	h.allow(t, "guest-8", "bookings:read")
	h.Exec(t, `DELETE FROM river_job`)
	h.Clock.Advance(11 * time.Minute)
	tidy()
	tidy()
	if n := h.Count(t, `SELECT count(*) FROM river_job`); n != 1 {
		t.Errorf("%d jobs for what was forgotten", n)
	}
	h.Clock.Advance(36 * time.Hour)
	tidy()
	if d := h.deliveries(t, id); len(d) != 2 || d[0].State != "dead" || d[0].LastError != "the endpoint failed for too long" || d[1].State != "delivered" {
		t.Errorf("%+v", d)
	}
	h.Clock.Advance(7 * 24 * time.Hour)
	tidy()
	if d := h.deliveries(t, id); len(d) != 1 || d[0].State != "dead" {
		t.Errorf("%+v", d)
	}
	h.Clock.Advance(90 * 24 * time.Hour)
	tidy()
	if d := h.deliveries(t, id); len(d) != 0 {
		t.Errorf("%+v", d)
	}
}

// R52, R84: who was killed with deliveries in hand comes back for none of them. Another
// looks when the claim has run out, however long the queue takes to miss him.
func TestWhatAKilledWorkerHeldIsTaken(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	h.allow(t, "guest-7", "bookings:read")
	const lease = 30 * time.Second
	h.Exec(t, `UPDATE webhook_deliveries SET claimed_until = $1, attempts = 1, tries = 1`, h.Clock.Now().Add(lease))
	h.Exec(t, `DELETE FROM river_job`) // one that is running is nobody's for a minute and a half
	for range 2 {
		if err := h.courier.Tidy(t.Context(), h.Hotel.ID); err != nil {
			t.Fatal(err)
		}
	}
	var at time.Time
	if err := h.Owner.QueryRow(t.Context(), `SELECT min(scheduled_at) FROM river_job HAVING count(*) = 1`).Scan(&at); err != nil {
		t.Fatal("one job: ", err)
	}
	if wait := time.Until(at); wait < lease-10*time.Second || wait > lease {
		t.Errorf("it comes in %s", wait)
	}
	h.Clock.Advance(lease)
	h.drain(t, id)
	if got := r.Next(t, time.Second); got.Type != "grant.created" {
		t.Errorf("%+v", got)
	}
}

// Jobs stand outside the Brands' fence, so they hold ids and nothing else; and
// the service may use them, but not the tables themselves.
func TestJobsHoldIdsOnly(t *testing.T) {
	h := newHouse(t)
	id, _ := h.endpoint(t, h.Hotel, eventstest.New(t))
	h.allow(t, "guest-7", "bookings:read")
	var args string
	if err := h.Owner.QueryRow(t.Context(), `SELECT args::text FROM river_job`).Scan(&args); err != nil {
		t.Fatal(err)
	}
	if want := `{"brand": "harbor-hotel", "endpoint": "` + id + `"}`; args != want {
		t.Errorf("a job holds %s", args)
	}
	for _, q := range []string{`DROP TABLE river_job`, `TRUNCATE river_job`, `DELETE FROM river_migration`} {
		if _, err := h.DB.Pool().Exec(t.Context(), q); err == nil {
			t.Errorf("%s went through", q)
		}
	}
}
