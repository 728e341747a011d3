package mail

import (
	"context"
	"log/slog"
	"sync"
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

// Lane is a row of letters that wait for the mail server. No lane waits for another.
type Lane int

// The lanes. Strangers is for what anybody has us write to whoever he names: it is
// filled by people whom nobody knows, and must not keep the others from hearing that
// a passkey was added.
const (
	Members Lane = iota
	Strangers
)

const (
	queued  = 1000 // in each lane
	tries   = 3
	pause   = 2 * time.Second // grows with every try
	onePost = 20 * time.Second
)

// Queue sends the messages of each lane one after the other, in the background.
type Queue struct {
	sender Sender
	log    *slog.Logger
	wait   [2]chan Message // by Lane
}

// NewQueue returns a Queue; Run works it off.
func NewQueue(sender Sender, log *slog.Logger) *Queue {
	q := &Queue{sender: sender, log: log}
	for lane := range q.wait {
		q.wait[lane] = make(chan Message, queued)
	}
	return q
}

// Put adds the message to the lane and returns at once. When too many wait there it
// is dropped, and the log says so.
func (q *Queue) Put(ctx context.Context, lane Lane, m Message) {
	select {
	case q.wait[lane] <- m:
	default:
		q.log.ErrorContext(ctx, "mail dropped: too much waits for the mail server", "strangers", lane == Strangers)
	}
}

// Run sends until ctx ends.
func (q *Queue) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, wait := range q.wait {
		all.Go(func() { q.work(ctx, wait) })
	}
	all.Wait()
}

func (q *Queue) work(ctx context.Context, wait <-chan Message) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-wait:
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
