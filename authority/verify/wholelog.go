package verify

import (
	"bufio"
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
type logLine struct {
	Entry     string `json:"entry"`
	Salt      string `json:"salt"`
	JWS       string `json:"jws"`
	ContextID string `json:"contextId"`
	MessageID string `json:"messageId"`
}

// WholeLog reads receipts.ndjson of an export and verifies all of it: every entry in
// its place, chained to the one before, of the receipt and message beside it, whose
// signature verifies; and that it gives the root of every checkpoint. The error
// names the line and what is wrong with it. Signatures by revoked keys count where a
// checkpoint shows them to be older.
func WholeLog(keys Keys, lines io.Reader, archive Archive, checkpoints ...LogCheckpoint) (LogSummary, Report, error) {
	var report Report
	var sum LogSummary
	var edge receiptlog.Edge
	previous := ""
	in := bufio.NewReader(lines)
	roots := map[int64]tlog.Hash{0: edge.Root()}
	signed := map[int64]bool{} // the sizes: there may be as many checkpoints as entries
	for _, c := range checkpoints {
		if err := archive.Vouches(c); err != nil {
			err = report.judge("checkpoint", err, "")
			return sum, report, err
		}
		signed[c.Size] = true
	}
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		if err != nil {
			return sum, report, report.judge("log", fmt.Errorf("%w: line %d is cut off", ErrLog, edge.Size+1), "")
		}
		leaf, err := sum.read(keys, archive, checkpoints, text, edge.Size, previous)
		if err != nil {
			return sum, report, report.judge("log", fmt.Errorf("%w: entry %d: %w", ErrLog, edge.Size, err), "")
		}
		edge.Append(leaf)
		previous = receiptlog.Text(leaf)
		if signed[edge.Size] {
			roots[edge.Size] = edge.Root()
		}
	}
	sum.Entries, sum.Root = edge.Size, edge.Root()
	_ = report.judge("log", nil, fmt.Sprintf("%d entries, each in its place; %d with their receipts, %d erased", sum.Entries, sum.Receipts, sum.Erased))
	for _, c := range checkpoints {
		root, there := roots[c.Size]
		var err error
		if !there {
			err = fmt.Errorf("%w: %d entries were signed and %d are there", ErrLog, c.Size, sum.Entries)
		} else if root != c.Root {
			err = fmt.Errorf("%w: the first %d entries are not those that were signed", ErrLog, c.Size)
		}
		if report.judge("checkpoint", err, fmt.Sprintf("gives the root of %d entries, signed %s", c.Size, stamp(c.At))) != nil {
			return sum, report, err
		}
	}
	if len(checkpoints) == 0 {
		report.skip("checkpoint", "none to compare with: a log that was written anew looks like an honest one")
	}
	return sum, report, nil
}

// read verifies one line and returns its leaf hash.
func (sum *LogSummary) read(keys Keys, archive Archive, checkpoints []LogCheckpoint, text []byte, seq int64, previous string) (tlog.Hash, error) {
	var l logLine
	if _, err := parseObject(text); err != nil {
		return tlog.Hash{}, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return tlog.Hash{}, fmt.Errorf("%w: not a line of a log", ErrMalformed)
	}
	e, err := readEntry(l.Entry)
	switch {
	case err != nil:
		return tlog.Hash{}, err
	case e.Seq != seq:
		return tlog.Hash{}, fmt.Errorf("seq: it is number %d", e.Seq)
	case e.Previous != previous:
		return tlog.Hash{}, errors.New("previous: it does not follow the one before")
	}
	leaf := tlog.RecordHash([]byte(l.Entry))
	if l.JWS == "" {
		// They go together: a line that has kept one was not erased, but robbed of its
		// receipt.
		if l.Salt != "" || l.ContextID != "" || l.MessageID != "" {
			return leaf, errors.New("jws: it is gone, and what goes with it is there")
		}
		sum.Erased++
		return leaf, nil
	}
	sum.Receipts++
	salt, err := base64.RawURLEncoding.DecodeString(l.Salt)
	if err != nil {
		return leaf, errors.New("salt: not base64url")
	}
	if receiptlog.SealMessage(salt, l.ContextID, l.MessageID) != e.Message {
		return leaf, errors.New("message: of another message")
	}
	return leaf, isOf(e, keys, archive, checkpoints, l.JWS, salt)
}

// isOf verifies that the entry is of the receipt, and the receipt's signature.
func isOf(e receiptlog.Entry, keys Keys, archive Archive, checkpoints []LogCheckpoint, jws string, salt []byte) error {
	if receiptlog.SealReceipt(salt, signedPart(jws)) != e.Receipt {
		return errors.New("receipt: of another receipt")
	}
	opts := ReceiptOptions{Archive: archive, Now: time.Unix(1<<40, 0)}
	if revoked, ok := archive.find(kidIn(jws)); ok {
		for _, c := range checkpoints {
			if candidate := (&Logged{Checkpoint: c}); c.Size > e.Seq && archive.outlived(revoked, candidate) == nil {
				opts.Logged = candidate
			}
		}
	}
	var unread Report
	sealed, err := unsealArchived(&unread, keys, jws, "pact-receipt+jws", opts)
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
	return nil
}
