package authority

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Entry is one event of a Brand's trail with all that proves it, as it is
// exported: one JSON object a line. AUDIT.md describes the format, for those who
// verify with a program of their own.
type Entry struct {
	Seq       int64   `json:"seq"` // its place: 1, 2, 3 …
	Brand     string  `json:"brand_id"`
	At        string  `json:"at"`    // UTC, with six digits of a second
	Actor     string  `json:"actor"` // user, agent, admin, operator or system
	ActorID   string  `json:"actor_id"`
	Channel   string  `json:"channel"`
	Event     string  `json:"event"`
	RequestID *string `json:"request_id"`
	GrantID   *string `json:"grant_id"`
	Trace     string  `json:"trace"`
	Detail    string  `json:"detail"` // a JSON text, byte for byte as it was written
	Salt      Octets  `json:"salt"`   // null: who and what were erased
	Digest    Octets  `json:"digest"`
	Hash      Octets  `json:"hash"`
}

// Octets are bytes that JSON shows in base64url without padding.
type Octets []byte

// MarshalJSON implements json.Marshaler.
func (o Octets) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("null"), nil
	}
	return json.Marshal(o.String())
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Octets) UnmarshalJSON(raw []byte) error {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		return err
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(*text)
	if err != nil {
		return fmt.Errorf("read base64url: %w", err)
	}
	*o = b
	return nil
}

// String shows the bytes as JSON does.
func (o Octets) String() string { return base64.RawURLEncoding.EncodeToString(o) }

// Line is the entry as a line of an export.
func (e Entry) Line() ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(e); err != nil {
		return nil, fmt.Errorf("write event %d: %w", e.Seq, err)
	}
	return b.Bytes(), nil
}

// atLayout is how the chain sees a time.
const atLayout = "2006-01-02T15:04:05.000000Z"

func auditTime(t time.Time) string { return t.UTC().Format(atLayout) }

// field is a text's length and its bytes, so that no two entries read alike.
func field(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(text))) //nolint:gosec // far below 4 GiB
	return append(b, text...)
}

// mayField is field for a text that may be null.
func mayField(b []byte, text *string) []byte {
	if text == nil {
		return append(b, 0xff, 0xff, 0xff, 0xff)
	}
	return field(b, *text)
}

// digest covers who and what under the salt, so that they can be erased and the
// chain still be verified.
func (e Entry) digest() []byte {
	b := bytes.Clone(e.Salt)
	b = field(b, e.ActorID)
	b = field(b, e.Detail)
	sum := sha256.Sum256(b)
	return sum[:]
}

// chained covers everything, through the digest given, and the entry before.
func (e Entry) chained(previous, digest []byte) []byte {
	b := bytes.Clone(previous)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Seq)) //nolint:gosec // its bits are meant
	b = field(b, e.Brand)
	b = field(b, e.At)
	b = field(b, e.Actor)
	b = field(b, e.Channel)
	b = field(b, e.Event)
	b = mayField(b, e.RequestID)
	b = mayField(b, e.GrantID)
	b = field(b, e.Trace)
	b = append(b, digest...)
	sum := sha256.Sum256(b)
	return sum[:]
}

const saltSize = 16

// erased reports whether who and what were taken out, as the law may want it.
func (e Entry) erased() bool { return e.Salt == nil && e.ActorID == "" && e.Detail == "{}" }

// Head is the newest link of a chain. Whoever remembers one outside of the
// database finds any later change of what stood before it.
type Head struct {
	Seq  int64
	Hash Octets
}

// String is SEQ:HASH.
func (h Head) String() string { return strconv.FormatInt(h.Seq, 10) + ":" + h.Hash.String() }

// ParseHead reads what String wrote.
func ParseHead(s string) (Head, error) {
	number, text, _ := strings.Cut(s, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	hash, wrong := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || wrong != nil || seq < 1 || len(hash) != sha256.Size {
		return Head{}, errors.New("a remembered head is SEQ:HASH, as audit verify prints it")
	}
	return Head{Seq: seq, Hash: hash}, nil
}

// Fault is the first thing that is wrong with a trail.
type Fault struct {
	Seq   int64  // where
	Field string // which column, or columns, or "line" of a file
	Why   string
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("event %d: %s: %s", f.Seq, f.Field, f.Why) }

// Proof is what a sound trail comes to.
type Proof struct {
	Brand  string
	Events int64 // how many were checked
	Erased int64 // how many of them no longer say who and what
	Head   Head  // Seq 0: there is none
}

// chain checks entries one after the other. It asks the database for nothing but
// the rows, so that functions changed there cannot vouch for rows changed there.
type chain struct {
	expect *Head // must be met on the way; may be nil
	met    bool
	proof  Proof
}

// start lets the chain go on from a remembered head.
func (c *chain) start(h Head) { c.proof.Head, c.met = h, true }

func (c *chain) add(e Entry) error {
	last := c.proof.Head
	wrong := func(field, why string) error { return &Fault{Seq: e.Seq, Field: field, Why: why} }
	switch {
	case e.Brand != c.proof.Brand:
		return wrong("brand_id", fmt.Sprintf("belongs to %q, not to %q", e.Brand, c.proof.Brand))
	case e.Seq > last.Seq+1:
		return &Fault{Seq: last.Seq + 1, Field: "seq", Why: fmt.Sprintf("missing; event %d comes next", e.Seq)}
	case e.Seq <= last.Seq:
		return wrong("seq", fmt.Sprintf("comes after event %d: reordered or repeated", last.Seq))
	case len(e.Digest) != sha256.Size:
		return wrong("digest", "is no SHA-256")
	case len(e.Hash) != sha256.Size:
		return wrong("hash", "is no SHA-256")
	case e.Salt == nil && !e.erased():
		return wrong("salt", "is gone, though actor_id or detail is not: no erasure leaves it so")
	case e.Salt != nil && len(e.Salt) != saltSize:
		return wrong("salt", "is not 16 bytes")
	}
	said := bytes.Equal(e.Hash, e.chained(last.Hash, e.Digest))
	if e.Salt != nil {
		switch digest := e.digest(); {
		case bytes.Equal(digest, e.Digest):
		case said:
			return wrong("actor_id, detail or salt", "was changed: the digest does not fit")
		case bytes.Equal(e.Hash, e.chained(last.Hash, digest)):
			return wrong("digest", "was changed: the hash does not fit")
		default:
			return wrong("digest, and more", "was changed: neither digest nor hash fits")
		}
	}
	if !said {
		return wrong("at, actor, channel, event, request_id, grant_id, trace, digest or hash",
			"was changed, or another event stood before it: the hash does not fit")
	}
	if e.Salt == nil {
		c.proof.Erased++
	}
	c.proof.Events++
	c.proof.Head = Head{Seq: e.Seq, Hash: e.Hash}
	return c.meet()
}

// meet compares with the remembered head when the chain passes it.
func (c *chain) meet() error {
	if c.expect == nil || c.expect.Seq != c.proof.Head.Seq {
		return nil
	}
	if !bytes.Equal(c.expect.Hash, c.proof.Head.Hash) {
		return &Fault{
			Seq: c.expect.Seq, Field: "hash",
			Why: "is not the remembered one: the trail was written anew up to here or from before here",
		}
	}
	c.met = true
	return nil
}

// finish is the end of the trail.
func (c *chain) finish() (Proof, error) {
	if c.expect != nil && !c.met {
		return c.proof, &Fault{
			Seq: c.proof.Head.Seq + 1, Field: "seq",
			Why: fmt.Sprintf("missing: the trail ends before event %d, which was remembered", c.expect.Seq),
		}
	}
	return c.proof, nil
}
