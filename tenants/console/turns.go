package console

import (
	"sync"

	"countersign.dev/tenants"
)

// turns are the Brands that may have notices to send, each once, in the order in
// which they came: whoever has many waits for the others after each handful.
type turns struct {
	mu    sync.Mutex
	line  []tenants.BrandID
	in    map[tenants.BrandID]bool
	woken chan struct{} // holds one while somebody stands in line
}

func newTurns() *turns {
	return &turns{in: make(map[tenants.BrandID]bool), woken: make(chan struct{}, 1)}
}

// join puts the Brand at the end of the line, unless it stands there.
func (t *turns) join(id tenants.BrandID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.in[id] {
		t.in[id] = true
		t.line = append(t.line, id)
		t.wake()
	}
}

// next takes the first out of the line, if there is one.
func (t *turns) next() (tenants.BrandID, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) == 0 {
		return "", false
	}
	id := t.line[0]
	t.line = t.line[1:]
	delete(t.in, id)
	if len(t.line) > 0 {
		t.wake()
	}
	return id, true
}

func (t *turns) wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}
