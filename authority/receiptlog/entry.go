package receiptlog

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"countersign.dev/authority/canonical"
	"golang.org/x/mod/sumdb/tlog"
)

// Entry is one line of the log. Hashes are base64url.
type Entry struct {
	V         int    `json:"v,omitempty"` // Version; absent: of before there were versions
	Seq       int64  `json:"seq"`         // 0, 1, 2 …: the index of the leaf
	Brand     string `json:"brand"`
	Direction string `json:"direction"` // inbound: the agent's turn, served by the Brand
	Grant     string `json:"grant"`
	Token     string `json:"token"`           // jti of the delegation token that was shown
	Message   string `json:"message"`         // SealMessage
	Text      string `json:"text,omitempty"`  // SealText of what the agent said; absent: nobody told
	Reply     string `json:"reply,omitempty"` // SealReply of what it was answered; absent: nobody told
	Receipt   string `json:"receipt"`         // SealReceipt
	Began     string `json:"began"`           // when the turn began, as the Brand says
	At        string `json:"at"`              // when it was countersigned: the receipt's ts
	Logged    string `json:"logged"`          // when the entry was written
	Late      bool   `json:"late"`            // token or grant had ended meanwhile
	// ClockBack: the entry before was logged later than this one. The order is
	// that of seq all the same.
	ClockBack bool   `json:"clockBack"`
	Previous  string `json:"previous"` // the leaf's hash before; empty for the first
}

// Version is the form that entries are written in. A reader refuses a higher one: it
// does not know what that says. Entries without one lack Text and Reply.
const Version = 2

// Inbound is the Direction of a turn that an agent sent.
const Inbound = "inbound"

// Leaf is the text of the entry, canonical, and its leaf hash.
func (e Entry) Leaf() ([]byte, tlog.Hash, error) {
	text, err := canonical.Of(e)
	return text, tlog.RecordHash(text), err
}

// SealMessage is the salted hash of which message the turn answered.
func SealMessage(salt []byte, contextID, messageID string) string {
	return seal("message", salt, contextID, messageID)
}

// HashText is the hash of a text, of which SealText and SealReply make what is logged. A
// Brand that keeps its texts to itself hashes them with a salt of its own instead.
func HashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// SealText is the salted hash of what the agent said, of that text's hash.
func SealText(salt []byte, hash string) string { return seal("text", salt, hash) }

// SealReply is the salted hash of what the agent was answered, of that text's hash.
func SealReply(salt []byte, hash string) string { return seal("reply", salt, hash) }

// SealReceipt is the salted hash of the receipt's header and claims, as they were
// signed; not of its signature, which anybody can write in another way (ES256).
func SealReceipt(salt []byte, signingInput string) string {
	return seal("receipt", salt, signingInput)
}

// seal hashes the purpose, the salt and the texts, each after its length as four
// bytes, most significant first.
func seal(purpose string, salt []byte, texts ...string) string {
	h := sha256.New()
	for _, text := range append([]string{purpose, string(salt)}, texts...) {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(text)))
		h.Write(length[:])
		h.Write([]byte(text))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Text writes a hash as it stands in everything signed.
func Text(h tlog.Hash) string { return base64.RawURLEncoding.EncodeToString(h[:]) }

// Hash reads what Text wrote.
func Hash(text string) (h tlog.Hash, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != len(h) {
		return h, false
	}
	return tlog.Hash(raw), true
}
