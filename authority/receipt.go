package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// Action is one thing that was done in a turn. Args, any JSON value, and ArgsHash,
// its hash (M24), exclude one another; both may be absent.
type Action struct {
	Tool     string
	Args     json.RawMessage
	ArgsHash string
}

// Turn is one turn that was served under a delegation.
type Turn struct {
	Token      string // the delegation token that was shown, never a bare grant id
	Claims     []byte // of one whose signature and audience were verified when it was shown; Token is empty then
	Agent      string // iss of the verified pa-jwt beside it (M18); empty only where the Brand vouches for it
	ContextID  string
	MessageID  string
	ScopesUsed []string
	Actions    []Action
	Began      time.Time // when the turn began; zero: now
	// MessageHash and ReplyHash are of what was said and answered, 32 bytes as base64url,
	// however whoever served the turn makes them; empty: the log says nothing of that.
	MessageHash, ReplyHash string
	Kept                   time.Time // when we wrote down ourselves that it was served; zero: we did not

	waits bool // it comes from those that were handed in and wait, and is never put there again
}

// Receipt is the PACT receipt {jws, claims}; Claims is the payload, canonical, byte
// for byte.
type Receipt struct {
	JWS    string
	Claims json.RawMessage
	Seq    int64 // its place in the Brand's log, from 0
	Late   bool  // token or grant had ended when it was countersigned
	Again  bool  // it was there already
}

// Result is what became of one turn of several.
type Result struct {
	Receipt Receipt
	Err     error
}

// MaxTurns is how many turns CountersignMany takes at once.
const MaxTurns = 100

// LateTime is how long after the end of its token or grant a turn that began
// before still gets its receipt.
const LateTime = 5 * time.Minute

// Countersign gives a turn its receipt (PACT §5.6, M24): signed with the Brand's
// token key, and written into the Brand's log in the same moment as it becomes
// true. A turn is known by grant, context and message: the same again gets the same
// receipt, whenever it comes; with other scopes or actions it is ErrConflict.
//
// The token must be good and so must its grant, or have ended less than LateTime
// ago, after the turn began; otherwise it is ErrToken, as is one of another agent
// (M18). The scopes must be in the token, the grant and on the card, with the details
// that the token says, or have been within the same time: ErrScope. A turn that cannot
// be put into a receipt is ErrMalformed.
//
// Where nothing can be signed it is ErrUnavailable (R77), and while the Brand is
// paused ErrPaused: a *WaitingError. There is then no receipt, and nothing in the log;
// but the turn is written down, and gets its receipt as soon as that can be signed
// (Flush), within a day, however long its grant has ended by then. The same call again
// gets it too: it belongs into the answer to the agent, which is the Brand's to send.
// ErrNotKept: not even that could be done.
func (a *Authority) Countersign(ctx context.Context, brand *tenants.Brand, t Turn) (Receipt, error) {
	r := a.CountersignMany(ctx, brand, []Turn{t})[0]
	return r.Receipt, r.Err
}

// CountersignMany is Countersign of up to MaxTurns turns; the results are in the
// same order. Each turn fails alone, and those that succeed stand in the log in the
// order given. Two turns never have the same claims: where they would, the later
// one's ts is a millisecond on.
func (a *Authority) CountersignMany(ctx context.Context, brand *tenants.Brand, turns []Turn) []Result {
	return a.countersign(ctx, brand, turns, false)
}

// CountersignInOrder is CountersignMany, but no turn stands in the log before one that
// came earlier and has to wait: that one's error is what it is, and theirs ErrBehind.
func (a *Authority) CountersignInOrder(ctx context.Context, brand *tenants.Brand, turns []Turn) []Result {
	return a.countersign(ctx, brand, turns, true)
}

// ErrBehind is an ErrUnavailable of a turn that could have been countersigned, had not
// one before it to wait.
var ErrBehind = fmt.Errorf("%w for the turn before", ErrUnavailable)

func (a *Authority) countersign(ctx context.Context, brand *tenants.Brand, turns []Turn, inOrder bool) []Result {
	out := make([]Result, len(turns))
	if len(turns) > MaxTurns {
		for i := range out {
			out[i].Err = fmt.Errorf("%d turns, more than %d: %w", len(turns), MaxTurns, ErrMalformed)
		}
		return out
	}
	var left []*served
	now := a.clock()
	for i, t := range turns {
		s, err := a.read(ctx, brand, t, now)
		if err != nil {
			out[i].Err = err
			continue
		}
		s.result = &out[i]
		left = append(left, s)
	}
	// What was signed can prove to be the second of its kind, or its grant has
	// changed meanwhile; then all is looked at anew.
	const attempts = 8
	for range attempts {
		if left = a.attempt(ctx, brand, left, inOrder); len(left) == 0 {
			return out
		}
	}
	for _, s := range left {
		s.result.Err = fmt.Errorf("%w: others were faster %d times", ErrUnavailable, attempts)
	}
	a.accept(ctx, brand.ID, left)
	return out
}

// attempt takes the turns as far as they go and returns those to begin anew with.
func (a *Authority) attempt(ctx context.Context, brand *tenants.Brand, turns []*served, inOrder bool) (again []*served) {
	if len(turns) == 0 {
		return nil
	}
	all, err := a.lookUp(ctx, brand.ID, turns)
	if err != nil {
		fail(turns, fmt.Errorf("look up turns at %s: %w", brand.ID, err))
		return nil
	}
	var open, good, wait []*served
	for i, s := range turns {
		if done := s.settle(all[i]); done {
			continue
		}
		open = append(open, s)
	}
	if err := a.lately(ctx, brand.ID, open); err != nil {
		fail(open, err)
		return nil
	}
	for _, s := range open {
		_, s.result.Err = s.judge(s.came)
		switch {
		case s.result.Err == nil:
			good = append(good, s)
		case errors.Is(s.result.Err, ErrPaused):
			wait = append(wait, s)
		}
	}
	a.signAll(ctx, brand, good)
	if inOrder {
		holdBack(good)
	}
	signed, unsigned := parted(good)
	wait = append(wait, unsigned...)
	a.accept(ctx, brand.ID, wait)
	return a.log.append(ctx, a, brand, signed)
}

// signAll signs at once, so that the signer can gather them.
func (a *Authority) signAll(ctx context.Context, brand *tenants.Brand, turns []*served) {
	ctx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range turns {
		s.at = a.log.stamps.next(s.grant, a.now(), s.facts.Last)
		payload, err := receiptlog.Claims{
			GrantID: s.grant.String(), User: s.token.Subject, PA: s.token.ClientID, Brand: brand.InterfaceURL,
			ScopesUsed: s.scopes, Actions: s.actions, TS: receiptlog.At(s.at),
		}.Payload()
		if err != nil {
			s.result.Err = fmt.Errorf("encode receipt: %w", err)
			continue
		}
		s.result.Err, s.jws = nil, ""
		sign := func() {
			jws, err := a.signer.Sign(ctx, brand.ID, signing.TypReceipt, payload)
			if err != nil {
				s.result.Err = fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			s.jws = jws
		}
		if len(turns) == 1 {
			sign()
		} else {
			all.Go(sign)
		}
	}
	all.Wait()
}

// parted are those that were signed and those for which the signer was away.
func parted(turns []*served) (signed, unsigned []*served) {
	for _, s := range turns {
		switch {
		case s.result.Err == nil:
			signed = append(signed, s)
		case errors.Is(s.result.Err, ErrUnavailable):
			unsigned = append(unsigned, s)
		}
	}
	return signed, unsigned
}

// holdBack lets those that were signed wait for those before them that were not.
func holdBack(turns []*served) {
	waits := false
	for _, s := range turns {
		switch {
		case errors.Is(s.result.Err, ErrUnavailable):
			waits = true
		case waits && s.result.Err == nil:
			s.result.Err = ErrBehind
		}
	}
}

func fail(turns []*served, err error) {
	for _, s := range turns {
		s.result.Err = err
	}
}
