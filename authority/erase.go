package authority

import (
	"context"
	"errors"
	"fmt"
	"math"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Erased is what an erasure came to.
type Erased struct {
	Grants int   `json:"grants_ended"`
	Rows   int64 `json:"rows"`   // in which the person stood, but for the trail
	Events int64 `json:"events"` // of the trail that no longer say who and what
}

// walk is how many places of a trail are looked at in one statement: they are
// found by no index, since none is worth its cost at every payment.
const walk = 20_000

// Erase takes a Brand user's data out of everything we keep, on request: their
// grants end, what they saw and answered goes but for its hash, their name
// becomes one that leads back to nobody, their receipts go, and in the trail who and
// what are taken out of the facts about them. The chain and the log of receipts
// verify as before, and a fact user.erased names the places but not the person.
//
// Where that was broken off, erasing again does the rest; when nothing is left,
// it does nothing. What a receiver of webhooks was sent, it has.
func (a *Authority) Erase(ctx context.Context, brand tenants.BrandID, by By, subject string) (Erased, error) {
	var e Erased
	if subject == "" {
		return e, fmt.Errorf("erase at %s: name a user: %w", brand, ErrUnknown)
	}
	err := a.erase(ctx, brand, by, subject, &e)
	if err != nil {
		// Never the subject: an error is logged, and the log is not erased.
		return e, fmt.Errorf("erase a user at %s: %w", brand, err)
	}
	return e, nil
}

func (a *Authority) erase(ctx context.Context, brand tenants.BrandID, by By, subject string, e *Erased) error {
	// Those whose time is over end too: nothing that is forgotten can be judged
	// later.
	const living = `
		SELECT id FROM grants WHERE brand_id = @brand AND subject = @subject AND ended_at IS NULL
		 ORDER BY id LIMIT @batch`
	args := pgx.NamedArgs{"brand": brand, "subject": subject}
	var err error
	if e.Grants, err = a.endMany(ctx, brand, by, living, args, math.MaxInt); err != nil {
		return err
	}
	// From here on no turn is countersigned: what comes again would find its receipt
	// gone, and get a second one.
	const mark = `UPDATE grants SET erasing = true WHERE brand_id = @brand AND subject = @subject AND NOT erasing`
	if _, err := a.db.Exec(ctx, brand, mark, args); err != nil {
		return err
	}
	// Most receipts in transactions of their own: nobody appends to the log while the
	// last one runs.
	for n := int64(1); n > 0; e.Rows += n {
		err := a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
			n, err = eraseSomeReceipts(ctx, tx, subject)
			return err
		})
		if err != nil {
			return err
		}
	}
	err = a.change(ctx, brand, by, a.clock(), func(c *change) error {
		// One that was allowed meanwhile.
		const late = `SELECT id FROM grants WHERE brand_id = @brand AND subject = @subject AND ended_at IS NULL ORDER BY id FOR UPDATE`
		rows, err := c.Query(ctx, late, args)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return err
		}
		n, err := c.end(ctx, ids, "revoked_by_"+by.Actor)
		if err != nil {
			return err
		}
		e.Grants += n
		// Before the grants, which say whose conversations they were.
		talk, err := c.forgetTalk(ctx, subject)
		if err != nil {
			return err
		}
		// Receipts first: whose they are, only the grants say. Who is about to append
		// another waits for the log's head, and then looks at the grant again. A log
		// that has not begun has none to wait for: it is made first.
		const begun = `
			INSERT INTO log_heads (brand_id, size, edge, last) SELECT id, 0, '', '' FROM brands WHERE id = @brand
			ON CONFLICT DO NOTHING`
		const still = `SELECT FROM log_heads WHERE brand_id = @brand FOR UPDATE`
		for _, q := range []string{begun, still} {
			if _, err := c.Exec(ctx, q, args); err != nil {
				return err
			}
		}
		// Those that came since.
		receipts := int64(0)
		for n := int64(1); n > 0; receipts += n {
			if n, err = eraseSomeReceipts(ctx, c, subject); err != nil {
				return err
			}
		}
		var person int64
		if err := c.QueryRow(ctx, `SELECT erase_person(@subject)`, args).Scan(&person); err != nil {
			return err
		}
		e.Rows += person + receipts + talk
		return nil
	})
	if err != nil {
		return err
	}
	e.Events, err = a.eraseTrail(ctx, brand, by, subject)
	return err
}

// eraseSomeReceipts empties as many of the person's receipts as a statement may
// take; 0: none is left.
func eraseSomeReceipts(ctx context.Context, tx pgx.Tx, subject string) (n int64, err error) {
	const q = `SELECT erase_some_receipts(@subject, @batch)`
	err = tx.QueryRow(ctx, q, pgx.NamedArgs{"subject": subject, "batch": 1000}).Scan(&n)
	return n, err
}

// eraseTrail goes over the whole trail as it stands now, piece by piece.
func (a *Authority) eraseTrail(ctx context.Context, brand tenants.BrandID, by By, subject string) (total int64, err error) {
	const q = `SELECT audit_erase(@subject, @after, @upto, @now, @actor, @actorID, @channel, @trace)`
	last, err := LastPlace(ctx, a.db, brand)
	if err != nil {
		return 0, err
	}
	for after := int64(0); after < last; after += walk {
		var n int64
		err := a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, q, pgx.NamedArgs{
				"subject": subject, "after": after, "upto": min(after+walk, last), "now": a.clock(),
				"actor": by.Actor, "actorID": by.ID, "channel": by.Channel, "trace": a.trace(ctx),
			}).Scan(&n)
		})
		if err != nil {
			return total, errors.Join(fmt.Errorf("after event %d: %w", after, ErrTrail), err)
		}
		total += n
	}
	return total, nil
}

// PersonCount is what there is of a Brand user.
type PersonCount struct{ Living, Ended, Answers int }

// CountPerson says what erasing the Brand user would end and take away.
func (a *Authority) CountPerson(ctx context.Context, brand tenants.BrandID, subject string) (PersonCount, error) {
	const q = `
		SELECT count(*) FILTER (WHERE ended_at IS NULL AND expires_at > @now) AS living,
		       count(*) FILTER (WHERE ended_at IS NOT NULL OR expires_at <= @now) AS ended,
		       (SELECT count(*) FROM consents WHERE brand_id = @brand AND subject = @subject) AS answers
		  FROM grants
		 WHERE brand_id = @brand AND subject = @subject`
	out, err := tenants.One[PersonCount](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "subject": subject, "now": a.clock()})
	if err != nil {
		return PersonCount{}, fmt.Errorf("count what there is of a user at %s: %w", brand, err)
	}
	return out, nil
}
