package a2a

import (
	"context"
	"fmt"

	"countersign.dev/authority"
	"countersign.dev/tenants"
)

// Drain countersigns the answers of a Brand's agent that wait for their receipts, in
// the order in which they were given, by what was kept with them: nobody has to come
// again for what was done to stand in the log. Whoever does come again gets the reply
// with that receipt. It returns how many got theirs, and stops where all have to wait;
// what gets none for another reason is left to its message.
func Drain(ctx context.Context, rules *authority.Authority, brand *tenants.Brand) (int, error) {
	var after authority.WaitingAnswer
	for done := 0; ; {
		waiting, err := rules.Waiting(ctx, brand.ID, after)
		if err != nil || len(waiting) == 0 {
			return done, err
		}
		after = waiting[len(waiting)-1]
		var turns []authority.Turn
		for _, w := range waiting {
			answer, err := ParseAnswer([]byte(w.Answer))
			if err != nil {
				return done, fmt.Errorf("read what was kept: %w", err)
			}
			turns = append(turns, answer.turn(w.Agent, w.Exchange))
		}
		for _, r := range rules.CountersignMany(ctx, brand, turns) {
			switch {
			case r.Err == nil:
				done++
			case isWaiting(r.Err):
				return done, r.Err
			}
		}
	}
}
