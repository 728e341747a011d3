package check

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"countersign.dev/authority/verify"
	"countersign.dev/cmd/countersign/pa/discovery"
)

// judgeReceipt looks at one receipt, or at a conversation's with --receipts.
func judgeReceipt(s *saved) (finding, error) {
	one, err := readSigned(s.data)
	if err != nil {
		return finding{}, fmt.Errorf("read the receipt: %w", err)
	}
	opts := verify.ReceiptOptions{Brand: s.audience, Now: s.at, Archive: s.revoked}
	if s.receipts != "" {
		return judgeTask(s, one, opts)
	}
	f := finding{holds: "It holds."}
	if s.entry == "" {
		f.holds = "It holds. That it is in the Brand's log, --entry, --inclusion and --checkpoint show."
	} else if opts.Logged, err = s.logged(&f); err != nil || f.Reason != "" {
		return f, err
	}
	claims, report, err := verify.Receipt(s.keys, one.JWS, one.Claims, opts)
	if f.look("The receipt", report, err) {
		f.Says = claims
	}
	return f, nil
}

func judgeTask(s *saved, one signed, opts verify.ReceiptOptions) (finding, error) {
	f := finding{holds: "It holds: these are all the receipts of the conversation, in their order."}
	var all []string
	err := eachLine(s.receipts, func(_ int, line []byte) error {
		r, err := readSigned(line)
		all = append(all, r.JWS)
		return err
	})
	if err != nil {
		return f, fmt.Errorf("read the receipts from %s: %w", s.receipts, err)
	}
	task, report, err := verify.TaskReceipt(s.keys, one.JWS, all, opts)
	if f.look("The task receipt", report, err) {
		f.Says = task
	}
	return f, nil
}

// logged reads what shows that the receipt is in the log.
func (s *saved) logged(f *finding) (*verify.Logged, error) {
	raw, err := readFile(s.entry, nil)
	if err != nil {
		return nil, fmt.Errorf("read the entry: %w", err)
	}
	var answer struct{ Entry, Salt string }
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Entry == "" {
		return nil, fmt.Errorf("read the entry from %s: there is no entry in it", s.entry)
	}
	l := &verify.Logged{Entry: answer.Entry}
	if answer.Salt != "" {
		if l.Salt, err = base64.RawURLEncoding.DecodeString(answer.Salt); err != nil {
			return nil, fmt.Errorf("read the entry from %s: the salt is not base64url", s.entry)
		}
	}
	if l.Proof, err = readProof(s.inclusion); err != nil {
		return nil, err
	}
	s.demands = true
	all, err := s.checkpoints(f, s.checkpoint)
	if err == nil && f.Reason == "" {
		l.Checkpoint = all.last()
	}
	return l, err
}

// judgeLog looks at a whole log, of an export, or at a checkpoint.
func judgeLog(s *saved) (finding, error) {
	f := finding{}
	in := s.stdin
	if s.file != "-" {
		file, err := os.Open(s.file)
		if err != nil {
			return f, fmt.Errorf("read the log: %w", err)
		}
		defer file.Close()
		in = file
	}
	buffered := bufio.NewReader(in)
	first, err := buffered.ReadBytes('\n')
	if len(first) == 0 {
		return f, errNothing
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return f, fmt.Errorf("read the log: %w", err)
	}
	all := bufio.NewReader(io.MultiReader(bytes.NewReader(first), buffered))
	one, err := readSigned(first)
	isCheckpoint := first[0] != '{' || err == nil && one.Entry == ""
	s.demands = !isCheckpoint // what is kept to compare a checkpoint with needs no witness
	if s.witness != nil && s.demands && s.checkpoint == "" {
		return f, errors.New("--witness asks for --checkpoint FILE beside it: what the witness wrote")
	}
	if s.consistency != "" && !isCheckpoint {
		return f, errors.New("--consistency is of two checkpoints: a whole log shows by itself whether it gives the one that was kept")
	}
	var remembered kept
	if s.checkpoint != "" {
		if remembered, err = s.checkpoints(&f, s.checkpoint); err != nil || f.Reason != "" {
			return f, err
		}
	}
	if isCheckpoint {
		return f, s.judgeCheckpoint(&f, all, remembered)
	}
	sum, report, err := verify.WholeLog(s.keys, all, s.revoked, remembered.good...)
	f.look("The log", report, err)
	f.Says = map[string]any{"entries": sum.Entries, "receipts": sum.Receipts, "erased": sum.Erased}
	f.holds = "It holds, as far as it goes: that nothing was cut off or written anew, a --checkpoint that you kept shows."
	if s.checkpoint != "" {
		f.holds = remembered.but("It holds, and gives what was signed")
	}
	return f, nil
}

// judgeCard looks at a saved Agent Card, and at the saved metadata beside it.
func judgeCard(s *saved) (finding, error) {
	f := finding{holds: "It holds. Whether its addresses answer, countersign brand check tells."}
	var metadata []byte
	if s.metadata != "" {
		var err error
		if metadata, err = readFile(s.metadata, nil); err != nil {
			return f, fmt.Errorf("read the metadata: %w", err)
		}
	}
	var report verify.Report
	var first error
	for _, l := range discovery.ExamineSaved(s.data, metadata) {
		c := verify.Check{Name: l.What, Result: verify.Passed, Detail: l.Say}
		if !l.OK {
			c.Result = verify.Failed
			if first == nil {
				first = errors.New(strings.TrimSpace(l.Say))
			}
		}
		report = append(report, c)
	}
	if metadata == nil {
		report = append(report, verify.Check{Name: "metadata", Result: verify.Skipped, Detail: "no --metadata to compare with"})
	}
	f.look("The agent card", report, first)
	return f, nil
}
