// Package eventstest is a Brand's receiver of webhooks, for tests. It checks
// signatures by what Standard Webhooks says and not with our code.
package eventstest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Call is one request that reached the Receiver.
type Call struct {
	ID     string
	Header http.Header
	Body   []byte
	Type   string
	At     time.Time // when it came
	Data   struct {
		GrantID string `json:"grant_id"`
		Agent   string
		Subject string
		Scopes  []string
		Before  []string
		Until   time.Time
		Reason  string
		Seq     int64
	}
}

// Receiver is a server on loopback.
type Receiver struct {
	URL   string
	Calls chan Call // every request, in the order of arrival

	mu     sync.Mutex
	answer func(Call) int
	all    []Call
}

// New starts a Receiver that answers 204.
func New(t testing.TB) *Receiver {
	t.Helper()
	const room = 10_000
	r := &Receiver{Calls: make(chan Call, room), answer: func(Call) int { return http.StatusNoContent }}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.URL = s.URL + "/hook?part=of-the-url"
	return r
}

// Answer makes the Receiver answer so from now on; 0 is no answer, for as long
// as the caller waits.
func (r *Receiver) Answer(f func(Call) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

// All returns what came until now.
func (r *Receiver) All() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Call(nil), r.all...)
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c := Call{ID: req.Header.Get("webhook-id"), Header: req.Header, At: time.Now()}
	var err error
	if c.Body, err = io.ReadAll(req.Body); err == nil {
		err = json.Unmarshal(c.Body, &c)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	answer := r.answer
	r.all = append(r.all, c)
	r.mu.Unlock()
	r.Calls <- c
	switch status := answer(c); status {
	case 0:
		<-req.Context().Done()
	case http.StatusFound:
		http.Redirect(w, req, "/elsewhere", status)
	default:
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "the receiver's own words")
	}
}

// Next returns the next call that comes within the time.
func (r *Receiver) Next(t testing.TB, within time.Duration) Call {
	t.Helper()
	if len(r.Calls) == 0 && within > 0 {
		select {
		case c := <-r.Calls:
			return c
		case <-time.After(within):
		}
	}
	select {
	case c := <-r.Calls:
		return c
	default:
		t.Fatalf("no webhook came within %s", within)
		panic("unreachable")
	}
}

// Tolerance is how old a request may be.
const Tolerance = 5 * time.Minute

// Verify checks a request as a Brand would: that one of the signatures was made
// with the secret, over these very bytes, a short while ago.
func Verify(secret string, h http.Header, body []byte, now time.Time) error {
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return errors.New("not a secret of Standard Webhooks")
	}
	id, at := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" || strings.Contains(id, ".") {
		return errors.New("id or timestamp is missing or malformed")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return fmt.Errorf("the timestamp is %s off", age)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "." + string(body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, given := range strings.Split(h.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), []byte(want)) {
			return nil
		}
	}
	return errors.New("no signature is ours")
}
