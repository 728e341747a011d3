package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"countersign.dev/authority/canonical"
)

// ErrWaiting says that a turn has no receipt yet, and gets it by itself: the authority
// has written it down, or Pending has. It is an ErrUnavailable.
var ErrWaiting = fmt.Errorf("the receipt waits: %w", ErrUnavailable)

// ErrFull says that no more turns may wait for their receipts.
var ErrFull = errors.New("too many turns wait for their receipts")

// Keeper keeps turns that wait for their receipts over a restart, where the Brand wants
// that: a table or a file of its own. A record holds the delegation token, and is to be
// kept as one; it holds no arguments, only their hashes.
type Keeper interface {
	// Keep returns once the record is durable. The same id again is the same record.
	Keep(ctx context.Context, id string, record []byte) error
	// Forget removes it; one that is not there is no error.
	Forget(ctx context.Context, id string) error
}

// PendingConfig is what Pending needs. Door must be given.
type PendingConfig struct {
	Door   *Verifier
	Keeper Keeper // nil: what waits is lost with the process
	Most   int    // how many turns may wait; 10,000 if 0
	// Done, if not nil, hears what became of each turn that waited: its receipt, or why
	// it has none for good.
	Done func(ctx context.Context, s Served, o Outcome)
}

// Pending countersigns turns, keeps those whose receipts cannot be had now, and offers
// them again in their order: bounded, and by whoever calls Offer or Run. It may be used
// by many goroutines at once.
//
// It cannot make up for time: a turn that the authority has not heard of by five minutes
// after its token or grant ended has no receipt (RECEIPTS.md says why).
type Pending struct {
	c     PendingConfig
	offer sync.Mutex // one goes through them at a time
	mu    sync.Mutex
	order []string
	turns map[string]Served
}

// NewPending returns a Pending. What a Keeper has kept is given back by Restore.
func NewPending(c PendingConfig) (*Pending, error) {
	const most = 10_000
	switch {
	case c.Door == nil:
		return nil, fmt.Errorf("%w: Door must be given", ErrOptions)
	case c.Most < 0:
		return nil, fmt.Errorf("%w: Most is negative", ErrOptions)
	case c.Most == 0:
		c.Most = most
	}
	return &Pending{c: c, turns: map[string]Served{}}, nil
}

// Ready is ErrFull where no more turns may wait: whoever must have a receipt for what
// it does asks before doing it.
func (p *Pending) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.order) >= p.c.Most {
		return fmt.Errorf("%w: %d", ErrFull, p.c.Most)
	}
	return nil
}

// Countersign is Verifier.Countersign; where that is ErrUnavailable the turn is kept, as
// begun now if nothing else is said, and the error is ErrWaiting. Where it cannot be
// kept that is said too, by ErrFull or the Keeper's error: then the caller has to come
// again.
func (p *Pending) Countersign(ctx context.Context, c Call, t Turn) (Countersigned, error) {
	if t.Began.IsZero() {
		t.Began = p.c.Door.now()
	}
	got, err := p.c.Door.Countersign(ctx, c, t)
	if !errors.Is(err, ErrUnavailable) {
		return got, err
	}
	if kept := p.keep(context.WithoutCancel(ctx), Served{c, t}); kept != nil {
		return Countersigned{}, fmt.Errorf("%w; nor is it kept: %w", err, kept)
	}
	return Countersigned{}, fmt.Errorf("%w: %w", ErrWaiting, err)
}

// pendingRecord is a turn as a Keeper keeps it.
type pendingRecord struct {
	Token string     `json:"token"`
	Agent string     `json:"agent"`
	User  string     `json:"user"`
	Grant string     `json:"grant"`
	Held  []string   `json:"scopes"`
	Turn  recordTurn `json:"turn"`
}

type recordTurn struct {
	ContextID  string    `json:"contextId"`
	MessageID  string    `json:"messageId"`
	ScopesUsed []string  `json:"scopesUsed"`
	Acts       []actBody `json:"actions"`
	Began      time.Time `json:"began"`
	Message    string    `json:"messageHash,omitempty"`
	Reply      string    `json:"replyHash,omitempty"`
}

func (p *Pending) keep(ctx context.Context, s Served) error {
	acts := make([]Act, len(s.Turn.Acts))
	record := pendingRecord{
		Token: s.Call.token, Agent: s.Call.Agent.Issuer, User: s.Call.Delegation.User, Grant: s.Call.Delegation.Grant, Held: s.Call.Delegation.Scopes,
		Turn: recordTurn{ContextID: s.Turn.ContextID, MessageID: s.Turn.MessageID, ScopesUsed: s.Turn.ScopesUsed, Began: s.Turn.Began, Message: s.Turn.MessageHash, Reply: s.Turn.ReplyHash},
	}
	for i, act := range s.Turn.Acts {
		hash, err := act.hash()
		if err != nil {
			return fmt.Errorf("arguments of %s: %w", act.Tool, err)
		}
		acts[i] = Act{Tool: act.Tool, ArgsHash: hash}
		record.Turn.Acts = append(record.Turn.Acts, actBody{Tool: act.Tool, ArgsHash: hash})
	}
	s.Turn.Acts = acts
	id, err := s.id().text()
	if err != nil {
		return err
	}
	p.mu.Lock()
	_, there := p.turns[id]
	full := len(p.order) >= p.c.Most
	if !there && !full {
		p.turns[id], p.order = s, append(p.order, id)
	}
	p.mu.Unlock()
	switch {
	case there:
		return nil
	case full:
		return fmt.Errorf("%w: %d", ErrFull, p.c.Most)
	case p.c.Keeper == nil:
		return nil
	}
	text, err := json.Marshal(record)
	if err == nil {
		err = p.c.Keeper.Keep(ctx, id, text)
	}
	if err != nil {
		p.drop(id)
		return fmt.Errorf("keep a turn: %w", err)
	}
	return nil
}

// Restore takes back what a Keeper has kept, in the order in which it was.
func (p *Pending) Restore(records ...[]byte) error {
	for i, text := range records {
		var r pendingRecord
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("record %d: %w: not a turn that waits", i, ErrMalformed)
		}
		s := Served{
			Call: Call{
				Agent: Agent{Issuer: r.Agent}, token: r.Token,
				Delegation: &Delegation{User: r.User, Agent: r.Agent, Grant: r.Grant, Scopes: r.Held},
			},
			Turn: Turn{ContextID: r.Turn.ContextID, MessageID: r.Turn.MessageID, ScopesUsed: r.Turn.ScopesUsed, Began: r.Turn.Began, MessageHash: r.Turn.Message, ReplyHash: r.Turn.Reply},
		}
		for _, act := range r.Turn.Acts {
			s.Turn.Acts = append(s.Turn.Acts, Act{Tool: act.Tool, ArgsHash: act.ArgsHash})
		}
		if _, err := s.body(); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		id, err := s.id().text()
		if err != nil {
			return err
		}
		p.mu.Lock()
		if _, there := p.turns[id]; !there {
			p.turns[id], p.order = s, append(p.order, id)
		}
		p.mu.Unlock()
	}
	return nil
}

// Offer offers what waits again, the oldest first, until nothing comes of it. It
// returns how many still wait.
func (p *Pending) Offer(ctx context.Context) (left int, err error) {
	p.offer.Lock()
	defer p.offer.Unlock()
	p.mu.Lock()
	ids := slices.Clone(p.order)
	p.mu.Unlock()
	for len(ids) > 0 && ctx.Err() == nil {
		n := min(len(ids), MaxTurns)
		settled, err := p.offerSome(ctx, ids[:n])
		if err != nil {
			return p.count(), err
		}
		if settled == 0 {
			break
		}
		ids = ids[n:]
	}
	return p.count(), ctx.Err()
}

func (p *Pending) offerSome(ctx context.Context, ids []string) (settled int, err error) {
	turns := make([]Served, len(ids))
	p.mu.Lock()
	for i, id := range ids {
		turns[i] = p.turns[id]
	}
	p.mu.Unlock()
	for i, o := range p.c.Door.CountersignMany(ctx, turns) {
		// A key that lacks the right is mended by who gave it, and no verdict on a turn.
		if errors.Is(o.Err, ErrUnavailable) || errors.Is(o.Err, ErrCredential) || errors.Is(o.Err, ErrReceipt) {
			continue
		}
		if p.c.Done != nil {
			p.c.Done(ctx, turns[i], o)
		}
		if p.c.Keeper != nil {
			if err := p.c.Keeper.Forget(context.WithoutCancel(ctx), ids[i]); err != nil {
				return settled, fmt.Errorf("forget a turn that waited: %w", err)
			}
		}
		p.drop(ids[i])
		settled++
	}
	return settled, nil
}

// Run offers what waits every few seconds, and ever more seldom, up to a minute, while
// nothing comes of it. It returns when ctx ends.
func (p *Pending) Run(ctx context.Context) {
	const often, seldom = 5 * time.Second, time.Minute
	wait := often
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		before := p.count()
		left, err := p.Offer(ctx)
		if err != nil && ctx.Err() == nil {
			p.c.Door.log.WarnContext(ctx, "turns wait for their receipts", "turns", left, "error", err)
		}
		if wait = min(2*wait, seldom); left < before || left == 0 {
			wait = often
		}
	}
}

func (p *Pending) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.order)
}

func (p *Pending) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, id)
	if i := slices.Index(p.order, id); i >= 0 {
		p.order = slices.Delete(p.order, i, i+1)
	}
}

// text is the id as a Keeper knows it.
func (id turnID) text() (string, error) {
	raw, err := json.Marshal([]string{id.grant, id.context, id.message})
	if err != nil {
		return "", err
	}
	return canonical.Hash(raw)
}
