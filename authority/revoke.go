package authority

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// EndByUser ends a grant that belongs to the Brand user; another's, an unknown
// or an ended one is ErrUnknown.
func (a *Authority) EndByUser(ctx context.Context, brand tenants.BrandID, subject string, grant uuid.UUID) error {
	const q = `
		SELECT id FROM grants
		 WHERE brand_id = @brand AND id = @grant AND subject = @subject AND ended_at IS NULL`
	return a.endWhere(ctx, brand, "user", q, pgx.NamedArgs{"brand": brand, "grant": grant, "subject": subject})
}

// EndByToken ends the grant of a refresh or access token (RFC 7009). A token
// that is unknown or not the caller's own has no effect and no error, so that
// the answer tells nobody anything.
func (a *Authority) EndByToken(ctx context.Context, brand tenants.BrandID, who Caller, token string) error {
	const q = `
		SELECT g.id FROM grants g
		 WHERE g.brand_id = @brand AND g.agent = @agent AND g.agent_sub = @sub AND g.ended_at IS NULL
		   AND (SELECT enabled FROM agent_states WHERE issuer = @agent)
		   AND (g.id = @grant OR g.id = (SELECT t.grant_id FROM refresh_tokens t
		                                  WHERE t.brand_id = @brand AND t.hash = @hash))`
	err := a.endWhere(ctx, brand, "agent", q, pgx.NamedArgs{
		"brand": brand, "agent": who.Agent, "sub": who.Sub, "hash": hash(token), "grant": namedGrant(token),
	})
	if errors.Is(err, ErrUnknown) {
		if err := a.unknown(ctx, who); errors.Is(err, ErrAgentDisabled) {
			return err
		}
		return nil
	}
	return err
}

// namedGrant reads the grant id out of an access token. The signature need not
// be checked: the grant must be the caller's own, and whoever forges a token
// that names his own grant ends only that.
func namedGrant(token string) *uuid.UUID {
	parts := strings.SplitN(token, ".", 3)
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	var c struct {
		GrantID uuid.UUID `json:"grant_id"`
	}
	if json.Unmarshal(payload, &c) != nil || c.GrantID == uuid.Nil {
		return nil
	}
	return &c.GrantID
}

func (a *Authority) endWhere(ctx context.Context, brand tenants.BrandID, actor, find string, args pgx.NamedArgs) error {
	err := a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		var id uuid.UUID
		if err := tx.QueryRow(ctx, find, args).Scan(&id); err != nil {
			return err
		}
		ended, err := end(ctx, tx, brand, id, "revoked_by_"+actor, a.clock(), actor)
		if err == nil && !ended {
			return ErrUnknown
		}
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) || errors.Is(err, ErrUnknown) {
		return ErrUnknown
	}
	if err != nil {
		return fmt.Errorf("end grant at %s: %w", brand, err)
	}
	return nil
}

// end is the one way a grant ends. It reports whether this call ended it.
func end(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, grant uuid.UUID, reason string, now time.Time, actor string) (bool, error) {
	const q = `
		UPDATE grants SET ended_at = @now, end_reason = @reason, version = version + 1
		 WHERE brand_id = @brand AND id = @grant AND ended_at IS NULL`
	tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "grant": grant, "reason": reason, "now": now})
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	return true, record(ctx, tx, brand, now, fact{actor: actor, event: "grant.ended", grant: grant, detail: map[string]any{"reason": reason}})
}

// Suspend stops everything that happens in the Brand user's name, reversibly:
// grants and refresh tokens are kept.
func (a *Authority) Suspend(ctx context.Context, brand tenants.BrandID, subject string) error {
	const q = `
		INSERT INTO suspended_users (brand_id, subject, suspended_at) VALUES (@brand, @subject, @now)
		ON CONFLICT DO NOTHING`
	return a.toggle(ctx, brand, subject, "user.suspended", q)
}

// Resume undoes Suspend.
func (a *Authority) Resume(ctx context.Context, brand tenants.BrandID, subject string) error {
	const q = `DELETE FROM suspended_users WHERE brand_id = @brand AND subject = @subject`
	return a.toggle(ctx, brand, subject, "user.resumed", q)
}

func (a *Authority) toggle(ctx context.Context, brand tenants.BrandID, subject, event, q string) error {
	if subject == "" {
		return fmt.Errorf("%s at %s: name a user", event, brand)
	}
	now := a.clock()
	err := a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "subject": subject, "now": now})
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return record(ctx, tx, brand, now, fact{actor: "operator", event: event, detail: map[string]any{"subject": subject}})
	})
	if err != nil {
		return fmt.Errorf("%s at %s: %w", event, brand, err)
	}
	return nil
}
