package tenants

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Record writes a fact about a Brand into the trail, in the transaction that
// makes it true. by is the member's id. detail holds ids and words of ours, never
// a name or an address.
type Record func(ctx context.Context, tx pgx.Tx, brand BrandID, by uuid.UUID, event string, detail map[string]any) error

// Act is a change that a member makes to a Brand.
type Act struct {
	Brand  BrandID
	By     uuid.UUID
	Event  string
	Detail map[string]any
	// Tell is whether every owner hears of it by mail.
	Tell   bool
	About  string // the id of the Brand that the notice tells of, where it is another
	Record Record
	Now    time.Time
}

// Do runs fn in one transaction with the notices to the owners and the fact in
// the trail: all of it becomes true or nothing does. The owners who are told are
// those from before the change: whoever is removed by it hears of it too.
func (a Act) Do(ctx context.Context, db *DB, fn func(pgx.Tx) error) error {
	err := db.Tx(ctx, a.Brand, func(tx pgx.Tx) error {
		if a.Tell {
			if err := a.tellOwners(ctx, tx); err != nil {
				return err
			}
		}
		if err := fn(tx); err != nil {
			return err
		}
		// The trail's head stays locked until the end, so it is written last.
		return a.Record(ctx, tx, a.Brand, a.By, a.Event, a.Detail)
	})
	if err != nil {
		return fmt.Errorf("%s at %s: %w", a.Event, a.Brand, err)
	}
	return nil
}

func (a Act) tellOwners(ctx context.Context, tx pgx.Tx) error { return a.tell(ctx, tx, uuid.Nil) }

// tellOthers is tellOwners of what somebody does who need not hear of it.
func (a Act) tellOthers(ctx context.Context, tx pgx.Tx) error { return a.tell(ctx, tx, a.By) }

func (a Act) tell(ctx context.Context, tx pgx.Tx, but uuid.UUID) error {
	const q = `
		INSERT INTO notices (brand_id, id, person_id, kind, detail, created_at)
		SELECT brand_id, gen_random_uuid(), person_id, @event, jsonb_strip_nulls(jsonb_build_object('by', @by::uuid, 'about', nullif(@about, ''))), @now
		  FROM memberships
		 WHERE brand_id = @brand AND role = 'owner' AND person_id <> @but`
	_, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": a.Brand, "event": a.Event, "by": a.By, "about": a.About, "now": a.Now, "but": but})
	return err
}

// come is somebody's coming, or coming back: the other owners hear of it, and it stands
// in the trail.
func (a Act) come(ctx context.Context, tx pgx.Tx) error {
	if err := a.tellOthers(ctx, tx); err != nil {
		return err
	}
	return a.Record(ctx, tx, a.Brand, a.By, a.Event, a.Detail)
}

// Notice is mail that is due.
type Notice struct {
	ID        uuid.UUID `db:"id"`
	Kind      string    // the event
	Email     string    // to whom, as they write it
	Language  string
	ByName    string // the member who did it; empty: nobody who is one
	By        Asker  `db:"-"` // who did it or asks for it, and is none
	Change    string // the kind of the change that waits, if the event is that
	About     string // the Brand that it tells of, where that is another
	CreatedAt time.Time
}

// ClaimNotices takes up to most of the Brand's notices that wait, those first that
// nobody can bring about without end, then the oldest. A claim that leads to nothing
// is over after a few minutes, and somebody else sends them.
func ClaimNotices(ctx context.Context, db *DB, brand BrandID, now time.Time, most int) ([]Notice, error) {
	const q = `
		WITH first AS (
			SELECT id FROM notices
			 WHERE brand_id = @brand AND sent_at IS NULL AND (claimed_at IS NULL OR claimed_at < @stale)
			 ORDER BY kind = ANY (@many), created_at, id LIMIT @most FOR UPDATE SKIP LOCKED
		)
		UPDATE notices n SET claimed_at = @now
		  FROM people p
		 WHERE n.brand_id = @brand AND n.person_id = p.id AND n.id IN (SELECT id FROM first)
		RETURNING n.id, n.kind, p.email_typed AS email, p.language, n.created_at, coalesce(n.detail->>'about', '') AS about,
		          coalesce((SELECT name FROM people WHERE id = (n.detail->>'by')::uuid), '') AS by_name,
		          coalesce(n.detail->>'asked_by', '') AS asked_by, coalesce(n.detail->>'channel', '') AS channel,
		          coalesce(n.detail->>'change', '') AS change`
	const patience = 5 * time.Minute
	type row struct {
		Notice
		AskedBy, Channel string
	}
	all, err := All[row](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "now": now, "stale": now.Add(-patience), "most": most, "many": append(countedEvents(), EventAsked)})
	if err != nil {
		return nil, fmt.Errorf("claim notices of %s: %w", brand, err)
	}
	out := make([]Notice, len(all))
	for i, r := range all {
		out[i] = r.Notice
		out[i].By = Asker{Name: r.AskedBy, Channel: r.Channel}
	}
	return out, nil
}

// NoticeSent records that the mail has left.
func NoticeSent(ctx context.Context, db *DB, brand BrandID, id uuid.UUID, now time.Time) error {
	const q = `UPDATE notices SET sent_at = @now WHERE brand_id = @brand AND id = @id`
	if _, err := db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "now": now}); err != nil {
		return fmt.Errorf("note a sent notice of %s: %w", brand, err)
	}
	return nil
}
