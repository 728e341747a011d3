package conformance

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

const badKey = `Bearer realm="countersign", error="invalid_token"`

// logChecks are about receipts that stand together: several at once, those of a
// conversation, and the log of all of a Brand's.
func logChecks() []check {
	return []check{
		{"M24", "several turns at once are each answered as alone, in their order", func(t *trial) {
			u, p := t.countersigned()
			first := t.turn(u, p, nil)
			a := t.asBrand("receipts/batch", object{"turns": []any{
				first, t.turn(u, p, object{"scopesUsed": t.scopes(2)}), t.turn(u, p, object{"agent": "https://nobody.invalid"}),
				object{"contextId": "x"},
				t.turn(u, p, nil),
			}})
			a.is(t, "five turns", http.StatusOK)
			var got struct {
				Results []struct {
					Receipt receipt `json:"receipt"`
					Status  int     `json:"status"`
					Error   string  `json:"error"`
				} `json:"results"`
			}
			a.json(t, &got)
			want := []string{"", "invalid_scope", "invalid_token", "invalid_request", ""}
			if len(got.Results) != len(want) {
				t.fail("%d results of %d turns", len(got.Results), len(want))
			}
			for i, r := range got.Results {
				status := http.StatusOK
				if want[i] != "" {
					status = bad
				}
				if r.Status != status || r.Error != want[i] || (r.Receipt.JWS == "") != (want[i] != "") {
					t.fail("turn %d: %d %q, with a receipt: %v; not %d %q", i+1, r.Status, r.Error, r.Receipt.JWS != "", status, want[i])
				}
			}
			one, last := got.Results[0].Receipt, got.Results[4].Receipt
			t.holds(one, p)
			t.holds(last, p)
			if one.JWS == last.JWS {
				t.fail("two turns share a receipt")
			}
			again := t.countersign(first)
			again.is(t, "the first turn alone", http.StatusOK)
			var alone receipt
			if again.json(t, &alone); alone.JWS != one.JWS {
				t.fail("the same turn alone got another receipt")
			}
			t.asBrand("receipts/batch", object{"turns": []any{}}).refuses(t, "no turns", bad, "invalid_request")
			t.keyless(http.MethodPost, "receipts/batch", u)
		}},
		{"M24", "a conversation's receipt binds all of its receipts, in their order", func(t *trial) {
			u, p := t.countersigned()
			context := newSub()
			var leaves []tlog.Hash
			for range 2 {
				var r receipt
				a := t.countersign(t.turn(u, p, object{"contextId": context}))
				a.is(t, "a turn", http.StatusOK)
				a.json(t, &r)
				s, err := unseal(r.JWS)
				if err != nil {
					t.fail("the receipt is no JWS: %v", err)
				}
				leaves = append(leaves, tlog.RecordHash(s.payload))
			}
			ask := object{"grantId": p.claim("grant_id"), "contextId": context}
			a := t.asBrand("receipts/task", ask)
			a.is(t, "the conversation's receipt", http.StatusOK)
			var r receipt
			a.json(t, &r)
			c := t.signedAs(r.JWS, "pact-task-receipt+jws", "brand contextId count grantId pa root ts user")
			if canonical(r.Claims) != canonical(marshalled(c)) {
				t.fail("the signed payload is not what claims says")
			}
			root := tlog.NodeHash(leaves[0], leaves[1])
			for what, want := range map[string]any{
				"grantId": p.claim("grant_id"), "user": p.claim("sub"), "pa": u.pa.Issuer, "brand": t.brand.at,
				"contextId": context, "count": 2.0, "root": base64url(root[:]),
			} {
				if c[what] != want {
					t.fail("%s is %v, not %v", what, c[what], want)
				}
			}
			var same receipt
			if t.asBrand("receipts/task", ask).json(t, &same); same.JWS != r.JWS {
				t.fail("the same conversation got another receipt")
			}
			for what, none := range map[string]object{
				"a conversation without receipts": ask.with(object{"contextId": newSub()}),
				"another grant":                   ask.with(object{"grantId": "00000000-0000-4000-8000-000000000000"}),
			} {
				t.do(call{method: http.MethodPost, url: t.below("receipts/task"), bearer: t.BrandKey, media: jsonType, body: string(marshalled(none))}).
					is(t, what, http.StatusNotFound)
			}
			t.keyless(http.MethodPost, "receipts/task", u)
		}},
		{"§10", "the log's checkpoint is signed, and a receipt's line leads to it", func(t *trial) {
			u, p := t.countersigned()
			seq, r := t.logged(u, p)
			c := t.checkpoint(seq)
			line := t.line(seq)
			proof := t.hashes("inclusion", "seq", seq, "size", c.size)
			if err := tlog.CheckRecord(proof, c.size, c.root, seq, tlog.RecordHash([]byte(line.Entry))); err != nil {
				t.fail("the hashes do not lead from the line to the root: %v", err)
			}
			var e struct {
				Seq     int64  `json:"seq"`
				Grant   string `json:"grant"`
				Receipt string `json:"receipt"`
			}
			if json.Unmarshal([]byte(line.Entry), &e) != nil || e.Seq != seq || e.Grant != p.claim("grant_id") {
				t.fail("line %d is not of this grant", seq)
			}
			salt, err := base64.RawURLEncoding.DecodeString(line.Salt)
			signed := r.JWS[:strings.LastIndexByte(r.JWS, '.')]
			if err != nil || e.Receipt != sealed("receipt", string(salt), signed) {
				t.fail("line %d is not of this receipt", seq)
			}
			for query, status := range map[string]int{
				fmt.Sprintf("seq=%d&size=%d", c.size, c.size):      http.StatusNotFound,
				fmt.Sprintf("seq=%d&size=%d", seq, c.size+1<<40):   http.StatusNotFound,
				fmt.Sprintf("seq=-1&size=%d", c.size):              bad,
				fmt.Sprintf("seq=%d", seq):                         bad,
				fmt.Sprintf("seq=%d&seq=%d&size=1", seq, seq):      bad,
				fmt.Sprintf("seq=%d&size=%d&x=y", seq, c.size):     bad,
				fmt.Sprintf("seq=0%d&size=%d", max(1, seq), seq+1): bad,
			} {
				t.get(t.below("log/inclusion")+"?"+query).is(t, "inclusion?"+query, status)
			}
		}},
		{"§10", "a line of the log is for the Brand and the agent that holds the grant", func(t *trial) {
			u, p := t.countersigned()
			seq, _ := t.logged(u, p)
			at := t.below("log/entries/" + strconv.FormatInt(seq, 10))
			read := func(bearer string) answer { return t.do(call{method: http.MethodGet, url: at, bearer: bearer}) }
			t.line(seq)
			read(u.bearer()).is(t, "the holder", http.StatusOK)
			read(u.other().bearer()).is(t, "another User", http.StatusNotFound)
			if t.OtherPA != nil {
				read(u.at(t.OtherPA).bearer()).is(t, "another agent", http.StatusNotFound)
			}
			read("").plain401(t, "nobody")
			read("cs_none_none").bare401(t, "another key", badKey)
		}},
		{"§10", "a newer checkpoint's log begins with the older's", func(t *trial) {
			u, p := t.countersigned()
			seq, _ := t.logged(u, p)
			older := t.checkpoint(seq)
			for range 2 {
				seq, _ = t.logged(u, p)
			}
			newer := t.checkpoint(seq)
			proof := t.hashes("consistency", "from", older.size, "to", newer.size)
			if err := tlog.CheckTree(proof, newer.size, newer.root, older.size, older.root); err != nil {
				t.fail("the log of %d does not begin with that of %d: %v", newer.size, older.size, err)
			}
			t.get(t.below("log/consistency")+fmt.Sprintf("?from=%d&to=%d", newer.size, newer.size+1<<40)).
				is(t, "a log that there is not yet", http.StatusNotFound)
			t.get(t.below("log/consistency")+fmt.Sprintf("?from=%d", older.size)).is(t, "half a question", bad)
		}},
	}
}

// countersigned is a user under a delegation, where a Brand's server can ask for
// receipts.
func (t *trial) countersigned() (user, paid) {
	t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
	u := t.user()
	return u, u.granted(0, t.scopes(1)...)
}

// turn is a turn that a Brand's server has served, another each time.
func (t *trial) turn(u user, p paid, changes object) object {
	return object{
		"delegation_token": p.AccessToken, "agent": u.pa.Issuer, "contextId": newSub(), "messageId": newSub(),
		"scopesUsed": t.scopes(1), "actions": []object{{"tool": "probe"}},
	}.with(changes)
}

// below is an address of the issuer's.
func (t *trial) below(path string) string {
	return strings.TrimRight(t.brand.oauth.Issuer, "/") + "/" + path
}

// keyless demands that a Brand's endpoint takes no other credential.
func (t *trial) keyless(method, endpoint string, u user) {
	for _, bearer := range []string{"", "cs_none_none", u.bearer()} {
		t.do(call{method: method, url: t.below(endpoint), bearer: bearer, media: jsonType, body: `{}`}).
			bare401(t, endpoint+" without the Brand's key", badKey)
	}
}

// signedAs demands a JWS of the Brand's with exactly these claims, and reads them.
func (t *trial) signedAs(jws, typ, members string) map[string]any {
	s, err := unseal(jws)
	if err != nil {
		t.fail("%s is no JWS: %v", typ, err)
	}
	if s.header["typ"] != typ {
		t.fail("typ is %v, not %s", s.header["typ"], typ)
	}
	if err := s.verify(t.get(t.brand.oauth.JWKSURI).body); err != nil {
		t.fail("the signature of %s: %v", typ, err)
	}
	if got := strings.Join(slices.Sorted(maps.Keys(s.claims)), " "); got != members {
		t.fail("the claims of %s are %q, not exactly %q", typ, got, members)
	}
	if ts, _ := s.claims["ts"].(string); !milliseconds.MatchString(ts) {
		t.fail("ts is %q, not RFC 3339 with milliseconds and an offset", ts)
	}
	return s.claims
}

// logged has a turn countersigned and says where in the log it stands.
func (t *trial) logged(u user, p paid) (int64, receipt) {
	a := t.countersign(t.turn(u, p, nil))
	a.is(t, "a turn", http.StatusOK)
	text := a.header.Get("Countersign-Log-Seq")
	if text == "" {
		t.notServed("receipts stand in no log")
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 {
		t.fail("Countersign-Log-Seq is %q", text)
	}
	var r receipt
	a.json(t, &r)
	return seq, r
}

type checkpoint struct {
	size int64
	root tlog.Hash
}

// checkpoint is one whose log holds the line.
func (t *trial) checkpoint(seq int64) checkpoint {
	const patience, pause = 15 * time.Second, 200 * time.Millisecond
	for late := time.Now().Add(patience); ; time.Sleep(pause) {
		a := t.get(t.below("log/checkpoint"))
		a.is(t, "the checkpoint", http.StatusOK)
		claims := t.signedAs(strings.TrimSpace(string(a.body)), "countersign-checkpoint+jws", "log root size ts")
		size, _ := claims["size"].(float64)
		root, _ := claims["root"].(string)
		raw, err := base64.RawURLEncoding.Strict().DecodeString(root)
		switch {
		case claims["log"] != t.below("log"):
			t.fail("the checkpoint is of the log %v", claims["log"])
		case err != nil || len(raw) != tlog.HashSize:
			t.fail("the checkpoint's root is no hash")
		case int64(size) > seq:
			return checkpoint{int64(size), tlog.Hash(raw)}
		case time.Now().After(late) || t.ctx.Err() != nil:
			t.fail("line %d is under no checkpoint after %s", seq, patience)
		}
	}
}

type logLine struct {
	Entry string `json:"entry"`
	Salt  string `json:"salt"`
}

// line is what the Brand reads at that place.
func (t *trial) line(seq int64) logLine {
	a := t.do(call{method: http.MethodGet, url: t.below("log/entries/" + strconv.FormatInt(seq, 10)), bearer: t.BrandKey})
	a.is(t, "the Brand's own look at a line", http.StatusOK)
	var l logLine
	a.json(t, &l)
	return l
}

// hashes are a proof's.
func (t *trial) hashes(kind, first string, a int64, second string, b int64) []tlog.Hash {
	got := t.get(t.below(fmt.Sprintf("log/%s?%s=%d&%s=%d", kind, first, a, second, b)))
	got.is(t, "the proof of "+kind, http.StatusOK)
	var p struct {
		Hashes []string `json:"hashes"`
	}
	got.json(t, &p)
	var all []tlog.Hash
	for _, text := range p.Hashes {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
		if err != nil || len(raw) != tlog.HashSize {
			t.fail("%q is no hash", text)
		}
		all = append(all, tlog.Hash(raw))
	}
	return all
}

// sealed is the hash over texts, each after its length.
func sealed(texts ...string) string {
	h := sha256.New()
	for _, s := range texts {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s))) //nolint:gosec // short texts
		_, _ = h.Write([]byte(s))
	}
	return base64url(h.Sum(nil))
}

func marshalled(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return raw
}
