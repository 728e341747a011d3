package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"golang.org/x/mod/sumdb/tlog"
)

// LogCheckpoint is how a Brand's log stood, as its key signed. Only Checkpoint makes
// one that says something.
type LogCheckpoint struct {
	Log  string    `json:"log"`
	Size int64     `json:"size"`
	Root tlog.Hash `json:"-"`
	At   time.Time `json:"ts"`
	KID  string    `json:"kid"`
	// Witnessed is when a witness that the caller trusts saw it, by the witness's own
	// clock (witness.Key.Open); zero: none did. It is the caller's to set.
	Witnessed time.Time `json:"-"`
}

// Checkpoint verifies a checkpoint of the log, {issuer}/log, that was fetched or
// saved. It never expires: the older one is, the more it is worth.
func Checkpoint(keys Keys, jws, log string, now time.Time) (LogCheckpoint, Report, error) {
	var report Report
	if log == "" {
		return LogCheckpoint{}, nil, fmt.Errorf("%w: the log must be given", ErrOptions)
	}
	if now.IsZero() {
		now = time.Now()
	}
	e, err := unseal(&report, keys, jws, maxToken, namesKey("countersign-checkpoint+jws"))
	if err != nil {
		return LogCheckpoint{}, report, err
	}
	c, err := readCheckpoint(&report, e.claims, log, now)
	if err != nil {
		return LogCheckpoint{}, report, err
	}
	c.KID = e.kid
	return c, report, nil
}

func readCheckpoint(report *Report, claims members, log string, now time.Time) (LogCheckpoint, error) {
	var c LogCheckpoint
	var first error
	judge := func(name string, err error, detail string) {
		if report.judge(name, err, detail); err != nil && first == nil {
			first = err
		}
	}
	err := exactly(claims, "log", log, ErrIssuer)
	c.Log = log
	judge("log", err, log)

	err = json.Unmarshal(claims["size"], &c.Size)
	if err != nil || c.Size < 0 {
		err = fmt.Errorf("%w: size is not a count", ErrMalformed)
	}
	judge("size", err, fmt.Sprintf("%d entries", c.Size))

	root, err := claims.text("root")
	if err == nil {
		var ok bool
		if c.Root, ok = receiptlog.Hash(root); !ok {
			err = fmt.Errorf("%w: root is not a hash", ErrMalformed)
		}
	}
	judge("root", err, root)

	ts, err := claims.text("ts")
	if err == nil {
		err = timely(ts, ReceiptOptions{Now: now})
	}
	if err == nil {
		c.At, err = time.Parse(time.RFC3339, ts)
	}
	judge("ts", err, "signed "+ts)
	return c, first
}

// Logged is a line of the log and the way from it to a checkpoint.
type Logged struct {
	Entry      string      // the text of {issuer}/log/entries/{seq}
	Salt       []byte      // beside it; nil: the person was erased
	Proof      []tlog.Hash // {issuer}/log/inclusion of the checkpoint's size
	Checkpoint LogCheckpoint
	// What the entry is compared with beside the receipt; empty is not compared.
	Token                  string // the jti of the delegation token
	ContextID, MessageID   string // both or neither
	MessageHash, ReplyHash string // as the turn was handed in; receiptlog.HashText of the texts at a hosted interface
}

// Inclusion verifies that the line is in the log of the checkpoint, and is of the
// receipt; an empty jws is not compared.
func Inclusion(l Logged, jws string) (receiptlog.Entry, Report, error) {
	var report Report
	if err := l.include(&report, jws); err != nil {
		return receiptlog.Entry{}, report, err
	}
	e, err := readEntry(l.Entry)
	return e, report, err
}

func (l Logged) include(report *Report, jws string) error {
	e, err := readEntry(l.Entry)
	if report.judge("entry", err, fmt.Sprintf("number %d, logged %s", e.Seq, e.Logged)) != nil {
		return err
	}
	if e.Seq >= l.Checkpoint.Size {
		err = fmt.Errorf("%w: seq: entry %d of %d", ErrProof, e.Seq, l.Checkpoint.Size)
	} else if !l.proves(e.Seq, []byte(l.Entry)) {
		err = fmt.Errorf("%w: the hashes do not lead to the root", ErrProof)
		name := blame(l.Entry, func(text []byte) bool { return l.proves(e.Seq, text) })
		if name == "" {
			name = blame(l.Entry, func(text []byte) bool {
				was, err := parseEntry(string(text))
				return err == nil && was.Seq != e.Seq && was.Seq < l.Checkpoint.Size && l.proves(was.Seq, text)
			})
		}
		if name != "" {
			err = fmt.Errorf("%w: %s was changed", err, name)
		}
	}
	if report.judge("inclusion", err, fmt.Sprintf("in the log of %d entries", l.Checkpoint.Size)) != nil {
		return err
	}
	if err := l.isOf(report, e); err != nil {
		return err
	}
	switch {
	case jws == "":
		report.skip("receipt", "none to compare with")
		return nil
	case l.Salt == nil:
		err = fmt.Errorf("%w: without the salt nothing ties the entry to the receipt", ErrProof)
	case receiptlog.SealReceipt(l.Salt, signedPart(jws)) != e.Receipt:
		err = fmt.Errorf("%w: the entry is of another receipt", ErrProof)
	default:
		err = sameTurn(e, payloadIn(jws))
	}
	return report.judge("receipt", err, "the entry is of this receipt")
}

func (l Logged) proves(seq int64, entry []byte) bool {
	return tlog.CheckRecord(l.Proof, l.Checkpoint.Size, l.Checkpoint.Root, seq, tlog.RecordHash(entry)) == nil
}

// isOf compares the entry with what the caller knows of the turn, and names what is
// another's.
func (l Logged) isOf(report *Report, e receiptlog.Entry) error {
	const without = "without the salt nothing ties the entry to it"
	for _, one := range []struct {
		name        string
		given, says string
		sealed      string
	}{
		{"token", l.Token, e.Token, l.Token},
		{"message", l.ContextID + l.MessageID, e.Message, receiptlog.SealMessage(l.Salt, l.ContextID, l.MessageID)},
		{"text", l.MessageHash, e.Text, receiptlog.SealText(l.Salt, l.MessageHash)},
		{"reply", l.ReplyHash, e.Reply, receiptlog.SealReply(l.Salt, l.ReplyHash)},
	} {
		if one.given == "" {
			continue
		}
		var err error
		switch {
		case l.Salt == nil && one.name != "token":
			err = fmt.Errorf("%w: %s: %s", ErrProof, one.name, without)
		case one.says == "":
			err = fmt.Errorf("%w: %s: the entry says nothing of it", ErrProof, one.name)
		case one.says != one.sealed:
			err = fmt.Errorf("%w: %s: the entry is of another", ErrProof, one.name)
		}
		if report.judge(one.name, err, "as given") != nil {
			return err
		}
	}
	return nil
}

// sameTurn is nil where the entry says of the receipt what the receipt does. The
// seal ties their texts together, whatever the entry says in the open; and it is by
// that that logs are searched.
func sameTurn(e receiptlog.Entry, payload []byte) error {
	c, err := receiptClaims(payload)
	switch {
	case err != nil:
		return err
	case c.GrantID != e.Grant:
		return fmt.Errorf("%w: grant: the receipt is of another", ErrProof)
	case c.TS != e.At:
		return fmt.Errorf("%w: at: the receipt is of another time", ErrProof)
	}
	return nil
}

// signedPart is what the signature of a JWS covers.
func signedPart(jws string) string { return jws[:max(0, strings.LastIndexByte(jws, '.'))] }

// readEntry reads an entry that is written as we write it, to the byte: without a
// member more or less, twice, or under another spelling.
func readEntry(text string) (receiptlog.Entry, error) {
	e, err := parseEntry(text)
	if errors.Is(err, errForm) {
		if name := garbled(text); name != "" {
			err = fmt.Errorf("%w: %s was changed", err, name)
		}
	}
	return e, err
}

// errForm is a text that is no entry in the one form that entries have.
var errForm = fmt.Errorf("%w: an entry in another form", ErrMalformed)

func parseEntry(text string) (receiptlog.Entry, error) {
	var e receiptlog.Entry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return e, errForm
	}
	if e.V > receiptlog.Version {
		return e, fmt.Errorf("%w: v: an entry of version %d, and this verifier knows %d", ErrMalformed, e.V, receiptlog.Version)
	}
	form, err := canonical.Of(e)
	if err != nil || !bytes.Equal(form, []byte(text)) || e.Seq < 0 {
		return e, errForm
	}
	return e, sound(e)
}

// sound says what is wrong with an entry in itself. One from before there were versions
// is only what the tree says of it.
func sound(e receiptlog.Entry) error {
	if e.V == 0 {
		return nil
	}
	if e.V != receiptlog.Version {
		return fmt.Errorf("%w: v: there was no version %d", ErrMalformed, e.V)
	}
	for _, at := range []struct{ name, text string }{{"began", e.Began}, {"at", e.At}, {"logged", e.Logged}} {
		if t, err := time.Parse(receiptlog.Stamp, at.text); err != nil || receiptlog.At(t) != at.text {
			return fmt.Errorf("%w: %s: not a time", ErrMalformed, at.name)
		}
	}
	for _, hash := range []struct{ name, text string }{{"message", e.Message}, {"text", e.Text}, {"reply", e.Reply}, {"receipt", e.Receipt}, {"previous", e.Previous}} {
		if _, ok := receiptlog.Hash(hash.text); !ok && hash.text != "" {
			return fmt.Errorf("%w: %s: not a hash", ErrMalformed, hash.name)
		}
	}
	if e.Direction != receiptlog.Inbound {
		return fmt.Errorf("%w: direction: it is %q", ErrMalformed, e.Direction)
	}
	return nil
}

// Consistency verifies that the older log is the beginning of the newer one, by the
// hashes of {issuer}/log/consistency. Two logs of one size must be one. Where the
// larger one was signed earlier the log's clock went back, which is flagged: the
// order is that of the entries, but times are not to be believed (R80).
func Consistency(older, newer LogCheckpoint, proof []tlog.Hash) (Report, error) {
	var report Report
	var err error
	switch {
	case older.Log != newer.Log || older.Log == "":
		err = fmt.Errorf("%w: of two logs", ErrProof)
	case older.Size > newer.Size:
		err = fmt.Errorf("%w: it had %d entries and has %d", ErrProof, older.Size, newer.Size)
	case older.Size == newer.Size:
		if older.Root != newer.Root {
			err = fmt.Errorf("%w: two logs of %d entries", ErrProof, older.Size)
		}
	case older.Size == 0: // the beginning of every log
	case tlog.CheckTree(proof, newer.Size, newer.Root, older.Size, older.Root) != nil:
		err = fmt.Errorf("%w: the log of %d entries does not begin with that of %d", ErrProof, newer.Size, older.Size)
	}
	err = report.judge("consistency", err, fmt.Sprintf("the first %d of %d entries are those that were signed", older.Size, newer.Size))
	if err == nil && newer.Size > older.Size && newer.At.Before(older.At) {
		report.flag("clock", fmt.Sprintf("it went back: %d entries were signed %s, and %d before, %s", older.Size, stamp(older.At), newer.Size, stamp(newer.At)))
	}
	return report, err
}
