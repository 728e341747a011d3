package localpg

import (
	"io"
	"sync"
)

// tail passes the server's log on and remembers its end, so that a failed start can
// say why without sending anybody to look for a file.
type tail struct {
	next io.Writer

	mu   sync.Mutex
	kept []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	if t.next != nil {
		// A log that cannot be written must not stop the server, so its error is dropped.
		_, _ = t.next.Write(p)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
