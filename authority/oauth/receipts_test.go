package oauth_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"
)

// served is the body of a turn under the token.
func (d *door) served(token any, message string) map[string]any {
	return map[string]any{
		"delegation_token": token, "agent": d.pa.Issuer, "contextId": "talk", "messageId": message,
		"scopesUsed": []string{"bookings:read"},
		"actions":    []any{map[string]any{"tool": "bookings.list", "args": map[string]any{"from": "<2026>\u2028"}}, map[string]any{"tool": "look"}},
	}
}

func (d *door) send(t *testing.T, b *tenants.Brand, path, key string, body any) answer {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return asJSON(t, d.issuer(b)+path, key, string(raw))
}

// M24, P43, wire.md §10: the answer is {jws, claims} and nothing else, claims to the
// byte what was signed; the same again is the same, other content 409.
func TestAReceiptIsAnswered(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	tokens := d.holding(t, "bookings:read", "bookings:change")
	body := d.served(tokens["access_token"], "m<1>")
	a := d.send(t, d.Hotel, "/receipts", key, body)
	var got struct {
		JWS    string          `json:"jws"`
		Claims json.RawMessage `json:"claims"`
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 || len(a.json) != 2 {
		t.Fatalf("%d %s, %v", a.status, a.body, err)
	}
	says, err := d.Keys.Verify(t.Context(), d.Hotel.ID, signing.TypReceipt, got.JWS)
	if err != nil || string(says) != string(got.Claims) {
		t.Errorf("%s, %s, %v", says, got.Claims, err)
	}
	if a.header.Get("Countersign-Log-Seq") != "0" || a.header.Get("Countersign-Late") != "false" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", a.header)
	}
	if again := d.send(t, d.Hotel, "/receipts", key, body); again.status != 200 || again.body != a.body {
		t.Errorf("again: %d %s", again.status, again.body)
	}
	body["scopesUsed"] = []string{}
	if a := d.send(t, d.Hotel, "/receipts", key, body); a.status != http.StatusConflict || a.error() != "conflict" {
		t.Errorf("other content: %d %s", a.status, a.body)
	}
}

// R74, R81: a Brand may bind what was said and answered, by hashes of its own salt; they
// stand in the log salted once more, and belong to what a retry must repeat.
func TestAReceiptBindsWhatWasSaid(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	body := d.served(d.holding(t, "bookings:read")["access_token"], "m")
	said, replied := receiptlog.HashText("salt"+"Yes"), receiptlog.HashText("salt"+"Done.")
	body["messageHash"], body["replyHash"] = said, replied
	if a := d.send(t, d.Hotel, "/receipts", key, body); a.status != 200 || strings.Contains(a.body, said) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	line, err := d.rules.LogEntry(t.Context(), d.Hotel.ID, 0)
	entry := string(line.Entry)
	if err != nil || strings.Contains(entry, said) || !strings.Contains(entry, `"text":"`+receiptlog.SealText(line.Salt, said)+`"`) ||
		!strings.Contains(entry, `"reply":"`+receiptlog.SealReply(line.Salt, replied)+`"`) || !strings.Contains(entry, `"v":2`) {
		t.Errorf("%s, %v", entry, err)
	}
	for name, hash := range map[string]any{"another": replied, "none": ""} {
		body["messageHash"] = hash
		if a := d.send(t, d.Hotel, "/receipts", key, body); a.status != http.StatusConflict {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	body["messageId"] = "m2"
	for _, bad := range []any{"Yes", said[1:], said + "=", 7} {
		body["messageHash"] = bad
		if a := d.send(t, d.Hotel, "/receipts", key, body); a.status != 400 || a.error() != "invalid_request" {
			t.Errorf("%v: %d %s", bad, a.status, a.body)
		}
	}
	delete(body, "messageHash")
	delete(body, "replyHash")
	if a := d.send(t, d.Hotel, "/receipts", key, body); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if line, err = d.rules.LogEntry(t.Context(), d.Hotel.ID, 1); err != nil || strings.Contains(string(line.Entry), `"text"`) {
		t.Errorf("%s, %v", line.Entry, err)
	}
}

// P33: when the turn began, as the Brand says, stands in the log; and where its grant
// has ended since, the answer says that it is late, alone and in a batch.
func TestALateReceiptSaysSo(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	token := d.holding(t, "bookings:read")["access_token"]
	began := d.Clock.Now()
	d.Clock.Advance(10 * time.Second)
	d.Exec(t, `UPDATE grants SET ended_at = $1, end_reason = 'person'`, d.Clock.Now())
	d.Clock.Advance(10 * time.Second)
	turn := func(message string) map[string]any {
		body := d.served(token, message)
		body["began"] = began
		return body
	}
	if a := d.send(t, d.Hotel, "/receipts", key, turn("m0")); a.status != 200 || a.header.Get("Countersign-Late") != "true" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if a := d.send(t, d.Hotel, "/receipts/batch", key, map[string]any{"turns": []any{turn("m1")}}); !strings.Contains(a.body, `"late":true`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := d.send(t, d.Hotel, "/receipts", key, d.served(token, "m2")); a.status != 400 || a.error() != "invalid_token" {
		t.Errorf("%d %s", a.status, a.body)
	}
	line := do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/log/entries/0", key, ""))
	if entry, _ := line.json["entry"].(string); !strings.Contains(entry, `"began":"`+receiptlog.At(began)+`"`) {
		t.Errorf("%s", line.body)
	}
}

// wire.md §10, M18, P45: who has no right, and which turns have no receipt; always
// with the precise error, and nothing in the log.
func TestReceiptsThatAreRefused(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	token := d.holding(t, "bookings:read")["access_token"]
	good := d.served(token, "m")
	for name, tt := range map[string]struct {
		key    string
		status int
		header string
	}{
		"no key":            {"", 401, `Bearer realm="countersign", error="invalid_token"`},
		"a pa-jwt":          {d.paJWT(t), 401, `Bearer realm="countersign", error="invalid_token"`},
		"another Brand's":   {d.key(t, d.Shop, tenants.RightReceipts), 401, `Bearer realm="countersign", error="invalid_token"`},
		"without the right": {d.key(t, d.Hotel, tenants.RightIntrospect, tenants.RightAdmin), 403, `Bearer realm="countersign", error="insufficient_scope"`},
	} {
		for _, path := range []string{"/receipts", "/receipts/batch", "/receipts/task"} {
			a := d.send(t, d.Hotel, path, tt.key, good)
			if a.status != tt.status || a.header.Get("WWW-Authenticate") != tt.header || a.body != "" {
				t.Errorf("%s, %s: %d %v %s", path, name, a.status, a.header, a.body)
			}
		}
	}
	for name, tt := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"no token":               {func(b map[string]any) { delete(b, "delegation_token") }, "invalid_token"},
		"a grant's id":           {func(b map[string]any) { b["delegation_token"] = "0190a5c4-7e00-7000-8000-000000000001" }, "invalid_token"},
		"another agent":          {func(b map[string]any) { b["agent"] = d.other.Issuer }, "invalid_token"},
		"no agent":               {func(b map[string]any) { delete(b, "agent") }, "invalid_request"},
		"scope beyond the grant": {func(b map[string]any) { b["scopesUsed"] = []string{"extras:order"} }, "invalid_scope"},
		"no scopes":              {func(b map[string]any) { delete(b, "scopesUsed") }, "invalid_request"},
		"no message":             {func(b map[string]any) { delete(b, "messageId") }, "invalid_request"},
		"an unknown member":      {func(b map[string]any) { b["MessageID"] = "x" }, "invalid_request"},
		"null":                   {func(b map[string]any) { b["began"] = nil }, "invalid_request"},
		"no time":                {func(b map[string]any) { b["began"] = "yesterday" }, "invalid_request"},
		"an action's member":     {func(b map[string]any) { b["actions"] = []any{map[string]any{"tool": "x", "Args": 1}} }, "invalid_request"},
		"an action that is none": {func(b map[string]any) { b["actions"] = []any{"x"} }, "invalid_request"},
		"a null tool":            {func(b map[string]any) { b["actions"] = []any{map[string]any{"tool": nil}} }, "invalid_request"},
		"a null hash":            {func(b map[string]any) { b["actions"] = []any{map[string]any{"tool": "x", "argsHash": nil}} }, "invalid_request"},
		"null and a hash": {func(b map[string]any) {
			b["actions"] = []any{map[string]any{"tool": "x", "args": nil, "argsHash": receiptlog.HashText("x")}}
		}, "invalid_request"},
		"null, and not of it": {func(b map[string]any) { b["args"] = nil }, "invalid_request"},
		"a null action":       {func(b map[string]any) { b["actions"] = []any{nil} }, "invalid_request"},
		"large":               {func(b map[string]any) { b["contextId"] = strings.Repeat("x", 256<<10) }, "invalid_request"},
	} {
		body := maps.Clone(good)
		tt.change(body)
		if a := d.send(t, d.Hotel, "/receipts", key, body); a.status != 400 || a.error() != tt.want {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		if a := do(t, request(t, method, d.issuer(d.Hotel)+"/receipts", key, "")); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d", method, a.status)
		}
	}
	if a := do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/receipts", key, "a=b")); a.status != 400 {
		t.Errorf("a form: %d", a.status)
	}
	if a := d.send(t, d.Hotel, "/receipts?key="+key, key, good); a.status != 400 {
		t.Errorf("something in the URL: %d", a.status)
	}
	if n := d.Count(t, `SELECT count(*) FROM receipts`); n != 0 {
		t.Errorf("%d receipts", n)
	}
}

// R76: a batch answers each turn as alone.
func TestABatchOfReceipts(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	token := d.holding(t, "bookings:read")["access_token"]
	turns := []any{d.served(token, "m0"), d.served("x", "m1"), "nothing", d.served(token, "m0"), d.served(token, "m4")}
	a := d.send(t, d.Hotel, "/receipts/batch", key, map[string]any{"turns": turns})
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var got struct {
		Results []struct {
			Receipt map[string]any
			Seq     *int64
			Status  int
			Error   string
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	var says []string
	for _, r := range got.Results {
		seq := "-"
		if r.Seq != nil {
			seq = fmt.Sprint(*r.Seq)
		}
		says = append(says, fmt.Sprint(r.Status, r.Error, seq, len(r.Receipt)))
	}
	want := []string{fmt.Sprint(200, "", "0", 2), fmt.Sprint(400, "invalid_token", "-", 0), fmt.Sprint(400, "invalid_request", "-", 0), fmt.Sprint(200, "", "0", 2), fmt.Sprint(200, "", "1", 2)}
	if diff := cmp.Diff(want, says); diff != "" {
		t.Error(diff)
	}
	for name, body := range map[string]any{
		"none": map[string]any{"turns": []any{}}, "no list": map[string]any{}, "too many": map[string]any{"turns": make([]int, 101)}, "another": map[string]any{"turn": []any{}},
	} {
		if a := d.send(t, d.Hotel, "/receipts/batch", key, body); a.status != 400 || a.error() != "invalid_request" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// R75, R81: the checkpoint and the proofs are for everybody and say nothing but
// hashes; a line of the log is for the Brand's key and the agent that holds the
// grant, and for nobody else.
func TestTheLogIsServed(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	tokens := d.holding(t, "bookings:read")
	for i := range 3 {
		if a := d.send(t, d.Hotel, "/receipts", key, d.served(tokens["access_token"], fmt.Sprint("m", i))); a.status != 200 {
			t.Fatal(a.body)
		}
	}
	get := func(path, bearer string) answer {
		return do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/log"+path, bearer, ""))
	}
	c := get("/checkpoint", "")
	says, err := d.Keys.Verify(t.Context(), d.Hotel.ID, signing.TypCheckpoint, c.body)
	var checkpoint receiptlog.Checkpoint
	if err != nil || json.Unmarshal(says, &checkpoint) != nil || checkpoint.Size != 3 || c.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Fatalf("%s, %v", says, err)
	}
	root, _ := receiptlog.Hash(checkpoint.Root)
	line := get("/entries/1", key)
	for name, a := range map[string]answer{"the Brand": line, "the agent": get("/entries/1", d.pa.Token(t, agenttest.Claims{Sub: "alex"}))} {
		if a.status != 200 || a.body != line.body || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	p := get("/inclusion?seq=1&size=3", "")
	var proof tlog.RecordProof
	for _, text := range p.json["hashes"].([]any) {
		h, _ := receiptlog.Hash(text.(string))
		proof = append(proof, h)
	}
	if err := tlog.CheckRecord(proof, 3, root, 1, tlog.RecordHash([]byte(line.json["entry"].(string)))); err != nil {
		t.Error(err)
	}
	if salt, err := base64.RawURLEncoding.DecodeString(line.json["salt"].(string)); err != nil || len(salt) != 16 {
		t.Errorf("salt of %d bytes, %v", len(salt), err)
	}
	if a := get("/consistency?from=1&to=3", ""); a.status != 200 || len(a.json["hashes"].([]any)) == 0 {
		t.Errorf("%d %s", a.status, a.body)
	}
	for path, want := range map[string]int{
		"/inclusion?seq=3&size=3": 404, "/inclusion?seq=0&size=4": 404, "/inclusion?seq=01&size=3": 400, "/inclusion?seq=0": 400,
		"/inclusion?seq=0&size=3&size=3": 400, "/inclusion?seq=0&size=3&x=1": 400, "/consistency?from=3&to=4": 404, "/consistency?from=0&to=3": 404, "/consistency?from=-1&to=3": 400, "/nothing": 404,
	} {
		if a := get(path, ""); a.status != want {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	for name, tt := range map[string]struct {
		path, bearer string
		want         int
	}{
		"nobody":                {"/entries/1", "", 401},
		"another agent":         {"/entries/1", d.other.Token(t, agenttest.Claims{Sub: "alex"}), 404},
		"another person":        {"/entries/1", d.pa.Token(t, agenttest.Claims{Sub: "sam"}), 404},
		"another Brand's key":   {"/entries/1", d.key(t, d.Shop, tenants.RightReceipts), 401},
		"a key without a right": {"/entries/1", d.key(t, d.Hotel, tenants.RightVerify), 403},
		"beyond the end":        {"/entries/3", key, 404},
		"no number":             {"/entries/01", key, 404},
	} {
		if a := get(tt.path, tt.bearer); a.status != tt.want {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	// Who never delegated has no log; where there is one, like the keys, it outlives
	// delegation. A line's door goes with it.
	d.Save(t, d.Shop, func(b *tenants.Brand) { b.Delegation = false })
	d.Clock.Advance(2 * time.Second)
	if a := do(t, request(t, http.MethodGet, d.issuer(d.Shop)+"/log/checkpoint", "", "")); a.status != 404 {
		t.Errorf("a log of nothing: %d", a.status)
	}
	d.Save(t, d.Hotel, func(b *tenants.Brand) { b.Delegation = false })
	d.Clock.Advance(2 * time.Second)
	if a := get("/checkpoint", ""); a.status != 200 {
		t.Errorf("%d", a.status)
	}
	if a := get("/entries/1", key); a.status != 404 {
		t.Errorf("%d", a.status)
	}
}

// The conversation's receipts are bound at its end.
func TestATaskReceiptIsAnswered(t *testing.T) {
	d := newDoor(t, nil)
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	tokens := d.holding(t, "bookings:read")
	d.send(t, d.Hotel, "/receipts", key, d.served(tokens["access_token"], "m"))
	var grant string
	if err := d.Owner.QueryRow(t.Context(), `SELECT id::text FROM grants`).Scan(&grant); err != nil {
		t.Fatal(err)
	}
	a := d.send(t, d.Hotel, "/receipts/task", key, map[string]any{"grantId": grant, "contextId": "talk"})
	jws, _ := a.json["jws"].(string)
	if _, err := d.Keys.Verify(t.Context(), d.Hotel.ID, signing.TypTaskReceipt, jws); err != nil || a.status != 200 {
		t.Errorf("%d %s, %v", a.status, a.body, err)
	}
	for name, tt := range map[string]struct {
		brand *tenants.Brand
		body  map[string]any
		want  int
	}{
		"another conversation": {d.Hotel, map[string]any{"grantId": grant, "contextId": "x"}, 404},
		"no grant":             {d.Hotel, map[string]any{"contextId": "talk"}, 400},
		"no context":           {d.Hotel, map[string]any{"grantId": grant}, 400},
		"another Brand":        {d.Shop, map[string]any{"grantId": grant, "contextId": "talk"}, 404},
	} {
		if a := d.send(t, tt.brand, "/receipts/task", d.key(t, tt.brand, tenants.RightReceipts), tt.body); a.status != tt.want {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}
