package authority_test

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority/receiptlog"
)

// R81: whoever has the log and a dictionary, and not the salt, learns nothing of what
// was said, answered, and in which conversation, though the truth stands in the
// dictionary; with the salt every line can be proved.
func TestNoDictionaryOpensALine(t *testing.T) {
	w, a, tokens, _ := logged(t, 0)
	words := []string{"yes", "no", "Cancel my booking", "Hi", "talk-1", "m1", "1", "2026-12-01"}
	turn := servedTurn(tokens, "m1")
	turn.MessageHash, turn.ReplyHash = receiptlog.HashText("yes"), receiptlog.HashText("no")
	countersigned(t, a, w.Hotel, turn)
	var entry string
	var salt []byte
	if err := w.Owner.QueryRow(t.Context(), `SELECT entry, salt FROM receipts WHERE seq = 0`).Scan(&entry, &salt); err != nil {
		t.Fatal(err)
	}
	plain := func(text string) []string {
		sum := sha256.Sum256([]byte(text))
		hash := base64.RawURLEncoding.EncodeToString(sum[:])
		twice := sha256.Sum256([]byte(hash))
		return []string{text, hash, base64.RawURLEncoding.EncodeToString(twice[:])}
	}
	for _, no := range [][]byte{nil, {}, make([]byte, len(salt)), []byte(tokens.GrantID.String()), tokens.GrantID[:]} {
		for _, one := range words {
			guesses := append(plain(one), receiptlog.SealText(no, receiptlog.HashText(one)), receiptlog.SealReply(no, receiptlog.HashText(one)),
				receiptlog.SealText(no, one), receiptlog.SealReceipt(no, one))
			for _, other := range words {
				guesses = append(guesses, receiptlog.SealMessage(no, one, other))
			}
			for _, g := range guesses {
				if len(g) > 8 && strings.Contains(entry, g) {
					t.Errorf("without the salt, %q is found in %s", one, entry)
				}
			}
		}
	}
	for what, seal := range map[string]string{
		"message": receiptlog.SealMessage(salt, "talk-1", "m1"),
		"text":    receiptlog.SealText(salt, receiptlog.HashText("yes")),
		"reply":   receiptlog.SealReply(salt, receiptlog.HashText("no")),
	} {
		if !strings.Contains(entry, seal) {
			t.Errorf("with the salt, %s is not proved by %s", what, entry)
		}
	}
	if len(salt) < 16 || slices.Equal(salt, make([]byte, len(salt))) {
		t.Errorf("a salt of %d bytes", len(salt))
	}
}
