package authority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Question is what the consent page must show the person who is logged in as
// Subject, or how the request was decided.
type Question struct {
	ID        uuid.UUID `db:"id"`
	State     string    // pending, approved, denied, redeemed
	Agent     string    // issuer: its host is what the person can rely on
	AgentName string    // the agent's own words
	AgentLogo string    // the hash of its picture, of its own choice too; empty: none
	AgentSub  string
	UserCode  UserCode `db:"-"` // to compare; empty once decided
	Requested []string
	Details   Details // what it asks for, more exactly
	AskedAt   time.Time
	ExpiresAt time.Time
	AgentOn   bool
	BrandOn   bool
	Suspended bool
	// The living grant this login holds, if any.
	GrantID      *uuid.UUID `db:"grant_id"`
	GrantVersion int        // 0: none
	Held         []string
	HeldDetails  Details
	HeldUntil    *time.Time
	Seen         map[string]digest // the words under which each was allowed
	// At a step-up: the Brand's reason, and the Brand user it is for, if one is
	// expected. WrongUser: somebody else is logged in.
	Kind      string
	Reason    string
	Expected  *string
	WrongUser bool
	// FirstGrant: this (agent, person) never had a grant here that lived.
	FirstGrant bool
	// OtherUser: another Brand user already holds a living grant for the same
	// (agent, person): one of the two may be the wrong account.
	OtherUser bool
	// HeldByAny is what any living grant of the same (agent, person) holds,
	// whoever the login turns out to be.
	HeldByAny []string
	// Decided by, and with, for the closing page; nil while pending or denied.
	DecidedSubject *string
	DecidedScopes  []string
	DecidedDetails Details
	DecidedUntil   *time.Time
	DecidedOver    bool // the grant has ended since

	Sealed []byte // the user code, as stored
}

// Expired reports whether the request's time is over.
func (q *Question) Expired(now time.Time) bool { return !now.Before(q.ExpiresAt) }

// DetailsOf are the details that the scope will have if it is ticked.
func (q *Question) DetailsOf(scope string) Details {
	return merge(q.HeldDetails, q.Details, []string{scope})
}

// Ask returns the question that the request puts to the Brand user. An empty
// subject (nobody logged in yet) holds nothing. An unknown request is ErrUnknown.
func (a *Authority) Ask(ctx context.Context, brand tenants.BrandID, request uuid.UUID, subject string) (*Question, error) {
	const q = `
		SELECT d.id, d.state, d.agent, coalesce(s.name, '') AS agent_name, coalesce(s.logo, '') AS agent_logo, d.agent_sub, d.scopes AS requested, d.details,
		       d.created_at AS asked_at, d.expires_at, d.user_code_sealed AS sealed,
		       coalesce(s.enabled, false) AS agent_on,
		       b.state = 'active' AND b.delegation AS brand_on,
		       EXISTS (SELECT FROM suspended_users u WHERE u.brand_id = @brand AND u.subject = @subject) AS suspended,
		       g.id AS grant_id, coalesce(g.version, 0) AS grant_version, g.scopes AS held, g.details AS held_details, g.expires_at AS held_until,
		       coalesce(g.seen, '{}') AS seen, d.kind, d.reason, d.expected_subject AS expected,
		       d.expected_subject IS NOT NULL AND d.expected_subject <> @subject AS wrong_user,
		       NOT EXISTS (SELECT FROM grants o WHERE o.brand_id = @brand AND o.agent = d.agent
		                      AND o.agent_sub = d.agent_sub AND o.ended_at IS NULL AND o.expires_at > @now) AS first_grant,
		       EXISTS (SELECT FROM grants o WHERE o.brand_id = @brand AND o.agent = d.agent
		                  AND o.agent_sub = d.agent_sub AND o.subject <> @subject
		                  AND o.ended_at IS NULL AND o.expires_at > @now) AS other_user,
		       ARRAY(SELECT DISTINCT unnest(o.scopes) FROM grants o WHERE o.brand_id = @brand AND o.agent = d.agent
		                AND o.agent_sub = d.agent_sub AND o.ended_at IS NULL AND o.expires_at > @now) AS held_by_any,
		       r.subject AS decided_subject, r.scopes AS decided_scopes, r.details AS decided_details, r.expires_at AS decided_until,
		       coalesce(r.ended_at IS NOT NULL, false) AS decided_over
		  FROM device_requests d
		  JOIN brands b ON b.id = d.brand_id
		  LEFT JOIN agent_standing s ON s.brand_id = d.brand_id AND s.issuer = d.agent
		  LEFT JOIN grants g ON g.brand_id = @brand AND g.agent = d.agent AND g.agent_sub = d.agent_sub
		                    AND g.subject = @subject AND g.ended_at IS NULL AND g.expires_at > @now
		  LEFT JOIN grants r ON r.brand_id = @brand AND r.id = d.grant_id
		 WHERE d.brand_id = @brand AND d.id = @request`
	out, err := tenants.One[Question](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "request": request, "subject": subject, "now": a.clock(),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("ask at %s: %w", brand, err)
	}
	if out.State == "pending" {
		code, err := a.master.Open(ctx, brand, purposeUserCode, out.Sealed)
		if err != nil {
			return nil, fmt.Errorf("open user code at %s: %w", brand, err)
		}
		out.UserCode = UserCode(code)
	}
	return &out, nil
}
