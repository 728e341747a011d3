package outfitter

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/verify"
)

// What was done and not countersigned stays what was done: the same message with
// another text, or under a delegation that has become less, does nothing again, and
// asks nobody for what is over. Its receipt is of the delegation that it was done under.
func TestWhatWasDoneIsDoneOnce(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer service.Close()
	s, err := New(Config{
		Service: service.URL, Brand: "fern-and-fell", Interface: service.URL + "/support",
		Audience: "urn:x", Credential: "cs_key_secret", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	buyer := call("aria", "alex", "ff-1", "g1")
	buyer.Delegation.Scopes = []string{"orders:place"}
	id, one, err := s.talks.hear(buyer, surface.Message{ID: "m1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.answer(t.Context(), buyer, id, one, surface.Message{ID: "m1", Text: "Buy a head torch"}); err == nil {
		t.Fatal("a reply without a receipt")
	}
	done := s.talks.look(one)
	if done.state != acted || done.does.tool != "orders.place" {
		t.Fatalf("%+v", done)
	}
	narrowed := buyer
	narrowed.Delegation = &verify.Delegation{User: "ff-1", Grant: "g1", Scopes: []string{"orders:read"}}
	later := buyer
	later.Delegation = &verify.Delegation{User: "ff-1", Grant: "g1", Scopes: []string{"orders:place"}, Issued: done.began.Add(time.Hour)}
	for what, again := range map[string]struct {
		c    verify.Call
		text string
	}{
		"another text":      {buyer, "Return the boots"},
		"less is allowed":   {narrowed, "Buy a head torch"},
		"nothing is needed": {buyer, "Hello"},
		"a later token":     {later, "Buy a head torch"},
	} {
		if reply, err := s.answer(t.Context(), again.c, id, one, surface.Message{ID: "m1", Text: again.text}); err == nil {
			t.Errorf("%s: %s", what, reply)
		}
		if now := s.talks.look(one); now.state != acted || now.does != done.does {
			t.Errorf("%s: %+v", what, now)
		} else if got := now.served(id, "m1"); got.Call.Delegation != buyer.Delegation || got.Turn.Began != done.began || got.Turn.ScopesUsed[0] != "orders:place" {
			t.Errorf("%s: it would be countersigned as %+v", what, got)
		}
	}
}
