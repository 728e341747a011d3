package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// drawer is a Brand's Keeper, as a test sees it.
type drawer struct {
	ids     []string
	records [][]byte
	broken  error
}

func (d *drawer) Keep(_ context.Context, id string, record []byte) error {
	if d.broken == nil {
		d.ids, d.records = append(d.ids, id), append(d.records, record)
	}
	return d.broken
}

func (d *drawer) Forget(_ context.Context, id string) error {
	if i := slices.Index(d.ids, id); i >= 0 {
		d.ids, d.records = slices.Delete(d.ids, i, i+1), slices.Delete(d.records, i, i+1)
	}
	return d.broken
}

// R77: what has no receipt when it is served is kept and offered again in its order, as
// of when it began, until it has one or never will; and by another process that is given
// what this one kept.
func TestWhatIsPendingIsOfferedAgain(t *testing.T) {
	s := newScene(t)
	c, err := s.call(s.token(nil))
	if err != nil {
		t.Fatal(err)
	}
	var done []string
	drawer := &drawer{}
	config := PendingConfig{Door: s.door, Keeper: drawer, Most: 4, Done: func(_ context.Context, one Served, o Outcome) {
		done = append(done, fmt.Sprint(one.Turn.MessageID, " ", o.Receipt.JWS != "", " ", errors.Is(o.Err, ErrToken)))
	}}
	p, err := NewPending(config)
	if err != nil {
		t.Fatal(err)
	}
	turn := func(id string) Turn {
		return Turn{ContextID: "c1", MessageID: id, ScopesUsed: []string{"orders:read"}, Acts: []Act{{Tool: "orders.list", Args: map[string]string{"secret": "size 9"}}}}
	}
	began := s.now()
	wait := func(p *Pending, id string, status int, answer string, want ...error) {
		t.Helper()
		s.answers("/receipts", status, says(answer))
		got, err := p.Countersign(t.Context(), c, turn(id))
		for _, is := range append(want, ErrUnavailable) {
			if !errors.Is(err, is) || got.JWS != "" {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
	wait(p, "m1", 503, `{"error":"temporarily_unavailable"}`, ErrWaiting)
	s.advance(time.Second)
	wait(p, "m2", 202, `{"status":"waiting","since":"2026-11-20T12:00:01.000Z"}`, ErrWaiting)
	wait(p, "m1", 503, ``, ErrWaiting) // and is kept once
	wait(p, "m3", 502, `<html>`, ErrWaiting)
	if err := p.Ready(); err != nil || len(drawer.records) != 3 {
		t.Errorf("%v, %d records", err, len(drawer.records))
	}
	drawer.broken = errors.New("disk full")
	wait(p, "m4", 503, ``, drawer.broken)
	drawer.broken = nil
	wait(p, "m4", 503, ``, ErrWaiting)
	wait(p, "m5", 503, ``, ErrFull)
	if err := p.Ready(); !errors.Is(err, ErrFull) {
		t.Errorf("full: %v", err)
	}
	for _, record := range drawer.records {
		if strings.Contains(string(record), "size 9") {
			t.Errorf("arguments are kept: %s", record)
		}
	}
	// Nothing comes of it: everything waits, and nobody hears of it.
	s.answers("/receipts/batch", 503, says(``))
	if left, err := p.Offer(t.Context()); left != 4 || err != nil || len(done) != 0 {
		t.Errorf("%d wait, %v, %q", left, err, done)
	}
	// Another process goes on, long after the token's end.
	s.advance(3 * time.Hour)
	if p, err = NewPending(config); err != nil {
		t.Fatal(err)
	}
	if err := p.Restore(drawer.records...); err != nil {
		t.Fatal(err)
	}
	sign := s.receipt(s.brand, receiptHeader, nil)
	asked := s.answers("/receipts/batch", 200, func(asked map[string]any) string {
		var results []string
		for _, one := range asked["turns"].([]any) {
			one := one.(map[string]any)
			switch one["messageId"] {
			case "m2":
				results = append(results, `{"status":202,"since":"2026-11-20T12:00:01.000Z"}`)
			case "m3":
				results = append(results, `{"status":400,"error":"invalid_token"}`)
			default:
				results = append(results, `{"status":200,"receipt":`+sign(one)+`}`)
			}
		}
		return `{"results":[` + strings.Join(results, ",") + `]}`
	})
	if left, err := p.Offer(t.Context()); left != 1 || err != nil {
		t.Errorf("%d wait, %v", left, err)
	}
	if diff := cmp.Diff([]string{"m1 true false", "m3 false true", "m4 true false"}, done); diff != "" {
		t.Error(diff)
	}
	first := (*asked)[0]["turns"].([]any)[0].(map[string]any)
	if first["messageId"] != "m1" || first["began"] != began.UTC().Format("2006-01-02T15:04:05.000Z07:00") || first["delegation_token"] != c.token {
		t.Errorf("the first is %v", first)
	}
	if len(drawer.records) != 1 {
		t.Errorf("%d records are left", len(drawer.records))
	}
	// What was refused at once, or countersigned, does not wait.
	s.answers("/receipts", 409, says(`{"error":"conflict"}`))
	if _, err := p.Countersign(t.Context(), c, turn("m6")); !errors.Is(err, ErrConflict) || errors.Is(err, ErrWaiting) {
		t.Error(err)
	}
	s.answers("/receipts", 200, sign)
	if got, err := p.Countersign(t.Context(), c, turn("m7")); err != nil || got.JWS == "" || len(drawer.records) != 1 {
		t.Errorf("%v, %d records", err, len(drawer.records))
	}
	for _, bad := range []string{``, `{}`, `{"token":"x","turn":{"contextId":"c","messageId":""}}`, `{"token":"x","scopes":[],"turn":{"contextId":"c","messageId":"m","scopesUsed":["more"]}}`} {
		if err := p.Restore([]byte(bad)); err == nil {
			t.Errorf("%s was taken back", bad)
		}
	}
}
