package tenants

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Batch gathers statements with named arguments that go to the database together. It
// may be sent again.
type Batch struct {
	queued []statement
	err    error
}

type statement struct {
	text   string
	values []any
}

// Queue adds a statement. A mistake in it comes out when the batch is sent.
func (b *Batch) Queue(q string, args pgx.NamedArgs) {
	text, values, err := positional(q, args)
	if err != nil && b.err == nil {
		b.err = err
	}
	b.queued = append(b.queued, statement{text, values})
}

// onto adds the statements to a batch of pgx's, which is good for one connection: it
// remembers what that one has prepared.
func (b *Batch) onto(p *pgx.Batch) {
	for _, s := range b.queued {
		p.Queue(s.text, s.values...)
	}
}

// Steps runs one transaction inside the Brand's fence in two round trips: first,
// then what read, given its results in their order, queues in answer. That is
// committed with it; where nothing is queued, or anything fails, nothing was done.
// A lock that first takes is thus held for one round trip and the second's work. As
// in Tx, read must not call the network.
func (db *DB) Steps(ctx context.Context, brand BrandID, first *Batch, read func(pgx.BatchResults, *Batch) error) error {
	if first.err != nil {
		return first.err
	}
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	// A connection that is released within a transaction is closed by the pool, and
	// the transaction ends with it: so it is where there was no time for a rollback.
	defer conn.Release()
	var opening pgx.Batch
	opening.Queue("begin")
	opening.Queue(setBrand, string(brand))
	first.onto(&opening)
	var second Batch
	results := conn.SendBatch(ctx, &opening)
	err = func() error {
		for range 2 {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		return read(results, &second)
	}()
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = second.err
	}
	if err != nil || len(second.queued) == 0 {
		_, _ = conn.Exec(ctx, "rollback")
		return err
	}
	var closing pgx.Batch
	second.onto(&closing)
	closing.Queue("commit")
	results = conn.SendBatch(ctx, &closing)
	for range closing.Len() {
		tag, failed := results.Exec()
		if failed != nil {
			err = failed
			break
		}
		if tag.String() == "ROLLBACK" {
			err = fmt.Errorf("commit: %w", pgx.ErrTxCommitRollback)
		}
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_, _ = conn.Exec(ctx, "rollback")
	}
	return err
}
