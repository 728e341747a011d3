package oauth

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/events"
	"countersign.dev/tenants"
	"countersign.dev/web"
)

// Bounds of streams.
const (
	streamsPerBrand = 20 // on one instance
	// beat is how often an idle stream says that it lives, so that proxies and
	// the reader know.
	beat = 15 * time.Second
	// recheck is how often a stream's right to go on is looked at. What is known
	// of keys and Brands is a second old at most, so it ends within two.
	recheck = 500 * time.Millisecond
	// slowest is how long a reader may take in one piece. What it has not read
	// waits in the trail and not with us.
	slowest = 5 * time.Second
	piece   = 200 // events
)

// events is GET {issuer}/events: what becomes of grants, as server-sent events.
// The id of an event is its place in the Brand's trail; whoever comes again with
// the last one in Last-Event-ID misses nothing and gets nothing twice.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	brand, ok := h.brand(w, r)
	if !ok {
		return
	}
	switch {
	case !streams(brand), h.feed == nil:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	key, ok := h.credential(w, r, brand, tenants.RightEvents)
	if !ok {
		return
	}
	follower, ok := h.feed.Follow(brand.ID, streamsPerBrand)
	if !ok {
		h.fail(w, r, nil, &authority.LimitError{What: "streams", RetryAfter: retryAfter})
		return
	}
	defer follower.Leave()
	place, err := beginning(r, follower)
	if err != nil {
		h.fail(w, r, nil, err)
		return
	}
	ctx, end := context.WithCancel(web.Lasting(r))
	defer end()
	go h.guard(ctx, end, brand.ID, key)
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would keep events to itself
	s := &stream{Follower: follower, to: http.NewResponseController(w), w: w, place: place, looked: place}
	// A write that is under way when the stream ends must not hold it up.
	defer context.AfterFunc(ctx, s.hurry)()
	_ = s.run(ctx) // the reader is gone, too slow or no longer allowed: nobody to tell
}

// streams reports whether the Brand has a stream.
func streams(brand *tenants.Brand) bool { return brand.Delegation && brand.Exists() }

// beginning is the place after which to tell: where the reader stopped, or now.
func beginning(r *http.Request, f *events.Follower) (int64, error) {
	now, err := f.Now(r.Context())
	last := r.Header.Values("Last-Event-Id")
	if err != nil || len(last) == 0 {
		return now, err
	}
	place, err := strconv.ParseInt(last[0], 10, 64)
	// A place that the trail has not reached is another Brand's, or of a time
	// before a backup was put back: waiting for it would lose what comes until then.
	if err != nil || place < 0 || place > now || len(last) > 1 {
		return 0, invalidRequest("Last-Event-ID is not an id of this stream.")
	}
	return place, nil
}

// guard ends the stream when its key or Brand is no longer good, which cannot be
// told while the database is away either, and when the service stops.
func (h *Handler) guard(ctx context.Context, end context.CancelFunc, brand tenants.BrandID, key string) {
	defer end()
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.feed.Done():
			return
		case <-tick.C:
		}
		b, err := h.brands.Brand(ctx, brand)
		if err == nil {
			_, err = h.creds.Check(ctx, brand, key, tenants.RightEvents)
		}
		if err != nil || !streams(b) {
			return
		}
	}
}

// stream is one reader's.
type stream struct {
	*events.Follower
	w      http.ResponseWriter
	to     *http.ResponseController
	place  int64 // of the last event told
	looked int64 // where the trail ended when it was last read
	out    bytes.Buffer
}

// run tells what there is until the stream ends.
func (s *stream) run(ctx context.Context) error {
	// An id alone gives the reader a place to go on from before anything happens.
	fmt.Fprintf(&s.out, "retry: 2000\nid: %d\n\n", s.place)
	if err := s.write(ctx); err != nil {
		return err
	}
	alive, glance := time.NewTicker(beat), time.NewTicker(recheck)
	defer alive.Stop()
	defer glance.Stop()
	for {
		if err := s.tell(ctx); err != nil {
			return err
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-s.News():
				waiting = false
			case <-glance.C: // no notification came, which is no proof
				end, err := s.Place(ctx)
				if err != nil {
					return err
				}
				waiting = end <= s.looked
			case <-alive.C:
				s.out.WriteString(": still here\n\n")
				if err := s.write(ctx); err != nil {
					return err
				}
			}
		}
	}
}

// tell writes all that the reader has not heard.
func (s *stream) tell(ctx context.Context) error {
	for {
		end, err := s.Place(ctx)
		if err != nil {
			return err
		}
		list, err := s.Read(ctx, s.place, piece)
		if err != nil {
			return err
		}
		for _, e := range list {
			body, err := events.Message(e)
			if err != nil {
				return err
			}
			fmt.Fprintf(&s.out, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Type, body)
			s.place = e.Seq
		}
		if len(list) > 0 {
			if err := s.write(ctx); err != nil {
				return err
			}
		}
		if len(list) < piece {
			s.looked = max(s.looked, end)
			return nil
		}
	}
}

// write sends what is in the buffer, to a reader that takes it in time.
func (s *stream) write(ctx context.Context) error {
	defer s.out.Reset()
	if err := s.to.SetWriteDeadline(time.Now().Add(slowest)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := s.w.Write(s.out.Bytes()); err != nil {
		return err
	}
	return s.to.Flush()
}

// hurry gives a write under way a moment.
func (s *stream) hurry() {
	const moment = 200 * time.Millisecond
	_ = s.to.SetWriteDeadline(time.Now().Add(moment))
}
