package authority_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"pgregory.net/rapid"
)

// edits write over the one event $1 of the Hotel.
var edits = map[string]string{
	"at":         `at = at + interval '1 microsecond'`,
	"actor":      `actor = 'admin'`,
	"actor_id":   `actor_id = actor_id || ' '`,
	"channel":    `channel = 'cli'`,
	"event":      `event = 'grant.Tried'`,
	"request_id": `request_id = gen_random_uuid()`,
	"no request": `request_id = NULL`,
	"grant_id":   `grant_id = gen_random_uuid()`,
	"ids moved":  `request_id = grant_id, grant_id = request_id`,
	"trace":      `trace = upper(trace)`,
	"detail":     `detail = '{}'`,
	"spacing":    `detail = (' ' || detail::text)::json`,
	"salt":       `salt = uuid_send(gen_random_uuid())`,
	"short salt": `salt = substr(salt, 1, 15)`,
	"salt gone":  `salt = NULL`,
	"half gone":  `salt = NULL, detail = '{}'`, // with the id it would be a lawful erasure
	"digest":     `digest = sha256(digest)`,
	"no digest":  `digest = ''`,
	"hash":       `hash = sha256(hash)`,
	"no hash":    `hash = ''`,
	"seq":        `seq = seq + 100`,
	"brand_id":   `brand_id = 'fern-and-fell', seq = seq + 50`,
	// Lies that know the format, but not what comes after them.
	"with its digest": `actor_id = 'guest-0', digest = sha256(coalesce(salt, '') || audit_field('guest-0') || audit_field(detail::text))`,
	"moved a border":  `channel = channel || left(event, 1), event = substr(event, 2)`,
}

// rewrites do more than that, or something to the head.
var rewrites = map[string]string{
	"delete":   `DELETE FROM audit_events WHERE brand_id = 'harbor-hotel' AND seq = $1`,
	"truncate": `DELETE FROM audit_events WHERE brand_id = 'harbor-hotel' AND seq >= $1`,
	"behead":   `DELETE FROM audit_events WHERE brand_id = 'harbor-hotel' AND seq <= $1`,
	"below":    `UPDATE audit_events SET seq = -seq WHERE brand_id = 'harbor-hotel' AND seq = $1`,
	"reorder": `
		UPDATE audit_events e
		   SET (at, actor, actor_id, channel, event, request_id, grant_id, trace, detail, salt, digest, hash) = (
		       SELECT at, actor, actor_id, channel, event, request_id, grant_id, trace, detail, salt, digest, hash
		         FROM audit_events o WHERE o.brand_id = e.brand_id AND o.seq = CASE e.seq WHEN $1::bigint THEN $1::bigint % 9 + 1 ELSE $1::bigint END)
		 WHERE brand_id = 'harbor-hotel' AND seq IN ($1::bigint, $1::bigint % 9 + 1)
		   AND 2 = (SELECT count(*) FROM audit_events WHERE brand_id = 'harbor-hotel' AND seq IN ($1::bigint, $1::bigint % 9 + 1))`,
	"insert after": `
		INSERT INTO audit_events
		SELECT (jsonb_populate_record(e, jsonb_build_object('seq', 1 + (SELECT max(seq) FROM audit_events WHERE brand_id = 'harbor-hotel')))).*
		  FROM audit_events e WHERE brand_id = 'harbor-hotel' AND seq = $1`,
	"insert before": `
		INSERT INTO audit_events
		SELECT (jsonb_populate_record(e, '{"seq": 0}')).*
		  FROM audit_events e WHERE brand_id = 'harbor-hotel' AND seq = $1
		ON CONFLICT DO NOTHING`,
	"older head": `
		UPDATE audit_heads SET seq = $1::bigint - 1, hash = coalesce((
		       SELECT hash FROM audit_events WHERE brand_id = 'harbor-hotel' AND seq = $1::bigint - 1), '')
		 WHERE brand_id = 'harbor-hotel'`,
	"no head":      `DELETE FROM audit_heads WHERE brand_id = 'harbor-hotel' AND $1::bigint > 0`,
	"another head": `UPDATE audit_heads SET hash = sha256(hash) WHERE brand_id = 'harbor-hotel' AND $1::bigint > 0`,
}

// anew writes a chain that fits over whatever is there, and its head.
const anew = `DO $$
DECLARE
	e audit_events;
	previous bytea := '';
	last bigint := 0;
BEGIN
	UPDATE audit_events SET seq = seq + 1000 WHERE brand_id = 'harbor-hotel';
	FOR e IN SELECT * FROM audit_events WHERE brand_id = 'harbor-hotel' ORDER BY seq LOOP
		last := last + 1;
		UPDATE audit_events SET seq = last WHERE brand_id = 'harbor-hotel' AND seq = e.seq;
		e.seq := last;
		e.salt := uuid_send(gen_random_uuid());
		e.digest := audit_digest(e);
		e.hash := audit_hash(e, previous);
		UPDATE audit_events SET salt = e.salt, digest = e.digest, hash = e.hash WHERE brand_id = 'harbor-hotel' AND seq = last;
		previous := e.hash;
	END LOOP;
	DELETE FROM audit_heads WHERE brand_id = 'harbor-hotel';
	IF last > 0 THEN
		INSERT INTO audit_heads VALUES ('harbor-hotel', last, previous);
	END IF;
END
$$`

// fields say which column must be named, where it can be known.
var fields = map[string]string{
	"actor_id": whoAndWhat, "detail": whoAndWhat, "spacing": whoAndWhat, "salt": whoAndWhat,
	"short salt": "salt", "salt gone": "salt", "half gone": "salt",
	"digest": "digest", "no digest": "digest", "no hash": "hash", "with its digest": theRest,
	"at": theRest, "actor": theRest, "channel": theRest, "event": theRest, "request_id": theRest, "no request": theRest,
	"grant_id": theRest, "ids moved": theRest, "trace": theRest, "hash": theRest, "moved a border": theRest,
	"seq": "seq", "brand_id": "seq",
	"delete": "seq", "truncate": "seq", "behead": "seq", "below": "seq", "insert before": "seq",
	"reorder": theRest, "insert after": theRest, "older head": "seq", "no head": "seq", "another head": "hash",
}

const (
	whoAndWhat = "actor_id, detail or salt"
	theRest    = "at, actor, channel, event, request_id, grant_id, trace, digest or hash"
)

// attic keeps a trail as it was, for somebody who may write every table.
type attic struct {
	*testing.T
	w     *authoritytest.World
	rules *authority.Authority
}

const attics = 9 // events of the Hotel

func newAttic(t *testing.T) attic {
	t.Helper()
	w := authoritytest.New(t)
	happen(t, w, w.Hotel.ID, attics, plain)
	happen(t, w, w.Shop.ID, 2, plain)
	w.Exec(t, `CREATE TABLE kept_events AS SELECT * FROM audit_events`)
	w.Exec(t, `CREATE TABLE kept_heads AS SELECT * FROM audit_heads`)
	w.Exec(t, `ALTER TABLE audit_events DISABLE TRIGGER audit_chain`)
	return attic{t, w, w.Authority(nil)}
}

func (a attic) restore() {
	a.w.Exec(a.T, `DELETE FROM audit_events`)
	a.w.Exec(a.T, `INSERT INTO audit_events SELECT * FROM kept_events`)
	a.w.Exec(a.T, `DELETE FROM audit_heads`)
	a.w.Exec(a.T, `INSERT INTO audit_heads SELECT * FROM kept_heads`)
}

func (a attic) tamper(what string, seq int) {
	q, ok := rewrites[what]
	if !ok {
		q = `UPDATE audit_events SET ` + edits[what] + ` WHERE brand_id = 'harbor-hotel' AND seq = $1`
	}
	a.w.Exec(a.T, q, seq)
}

// differs counts the Hotel's events that are not as they were, and the head.
func (a attic) differs() (events, head int) {
	const q = `
		SELECT count(*) FROM (
		       (SELECT e::text FROM audit_events e WHERE brand_id = 'harbor-hotel' EXCEPT SELECT e::text FROM kept_events e)
		       UNION ALL
		       (SELECT e::text FROM kept_events e WHERE brand_id = 'harbor-hotel' EXCEPT SELECT e::text FROM audit_events e)) d`
	const h = `SELECT count(*) FROM (SELECT * FROM kept_heads EXCEPT SELECT * FROM audit_heads) d`
	return a.w.Count(a.T, q), a.w.Count(a.T, h)
}

// shorter reports whether the trail is what it was at some earlier time, its head
// included: then nothing in the database can tell.
func (a attic) shorter() bool {
	const strange = `SELECT count(*) FROM (SELECT e::text FROM audit_events e WHERE brand_id = 'harbor-hotel' EXCEPT SELECT e::text FROM kept_events e) d`
	const gaps = `SELECT coalesce(max(seq), 0) - count(*) FROM audit_events WHERE brand_id = 'harbor-hotel'`
	const off = `
		SELECT count(*) FROM (
		       (SELECT seq, hash FROM audit_heads WHERE brand_id = 'harbor-hotel' AND seq > 0)
		       EXCEPT (SELECT seq, hash FROM audit_events WHERE brand_id = 'harbor-hotel' ORDER BY seq DESC LIMIT 1)) d`
	const headless = `
		SELECT count(*) FROM audit_events
		 WHERE brand_id = 'harbor-hotel' AND NOT EXISTS (SELECT FROM audit_heads h WHERE h.brand_id = 'harbor-hotel' AND h.seq > 0)`
	return a.w.Count(a.T, strange) == 0 && a.w.Count(a.T, gaps) == 0 && a.w.Count(a.T, off) == 0 && a.w.Count(a.T, headless) == 0
}

// R75: whoever may write every table changes one thing, at the beginning, in the
// middle or at the end: it is found, and its place is named.
func TestEveryKindOfTamperingIsFoundWhereItIs(t *testing.T) {
	a := newAttic(t)
	for _, what := range slices.Sorted(maps.Keys(edits)) {
		for _, seq := range []int{1, 5, attics} {
			a.tamper(what, seq)
			if events, _ := a.differs(); events > 0 { // not so where an id was null before
				_, err := a.rules.VerifyTrail(t.Context(), a.w.Hotel.ID, nil)
				if f := faulty(t, err); f.Seq != int64(seq) || f.Field != fields[what] || f.Why == "" {
					t.Errorf("%s at %d: %v", what, seq, f)
				}
			}
			a.restore()
		}
	}
	for what, want := range map[string][3]int64{
		"delete": {1, 5, 9}, "truncate": {1, 5, 9}, "behead": {1, 1, 1}, "below": {-1, -5, -9}, "reorder": {1, 5, 1},
		"insert after": {10, 10, 10}, "insert before": {0, 0, 0},
		"older head": {1, 5, 9}, "no head": {1, 1, 1}, "another head": {9, 9, 9},
	} {
		for i, seq := range []int{1, 5, attics} {
			a.tamper(what, seq)
			_, err := a.rules.VerifyTrail(t.Context(), a.w.Hotel.ID, nil)
			if f := faulty(t, err); f.Seq != want[i] || f.Field != fields[what] {
				t.Errorf("%s at %d: %v", what, seq, f)
			}
			a.restore()
		}
	}
}

// R75: several changes at once are found. Even when the whole chain and its head
// are written anew to fit them, a head that was remembered elsewhere tells; from
// an export as from the database.
func TestAnyTamperingIsFoundFromARememberedHead(t *testing.T) {
	a := newAttic(t)
	honest, err := a.rules.VerifyTrail(t.Context(), a.w.Hotel.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	every := slices.Concat(slices.Sorted(maps.Keys(edits)), slices.Sorted(maps.Keys(rewrites)))
	rapid.Check(t, func(rt *rapid.T) {
		defer a.restore()
		for range rapid.IntRange(1, 3).Draw(rt, "times") {
			what, seq := rapid.SampledFrom(every).Draw(rt, "what"), rapid.IntRange(1, attics).Draw(rt, "where")
			if a.w.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'harbor-hotel' AND seq = $1`, seq) > 0 {
				a.tamper(what, seq)
			}
		}
		if events, head := a.differs(); events+head > 0 && !a.shorter() {
			_, err := a.rules.VerifyTrail(t.Context(), a.w.Hotel.ID, nil)
			faulty(rt, err)
		}
		a.w.Exec(t, anew)
		if _, err := a.rules.VerifyTrail(t.Context(), a.w.Hotel.ID, nil); err != nil {
			rt.Fatalf("this test does not know how a chain is written anew: %v", err)
		}
		_, err := a.rules.VerifyTrail(t.Context(), a.w.Hotel.ID, &honest.Head)
		faulty(rt, err)
		if lines := export(t, a.rules, a.w.Hotel.ID, authority.Events{}); lines != "" {
			_, err = authority.VerifyExport(strings.NewReader(lines), &honest.Head)
			faulty(rt, err)
		}
	})
}

// An export that was changed is found without any database.
func TestATamperedExportIsFound(t *testing.T) {
	a := newAttic(t)
	honest := export(t, a.rules, a.w.Hotel.ID, authority.Events{})
	proof, err := authority.VerifyExport(strings.NewReader(honest), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(honest, "\n"), "\n")
	swapped := slices.Clone(lines)
	swapped[3], swapped[4] = swapped[4], swapped[3]
	for what, text := range map[string]string{
		"nothing":           "",
		"a line gone":       strings.Join(slices.Delete(slices.Clone(lines), 4, 5), ""),
		"the first gone":    strings.Join(lines[1:], ""),
		"reordered":         strings.Join(swapped, ""),
		"repeated":          lines[0] + honest,
		"another Brand's":   honest + strings.SplitAfter(export(t, a.rules, a.w.Shop.ID, authority.Events{}), "\n")[0],
		"a word":            strings.Replace(honest, "grant.tried", "grant.trieD", 1),
		"a space":           strings.Replace(honest, `"actor"`, ` "actor"`, 1),
		"a member more":     strings.Replace(honest, `"actor":`, `"note":"x","actor":`, 1),
		"a member twice":    strings.Replace(honest, `"actor":"user"`, `"actor":"admin","actor":"user"`, 1),
		"another case":      strings.Replace(honest, `"actor":`, `"Actor":`, 1),
		"no JSON":           honest + "x\n",
		"an empty line":     strings.Replace(honest, "\n", "\n\n", 1),
		"half a line":       honest[:len(honest)-9],
		"padded base64url":  strings.Replace(honest, `","digest"`, `==","digest"`, 1),
		"detail as it runs": strings.Replace(honest, `"detail":"`, `"detail":{"x":"`, 1),
	} {
		if _, err := authority.VerifyExport(strings.NewReader(text), nil); err == nil {
			t.Errorf("%s: not found", what)
		}
	}
	// Two Brands in one chain that somebody took the pains to fit together, and
	// beside it the proof that the pains were right.
	const (
		begun  = `{"seq":1,"brand_id":"fern-and-fell","at":"2026-11-30T09:00:00.000000Z","actor":"user","actor_id":"x","channel":"page","event":"e","request_id":null,"grant_id":null,"trace":"","detail":"{}","salt":"AAECAwQFBgcICQoLDA0ODw","digest":"vkpAfFk0cBYt-OC5lx33RcyCVdrJftadpEOprC_Vfa0","hash":"CuIoG26KL0cP_0yA6d-CW9KJn0mdWktkg-1r4Lgai4A"}`
		own    = `{"seq":2,"brand_id":"fern-and-fell","at":"2026-11-30T09:00:00.000000Z","actor":"user","actor_id":"x","channel":"page","event":"e","request_id":null,"grant_id":null,"trace":"","detail":"{}","salt":"AAECAwQFBgcICQoLDA0ODw","digest":"vkpAfFk0cBYt-OC5lx33RcyCVdrJftadpEOprC_Vfa0","hash":"3538FWHFf3RGds7d42-rmxcn2duzlU9z9ZwBQDb_OSg"}`
		others = `{"seq":2,"brand_id":"harbor-hotel","at":"2026-11-30T09:00:00.000000Z","actor":"user","actor_id":"x","channel":"page","event":"e","request_id":null,"grant_id":null,"trace":"","detail":"{}","salt":"AAECAwQFBgcICQoLDA0ODw","digest":"vkpAfFk0cBYt-OC5lx33RcyCVdrJftadpEOprC_Vfa0","hash":"rP-bnJknHdiNA0qYJzc6vkw1WaBwXZTUWI2ksrhOHrA"}`
	)
	if _, err := authority.VerifyExport(strings.NewReader(begun+"\n"+own), nil); err != nil {
		t.Error(err)
	}
	_, err = authority.VerifyExport(strings.NewReader(begun+"\n"+others), nil)
	if f := faulty(t, err); f.Field != "brand_id" {
		t.Error(f)
	}
	// A shortened file fits in itself: only a remembered head tells.
	short := strings.Join(lines[:5], "")
	if _, err := authority.VerifyExport(strings.NewReader(short), nil); err != nil {
		t.Error(err)
	}
	_, err = authority.VerifyExport(strings.NewReader(short), &proof.Head)
	if f := faulty(t, err); f.Seq != 6 {
		t.Error(f)
	}
}

// Who and what can be erased from an event, as the law may want it: the chain
// still holds and the gap is counted.
func TestAnErasedEventIsCounted(t *testing.T) {
	a := newAttic(t)
	a.w.Exec(t, `UPDATE audit_events SET salt = NULL, actor_id = '', detail = '{}' WHERE brand_id = 'harbor-hotel' AND seq IN (2, 9)`)
	p, err := a.rules.VerifyTrail(t.Context(), a.w.Hotel.ID, nil)
	if err != nil || p.Erased != 2 || p.Events != attics {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = authority.VerifyExport(strings.NewReader(export(t, a.rules, a.w.Hotel.ID, authority.Events{})), &p.Head)
	if err != nil || p.Erased != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	// Nothing else of it may have changed.
	a.w.Exec(t, `UPDATE audit_events SET event = 'grant.told' WHERE brand_id = 'harbor-hotel' AND seq = 2`)
	_, err = a.rules.VerifyTrail(t.Context(), a.w.Hotel.ID, nil)
	if f := faulty(t, err); f.Seq != 2 {
		t.Error(f)
	}
}
