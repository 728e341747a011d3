package authority_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/verify"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// forgeries write over the one line $1 of the Hotel's log of receipts, or do more. That a
// line is below zero, or loses only its salt or only its receipt, the table itself forbids.
var forgeries = map[string]string{
	"late":            `UPDATE receipts SET entry = replace(entry, '"late":false', '"late":true') WHERE seq = $1`,
	"token":           `UPDATE receipts SET entry = regexp_replace(entry, '"token":"[^"]*"', '"token":"another"') WHERE seq = $1`,
	"began":           `UPDATE receipts SET entry = regexp_replace(entry, '"began":"20', '"began":"19') WHERE seq = $1`,
	"direction":       `UPDATE receipts SET entry = replace(entry, 'inbound', 'outbound') WHERE seq = $1`,
	"spacing":         `UPDATE receipts SET entry = entry || ' ' WHERE seq = $1`,
	"no entry":        `UPDATE receipts SET entry = '' WHERE seq = $1`,
	"another's entry": `UPDATE receipts SET entry = (SELECT entry FROM receipts o WHERE o.seq = ($1::bigint + 1) % 9 AND o.brand_id = 'harbor-hotel') WHERE seq = $1`,
	"salt":            `UPDATE receipts SET salt = uuid_send(gen_random_uuid()) WHERE seq = $1`,
	"context":         `UPDATE receipts SET context_id = context_id || '.' WHERE seq = $1`,
	"message":         `UPDATE receipts SET message_id = message_id || '.' WHERE seq = $1`,
	"jws":             `UPDATE receipts SET jws = (SELECT jws FROM receipts o WHERE o.seq = ($1::bigint + 1) % 9 AND o.brand_id = 'harbor-hotel') WHERE seq = $1`,
	"signature":       `UPDATE receipts SET jws = left(jws, length(jws) - 6) || 'AAAAAA' WHERE seq = $1`,
	"delete":          `DELETE FROM receipts WHERE seq = $1`,
	"truncate":        `DELETE FROM receipts WHERE seq >= $1`,
	"behead":          `DELETE FROM receipts WHERE seq <= $1`,
	"moved up":        `UPDATE receipts SET seq = seq + 100 WHERE seq = $1`,
	"reorder": `
		UPDATE receipts r
		   SET (entry, salt, jws, context_id, message_id, at, hashes) = (
		       SELECT entry, salt, jws, context_id || ' ', message_id, at + interval '1 day', hashes FROM receipts o
		        WHERE o.brand_id = r.brand_id AND o.seq = CASE r.seq WHEN $1::bigint THEN ($1::bigint + 1) % 9 ELSE $1::bigint END)
		 WHERE brand_id = 'harbor-hotel' AND seq IN ($1::bigint, ($1::bigint + 1) % 9)
		   AND 2 = (SELECT count(*) FROM receipts WHERE brand_id = 'harbor-hotel' AND seq IN ($1::bigint, ($1::bigint + 1) % 9))`,
	"doubled": `
		INSERT INTO receipts
		SELECT (jsonb_populate_record(r, jsonb_build_object('context_id', 'again', 'at', r.at + interval '1 year', 'seq', 1 + (SELECT max(seq) FROM receipts WHERE brand_id = 'harbor-hotel')))).*
		  FROM receipts r WHERE brand_id = 'harbor-hotel' AND seq = $1`,
	// Of the tree alone, which proofs are made of.
	"a hash":    `UPDATE receipts SET hashes = set_byte(hashes, 0, get_byte(hashes, 0) # 1) WHERE seq = $1`,
	"no hashes": `UPDATE receipts SET hashes = '' WHERE seq = $1`,
	"more hashes": `
		UPDATE receipts SET hashes = hashes || sha256(hashes) WHERE seq = $1`,
}

// ofTree are the forgeries that an export does not show, but proofs do.
var ofTree = []string{"a hash", "no hashes"}

const ledgers = 9 // lines of the Hotel's log

// ledger is a log, a checkpoint of it that somebody remembered, and the means to put it
// back.
type ledger struct {
	*testing.T
	w          *authoritytest.World
	rules      *authority.Authority
	keys       verify.Keys
	remembered verify.LogCheckpoint
	lines      string
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	w, a, _, _ := logged(t, ledgers)
	l := &ledger{T: t, w: w, rules: a}
	doc, err := w.NewKeys().JWKS(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	if l.keys, err = verify.ParseKeys(doc.Body); err != nil {
		t.Fatal(err)
	}
	c, err := a.Checkpoint(t.Context(), w.Hotel)
	if err != nil {
		t.Fatal(err)
	}
	if l.remembered, _, err = verify.Checkpoint(l.keys, c.JWS, w.Hotel.LogURI(), w.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `CREATE TABLE kept_receipts AS SELECT * FROM receipts`)
	l.lines = l.exported()
	return l
}

func (l *ledger) restore() {
	l.w.Exec(l.T, `DELETE FROM receipts`)
	l.w.Exec(l.T, `INSERT INTO receipts SELECT * FROM kept_receipts`)
}

// forge does it, where the database's own rules let anybody.
func (l *ledger) forge(what string, seq int) {
	_, _ = l.w.Owner.Exec(l.Context(), forgeries[what], seq)
}

// exported is the log as an export would hold it.
func (l *ledger) exported() string {
	l.Helper()
	var out bytes.Buffer
	file := json.NewEncoder(&out)
	err := l.rules.EachLogged(l.Context(), l.w.Hotel.ID, func(r authority.LoggedReceipt) error {
		return file.Encode(map[string]string{
			"entry": r.Entry, "salt": base64.RawURLEncoding.EncodeToString(r.Salt), "contextId": r.ContextID, "messageId": r.MessageID, "jws": r.JWS,
		})
	})
	if err != nil {
		l.Fatal(err)
	}
	return out.String()
}

// whole is what somebody finds who remembers a checkpoint.
func (l *ledger) whole() error {
	_, _, err := verify.WholeLog(l.keys, bytes.NewReader([]byte(l.exported())), verify.Archive{}, l.remembered)
	return err
}

// proves reports whether the log still proves all its lines to who remembers one. The
// instance is new: it has read nothing yet.
func (l *ledger) proves() bool {
	rules := l.w.Authority(nil)
	for seq := range int64(ledgers) {
		line, err := rules.LogEntry(l.Context(), l.w.Hotel.ID, seq)
		if err != nil {
			return false
		}
		proof, err := rules.Inclusion(l.Context(), l.w.Hotel.ID, seq, ledgers)
		if err != nil || tlog.CheckRecord(proof, ledgers, l.remembered.Root, seq, tlog.RecordHash(line.Entry)) != nil {
			return false
		}
	}
	return true
}

// R75: whoever may write every table does one thing to the log of receipts, at its
// beginning, in the middle or at its end: who remembers a checkpoint finds it.
func TestEveryForgeryOfReceiptsIsFound(t *testing.T) {
	l := newLedger(t)
	if err := l.whole(); err != nil || !l.proves() {
		t.Fatalf("the log is not whole before: %v", err)
	}
	for _, what := range slices.Sorted(maps.Keys(forgeries)) {
		for _, seq := range []int{0, 4, ledgers - 1} {
			l.forge(what, seq)
			switch changed := l.w.Count(t, differs); {
			case changed == 0:
				t.Errorf("%s at %d did nothing", what, seq)
			case slices.Contains(ofTree, what):
				if l.proves() {
					t.Errorf("%s at %d: everything is proved all the same", what, seq)
				}
			case what == "more hashes": // which nobody looks at
			case what == "moved up" && seq == ledgers-1: // an export says the same; a proof cannot be had
				if l.proves() {
					t.Errorf("%s at %d: not found", what, seq)
				}
			case l.whole() == nil:
				t.Errorf("%s at %d: not found", what, seq)
			}
			l.restore()
		}
	}
}

// differs counts the rows that are not as they were.
const differs = `
	SELECT count(*) FROM (
	       (SELECT r::text FROM receipts r EXCEPT SELECT r::text FROM kept_receipts r)
	       UNION ALL
	       (SELECT r::text FROM kept_receipts r EXCEPT SELECT r::text FROM receipts r)) d`

// R75: so are several at once, in whatever order.
func TestAnyForgeryOfReceiptsIsFoundFromARememberedCheckpoint(t *testing.T) {
	l := newLedger(t)
	every := slices.Sorted(maps.Keys(forgeries))
	rapid.Check(t, func(rt *rapid.T) {
		defer l.restore()
		for range rapid.IntRange(1, 4).Draw(rt, "times") {
			l.forge(rapid.SampledFrom(every).Draw(rt, "what"), rapid.IntRange(0, ledgers-1).Draw(rt, "where"))
		}
		if l.exported() != l.lines && l.whole() == nil {
			rt.Errorf("the log was changed, and nobody finds it")
		}
		const tree = `
			SELECT count(*) FROM receipts r JOIN kept_receipts k USING (brand_id, seq)
			 WHERE substr(r.hashes, 1, length(k.hashes)) <> k.hashes`
		if l.w.Count(t, tree) > 0 && l.proves() {
			rt.Errorf("the tree was changed, and proves everything all the same")
		}
	})
}
