package authority_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"golang.org/x/mod/sumdb/tlog"
)

// logged is a world with so many receipts in the hotel's log.
func logged(t *testing.T, count int) (*authoritytest.World, *authority.Authority, authority.Tokens, []authority.Receipt) {
	t.Helper()
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	var out []authority.Receipt
	for i := range count {
		out = append(out, countersigned(t, a, w.Hotel, servedTurn(tokens, fmt.Sprint("m", i))))
	}
	return w, a, tokens, out
}

// read is what a checkpoint says, after its signature was checked.
func readCheckpoint(t *testing.T, w *authoritytest.World, c authority.Checkpoint) (receiptlog.Checkpoint, tlog.Hash) {
	t.Helper()
	payload, err := w.NewKeys().Verify(t.Context(), w.Hotel.ID, signing.TypCheckpoint, c.JWS)
	if err != nil {
		t.Fatal(err)
	}
	var says receiptlog.Checkpoint
	if err := json.Unmarshal(payload, &says); err != nil {
		t.Fatal(err)
	}
	root, ok := receiptlog.Hash(says.Root)
	if !ok || says.Log != w.Hotel.Issuer+"/log" || says.Size != c.Size {
		t.Fatalf("%s", payload)
	}
	return says, root
}

// R74, R81: an entry binds message, direction, Brand, grant, token, times, place and
// the entry before; it names no person and no conversation, and without the salt
// nobody finds out by trying.
func TestAnEntryBindsAndTellsNothing(t *testing.T) {
	w, a, tokens, receipts := logged(t, 2)
	var claims struct{ JTI string }
	if err := json.Unmarshal(payload(t, tokens), &claims); err != nil {
		t.Fatal(err)
	}
	var first tlog.Hash
	salts := make(map[string]bool)
	for seq, r := range receipts {
		line, err := a.LogEntry(t.Context(), w.Hotel.ID, int64(seq))
		if err != nil {
			t.Fatal(err)
		}
		if salts[string(line.Salt)] || len(line.Salt) != 16 || string(line.Salt) == string(make([]byte, 16)) {
			t.Errorf("a salt that can be guessed: %x", line.Salt)
		}
		salts[string(line.Salt)] = true
		var e receiptlog.Entry
		if err := json.Unmarshal(line.Entry, &e); err != nil {
			t.Fatal(err)
		}
		want := receiptlog.Entry{
			V: receiptlog.Version, Seq: int64(seq), Brand: "harbor-hotel", Direction: "inbound", Grant: tokens.GrantID.String(), Token: claims.JTI,
			Message: receiptlog.SealMessage(line.Salt, "talk-1", fmt.Sprint("m", seq)),
			Receipt: receiptlog.SealReceipt(line.Salt, r.JWS[:strings.LastIndex(r.JWS, ".")]),
			Began:   "2026-11-30T12:00:00.000Z", At: fmt.Sprintf("2026-11-30T12:00:00.00%dZ", seq), Logged: "2026-11-30T12:00:00.000Z",
		}
		if seq == 1 {
			want.Previous = receiptlog.Text(first)
		}
		if e != want {
			t.Errorf("%+v, want %+v", e, want)
		}
		text, leaf, err := want.Leaf()
		if err != nil || string(text) != string(line.Entry) {
			t.Errorf("%s", line.Entry)
		}
		first = leaf
		for _, secret := range []string{"guest-7", "talk-1", "alex", "bookings", receiptlog.SealMessage(nil, "talk-1", fmt.Sprint("m", seq))} {
			if strings.Contains(string(line.Entry), secret) {
				t.Errorf("an entry tells %q: %s", secret, line.Entry)
			}
		}
	}
}

// R75: inclusion and consistency are proved against checkpoints that somebody
// remembered; and whatever is changed in the rows is found before anything more is
// signed.
func TestTheLogProvesItself(t *testing.T) {
	w, a, tokens, _ := logged(t, 5)
	old, err := a.Checkpoint(t.Context(), w.Hotel)
	if err != nil || old.Size != 5 {
		t.Fatalf("%+v, %v", old, err)
	}
	_, oldRoot := readCheckpoint(t, w, old)
	for i := range 8 {
		countersigned(t, a, w.Hotel, servedTurn(tokens, fmt.Sprint("later", i)))
	}
	w.Clock.Advance(authority.CheckpointTTL)
	now, err := a.Checkpoint(t.Context(), w.Hotel)
	if err != nil || now.Size != 13 {
		t.Fatalf("%+v, %v", now, err)
	}
	_, root := readCheckpoint(t, w, now)
	p, err := a.Consistency(t.Context(), w.Hotel.ID, old.Size, now.Size)
	if err != nil || tlog.CheckTree(p, now.Size, root, old.Size, oldRoot) != nil {
		t.Errorf("consistency: %v", err)
	}
	for seq := range now.Size {
		line, err := a.LogEntry(t.Context(), w.Hotel.ID, seq)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := a.Inclusion(t.Context(), w.Hotel.ID, seq, now.Size)
		if err != nil || tlog.CheckRecord(proof, now.Size, root, seq, tlog.RecordHash(line.Entry)) != nil {
			t.Errorf("inclusion of %d: %v", seq, err)
		}
	}
	for _, bad := range [][2]int64{{0, 0}, {13, 13}, {-1, 5}, {3, 14}} {
		_, err := a.Inclusion(t.Context(), w.Hotel.ID, bad[0], bad[1])
		wantErr(t, err, authority.ErrUnknown)
	}
	for _, bad := range [][2]int64{{0, 5}, {6, 5}, {5, 14}} {
		_, err := a.Consistency(t.Context(), w.Hotel.ID, bad[0], bad[1])
		wantErr(t, err, authority.ErrUnknown)
	}
	_, err = a.LogEntry(t.Context(), w.Shop.ID, 1)
	wantErr(t, err, authority.ErrUnknown)
	_, err = a.Inclusion(t.Context(), w.Shop.ID, 1, 5)
	wantErr(t, err, authority.ErrUnknown)
}

// R75, R78: what was deleted, cut off or rewritten of what was signed is found, and
// nothing is signed of it. What goes on deeper in the tree the verifier of the whole
// log finds (authority/verify).
func TestATamperedLogIsNotSigned(t *testing.T) {
	for name, sql := range map[string]string{
		"deleted":       `DELETE FROM receipts WHERE seq = 3`,
		"rewritten":     `UPDATE receipts SET hashes = set_byte(hashes, 70, get_byte(hashes, 70) # 1) WHERE seq = 3`,
		"cut off":       `DELETE FROM receipts; DELETE FROM log_heads`,
		"head replaced": `UPDATE log_heads SET size = 8, edge = (SELECT substr(hashes, 1, 32) FROM receipts WHERE seq = 4)`,
		"set back":      `DELETE FROM log_heads; INSERT INTO log_heads SELECT brand_id, 2, substr(hashes, 33, 32), substr(hashes, 1, 32), at FROM receipts WHERE seq = 1`,
		"written anew":  `DELETE FROM receipts; DELETE FROM log_heads`,
		"last bit":      `UPDATE log_heads SET size = 7, edge = set_byte(edge, 0, get_byte(edge, 0) # 1)`,
	} {
		t.Run(name, func(t *testing.T) {
			w, a, tokens, _ := logged(t, 4)
			if _, err := a.Checkpoint(t.Context(), w.Hotel); err != nil {
				t.Fatal(err)
			}
			if name != "cut off" {
				for i := range 2 {
					countersigned(t, a, w.Hotel, servedTurn(tokens, fmt.Sprint("later", i)))
				}
			}
			for _, one := range strings.Split(sql, ";") {
				w.Exec(t, one)
			}
			if name == "written anew" { // a log as good as any, but for what was signed
				for i := range 6 {
					countersigned(t, a, w.Hotel, servedTurn(tokens, fmt.Sprint("anew", i)))
				}
			}
			w.Clock.Advance(authority.CheckpointTTL)
			_, err := a.Checkpoint(t.Context(), w.Hotel)
			wantErr(t, err, authority.ErrForked)
			if n := w.Count(t, `SELECT count(*) FROM log_checkpoints`); n != 1 {
				t.Errorf("%d checkpoints", n)
			}
		})
	}
}

// R75: in a long log proofs are made of what is remembered of the tree too, and
// hold; what is signed is read from the rows, where a change is found all the same.
func TestALongLogProvesItselfAndIsReadToBeSigned(t *testing.T) {
	w, a, tokens, _ := logged(t, 600)
	old, err := a.Checkpoint(t.Context(), w.Hotel)
	if err != nil || old.Size != 600 {
		t.Fatalf("%+v, %v", old, err)
	}
	_, root := readCheckpoint(t, w, old)
	proves := func(when string) {
		t.Helper()
		for _, seq := range []int64{0, 255, 256, 511, 512, 599} {
			line, err := a.LogEntry(t.Context(), w.Hotel.ID, seq)
			if err != nil {
				t.Fatal(err)
			}
			proof, err := a.Inclusion(t.Context(), w.Hotel.ID, seq, old.Size)
			if err != nil || tlog.CheckRecord(proof, old.Size, root, seq, tlog.RecordHash(line.Entry)) != nil {
				t.Errorf("%s, inclusion of %d: %v", when, seq, err)
			}
		}
	}
	proves("read")
	proves("remembered")
	// The hash of 512 lines stands last beside the line that completed them.
	w.Exec(t, `UPDATE receipts SET hashes = set_byte(hashes, length(hashes) - 1, get_byte(hashes, length(hashes) - 1) # 1) WHERE seq = 511`)
	countersigned(t, a, w.Hotel, servedTurn(tokens, "later"))
	w.Clock.Advance(authority.CheckpointTTL)
	_, err = a.Checkpoint(t.Context(), w.Hotel)
	wantErr(t, err, authority.ErrForked)
	// Another Brand's tree is another.
	if _, err := a.Inclusion(t.Context(), w.Shop.ID, 0, 600); !errors.Is(err, authority.ErrUnknown) {
		t.Errorf("another Brand's: %v", err)
	}
}

// R78: for one size there is one root; the database itself has no room for another,
// and the service cannot rewrite what was logged or signed.
func TestOneSizeHasOneRoot(t *testing.T) {
	w, a, _, _ := logged(t, 3)
	first, err := a.Checkpoint(t.Context(), w.Hotel)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Hour)
	if again, err := w.Authority(nil).Checkpoint(t.Context(), w.Hotel); err != nil || again != first {
		t.Errorf("%+v, %v", again, err)
	}
	// A log that was written anew, with its signatures gone, still has its roots.
	w.Exec(t, `DELETE FROM log_checkpoints`)
	w.Exec(t, `UPDATE log_roots SET root = sha256('another')`)
	_, err = w.Authority(nil).Checkpoint(t.Context(), w.Hotel)
	wantErr(t, err, authority.ErrForked)
	for _, sql := range []string{
		`UPDATE receipts SET late = true`, `DELETE FROM receipts`, `UPDATE log_roots SET size = 9`, `DELETE FROM log_roots`,
		`UPDATE log_checkpoints SET jws = ''`, `DELETE FROM log_checkpoints`, `UPDATE task_receipts SET jws = ''`,
		`UPDATE log_heads SET size = 1`, `DELETE FROM log_heads`,
		`INSERT INTO log_roots SELECT brand_id, size, sha256('another') FROM log_roots`,
	} {
		if _, err := w.DB.Exec(t.Context(), w.Hotel.ID, sql, nil); err == nil {
			t.Errorf("the service may: %s", sql)
		}
	}
}

// R80: when the clock is turned back the order stands, and the log says so.
func TestAClockTurnedBackIsMarked(t *testing.T) {
	w, a, tokens, _ := logged(t, 2)
	w.Clock.Advance(10 * time.Second)
	countersigned(t, a, w.Hotel, servedTurn(tokens, "x"))
	w.Clock.Advance(-9 * time.Second)
	r := countersigned(t, a, w.Hotel, servedTurn(tokens, "y"))
	line, err := a.LogEntry(t.Context(), w.Hotel.ID, r.Seq)
	if err != nil || r.Seq != 3 || !strings.Contains(string(line.Entry), `"clockBack":true`) {
		t.Errorf("%d: %s, %v", r.Seq, line.Entry, err)
	}
	if now := receiptlog.At(w.Clock.Now()); !strings.Contains(string(r.Claims), now) {
		t.Errorf("at %s: %s", now, r.Claims)
	}
	// It is the line before that counts, not the latest time of all.
	w.Clock.Advance(time.Second)
	r = countersigned(t, a, w.Hotel, servedTurn(tokens, "z"))
	line, err = a.LogEntry(t.Context(), w.Hotel.ID, r.Seq)
	if err != nil || r.Seq != 4 || !strings.Contains(string(line.Entry), `"clockBack":false`) {
		t.Errorf("%d: %s, %v", r.Seq, line.Entry, err)
	}
	// And the whole log is signed with the time that it then is, for others to see.
	w.Clock.Advance(30 * time.Minute)
	before, err := a.Checkpoint(t.Context(), w.Hotel)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(-20 * time.Minute)
	countersigned(t, a, w.Hotel, servedTurn(tokens, "u"))
	after, err := a.Checkpoint(t.Context(), w.Hotel)
	if err != nil || after.Size != before.Size+1 || !after.At.Before(before.At) {
		t.Errorf("%+v after %+v, %v", after, before, err)
	}
}

// R77, wire.md §2: a checkpoint is signed by the key of the day; a new key signs the
// same root anew, and while none can sign the last one stands.
func TestEveryKeySignsTheLog(t *testing.T) {
	w := authoritytest.New(t)
	keys, down := w.NewKeys(), false
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if down {
			return "", errors.New("vault is sealed")
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	empty, err := a.Checkpoint(t.Context(), w.Shop)
	if err != nil || empty.Size != 0 {
		t.Fatalf("an empty log: %+v, %v", empty, err)
	}
	tokens := delegated(t, w, a, "bookings:read")
	countersigned(t, a, w.Hotel, servedTurn(tokens, "m"))
	if err := a.KeepCheckpoint(t.Context(), w.Hotel); err != nil {
		t.Fatal(err)
	}
	first, err := a.Checkpoint(t.Context(), w.Hotel)
	if err != nil || w.Count(t, `SELECT count(*) FROM log_checkpoints WHERE brand_id = 'harbor-hotel'`) != 1 {
		t.Fatal(err)
	}
	w.Exec(t, `UPDATE signing_keys SET state = 'retired' WHERE brand_id = 'harbor-hotel'`)
	if err := keys.Ensure(t.Context(), w.Hotel.ID, "local", signing.ES256); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(10 * time.Second)
	down = true
	if c, err := a.Checkpoint(t.Context(), w.Hotel); err != nil || c != first {
		t.Errorf("%+v, %v", c, err)
	}
	down = false
	if err := a.KeepCheckpoint(t.Context(), w.Hotel); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(10 * time.Second)
	second, err := a.Checkpoint(t.Context(), w.Hotel)
	if err != nil || second.Size != first.Size || second.JWS == first.JWS {
		t.Errorf("%+v, %v", second, err)
	}
	_, one := readCheckpoint(t, w, first)
	if _, two := readCheckpoint(t, w, second); one != two {
		t.Error("another root")
	}
}

// Appending of one Brand waits for no other: while one log is locked, another grows.
func TestLogsDoNotWaitForOneAnother(t *testing.T) {
	w, a, _, _ := logged(t, 1)
	shop := authoritytest.Begin(t, a, w.Shop, alex, "orders:read")
	authoritytest.Approve(t, a, w.Shop, shop, "guest-7", "orders:read")
	tokens, err := a.Poll(t.Context(), w.Shop, alex, shop.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := w.Owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `SELECT FROM log_heads WHERE brand_id = 'harbor-hotel' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	served := servedTurn(tokens, "m")
	served.ScopesUsed = []string{"orders:read"}
	if r := countersigned(t, a, w.Shop, served); r.Seq != 0 {
		t.Errorf("%+v", r)
	}
}

// A task receipt binds a conversation's receipts in their order; the same receipts
// give the same one, later ones another.
func TestATaskReceiptBindsTheConversation(t *testing.T) {
	w, a, tokens, receipts := logged(t, 3)
	foreign := servedTurn(tokens, "m")
	foreign.ContextID = "talk-2"
	countersigned(t, a, w.Hotel, foreign)
	var got [4]authority.TaskReceipt
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = a.CountersignTask(t.Context(), w.Hotel, tokens.GrantID, "talk-1"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var edge receiptlog.Edge
	for _, r := range receipts {
		edge.Append(tlog.RecordHash(r.Claims))
	}
	says, err := w.Keys.Verify(t.Context(), w.Hotel.ID, signing.TypTaskReceipt, got[0].JWS)
	want := fmt.Sprintf(`{"brand":%q,"contextId":"talk-1","count":3,"grantId":%q,"pa":%q,"root":%q,"ts":"2026-11-30T12:00:00.000Z","user":"guest-7"}`,
		w.Hotel.InterfaceURL, tokens.GrantID, authoritytest.Agent, receiptlog.Text(edge.Root()))
	if err != nil || string(says) != want || string(got[0].Claims) != want {
		t.Errorf("%s, %v", says, err)
	}
	for _, g := range got {
		if g.JWS != got[0].JWS {
			t.Error("two task receipts of the same receipts")
		}
	}
	countersigned(t, a, w.Hotel, servedTurn(tokens, "one more"))
	more, err := a.CountersignTask(t.Context(), w.Hotel, tokens.GrantID, "talk-1")
	if err != nil || more.Count != 4 || more.Again {
		t.Errorf("%+v, %v", more, err)
	}
	for name, call := range map[string]func() (authority.TaskReceipt, error){
		"another Brand": func() (authority.TaskReceipt, error) {
			return a.CountersignTask(t.Context(), w.Shop, tokens.GrantID, "talk-1")
		},
		"another conversation": func() (authority.TaskReceipt, error) {
			return a.CountersignTask(t.Context(), w.Hotel, tokens.GrantID, "talk-9")
		},
	} {
		if _, err := call(); !errors.Is(err, authority.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Brand that moves calls its log by another name. What was signed under the former
// one is kept, and never served any more: every verifier would refuse it. The same
// key signs the same root under the new name, at once.
func TestALogThatMovedIsSignedAnew(t *testing.T) {
	down := false
	w, first, tokens, _ := logged(t, 2)
	keys := w.NewKeys()
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if down {
			return "", errors.New("vault is sealed")
		}
		return keys.Sign(ctx, brand, typ, payload)
	}))
	before, err := first.Checkpoint(t.Context(), w.Hotel)
	if err != nil {
		t.Fatal(err)
	}
	_, root := readCheckpoint(t, w, before)
	// As it was kept by the version before, which wrote no name down.
	w.Exec(t, `UPDATE log_checkpoints SET log = ''`)
	if c, err := a.Checkpoint(t.Context(), w.Hotel); err != nil || c != before {
		t.Fatalf("%+v, %v", c, err)
	}
	moved := *w.Hotel
	moved.Issuer = "https://moved.example/oauth"
	there := w.Hotel
	w.Hotel = &moved
	down = true
	if c, err := a.Checkpoint(t.Context(), &moved); !errors.Is(err, authority.ErrUnavailable) {
		t.Errorf("served under the former name: %+v, %v", c, err)
	}
	down = false
	if err := a.KeepCheckpoint(t.Context(), &moved); err != nil {
		t.Fatal(err)
	}
	const count = `SELECT count(*) FROM log_checkpoints WHERE brand_id = 'harbor-hotel'`
	if n := w.Count(t, count); n != 2 {
		t.Errorf("%d are kept", n)
	}
	after, err := a.Checkpoint(t.Context(), &moved)
	if err != nil || after.Size != before.Size {
		t.Fatalf("%+v, %v", after, err)
	}
	if _, now := readCheckpoint(t, w, after); now != root {
		t.Error("another root")
	}
	if err := a.KeepCheckpoint(t.Context(), &moved); err != nil || w.Count(t, count) != 2 {
		t.Errorf("signed once more: %v", err)
	}
	var kept []string
	err = a.EachCheckpoint(t.Context(), moved.ID, func(c authority.SignedCheckpoint) error {
		kept = append(kept, c.JWS)
		return nil
	})
	if err != nil || len(kept) != 2 || kept[0] != before.JWS || kept[1] != after.JWS {
		t.Errorf("%v, %v", kept, err)
	}
	// And it goes on there, as one log; and back.
	w.Clock.Advance(authority.CheckpointTTL)
	countersigned(t, first, there, servedTurn(tokens, "more"))
	w.Clock.Advance(authority.CheckpointTTL)
	grown, err := a.Checkpoint(t.Context(), &moved)
	if err != nil || grown.Size != 3 {
		t.Fatalf("%+v, %v", grown, err)
	}
	readCheckpoint(t, w, grown)
	w.Hotel = there
	back, err := a.Checkpoint(t.Context(), there)
	if err != nil || back.Size != 3 {
		t.Fatalf("%+v, %v", back, err)
	}
	readCheckpoint(t, w, back)
}
