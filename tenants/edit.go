package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Edit is one change of a Brand's settings, in one transaction inside its fence.
type Edit struct {
	pgx.Tx
	Brand BrandID
	Now   time.Time
	// Member is who makes the change, on the dashboard; zero: a program, the operator,
	// or nobody.
	Member uuid.UUID
	// Note adds a fact to the Brand's audit trail; it stands there if the change
	// does.
	Note func(event string, detail map[string]any)
	// NoteAt adds one to the trail of another Brand that the change has to do with.
	NoteAt func(other BrandID, event string, detail map[string]any)
	// EndGrants ends up to limit living grants of the Brand for the reason and
	// returns how many.
	EndGrants func(ctx context.Context, reason string, limit int) (int, error)
}

// Editor runs edits in somebody's name: fn's changes and what it noted become
// true together, or nothing does. The rules of grants and the trail belong to
// package authority, which makes Editors.
type Editor func(ctx context.Context, brand BrandID, fn func(*Edit) error) error

// change locks the Brand, so that its edits come one after the other, and runs
// fn. A closed Brand is ErrClosed. Approvals are not kept waiting: they only
// need the Brand's id to stay.
func (edit Editor) change(ctx context.Context, brand BrandID, what string, fn func(*Edit) error) error {
	const q = `SELECT state FROM brands WHERE id = @brand FOR NO KEY UPDATE`
	err := edit(ctx, brand, func(e *Edit) error {
		var state State
		err := e.QueryRow(ctx, q, pgx.NamedArgs{"brand": brand}).Scan(&state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoBrand
		case err != nil:
			return err
		case state == Closed:
			return ErrClosed
		}
		return fn(e)
	})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", what, brand, err)
	}
	return nil
}

// noteDiff notes what differs between two values of one struct type, by the
// names that the API gives the fields. It reports whether anything does.
func (e *Edit) noteDiff(event string, about map[string]any, before, after any) bool {
	diff := Diff(before, after)
	if len(diff) == 0 {
		return false
	}
	detail := map[string]any{"changed": diff}
	for k, v := range about {
		detail[k] = v
	}
	e.Note(event, detail)
	return true
}

// Difference is one field before and after a change.
type Difference struct {
	Before any `json:"before"`
	After  any `json:"after"`
}

// Diff compares two values that marshal to JSON objects, field by field.
func Diff(before, after any) map[string]Difference {
	a, b := fields(before), fields(after)
	diff := make(map[string]Difference)
	for name := range a {
		if !reflect.DeepEqual(a[name], b[name]) {
			diff[name] = Difference{Before: a[name], After: b[name]}
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			diff[name] = Difference{After: b[name]}
		}
	}
	return diff
}

func fields(v any) map[string]any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out map[string]any
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

func count(n int) string { return strconv.Itoa(n) }
