package tenants

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"
)

// Reasons a Brand cannot be made.
var (
	ErrBrandTaken = errors.New("another brand has this id")
	ErrBrandID    = errors.New("a brand id is 1 to 40 of a-z, 0-9 and -, and begins with a letter or digit")
)

// EventCreated is the fact that the Brand was made.
const EventCreated = "brand.created"

// NewBrand is what a Brand is made of at sign-up. All else has its default.
type NewBrand struct {
	ID           BrandID
	Name         string
	Organisation string
	Provider     string // whose audience it shares
	PublicURL    string // our own origin: a new Brand is hosted
}

// Create makes the Brand, pending until it has a key, with its first owner. An id
// that was ever taken stays so.
func Create(ctx context.Context, db *DB, n NewBrand, owner uuid.UUID, record Record, now time.Time) error {
	const q = `
		INSERT INTO brands (id, provider_id, name, organisation, mode, state, delegation, interface_url, issuer, created_at)
		VALUES (@id, @provider, @name, @organisation, 'hosted', 'pending', true, @interface, @issuer, @now)
		ON CONFLICT DO NOTHING`
	if !validBrandID(n.ID) {
		return ErrBrandID
	}
	b := Brand{ID: n.ID, Mode: Hosted, InterfaceURL: n.PublicURL + "/a2a/" + string(n.ID)}
	b.Issuer = b.InterfaceURL + "/oauth"
	if err := b.check(); err != nil {
		return fmt.Errorf("create brand %s: %w", n.ID, err)
	}
	err := db.Tx(ctx, n.ID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, q, pgx.NamedArgs{
			"id": n.ID, "provider": n.Provider, "name": n.Name, "organisation": n.Organisation,
			"interface": b.InterfaceURL, "issuer": b.Issuer, "now": now,
		})
		if isUnique(err) { // one that is gone had this URL, and keeps it
			return ErrBrandTaken
		}
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrBrandTaken
		}
		if err := join(ctx, tx, n.ID, owner, Owner, now); err != nil {
			return err
		}
		return record(ctx, tx, n.ID, owner, EventCreated, map[string]any{"role": Owner})
	})
	if err != nil {
		return fmt.Errorf("create brand %s: %w", n.ID, err)
	}
	return nil
}

// Launch opens a pending Brand to agents. The caller has made and tried its key.
func Launch(ctx context.Context, db *DB, id BrandID) error {
	const q = `UPDATE brands SET state = 'active' WHERE id = @brand AND state = 'pending'`
	if _, err := db.Exec(ctx, id, q, pgx.NamedArgs{"brand": id}); err != nil {
		return fmt.Errorf("launch brand %s: %w", id, err)
	}
	return nil
}

// ClaimDemo spends a link of countersign dev: whoever has it owns the demo Brands,
// with one more passkey if they did before.
func ClaimDemo(ctx context.Context, db *DB, l Link, n Newcomer, key Passkey, now time.Time) error {
	const insert = `
		INSERT INTO people (id, email, email_typed, name, language, created_at)
		VALUES (@id, @email, @email, @name, @language, @now)
		ON CONFLICT (email) DO NOTHING`
	err := db.Tx(ctx, "", func(tx pgx.Tx) error {
		if err := l.spend(ctx, tx, now); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insert, pgx.NamedArgs{
			"id": n.ID, "email": l.Email, "name": n.Name, "language": n.Language, "now": now,
		})
		if err != nil {
			return err
		}
		return addPasskey(ctx, tx, n.ID, key, now)
	})
	if err != nil {
		return fmt.Errorf("claim the demo: %w", err)
	}
	for _, id := range l.Data.Brands {
		err := db.Tx(ctx, id, func(tx pgx.Tx) error { return join(ctx, tx, id, n.ID, Owner, now) })
		if err != nil && !errors.Is(err, ErrMember) {
			return fmt.Errorf("own demo brand %s: %w", id, err)
		}
	}
	return nil
}

// ProposeID makes an id of a Brand's name: Café du Nord is cafe-du-nord. A name
// without Latin letters yields none.
func ProposeID(name string) BrandID {
	const longest = 40
	var b strings.Builder
	gap := false
	for _, r := range norm.NFKD.String(strings.ToLower(name)) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r), r == '\'', r == '’':
		default:
			gap = true
		}
		if b.Len() >= longest {
			break
		}
	}
	id := b.String()
	return BrandID(strings.Trim(id[:min(len(id), longest)], "-"))
}

// Progress is how far a Brand has come on its way to a first agent.
type Progress struct {
	Permissions int // that are on the card
	Login       int // live login connections
}

// HowFar counts what the Brand has set up.
func HowFar(ctx context.Context, db *DB, id BrandID) (Progress, error) {
	const q = `
		SELECT (SELECT count(*) FROM brand_scopes WHERE brand_id = @brand AND retired_at IS NULL) AS permissions,
		       (SELECT count(*) FROM login_connections WHERE brand_id = @brand AND live) AS login`
	p, err := One[Progress](ctx, db, id, q, pgx.NamedArgs{"brand": id})
	if err != nil {
		return Progress{}, fmt.Errorf("see how far brand %s has come: %w", id, err)
	}
	return p, nil
}
