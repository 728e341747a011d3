package authority_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

// traces lists every column of the database in which the words stand, whatever
// its type, behind the fence's back; of what is a Brand's, only the Hotel's.
func traces(t *testing.T, w *authoritytest.World, words string) []string {
	t.Helper()
	const columns = `
		SELECT c.relname::text, a.attname::text,
		       EXISTS (SELECT FROM pg_attribute b WHERE b.attrelid = c.oid AND b.attname = 'brand_id') AS fenced
		  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`
	rows, err := w.Owner.Query(t.Context(), columns)
	if err != nil {
		t.Fatal(err)
	}
	type column struct {
		Table, Name string
		Fenced      bool
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range all {
		q := fmt.Sprintf(`SELECT count(*) FROM %[1]s
			WHERE position($1 IN CASE WHEN pg_typeof(%[2]s) = 'bytea'::regtype THEN encode(%[2]s::text::bytea, 'escape') ELSE %[2]s::text END) > 0`,
			pgx.Identifier{c.Table}.Sanitize(), pgx.Identifier{c.Name}.Sanitize())
		if c.Fenced {
			q += ` AND brand_id = 'harbor-hotel'`
		}
		if w.Count(t, q, words) > 0 {
			out = append(out, c.Table+"."+c.Name)
		}
	}
	return out
}

// lives lets a person leave traces wherever a person can: a grant that was
// widened, answers, a refusal, a step-up that waits, a suspension, an answer of
// the API, a login and a page under way.
func lives(t *testing.T, w *authoritytest.World, a *authority.Authority, subject string) authority.Tokens {
	t.Helper()
	who := authority.Caller{Agent: authoritytest.Agent, Sub: subject + "-phone"}
	s := authoritytest.Begin(t, a, w.Hotel, who, "bookings:read", "account:read")
	authoritytest.Approve(t, a, w.Hotel, s, subject, "bookings:read")
	tokens, err := a.Poll(t.Context(), w.Hotel, who, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	served := servedTurn(tokens, subject+"-message")
	served.ContextID = subject + "-talk"
	countersigned(t, a, w.Hotel, served)
	if _, err := a.CountersignTask(t.Context(), w.Hotel, tokens.GrantID, served.ContextID); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `INSERT INTO turns_accepted VALUES ('harbor-hotel', $1, $2, $2, '', $3)`, tokens.GrantID, subject, w.Clock.Now())
	s = authoritytest.Begin(t, a, w.Hotel, who, "extras:order")
	q, err := a.Ask(t.Context(), w.Hotel.ID, s.ID, subject)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Deny(t.Context(), w.Hotel.ID, authoritytest.Answer(w.Hotel, q, subject)); err != nil {
		t.Fatal(err)
	}
	if err := a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), subject); err != nil {
		t.Fatal(err)
	}
	now := w.Clock.Now()
	w.Exec(t, `INSERT INTO device_requests (brand_id, id, agent, agent_sub, scopes, user_code_mac, state, created_at, expires_at, kind, expected_subject, reason)
		VALUES ('harbor-hotel', gen_random_uuid(), $1, $2, '{extras:order}', sha256(convert_to($2::text, 'UTF8')), 'pending', $3::timestamptz, $3::timestamptz + interval '10 minutes', 'stepup', $4, $4 || ' wants breakfast')`,
		authoritytest.Agent, who.Sub, now, subject)
	w.Exec(t, `INSERT INTO journeys (brand_id, id, browser, subject, account, created_at, expires_at)
		VALUES ('harbor-hotel', $1::text || '-journey', '', $1::text, $1::text || '@mail.example', $2::timestamptz, $2::timestamptz + interval '1 hour')`, subject, now)
	w.Exec(t, `INSERT INTO api_replies (brand_id, api_key, key_hash, request_hash, status, content_type, body, created_at)
		VALUES ('harbor-hotel', 'k', sha256($1::text::bytea), '', 200, 'application/json', convert_to(json_build_object('subject', $1::text)::text, 'UTF8'), $2),
		       ('harbor-hotel', 'k', sha256($1::text::bytea || '\x00'), '', NULL, '', '', $2)`, subject, now)
	// One conversation in their name, and one before their agent had a token.
	for _, m := range []authority.Heard{{Who: who, MessageID: "m1", Subject: subject, Grant: tokens.GrantID}, {Who: who, MessageID: "m2"}} {
		x, err := a.Hear(t.Context(), w.Hotel.ID, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.KeepReply(t.Context(), w.Hotel.ID, x, "Good morning, "+subject); err != nil {
			t.Fatal(err)
		}
	}
	logins, err := json.Marshal(map[string]any{
		"harbor-hotel":  map[string]string{"subject": subject, "account": subject + "@mail.example"},
		"fern-and-fell": map[string]string{"subject": "somebody", "account": "s@mail.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]string{"secret": "browser of " + w.Hotel.Name, "logins": string(logins)})
	if err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `INSERT INTO browser_sessions (id_hash, data, created_at, expires_at) VALUES (sha256($1::bytea), $1::bytea, $2::timestamptz, $2::timestamptz + interval '1 hour')`, data, now)
	return tokens
}

// B92: a person is erased wherever they stand, and nobody else is: not their
// namesake at another Brand, nor whoever's name theirs is the beginning of.
func TestErasingLeavesNoTraceOfThePerson(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	const gone, stays = "guest 4711 <&>", "guest 4711 <&>2"
	tokens := lives(t, w, a, gone)
	lives(t, w, a, stays)
	shop := authority.Caller{Agent: authoritytest.Agent, Sub: "shopper"}
	s := authoritytest.Begin(t, a, w.Shop, shop, "orders:read")
	authoritytest.Approve(t, a, w.Shop, s, gone, "orders:read")
	atShop, err := a.Poll(t.Context(), w.Shop, shop, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	hashes := w.Count(t, `SELECT count(DISTINCT hash) FROM consents`)
	before, err := a.VerifyTrail(t.Context(), w.Hotel.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	count, err := a.CountPerson(t.Context(), w.Hotel.ID, gone)
	if err != nil || count != (authority.PersonCount{Living: 1, Answers: 2}) {
		t.Errorf("%+v, %v", count, err)
	}

	e, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByAdminKey("abc"), gone)
	if err != nil || e.Grants != 1 || e.Rows == 0 || e.Events == 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	// The other's name begins with it, so it is looked for with what ends it.
	for _, form := range []string{gone + `"`, gone + "-phone", gone + "@", gone + " wants", gone + "-journey", `guest 4711 \u003c\u0026\u003e"`, gone + `\"`} {
		if left := traces(t, w, form); len(left) > 0 {
			t.Errorf("%q still stands in %v", form, left)
		}
	}
	for table, column := range map[string]string{"grants": "subject", "consents": "subject", "journeys": "subject", "suspended_users": "subject", "device_requests": "expected_subject"} {
		if n := w.Count(t, `SELECT count(*) FROM `+table+` WHERE brand_id = 'harbor-hotel' AND `+column+` = $1`, gone); n != 0 {
			t.Errorf("%d rows of %s", n, table)
		}
		if n := w.Count(t, `SELECT count(*) FROM `+table+` WHERE brand_id = 'harbor-hotel' AND `+column+` = $1`, stays); n == 0 {
			t.Errorf("nobody is left in %s", table)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'harbor-hotel' AND (actor_id = $1 OR detail->>'subject' = $1)`, gone); n != 0 {
		t.Errorf("%d facts of the trail", n)
	}
	if n := w.Count(t, `SELECT count(*) FROM browser_sessions WHERE position('somebody' IN encode(data, 'escape')) > 0`); n != 2 {
		t.Errorf("%d logins at the other Brand", n)
	}
	if n := w.Count(t, `SELECT count(DISTINCT hash) FROM consents`); n != hashes {
		t.Errorf("%d hashes of answers, %d before", n, hashes)
	}
	if n := w.Count(t, `SELECT count(*) - count(DISTINCT subject) FROM grants`); n != 0 {
		t.Error("two rows of one person can be told to be one's")
	}
	// The token died, the namesake's lives.
	if _, err := a.Refresh(t.Context(), w.Hotel, authority.Caller{Agent: authoritytest.Agent, Sub: gone + "-phone"}, tokens.Refresh, nil); !errors.Is(err, authority.ErrUnknown) && !errors.Is(err, authority.ErrEnded) {
		t.Errorf("refresh: %v", err)
	}
	if _, err := a.Refresh(t.Context(), w.Shop, shop, atShop.Refresh, nil); err != nil {
		t.Errorf("the namesake: %v", err)
	}
	proof, err := a.VerifyTrail(t.Context(), w.Hotel.ID, &before.Head)
	if err != nil || proof.Erased != e.Events {
		t.Errorf("%+v, %v", proof, err)
	}
	// The fact names the places, by whom, and not the person.
	var seqs []int64
	var by string
	err = w.Owner.QueryRow(t.Context(), `SELECT ARRAY(SELECT json_array_elements_text(detail->'seqs')::bigint), actor_id
		  FROM audit_events WHERE brand_id = 'harbor-hotel' AND event = 'user.erased'`).Scan(&seqs, &by)
	if err != nil || by != "abc" || int64(len(seqs)) != e.Events || !slices.IsSorted(seqs) {
		t.Errorf("%v by %q, %v", seqs, by, err)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'harbor-hotel' AND salt IS NULL AND NOT seq = ANY ($1)`, seqs); n != 0 {
		t.Errorf("%d facts were erased and are not named", n)
	}
	// Again is nothing.
	if again, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), gone); err != nil || again != (authority.Erased{}) {
		t.Errorf("again: %+v, %v", again, err)
	}
	for _, empty := range []string{"", " "} {
		if e, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), empty); empty == "" && err == nil || e != (authority.Erased{}) {
			t.Errorf("%q: %+v, %v", empty, e, err)
		}
	}
}

// Erasing is broken off after each statement that it runs, and done again: it
// comes to the same.
func TestErasingIsDoneInTheEnd(t *testing.T) {
	for _, at := range []string{"grants", "consents", "journeys", "audit_events"} {
		w := authoritytest.New(t)
		a := w.Authority(nil)
		lives(t, w, a, "guest-1")
		w.Exec(t, `CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stopped'; END $$`)
		op := map[string]string{"journeys": "DELETE"}[at]
		if op == "" {
			op = "UPDATE"
		}
		when := ""
		if at == "grants" {
			when = "WHEN (NEW.subject <> OLD.subject)"
		}
		w.Exec(t, `CREATE TRIGGER stop BEFORE `+op+` ON `+at+` FOR EACH ROW `+when+` EXECUTE FUNCTION stop()`)
		if _, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-1"); err == nil || strings.Contains(err.Error(), "guest-1") {
			t.Fatalf("%s: %v", at, err)
		}
		w.Exec(t, `DROP TRIGGER stop ON `+at)
		if _, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-1"); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if left := traces(t, w, "guest-1"); len(left) > 0 {
			t.Errorf("broken off at %s: still in %v", at, left)
		}
		if _, err := a.VerifyTrail(t.Context(), w.Hotel.ID, nil); err != nil {
			t.Errorf("broken off at %s: %v", at, err)
		}
	}
}

// The service may not blank a fact by other ways, nor one without saying so, nor
// at another Brand, nor empty a Brand that lives.
func TestTheTrailIsErasedInOneWayOnly(t *testing.T) {
	w := authoritytest.New(t)
	happen(t, w, w.Hotel.ID, 3, plain)
	for _, q := range []string{
		`UPDATE audit_events SET salt = NULL, actor_id = '', detail = '{}'`,
		`UPDATE consents SET record = '{}'`, `DELETE FROM consents`,
		`SELECT empty_brand(10, now() + interval '10 years')`, `SELECT audit_empty(0, 10, now() + interval '10 years')`,
		`SELECT erase_person('')`, `SELECT audit_erase('', 0, 10, now(), 'system', '', '', '')`,
	} {
		if _, err := w.DB.Exec(t.Context(), w.Hotel.ID, q, nil); err == nil {
			t.Errorf("%s went through", q)
		}
	}
	who := ""
	if err := w.Owner.QueryRow(t.Context(), `SELECT actor_id FROM audit_events WHERE brand_id = 'harbor-hotel' AND actor = 'user' LIMIT 1`).Scan(&who); err != nil {
		t.Fatal(err)
	}
	const erase = `SELECT audit_erase(@who, 0, 10, now(), 'system', '', '', '')`
	if _, err := w.DB.Exec(t.Context(), w.Shop.ID, erase, pgx.NamedArgs{"who": who}); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE salt IS NULL`); n != 0 {
		t.Errorf("%d facts of another Brand", n)
	}
	if _, err := w.DB.Exec(t.Context(), w.Hotel.ID, erase, pgx.NamedArgs{"who": who}); err != nil {
		t.Fatal(err)
	}
	if blank, said := w.Count(t, `SELECT count(*) FROM audit_events WHERE salt IS NULL`),
		w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'user.erased'`); blank == 0 || said != 1 {
		t.Errorf("%d blank, said %d times", blank, said)
	}
}

// Whoever is erased, and in whatever order, the chain holds and counts them, from
// any head that was remembered; and what was tampered with beside them is found.
func TestErasingNeverBreaksTheChainNorHidesTampering(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	people := []string{"guest-1", "guest-2", "guest-3"}
	for range 2 {
		for _, p := range people {
			who := authority.Caller{Agent: authoritytest.Agent, Sub: p}
			s := authoritytest.Begin(t, a, w.Hotel, who, "bookings:read")
			authoritytest.Approve(t, a, w.Hotel, s, p, "bookings:read")
			if _, err := a.End(t.Context(), w.Hotel.ID, authority.ByUser(p), authority.Which{Subject: p}); err != nil {
				t.Fatal(err)
			}
			if err := a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), p); err != nil {
				t.Fatal(err)
			}
			if err := a.Resume(t.Context(), w.Hotel.ID, authority.ByOperator(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, table := range []string{"audit_events", "audit_heads", "grants", "consents", "device_requests"} {
		w.Exec(t, `CREATE TABLE kept_`+table+` AS SELECT * FROM `+table)
	}
	restore := func() {
		w.Exec(t, `ALTER TABLE audit_events DISABLE TRIGGER audit_chain`)
		w.Exec(t, `DELETE FROM audit_events`)
		w.Exec(t, `INSERT INTO audit_events SELECT * FROM kept_audit_events`)
		w.Exec(t, `ALTER TABLE audit_events ENABLE TRIGGER audit_chain`)
		w.Exec(t, `DELETE FROM audit_heads`)
		w.Exec(t, `INSERT INTO audit_heads SELECT * FROM kept_audit_heads`)
		for _, table := range []string{"grants", "consents"} {
			w.Exec(t, `UPDATE `+table+` x SET subject = k.subject FROM kept_`+table+` k WHERE k.id = x.id`)
		}
	}
	remembered, err := a.VerifyTrail(t.Context(), w.Hotel.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		defer restore()
		for range rapid.IntRange(1, 4).Draw(rt, "times") {
			p := rapid.SampledFrom(append(slices.Clone(people), "nobody")).Draw(rt, "who")
			if _, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), p); err != nil {
				rt.Fatal(err)
			}
		}
		proof, err := a.VerifyTrail(t.Context(), w.Hotel.ID, &remembered.Head)
		if err != nil {
			rt.Fatalf("erasing broke it: %v", err)
		}
		if said := w.Count(t, `SELECT coalesce(sum(json_array_length(detail->'seqs')), 0) FROM audit_events WHERE event = 'user.erased'`); int64(said) != proof.Erased {
			rt.Fatalf("%d erased, %d named", proof.Erased, said)
		}
		lines := export(t, a, w.Hotel.ID, authority.Events{})
		if p, err := authority.VerifyExport(strings.NewReader(lines), &remembered.Head); err != nil || p.Erased != proof.Erased {
			rt.Fatalf("the export: %+v, %v", p, err)
		}
		// Somebody tampers, with erased facts as with others.
		what := rapid.SampledFrom([]string{"at", "actor", "channel", "event", "grant_id", "digest", "hash", "seq", "with its digest"}).Draw(rt, "what")
		seq := rapid.Int64Range(1, proof.Head.Seq).Draw(rt, "where")
		w.Exec(t, `ALTER TABLE audit_events DISABLE TRIGGER audit_chain`)
		q := edits[what]
		switch what {
		case "actor", "channel":
			q = what + ` = CASE ` + what + ` WHEN 'user' THEN 'admin' ELSE 'user' END`
		case "with its digest":
			q = `actor_id = 'guest-0', salt = '0123456789abcdef', digest = sha256('0123456789abcdef'::bytea || audit_field('guest-0') || audit_field(detail::text))`
		}
		w.Exec(t, `UPDATE audit_events SET `+q+` WHERE brand_id = 'harbor-hotel' AND seq = $1`, seq)
		_, err = a.VerifyTrail(t.Context(), w.Hotel.ID, nil)
		if f := faulty(rt, err); f.Seq != seq {
			rt.Fatalf("%s at %d: %v", what, seq, f)
		}
	})
}
