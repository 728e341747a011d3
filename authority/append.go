package authority

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// log is what one instance has under way in the logs of Brands.
type log struct {
	stamps stamps
	mu     sync.Mutex
	lanes  map[tenants.BrandID]*lane
	grown  map[tenants.BrandID]int64 // a size that the log is known to have come to
	wrote  uint64                    // lines, of all Brands
	upper  upper
}

// lane is what waits to be appended to one Brand's log. A log is written by one
// transaction after the other, so those who come while one runs go together in the
// next: an idle Brand adds nothing, and the busier it is, the more share a commit.
type lane struct {
	waiting []*appending
	running bool
}

type appending struct {
	brand *tenants.Brand
	turns []*served
	again []*served // to be looked at anew
	done  chan struct{}
}

const (
	appendTime = 5 * time.Second
	appendMost = 500 // turns in one transaction
)

// append writes signed turns into the Brand's log and returns those that must be
// looked at anew. Whoever goes away meanwhile does not learn what became of them;
// coming again tells.
func (l *log) append(ctx context.Context, a *Authority, brand *tenants.Brand, turns []*served) []*served {
	if len(turns) == 0 {
		return nil
	}
	mine := &appending{brand: brand, turns: turns, done: make(chan struct{})}
	l.mu.Lock()
	if l.lanes == nil {
		l.lanes = make(map[tenants.BrandID]*lane)
	}
	at := l.lanes[brand.ID]
	if at == nil {
		at = &lane{}
		l.lanes[brand.ID] = at
	}
	at.waiting = append(at.waiting, mine)
	if !at.running {
		at.running = true
		go l.run(context.WithoutCancel(ctx), a, brand.ID, at)
	}
	l.mu.Unlock()
	// Every transaction ends in time, so this does; and the turns are the lane's
	// until then.
	<-mine.done
	return mine.again
}

// run appends until nothing waits.
func (l *log) run(ctx context.Context, a *Authority, brand tenants.BrandID, at *lane) {
	for {
		l.mu.Lock()
		if len(at.waiting) == 0 {
			delete(l.lanes, brand)
			l.mu.Unlock()
			return
		}
		n, count := 0, 0
		for n < len(at.waiting) && (n == 0 || count+len(at.waiting[n].turns) <= appendMost) {
			count += len(at.waiting[n].turns)
			n++
		}
		batch := at.waiting[:n:n]
		at.waiting = at.waiting[n:]
		l.mu.Unlock()
		l.write(ctx, a, brand, batch)
	}
}

func (l *log) write(ctx context.Context, a *Authority, brand tenants.BrandID, batch []*appending) {
	ctx, cancel := context.WithTimeout(ctx, appendTime)
	defer cancel()
	var turns []*served
	for _, b := range batch {
		turns = append(turns, b.turns...)
	}
	err := a.appendTurns(ctx, brand, turns)
	wrote := uint64(0)
	defer func() {
		l.mu.Lock()
		l.wrote += wrote
		l.mu.Unlock()
	}()
	for _, b := range batch {
		for _, s := range b.turns {
			switch {
			case err != nil:
				s.result.Receipt, s.result.Err = Receipt{}, err
			case errors.Is(s.result.Err, errLookAgain):
				b.again = append(b.again, s)
			default:
				wrote++
			}
		}
		close(b.done)
	}
}

// errLookAgain: what was signed does not stand any more.
var errLookAgain = errors.New("the turn must be looked at anew")

// appendTurns is the one transaction in which receipts become true: with the head of
// the log locked, every turn is judged again, and those that stand are written
// together. Nothing that was signed is handed out unless it won.
func (a *Authority) appendTurns(ctx context.Context, brand tenants.BrandID, turns []*served) error {
	var look tenants.Batch
	look.Queue(lockHead, pgx.NamedArgs{"brand": brand})
	look.Queue(a.log.turnFacts(), turnArgs(brand, turns))
	write := func() error {
		return a.db.Steps(ctx, brand, &look, func(found pgx.BatchResults, answer *tenants.Batch) error {
			h, err := readHead(found)
			if err != nil {
				return err
			}
			rows, err := found.Query()
			if err != nil {
				return err
			}
			all, err := pgx.CollectRows(rows, pgx.RowToStructByName[turnFacts])
			if err == nil && len(all) != len(turns) {
				err = fmt.Errorf("%d answers to %d turns", len(all), len(turns))
			}
			if err != nil {
				return err
			}
			lines, err := a.chain(brand, h, turns, all)
			if err == nil && len(lines) > 0 {
				h.write(answer, brand, lines)
			}
			return err
		})
	}
	err := write()
	if errors.Is(err, errNoHead) {
		if err = a.beginLog(ctx, brand); err == nil {
			err = write()
		}
	}
	if refused := new(pgconn.PgError); errors.As(err, &refused) && refused.ConstraintName == "receipts_apart" {
		for _, s := range turns {
			s.result.Receipt, s.result.Err = Receipt{}, errLookAgain
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("append to the log of %s: %w", brand, err)
	}
	return nil
}

// chain makes the lines of those turns that still stand, and says so in their
// results; the others are to be looked at anew.
func (a *Authority) chain(brand tenants.BrandID, h *head, turns []*served, all []turnFacts) ([]line, error) {
	type turnKey struct {
		grant            uuid.UUID
		context, message string
	}
	var lines []line
	seen := make(map[turnKey]bool)
	now := a.clock().Truncate(time.Millisecond)
	for i, s := range turns {
		key := turnKey{s.grant, s.ContextID, s.MessageID}
		late, err := false, error(nil)
		s.learn(all[i])
		if s.facts.Seq == nil && !s.facts.Taken && !s.gone() && !seen[key] && s.held() {
			late, err = s.judge(s.came)
		} else {
			err = errLookAgain
		}
		if err != nil {
			s.result.Err = errLookAgain // and then it is heard why
			continue
		}
		seen[key] = true
		l, err := h.next(brand, s, late, now)
		if err != nil {
			return nil, err
		}
		lines = append(lines, l)
		s.result.Receipt = Receipt{JWS: s.jws, Claims: payloadOf(s.jws), Seq: l.seq, Late: late}
	}
	return lines, nil
}

// line is one line of a log as it is stored.
type line struct {
	*served
	seq    int64
	late   bool
	salt   []byte
	entry  []byte
	hashes []byte
}

// stamps gives turns of one grant different milliseconds, as far as this instance
// knows of them.
type stamps struct {
	mu    sync.Mutex
	given map[uuid.UUID]time.Time
}

// next is now to the millisecond, or as soon after as the grant has no receipt of.
// Where the clock was turned back, what lies far ahead is no measure.
func (s *stamps) next(grant uuid.UUID, now time.Time, last *time.Time) time.Time {
	at := now.UTC().Truncate(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	const most = 4096
	if s.given == nil || len(s.given) > most {
		s.given = make(map[uuid.UUID]time.Time)
	}
	taken := []time.Time{s.given[grant]}
	if last != nil {
		taken = append(taken, last.UTC())
	}
	for _, t := range taken {
		if !t.Before(at) && t.Sub(at) < 2*time.Second {
			at = t.Add(time.Millisecond)
		}
	}
	s.given[grant] = at
	return at
}
