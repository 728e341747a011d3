package events

import "testing"

// A bell that rings while its endpoint is served is not lost, even after the
// last look: whoever serves it looks once more. There is one at a time.
func TestABellWhileServingIsHeard(t *testing.T) {
	c := &Courier{busy: make(map[line]bool)}
	l, other := line{"harbor-hotel", "a"}, line{"harbor-hotel", "b"}
	if !c.begin(l) || c.begin(l) || !c.begin(other) {
		t.Fatal("an endpoint is served by one, and another endpoint by another")
	}
	if !c.end(l, true) || c.begin(l) {
		t.Fatal("the bell was not heard")
	}
	if !c.end(l, true) {
		t.Fatal("the second bell was not heard")
	}
	if c.end(l, true) || !c.begin(l) {
		t.Fatal("nobody rang, and it is still marked")
	}
	if c.begin(l) || c.end(l, false) || !c.begin(l) {
		t.Fatal("who may not go on must let go")
	}
}
