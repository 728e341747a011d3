package authority

import (
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// What is remembered of a tree is one Brand's, high in it, and never too much.
func TestWhatIsRememberedOfATree(t *testing.T) {
	var u upper
	high, low := tlog.StoredHashIndex(upperLevel, 3), tlog.StoredHashIndex(upperLevel-1, 3)
	u.remember("harbor-hotel", high, tlog.Hash{1})
	u.remember("harbor-hotel", low, tlog.Hash{2})
	if h, ok := u.find("harbor-hotel", high); !ok || h != (tlog.Hash{1}) {
		t.Errorf("%v, %t", h, ok)
	}
	if _, ok := u.find("fern-and-fell", high); ok {
		t.Error("another Brand's")
	}
	if _, ok := u.find("harbor-hotel", low); ok {
		t.Error("what is read with its neighbours")
	}
	for n := range int64(upperMost + 10) {
		u.remember("harbor-hotel", tlog.StoredHashIndex(upperLevel, n), tlog.Hash{3})
	}
	if len(u.by) > upperMost {
		t.Errorf("%d are kept", len(u.by))
	}
}
