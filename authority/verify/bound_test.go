package verify_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"countersign.dev/authority"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/verify"
	"golang.org/x/mod/sumdb/tlog"
)

// bound is a log whose entries say all that they can, and its checkpoint.
func bound(t *testing.T, turns int) (*issued, []string, verify.LogCheckpoint) {
	t.Helper()
	i := issue(t, 0)
	for n := range turns {
		r, err := i.rules.Countersign(t.Context(), i.Hotel, authority.Turn{
			Token: i.token, ContextID: "talk", MessageID: fmt.Sprint("m", n), ScopesUsed: []string{"bookings:read"},
			MessageHash: verify.SaltedHash([]byte("the Brand's own"), "Yes"), ReplyHash: verify.SaltedHash([]byte("the Brand's own"), "Done."),
		})
		if err != nil {
			t.Fatal(err)
		}
		i.receipts = append(i.receipts, r)
	}
	lines := i.exported(t)
	lines[len(lines)-1] += "\n"
	return i, lines, i.checkpoint(t)
}

// R74: an entry binds what was said, what was answered and which way, Brand, grant,
// token, times, place and the entry before. Whichever bit of it is changed, the verifier
// says of which member; in the middle of a log by the line after it, and at its end, or
// for one line alone, by the checkpoint.
func TestWhicheverBitIsChangedItsMemberIsNamed(t *testing.T) {
	i, lines, c := bound(t, 3)
	for _, at := range []int{1, 2} {
		var line map[string]string
		if err := json.Unmarshal([]byte(lines[at]), &line); err != nil {
			t.Fatal(err)
		}
		entry := line["entry"]
		proof, err := i.rules.Inclusion(t.Context(), i.Hotel.ID, int64(at), c.Size)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(entry), &members); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"v", "seq", "brand", "direction", "grant", "token", "message", "text", "reply", "receipt", "began", "at", "logged", "late", "clockBack", "previous"} {
			value, there := members[name]
			if !there {
				t.Fatalf("an entry without %s: %s", name, entry)
			}
			from := strings.Index(entry, `"`+name+`":`) + len(name) + 3
			for b := range len(value) {
				for bit := range 8 {
					const short = 6
					if len(value) > short && (bit != (b/3+at)%7 || b%3 != 0) {
						continue // of a long one, some
					}
					changed := []byte(entry)
					changed[from+b] ^= 1 << bit
					if !utf8.Valid(changed) {
						continue // no text at all: it could not be in a line
					}
					line["entry"] = string(changed)
					text, err := json.Marshal(line)
					if err != nil {
						t.Fatal(err)
					}
					with := slices.Clone(lines)
					with[at] = string(text) + "\n"
					_, _, err = verify.WholeLog(i.keys, strings.NewReader(strings.Join(with, "")), verify.Archive{}, c)
					if err == nil || !strings.Contains(err.Error(), name) {
						t.Errorf("line %d, %s, byte %d, bit %d: %v", at, name, b, bit, err)
					}
					l := verify.Logged{Entry: string(changed), Proof: proof, Checkpoint: c}
					if _, _, err := verify.Inclusion(l, ""); err == nil || !strings.Contains(err.Error(), name) {
						t.Errorf("line %d alone, %s, byte %d, bit %d: %v", at, name, b, bit, err)
					}
				}
			}
		}
		// A yes that was a no is more than one bit.
		for _, name := range []string{"late", "clockBack"} {
			line["entry"] = strings.Replace(entry, `"`+name+`":false`, `"`+name+`":true`, 1)
			l := verify.Logged{Entry: line["entry"], Proof: proof, Checkpoint: c}
			if _, _, err := verify.Inclusion(l, ""); err == nil || !strings.Contains(err.Error(), name+" was changed") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// jtiOf is the identity of a token.
func jtiOf(t *testing.T, token string) string {
	t.Helper()
	var claims struct{ JTI string }
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(body, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims.JTI
}

// R74, R81: whoever knows what was said, what was answered, the message and the token
// finds them in the entry, each by its name; without the salt nobody finds anything.
func TestAnEntryIsOfWhatItsHolderKnows(t *testing.T) {
	i, _, c := bound(t, 2)
	logged := func() verify.Logged {
		l := i.logged(t, 1, c)
		l.Token, l.ContextID, l.MessageID = jtiOf(t, i.token), "talk", "m1"
		l.MessageHash, l.ReplyHash = verify.SaltedHash([]byte("the Brand's own"), "Yes"), verify.SaltedHash([]byte("the Brand's own"), "Done.")
		return *l
	}
	if _, _, err := verify.Inclusion(logged(), i.receipts[1].JWS); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*verify.Logged){
		"token":   func(l *verify.Logged) { l.Token += "x" },
		"message": func(l *verify.Logged) { l.MessageID = "m0" },
		"text":    func(l *verify.Logged) { l.MessageHash = verify.SaltedHash([]byte("the Brand's own"), "No") },
		"reply":   func(l *verify.Logged) { l.ReplyHash = l.MessageHash },
	} {
		l := logged()
		change(&l)
		if _, _, err := verify.Inclusion(l, i.receipts[1].JWS); err == nil || !strings.Contains(err.Error(), ": "+name+": ") {
			t.Errorf("another %s: %v", name, err)
		}
		l = logged()
		l.Salt = nil
		if change(&l); name != "token" {
			l.Token = ""
		}
		if _, _, err := verify.Inclusion(l, ""); err == nil {
			t.Errorf("another %s, without the salt", name)
		}
	}
	// Neither hash stands in the entry as it was given, nor that of the text alone.
	l := logged()
	for _, secret := range []string{l.MessageHash, l.ReplyHash, receiptlog.HashText("Yes"), receiptlog.HashText("Done.")} {
		if strings.Contains(l.Entry, secret) {
			t.Errorf("the entry holds %s: %s", secret, l.Entry)
		}
	}
}

// An entry from before there were versions verifies as ever; one of a version to come is
// refused by that name.
func TestEntriesOfEveryVersion(t *testing.T) {
	const former = `{"at":"2026-11-30T12:00:00.000Z","began":"2026-11-30T12:00:00.000Z","brand":"harbor-hotel","clockBack":false,"direction":"inbound","grant":"g","late":false,"logged":"2026-11-30T12:00:00.000Z","message":"m","previous":"","receipt":"r","seq":0,"token":"t"}`
	one := func(entry string) error {
		_, _, err := verify.Inclusion(verify.Logged{Entry: entry, Checkpoint: verify.LogCheckpoint{Size: 1, Root: tlog.RecordHash([]byte(entry))}}, "")
		return err
	}
	if err := one(former); err != nil {
		t.Error(err)
	}
	for _, v := range []string{"1", "3", "-1"} {
		if err := one(strings.Replace(former, `}`, `,"v":`+v+`}`, 1)); err == nil || !strings.Contains(err.Error(), "v: ") {
			t.Errorf("version %s: %v", v, err)
		}
	}
}
