package a2a

import (
	"context"
	"errors"
	"fmt"

	"countersign.dev/authority"
	"countersign.dev/tenants"
)

// Drain countersigns the answers of a Brand's agent that wait for their receipts, in
// the order in which they were given, by what was kept with them: nobody has to come
// again for what was done to stand in the log. Whoever does come again gets the reply
// with that receipt. It returns how many got theirs, and stops at one that has to wait.
// One that is refused has none for good: its message is spent, and the trail says why.
// One that fails while others do not keeps them waiting three times; then they go on,
// and it is tried again ever later.
func Drain(ctx context.Context, rules *authority.Authority, brand *tenants.Brand) (int, error) {
	var after authority.WaitingAnswer
	for done := 0; ; {
		waiting, err := rules.Waiting(ctx, brand.ID, after)
		if err != nil || len(waiting) == 0 {
			return done, err
		}
		after = waiting[len(waiting)-1]
		n, err := drain(ctx, rules, brand, waiting)
		done += n
		if err != nil {
			return done, err
		}
	}
}

// drain countersigns these answers; an error: one has to wait.
func drain(ctx context.Context, rules *authority.Authority, brand *tenants.Brand, waiting []authority.WaitingAnswer) (done int, err error) {
	turns := make([]authority.Turn, 0, len(waiting))
	for i, w := range waiting {
		answer, unread := ParseAnswer([]byte(w.Answer))
		if unread == nil {
			turns = append(turns, answer.turn(w.Agent, w.Exchange))
			continue
		}
		// A version after this one may have kept it, and reads it: it waits like one that
		// cannot be signed, and those after it as long.
		if i == 0 {
			return 0, errors.Join(fmt.Errorf("%d answers wait, the first cannot be read: %w", len(waiting), unread), rules.PutOff(ctx, brand.ID, w))
		}
		if done, err = drain(ctx, rules, brand, waiting[:i]); err == nil {
			var rest int
			rest, err = drain(ctx, rules, brand, waiting[i:])
			done += rest
		}
		return done, err
	}
	var last error
	waits := 0 // the first that does
	for i, r := range rules.CountersignInOrder(ctx, brand, turns) {
		switch w := waiting[i]; {
		case r.Err == nil:
			if !r.Receipt.Again {
				done++
			}
			err = rules.Settled(ctx, brand.ID, w)
		case authority.IsRefusal(r.Err):
			err = rules.KeepRefusal(ctx, brand.ID, w.Exchange, w.Grant, w.Agent, r.Err)
		case errors.Is(r.Err, authority.ErrBehind):
			if err := rules.PutOff(ctx, brand.ID, waiting[waits]); err != nil {
				return done, err
			}
			return done, fmt.Errorf("%d answers wait: %w", len(waiting)-waits, last)
		case last == nil:
			waits, last = i, r.Err
		}
		if err != nil {
			return done, err
		}
	}
	if last != nil {
		last = fmt.Errorf("%d answers wait: %w", len(waiting)-waits, last)
	}
	return done, last
}
