package tenants

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ErrLive says that people log in through the connection.
var ErrLive = errors.New("people log in through this connection")

// MakeLive has people log in through the candidate from now on. The connection
// that was live becomes the candidate, so that the way back is the same step. A login
// page at a place that the Brand has not proved is Problems.
func MakeLive(ctx context.Context, edit Editor, site Site, brand BrandID, id uuid.UUID) error {
	return makeLive(ctx, edit, site, brand, id, func(*Edit, Connection) error { return nil })
}

// MakeShownLive is MakeLive of the candidate as somebody saw it; one that has
// changed since is ErrChangeStale: another could have been slid under their yes.
func MakeShownLive(ctx context.Context, edit Editor, site Site, brand BrandID, shown Connection) error {
	return makeLive(ctx, edit, site, brand, shown.ID, func(_ *Edit, c Connection) error { return c.asShown(shown) })
}

func (c Connection) asShown(shown Connection) error {
	if c.Shown() != shown.Shown() {
		return ErrChangeStale
	}
	return nil
}

// makeAskedLive is MakeShownLive in the place of the connection that was live when it
// was asked; in that of another it is ErrChangeStale, too.
func makeAskedLive(ctx context.Context, edit Editor, site Site, brand BrandID, asked loginChange) error {
	return makeLive(ctx, edit, site, brand, asked.Connection.ID, func(e *Edit, c Connection) error {
		if err := c.asShown(asked.Connection); err != nil || c.Live {
			return err
		}
		live, err := e.live(ctx)
		switch {
		case err != nil:
			return err
		case live == nil || asked.Before == nil:
			if live != asked.Before {
				return ErrChangeStale
			}
			return nil
		}
		return live.asShown(*asked.Before)
	})
}

// live is the connection that people log in through; nil: there is none.
func (e *Edit) live(ctx context.Context) (*Connection, error) {
	const q = `SELECT ` + connectionColumns + ` FROM login_connections WHERE brand_id = @brand AND live`
	rows, err := e.Query(ctx, q, pgx.NamedArgs{"brand": e.Brand})
	if err != nil {
		return nil, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[connectionRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // a Brand need not have one
	}
	c := Connection(r)
	return &c, err
}

func makeLive(ctx context.Context, edit Editor, site Site, brand BrandID, id uuid.UUID, is func(*Edit, Connection) error) error {
	return edit.change(ctx, brand, "make login live", func(e *Edit) error {
		c, err := e.connection(ctx, id)
		if err != nil {
			return err
		}
		if err := is(e, c); err != nil {
			return err
		}
		if c.Live {
			return nil // twice is once
		}
		hosts, err := e.proven(ctx)
		if err != nil {
			return err
		}
		if p := c.ownPage(site, hosts); len(p) > 0 {
			return p
		}
		e.Note("login.live", map[string]any{"connection": id, "kind": c.Kind, "issuer": c.Issuer, "subject_claim": c.SubjectClaim})
		// The one that leaves steps out of the way of both unique indexes first.
		args := pgx.NamedArgs{"brand": brand, "id": id, "now": e.Now}
		const leave = `UPDATE login_connections SET live = false, ended_at = @now WHERE brand_id = @brand AND live RETURNING id`
		var former uuid.UUID
		if err := e.QueryRow(ctx, leave, args).Scan(&former); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		args["former"] = former
		for _, q := range []string{
			`UPDATE login_connections SET live = true WHERE brand_id = @brand AND id = @id`,
			`UPDATE login_connections SET ended_at = NULL WHERE brand_id = @brand AND id = @former`,
		} {
			if _, err := e.Exec(ctx, q, args); err != nil {
				return err
			}
		}
		return nil
	})
}

// RemoveConnection ends a candidate and forgets its secret. The live connection
// stays (ErrLive): without one nobody could log in.
func RemoveConnection(ctx context.Context, edit Editor, brand BrandID, id uuid.UUID) error {
	return edit.change(ctx, brand, "remove login", func(e *Edit) error {
		c, err := e.connection(ctx, id)
		if err != nil {
			return err
		}
		if c.Live {
			return ErrLive
		}
		e.Note("login.removed", map[string]any{"connection": id, "issuer": c.Issuer})
		const q = `
			UPDATE login_connections SET ended_at = @now, client_secret_sealed = ''
			 WHERE brand_id = @brand AND id = @id AND NOT live`
		_, err = e.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "id": id, "now": e.Now})
		return err
	})
}

// connection locks one of the Brand's connections.
func (e *Edit) connection(ctx context.Context, id uuid.UUID) (Connection, error) {
	const q = `SELECT ` + connectionColumns + ` FROM login_connections
		 WHERE brand_id = @brand AND id = @id AND ended_at IS NULL FOR UPDATE`
	rows, err := e.Query(ctx, q, pgx.NamedArgs{"brand": e.Brand, "id": id})
	if err != nil {
		return Connection{}, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[connectionRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return Connection{}, ErrNoConnection
	}
	return Connection(r), err
}
