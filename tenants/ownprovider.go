package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ProviderView is a Provider as a Brand sees it.
type ProviderView struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Audience string `json:"audience"`
	Shared   bool   `json:"shared"`  // the operator's, which hosted Brands of others share
	Own      bool   `json:"own"`     // the Brand made it, and names it
	Present  bool   `json:"present"` // the Brand belongs to it
	// Brands are all that share the audience; nil of the operator's own,
	// where it is nobody's business who they are.
	Brands []BrandID `json:"brands"`
}

const selectProvider = `
	SELECT p.id, p.name, p.audience, p.shared, coalesce(p.founder, '') = @brand AS own,
	       EXISTS (SELECT FROM brands b WHERE b.id = @brand AND b.provider_id = p.id) AS present,
	       CASE WHEN NOT p.shared THEN
	            ARRAY(SELECT h.brand_id FROM provider_brands h
	                   WHERE h.provider_id = p.id AND h.brand_id IS NOT NULL AND h.state <> 'closed' ORDER BY h.brand_id) END AS brands
	  FROM providers p`

// ProvidersOf returns the Provider that the Brand belongs to, and those that it made.
func ProvidersOf(ctx context.Context, db *DB, brand BrandID) ([]ProviderView, error) {
	const q = selectProvider + `
		 WHERE p.founder = @brand OR p.id = (SELECT provider_id FROM brands WHERE id = @brand)
		 ORDER BY p.id`
	all, err := All[ProviderView](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list providers of %s: %w", brand, err)
	}
	return all, nil
}

// Joinable returns the Providers that the person, who owns the Brand, can take it
// into: those that other Brands of theirs made. See SetInterface.
func Joinable(ctx context.Context, db *DB, brand BrandID, person uuid.UUID) ([]ProviderView, error) {
	all, err := Memberships(ctx, db, person)
	if err != nil {
		return nil, err
	}
	var out []ProviderView
	for _, m := range all {
		if m.Brand == brand || m.Role != Owner || m.Held || m.State == Closed {
			continue
		}
		const q = selectProvider + ` WHERE p.founder = @founder AND NOT p.shared ORDER BY p.id`
		some, err := All[ProviderView](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "founder": m.Brand})
		if err != nil {
			return nil, fmt.Errorf("list providers of %s: %w", m.Brand, err)
		}
		out = append(out, some...)
	}
	return out, nil
}

// NameProvider names the Provider that the Brand made, whose id is the Brand's own,
// or makes it: nothing moves by that. An audience is taken only where it is made,
// since it never changes; empty: a name of its own.
func NameProvider(ctx context.Context, edit Editor, site Site, brand BrandID, name, audience string) error {
	return edit.change(ctx, brand, "name provider", func(e *Edit) error {
		var p Problems
		p.words("name", name, 1, mostName)
		if len(p) > 0 {
			return p
		}
		const find = `SELECT name, audience, NOT shared AND coalesce(founder, '') = @brand FROM providers WHERE id = @brand FOR NO KEY UPDATE`
		var before, its string
		var own bool
		err := e.QueryRow(ctx, find, pgx.NamedArgs{"brand": brand}).Scan(&before, &its, &own)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			hosts, err := e.proven(ctx)
			if err != nil {
				return err
			}
			m, made := move{site: site}, Interface{Provider: string(brand), Audience: audience}
			if err := m.makeProvider(ctx, e, &made, hosts); err != nil {
				return err
			}
			before, its, own = "", made.Audience, true
		case err != nil:
			return err
		}
		switch {
		case !own:
			p.add("name", "cannot be given: the Provider with the Brand's id is somebody else's", "ask the operator")
		case audience != "" && audience != its:
			p.add("audience", "is not that of the Provider, which never changes", "leave it out")
		}
		if len(p) > 0 {
			return p
		}
		const set = `UPDATE providers SET name = @name WHERE id = @brand AND name <> @name`
		if _, err := e.Exec(ctx, set, pgx.NamedArgs{"brand": brand, "name": name}); err != nil {
			return err
		}
		switch before {
		case name:
		case "":
			e.Note("provider.made", map[string]any{"provider": brand, "audience": its})
		default:
			e.Note("provider.named", map[string]any{"provider": brand})
		}
		return nil
	})
}

// OwnAudience refuses, as Problems, any audience but the one that the Brand's Provider
// has by itself: agents may take another for somebody else's, and it never changes. An
// owner chooses it on the dashboard; no program or shell does.
func OwnAudience(brand BrandID, audience string) error {
	var p Problems
	if audience != "" && audience != ownAudience(string(brand)) {
		p.add("audience", "of one's own choice is an owner's alone", "leave it out, or have an owner name the Provider on the dashboard, under Interface")
		p.kind(OwnersAlone)
	}
	return p.err()
}

func ownAudience(provider string) string { return "urn:countersign:provider:" + provider }

// mostName is how many characters the name of an organisation may have.
const mostName = 200
