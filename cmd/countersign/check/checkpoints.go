package check

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"countersign.dev/authority/verify"
	"golang.org/x/mod/sumdb/tlog"
)

// eachLine hands every line of a file to fn that is not blank: checkpoints and
// receipts are kept for years, so only a line is bounded, not the file.
func eachLine(path string, fn func(number int, line []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return linesOf(file, fn)
}

func linesOf(r io.Reader, fn func(number int, line []byte) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxFile)
	for number := 1; in.Scan(); number++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := fn(number, line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return in.Err()
}

// readCheckpoint verifies one checkpoint of the log, under its name of today or,
// where it was signed before the Brand moved, a former one; and looks whether it may
// be believed.
func (s *saved) readCheckpoint(one signed, former names) (verify.LogCheckpoint, verify.Report, error) {
	c, report, err := s.revoked.Checkpoint(s.keys, one.JWS, s.issuer+"/log", s.at)
	for _, name := range former {
		if errors.Is(err, verify.ErrIssuer) {
			c, report, err = s.revoked.Checkpoint(s.keys, one.JWS, name+"/log", s.at)
		}
	}
	if err != nil {
		return c, report, err
	}
	if s.witness != nil {
		c.Witnessed, _ = s.witness.Open(one.Note, c, s.now()) // where it must have been, witnessed says so
	}
	if err = s.revoked.Vouches(c); err != nil {
		report = append(report, verify.Check{Name: "revoked key", Result: verify.Failed, Detail: err.Error()})
	}
	return c, report, err
}

func (s *saved) now() time.Time {
	if s.at.IsZero() {
		return time.Now()
	}
	return s.at
}

// witnessed looks for the witness's cosignature, where one is asked for.
func (s *saved) witnessed(one signed, c verify.LogCheckpoint) (verify.Report, error) {
	if s.witness == nil {
		return nil, nil
	}
	seen, err := s.witness.Open(one.Note, c, s.now())
	check := verify.Check{Name: "witness", Result: verify.Passed, Detail: s.witness.Name() + " saw it " + seen.UTC().Format(time.RFC3339)}
	if err != nil {
		check.Result, check.Detail = verify.Failed, err.Error()
	}
	return verify.Report{check}, err
}

// kept is what a file of checkpoints came to.
type kept struct {
	lines int
	good  []verify.LogCheckpoint
	over  int           // lines whose key is unknown or revoked: they count for nothing
	why   verify.Report // of the first of those
	err   error
	first verify.Report // of the first line
	seen  verify.Report // of the last one that a witness signed
}

// errStop ends the reading of a file that has been refused.
var errStop = errors.New("refused")

// checkpoints reads one checkpoint, or those of an export or of a witness. Of
// several, those that an unknown or a revoked key signed are left out, and the report
// says so; where none is left nothing would be compared, and that is refused.
func (s *saved) checkpoints(f *finding, file string) (kept, error) {
	var k kept
	err := eachLine(file, func(_ int, line []byte) error {
		one, err := readSigned(line)
		if err != nil {
			return err
		}
		c, report, err := s.readCheckpoint(one, s.former)
		if k.lines++; k.lines == 1 {
			k.first = report
		}
		if errors.Is(err, verify.ErrUnknownKey) || errors.Is(err, verify.ErrRevokedKey) {
			if k.over++; k.over == 1 {
				k.why, k.err = report, err
			}
			return nil
		}
		if err != nil {
			f.look("The checkpoint", report, err)
			return errStop
		}
		if s.demands {
			if k.seen, err = s.witnessed(one, c); err != nil {
				f.look("The witness", k.seen, err)
				return errStop
			}
		}
		c.Log = s.issuer + "/log" // one log, whatever it was called
		k.good = append(k.good, c)
		return nil
	})
	if errors.Is(err, errStop) {
		return k, nil
	}
	if err == nil && k.lines == 0 {
		err = errors.New("there is none in it")
	}
	if err != nil {
		return k, fmt.Errorf("read the checkpoint from %s: %w", file, err)
	}
	k.tell(f, file)
	return k, nil
}

// tell adds to the verdict what the file came to.
func (k kept) tell(f *finding, file string) {
	switch {
	case len(k.good) == 0 && k.lines == 1:
		f.look("The checkpoint", k.why, k.err)
	case len(k.good) == 0:
		f.look("The checkpoint", k.why, fmt.Errorf("none of the %d lines of %s counts, so nothing was compared with them: %w", k.lines, file, k.err))
	case k.over > 0:
		f.look("The checkpoint", verify.Report{{Name: "key", Result: verify.Skipped, Detail: fmt.Sprintf("%d of %d lines: %s", k.over, k.lines, k.err)}}, nil)
	case k.lines == 1:
		f.look("The checkpoint", k.first, nil)
	}
	if len(k.good) > 0 && k.seen != nil {
		f.look("The witness", k.seen, nil)
	}
}

// last is the newest that counts.
func (k kept) last() verify.LogCheckpoint { return k.good[len(k.good)-1] }

// judgeCheckpoint looks at a checkpoint, of a witness's file at the last, and at what
// was remembered of the log before.
func (s *saved) judgeCheckpoint(f *finding, in io.Reader, remembered kept) error {
	var newest []byte
	err := linesOf(in, func(_ int, line []byte) error {
		newest = append(newest[:0], line...)
		return nil
	})
	if err == nil && newest == nil {
		err = errNothing
	}
	var one signed
	if err == nil {
		one, err = readSigned(newest)
	}
	if err != nil {
		return fmt.Errorf("read the checkpoint: %w", err)
	}
	c, report, err := s.readCheckpoint(one, nil)
	f.holds = "It holds."
	if !f.look("The checkpoint", report, err) {
		return nil
	}
	if report, err = s.witnessed(one, c); report != nil && !f.look("The witness", report, err) {
		return nil
	}
	f.Says = c
	if s.checkpoint == "" {
		return nil
	}
	older := remembered.last()
	var hashes []tlog.Hash
	// Elsewhere there is no proof to be had, nor need of one: the two say it by themselves.
	if 0 < older.Size && older.Size < c.Size {
		if s.consistency == "" {
			return fmt.Errorf("--consistency FILE is required: what {issuer}/log/consistency?from=%d&to=%d answers", older.Size, c.Size)
		}
		if hashes, err = readProof(s.consistency); err != nil {
			return err
		}
	}
	report, err = verify.Consistency(older, c, hashes)
	f.look("Since the remembered checkpoint", report, err)
	f.holds = remembered.but("It holds, and continues the last that was kept")
	return nil
}

// but says of a verdict what it leaves out.
func (k kept) but(verdict string) string {
	if k.over == 0 {
		return verdict + "."
	}
	return fmt.Sprintf("%s; %d of %d kept lines could not be compared, since their keys are unknown or revoked.", verdict, k.over, k.lines)
}
