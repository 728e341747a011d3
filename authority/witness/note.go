package witness

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"countersign.dev/authority/verify"
	"golang.org/x/mod/sumdb/note"
)

// ErrCosignature says that the witness did not sign this.
var ErrCosignature = errors.New("the witness did not sign it")

// ErrClock says that the clock of the witness itself cannot be right.
var ErrClock = errors.New("the clock of the witness went back")

// skew is how far two clocks may be apart (M5).
const skew = 30 * time.Second

// Text is the checkpoint as the text of a note: which log, its size, its root.
func Text(c verify.LogCheckpoint) (string, error) {
	_, origin, ok := strings.Cut(c.Log, "://")
	if !ok || origin == "" || strings.ContainsFunc(origin, func(r rune) bool { return unicode.IsSpace(r) || r == '+' }) {
		return "", fmt.Errorf("a log at %q has no name in a note", c.Log)
	}
	return fmt.Sprintf("%s\n%d\n%s\n", origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:])), nil
}

// Sign is the note of the checkpoint with the witness's cosignature: that at this
// time it was the largest that the witness had seen of the log, and continued all
// it had seen before. Whoever calls it has looked ([Continues]).
func (s Signer) Sign(c verify.LogCheckpoint, at time.Time) (string, error) {
	text, err := Text(c)
	if err != nil {
		return "", err
	}
	out, err := note.Sign(&note.Note{Text: text}, cosigner{s, at})
	if err != nil {
		return "", fmt.Errorf("sign the note: %w", err)
	}
	return string(out), nil
}

// Open is when the witness saw the checkpoint. A note that the witness did not sign,
// or that is of another checkpoint, is ErrCosignature, and so is one of a time that
// is not yet, or at which the checkpoint had not been signed.
func (k Key) Open(signed string, c verify.LogCheckpoint, now time.Time) (time.Time, error) {
	n, err := note.Open([]byte(signed), note.VerifierList(cosigned{k}))
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", ErrCosignature, err)
	}
	text, err := Text(c)
	if err != nil {
		return time.Time{}, err
	}
	if n.Text != text {
		return time.Time{}, fmt.Errorf("%w: the note is of another checkpoint", ErrCosignature)
	}
	raw, err := base64.StdEncoding.DecodeString(n.Sigs[0].Base64)
	if err != nil || len(raw) < 4+8 {
		return time.Time{}, fmt.Errorf("%w: a signature of another length", ErrCosignature)
	}
	seen := time.Unix(int64(binary.BigEndian.Uint64(raw[4:])), 0) // Verify has bounded it
	switch {
	case seen.After(now.Add(skew)):
		return time.Time{}, fmt.Errorf("%w: it says %s, and it is %s", ErrCosignature, stamp(seen), stamp(now))
	case c.At.After(seen.Add(skew)):
		return time.Time{}, fmt.Errorf("%w: seen %s, and the log signed it %s", ErrCosignature, stamp(seen), stamp(c.At))
	}
	return seen, nil
}

// cosigner signs a note's text with a time.
type cosigner struct {
	Signer
	at time.Time
}

// Name implements note.Signer.
func (c cosigner) Name() string { return c.key.name }

// KeyHash implements note.Signer.
func (c cosigner) KeyHash() uint32 { return c.key.KeyHash() }

// Sign implements note.Signer.
func (c cosigner) Sign(text []byte) ([]byte, error) {
	seconds := c.at.Unix()
	if seconds < 0 {
		return nil, errors.New("a time before 1970")
	}
	out := binary.BigEndian.AppendUint64(nil, uint64(seconds))
	return append(out, ed25519.Sign(c.private, message(uint64(seconds), text))...), nil
}

// cosigned verifies what cosigner makes.
type cosigned struct{ Key }

// Verify implements note.Verifier.
func (c cosigned) Verify(text, sig []byte) bool {
	if len(sig) != 8+ed25519.SignatureSize {
		return false
	}
	seconds := binary.BigEndian.Uint64(sig)
	return seconds <= math.MaxInt64 && ed25519.Verify(c.public, message(seconds, text), sig[8:])
}

func message(seconds uint64, text []byte) []byte {
	return fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
