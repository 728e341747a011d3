package mail

import (
	"context"
	"log/slog"
	"time"
)

// Message is one mail in plain text.
type Message struct {
	To, Subject, Text string
}

// Sender hands a message to whoever delivers it.
type Sender interface {
	Send(ctx context.Context, m Message) error
}

const (
	queued  = 1000
	tries   = 3
	pause   = 2 * time.Second // grows with every try
	onePost = 20 * time.Second
)

// Queue sends messages one after the other, in the background.
type Queue struct {
	sender Sender
	log    *slog.Logger
	wait   chan Message
}

// NewQueue returns a Queue; Run works it off.
func NewQueue(sender Sender, log *slog.Logger) *Queue {
	return &Queue{sender: sender, log: log, wait: make(chan Message, queued)}
}

// Put adds the message and returns at once. When too many wait it is dropped, and
// the log says so.
func (q *Queue) Put(ctx context.Context, m Message) {
	select {
	case q.wait <- m:
	default:
		q.log.ErrorContext(ctx, "mail dropped: too much waits for the mail server")
	}
}

// Run sends until ctx ends.
func (q *Queue) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-q.wait:
			q.deliver(ctx, m)
		}
	}
}

func (q *Queue) deliver(ctx context.Context, m Message) {
	for try := 1; ; try++ {
		one, cancel := context.WithTimeout(ctx, onePost)
		err := q.sender.Send(one, m)
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		if try == tries {
			// Errors of mail servers quote addresses; the log must not.
			q.log.ErrorContext(ctx, "mail could not be sent", "tries", try)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(try) * pause):
		}
	}
}
