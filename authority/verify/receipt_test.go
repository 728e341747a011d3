package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/verify"
	"github.com/google/uuid"
)

// issued is a Brand that countersigned some turns, and what a verifier saved of it.
type issued struct {
	*authoritytest.World
	rules    *authority.Authority
	keys     verify.Keys
	grant    uuid.UUID
	token    string
	receipts []authority.Receipt
}

func issue(t *testing.T, turns int) *issued {
	t.Helper()
	i := &issued{World: authoritytest.New(t)}
	i.rules = i.Authority(nil)
	s := authoritytest.Begin(t, i.rules, i.Hotel, authoritytest.Alex, "bookings:read")
	authoritytest.Approve(t, i.rules, i.Hotel, s, "guest-7", "bookings:read")
	tokens, err := i.rules.Poll(t.Context(), i.Hotel, authoritytest.Alex, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	i.grant, i.token = tokens.GrantID, tokens.JWS
	for n := range turns {
		i.serve(t, fmt.Sprint("m", n))
	}
	i.keys = i.saved(t)
	return i
}

func (i *issued) serve(t *testing.T, message string) {
	t.Helper()
	r, err := i.rules.Countersign(t.Context(), i.Hotel, authority.Turn{
		Token: i.token, ContextID: "talk", MessageID: message, ScopesUsed: []string{"bookings:read"},
		Actions: []authority.Action{{Tool: "list", Args: json.RawMessage(`{"a":1}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	i.receipts = append(i.receipts, r)
}

func (i *issued) saved(t *testing.T) verify.Keys {
	t.Helper()
	doc, err := i.NewKeys().JWKS(t.Context(), i.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := verify.ParseKeys(doc.Body)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (i *issued) archive(t *testing.T) verify.Archive {
	t.Helper()
	doc, err := i.NewKeys().Archive(t.Context(), i.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	a, err := verify.ParseArchive(doc.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (i *issued) options() verify.ReceiptOptions {
	return verify.ReceiptOptions{
		Brand: i.Hotel.InterfaceURL, Grant: i.grant.String(), User: "guest-7", Agent: authoritytest.Agent,
		Held: []string{"bookings:read"}, Fresh: 5 * time.Minute, Now: i.Clock.Now(),
	}
}

// checkpoint is a new one, verified.
func (i *issued) checkpoint(t *testing.T) verify.LogCheckpoint {
	t.Helper()
	c, err := i.Authority(nil).Checkpoint(t.Context(), i.Hotel)
	if err != nil {
		t.Fatal(err)
	}
	says, report, err := verify.Checkpoint(i.saved(t), c.JWS, i.Hotel.Issuer+"/log", i.Clock.Now())
	if err != nil {
		t.Fatal(err, report)
	}
	return says
}

func (i *issued) logged(t *testing.T, seq int64, c verify.LogCheckpoint) *verify.Logged {
	t.Helper()
	line, err := i.rules.LogEntry(t.Context(), i.Hotel.ID, seq)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := i.rules.Inclusion(t.Context(), i.Hotel.ID, seq, c.Size)
	if err != nil {
		t.Fatal(err)
	}
	return &verify.Logged{Entry: string(line.Entry), Salt: line.Salt, Proof: proof, Checkpoint: c}
}

// P43, P44, M24: what a receipt is compared with, and what is refused.
func TestReceiptsAreVerified(t *testing.T) {
	i := issue(t, 2)
	r := i.receipts[0]
	c, report, err := verify.Receipt(i.keys, r.JWS, r.Claims, i.options())
	if err != nil || c.User != "guest-7" || slices.ContainsFunc(report, func(c verify.Check) bool { return c.Result != verify.Passed }) {
		t.Fatalf("%+v, %v, %v", c, report, err)
	}
	if err := verify.Actions(c.Actions[0], []byte(`{ "a": 1.0 }`)); err != nil {
		t.Error(err)
	}
	if err := verify.Actions(c.Actions[0], []byte(`{"a":2}`)); !errors.Is(err, verify.ErrDiffers) {
		t.Error(err)
	}
	shop, err := i.Keys.JWKS(t.Context(), i.Shop.ID)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := verify.ParseKeys(shop.Body)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(typ, payload string) string {
		jws, err := i.Keys.Sign(t.Context(), i.Hotel.ID, typ, []byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		return jws
	}
	says := string(r.Claims)
	for name, tt := range map[string]struct {
		keys   *verify.Keys
		jws    string
		claims string
		change func(*verify.ReceiptOptions)
		want   error
	}{
		"altered claims":    {claims: strings.Replace(says, "guest-7", "guest-8", 1), want: verify.ErrDiffers},
		"a claim more":      {claims: strings.Replace(says, `{`, `{"x":1,`, 1), want: verify.ErrDiffers},
		"no claims":         {claims: `null`, want: verify.ErrDiffers},
		"another key":       {keys: &foreign, want: verify.ErrUnknownKey},
		"another Brand":     {change: func(o *verify.ReceiptOptions) { o.Brand = i.Shop.InterfaceURL }, want: verify.ErrBrand},
		"another grant":     {change: func(o *verify.ReceiptOptions) { o.Grant = "g" }, want: verify.ErrGrant},
		"another user":      {change: func(o *verify.ReceiptOptions) { o.User = "u" }, want: verify.ErrUser},
		"another agent":     {change: func(o *verify.ReceiptOptions) { o.Agent = authoritytest.OtherAgent }, want: verify.ErrNotTransferable},
		"a scope not held":  {change: func(o *verify.ReceiptOptions) { o.Held = []string{} }, want: verify.ErrScope},
		"old":               {change: func(o *verify.ReceiptOptions) { o.Now = o.Now.Add(time.Hour) }, want: verify.ErrExpired},
		"from the future":   {change: func(o *verify.ReceiptOptions) { o.Now = o.Now.Add(-time.Hour) }, want: verify.ErrNotYetValid},
		"a token":           {jws: i.token, want: verify.ErrType},
		"claims of a token": {jws: sign(signing.TypReceipt, `{"iss":"x"}`), want: verify.ErrClaims},
		"an eighth claim":   {jws: sign(signing.TypReceipt, strings.Replace(says, `{"actions"`, `{"aa":1,"actions"`, 1)), want: verify.ErrClaims},
		"another spelling":  {jws: sign(signing.TypReceipt, strings.Replace(says, `"tool"`, `"Tool"`, 1)), want: verify.ErrClaims},
		"not canonical":     {jws: sign(signing.TypReceipt, strings.Replace(says, `,`, `, `, 1)), want: verify.ErrClaims},
		"seconds":           {jws: sign(signing.TypReceipt, strings.Replace(says, `.000Z`, `Z`, 1)), want: verify.ErrClaims},
		"another signature": {jws: r.JWS[:len(r.JWS)-20] + i.receipts[1].JWS[len(i.receipts[1].JWS)-20:], want: verify.ErrSignature},
		"not a receipt":     {jws: "x", want: verify.ErrMalformed},
		"without the Brand": {change: func(o *verify.ReceiptOptions) { o.Brand = "" }, want: verify.ErrOptions},
	} {
		opts, keys, jws := i.options(), i.keys, r.JWS
		if tt.change != nil {
			tt.change(&opts)
		}
		if tt.keys != nil {
			keys = *tt.keys
		}
		var claims []byte
		if tt.claims != "" {
			claims = []byte(tt.claims)
		}
		if tt.jws != "" {
			jws = tt.jws
		}
		if c, _, err := verify.Receipt(keys, jws, claims, opts); !errors.Is(err, tt.want) || c.User != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// R75, R78: inclusion and consistency, and everything that is not.
func TestTheLogIsVerified(t *testing.T) {
	i := issue(t, 5)
	old := i.checkpoint(t)
	for n := range 4 {
		i.serve(t, fmt.Sprint("later", n))
	}
	now := i.checkpoint(t)
	for seq, r := range i.receipts {
		if _, report, err := verify.Inclusion(*i.logged(t, int64(seq), now), r.JWS); err != nil {
			t.Errorf("%d: %v", seq, report)
		}
	}
	good := i.logged(t, 2, now)
	for name, change := range map[string]func(*verify.Logged){
		"another entry":      func(l *verify.Logged) { l.Entry = i.logged(t, 3, now).Entry },
		"a changed entry":    func(l *verify.Logged) { l.Entry = strings.Replace(l.Entry, `"late":false`, `"late":true`, 1) },
		"no salt":            func(l *verify.Logged) { l.Salt = nil },
		"another salt":       func(l *verify.Logged) { l.Salt = make([]byte, 16) },
		"a hash less":        func(l *verify.Logged) { l.Proof = l.Proof[1:] },
		"another checkpoint": func(l *verify.Logged) { l.Checkpoint = old },
		"not yet in it":      func(l *verify.Logged) { *l = *i.logged(t, 7, now); l.Checkpoint = old },
	} {
		bad := *good
		change(&bad)
		if _, _, err := verify.Inclusion(bad, i.receipts[2].JWS); !errors.Is(err, verify.ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	proof, err := i.rules.Consistency(t.Context(), i.Hotel.ID, old.Size, now.Size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Consistency(old, now, proof); err != nil {
		t.Error(err)
	}
	// R80: a clock that went back between the two is flagged, and refutes nothing.
	earlier := now
	earlier.At = old.At.Add(-time.Millisecond)
	for _, tt := range []struct {
		newer verify.LogCheckpoint
		want  bool
	}{{now, false}, {earlier, true}} {
		report, err := verify.Consistency(old, tt.newer, proof)
		flagged := slices.ContainsFunc(report, func(c verify.Check) bool { return c.Name == "clock" && c.Result == verify.Flagged })
		if err != nil || flagged != tt.want {
			t.Errorf("%v, %v", report, err)
		}
	}
	forked := old
	forked.Root[0] ^= 1
	elsewhere := old
	elsewhere.Log = "https://elsewhere.example/log"
	for name, pair := range map[string][2]verify.LogCheckpoint{
		"forked": {forked, now}, "two of one size": {forked, old}, "backwards": {now, old}, "another log": {elsewhere, now},
	} {
		if _, err := verify.Consistency(pair[0], pair[1], proof); !errors.Is(err, verify.ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := verify.Checkpoint(i.keys, i.receipts[0].JWS, i.Hotel.Issuer+"/log", i.Clock.Now()); !errors.Is(err, verify.ErrType) {
		t.Error(err)
	}
	c, err := i.rules.Checkpoint(t.Context(), i.Hotel)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := verify.Checkpoint(i.keys, c.JWS, "https://elsewhere.example/log", i.Clock.Now()); !errors.Is(err, verify.ErrIssuer) {
		t.Error(err)
	}
}

// wire.md §2: what a revoked key signed counts only with inclusion under a
// checkpoint that is older than the compromise and signed by another key.
func TestReceiptsOfARevokedKey(t *testing.T) {
	i := issue(t, 1)
	r, own := i.receipts[0], i.checkpoint(t)
	i.Exec(t, `UPDATE signing_keys SET state = 'retired' WHERE brand_id = 'harbor-hotel'`)
	if err := i.NewKeys().Ensure(t.Context(), i.Hotel.ID, "local", signing.ES256); err != nil {
		t.Fatal(err)
	}
	i.Clock.Advance(time.Minute)
	after := i.checkpoint(t)
	i.Clock.Advance(time.Hour)
	i.Exec(t, `UPDATE signing_keys SET state = 'revoked', changed_at = $1, reason = 'stolen' WHERE brand_id = 'harbor-hotel' AND state = 'retired'`, i.Clock.Now())
	i.keys = i.saved(t)
	opts := i.options()
	opts.Fresh, opts.Archive = 0, i.archive(t)
	opts.Logged = i.logged(t, 0, after)
	if _, report, err := verify.Receipt(i.keys, r.JWS, r.Claims, opts); err != nil {
		t.Fatalf("%v", report)
	}
	late := after
	late.At = i.Clock.Now()
	unrelated := i.logged(t, 0, after)
	unrelated.Salt = make([]byte, 16)
	for name, tt := range map[string]struct {
		logged *verify.Logged
		want   error
	}{
		"nothing":            {nil, verify.ErrRevokedKey},
		"its own checkpoint": {i.logged(t, 0, own), verify.ErrRevokedKey},
		"a later checkpoint": {&verify.Logged{Checkpoint: late}, verify.ErrRevokedKey},
		"another's entry":    {unrelated, verify.ErrProof},
	} {
		opts.Logged = tt.logged
		if _, _, err := verify.Receipt(i.keys, r.JWS, r.Claims, opts); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The archive is no key set, and without it the key is unknown.
	opts.Logged, opts.Archive = i.logged(t, 0, after), verify.Archive{}
	if _, _, err := verify.Receipt(i.keys, r.JWS, r.Claims, opts); !errors.Is(err, verify.ErrUnknownKey) {
		t.Error(err)
	}
	doc, err := i.NewKeys().Archive(t.Context(), i.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify.ParseKeys(doc.Body); !errors.Is(err, verify.ErrKeys) {
		t.Errorf("an archive passes for keys: %v", err)
	}
}

// A task receipt is of these receipts, all of them, in this order.
func TestTaskReceiptsAreVerified(t *testing.T) {
	i := issue(t, 3)
	task, err := i.rules.CountersignTask(t.Context(), i.Hotel, i.grant, "talk")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range i.receipts {
		all = append(all, r.JWS)
	}
	if says, report, err := verify.TaskReceipt(i.keys, task.JWS, all, i.options()); err != nil || says.Count != 3 {
		t.Fatal(report)
	}
	for name, receipts := range map[string][]string{
		"one less": all[:2], "another order": {all[1], all[0], all[2]}, "one twice": {all[0], all[1], all[1]}, "none": nil,
	} {
		if _, _, err := verify.TaskReceipt(i.keys, task.JWS, receipts, i.options()); !errors.Is(err, verify.ErrDiffers) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := verify.TaskReceipt(i.keys, all[0], all, i.options()); !errors.Is(err, verify.ErrType) {
		t.Error(err)
	}
	other := i.options()
	other.Brand = i.Shop.InterfaceURL
	if _, _, err := verify.TaskReceipt(i.keys, task.JWS, all, other); !errors.Is(err, verify.ErrBrand) {
		t.Error(err)
	}
}
