package verify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Offer offers all that waits again, the oldest first; it stops where the authority is
// not reached. It returns how many still wait. An error says what somebody has to mend:
// a Credential, what stands between, the Keeper. No turn is lost by it.
func (p *Pending) Offer(ctx context.Context) (left int, err error) {
	p.offer.Lock()
	defer p.offer.Unlock()
	for ids := p.kept(); len(ids) > 0 && ctx.Err() == nil; {
		n := min(len(ids), MaxTurns)
		heard, wrong := p.offerSome(ctx, ids[:n])
		if err == nil {
			err = wrong
		}
		if !heard {
			break
		}
		ids = ids[n:]
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return p.count(), err
}

// kept are the ids of what is kept, in order. What is still being kept is not offered:
// it would be forgotten before the Keeper has it.
func (p *Pending) kept() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for _, id := range p.order {
		if p.turns[id].kept {
			ids = append(ids, id)
		}
	}
	return ids
}

// offerSome reports whether the authority has looked at any of them: then it may look at
// others too.
func (p *Pending) offerSome(ctx context.Context, ids []string) (heard bool, err error) {
	turns := make([]Served, len(ids))
	p.mu.Lock()
	for i, id := range ids {
		turns[i] = p.turns[id].Served
	}
	p.mu.Unlock()
	out, whole := p.c.Door.countersignMany(ctx, turns)
	switch {
	case whole == nil:
	case badRequest(whole):
		out, whole = p.singly(ctx, turns)
	default: // it says nothing of any turn
		out = nil
	}
	if whole != nil && !errors.Is(whole, ErrUnavailable) {
		err = whole
	}
	for i, o := range out {
		if !final(o.Err) {
			heard = heard || looked(o.Err)
			if err == nil && !errors.Is(o.Err, ErrUnavailable) {
				err = o.Err
			}
			continue
		}
		if p.c.Done != nil {
			p.c.Done(ctx, turns[i], o)
		}
		if p.c.Keeper != nil {
			if err := p.c.Keeper.Forget(context.WithoutCancel(ctx), ids[i]); err != nil {
				return false, fmt.Errorf("forget a turn that waited: %w", err)
			}
		}
		p.drop(ids[i])
		heard = true
	}
	return heard && whole == nil, err
}

// singly offers each by itself, so that one that nobody can read does not stand in the
// way of the others. It returns what became of those up to a failure that is not of the
// turn.
func (p *Pending) singly(ctx context.Context, turns []Served) ([]Outcome, error) {
	var out []Outcome
	for _, s := range turns {
		got, err := p.c.Door.Countersign(ctx, s.Call, s.Turn)
		if !final(err) && !looked(err) && !badRequest(err) {
			return out, err
		}
		out = append(out, Outcome{got, err})
	}
	return out, nil
}

// final reports whether this is a verdict on a turn, a receipt or none for good. It takes
// the authority's own word for it: any ingress can answer 400.
func final(err error) bool {
	answer, said := errors.AsType[*RefusedError](err)
	switch {
	case err == nil:
		return true
	case !said || errors.Is(err, ErrReceipt):
		return false
	case answer.Code == "conflict":
		return answer.Status == http.StatusConflict
	case answer.Code == "invalid_token", answer.Code == "invalid_scope", answer.Code == "invalid_request":
		return answer.Status == http.StatusBadRequest
	}
	return false
}

// looked reports whether the authority has looked at a turn on which there is no verdict:
// it waits there, or something is wrong with it alone.
func looked(err error) bool {
	answer, said := errors.AsType[*RefusedError](err)
	return errors.Is(err, ErrWaiting) || errors.Is(err, ErrReceipt) || said && answer.Status == http.StatusInternalServerError
}

// badRequest reports whether somebody did not like what was sent.
func badRequest(err error) bool {
	answer, said := errors.AsType[*RefusedError](err)
	return said && (answer.Status == http.StatusBadRequest || answer.Status == http.StatusRequestEntityTooLarge || answer.Status == http.StatusUnprocessableEntity)
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
