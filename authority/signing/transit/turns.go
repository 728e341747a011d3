package transit

import (
	"context"
	"sync"
)

// turns lets one caller at a time work on a name. Nobody waits for another name,
// or past their own deadline, as with a mutex held over calls of Vault. The zero
// value is ready.
type turns struct {
	mu    sync.Mutex
	seats map[string]*seat
}

type seat struct {
	taken chan struct{} // holds one
	users int           // sitting or waiting; the seat goes with the last
}

// take waits for the name's turn. Who gets it must call leave.
func (t *turns) take(ctx context.Context, name string) (leave func(), err error) {
	t.mu.Lock()
	if t.seats == nil {
		t.seats = make(map[string]*seat)
	}
	s := t.seats[name]
	if s == nil {
		s = &seat{taken: make(chan struct{}, 1)}
		t.seats[name] = s
	}
	s.users++
	t.mu.Unlock()
	select {
	case s.taken <- struct{}{}:
		return func() {
			<-s.taken
			t.drop(name, s)
		}, nil
	case <-ctx.Done():
		t.drop(name, s)
		return nil, ctx.Err()
	}
}

func (t *turns) drop(name string, s *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.users--
	if s.users == 0 {
		delete(t.seats, name)
	}
}
