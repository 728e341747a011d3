package authority

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Which names grants: all that match every field that is set. None set is
// nothing, so that a slip ends nobody's grants.
type Which struct {
	Grant    uuid.UUID
	Agent    string
	AgentSub string
	Subject  string
}

func (w Which) empty() bool { return w == Which{} }

// EndByUser ends a grant that belongs to the Brand user; another's, an unknown
// or an ended one is ErrUnknown.
func (a *Authority) EndByUser(ctx context.Context, brand tenants.BrandID, subject string, grant uuid.UUID) error {
	if grant == uuid.Nil || subject == "" {
		return ErrUnknown
	}
	n, err := a.End(ctx, brand, ByUser(subject), Which{Grant: grant, Subject: subject})
	if err == nil && n == 0 {
		return ErrUnknown
	}
	return err
}

// EndAllByUser ends those of the grants that belong to the Brand user and live,
// at one moment: all of them or none. It returns how many. A grant that was made
// since the list was shown is not on it, and stays.
func (a *Authority) EndAllByUser(ctx context.Context, brand tenants.BrandID, subject string, grants []uuid.UUID) (int, error) {
	const q = `
		SELECT id FROM grants
		 WHERE brand_id = @brand AND subject = @subject AND id = ANY (@grants)
		   AND ended_at IS NULL AND expires_at > @now
		 ORDER BY id`
	return a.endWhere(ctx, brand, ByUser(subject), q, pgx.NamedArgs{
		"brand": brand, "subject": subject, "grants": grants, "now": a.clock(),
	})
}

// End ends the living grants that which names, and returns how many, after an
// error too. The same call again ends none. Everything that came of them dies:
// refresh tokens at once, access tokens at their next introspection and in the
// status list.
func (a *Authority) End(ctx context.Context, brand tenants.BrandID, by By, which Which) (int, error) {
	if which.empty() {
		return 0, fmt.Errorf("end grants at %s: %w: say which", brand, ErrUnknown)
	}
	args := a.naming(brand, which)
	if which.Grant != uuid.Nil {
		args["batch"] = 1
		return a.endWhere(ctx, brand, by, findNamed, args)
	}
	return a.endMany(ctx, brand, by, findNamed, args, math.MaxInt)
}

const findNamed = `
		SELECT id FROM grants
		 WHERE brand_id = @brand AND ended_at IS NULL AND expires_at > @now -- what ran out is left to Expire
		   AND (@grant = '00000000-0000-0000-0000-000000000000'::uuid OR id = @grant)
		   AND (@agent = '' OR agent = @agent)
		   AND (@sub = '' OR agent_sub = @sub)
		   AND (@subject = '' OR subject = @subject)
		 ORDER BY id LIMIT @batch`

func (a *Authority) naming(brand tenants.BrandID, which Which) pgx.NamedArgs {
	return pgx.NamedArgs{
		"brand": brand, "grant": which.Grant, "agent": which.Agent, "sub": which.AgentSub, "subject": which.Subject,
		"now": a.clock(),
	}
}

// EndAll ends every living grant of the Brand, and returns how many.
func (a *Authority) EndAll(ctx context.Context, brand tenants.BrandID, by By) (int, error) {
	const q = `SELECT id FROM grants WHERE brand_id = @brand AND ended_at IS NULL ORDER BY id LIMIT @batch`
	return a.endMany(ctx, brand, by, q, pgx.NamedArgs{"brand": brand}, math.MaxInt)
}

// endMany ends what find finds, and not many more than most, in batches: an agent
// with a million grants must not hold the Brand's trail for minutes. After an
// error, as many as it says have ended.
func (a *Authority) endMany(ctx context.Context, brand tenants.BrandID, by By, find string, args pgx.NamedArgs, most int) (int, error) {
	const batch = 500
	args["batch"] = batch
	total := 0
	for {
		found, ended, err := a.endFound(ctx, brand, by, find, args)
		total += ended
		// Until none is left, and not until none was ours: somebody else may be
		// ending the same ones, and stop half-way.
		if err != nil || found == 0 || total >= most {
			return total, err
		}
	}
}

// EndByToken ends the grant of a refresh or access token (RFC 7009). A token
// that is unknown or not the caller's own has no effect and no error, so that
// the answer tells nobody anything.
func (a *Authority) EndByToken(ctx context.Context, brand tenants.BrandID, who Caller, token string) error {
	const q = `
		SELECT g.id FROM grants g
		 WHERE g.brand_id = @brand AND g.agent = @agent AND g.agent_sub = @sub
		   AND g.ended_at IS NULL AND g.expires_at > @now
		   AND (SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent)
		   AND (g.id = @grant OR g.id = (SELECT t.grant_id FROM refresh_tokens t
		                                  WHERE t.brand_id = @brand AND t.hash = @hash))`
	n, err := a.endWhere(ctx, brand, byAgent(who), q, pgx.NamedArgs{
		"brand": brand, "agent": who.Agent, "sub": who.Sub, "hash": hash(token), "grant": namedGrant(token),
		"now": a.clock(),
	})
	if err == nil && n == 0 {
		if err := a.unknown(ctx, brand, who); !errors.Is(err, ErrUnknown) {
			return err
		}
	}
	return err
}

// EndByAgent ends a grant that the caller holds (Grant Management for OAuth
// 2.0); another's, an unknown or an ended one is ErrUnknown.
func (a *Authority) EndByAgent(ctx context.Context, brand tenants.BrandID, who Caller, grant uuid.UUID) error {
	const q = `
		SELECT g.id FROM grants g
		 WHERE g.brand_id = @brand AND g.id = @grant AND g.agent = @agent AND g.agent_sub = @sub
		   AND g.ended_at IS NULL AND g.expires_at > @now
		   AND (SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent)`
	n, err := a.endWhere(ctx, brand, byAgent(who), q, pgx.NamedArgs{
		"brand": brand, "agent": who.Agent, "sub": who.Sub, "grant": grant, "now": a.clock(),
	})
	if err == nil && n == 0 {
		return a.unknown(ctx, brand, who)
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

// endWhere ends what find finds, and returns how many this call ended.
func (a *Authority) endWhere(ctx context.Context, brand tenants.BrandID, by By, find string, args pgx.NamedArgs) (int, error) {
	_, ended, err := a.endFound(ctx, brand, by, find, args)
	return ended, err
}

func (a *Authority) endFound(ctx context.Context, brand tenants.BrandID, by By, find string, args pgx.NamedArgs) (found, ended int, err error) {
	err = a.change(ctx, brand, by, a.clock(), func(c *change) error {
		rows, err := c.Query(ctx, find, args)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if found = len(ids); err != nil || found == 0 {
			return err
		}
		ended, err = c.end(ctx, ids, "revoked_by_"+by.Actor)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("end grant at %s: %w", brand, err)
	}
	return found, ended, nil
}

// end is the one way grants end. It returns how many this call ended.
func (c *change) end(ctx context.Context, grants []uuid.UUID, reason string) (int, error) {
	return c.endBy(ctx, c.by, grants, reason)
}

func (c *change) endBy(ctx context.Context, by By, grants []uuid.UUID, reason string) (int, error) {
	// Locked in one order, so that two who end many do not wait for one another.
	const q = `
		WITH mine AS (
			SELECT id FROM grants
			 WHERE brand_id = @brand AND id = ANY (@grants) AND ended_at IS NULL
			 ORDER BY id FOR UPDATE
		)
		UPDATE grants g SET ended_at = @now, end_reason = @reason, version = version + 1
		  FROM mine
		 WHERE g.brand_id = @brand AND g.id = mine.id AND g.ended_at IS NULL
		RETURNING g.id, g.agent, g.subject, g.scopes, g.expires_at`
	type row struct {
		ID        uuid.UUID `db:"id"`
		Agent     string
		Subject   string
		Scopes    []string
		ExpiresAt time.Time
	}
	rows, err := c.Query(ctx, q, pgx.NamedArgs{"brand": c.brand, "grants": grants, "reason": reason, "now": c.now})
	if err != nil {
		return 0, err
	}
	ended, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return 0, err
	}
	slices.SortFunc(ended, func(a, b row) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	for _, g := range ended {
		c.gone = append(c.gone, g.ID)
		c.note(fact{by: by, event: endEvent(reason), grant: g.ID, detail: told(EventData{
			Agent: g.Agent, Subject: g.Subject, Scopes: []string{}, Before: g.Scopes, Until: c.now, WasUntil: g.ExpiresAt, Reason: reason,
		})})
	}
	return len(ended), nil
}

// endEvent is what the Brand is told of a grant that ended for the reason.
func endEvent(reason string) string {
	switch reason {
	case "expired", "reuse_detected":
		return "grant." + reason
	case "idle":
		return "grant.expired"
	}
	return "grant.revoked"
}

// Suspend stops everything that happens in the Brand user's name, reversibly:
// grants and refresh tokens are kept.
func (a *Authority) Suspend(ctx context.Context, brand tenants.BrandID, by By, subject string) error {
	const q = `
		INSERT INTO suspended_users (brand_id, subject, suspended_at) VALUES (@brand, @subject, @now)
		ON CONFLICT DO NOTHING`
	return a.toggle(ctx, brand, by, subject, "user.suspended", q)
}

// Resume undoes Suspend. The time in between does not count as time in which
// agents stayed away.
func (a *Authority) Resume(ctx context.Context, brand tenants.BrandID, by By, subject string) error {
	const q = `
		WITH back AS (
			DELETE FROM suspended_users WHERE brand_id = @brand AND subject = @subject
			RETURNING subject
		), held AS (
			SELECT g.id FROM grants g JOIN back ON g.subject = back.subject
			 WHERE g.brand_id = @brand AND g.ended_at IS NULL
			 ORDER BY g.id FOR UPDATE OF g
		), kept AS (
			UPDATE grants g SET kept_out_until = @now FROM held WHERE g.brand_id = @brand AND g.id = held.id
		)
		SELECT FROM back`
	return a.toggle(ctx, brand, by, subject, "user.resumed", q)
}

func (a *Authority) toggle(ctx context.Context, brand tenants.BrandID, by By, subject, event, q string) error {
	if subject == "" {
		return fmt.Errorf("%s at %s: name a user", event, brand)
	}
	now := a.clock()
	err := a.change(ctx, brand, by, now, func(c *change) error {
		tag, err := c.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "subject": subject, "now": now})
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		c.moved = append(c.moved, subject)
		c.note(fact{event: event, detail: map[string]any{"subject": subject}})
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s at %s: %w", event, brand, err)
	}
	return nil
}
