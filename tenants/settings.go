package tenants

import (
	"cmp"
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

// usualIdleDays is for Brands that say nothing of it.
const usualIdleDays = 30

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
		                    grant_days, grant_days_default, signing_alg, rotation_days, idle_days, skip_consent,
		                    connected_url, languages, agents, proven, created_at)
		VALUES (@id, @provider, @name, @description, @mode, @state, @delegation, @interface, @issuer,
		        @scheme, @colour, @support, @privacy, @token, @grace, @days, @default, @alg, @rotation, @idle, @skip,
		        @connected, coalesce(@languages::text[], '{}'), coalesce(nullif(@agents, ''), 'registered'), @proven, @now)
		ON CONFLICT (id) DO UPDATE
		   SET provider_id = excluded.provider_id,
		       name = excluded.name, description = excluded.description, mode = excluded.mode,
		       state = excluded.state, delegation = excluded.delegation,
		       interface_url = excluded.interface_url, issuer = excluded.issuer,
		       identity_scheme = excluded.identity_scheme, colour = excluded.colour,
		       support_url = excluded.support_url, privacy_url = excluded.privacy_url,
		       token_seconds = excluded.token_seconds, grace_seconds = excluded.grace_seconds,
		       grant_days = excluded.grant_days, grant_days_default = excluded.grant_days_default,
		       signing_alg = excluded.signing_alg, rotation_days = excluded.rotation_days, idle_days = excluded.idle_days,
		       skip_consent = excluded.skip_consent, connected_url = excluded.connected_url,
		       languages = excluded.languages, agents = excluded.agents, proven = excluded.proven
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
			"rotation": b.RotationDays, "idle": cmp.Or(b.IdleDays, usualIdleDays), "skip": b.SkipConsent,
			"connected": b.ConnectedURL, "languages": b.Languages, "agents": b.Agents, "proven": b.Proven, "now": now,
		})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrClosed
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

// ErrClosed is returned for a change of a Brand that is closed.
var ErrClosed = errors.New("the brand is closed, and that is final")

// ErrPendingBrand is returned for a Brand that has no signing key yet.
var ErrPendingBrand = errors.New("the brand has no signing key yet")

// SetState pauses, resumes or closes a Brand. Closed is final (ErrClosed), and
// Pending ends only with a signing key, in Launch, or when the Brand is closed
// (ErrPendingBrand).
func SetState(ctx context.Context, db *DB, id BrandID, state State) error {
	return db.Tx(ctx, id, func(tx pgx.Tx) error {
		_, err := SetStateIn(ctx, tx, id, state)
		return err
	})
}

// SetStateIn is SetState in a transaction that has more to do. It reports
// whether the Brand was in another state before.
func SetStateIn(ctx context.Context, tx pgx.Tx, id BrandID, state State) (bool, error) {
	const find = `SELECT state FROM brands WHERE id = @brand FOR NO KEY UPDATE`
	const set = `UPDATE brands SET state = @state, pauses = pauses + CASE WHEN @state = 'paused' THEN 1 ELSE 0 END WHERE id = @brand`
	args := pgx.NamedArgs{"brand": id, "state": state}
	var before State
	err := tx.QueryRow(ctx, find, args).Scan(&before)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = ErrNoBrand
	case err == nil && before == state:
		return false, nil
	case err == nil && before == Closed:
		err = ErrClosed
	case err == nil && before == Pending && state != Closed:
		err = ErrPendingBrand
	case err == nil:
		_, err = tx.Exec(ctx, set, args)
	}
	if err != nil {
		return false, fmt.Errorf("set brand %s %s: %w", id, state, err)
	}
	return true, nil
}
