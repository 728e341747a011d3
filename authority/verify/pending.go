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
	// Done, if not nil, hears the authority's verdict on each turn that waited: its
	// receipt, or why it has none for good, which is ErrToken, ErrScope, ErrConflict or a
	// RefusedError with invalid_request. It hears it before the turn is forgotten, one at
	// a time, and again where forgetting failed or the process ended between. That
	// something between did not work is no verdict: then the turn waits on.
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
	turns map[string]*waiting
}

// waiting is a turn that waits, or that is being kept so that it can.
type waiting struct {
	Served
	tried chan struct{} // closed when the Keeper has answered
	kept  bool          // that it has it; nobody is told so before, nor is it offered
}

// NewPending returns a Pending. What a Keeper has kept is given back by Restore.
func NewPending(c PendingConfig) (*Pending, error) {
	const most = 10_000
	switch {
	case c.Door == nil:
		return nil, fmt.Errorf("%w: Door must be given", ErrOptions)
	case c.Door.credential == "":
		return nil, fmt.Errorf("%w: Door has no Credential", ErrOptions)
	case c.Most < 0:
		return nil, fmt.Errorf("%w: Most is negative", ErrOptions)
	case c.Most == 0:
		c.Most = most
	}
	return &Pending{c: c, turns: map[string]*waiting{}}, nil
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

// Countersign is Verifier.Countersign. Where there is neither a receipt nor the authority's
// own word that there is none, because it is away, something between answered in its
// place, or the Credential is not good, the turn is kept, as begun now if nothing else is
// said, and the error is ErrWaiting. Where it cannot be kept that is said too, by ErrFull
// or the Keeper's error: then the caller has to come again. Another turn than the one
// that waits under the same ids is ErrConflict.
func (p *Pending) Countersign(ctx context.Context, c Call, t Turn) (Countersigned, error) {
	s, err := Served{c, t}.hashed()
	if err != nil {
		return Countersigned{}, err
	}
	id, err := s.id().text()
	if err != nil {
		return Countersigned{}, err
	}
	p.mu.Lock()
	before := p.turns[id]
	p.mu.Unlock()
	switch {
	case before != nil && !before.same(s):
		return Countersigned{}, errOther
	case before != nil && t.Began.IsZero():
		t.Began = before.Turn.Began
	case t.Began.IsZero():
		t.Began = p.c.Door.now()
	}
	s.Turn.Began = t.Began
	got, err := p.c.Door.Countersign(ctx, c, t)
	if final(err) {
		return got, err
	}
	if !errors.Is(err, ErrUnavailable) {
		// It is told and not wrapped: who asks whether the token was refused must not
		// hear yes of what is no verdict.
		err = fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	switch kept := p.keep(ctx, id, s); {
	case errors.Is(kept, ErrConflict):
		return Countersigned{}, kept
	case kept != nil:
		return Countersigned{}, fmt.Errorf("%w; nor is it kept: %w", err, kept)
	}
	return Countersigned{}, fmt.Errorf("%w: %w", ErrWaiting, err)
}

var errOther = fmt.Errorf("%w, and waits for its receipt", ErrConflict)

// hashed is the turn with hashes in the place of arguments, and nothing that the caller
// can still change; an error where it may not be sent.
func (s Served) hashed() (Served, error) {
	if _, err := s.body(); err != nil {
		return s, err
	}
	acts := make([]Act, len(s.Turn.Acts))
	for i, act := range s.Turn.Acts {
		hash, err := act.hash()
		if err != nil {
			return s, fmt.Errorf("arguments of %s: %w", act.Tool, err)
		}
		acts[i] = Act{Tool: act.Tool, ArgsHash: hash}
	}
	s.Turn.Acts, s.Turn.ScopesUsed = acts, slices.Clone(s.Turn.ScopesUsed)
	return s, nil
}

// same reports whether it is the same turn as the authority understands that: by what
// was used, done and said. Both are hashed.
func (s Served) same(as Served) bool {
	return s.Turn.shows(as.Turn.ScopesUsed) && s.Turn.MessageHash == as.Turn.MessageHash && s.Turn.ReplyHash == as.Turn.ReplyHash &&
		slices.EqualFunc(s.Turn.Acts, as.Turn.Acts, func(a, b Act) bool { return a.Tool == b.Tool && a.ArgsHash == b.ArgsHash })
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

// keep returns nil once the turn is kept, whoever did it.
func (p *Pending) keep(ctx context.Context, id string, s Served) error {
	for {
		p.mu.Lock()
		w, there := p.turns[id]
		full := len(p.order) >= p.c.Most
		if !there && !full {
			w = &waiting{Served: s, tried: make(chan struct{})}
			p.turns[id], p.order = w, append(p.order, id)
		}
		p.mu.Unlock()
		switch {
		case !there && full:
			return fmt.Errorf("%w: %d", ErrFull, p.c.Most)
		case !there:
			return p.keepFirst(context.WithoutCancel(ctx), id, w)
		case !w.same(s):
			return errOther
		}
		select {
		case <-w.tried:
		case <-ctx.Done():
			return ctx.Err()
		}
		if w.kept {
			return nil
		} // who came first could not keep it: this one tries
	}
}

func (p *Pending) keepFirst(ctx context.Context, id string, w *waiting) error {
	var err error
	if p.c.Keeper != nil {
		var text []byte
		if text, err = json.Marshal(w.record()); err == nil {
			err = p.c.Keeper.Keep(ctx, id, text)
		}
	}
	if err != nil {
		p.drop(id)
	}
	p.mu.Lock()
	w.kept = err == nil
	p.mu.Unlock()
	close(w.tried)
	if err != nil {
		return fmt.Errorf("keep a turn: %w", err)
	}
	return nil
}

// record is a hashed turn as it is kept.
func (s Served) record() pendingRecord {
	r := pendingRecord{
		Token: s.Call.token, Agent: s.Call.Agent.Issuer, User: s.Call.Delegation.User, Grant: s.Call.Delegation.Grant, Held: s.Call.Delegation.Scopes,
		Turn: recordTurn{ContextID: s.Turn.ContextID, MessageID: s.Turn.MessageID, ScopesUsed: s.Turn.ScopesUsed, Began: s.Turn.Began, Message: s.Turn.MessageHash, Reply: s.Turn.ReplyHash},
	}
	for _, act := range s.Turn.Acts {
		r.Turn.Acts = append(r.Turn.Acts, actBody{Tool: act.Tool, ArgsHash: act.ArgsHash})
	}
	return r
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
			tried := make(chan struct{})
			close(tried)
			p.turns[id], p.order = &waiting{s, tried, true}, append(p.order, id)
		}
		p.mu.Unlock()
	}
	return nil
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
