package mail

import (
	"context"
	"slices"
	"sync"
)

// Outbox keeps messages instead of sending them, for development on one machine.
type Outbox struct {
	mu   sync.Mutex
	kept []Message
}

const outboxSize = 100

// Send implements Sender.
func (o *Outbox) Send(_ context.Context, m Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, m)
	o.kept = o.kept[max(0, len(o.kept)-outboxSize):]
	return nil
}

// Messages lists what was sent, the newest first.
func (o *Outbox) Messages() []Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := slices.Clone(o.kept)
	slices.Reverse(out)
	return out
}
