package authority_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"golang.org/x/mod/sumdb/tlog"
)

// logIsSound checks every entry of the Hotel's log against what was signed of it,
// and that so many receipts are left.
func logIsSound(t *testing.T, w *authoritytest.World, a *authority.Authority, receipts int) {
	t.Helper()
	c, err := w.Authority(nil).Checkpoint(t.Context(), w.Hotel)
	if err != nil {
		t.Fatal(err)
	}
	_, root := readCheckpoint(t, w, c)
	salted := 0
	for seq := range c.Size {
		line, err := a.LogEntry(t.Context(), w.Hotel.ID, seq)
		if err != nil {
			t.Fatal(err)
		}
		if line.Salt != nil {
			salted++
		}
		proof, err := a.Inclusion(t.Context(), w.Hotel.ID, seq, c.Size)
		if err != nil || tlog.CheckRecord(proof, c.Size, root, seq, tlog.RecordHash(line.Entry)) != nil {
			t.Errorf("entry %d: %v", seq, err)
		}
	}
	left := w.Count(t, `SELECT count(*) FROM receipts WHERE brand_id = 'harbor-hotel' AND jws IS NOT NULL`)
	if salted != receipts || left != receipts {
		t.Errorf("%d salts and %d receipts are left, want %d", salted, left, receipts)
	}
}

// R81, B92: a person's receipts go, with their salts, so that entries say nothing of
// them any more; every proof holds as before. Nobody else's go, and nothing of the
// erased person can be added to the log.
func TestErasedReceiptsLeaveTheLogSound(t *testing.T) {
	w := authoritytest.New(t)
	var a *authority.Authority
	gone, stays := lives(t, w, w.Authority(nil), "guest-1"), lives(t, w, w.Authority(nil), "guest-2")
	a = w.Authority(nil)
	if _, err := a.Checkpoint(t.Context(), w.Hotel); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-1"); err != nil {
		t.Fatal(err)
	}
	logIsSound(t, w, a, 1)
	for table, want := range map[string]int{"task_receipts": 1, "turns_accepted": 1} {
		if n := w.Count(t, `SELECT count(*) FROM `+table); n != want {
			t.Errorf("%d rows of %s", n, table)
		}
	}
	again := servedTurn(gone, "guest-1-message")
	again.ContextID = "guest-1-talk"
	_, err := a.Countersign(t.Context(), w.Hotel, again)
	wantErr(t, err, authority.ErrToken)
	_, err = a.CountersignTask(t.Context(), w.Hotel, gone.GrantID, "guest-1-talk")
	wantErr(t, err, authority.ErrUnknown)
	if _, err := a.CountersignTask(t.Context(), w.Hotel, stays.GrantID, "guest-2-talk"); err != nil {
		t.Error(err)
	}
	if done, err := a.Done(t.Context(), w.Hotel.ID, gone.GrantID, w.Clock.Now().AddDate(1, 0, 0), 10); err != nil || len(done) != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// A turn that is being signed while its person is erased gets no receipt.
func TestErasingWaitsForNobodyAndMissesNothing(t *testing.T) {
	w := authoritytest.New(t)
	keys := w.NewKeys()
	other := w.Authority(nil)
	tokens := delegated(t, w, other, "bookings:read")
	countersigned(t, other, w.Hotel, servedTurn(tokens, "before"))
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if typ == signing.TypReceipt {
			if _, err := other.Erase(ctx, brand, authority.ByOperator(), "guest-7"); err != nil {
				return "", err
			}
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	if r, err := a.Countersign(t.Context(), w.Hotel, servedTurn(tokens, "during")); !errors.Is(err, authority.ErrToken) {
		t.Errorf("%+v, %v", r, err)
	}
	logIsSound(t, w, other, 0)
}

// A first receipt that is written while its person is erased waits for the erasure,
// although the log has nothing yet that it could wait at, and then comes too late.
func TestTheFirstReceiptWaitsForTheErasure(t *testing.T) {
	w := authoritytest.New(t)
	a, other := w.Authority(nil), w.Authority(nil)
	turn := servedTurn(delegated(t, w, a, "bookings:read"), "first")
	turn.Began = w.Clock.Now() // and so it would have its receipt although the grant ends
	w.Clock.Advance(time.Minute)
	// The erasure stops behind the receipts, until the gate is opened.
	w.Exec(t, `CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END $$`)
	w.Exec(t, `CREATE TRIGGER stop BEFORE UPDATE ON grants FOR EACH ROW WHEN (NEW.subject <> OLD.subject) EXECUTE FUNCTION stop()`)
	gate, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Rollback(context.WithoutCancel(t.Context())) // nothing is left to take back once it is open
	if _, err := gate.Exec(t.Context(), `SELECT pg_advisory_xact_lock(4711)`); err != nil {
		t.Fatal(err)
	}
	waiting := func(n int) bool {
		return w.Count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) >= n
	}
	erased, served := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := other.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7")
		erased <- err
	}()
	for !waiting(1) && len(erased) == 0 {
	}
	go func() {
		_, err := a.Countersign(t.Context(), w.Hotel, turn)
		served <- err
	}()
	for !waiting(2) && len(served) == 0 {
	}
	if err := gate.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-erased; err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, authority.ErrToken) {
		t.Errorf("the receipt: %v", err)
	}
	logIsSound(t, w, a, 0)
}

// R73: a turn that comes again while its person is erased finds its receipt gone
// already, and is not written down a second time.
func TestATurnThatComesAgainDuringAnErasure(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	turn := servedTurn(delegated(t, w, a, "bookings:read"), "m")
	turn.Began = w.Clock.Now()
	w.Clock.Advance(time.Second)
	countersigned(t, a, w.Hotel, turn)
	// The erasure stops where it has emptied the receipts.
	gate, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Rollback(context.WithoutCancel(t.Context())) // nothing is left to take back once it is open
	if _, err := gate.Exec(t.Context(), `LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	erased := make(chan error, 1)
	go func() {
		_, err := w.Authority(nil).Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7")
		erased <- err
	}()
	const stopped = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	for w.Count(t, stopped) == 0 && len(erased) == 0 {
	}
	if n := w.Count(t, `SELECT count(*) FROM receipts WHERE jws IS NULL`); n != 1 {
		t.Errorf("%d receipts are empty: the erasure stands elsewhere", n)
	}
	r, err := a.Countersign(t.Context(), w.Hotel, turn)
	if !errors.Is(err, authority.ErrToken) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := gate.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-erased; err != nil {
		t.Error(err)
	}
	if n := w.Count(t, `SELECT count(*) FROM receipts`); n != 1 {
		t.Errorf("the log has %d lines for one turn", n)
	}
	logIsSound(t, w, a, 0)
}

// However many receipts a person has, no statement takes more of them than it has
// time for; and every one goes.
func TestManyReceiptsAreErased(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	gone, _ := lives(t, w, a, "guest-1"), lives(t, w, a, "guest-2")
	const many = 2500
	w.Exec(t, `INSERT INTO receipts (brand_id, seq, grant_id, context_id, message_id, content, at, late, jws, salt, entry, hashes)
		SELECT brand_id, 1000 + n, grant_id, context_id, 'm' || n, content, at + n * interval '1 millisecond', late, jws, salt, entry, hashes
		  FROM receipts, generate_series(1, $2) n WHERE grant_id = $1`, gone.GrantID, many)
	w.Exec(t, `INSERT INTO task_receipts (brand_id, grant_id, context_id, count, at, jws)
		SELECT brand_id, grant_id, context_id, 1 + n, at, jws FROM task_receipts, generate_series(1, $2) n WHERE grant_id = $1`, gone.GrantID, many)
	w.Exec(t, `CREATE FUNCTION too_many() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF (SELECT count(*) FROM old) > 1000 THEN RAISE 'it would take too long'; END IF; RETURN NULL; END $$`)
	w.Exec(t, `CREATE TRIGGER too_many AFTER UPDATE ON receipts REFERENCING OLD TABLE AS old FOR EACH STATEMENT EXECUTE FUNCTION too_many()`)
	w.Exec(t, `CREATE TRIGGER too_many AFTER DELETE ON task_receipts REFERENCING OLD TABLE AS old FOR EACH STATEMENT EXECUTE FUNCTION too_many()`)
	e, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-1")
	if err != nil || e.Rows < 2*many {
		t.Fatalf("%+v, %v", e, err)
	}
	for table, q := range map[string]string{
		"receipts": `SELECT count(*) FROM receipts WHERE jws IS NOT NULL`, "task_receipts": `SELECT count(*) FROM task_receipts`,
		"turns_accepted": `SELECT count(*) FROM turns_accepted`,
	} {
		if n := w.Count(t, q); n != 1 { // the other's
			t.Errorf("%d of %s are left", n, table)
		}
	}
	if _, err := w.DB.Exec(t.Context(), w.Hotel.ID, `SELECT erase_some_receipts('', 10)`, nil); err == nil {
		t.Error("nobody was erased")
	}
}
