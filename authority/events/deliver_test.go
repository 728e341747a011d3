package events_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/events"
	"countersign.dev/authority/events/eventstest"
	"countersign.dev/tenants"
)

// Every kind of change reaches the Brand, in order, signed, and says what it was
// and what it is from now on. Another Brand hears nothing of it.
func TestEveryChangeIsTold(t *testing.T) {
	h := newHouse(t)
	hotel, shop := eventstest.New(t), eventstest.New(t)
	id, secret := h.endpoint(t, h.Hotel, hotel)
	h.endpoint(t, h.Shop, shop)
	work(t, h.courier)

	grant := h.allow(t, "guest-7", "bookings:read", "account:read")
	created := hotel.Next(t, 5*time.Second)
	if err := h.rules.EndScopeByUser(t.Context(), h.Hotel.ID, "guest-7", grant, "account:read"); err != nil {
		t.Fatal(err)
	}
	narrowed := hotel.Next(t, 5*time.Second)
	more := authoritytest.Begin(t, h.rules, h.Hotel, authority.Caller{Agent: authoritytest.Agent, Sub: "phone of guest-7"}, "bookings:change")
	authoritytest.Approve(t, h.rules, h.Hotel, more, "guest-7", "bookings:read", "bookings:change")
	widened := hotel.Next(t, 5*time.Second)
	h.revoke(t, "guest-7", grant)
	revoked := hotel.Next(t, 5*time.Second)
	for i, c := range []eventstest.Call{created, narrowed, widened, revoked} {
		if err := eventstest.Verify(secret, c.Header, c.Body, h.Clock.Now()); err != nil {
			t.Errorf("%s: %v", c.Type, err)
		}
		want := []string{"grant.created", "grant.narrowed", "grant.widened", "grant.revoked"}[i]
		if c.Type != want || c.Data.GrantID != grant.String() || c.Data.Subject != "guest-7" || c.Data.Agent != authoritytest.Agent ||
			c.Header.Get("Content-Type") != "application/json" || c.Data.Seq == 0 {
			t.Errorf("%s: %s %s", want, c.Header, c.Body)
		}
	}
	if !slices.Equal(widened.Data.Scopes, []string{"bookings:read", "bookings:change"}) || !slices.Equal(widened.Data.Before, []string{"bookings:read"}) {
		t.Errorf("widened: %s", widened.Body)
	}
	if revoked.Data.Reason != "revoked_by_user" || len(revoked.Data.Scopes) != 0 || !strings.Contains(string(revoked.Body), `"scopes":[]`) {
		t.Errorf("revoked: %s", revoked.Body)
	}
	var shape map[string]json.RawMessage
	if err := json.Unmarshal(revoked.Body, &shape); err != nil || len(shape) != 3 {
		t.Errorf("%s, %v", revoked.Body, err)
	}
	until(t, "all is noted", func() bool {
		return h.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered' AND last_status = 204`) == 4
	})
	if d := h.deliveries(t, id); d[0].ID.String() != revoked.ID || d[0].Event != "grant.revoked" || d[0].Attempts != 1 {
		t.Errorf("%+v", d[0])
	}
	if n := len(shop.All()); n != 0 {
		t.Errorf("the shop heard %d", n)
	}
	if logged := h.logs.String(); strings.Contains(logged, secret[6:]) || strings.Contains(logged, "guest-7") {
		t.Error("the log says too much")
	}
}

// R46: what nobody chose is told too: a token that came back, and a time that is
// over. An endpoint can ask for one type alone.
func TestAnEndThatNobodyChoseIsTold(t *testing.T) {
	h := newHouse(t)
	r, alarm := eventstest.New(t), eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	only, _ := h.endpoint(t, h.Hotel, alarm, "grant.reuse_detected")
	who := authority.Caller{Agent: authoritytest.Agent, Sub: "phone of guest-7"}
	s := authoritytest.Begin(t, h.rules, h.Hotel, who, "bookings:read")
	authoritytest.Approve(t, h.rules, h.Hotel, s, "guest-7", "bookings:read")
	tokens, err := h.rules.Poll(t.Context(), h.Hotel, who, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.rules.Refresh(t.Context(), h.Hotel, who, tokens.Refresh, nil); err != nil {
		t.Fatal(err)
	}
	h.Clock.Advance(time.Hour)
	if _, err := h.rules.Refresh(t.Context(), h.Hotel, who, tokens.Refresh, nil); !errors.Is(err, authority.ErrReused) {
		t.Fatal(err)
	}
	h.allow(t, "guest-8", "bookings:read")
	h.Clock.Advance(100 * 24 * time.Hour)
	if n, err := h.rules.Expire(t.Context(), h.Hotel.ID); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	h.drain(t, id)
	h.drain(t, only)
	types := func(all []eventstest.Call) []string {
		slices.SortFunc(all, func(a, b eventstest.Call) int { return cmp.Compare(a.Data.Seq, b.Data.Seq) })
		var out []string
		for _, c := range all {
			out = append(out, c.Type+" "+c.Data.Subject+" "+c.Data.Reason)
		}
		return out
	}
	want := []string{"grant.created guest-7 ", "grant.reuse_detected guest-7 reuse_detected", "grant.created guest-8 ", "grant.expired guest-8 expired"}
	if got := types(r.All()); !slices.Equal(got, want) {
		t.Errorf("told %q", got)
	}
	if got := types(alarm.All()); !slices.Equal(got, want[1:2]) {
		t.Errorf("the alarm was told %q", got)
	}
}

// The receiver of the tests is one to be believed: it refuses what is forged.
func TestForgedRequestsAreRefused(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, secret := h.endpoint(t, h.Hotel, r)
	_, other := h.endpoint(t, h.Hotel, r)
	h.revoke(t, "guest-7", h.allow(t, "guest-7", "bookings:read"))
	h.drain(t, id)
	c, now := r.Next(t, 0), h.Clock.Now()
	if err := eventstest.Verify(secret, c.Header, c.Body, now); err != nil {
		t.Fatal(err)
	}
	with := func(name, value string) http.Header {
		forged := c.Header.Clone()
		forged.Set(name, value)
		return forged
	}
	for what, try := range map[string]struct {
		secret string
		header http.Header
		body   string
		now    time.Time
	}{
		"another endpoint's secret": {other, c.Header, string(c.Body), now},
		"another body":              {secret, c.Header, strings.Replace(string(c.Body), "guest-7", "guest-8", 1), now},
		"another id":                {secret, with("webhook-id", "0"), string(c.Body), now},
		"another time":              {secret, with("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10)), string(c.Body), now},
		"no signature":              {secret, with("webhook-signature", ""), string(c.Body), now},
		"replayed later":            {secret, c.Header, string(c.Body), now.Add(6 * time.Minute)},
	} {
		if eventstest.Verify(try.secret, try.header, []byte(try.body), try.now) == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// Only what an endpoint asked for, and only endpoints that were on.
func TestAnEndpointHearsWhatItAskedFor(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	some, _ := h.endpoint(t, h.Hotel, r, "grant.revoked", "grant.expired")
	off, _ := h.endpoint(t, h.Hotel, r)
	if err := tenants.EnableWebhook(t.Context(), h.Authority(nil).Editor(authority.ByOperator()), h.Hotel.ID, off, false, "test"); err != nil {
		t.Fatal(err)
	}
	h.revoke(t, "guest-7", h.allow(t, "guest-7", "bookings:read"))
	if d := h.deliveries(t, ""); len(d) != 1 || d[0].Endpoint != some || d[0].Event != "grant.revoked" {
		t.Errorf("%+v", d)
	}
}

// An endpoint that was turned off meanwhile is not called; what was to be sent
// can be replayed when it is on again.
func TestAnEndpointThatIsOffIsNotCalled(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	h.allow(t, "guest-7", "bookings:read")
	if err := tenants.EnableWebhook(t.Context(), h.Authority(nil).Editor(authority.ByOperator()), h.Hotel.ID, id, false, "test"); err != nil {
		t.Fatal(err)
	}
	h.drain(t, id)
	if d := h.deliveries(t, id)[0]; d.State != "dead" || d.LastError != "the endpoint is not enabled" || len(r.All()) != 0 {
		t.Errorf("%+v", d)
	}
	if err := tenants.EnableWebhook(t.Context(), h.Authority(nil).Editor(authority.ByOperator()), h.Hotel.ID, id, true, ""); err != nil {
		t.Fatal(err)
	}
	h.Clock.Advance(2 * time.Second) // what an instance knows may be a second old
	if n, err := h.courier.Replay(t.Context(), h.Hotel.ID, id); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	h.drain(t, id)
	r.Next(t, 0)
}

// R52: what was committed is delivered though nobody worked then: the process
// that committed it is gone, and another one starts.
func TestWhatWasCommittedIsDeliveredAfterARestart(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	_, secret := h.endpoint(t, h.Hotel, r)
	h.revoke(t, "guest-7", h.allow(t, "guest-7", "bookings:read"))
	if n := len(r.All()); n != 0 {
		t.Fatalf("%d were delivered by nobody", n)
	}
	work(t, h.newCourier(t))
	for range 2 {
		c := r.Next(t, 10*time.Second)
		if err := eventstest.Verify(secret, c.Header, c.Body, h.Clock.Now()); err != nil {
			t.Error(err)
		}
	}
}

// R52: a process that dies in the middle of an attempt leaves a claim that runs
// out; the next attempt bears the same id.
func TestADeadProcessLosesNothing(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	h.allow(t, "guest-7", "bookings:read")
	h.Exec(t, `UPDATE webhook_deliveries SET claimed_until = $1, attempts = 1, tries = 1`, h.Clock.Now().Add(30*time.Second))
	if next := h.drain(t, id); len(r.All()) != 0 || !next.Equal(h.Clock.Now().Add(30*time.Second)) {
		t.Fatalf("somebody else's claim was not respected; next %v", next)
	}
	h.Clock.Advance(30 * time.Second)
	h.drain(t, id)
	if d := h.deliveries(t, id)[0]; d.State != "delivered" || d.Attempts != 2 || r.Next(t, 0).ID != d.ID.String() {
		t.Errorf("%+v", d)
	}
}

// What does not become true is not told.
func TestWhatIsRolledBackIsNotTold(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	h.endpoint(t, h.Hotel, r)
	grant := h.allow(t, "guest-7", "bookings:read")
	before := h.Count(t, `SELECT count(*) FROM river_job`)
	if err := h.rules.EndByUser(t.Context(), h.Hotel.ID, "guest-8", grant); err == nil {
		t.Fatal("another one's grant ended")
	}
	h.Exec(t, `ALTER TABLE river_job RENAME TO river_job_away`)
	if err := h.rules.EndByUser(t.Context(), h.Hotel.ID, "guest-7", grant); err == nil {
		t.Error("it ended, and nobody will be told")
	}
	h.Exec(t, `ALTER TABLE river_job_away RENAME TO river_job`)
	if n := len(h.deliveries(t, "")); n != 1 || h.Count(t, `SELECT count(*) FROM river_job`) != before {
		t.Errorf("%d deliveries", n)
	}
	if n := h.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NULL`); n != 1 {
		t.Error("the grant ended untold")
	}
}

// Failures are tried again with the same id, later and later, for about a day;
// then the delivery is dead, says why in our own words, and can be replayed.
func TestAFailingEndpointIsTriedForADay(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, secret := h.endpoint(t, h.Hotel, r)
	r.Answer(func(eventstest.Call) int { return http.StatusServiceUnavailable })
	h.allow(t, "guest-7", "bookings:read")
	began := h.Clock.Now()
	attempts := 0
	for next := h.drain(t, id); !next.IsZero(); next = h.drain(t, id) {
		attempts++
		d := h.deliveries(t, id)[0]
		if d.State != "pending" || d.Attempts != attempts || d.LastError != "answered 503" || d.LastStatus == nil || *d.LastStatus != 503 {
			t.Fatalf("%+v", d)
		}
		// Never before its time.
		h.drain(t, id)
		if len(r.All()) != attempts {
			t.Fatalf("tried before its time, at attempt %d", attempts)
		}
		h.Clock.Advance(next.Sub(h.Clock.Now()))
	}
	all := r.All()
	if took := h.Clock.Now().Sub(began); len(all) != 12 || took < 18*time.Hour || took > 30*time.Hour {
		t.Errorf("%d attempts in %s", len(all), took)
	}
	for _, c := range all {
		if c.ID != all[0].ID {
			t.Error("the id changed")
		}
	}
	if d := h.deliveries(t, id)[0]; d.State != "dead" || strings.Contains(d.LastError, "receiver's own") {
		t.Errorf("%+v", d)
	}

	r.Answer(func(eventstest.Call) int { return http.StatusOK })
	for what, replay := range map[string]struct {
		brand *tenants.Brand
		id    string
	}{"another Brand's": {h.Shop, all[0].ID}, "unknown": {h.Hotel, "aaaaaaaaaaaa"}} {
		if n, err := h.courier.Replay(t.Context(), replay.brand.ID, replay.id); err == nil || n != 0 {
			t.Errorf("%s: %d replayed", what, n)
		}
	}
	if n, err := h.courier.Replay(t.Context(), h.Hotel.ID, id); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	h.Clock.Advance(time.Minute) // it rests after so many failures
	h.drain(t, id)
	last := r.All()[12]
	if err := eventstest.Verify(secret, last.Header, last.Body, h.Clock.Now()); err != nil || last.ID != all[0].ID || string(last.Body) != string(all[0].Body) {
		t.Errorf("replayed: %v %s", err, last.Body)
	}
	if d := h.deliveries(t, id)[0]; d.State != "delivered" || d.Attempts != 13 || d.LastError != "" {
		t.Errorf("%+v", d)
	}
}

// Whoever answers 410 is called no more; what was still to be sent is kept.
func TestGoneTurnsTheEndpointOff(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	r.Answer(func(eventstest.Call) int { return http.StatusGone })
	h.allow(t, "guest-7", "bookings:read")
	h.allow(t, "guest-8", "bookings:read")
	h.drain(t, id)
	h.drain(t, id)
	h.allow(t, "guest-9", "bookings:read")
	list, err := tenants.Webhooks(t.Context(), h.DB, h.Hotel.ID)
	if err != nil || list[0].Enabled || list[0].Note != "answered 410 Gone" {
		t.Errorf("%+v, %v", list, err)
	}
	facts, err := h.rules.LatestFacts(t.Context(), h.Hotel.ID, 100)
	if err != nil {
		t.Fatal(err)
	}
	facts = slices.DeleteFunc(facts, func(f authority.Fact) bool { return f.Event != "webhook.disabled" })
	if len(facts) != 1 || facts[0].Actor != "system" || facts[0].ActorID != "" || string(facts[0].Detail) != `{"endpoint":"`+id+`"}` {
		t.Errorf("the trail says %+v", facts)
	}
	for _, d := range h.deliveries(t, id) {
		if d.State != "dead" {
			t.Errorf("%+v", d)
		}
	}
	if n := len(h.deliveries(t, id)); n != 2 {
		t.Errorf("%d deliveries; one that is off gets none", n)
	}
	if _, err := h.courier.Replay(t.Context(), h.Hotel.ID, id); err == nil {
		t.Error("replayed to one that is off")
	}
}

// No redirect is followed, no body is kept, and the words about a failure hold
// no part of the URL.
func TestWordsAboutFailures(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	r.Answer(func(eventstest.Call) int { return http.StatusFound })
	h.allow(t, "guest-7", "bookings:read")
	h.drain(t, id)
	if d := h.deliveries(t, id)[0]; d.State != "pending" || d.LastError != "host answered with a redirect" || len(r.All()) != 1 {
		t.Errorf("%+v", d)
	}
	if logged := h.logs.String(); strings.Contains(logged, "of-the-url") || strings.Contains(logged, "own words") {
		t.Errorf("the log says too much: %s", logged)
	}
}

// A name that leads to a private address is refused when it is called, and what
// is literally one when it is saved.
func TestPrivateAddressesAreNeverCalled(t *testing.T) {
	h := newHouse(t)
	for _, url := range []string{
		"https://10.0.0.1/", "https://169.254.169.254/", "https://[::1]/", "https://127.0.0.1/", "http://example.com/",
		"https://[::ffff:10.0.0.1]/", "https://example.com:8443/", "https://user@example.com/", "ftp://example.com/",
	} {
		_, _, err := tenants.CreateWebhook(t.Context(), h.Authority(nil).Editor(authority.ByOperator()), h.Master, tenants.Site{}, h.Hotel.ID, tenants.WebhookDraft{URL: url})
		if err == nil {
			t.Errorf("%s was saved", url)
		}
	}
	r := eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	h.allow(t, "guest-7", "bookings:read")
	strict, err := events.NewCourier(events.Config{DB: h.DB, Sealer: h.Master, Now: h.Clock.Now, Log: discard, Edit: h.Authority(nil).Editor(authority.ByUpkeep())})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{r.URL, "https://localhost/"} {
		h.Exec(t, `UPDATE webhook_endpoints SET url = $1`, url)
		h.Clock.Advance(2 * time.Minute)
		if _, err := strict.Drain(t.Context(), h.Hotel.ID, id); err != nil {
			t.Fatal(err)
		}
		if d := h.deliveries(t, id)[0]; d.State != "pending" || d.LastStatus != nil || d.LastError == "" {
			t.Errorf("%s: %+v", url, d)
		}
	}
	if len(r.All()) != 0 {
		t.Error("loopback was called")
	}
}

// After a change of the secret both sign for a day, then the new one alone; one
// that others may have is out at once.
func TestSecretsChangeWithAnOverlap(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, first := h.endpoint(t, h.Hotel, r)
	rotate := func(overlap time.Duration) string {
		t.Helper()
		secret, err := tenants.RotateWebhook(t.Context(), h.Authority(nil).Editor(authority.ByOperator()), h.Master, h.Hotel.ID, id, overlap)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	n := 0
	signedWith := func(want map[string]bool) {
		t.Helper()
		n++
		h.allow(t, "guest-"+strconv.Itoa(n), "bookings:read")
		h.drain(t, id)
		c := r.Next(t, 0)
		for secret, good := range want {
			if err := eventstest.Verify(secret, c.Header, c.Body, h.Clock.Now()); (err == nil) != good {
				t.Errorf("delivery %d, secret %s…: %v, want %v", n, secret[:10], err, good)
			}
		}
	}
	second := rotate(tenants.WebhookOverlap)
	signedWith(map[string]bool{first: true, second: true})
	h.Clock.Advance(tenants.WebhookOverlap)
	signedWith(map[string]bool{first: false, second: true})
	third := rotate(0)
	h.Clock.Advance(2 * time.Second) // what an instance knows may be a second old
	signedWith(map[string]bool{first: false, second: false, third: true})
	if _, err := tenants.RotateWebhook(t.Context(), h.Authority(nil).Editor(authority.ByOperator()), h.Master, h.Shop.ID, id, 0); err == nil {
		t.Error("another Brand changed the secret")
	}
	if n := h.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE position(decode($1, 'base64') IN secret_sealed) > 0`, third[6:]); n != 0 {
		t.Error("the secret stands in clear")
	}
}

// A Brand that closes is told which grants ended with it, and two days later
// nothing more.
func TestAClosedBrandIsToldOfItsEnd(t *testing.T) {
	h := newHouse(t)
	r := eventstest.New(t)
	id, _ := h.endpoint(t, h.Hotel, r)
	h.allow(t, "guest-7", "bookings:read")
	h.drain(t, id)
	if _, err := h.rules.Close(t.Context(), h.Hotel.ID, authority.ByOperator()); err != nil {
		t.Fatal(err)
	}
	r.Answer(func(eventstest.Call) int { return http.StatusBadGateway })
	h.drain(t, id)
	h.Clock.Advance(tenants.ClosedTold - time.Microsecond)
	h.drain(t, id)
	if all := r.All(); len(all) != 3 || !strings.Contains(string(all[2].Body), `"grant.revoked"`) {
		t.Fatalf("told %d times", len(all))
	}
	h.Clock.Advance(2 * time.Second) // what an instance knows may be a second old
	h.drain(t, id)
	if d := h.deliveries(t, id)[0]; d.State != "dead" || d.LastError != "the brand is closed" || len(r.All()) != 3 {
		t.Errorf("%+v, told %d times", d, len(r.All()))
	}
}
