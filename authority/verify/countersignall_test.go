package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority/canonical"
	"github.com/google/go-cmp/cmp"
)

const taskHeader = `{"alg":"ES256","kid":"k1","typ":"pact-task-receipt+jws"}`

// task is what the authority signs for a conversation, with changes.
func (s *scene) task(by signer, header string, change map[string]any) func(map[string]any) string {
	return func(asked map[string]any) string {
		claims := map[string]any{
			"grantId": asked["grantId"], "user": "guest-1", "pa": s.agent.URL, "brand": brandURL, "contextId": asked["contextId"],
			"count": 2, "root": hashed, "ts": "2026-11-20T12:00:00.000Z",
		}
		for name, value := range change {
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
		}
		form, err := canonical.Of(claims)
		if err != nil {
			s.t.Fatal(err)
		}
		return `{"jws":"` + by.sign(s.t, header, string(form)) + `","claims":` + marshal(s.t, claims) + `}`
	}
}

// A conversation's receipt is handed on only if the Brand's key signed for this one.
func TestAConversationIsCountersigned(t *testing.T) {
	s := newScene(t)
	c, err := s.call(s.token(nil))
	if err != nil {
		t.Fatal(err)
	}
	asked := s.answers("/receipts/task", 200, s.task(s.brand, taskHeader, nil))
	got, err := s.door.CountersignTask(t.Context(), c, "c1")
	if err != nil || got.JWS == "" || len(got.Claims) == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(map[string]any{"grantId": "g1", "contextId": "c1"}, (*asked)[0]); diff != "" {
		t.Error(diff)
	}
	good := s.task(s.brand, taskHeader, nil)
	for what, answer := range map[string]func(map[string]any) string{
		"another's key":        s.task(newSigner(t), taskHeader, nil),
		"a receipt's typ":      s.task(s.brand, receiptHeader, nil),
		"another grant":        s.task(s.brand, taskHeader, map[string]any{"grantId": "g2"}),
		"another user":         s.task(s.brand, taskHeader, map[string]any{"user": "guest-2"}),
		"another agent":        s.task(s.brand, taskHeader, map[string]any{"pa": aria}),
		"another Brand":        s.task(s.brand, taskHeader, map[string]any{"brand": "https://ferry.example"}),
		"another conversation": s.task(s.brand, taskHeader, map[string]any{"contextId": "c2"}),
		"over nothing":         s.task(s.brand, taskHeader, map[string]any{"count": 0}),
		"no root":              s.task(s.brand, taskHeader, map[string]any{"root": nil}),
		"a root that is none":  s.task(s.brand, taskHeader, map[string]any{"root": "abc"}),
		"one claim more":       s.task(s.brand, taskHeader, map[string]any{"jti": "1"}),
		"of the future":        s.task(s.brand, taskHeader, map[string]any{"ts": "2026-11-20T13:00:00.000Z"}),
		"nothing beside it":    func(asked map[string]any) string { return `{"jws":` + between(good(asked)) + `}` },
		"another beside it":    func(asked map[string]any) string { return strings.Replace(good(asked), `"count":2`, `"count":3`, 1) },
	} {
		s.answers("/receipts/task", 200, answer)
		if got, err := s.door.CountersignTask(t.Context(), c, "c1"); !errors.Is(err, ErrReceipt) || got.JWS != "" {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	s.answers("/receipts/task", 404, says("404 page not found\n"))
	if _, err := s.door.CountersignTask(t.Context(), c, "c1"); !errors.Is(err, ErrNoReceipts) {
		t.Errorf("without receipts: %v", err)
	}
	s.answers("/receipts/task", 503, says(`{"error":"temporarily_unavailable"}`))
	if _, err := s.door.CountersignTask(t.Context(), c, "c1"); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNoReceipts) {
		t.Errorf("not now: %v", err)
	}
	if _, err := s.door.CountersignTask(t.Context(), Call{Agent: c.Agent}, "c1"); !errors.Is(err, ErrOptions) {
		t.Errorf("no delegation: %v", err)
	}
	if _, err := s.door.CountersignTask(t.Context(), c, ""); !errors.Is(err, ErrOptions) {
		t.Errorf("no conversation: %v", err)
	}
}

// Each of many turns is countersigned, checked and refused as if it were alone, and
// what may not be sent is not.
func TestManyTurnsAreCountersigned(t *testing.T) {
	s := newScene(t)
	c, err := s.call(s.token(nil))
	if err != nil {
		t.Fatal(err)
	}
	sign := s.receipt(s.brand, receiptHeader, nil)
	forge := s.receipt(newSigner(t), receiptHeader, nil)
	last := ""
	one := func(asked map[string]any) string {
		switch asked["messageId"] {
		case "conflict":
			return `{"status":409,"error":"conflict","error_description":"Because."}`
		case "ended":
			return `{"status":400,"error":"invalid_token"}`
		case "away":
			return `{"status":503,"error":"temporarily_unavailable"}`
		case "forged":
			return `{"status":200,"receipt":` + forge(asked) + `}`
		case "another's":
			return `{"status":200,"receipt":` + last + `}`
		case "nothing":
			return `{"status":200}`
		}
		last = sign(asked)
		return `{"status":200,"receipt":` + last + `,"seq":1}`
	}
	batch := func(asked map[string]any) string {
		var results []string
		for _, turn := range asked["turns"].([]any) {
			results = append(results, one(turn.(map[string]any)))
		}
		return `{"results":[` + strings.Join(results, ",") + `]}`
	}
	asked := s.answers("/receipts/batch", 200, batch)
	var turns []Served
	want := []error{nil, ErrOptions, ErrConflict, ErrToken, nil, ErrUnavailable, ErrScope, ErrReceipt, ErrOptions, nil, ErrReceipt, ErrReceipt}
	for _, id := range []string{"m1", "", "conflict", "ended", "m2", "away", "beyond", "forged", "nobody", "m3", "another's", "nothing"} {
		served := Served{c, Turn{ContextID: "c1", MessageID: id, ScopesUsed: []string{"orders:cancel"}}}
		switch id {
		case "beyond":
			served.Turn.ScopesUsed = []string{"orders:pay"}
		case "nobody":
			served.Call = Call{Agent: c.Agent}
			served.Turn.ScopesUsed = nil
		}
		turns = append(turns, served)
	}
	seen := map[string]bool{}
	for i, got := range s.door.CountersignMany(t.Context(), turns) {
		id := turns[i].Turn.MessageID
		if !errors.Is(got.Err, want[i]) || (got.Err == nil) != (got.Receipt.JWS != "") || got.Err == nil && seen[got.Receipt.JWS] {
			t.Errorf("%q: %+v, want %v", id, got, want[i])
		}
		seen[got.Receipt.JWS] = true
	}
	if n := len((*asked)[0]["turns"].([]any)); n != len(turns)-3 || len(*asked) != 1 {
		t.Errorf("%d turns were sent, in %d calls", n, len(*asked))
	}
	// The same turn twice has the one receipt.
	s.answers("/receipts/batch", 200, func(asked map[string]any) string {
		got := sign(asked["turns"].([]any)[0].(map[string]any))
		return fmt.Sprintf(`{"results":[{"status":200,"receipt":%s},{"status":200,"receipt":%s}]}`, got, got)
	})
	if got := s.door.CountersignMany(t.Context(), []Served{turns[0], turns[0]}); got[0].Err != nil || got[1].Err != nil {
		t.Errorf("twice: %+v", got)
	}
	// As many as may be are more than one answer elsewhere may weigh.
	s.answers("/receipts/batch", 200, batch)
	full := make([]Served, MaxTurns)
	for i := range full {
		full[i] = Served{c, Turn{ContextID: "c1", MessageID: fmt.Sprint(i)}}
		for range 40 {
			full[i].Turn.Acts = append(full[i].Turn.Acts, Act{Tool: "look", ArgsHash: hashed})
		}
	}
	if i := slices.IndexFunc(s.door.CountersignMany(t.Context(), full), func(o Outcome) bool { return o.Err != nil }); i >= 0 {
		t.Errorf("%d of as many as may be failed", i)
	}
	if got := s.door.CountersignMany(t.Context(), append(full, turns[0])); len(got) != MaxTurns+1 || !errors.Is(got[0].Err, ErrOptions) || !errors.Is(got[MaxTurns].Err, ErrOptions) {
		t.Errorf("too many: %+v", got[0])
	}
	for what, answer := range map[string]string{"fewer": `{"results":[]}`, "none": `{}`} {
		s.answers("/receipts/batch", 200, says(answer))
		if got := s.door.CountersignMany(t.Context(), turns[:1]); !errors.Is(got[0].Err, ErrReceipt) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	s.answers("/receipts/batch", 503, says(`{"error":"temporarily_unavailable"}`))
	if got := s.door.CountersignMany(t.Context(), turns[:2]); !errors.Is(got[0].Err, ErrUnavailable) || !errors.Is(got[1].Err, ErrOptions) {
		t.Errorf("not now: %+v", got)
	}
	if got := s.door.CountersignMany(t.Context(), nil); len(got) != 0 {
		t.Errorf("nothing: %+v", got)
	}
}
