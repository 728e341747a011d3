package tenants

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// EventProviderJoined is the fact that a Brand has come to share a Provider's
// audience. Every owner of every Brand of it hears of it.
const EventProviderJoined = "provider.joined"

// joins reports whether whoever moves the Brand may take it into a Provider that the
// founder, another Brand, made: the operator, and a person who owns both, since the
// move has a fresh touch of theirs behind it. Whoever only asks needs such a person to be there, for
// them to decide. A closed Brand lets nobody in.
func (m *move) joins(ctx context.Context, e *Edit, founder BrandID) (bool, error) {
	const owners = `SELECT person_id FROM memberships WHERE brand_id = @brand AND role = 'owner' ORDER BY person_id`
	const both = `
		SELECT count(DISTINCT brand_id) = 2 FROM person_brands
		 WHERE person_id = @person AND brand_id IN (@brand, @founder) AND role = 'owner' AND NOT held AND state <> 'closed'`
	switch {
	case m.operator:
		return true, nil
	case founder == "": // the operator's making
		return false, nil
	}
	who := []uuid.UUID{e.Member}
	if m.later {
		rows, err := e.Query(ctx, owners, pgx.NamedArgs{"brand": e.Brand})
		if err != nil {
			return false, err
		}
		if who, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
			return false, err
		}
	}
	for _, person := range who {
		if _, err := e.Exec(ctx, namePerson, person.String()); err != nil {
			return false, err
		}
		var may bool
		err := e.QueryRow(ctx, both, pgx.NamedArgs{"person": person, "brand": e.Brand, "founder": founder}).Scan(&may)
		if err == nil {
			_, err = e.Exec(ctx, namePerson, "")
		}
		if err != nil || may {
			return may, err
		}
	}
	return false, nil
}

// oneJoins lets Brands join Providers one after the other, and is called before the
// Brand's row is locked for good: a notice to another Brand needs that one's row to
// stay, and two that join one another's Provider would wait for each other.
func (e *Edit) oneJoins(ctx context.Context) error {
	_, err := e.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('countersign provider join', 0))`)
	return err
}

// tellJoined is due a notice to every owner of every Brand of the Provider, its
// founder's too, and the fact in all their trails.
func (e *Edit) tellJoined(ctx context.Context, provider string) error {
	const q = `
		SELECT brand_id FROM provider_brands WHERE provider_id = @provider AND state <> 'closed' AND brand_id <> @brand
		 UNION SELECT h.brand_id FROM providers p JOIN provider_brands h ON h.brand_id = p.founder
		 WHERE p.id = @provider AND h.state <> 'closed' AND h.brand_id <> @brand
		 ORDER BY brand_id`
	rows, err := e.Query(ctx, q, pgx.NamedArgs{"provider": provider, "brand": e.Brand})
	if err != nil {
		return err
	}
	others, err := pgx.CollectRows(rows, pgx.RowTo[BrandID])
	if err != nil {
		return err
	}
	detail := map[string]any{"provider": provider, "joined": e.Brand}
	for _, other := range append(others, e.Brand) { // back in its own fence at the end
		if err := Enter(ctx, e.Tx, other); err != nil {
			return err
		}
		var err error
		if e.Member != uuid.Nil {
			err = Act{Brand: other, By: e.Member, Event: EventProviderJoined, About: string(e.Brand), Now: e.Now}.tellOwners(ctx, e.Tx)
		} else {
			operator := Asker{Name: "operator", Channel: "cli"}
			err = operator.tell(ctx, e.Tx, other, EventProviderJoined, map[string]any{"about": e.Brand}, 0, e.Now)
		}
		if err != nil {
			return err
		}
		if other == e.Brand {
			e.Note(EventProviderJoined, detail)
		} else {
			e.NoteAt(other, EventProviderJoined, detail)
		}
	}
	return nil
}
