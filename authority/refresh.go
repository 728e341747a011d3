package authority

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Refresh pays out again for a refresh token (RFC 6749 §6), which is spent and
// replaced by its successor. The caller is checked before anything is spent
// (M16). narrow, when not empty, narrows the access token only.
//
// Inside the Brand's grace window a spent token answers with the same
// successor again, as long as that is unused: a lost reply and two processes
// of one agent lose nothing (RFC 9700 §4.14.2, FAPI 2.0). After the window,
// reuse by the rightful caller ends the grant (ErrReused).
func (a *Authority) Refresh(ctx context.Context, brand *tenants.Brand, who Caller, token string, narrow []string) (Tokens, error) {
	const turns = 4
	var access signedFor
	for range turns {
		tokens, err := a.refresh(ctx, brand, who, token, fold(narrow), &access)
		if errors.Is(err, errMoved) {
			continue
		}
		return tokens, err
	}
	return Tokens{}, fmt.Errorf("refresh at %s: %w: the grant keeps moving", brand.ID, ErrUnavailable)
}

// flight is how long a call may have been on its way. Two calls that were sent
// together are no theft, even where the Brand wants no grace window (B25); a
// thief gains nothing by it, and is found when the rightful caller comes again.
const flight = 2 * time.Second

// signedFor keeps a signature for another turn over the same reading of the
// grant, so that callers who race do not multiply signatures.
type signedFor struct {
	Access
	version int
	scopes  []string
}

// held is what one look at a refresh token found.
type held struct {
	GrantID    uuid.UUID `db:"grant_id"`
	FamilyID   uuid.UUID `db:"family_id"`
	Generation int
	KeyVersion int
	UsedAt     *time.Time
	Answerable *time.Time // since when a retry could be answered, after it was used
	Unanswered *time.Time // when a retry in time could not be
	NextUsedAt *time.Time // the successor's
	Subject    string
	Scopes     []string
	Details    Details
	Version    int
	GrantEnds  time.Time
	StatusList *int
	StatusIdx  *int
	GrantOn    bool
	LastUsed   time.Time // the grant was
	AgentOn    bool
	BrandOn    bool
	Suspended  bool
	Offered    []string
}

func (a *Authority) refresh(ctx context.Context, brand *tenants.Brand, who Caller, token string, narrow []string, signed *signedFor) (Tokens, error) {
	now := a.clock()
	h, err := a.look(ctx, brand.ID, who, token, now)
	if errors.Is(err, pgx.ErrNoRows) {
		return Tokens{}, a.unknown(ctx, brand.ID, who)
	}
	if err != nil {
		return Tokens{}, fmt.Errorf("refresh at %s: %w", brand.ID, err)
	}
	switch {
	case !h.AgentOn:
		return Tokens{}, ErrAgentDisabled
	case !h.BrandOn:
		return Tokens{}, ErrPaused
	case !h.GrantOn:
		return Tokens{}, ErrEnded
	}
	if h.Suspended {
		return Tokens{}, ErrSuspended // nothing is spent, and a retry is no theft
	}
	if idle := now.AddDate(0, 0, -brand.IdleDays); !h.LastUsed.After(idle) {
		ended, err := a.forget(ctx, brand.ID, []uuid.UUID{h.GrantID}, idle, now)
		if err != nil {
			return Tokens{}, err
		}
		if ended > 0 {
			return Tokens{}, ErrEnded
		}
	}
	if h.UsedAt != nil {
		// Nobody could answer a retry while the agent was kept out. Where the successor
		// is in use, its reply was not lost.
		since := *h.UsedAt
		if h.NextUsedAt == nil {
			since = *h.Answerable
		}
		switch age := now.Sub(since); {
		case brand.Grace > 0 && h.NextUsedAt == nil && (age <= brand.Grace || h.waits(now)):
			// A lost reply, or a parallel caller: the same successor again.
			a.count.reuse.WithLabelValues("grace").Inc()
		case age <= max(brand.Grace, flight):
			// Its successor is in use, or there is no window and this call was
			// on its way when the token was spent: too late, but no sign of theft.
			a.count.reuse.WithLabelValues("late").Inc()
			return Tokens{}, ErrUnknown
		default:
			return Tokens{}, a.reused(ctx, brand.ID, who, h, now)
		}
	}
	scopes := payable(nil, h.Scopes, h.Offered)
	if len(narrow) > 0 {
		for _, s := range narrow {
			if !slices.Contains(scopes, s) {
				return Tokens{}, ErrScope
			}
		}
		scopes = narrow
	}
	details := h.Details.Of(scopes...)
	if signed.version != h.Version || !slices.Equal(signed.scopes, scopes) {
		access, err := a.sign(ctx, brand, who, signable{
			grant: h.GrantID, subject: h.Subject, scopes: scopes, details: details, grantEnds: h.GrantEnds,
			status: statusOf(h.StatusList, h.StatusIdx),
		})
		if err != nil {
			if h.UsedAt != nil && ctx.Err() == nil { // a caller who hangs up met no outage
				a.unanswered(ctx, brand.ID, token, now)
			}
			return Tokens{}, err
		}
		*signed = signedFor{Access: access, version: h.Version, scopes: scopes}
	}
	next, err := a.successor(brand.ID, token, h)
	if err != nil {
		return Tokens{}, err
	}
	if err := a.rotate(ctx, brand.ID, who, h, token, next); err != nil {
		return Tokens{}, err
	}
	return Tokens{Access: signed.Access, Refresh: next, Scopes: scopes, Details: details, GrantID: h.GrantID}, nil
}

// patience is how long after a retry that met an outage the next one may come: agents
// that are told 503 come less and less often. longestOutage bounds all of them.
const (
	patience      = 10 * time.Minute
	longestOutage = 12 * time.Hour
)

// waits reports whether a retry that came in time could not be answered, and this is
// the next one.
func (h held) waits(now time.Time) bool {
	return h.Unanswered != nil && now.Sub(*h.Unanswered) <= patience && now.Sub(*h.Answerable) <= longestOutage
}

// unanswered notes that a retry came in time and nothing could be signed for it: what
// follows is no theft. Where the database is away as well, the window ends as ever.
func (a *Authority) unanswered(ctx context.Context, brand tenants.BrandID, token string, now time.Time) {
	const q = `UPDATE refresh_tokens SET unanswered_at = @now WHERE brand_id = @brand AND hash = @hash AND used_at IS NOT NULL`
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, _ = a.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "hash": hash(token), "now": now})
}

// look finds the token if it is the caller's own: another agent's, person's or
// Brand's is not found at all, so nothing about it can change (P31).
func (a *Authority) look(ctx context.Context, brand tenants.BrandID, who Caller, token string, now time.Time) (held, error) {
	const q = `
		SELECT t.grant_id, t.family_id, t.generation, t.key_version, t.used_at,
		       CASE WHEN t.used_at IS NOT NULL THEN greatest(t.used_at, t.answered_at, ` + letIn + `) END AS answerable,
		       t.unanswered_at AS unanswered,
		       (SELECT n.used_at FROM refresh_tokens n
		         WHERE n.brand_id = @brand AND n.family_id = t.family_id
		           AND n.generation = t.generation + 1) AS next_used_at,
		       g.subject, g.scopes, g.details, g.version, g.expires_at AS grant_ends, g.status_list, g.status_idx,
		       g.ended_at IS NULL AND g.expires_at > @now AS grant_on,
		       coalesce(g.last_used_at, g.created_at) AS last_used,
		       coalesce((SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent), false) AS agent_on,
		       b.state = 'active' AND b.delegation AS brand_on,
		       EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = @brand AND u.subject = g.subject) AS suspended,
		       ARRAY(SELECT s.id FROM brand_scopes s
		              WHERE s.brand_id = @brand AND s.retired_at IS NULL ORDER BY s.position) AS offered
		  FROM refresh_tokens t
		  JOIN grants g ON g.brand_id = t.brand_id AND g.id = t.grant_id
		  JOIN brands b ON b.id = t.brand_id
		 WHERE t.brand_id = @brand AND t.hash = @hash
		   AND g.agent = @agent AND g.agent_sub = @sub`
	return tenants.One[held](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "hash": hash(token), "agent": who.Agent, "sub": who.Sub, "now": now,
	})
}

// successor derives the token that replaces token. Only its hash is stored, yet
// a retry finds the same one again, because it is a MAC under a key outside
// the database.
func (a *Authority) successor(brand tenants.BrandID, token string, h held) (string, error) {
	data := binary.BigEndian.AppendUint64([]byte(token), uint64(h.Generation))
	mac, err := a.master.MAC(h.KeyVersion, brand, purposeRefresh, data)
	if err != nil {
		return "", fmt.Errorf("derive refresh token: %w", err)
	}
	return "rt_" + base64.RawURLEncoding.EncodeToString(mac), nil
}

// rotate is the compare-and-set. errMoved: read again and decide anew.
func (a *Authority) rotate(ctx context.Context, brand tenants.BrandID, who Caller, h held, token, next string) error {
	const q = `
		WITH alive AS (
			UPDATE grants g SET last_used_at = @now
			 WHERE g.brand_id = @brand AND g.id = @grant AND g.version = @version
			   AND g.ended_at IS NULL AND g.expires_at > @now
			   AND (SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = @agent)
			   AND (SELECT state = 'active' AND delegation FROM brands WHERE id = @brand)
			   AND NOT EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = @brand AND u.subject = g.subject)
			RETURNING g.id
		), spent AS (
			UPDATE refresh_tokens t SET used_at = @now
			  FROM alive
			 WHERE t.brand_id = @brand AND t.hash = @hash AND t.used_at IS NULL
			RETURNING t.grant_id, t.family_id, t.generation
		), answered AS ( -- what the retry waited for has come; from here the window runs again
			UPDATE refresh_tokens t SET unanswered_at = NULL, answered_at = @now
			  FROM alive
			 WHERE t.brand_id = @brand AND t.hash = @hash AND t.unanswered_at IS NOT NULL
		), made AS (
			INSERT INTO refresh_tokens (brand_id, hash, grant_id, family_id, generation, key_version, created_at)
			SELECT @brand, @next, grant_id, family_id, generation + 1, @key_version, @now FROM spent
			RETURNING hash
		)
		SELECT EXISTS (SELECT FROM made) OR EXISTS (
		           -- grace: spent before, its successor not yet
		           SELECT FROM alive, refresh_tokens n
		            WHERE @again AND n.brand_id = @brand AND n.hash = @next AND n.used_at IS NULL) AS won`
	r, err := tenants.One[struct{ Won bool }](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "grant": h.GrantID, "version": h.Version, "agent": who.Agent, "now": a.clock(),
		"hash": hash(token), "next": hash(next), "key_version": a.master.Version(), "again": h.UsedAt != nil,
	})
	if err != nil {
		return fmt.Errorf("rotate at %s: %w", brand, err)
	}
	if !r.Won {
		return errMoved
	}
	return nil
}

// reused ends the grant: one of the two who hold this token is a thief, and
// nobody can tell which.
func (a *Authority) reused(ctx context.Context, brand tenants.BrandID, who Caller, h held, now time.Time) error {
	ended := 0
	err := a.change(ctx, brand, byAgent(who), now, func(c *change) (err error) {
		ended, err = c.end(ctx, []uuid.UUID{h.GrantID}, "reuse_detected")
		return err
	})
	if err != nil {
		return fmt.Errorf("end reused grant at %s: %w", brand, err)
	}
	if ended > 0 { // several replays of one token are one theft
		a.count.reuse.WithLabelValues("ended").Inc()
	}
	return ErrReused
}
