package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// queue has so many turns wait, each kept in the drawer.
func (s *scene) queue(c Call, p *Pending, n int) {
	s.t.Helper()
	s.answers("/receipts", 503, says(``))
	for i := range n {
		if _, err := p.Countersign(s.t.Context(), c, Turn{ContextID: "c1", MessageID: fmt.Sprint("m", i)}); !errors.Is(err, ErrWaiting) {
			s.t.Fatal(err)
		}
	}
}

// batch answers each turn by itself.
func batch(each func(turn map[string]any) string) func(map[string]any) string {
	return func(asked map[string]any) string {
		var results []string
		for _, one := range asked["turns"].([]any) {
			results = append(results, each(one.(map[string]any)))
		}
		return `{"results":[` + strings.Join(results, ",") + `]}`
	}
}

// waitingDoor is a Pending with a drawer, and what it tells of each turn.
func waitingDoor(t *testing.T, s *scene) (Call, *Pending, *drawer, *[]string) {
	t.Helper()
	c, err := s.call(s.token(nil))
	if err != nil {
		t.Fatal(err)
	}
	kept, done := &drawer{}, &[]string{}
	p, err := NewPending(PendingConfig{Door: s.door, Keeper: kept, Done: func(_ context.Context, one Served, o Outcome) {
		*done = append(*done, fmt.Sprint(one.Turn.MessageID, " ", o.Receipt.JWS != ""))
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c, p, kept, done
}

// What stands between, or a key that is not good, says nothing of any turn: everything
// waits on, and is signed when that is mended.
func TestNothingButAVerdictSettlesATurn(t *testing.T) {
	s := newScene(t)
	c, p, kept, done := waitingDoor(t, s)
	s.queue(c, p, 2)
	for _, tt := range []struct {
		status int
		answer string
		said   bool // somebody has to mend it
	}{
		{404, `<html>no backend</html>`, true},
		{404, `{"error":"not_found"}`, true},
		{302, ``, true},
		{400, `<html>bad request</html>`, true},
		{408, ``, true},
		{409, `<html>`, true},
		{409, `{"error":"conflict"}`, true},
		{413, `<html>too large</html>`, true},
		{200, `<html>we are back soon</html>`, true},
		{200, `{}`, true},
		{401, `{"error":"invalid_token"}`, true},
		{403, `{"error":"insufficient_scope"}`, true},
		{500, `{"error":"server_error"}`, false},
		{503, `{"error":"temporarily_unavailable"}`, false},
	} {
		s.answers("/receipts", tt.status, says(tt.answer))
		s.answers("/receipts/batch", tt.status, says(tt.answer))
		left, err := p.Offer(t.Context())
		if left != 2 || len(*done) != 0 || len(kept.records) != 2 || (err != nil) != tt.said {
			t.Errorf("%d %s: %d wait, %q, %d records, %v", tt.status, tt.answer, left, *done, len(kept.records), err)
		}
	}
	// As a whole it was refused, and what each is worth is not known.
	s.answers("/receipts/batch", 400, says(`{"error":"invalid_request"}`))
	s.answers("/receipts", 404, says(``))
	if left, err := p.Offer(t.Context()); left != 2 || err == nil || len(*done) != 0 {
		t.Errorf("%d wait, %v", left, err)
	}
	for what, item := range map[string]string{
		"not even kept": `{"status":503,"error":"temporarily_unavailable"}`, "their fault": `{"status":500,"error":"server_error"}`,
		"no receipt": `{"status":200,"receipt":{"jws":"a.b.c","claims":{}}}`, "a word nobody knows": `{"status":400,"error":"later"}`,
		"no word": `{"status":409}`,
	} {
		s.answers("/receipts/batch", 200, batch(func(map[string]any) string { return item }))
		if left, _ := p.Offer(t.Context()); left != 2 || len(*done) != 0 {
			t.Errorf("%s: %d wait, %q", what, left, *done)
		}
	}
	sign := s.receipt(s.brand, receiptHeader, nil)
	s.answers("/receipts/batch", 200, batch(func(one map[string]any) string { return `{"status":200,"receipt":` + sign(one) + `}` }))
	if left, err := p.Offer(t.Context()); left != 0 || err != nil || fmt.Sprint(*done) != "[m0 true m1 true]" || len(kept.records) != 0 {
		t.Errorf("%d wait, %v, %q", left, err, *done)
	}
}

// The same holds when a turn is handed in for the first time: what is no verdict leaves it
// waiting, and does not sound like one.
func TestATurnIsKeptWhateverStandsBetween(t *testing.T) {
	for _, tt := range []struct {
		status int
		answer string
	}{
		{404, `<html>no backend</html>`},
		{302, ``},
		{400, `<html>bad request</html>`},
		{409, `<html>`},
		{413, `<html>too large</html>`},
		{200, `<html>we are back soon</html>`},
		{200, `{}`},
		{200, `{"jws":"a.b.c","claims":{}}`},
		{401, `{"error":"invalid_token"}`},
		{403, `{"error":"insufficient_scope"}`},
		{500, `{"error":"server_error"}`},
	} {
		s := newScene(t)
		c, p, kept, done := waitingDoor(t, s)
		s.answers("/receipts", tt.status, says(tt.answer))
		_, err := p.Countersign(t.Context(), c, Turn{ContextID: "c1", MessageID: "m0"})
		for _, verdict := range []error{ErrToken, ErrScope, ErrConflict} {
			if !errors.Is(err, ErrWaiting) || errors.Is(err, verdict) || len(kept.records) != 1 {
				t.Errorf("%d %s: %v, %d kept", tt.status, tt.answer, err, len(kept.records))
			}
		}
		sign := s.receipt(s.brand, receiptHeader, nil)
		s.answers("/receipts/batch", 200, batch(func(one map[string]any) string { return `{"status":200,"receipt":` + sign(one) + `}` }))
		if left, err := p.Offer(t.Context()); left != 0 || err != nil || fmt.Sprint(*done) != "[m0 true]" {
			t.Errorf("%d %s: afterwards %d wait, %v, %q", tt.status, tt.answer, left, err, *done)
		}
	}
}

// Each of the authority's verdicts ends the waiting.
func TestEachVerdictSettlesATurn(t *testing.T) {
	for item, want := range map[string]error{
		`{"status":400,"error":"invalid_token"}`: ErrToken, `{"status":400,"error":"invalid_scope"}`: ErrScope,
		`{"status":409,"error":"conflict"}`: ErrConflict, `{"status":400,"error":"invalid_request"}`: nil,
	} {
		s := newScene(t)
		c, p, kept, _ := waitingDoor(t, s)
		var told error
		p.c.Done = func(_ context.Context, _ Served, o Outcome) { told = o.Err }
		s.queue(c, p, 1)
		s.answers("/receipts/batch", 200, batch(func(map[string]any) string { return item }))
		if left, err := p.Offer(t.Context()); left != 0 || err != nil || told == nil || want != nil && !errors.Is(told, want) || len(kept.records) != 0 {
			t.Errorf("%s: %d wait, %v, told %v", item, left, err, told)
		}
	}
}

// One turn for which a whole call is refused does not stand in the way of the others,
// and is itself settled only by the authority.
func TestABadTurnBlocksNoOther(t *testing.T) {
	for answer, left := range map[string]int{`{"error":"invalid_request"}`: 0, `<html>the firewall</html>`: 1} {
		s := newScene(t)
		c, p, kept, done := waitingDoor(t, s)
		s.queue(c, p, 3)
		sign := s.receipt(s.brand, receiptHeader, nil)
		page := func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			var one map[string]any
			_ = json.Unmarshal(raw, &one)
			if strings.Contains(string(raw), `"m1"`) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, answer)
			} else if _, many := one["turns"]; many {
				_, _ = io.WriteString(w, batch(func(one map[string]any) string { return `{"status":200,"receipt":` + sign(one) + `}` })(one))
			} else {
				_, _ = io.WriteString(w, sign(one))
			}
		}
		s.authority.serve("/oauth/receipts", page)
		s.authority.serve("/oauth/receipts/batch", page)
		want := "[m0 true m1 false m2 true]"
		if left == 1 {
			want = "[m0 true m2 true]"
		}
		got, err := p.Offer(t.Context())
		if got != left || (err != nil) != (left == 1) || fmt.Sprint(*done) != want || len(kept.records) != left {
			t.Errorf("%s: %d wait, %v, %q", answer, got, err, *done)
		}
	}
}

// What the authority has taken and not signed holds up nothing behind it.
func TestWhatWaitsThereHoldsUpNothingBehindIt(t *testing.T) {
	s := newScene(t)
	c, p, _, done := waitingDoor(t, s)
	s.queue(c, p, 2*MaxTurns+5)
	asked := s.answers("/receipts/batch", 200, batch(func(map[string]any) string { return `{"status":202,"since":"2026-11-20T12:00:01.000Z"}` }))
	if left, err := p.Offer(t.Context()); left != 2*MaxTurns+5 || err != nil || len(*asked) != 3 || len(*done) != 0 {
		t.Errorf("%d wait, %v, %d calls", left, err, len(*asked))
	}
	// Where nothing is even looked at, the next round is soon enough.
	asked = s.answers("/receipts/batch", 200, batch(func(map[string]any) string { return `{"status":503,"error":"temporarily_unavailable"}` }))
	if left, err := p.Offer(t.Context()); left != 2*MaxTurns+5 || err != nil || len(*asked) != 1 {
		t.Errorf("%d wait, %v, %d calls", left, err, len(*asked))
	}
}

func TestPendingNeedsACredential(t *testing.T) {
	s := newScene(t, func(c *Config, _ *AgentsConfig) { c.Credential = "" })
	for what, c := range map[string]PendingConfig{"no door": {}, "no credential": {Door: s.door}, "fewer than none": {Door: s.door, Most: -1}} {
		if _, err := NewPending(c); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Under the ids of a turn that waits no other is countersigned before it; the same is
// the same in whatever order its scopes are named, and whenever it comes again.
func TestAnotherTurnUnderWaitingIDsIsAConflict(t *testing.T) {
	s := newScene(t)
	c, p, kept, _ := waitingDoor(t, s)
	turn := func(change func(*Turn)) Turn {
		out := Turn{
			ContextID: "c1", MessageID: "m1", ScopesUsed: []string{"orders:read", "orders:cancel"}, MessageHash: hashed, ReplyHash: hashed,
			Acts: []Act{{Tool: "cancel", Args: map[string]any{"order": 7}}, {Tool: "note"}},
		}
		change(&out)
		return out
	}
	asked := s.answers("/receipts", 503, says(``))
	if _, err := p.Countersign(t.Context(), c, turn(func(*Turn) {})); !errors.Is(err, ErrWaiting) {
		t.Fatal(err)
	}
	began := (*asked)[0]["began"]
	for what, change := range map[string]func(*Turn){
		"other arguments": func(t *Turn) { t.Acts[0].Args = map[string]any{"order": 8} },
		"another tool":    func(t *Turn) { t.Acts[1].Tool = "pay" },
		"fewer acts":      func(t *Turn) { t.Acts = t.Acts[:1] },
		"another order":   func(t *Turn) { t.Acts[0], t.Acts[1] = t.Acts[1], t.Acts[0] },
		"fewer scopes":    func(t *Turn) { t.ScopesUsed = t.ScopesUsed[:1] },
		"another message": func(t *Turn) { t.MessageHash = "" },
		"another reply":   func(t *Turn) { t.ReplyHash = "" },
	} {
		if _, err := p.Countersign(t.Context(), c, turn(change)); !errors.Is(err, ErrConflict) || errors.Is(err, ErrUnavailable) || len(*asked) != 1 {
			t.Errorf("%s: %v, %d calls", what, err, len(*asked))
		}
		// Also where both come at once, and this one was not seen before it was asked.
		other, err := Served{c, turn(change)}.hashed()
		if err != nil {
			t.Fatal(err)
		}
		id, err := other.id().text()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.keep(t.Context(), id, other); !errors.Is(err, ErrConflict) {
			t.Errorf("%s: at once: %v", what, err)
		}
	}
	s.advance(60e9)
	again := turn(func(t *Turn) { t.ScopesUsed = []string{"orders:cancel", "orders:read"} })
	if _, err := p.Countersign(t.Context(), c, again); !errors.Is(err, ErrWaiting) || len(kept.records) != 1 {
		t.Errorf("the same: %v, %d records", err, len(kept.records))
	}
	if len(*asked) != 2 || (*asked)[1]["began"] != began {
		t.Errorf("it began at %v, and again at %v", began, (*asked)[len(*asked)-1]["began"])
	}
}

// slowDrawer is a drawer that somebody has to open.
type slowDrawer struct {
	drawer
	reached chan struct{}
	open    chan error
}

func (d *slowDrawer) Keep(ctx context.Context, id string, record []byte) error {
	d.reached <- struct{}{}
	if err := <-d.open; err != nil {
		return err
	}
	return d.drawer.Keep(ctx, id, record)
}

// Nobody hears that a turn waits before it is kept, and nothing is settled before: its
// record would be written after it was forgotten.
func TestATurnWaitsOnceItIsKept(t *testing.T) {
	s := newScene(t)
	c, p, _, done := waitingDoor(t, s)
	kept := &slowDrawer{reached: make(chan struct{}), open: make(chan error)}
	p.c.Keeper = kept
	turn := Turn{ContextID: "c1", MessageID: "m1"}
	s.answers("/receipts", 503, says(``))
	sign := s.receipt(s.brand, receiptHeader, nil)
	s.answers("/receipts/batch", 200, batch(func(one map[string]any) string { return `{"status":200,"receipt":` + sign(one) + `}` }))
	first := make(chan error)
	go func() {
		_, err := p.Countersign(t.Context(), c, turn)
		first <- err
	}()
	<-kept.reached
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Countersign(gone, c, turn); err == nil || errors.Is(err, ErrWaiting) {
		t.Errorf("a second one before it is kept: %v", err)
	}
	if left, err := p.Offer(t.Context()); left != 1 || err != nil || len(*done) != 0 {
		t.Errorf("before it is kept: %d wait, %v, %q", left, err, *done)
	}
	kept.open <- nil
	if err := <-first; !errors.Is(err, ErrWaiting) {
		t.Errorf("the first: %v", err)
	}
	if left, err := p.Offer(t.Context()); left != 0 || err != nil || len(*done) != 1 || len(kept.records) != 0 {
		t.Errorf("%d wait, %v, %q, %d records", left, err, *done, len(kept.records))
	}
}

// Whoever waits for somebody who cannot keep the turn tries by itself.
func TestATurnThatOneCouldNotKeepIsKeptByTheNext(t *testing.T) {
	s := newScene(t)
	c, p, _, _ := waitingDoor(t, s)
	turn, err := Served{c, Turn{ContextID: "c1", MessageID: "m1"}}.hashed()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		kept := &slowDrawer{reached: make(chan struct{}, 2), open: make(chan error)}
		p.c.Keeper = kept
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- p.keep(t.Context(), "id", turn) }()
		synctest.Wait()
		go func() { second <- p.keep(t.Context(), "id", turn) }()
		synctest.Wait()
		full := errors.New("disk full")
		kept.open <- full
		if err := <-first; !errors.Is(err, full) {
			t.Errorf("the first: %v", err)
		}
		synctest.Wait()
		select {
		case err := <-second:
			t.Fatalf("the second did not try: %v", err)
		default:
		}
		kept.open <- nil
		if err := <-second; err != nil || len(kept.records) != 1 {
			t.Errorf("the second: %v, %d records", err, len(kept.records))
		}
	})
}
