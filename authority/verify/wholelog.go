package verify

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"countersign.dev/authority/receiptlog"
	"golang.org/x/mod/sumdb/tlog"
)

// LogSummary is what a whole log was found to be.
type LogSummary struct {
	Entries  int64
	Receipts int64 // that stand beside their entries
	Erased   int64 // whose receipts are gone
	Root     tlog.Hash
}

// logLine is a line of an export's receipts.ndjson.
type logLine struct{ Entry, Salt, JWS, ContextID, MessageID string }

// logReader is what the lines so far leave behind for the next ones.
type logReader struct {
	keys        Keys
	archive     Archive
	checkpoints []LogCheckpoint

	sum      LogSummary
	edge     receiptlog.Edge
	previous string          // the leaf's hash before
	text     string          // and its text
	logged   string          // and when it was logged
	before   receiptlog.Edge // the tree without it
	brand    string          // of the first entry
	// messages are those that have their receipt: some forty bytes each, whatever
	// their ids weigh.
	messages map[[16]byte]struct{}
	address  string // the interface URL that the last receipt names
	moves    int    // how often that was another than before
	moved    int64  // the last such entry
}

// WholeLog reads receipts.ndjson of an export and verifies all of it: every entry in
// its place, chained to the one before, of the same Brand, of the receipt and message
// beside it, whose signature verifies; that no message has two receipts; and that it
// gives the root of every checkpoint. The error names the line and what is wrong with
// it. Signatures by revoked keys count where a checkpoint shows them to be older.
//
// Of an erased line nobody can tell which message it was of. A Brand that moves gets
// receipts that name its new interface: that is flagged, with the place.
func WholeLog(keys Keys, lines io.Reader, archive Archive, checkpoints ...LogCheckpoint) (LogSummary, Report, error) {
	var report Report
	l := logReader{keys: keys, archive: archive, checkpoints: checkpoints, messages: map[[16]byte]struct{}{}}
	in := bufio.NewReader(lines)
	roots := map[int64]tlog.Hash{0: l.edge.Root()}
	signed := map[int64]bool{} // the sizes: there may be as many checkpoints as entries
	for _, c := range checkpoints {
		if err := archive.Vouches(c); err != nil {
			err = report.judge("checkpoint", err, "")
			return l.sum, report, err
		}
		signed[c.Size] = true
	}
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		if err != nil {
			return l.sum, report, report.judge("log", fmt.Errorf("%w: line %d is cut off", ErrLog, l.edge.Size+1), "")
		}
		leaf, err := l.read(text)
		if changed := new(changedError); errors.As(err, &changed) {
			return l.sum, report, report.judge("log", fmt.Errorf("%w: entry %d: %w", ErrLog, l.edge.Size-1, err), "")
		}
		if err != nil {
			return l.sum, report, report.judge("log", fmt.Errorf("%w: entry %d: %w", ErrLog, l.edge.Size, err), "")
		}
		if l.before, err = receiptlog.ReadEdge(l.edge.Size, l.edge.Bytes()); err != nil {
			return l.sum, report, err
		}
		l.edge.Append(leaf)
		l.previous = receiptlog.Text(leaf)
		if signed[l.edge.Size] {
			roots[l.edge.Size] = l.edge.Root()
		}
	}
	l.sum.Entries, l.sum.Root = l.edge.Size, l.edge.Root()
	_ = report.judge("log", nil, fmt.Sprintf("%d entries of one Brand, each in its place; %d with their receipts, no two of one message; %d erased", l.sum.Entries, l.sum.Receipts, l.sum.Erased))
	if l.moves > 0 {
		report.flag("brand", fmt.Sprintf("its receipts name another interface than before, %d times, the last from entry %d on: %s. So it is with a Brand that moved, and with no other", l.moves, l.moved, l.address))
	}
	for _, c := range checkpoints {
		root, there := roots[c.Size]
		var err error
		if !there {
			err = fmt.Errorf("%w: %d entries were signed and %d are there", ErrLog, c.Size, l.sum.Entries)
		} else if root != c.Root {
			err = fmt.Errorf("%w: the first %d entries are not those that were signed", ErrLog, c.Size)
			if name := l.blameLast(c); name != "" {
				err = fmt.Errorf("%w: entry %d: %s was changed", err, c.Size-1, name)
			}
		}
		if report.judge("checkpoint", err, fmt.Sprintf("gives the root of %d entries, signed %s", c.Size, stamp(c.At))) != nil {
			return l.sum, report, err
		}
	}
	if len(checkpoints) == 0 {
		report.skip("checkpoint", "none to compare with: a log that was written anew looks like an honest one")
	}
	return l.sum, report, nil
}

// read verifies one line and returns its leaf hash.
func (l *logReader) read(text []byte) (tlog.Hash, error) {
	var line logLine
	m, err := parseObject(text)
	if err != nil {
		return tlog.Hash{}, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	// By their exact names: a decoder takes others for them.
	for name, into := range map[string]*string{
		"entry": &line.Entry, "salt": &line.Salt, "jws": &line.JWS, "contextId": &line.ContextID, "messageId": &line.MessageID,
	} {
		if raw, there := m[name]; there && json.Unmarshal(raw, into) != nil {
			return tlog.Hash{}, fmt.Errorf("%w: %s: not a text", ErrMalformed, name)
		}
	}
	e, err := readEntry(line.Entry)
	if l.edge.Size == 0 {
		l.brand = e.Brand
	}
	switch {
	case err != nil:
		return tlog.Hash{}, err
	case e.Seq != l.edge.Size:
		return tlog.Hash{}, fmt.Errorf("seq: it is number %d", e.Seq)
	case e.Previous != l.previous:
		if name := blame(l.text, func(text []byte) bool { return receiptlog.Text(tlog.RecordHash(text)) == e.Previous }); name != "" {
			return tlog.Hash{}, &changedError{name}
		}
		return tlog.Hash{}, errors.New("previous: it does not follow the one before")
	case e.Brand != l.brand:
		return tlog.Hash{}, fmt.Errorf("brand: it is of %q, and the first of %q", e.Brand, l.brand)
	}
	if e.V > 0 && e.ClockBack != (e.Seq > 0 && e.Logged < l.logged) {
		return tlog.Hash{}, fmt.Errorf("clockBack: it is %t, logged %s after %s", e.ClockBack, e.Logged, l.logged)
	}
	l.text, l.logged = line.Entry, e.Logged
	leaf := tlog.RecordHash([]byte(line.Entry))
	if line.JWS == "" {
		// They go together: a line that has kept one was not erased, but robbed of its
		// receipt.
		if line.Salt != "" || line.ContextID != "" || line.MessageID != "" {
			return leaf, errors.New("jws: it is gone, and what goes with it is there")
		}
		l.sum.Erased++
		return leaf, nil
	}
	l.sum.Receipts++
	salt, err := base64.RawURLEncoding.Strict().DecodeString(line.Salt)
	if err != nil {
		return leaf, errors.New("salt: not base64url")
	}
	if receiptlog.SealMessage(salt, line.ContextID, line.MessageID) != e.Message {
		return leaf, errors.New("message: of another message")
	}
	if err := l.once(e.Grant, line.ContextID, line.MessageID); err != nil {
		return leaf, err
	}
	return leaf, l.isOf(e, line.JWS, salt)
}

// changedError names what was changed of the entry before, as the one after it shows.
type changedError struct{ name string }

func (e *changedError) Error() string { return e.name + ": it was changed" }

// blameLast names what was changed of the last entry, where the checkpoint is of all.
func (l *logReader) blameLast(c LogCheckpoint) string {
	if c.Size != l.edge.Size || c.Size == 0 {
		return ""
	}
	return blame(l.text, func(text []byte) bool {
		edge, err := receiptlog.ReadEdge(l.before.Size, l.before.Bytes())
		if err != nil {
			return false
		}
		edge.Append(tlog.RecordHash(text))
		return edge.Root() == c.Root
	})
}

// once refuses the second receipt of one message: what was done in it would be what
// its writer likes to show.
func (l *logReader) once(grant, contextID, messageID string) error {
	text, err := json.Marshal([]string{grant, contextID, messageID})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	key := [16]byte(sum[:16])
	if _, there := l.messages[key]; there {
		return errors.New("message: it has a receipt before this one")
	}
	l.messages[key] = struct{}{}
	return nil
}

// isOf verifies that the entry is of the receipt, and the receipt's signature.
func (l *logReader) isOf(e receiptlog.Entry, jws string, salt []byte) error {
	if receiptlog.SealReceipt(salt, signedPart(jws)) != e.Receipt {
		return errors.New("receipt: of another receipt")
	}
	opts := ReceiptOptions{Archive: l.archive, Now: time.Unix(1<<40, 0)}
	if revoked, ok := l.archive.find(kidIn(jws)); ok {
		for _, c := range l.checkpoints {
			if candidate := (&Logged{Checkpoint: c}); c.Size > e.Seq && l.archive.outlived(revoked, candidate) == nil {
				opts.Logged = candidate
			}
		}
	}
	var unread Report
	sealed, err := unsealArchived(&unread, l.keys, jws, "pact-receipt+jws", opts)
	if err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	c, err := receiptClaims(sealed.payload)
	switch {
	case err != nil:
		return fmt.Errorf("receipt: %w", err)
	case c.GrantID != e.Grant:
		return errors.New("grant: the receipt is of another")
	case c.TS != e.At:
		return errors.New("at: the receipt is of another time")
	}
	if l.sum.Receipts > 1 && c.Brand != l.address {
		l.moves, l.moved = l.moves+1, e.Seq
	}
	l.address = c.Brand
	return nil
}
