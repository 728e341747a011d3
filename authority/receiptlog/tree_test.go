package receiptlog

import (
	"errors"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// What an edge makes of a log is what tlog makes of it: roots, and proofs from the
// hashes beside the leaves.
func TestEdgeIsTlog(t *testing.T) {
	var stored [][]byte
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			p := PlaceOf(index)
			var err error
			if out[i], err = p.Pick(stored[p.Seq]); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
	var e Edge
	roots := []tlog.Hash{e.Root()}
	for n := range int64(130) {
		_, leaf, err := Entry{Seq: n}.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		want, err := tlog.StoredHashesForRecordHash(n, leaf, reader)
		if err != nil {
			t.Fatal(err)
		}
		var beside []byte
		for i, h := range e.Append(leaf) {
			if h != want[i] {
				t.Fatalf("entry %d, level %d", n, i)
			}
			beside = append(beside, h[:]...)
		}
		if len(beside) != len(want)*tlog.HashSize {
			t.Fatalf("entry %d: %d bytes", n, len(beside))
		}
		stored = append(stored, beside)
		root, err := tlog.TreeHash(n+1, reader)
		if err != nil || root != e.Root() {
			t.Fatalf("root of %d: %v", n+1, err)
		}
		roots = append(roots, root)
		if e, err = ReadEdge(e.Size, e.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	for size := int64(1); size <= 130; size += 7 {
		for seq := range size {
			_, leaf, _ := Entry{Seq: seq}.Leaf()
			p, err := tlog.ProveRecord(size, seq, reader)
			if err != nil || tlog.CheckRecord(p, size, roots[size], seq, leaf) != nil {
				t.Fatalf("%d in %d: %v", seq, size, err)
			}
		}
	}
	for _, bad := range []int64{-1, 1, 3} {
		if _, err := ReadEdge(bad, nil); !errors.Is(err, ErrEdge) {
			t.Errorf("%d: %v", bad, err)
		}
	}
}
