package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ErrFormSpent is returned where a form has made what it makes already.
var ErrFormSpent = errors.New("the form has been sent already")

// formLife is how long a form stays spent: longer than any session in which it may
// stand.
const formLife = 24 * time.Hour

// Once lets a form make a single change: who sends it again gets ErrFormSpent, and
// who sends it twice at the same moment waits to see what became of the first. A
// change that fails leaves the form as it was.
func (edit Editor) Once(form uuid.UUID) Editor {
	const q = `INSERT INTO spent_forms (id, spent_at) VALUES (@form, @now) ON CONFLICT DO NOTHING`
	return func(ctx context.Context, brand BrandID, fn func(*Edit) error) error {
		return edit(ctx, brand, func(e *Edit) error {
			tag, err := e.Exec(ctx, q, pgx.NamedArgs{"form": form, "now": e.Now})
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				return ErrFormSpent
			}
			return fn(e)
		})
	}
}

// PurgeForms forgets forms that nobody can send any more.
func PurgeForms(ctx context.Context, db *DB, now time.Time) error {
	const q = `DELETE FROM spent_forms WHERE spent_at <= @old`
	if _, err := db.pool.Exec(ctx, q, pgx.NamedArgs{"old": now.Add(-formLife)}); err != nil {
		return fmt.Errorf("purge forms: %w", err)
	}
	return nil
}
