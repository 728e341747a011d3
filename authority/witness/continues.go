package witness

import (
	"fmt"
	"time"

	"countersign.dev/authority/verify"
	"golang.org/x/mod/sumdb/tlog"
)

// Seen is the last that a witness signed of a log.
type Seen struct {
	Checkpoint verify.LogCheckpoint
	At         time.Time // by the witness's clock
}

// Continues is nil where a witness that saw the one may sign the other now: the log
// is the same, has not shrunk, and begins with what it was (verify.ErrProof). It
// is also refused where the witness's own clock went back (ErrClock): its
// signatures would not say any more which was the later one.
func Continues(last Seen, shown verify.LogCheckpoint, proof []tlog.Hash, now time.Time) error {
	if now.Before(last.At) {
		return fmt.Errorf("%w: it is %s, and the last look was %s", ErrClock, stamp(now), stamp(last.At))
	}
	_, err := verify.Consistency(last.Checkpoint, shown, proof)
	return err
}

// ClockBack says why the clock by which the log was signed cannot have been right;
// empty: nothing shows that. What was added to a log since a witness looked was
// signed after that look, and after what the log had signed by then. It says nothing
// against the log's order, which is that of its entries.
func ClockBack(last Seen, shown verify.LogCheckpoint) string {
	switch {
	case shown.Size <= last.Checkpoint.Size:
		return "" // an older signature of what was seen may well be shown
	case shown.At.Before(last.Checkpoint.At):
		return fmt.Sprintf("%d entries were signed %s, and fewer of them later: %s", shown.Size, exact(shown.At), exact(last.Checkpoint.At))
	case shown.At.Before(last.At.Add(-skew)):
		return fmt.Sprintf("%d entries were signed %s, but were not there yet at %s", shown.Size, exact(shown.At), stamp(last.At))
	}
	return ""
}

func exact(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
