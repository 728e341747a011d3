package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/tenants"
)

// R77: while nothing can be signed a turn is taken all the same, judged as of when it was
// first handed in: an outage, and the end of its token, cost it nothing. It stands in the
// log as soon as something can be signed, in its order, and the same call has the receipt.
func TestReceiptsWhileTheSignerIsAway(t *testing.T) {
	var d *door
	down := false
	d = newDoor(t, signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if down {
			return "", errors.New("sealed")
		}
		return d.Keys.Sign(ctx, brand, typ, payload)
	}))
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	token := d.holding(t, "bookings:read")["access_token"]
	down = true
	began := d.Clock.Now()
	waits := func(what string, a answer, since time.Time) {
		t.Helper()
		want := fmt.Sprintf(`{"since":%q,"status":"waiting"}`, receiptlog.At(since))
		if a.status != http.StatusAccepted || a.body != want || a.header.Get("Retry-After") != "5" || a.header.Get("Countersign-Log-Seq") != "" {
			t.Errorf("%s: %d %s, want %s", what, a.status, a.body, want)
		}
	}
	const single, many = 6, 4
	for n := range single {
		waits("single", d.send(t, d.Hotel, "/receipts", key, d.served(token, fmt.Sprint("m", n))), d.Clock.Now())
		d.Clock.Advance(time.Minute)
	}
	waits("again", d.send(t, d.Hotel, "/receipts", key, d.served(token, "m0")), began)
	var turns []any
	for n := range many {
		turns = append(turns, d.served(token, fmt.Sprint("m", single+n)))
	}
	other := d.served(token, "m0")
	other["actions"] = []any{}
	batch := func() string {
		return d.send(t, d.Hotel, "/receipts/batch", key, map[string]any{"turns": append(turns, other, d.served("x", "m"))}).body
	}
	since := receiptlog.At(d.Clock.Now())
	if got := batch(); strings.Count(got, `{"since":"`+since+`","status":202}`) != many || !strings.Contains(got, `"status":409`) || !strings.Contains(got, `"status":400`) {
		t.Errorf("a batch: %s", got)
	}
	// Unheard, a turn is judged as of when it comes.
	d.Clock.Advance(d.Hotel.TokenLifetime + authority.LateTime)
	unheard := d.served(token, "unheard")
	unheard["began"] = began
	if a := d.send(t, d.Hotel, "/receipts", key, unheard); a.status != 400 || a.error() != "invalid_token" {
		t.Errorf("too late: %d %s", a.status, a.body)
	}
	if n, err := d.rules.Flush(t.Context(), d.Hotel); n != 0 || !errors.Is(err, authority.ErrUnavailable) || d.Count(t, `SELECT count(*) FROM receipts`) != 0 {
		t.Errorf("%d, %v", n, err)
	}
	down = false
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := d.rules.Flush(t.Context(), d.Hotel); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if n, left := d.Count(t, `SELECT count(*) FROM receipts WHERE late AND message_id = 'm' || seq`), d.Count(t, `SELECT count(*) FROM turns_accepted`); n != single+many || left != 0 {
		t.Errorf("%d of %d are countersigned in their order, %d wait", n, single+many, left)
	}
	// Both times are kept: when it was handed in, as nobody said when it began, and when
	// it was signed.
	line, err := d.rules.LogEntry(t.Context(), d.Hotel.ID, 1)
	if err != nil || !strings.Contains(string(line.Entry), `"began":"`+receiptlog.At(began.Add(time.Minute))) || !strings.Contains(string(line.Entry), `"at":"`+receiptlog.At(d.Clock.Now())[:19]) {
		t.Errorf("%s, %v", line.Entry, err)
	}
	a := d.send(t, d.Hotel, "/receipts", key, d.served(token, "m0"))
	if a.status != 200 || a.header.Get("Countersign-Log-Seq") != "0" || a.header.Get("Countersign-Late") != "true" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := batch(); strings.Count(got, `"status":200`) != many || d.Count(t, `SELECT count(*) FROM receipts`) != single+many {
		t.Errorf("the batch again: %s", got)
	}
	// No more than so many; then it says that it keeps nothing.
	token = d.holding(t, "bookings:read")["access_token"]
	down = true
	d.Exec(t, `INSERT INTO turns_accepted (brand_id, grant_id, context_id, message_id, content, accepted_at)
		SELECT 'harbor-hotel', id, 'full', n::text, '', now() FROM (SELECT id FROM grants LIMIT 1) g, generate_series(1, 10000) n`)
	if a := d.send(t, d.Hotel, "/receipts", key, d.served(token, "full")); a.status != 503 || a.error() != "temporarily_unavailable" || !strings.Contains(a.body, "not written down") || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A turn that waited while its Brand was paused is 202 too; one that is refused by then
// has none for good, and the trail says so.
func TestReceiptsWhileTheBrandIsPaused(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	token := d.holding(t, "bookings:read")["access_token"]
	d.Exec(t, `UPDATE brands SET state = 'paused' WHERE id = 'harbor-hotel'`)
	d.Brands.Forget(d.Hotel.ID)
	for _, m := range []string{"m0", "m1"} {
		if a := d.send(t, d.Hotel, "/receipts", key, d.served(token, m)); a.status != 202 || a.header.Get("Retry-After") != "30" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	d.Exec(t, `UPDATE brands SET state = 'active' WHERE id = 'harbor-hotel'`)
	d.Exec(t, `UPDATE agents SET enabled = false`)
	if n, err := d.rules.Flush(t.Context(), d.Hotel); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n := d.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'incident.not_countersigned' AND grant_id IS NOT NULL AND detail->>'reason' = 'token'`); n != 2 {
		t.Errorf("%d facts", n)
	}
	if n := d.Count(t, `SELECT count(*) FROM turns_accepted`); n != 0 {
		t.Errorf("%d wait for ever", n)
	}
}
