package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// streamChecks are about {issuer}/events, where a Brand's server hears what becomes
// of grants.
func streamChecks() []check {
	return []check{
		{"§10", "the Brand hears of a grant's end within seconds", func(t *trial) {
			s := t.listens("")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			u.revoke(p.RefreshToken).is(t, "the revocation", http.StatusOK)
			e := s.hears("grant.revoked", p.claim("grant_id"))
			if e.Data.Scopes == nil || len(e.Data.Scopes) != 0 {
				t.fail("a grant that ended still has %q", e.Data.Scopes)
			}
			if e.id == "" || strconv.FormatInt(e.Data.Seq, 10) != e.id {
				t.fail("the event's id is %q, and its seq %d", e.id, e.Data.Seq)
			}
		}},
		{"§10", "whoever comes again misses nothing and hears nothing twice", func(t *trial) {
			s := t.listens("")
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			first := s.hears("grant.created", p.claim("grant_id"))
			s.leaves()
			u.revoke(p.RefreshToken).is(t, "the revocation", http.StatusOK)
			again := t.listens(first.id)
			again.hears("grant.revoked", p.claim("grant_id"))
			if slices.Contains(again.heard, "grant.created "+p.claim("grant_id")) {
				t.fail("what was heard before comes again")
			}
			for _, place := range []string{"9007199254740991", "-1", "x"} {
				a := t.stream(t.BrandKey, place)
				a.leaves()
				if a.status != bad {
					t.fail("the place %s, where nothing can be: %d, not 400", place, a.status)
				}
			}
		}},
		{"§10", "the stream is for the Brand alone", func(t *trial) {
			t.listens("").leaves()
			for _, key := range []string{"", "cs_none_none", t.user().bearer()} {
				t.streamless(key)
			}
		}},
	}
}

// streamless demands that nobody is told anything with this key. A stream that
// opens after all never ends by itself, so the answer must be there at once.
func (t *trial) streamless(key string) {
	const atOnce = 3 * time.Second
	ctx, cancel := context.WithTimeout(t.ctx, atOnce)
	defer cancel()
	a, err := (&trial{suite: t.suite, ctx: ctx}).send(call{method: http.MethodGet, url: t.below("events"), bearer: key})
	switch {
	case a.status == http.StatusOK:
		t.fail("the stream opens without the Brand's key")
	case err != nil:
		t.fail("events without the Brand's key: no answer that ends within %s: %v", atOnce, err)
	}
	a.bare401(t, "events without the Brand's key", badKey)
}

// heardEvent is what the stream says of a grant.
type heardEvent struct {
	id   string
	Type string `json:"type"`
	Data struct {
		Grant  string   `json:"grant_id"`
		Scopes []string `json:"scopes"`
		Seq    int64    `json:"seq"`
	} `json:"data"`
}

// listener is one connection to the stream.
type listener struct {
	t      *trial
	status int
	lines  *bufio.Scanner
	leave  context.CancelFunc
	heard  []string
}

func (l *listener) leaves() { l.leave() }

// listens is a stream that has begun: what happens from now on is told.
func (t *trial) listens(place string) *listener {
	t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
	l := t.stream(t.BrandKey, place)
	if l.status == http.StatusNotFound {
		l.leaves()
		t.notServed("there is no " + path(t.below("events")))
	}
	if l.status != http.StatusOK {
		l.leaves()
		t.fail("the stream answers %d", l.status)
	}
	for l.lines.Scan() { // the first block, with which it says where it begins
		if l.lines.Text() == "" {
			return l
		}
	}
	l.leaves()
	t.fail("the stream ends before it says anything")
	return nil
}

// stream opens one connection, for so long as a check may take.
func (t *trial) stream(key, place string) *listener {
	const longest = 15 * time.Second
	ctx, cancel := context.WithTimeout(t.ctx, longest)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.below("events"), nil)
	if err != nil {
		cancel()
		t.fail("%v", err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+key)
	if place != "" {
		r.Header.Set("Last-Event-ID", place)
	}
	resp, err := client.Do(r)
	if err != nil {
		cancel()
		t.fail("GET %s: %v", r.URL.Path, err)
	}
	l := &listener{t: t, status: resp.StatusCode, lines: bufio.NewScanner(resp.Body), leave: func() {
		cancel()
		_ = resp.Body.Close()
	}}
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if resp.StatusCode == http.StatusOK && media != "text/event-stream" {
		l.leaves()
		t.fail("the stream's Content-Type is %q", media)
	}
	return l
}

// hears listens until the stream says this of the grant, and then leaves.
func (l *listener) hears(kind, grant string) heardEvent {
	defer l.leaves()
	var id string
	for l.lines.Scan() {
		field, value, _ := strings.Cut(l.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "data":
			e := heardEvent{id: id}
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				l.t.fail("an event that is no JSON: %v", err)
			}
			l.heard = append(l.heard, e.Type+" "+e.Data.Grant)
			if e.Type == kind && e.Data.Grant == grant {
				return e
			}
		}
	}
	l.t.fail("the stream says nothing of %s", kind)
	return heardEvent{}
}
