package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Provider is an organisation that assigns one audience to personal agents.
type Provider struct {
	ID, Name, Audience string
}

// SaveProvider creates the Provider or renames it. Its audience is set once:
// changing it would make every agent's pa-jwt useless at a stroke.
func SaveProvider(ctx context.Context, db *DB, p Provider, now time.Time) error {
	const q = `
		INSERT INTO providers (id, name, audience, created_at)
		VALUES (@id, @name, @audience, @now)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name
		 WHERE providers.audience = excluded.audience
		RETURNING id`
	var id string
	err := db.pool.QueryRow(ctx, q, pgx.NamedArgs{"id": p.ID, "name": p.Name, "audience": p.Audience, "now": now}).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("save provider %s: its audience is already another one and never changes", p.ID)
	}
	if err != nil {
		return fmt.Errorf("save provider %s: %w", p.ID, err)
	}
	return nil
}

// SaveBrand creates the Brand or brings its settings to b, scopes included:
// scopes that b does not name are retired, never deleted, because grants and
// audit still speak of them.
func SaveBrand(ctx context.Context, db *DB, b Brand, now time.Time) error {
	if err := b.check(); err != nil {
		return fmt.Errorf("save brand %s: %w", b.ID, err)
	}
	const brand = `
		INSERT INTO brands (id, provider_id, name, description, mode, state, delegation, interface_url, issuer,
		                    identity_scheme, colour, support_url, privacy_url, token_seconds, grace_seconds,
		                    grant_days, grant_days_default, signing_alg, rotation_days, created_at)
		VALUES (@id, @provider, @name, @description, @mode, @state, @delegation, @interface, @issuer,
		        @scheme, @colour, @support, @privacy, @token, @grace, @days, @default, @alg, @rotation, @now)
		ON CONFLICT (id) DO UPDATE
		   SET provider_id = excluded.provider_id,
		       name = excluded.name, description = excluded.description, mode = excluded.mode,
		       state = excluded.state, delegation = excluded.delegation,
		       interface_url = excluded.interface_url, issuer = excluded.issuer,
		       identity_scheme = excluded.identity_scheme, colour = excluded.colour,
		       support_url = excluded.support_url, privacy_url = excluded.privacy_url,
		       token_seconds = excluded.token_seconds, grace_seconds = excluded.grace_seconds,
		       grant_days = excluded.grant_days, grant_days_default = excluded.grant_days_default,
		       signing_alg = excluded.signing_alg, rotation_days = excluded.rotation_days
		 WHERE brands.state <> 'closed'`
	// Positions are unique, so retired and reordered scopes first step aside.
	const aside = `
		UPDATE brand_scopes SET position = -1 - position,
		       retired_at = CASE WHEN id = ANY (@ids) THEN NULL ELSE coalesce(retired_at, @now) END
		 WHERE brand_id = @id AND position >= 0`
	const scope = `
		INSERT INTO brand_scopes (brand_id, id, position, description, effect, impact, undo, texts)
		VALUES (@id, @scope, @position, @description, @effect, @impact, @undo, @texts)
		ON CONFLICT (brand_id, id) DO UPDATE
		   SET position = excluded.position, description = excluded.description, effect = excluded.effect,
		       impact = excluded.impact, undo = excluded.undo, texts = excluded.texts, retired_at = NULL`
	const settle = `
		UPDATE brand_scopes s SET position = r.n
		  FROM (SELECT id, 1000000 + row_number() OVER (ORDER BY id) AS n
		          FROM brand_scopes WHERE brand_id = @id AND position < 0) r
		 WHERE s.brand_id = @id AND s.id = r.id`
	ids := make([]string, len(b.Scopes))
	for i, s := range b.Scopes {
		ids[i] = s.ID
	}
	err := db.Tx(ctx, b.ID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, brand, pgx.NamedArgs{
			"id": b.ID, "provider": b.Provider, "name": b.Name, "description": b.Description, "mode": b.Mode,
			"state": b.State, "delegation": b.Delegation, "interface": b.InterfaceURL, "issuer": b.Issuer,
			"scheme": b.IdentityScheme, "colour": b.Colour, "support": b.SupportURL, "privacy": b.PrivacyURL,
			"token": int(b.TokenLifetime / time.Second), "grace": int(b.Grace / time.Second),
			"days": b.GrantDays, "default": b.GrantDefault, "alg": b.SigningAlg,
			"rotation": b.RotationDays, "now": now,
		})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errors.New("the brand is closed, and that is final")
		}
		if _, err := tx.Exec(ctx, aside, pgx.NamedArgs{"id": b.ID, "ids": ids, "now": now}); err != nil {
			return err
		}
		for i, s := range b.Scopes {
			texts, err := json.Marshal(s.Texts)
			if err != nil {
				return err
			}
			if s.Texts == nil {
				texts = []byte("{}")
			}
			if _, err := tx.Exec(ctx, scope, pgx.NamedArgs{
				"id": b.ID, "scope": s.ID, "position": i, "description": s.Description,
				"effect": s.Effect, "impact": s.Impact, "undo": s.Undo, "texts": texts,
			}); err != nil {
				return fmt.Errorf("scope %s: %w", s.ID, err)
			}
		}
		_, err = tx.Exec(ctx, settle, pgx.NamedArgs{"id": b.ID})
		return err
	})
	if err != nil {
		return fmt.Errorf("save brand %s: %w", b.ID, err)
	}
	return nil
}

func (b *Brand) check() error {
	var errs []error
	if !validBrandID(b.ID) {
		errs = append(errs, errors.New("id: use 1 to 40 of a–z, 0–9 and -"))
	}
	for _, u := range []struct{ what, url string }{{"interface URL", b.InterfaceURL}, {"issuer", b.Issuer}} {
		p, err := url.Parse(u.url)
		if err != nil || p.Host == "" || p.User != nil || p.RawQuery != "" || p.Fragment != "" ||
			strings.HasSuffix(u.url, "/") || p.Scheme != "https" && !(p.Scheme == "http" && loopback(p.Hostname())) {
			errs = append(errs, fmt.Errorf("%s %q: give an absolute https URL without query, fragment or trailing slash", u.what, u.url))
		}
	}
	// Strict agents refuse cross-origin OAuth URLs; only Split says so openly.
	if b.Mode != Split && b.Issuer != b.InterfaceURL+"/oauth" {
		errs = append(errs, fmt.Errorf("issuer %q: must be the interface URL + /oauth unless the mode is split", b.Issuer))
	}
	for _, days := range b.GrantDays {
		if days < 1 || days > 366 {
			errs = append(errs, fmt.Errorf("grant days %d: give 1 to 366", days))
		}
	}
	seen := make(map[string]bool)
	for _, s := range b.Scopes {
		// Ids that differ only in case would be told apart by nobody (B84).
		if k := strings.ToLower(s.ID); seen[k] {
			errs = append(errs, fmt.Errorf("scope %q: appears twice", s.ID))
		} else {
			seen[k] = true
		}
	}
	return errors.Join(errs...)
}

// loopback reports whether the host is this machine, where development may do
// without TLS.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// SetState pauses, resumes or closes a Brand. Closed is final.
func SetState(ctx context.Context, db *DB, id BrandID, state State) error {
	const q = `UPDATE brands SET state = @state WHERE id = @brand AND state <> 'closed'`
	n, err := db.Exec(ctx, id, q, pgx.NamedArgs{"brand": id, "state": state})
	if err != nil {
		return fmt.Errorf("set brand %s %s: %w", id, state, err)
	}
	if n == 0 {
		return fmt.Errorf("set brand %s %s: %w", id, state, ErrNoBrand)
	}
	return nil
}
