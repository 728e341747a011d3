package verify

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wireTap is the network to the authority inside a bubble: what comes back for
// each connection, and when each was asked for and with which place.
type wireTap struct {
	began  time.Time
	at     []time.Duration
	places []string
	door   *Verifier
	answer func(n int, w *io.PipeWriter) (status int)
}

func (w *wireTap) RoundTrip(r *http.Request) (*http.Response, error) {
	w.at, w.places = append(w.at, time.Since(w.began)), append(w.places, r.Header.Get("Last-Event-ID"))
	from, to := io.Pipe()
	context.AfterFunc(r.Context(), func() { to.CloseWithError(context.Cause(r.Context())) })
	return &http.Response{StatusCode: w.answer(len(w.at), to), Header: http.Header{}, Body: from, Request: r}, nil
}

// follows has a kit follow such an authority for so long.
func follows(t *testing.T, long time.Duration, answer func(n int, w *io.PipeWriter) int) *wireTap {
	t.Helper()
	agents, err := NewAgents(AgentsConfig{Audience: provider, Open: true})
	if err != nil {
		t.Fatal(err)
	}
	tap := &wireTap{began: time.Now(), answer: answer}
	v, err := New(Config{
		Issuer: brandIssuer, Interface: brandURL, Agents: agents, Credential: "cs_key_secret",
		HTTP: &http.Client{Transport: tap, Timeout: 5 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	tap.door = v
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if err := v.Follow(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	return tap
}

// A stream that says now and then that it lives is listened to for as long as it
// does, whatever bounds the Brand's client has for other things. One that has
// fallen silent is no stream: it would look as though nothing ever ended.
func TestASilentStreamIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := follows(t, 4*time.Minute, func(n int, w *io.PipeWriter) int {
			if n > 1 {
				return http.StatusOK // and not a word
			}
			go func() {
				for range 6 {
					time.Sleep(15 * time.Second)
					if _, err := io.WriteString(w, ": alive\n\n"); err != nil {
						return
					}
				}
			}()
			return http.StatusOK
		})
		want := []time.Duration{0, (6*15 + 40 + 1) * time.Second, (6*15 + 40 + 1 + 40 + 1) * time.Second, (6*15 + 40 + 1 + 40 + 1 + 40 + 1) * time.Second}
		if diff := cmp.Diff(want, tap.at); diff != "" {
			t.Error(diff)
		}
	})
}

// An authority in trouble is not made worse by its listeners; one that was well for
// a while is asked again at once.
func TestListenersComeAgainMoreAndMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := follows(t, 3*time.Minute, func(n int, w *io.PipeWriter) int {
			if n != 7 {
				return http.StatusServiceUnavailable
			}
			go func() {
				time.Sleep(35 * time.Second)
				w.Close()
			}()
			return http.StatusOK
		})
		var rests []int
		for i := range tap.at[1:] {
			rests = append(rests, int((tap.at[i+1] - tap.at[i]).Seconds()))
		}
		if diff := cmp.Diff([]int{1, 2, 4, 8, 16, 30, 36, 2, 4, 8, 16, 30}, rests); diff != "" {
			t.Error(diff)
		}
	})
}

// The place is that of the last event heard whole: with that of half an event, the
// other half would be lost. A place that the authority does not know is let go, or
// nothing would ever be heard again.
func TestThePlaceIsThatOfAWholeEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := follows(t, 20*time.Second, func(n int, w *io.PipeWriter) int {
			switch n {
			case 1:
				go func() {
					_, _ = io.WriteString(w, "id: 7\ndata: {}\n\nid: 8\ndata: {")
					w.Close()
				}()
				return http.StatusOK
			case 2:
				go func() {
					_, _ = io.WriteString(w, "id: 9\n")
					w.Close()
				}()
				return http.StatusOK
			case 3:
				return http.StatusBadRequest
			}
			return http.StatusOK
		})
		if diff := cmp.Diff([]string{"", "7", "7", ""}, tap.places); diff != "" {
			t.Error(diff)
		}
	})
}

// After a backup was put back the numbers of events begin again at lower ones, and what
// was heard with higher ones hides none of them.
func TestNumbersThatBeginAgainAreNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := follows(t, 20*time.Second, func(n int, w *io.PipeWriter) int {
			if n == 2 {
				return http.StatusBadRequest
			}
			event := `{"type":"grant.narrowed","data":{"grant_id":"g1","scopes":["a"],"seq":9}}`
			if n > 2 {
				event = `{"type":"grant.revoked","data":{"grant_id":"g1","scopes":[],"seq":3}}`
			}
			go func() {
				_, _ = io.WriteString(w, "id: 9\ndata: "+event+"\n\n")
				w.Close()
			}()
			return http.StatusOK
		})
		if d := (Delegation{Grant: "g1", Scopes: []string{"a"}, Issued: tap.began}); tap.door.revoked.ended.narrow(&d) {
			t.Errorf("%v left", d.Scopes)
		}
	})
}

// What one event may weigh is bounded, in one line and in many; so is a line that
// means nothing.
func TestEventsAreBounded(t *testing.T) {
	v := &Verifier{revoked: &revocations{ended: newEnded(time.Now)}}
	const ended = `{"type":"grant.revoked","data":{"grant_id":"g1","seq":1}`
	for what, text := range map[string]string{
		"a line": "data: " + ended + strings.Repeat(" ", maxLine) + "}\n\n",
		"lines":  "data: " + ended + "\n" + strings.Repeat("data: "+strings.Repeat(" ", 1000)+"\n", maxLine/1000+2) + "data: }\n\n",
	} {
		place := ""
		if err := v.hear(bufio.NewScanner(strings.NewReader(text)), &place, func() {}); err == nil || len(v.revoked.ended.left) != 0 {
			t.Errorf("%s: %v, %v", what, err, v.revoked.ended.left)
		}
	}
	place := ""
	if err := v.hear(bufio.NewScanner(strings.NewReader(":"+strings.Repeat(" ", maxLine))), &place, func() {}); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("a comment: %v", err)
	}
}
