package receiptlog

import (
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Edge is what must be known of a log to append to it: the roots of its complete
// subtrees, the largest first. It is as long as the binary size has ones.
type Edge struct {
	Size  int64
	roots []tlog.Hash
}

// ErrEdge says that what was stored of a log's edge does not fit its size.
var ErrEdge = errors.New("the edge of the log does not fit its size")

// ReadEdge reads what Bytes wrote.
func ReadEdge(size int64, stored []byte) (Edge, error) {
	e := Edge{Size: size}
	if size < 0 || len(stored) != tlog.HashSize*bits.OnesCount64(uint64(size)) {
		return e, ErrEdge
	}
	for len(stored) > 0 {
		e.roots = append(e.roots, tlog.Hash(stored[:tlog.HashSize]))
		stored = stored[tlog.HashSize:]
	}
	return e, nil
}

// Bytes is the edge as it is stored.
func (e Edge) Bytes() []byte {
	out := make([]byte, 0, len(e.roots)*tlog.HashSize)
	for _, h := range e.roots {
		out = append(out, h[:]...)
	}
	return out
}

// Append adds a leaf and returns the hashes that it completes, from the leaf
// upwards: they belong to its place for ever.
func (e *Edge) Append(leaf tlog.Hash) []tlog.Hash {
	done := []tlog.Hash{leaf}
	for level := 0; e.Size>>level&1 == 1; level++ {
		last := len(e.roots) - 1
		leaf = tlog.NodeHash(e.roots[last], leaf)
		e.roots = e.roots[:last]
		done = append(done, leaf)
	}
	e.roots = append(e.roots, leaf)
	e.Size++
	return done
}

// Root is the hash of the whole tree.
func (e Edge) Root() tlog.Hash {
	if len(e.roots) == 0 {
		root, err := tlog.TreeHash(0, tlog.HashReaderFunc(nil)) // of nothing
		if err != nil {
			panic(err)
		}
		return root
	}
	root := e.roots[len(e.roots)-1]
	for i := len(e.roots) - 2; i >= 0; i-- {
		root = tlog.NodeHash(e.roots[i], root)
	}
	return root
}

// Place is where a hash of the tree is kept: beside the leaf that completed it.
type Place struct {
	Seq   int64 // of that leaf
	Level int   // 0: the leaf's own hash
}

// PlaceOf says where the hash with tlog's index is kept.
func PlaceOf(index int64) Place {
	level, n := tlog.SplitStoredHashIndex(index)
	return Place{Seq: (n+1)<<level - 1, Level: level}
}

// Pick takes the place's hash out of what Append returned, stored one after the
// other.
func (p Place) Pick(stored []byte) (tlog.Hash, error) {
	from := p.Level * tlog.HashSize
	if len(stored) < from+tlog.HashSize {
		return tlog.Hash{}, fmt.Errorf("no hash of level %d beside entry %d", p.Level, p.Seq)
	}
	return tlog.Hash(stored[from : from+tlog.HashSize]), nil
}
