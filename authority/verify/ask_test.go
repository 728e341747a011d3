package verify

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/canonical"
	"github.com/google/go-cmp/cmp"
)

// answers has the authority's endpoint answer so, and returns what it was asked.
func (s *scene) answers(path string, status int, answer func(asked map[string]any) string) *[]map[string]any {
	asked := &[]map[string]any{}
	s.authority.serve("/oauth"+path, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		raw, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(raw, &body); err != nil || r.Method != http.MethodPost || r.URL.RawQuery != "" ||
			r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer cs_key_secret" {
			s.t.Errorf("%s %s %v %s", r.Method, r.URL, r.Header, raw)
		}
		*asked = append(*asked, body)
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "7")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer(body))
	})
	return asked
}

func says(text string) func(map[string]any) string {
	return func(map[string]any) string { return text }
}

// M22, P46: what was shown is passed on as it was, and what comes back goes into the
// task: at least one missing scope, and a link or none, never null.
func TestStepUpAsksInTheCallersName(t *testing.T) {
	s := newScene(t)
	asked := s.answers("/stepup", 200, says(`{"pact.missingScopes":["orders:pay"],"pact.verificationUriComplete":"https://x.example/b/harbor/device?user_code=A","expires_in":600}`))
	proof, token := s.proof(nil), s.token(nil)
	c, err := s.door.Call(t.Context(), shown(proof, token))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.door.StepUp(t.Context(), c, "to pay the deposit", "orders:pay")
	if err != nil {
		t.Fatal(err)
	}
	if got.ExpiresIn != 10*time.Minute {
		t.Errorf("%s", got.ExpiresIn)
	}
	want := map[string]any{"pa_jwt": proof, "delegation_token": token, "scopes": []any{"orders:pay"}, "reason": "to pay the deposit"}
	if diff := cmp.Diff(want, (*asked)[0]); diff != "" {
		t.Error(diff)
	}
	meta := map[string]any{"pact.missingScopes": []string{"orders:pay"}, "pact.verificationUriComplete": "https://x.example/b/harbor/device?user_code=A"}
	if diff := cmp.Diff(meta, got.Metadata()); diff != "" {
		t.Error(diff)
	}
	// Without a token: absent, and never null or empty.
	c, err = s.door.Call(t.Context(), shown(proof, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.door.StepUp(t.Context(), c, "", "orders:pay"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"pa_jwt": proof, "scopes": []any{"orders:pay"}}, (*asked)[1]); diff != "" {
		t.Error(diff)
	}
	if m := (StepUp{Missing: []string{"a"}}).Metadata(); len(m) != 1 {
		t.Errorf("no link is no member: %v", m)
	}
	if m := (StepUp{}).Metadata(); m != nil {
		t.Errorf("nothing is missing: %v", m)
	}
	s.answers("/stepup", 200, says(`{"pact.missingScopes":[]}`))
	if got, err := s.door.StepUp(t.Context(), c, "", "orders:pay"); err != nil || len(got.Missing) != 0 || got.Link != "" {
		t.Errorf("held already: %+v, %v", got, err)
	}
	for _, bad := range []string{`{"pact.missingScopes":["a"],"pact.verificationUriComplete":null}`, `{"pact.verificationUriComplete":"x"}`, `[]`, `<html>`} {
		s.answers("/stepup", 200, says(bad))
		if _, err := s.door.StepUp(t.Context(), c, "", "orders:pay"); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if _, err := s.door.StepUp(t.Context(), c, ""); !errors.Is(err, ErrScope) {
		t.Errorf("nothing asked for: %v", err)
	}
	if _, err := s.door.StepUp(t.Context(), Call{Agent: c.Agent}, "", "a"); !errors.Is(err, ErrOptions) {
		t.Errorf("a call made by hand: %v", err)
	}
}

// What the authority refuses says what follows for the caller, and holds no secret.
func TestRefusalsSayWhatFollows(t *testing.T) {
	s := newScene(t)
	c, err := s.call(s.token(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		status int
		code   string
		want   error
	}{
		{400, "invalid_pa_jwt", ErrCaller},
		{400, "invalid_token", ErrToken},
		{400, "invalid_scope", ErrScope},
		{401, "invalid_token", ErrCredential},
		{403, "insufficient_scope", ErrCredential},
		{429, "slow_down", ErrUnavailable},
		{503, "temporarily_unavailable", ErrUnavailable},
	} {
		s.answers("/stepup", tt.status, says(`{"error":"`+tt.code+`","error_description":"Because."}`))
		_, err := s.door.StepUp(t.Context(), c, "", "orders:pay")
		answer := new(RefusedError)
		if !errors.As(err, &answer) || answer.Status != tt.status || answer.Code != tt.code {
			t.Errorf("%d %s: %v", tt.status, tt.code, err)
		}
		for _, kind := range []error{ErrCaller, ErrToken, ErrScope, ErrCredential, ErrUnavailable} {
			if errors.Is(err, kind) != (kind == tt.want) {
				t.Errorf("%d %s: is %v", tt.status, tt.code, kind)
			}
		}
		if tt.status == 503 && answer.RetryAfter != 7*time.Second {
			t.Errorf("%s", answer.RetryAfter)
		}
	}
	s.authority.Close()
	if _, err := s.door.StepUp(t.Context(), c, "", "orders:pay"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("nobody there: %v", err)
	}
}

// receipt is what the authority signs for what it was asked, with changes.
func (s *scene) receipt(by signer, header string, change map[string]any) func(map[string]any) string {
	return func(asked map[string]any) string {
		claims := map[string]any{
			"grantId": "g1", "user": "guest-1", "pa": s.agent.URL, "brand": brandURL, "scopesUsed": asked["scopesUsed"],
			"actions": done(s.t, asked), "ts": "2026-11-20T12:00:00.000Z",
		}
		for name, value := range change {
			claims[name] = value
			if f, ok := value.(func([]map[string]any) []map[string]any); ok {
				claims[name] = f(done(s.t, asked))
			}
		}
		form, err := canonical.Of(claims)
		if err != nil {
			s.t.Fatal(err)
		}
		return `{"jws":"` + by.sign(s.t, header, string(form)) + `","claims":` + marshal(s.t, claims) + `}`
	}
}

// done is what a receipt says of the actions that were asked about.
func done(t testing.TB, asked map[string]any) []map[string]any {
	t.Helper()
	acts := []map[string]any{}
	for _, one := range asked["actions"].([]any) {
		act := one.(map[string]any)
		if args, there := act["args"]; there {
			hash, err := canonical.Hash([]byte(marshal(t, args)))
			if err != nil {
				t.Fatal(err)
			}
			act = map[string]any{"tool": act["tool"], "argsHash": hash}
		}
		acts = append(acts, act)
	}
	return acts
}

const receiptHeader = `{"alg":"ES256","kid":"k1","typ":"pact-receipt+jws"}`

// hashed is the hash of somebody's arguments.
const hashed = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"

// M24: the turn is sent with the token that it was served under, and what comes
// back is handed on only if the Brand's key signed for this turn.
func TestATurnIsCountersigned(t *testing.T) {
	s := newScene(t)
	asked := s.answers("/receipts", 200, s.receipt(s.brand, receiptHeader, nil))
	token := s.token(nil)
	c, err := s.call(token)
	if err != nil {
		t.Fatal(err)
	}
	turn := Turn{
		ContextID: "c1", MessageID: "m1", ScopesUsed: []string{"orders:cancel"}, Began: noon,
		Acts: []Act{{Tool: "cancel", Args: map[string]any{"order": 7}}, {Tool: "note", ArgsHash: hashed}, {Tool: "list"}},
	}
	got, err := s.door.Countersign(t.Context(), c, turn)
	if err != nil || got.JWS == "" || len(got.Claims) == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	want := map[string]any{
		"delegation_token": token, "agent": c.Agent.Issuer, "contextId": "c1", "messageId": "m1", "scopesUsed": []any{"orders:cancel"}, "began": "2026-11-20T12:00:00.000Z",
		"actions": []any{map[string]any{"tool": "cancel", "args": map[string]any{"order": 7.0}}, map[string]any{"tool": "note", "argsHash": hashed}, map[string]any{"tool": "list"}},
	}
	if diff := cmp.Diff(want, (*asked)[0]); diff != "" {
		t.Error(diff)
	}
	if _, err := s.door.Countersign(t.Context(), c, Turn{ContextID: "c1", MessageID: "m2"}); err != nil {
		t.Errorf("nothing was done, and that is countersigned too: %v", err)
	}
	same := func(signed string) string { return signed }
	s.answers("/receipts", 200, s.beside(same))
	if _, err := s.door.Countersign(t.Context(), c, turn); err != nil {
		t.Errorf("the claims as they are signed: %v", err)
	}
	other := func(acts func([]map[string]any) []map[string]any) func(map[string]any) string {
		return s.receipt(s.brand, receiptHeader, map[string]any{"actions": acts})
	}
	for what, answer := range map[string]func(map[string]any) string{
		"another's key": s.receipt(newSigner(t), receiptHeader, nil),
		"a token's typ": s.receipt(s.brand, tokenHeader, nil),
		"another grant": s.receipt(s.brand, receiptHeader, map[string]any{"grantId": "g2"}),
		"another user":  s.receipt(s.brand, receiptHeader, map[string]any{"user": "guest-2"}),
		"another agent": s.receipt(s.brand, receiptHeader, map[string]any{"pa": aria}),
		"another Brand": s.receipt(s.brand, receiptHeader, map[string]any{"brand": "https://ferry.example"}),
		"other scopes":  s.receipt(s.brand, receiptHeader, map[string]any{"scopesUsed": []string{"orders:read"}}),
		"fewer scopes":  s.receipt(s.brand, receiptHeader, map[string]any{"scopesUsed": []string{}}),
		"more scopes":   s.receipt(s.brand, receiptHeader, map[string]any{"scopesUsed": []string{"orders:cancel", "orders:read"}}),
		"more acts": other(func(acts []map[string]any) []map[string]any {
			return append(acts, map[string]any{"tool": "pay"})
		}),
		"fewer acts": other(func(acts []map[string]any) []map[string]any { return acts[:2] }),
		"no acts":    other(func([]map[string]any) []map[string]any { return []map[string]any{} }),
		"acts in disorder": other(func(acts []map[string]any) []map[string]any {
			acts[0], acts[1] = acts[1], acts[0]
			return acts
		}),
		"another tool": other(func(acts []map[string]any) []map[string]any {
			acts[0]["tool"] = "pay"
			return acts
		}),
		"other arguments": other(func(acts []map[string]any) []map[string]any {
			acts[0]["argsHash"] = hashed
			return acts
		}),
		"arguments where there were none": other(func(acts []map[string]any) []map[string]any {
			acts[2]["argsHash"] = hashed
			return acts
		}),
		"no hash of a hash": other(func(acts []map[string]any) []map[string]any {
			delete(acts[1], "argsHash")
			return acts
		}),
		"an eighth claim": s.receipt(s.brand, receiptHeader, map[string]any{"jti": "1"}),
		"of the future":   s.receipt(s.brand, receiptHeader, map[string]any{"ts": "2026-11-20T13:00:00.000Z"}),
		"nothing beside it": func(asked map[string]any) string {
			return `{"jws":` + between(s.receipt(s.brand, receiptHeader, nil)(asked)) + `}`
		},
		"no claims":           s.beside(func(string) string { return "{}" }),
		"a claim that is not": s.beside(func(signed string) string { return strings.Replace(signed, `{`, `{"more":1,`, 1) }),
		"another claim":       s.beside(func(signed string) string { return strings.Replace(signed, `"ts":"2026`, `"ts":"2027`, 1) }),
	} {
		s.answers("/receipts", 200, answer)
		if got, err := s.door.Countersign(t.Context(), c, turn); !errors.Is(err, ErrReceipt) || got.JWS != "" {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

// beside is a good receipt with other claims beside it than are signed.
func (s *scene) beside(change func(signed string) string) func(map[string]any) string {
	return func(asked map[string]any) string {
		answer := s.receipt(s.brand, receiptHeader, nil)(asked)
		jws := between(answer)
		return `{"jws":` + jws + `,"claims":` + change(payloadOf(s.t, strings.Trim(jws, `"`))) + `}`
	}
}

// between is the jws of an answer, quoted.
func between(answer string) string {
	var a struct {
		JWS json.RawMessage `json:"jws"`
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		panic(err)
	}
	return string(a.JWS)
}

// Without a delegation there is no receipt (P45), nothing beyond it is
// countersigned, and another turn under the same ids is told apart from trouble.
func TestWhatIsNotCountersigned(t *testing.T) {
	s := newScene(t)
	asked := s.answers("/receipts", 409, says(`{"error":"conflict"}`))
	c, err := s.call(s.token(nil))
	if err != nil {
		t.Fatal(err)
	}
	turn := Turn{ContextID: "c1", MessageID: "m1"}
	if _, err := s.door.Countersign(t.Context(), Call{Agent: c.Agent}, turn); !errors.Is(err, ErrOptions) {
		t.Errorf("no delegation: %v", err)
	}
	for _, bad := range []Turn{{MessageID: "m1"}, {ContextID: "c1"}} {
		if _, err := s.door.Countersign(t.Context(), c, bad); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	turn.ScopesUsed = []string{"orders:pay"}
	if _, err := s.door.Countersign(t.Context(), c, turn); !errors.Is(err, ErrScope) {
		t.Errorf("beyond the delegation: %v", err)
	}
	if len(*asked) != 0 {
		t.Error("it was sent all the same")
	}
	turn.ScopesUsed = nil
	if _, err := s.door.Countersign(t.Context(), c, turn); !errors.Is(err, ErrConflict) {
		t.Errorf("another turn: %v", err)
	}
}
