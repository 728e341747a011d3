package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/verify"
	"countersign.dev/authority/witness"
	"countersign.dev/cmd/countersign/filelock"
	"countersign.dev/cmd/countersign/pa/discovery"
	"golang.org/x/mod/sumdb/tlog"
)

// refusal is what is printed of a log that contradicts itself: everybody can see
// it from this, with the Brand's keys.
type refusal struct {
	Refused    string   `json:"refused"`
	Remembered string   `json:"remembered"` // the JWS that was signed before
	Shown      string   `json:"shown"`      // the one that was not
	Hashes     []string `json:"hashes"`     // the proof that came with it
}

// shown is what the log shows now.
type shown struct {
	jws        string
	checkpoint verify.LogCheckpoint
	hashes     []string
	proof      []tlog.Hash
}

// look is one look at a log. The lock is held throughout, so that two looks at once
// do not sign what contradicts one another.
func look(ctx context.Context, a arguments, now func() time.Time, stdout, stderr io.Writer) (code int, err error) {
	signer, err := readKey(a.key)
	if err != nil {
		return 0, err
	}
	release, err := filelock.Take(ctx, a.log+".lock")
	if err != nil {
		return 0, fmt.Errorf("lock %s: %w", a.log, err)
	}
	defer release()
	m := memory{a.log}
	last, err := m.last(signer.Key())
	if err != nil {
		return 0, err
	}
	s, err := fetch(ctx, a.issuer, last, now)
	if err != nil {
		return 0, err
	}
	at := now()
	doubt := ""
	if last == nil {
		fmt.Fprintln(stderr, "The first look: there is nothing yet that the log must continue.")
	} else {
		err := witness.Continues(last.Seen, s.checkpoint, s.proof, at)
		if errors.Is(err, verify.ErrProof) {
			fmt.Fprintf(stderr, "Refused: %v\n", err)
			return exitRefused, printLine(stdout, refusal{err.Error(), last.line.JWS, s.jws, s.hashes})
		}
		if err != nil {
			return 0, err
		}
		doubt = witness.ClockBack(last.Seen, s.checkpoint)
	}
	l := line{JWS: s.jws, ClockBack: doubt}
	if l.Note, err = signer.Sign(s.checkpoint, at); err != nil {
		return 0, err
	}
	// Written before it is said: what somebody has of us we never forget. That is also
	// the time of a look at which nothing was new: what comes next is younger than that,
	// by the log's clock and by ours.
	if last == nil || s.checkpoint.Size > last.Checkpoint.Size {
		err = m.add(l)
	} else {
		last.line.Again = l.Note
		err = m.replace(last.line)
	}
	if err != nil {
		return 0, err
	}
	if err := printLine(stdout, l); err != nil {
		return 0, err
	}
	if doubt != "" {
		fmt.Fprintf(stderr, "The log's clock cannot have been right: %s.\n", doubt)
		return exitDoubtful, nil
	}
	return exitSigned, nil
}

// fetch gets the checkpoint, and the proof that it continues the last one.
func fetch(ctx context.Context, issuer string, last *remembered, now func() time.Time) (shown, error) {
	var client discovery.Client
	var s shown
	log := issuer + "/log"
	if last != nil && last.Checkpoint.Log != log {
		return s, fmt.Errorf("the file remembers %s, and this is %s: take another file", last.Checkpoint.Log, log)
	}
	if _, err := discovery.Address("the issuer", issuer); err != nil {
		return s, err
	}
	raw, err := client.Get(ctx, "the Brand's keys", issuer+"/jwks.json")
	if err != nil {
		return s, err
	}
	keys, err := verify.ParseKeys(raw)
	if err != nil {
		return s, fmt.Errorf("read the Brand's keys: %w", err)
	}
	if raw, err = client.Get(ctx, "the checkpoint", log+"/checkpoint"); err != nil {
		return s, err
	}
	s.jws = strings.TrimSpace(string(raw))
	if s.checkpoint, _, err = verify.Checkpoint(keys, s.jws, log, now()); err != nil {
		return s, fmt.Errorf("the checkpoint: %w", err)
	}
	if last == nil || last.Checkpoint.Size == 0 || last.Checkpoint.Size >= s.checkpoint.Size {
		return s, nil
	}
	address := fmt.Sprintf("%s/consistency?from=%d&to=%d", log, last.Checkpoint.Size, s.checkpoint.Size)
	if raw, err = client.Get(ctx, "the proof", address); err != nil {
		return s, err
	}
	var answer struct {
		Hashes []string `json:"hashes"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return s, fmt.Errorf("read the proof: not JSON")
	}
	s.hashes = answer.Hashes
	for i, text := range answer.Hashes {
		h, ok := receiptlog.Hash(text)
		if !ok {
			return s, fmt.Errorf("read the proof: hash %d is none", i)
		}
		s.proof = append(s.proof, h)
	}
	return s, nil
}

func printLine(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", raw)
	}
	return err
}
