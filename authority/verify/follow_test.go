package verify

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stream is the authority's event stream, a double: one connection at a time, which
// says what it is told to say.
type stream struct {
	*scene
	came chan *http.Request
	say  chan string // "" breaks off
	said chan struct{}
}

func newStream(t *testing.T) *stream {
	t.Helper()
	s := &stream{scene: newScene(t), came: make(chan *http.Request, 10), say: make(chan string), said: make(chan struct{})}
	s.authority.serve("/oauth/events", func(w http.ResponseWriter, r *http.Request) {
		s.came <- r
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case text := <-s.say:
				if text == "" {
					return
				}
				fmt.Fprint(w, text)
				_ = http.NewResponseController(w).Flush()
				s.said <- struct{}{}
			}
		}
	})
	return s
}

func (s *stream) tell(seq int, kind, grant, scopes string) {
	s.say <- fmt.Sprintf("id: %d\nevent: %s\ndata: {\"type\":%q,\"data\":{\"grant_id\":%q,\"scopes\":%s,\"seq\":%d}}\n\n", seq, kind, kind, grant, scopes, seq)
	<-s.said
}

// heard waits until the kit has taken down the place.
func (s *stream) heard(t *testing.T, grant string, seq int64) {
	t.Helper()
	for t.Context().Err() == nil {
		s.door.revoked.ended.mu.Lock()
		got := s.door.revoked.ended.left[grant].seq
		s.door.revoked.ended.mu.Unlock()
		if got >= seq {
			return
		}
		runtime.Gosched()
	}
}

// The stream takes away at once what the list has seconds later, and gives nothing
// that the token does not have. After a break it goes on where it was.
func TestTheStreamTakesAwayAtOnce(t *testing.T) {
	s := newStream(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.door.Follow(ctx) }()
	if r := <-s.came; r.Header.Get("Authorization") != "Bearer cs_key_secret" || r.Header.Get("Last-Event-ID") != "" || r.URL.RawQuery != "" {
		t.Errorf("%v", r.Header)
	}
	holds := func(want ...string) {
		t.Helper()
		c, err := s.call(s.token(nil))
		if len(want) == 0 {
			if !errors.Is(err, ErrRevoked) || !errors.Is(err, ErrToken) {
				t.Errorf("%v", err)
			}
			return
		}
		if err != nil || !cmp.Equal(c.Delegation.Scopes, want) {
			t.Errorf("%v, %v, want %v", c.Delegation, err, want)
		}
	}
	holds("orders:read", "orders:cancel")
	s.tell(5, "grant.narrowed", "g1", `["orders:read"]`)
	s.heard(t, "g1", 5)
	holds("orders:read")
	s.tell(6, "grant.widened", "g1", `["orders:read","orders:cancel","orders:pay"]`)
	s.heard(t, "g1", 6)
	holds("orders:read", "orders:cancel")
	s.tell(4, "grant.revoked", "g1", `[]`) // old news
	s.tell(7, "grant.renamed", "g1", `[]`) // of a kind that is not known
	s.tell(8, "grant.revoked", "g2", `[]`)
	s.heard(t, "g2", 8)
	holds("orders:read", "orders:cancel")
	s.say <- ""
	if r := <-s.came; r.Header.Get("Last-Event-ID") != "8" {
		t.Errorf("came again after %q", r.Header.Get("Last-Event-ID"))
	}
	s.tell(4, "grant.revoked", "g1", `[]`) // is no news for a break
	for i, kind := range []string{"grant.revoked", "grant.expired", "grant.reuse_detected"} {
		grant := fmt.Sprint("g", i+3)
		s.tell(10+i, kind, grant, `["orders:read"]`)
		s.heard(t, grant, int64(10+i))
		d := Delegation{Grant: grant, Scopes: []string{"orders:read"}}
		if s.door.revoked.ended.narrow(&d) {
			t.Errorf("%s leaves something", kind)
		}
	}
	holds("orders:read", "orders:cancel")
	s.tell(20, "grant.revoked", "g1", `[]`)
	s.heard(t, "g1", 20)
	holds()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// What the stream told of a grant is of tokens from before: a later one has in itself
// what the person allowed since, whether or not anybody listened to that.
func TestTheStreamSpeaksOfTokensFromBefore(t *testing.T) {
	const both, one = "orders:read orders:cancel", "orders:read"
	for name, tt := range map[string]struct {
		at     string        // of the event
		heard  time.Duration // all of these after noon
		issued time.Duration
		now    time.Duration
		want   string
	}{
		"before it":                {`"2026-11-20T12:05:00.5Z"`, 301 * time.Second, 0, 301 * time.Second, one},
		"in the moment of it":      {`"2026-11-20T12:05:00.5Z"`, 301 * time.Second, 330 * time.Second, 331 * time.Second, one},
		"after it":                 {`"2026-11-20T12:05:00.5Z"`, 301 * time.Second, 331 * time.Second, 331 * time.Second, both},
		"before it was heard":      {`"2026-11-20T12:05:00Z"`, 40 * time.Minute, 6 * time.Minute, 40 * time.Minute, both},
		"two days later":           {`"2026-11-20T12:05:00Z"`, 301 * time.Second, 48 * time.Hour, 48 * time.Hour, both},
		"before, no time said":     {`null`, 5 * time.Minute, 5*time.Minute + skew, 6 * time.Minute, one},
		"after, no time said":      {`null`, 5 * time.Minute, 6 * time.Minute, 6 * time.Minute, both},
		"before, no time readable": {`{"s":1}`, 5 * time.Minute, 5 * time.Minute, 6 * time.Minute, one},
		"after, no time readable":  {`"2026"`, 5 * time.Minute, 6 * time.Minute, 6 * time.Minute, both},
		"as old as tokens get":     {`"2036-11-20T12:05:00Z"`, 0, longestToken, longestToken, one},
		"older than any token":     {`"2036-11-20T12:05:00Z"`, 0, longestToken, longestToken + time.Second, both},
	} {
		s := newScene(t)
		s.advance(tt.heard)
		s.door.take(`{"type":"grant.narrowed","timestamp":` + tt.at + `,"data":{"grant_id":"g1","scopes":["orders:read"],"seq":1}}`)
		s.advance(tt.now - tt.heard)
		token := s.token(map[string]any{"iat": noon.Add(tt.issued).Unix()})
		c, err := s.call(token)
		if err != nil || strings.Join(c.Delegation.Scopes, " ") != tt.want {
			t.Errorf("issued %s: %+v, %v", name, c.Delegation, err)
		}
		if past := tt.now-tt.heard > longestToken; past != (len(s.door.revoked.ended.left) == 0) {
			t.Errorf("issued %s: %v is kept", name, s.door.revoked.ended.left)
		}
	}
}

// Who begins to listen anew hears nothing that was heard before, and no number of
// before hides it: a backup may have been put back meanwhile.
func TestAStreamThatBeginsAnewIsNews(t *testing.T) {
	s := newStream(t)
	follow := func() func() {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.door.Follow(ctx) }()
		<-s.came
		return func() { cancel(); <-done }
	}
	leave := follow()
	s.tell(9, "grant.narrowed", "g1", `["orders:read"]`)
	s.heard(t, "g1", 9)
	leave()
	leave = follow()
	defer leave()
	if c, err := s.call(s.token(nil)); err != nil || !cmp.Equal(c.Delegation.Scopes, []string{"orders:read"}) {
		t.Errorf("what was heard holds on: %v, %v", c.Delegation, err)
	}
	s.tell(3, "grant.revoked", "g1", `[]`)
	s.tell(4, "grant.revoked", "g2", `[]`)
	s.heard(t, "g2", 4)
	if _, err := s.call(s.token(nil)); !errors.Is(err, ErrRevoked) {
		t.Errorf("%v", err)
	}
}

// A key that is no good ends it; trying again would not mend that.
func TestFollowingEndsWithItsKey(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		s := newScene(t)
		s.authority.serve("/oauth/events", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if err := s.door.Follow(t.Context()); !errors.Is(err, ErrCredential) {
			t.Errorf("%d: %v", status, err)
		}
	}
	s := newScene(t, func(c *Config, _ *AgentsConfig) { c.Credential = "" })
	if err := s.door.Follow(t.Context()); !errors.Is(err, ErrOptions) {
		t.Errorf("%v", err)
	}
}

// What is remembered of ends is bounded, and what is older than any token makes
// room.
func TestEndsAreBounded(t *testing.T) {
	s := newScene(t)
	e := s.door.revoked.ended
	for i := range maxEnded + 10 {
		e.hear(fmt.Sprint(i), nil, 1, time.Time{})
	}
	if n := len(e.left); n != maxEnded {
		t.Errorf("%d", n)
	}
	// Nobody talks an end out of it by making many more, while there are tokens from
	// before it.
	s.advance(longestToken)
	e.hear("new", nil, 1, time.Time{})
	if _, heard := e.left["0"]; !heard || len(e.left) != maxEnded {
		t.Errorf("%d, the first among them: %v", len(e.left), heard)
	}
	// Of those that are known, the last news counts all the same.
	e.hear("1", []string{"a"}, 2, time.Time{})
	if got := e.left["1"]; got.seq != 2 {
		t.Errorf("%+v", got)
	}
	s.advance(2 * time.Second)
	e.hear("new", nil, 1, time.Time{})
	if n := len(e.left); n != 2 {
		t.Errorf("%d", n)
	}
}

// FuzzEvents: whatever the stream says, it takes away and gives nothing, and the
// place is a number.
func FuzzEvents(f *testing.F) {
	f.Add("id: 1\nevent: grant.revoked\ndata: {\"type\":\"grant.revoked\",\"data\":{\"grant_id\":\"g1\",\"scopes\":[],\"seq\":1}}\n\n")
	f.Add(": still here\n\nid: x\n\ndata: {\ndata: }\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		v := &Verifier{revoked: &revocations{ended: newEnded(func() time.Time { return noon })}}
		place := ""
		if err := v.hear(bufio.NewScanner(strings.NewReader(text)), &place, func() {}); err == nil {
			t.Error("it ended without a word")
		}
		if strings.Trim(place, "0123456789") != "" {
			t.Errorf("place %q", place)
		}
		for grant := range v.revoked.ended.left {
			d := Delegation{Grant: grant, Scopes: []string{"a", "b"}}
			v.revoked.ended.narrow(&d)
			if len(d.Scopes) > 2 {
				t.Errorf("%v", d.Scopes)
			}
		}
	})
}
