package authority

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Visitor is who types or opens a code, as far as is known. Empty fields are
// not counted.
type Visitor struct {
	Session string // the browser's own secret
	Subject string // the Brand user, once logged in
	Address string // from the trusted hop only; IPv6 cut to its /64
}

// How many wrong codes are forgiven per codeWindow. The Brand's own budget
// keeps the chance of guessing a given code within its life below 2⁻²⁰ however
// many addresses guess (20,000 of 20⁸), and is far above what people mistype.
const (
	codeWindow      = 10 * time.Minute
	wrongPerVisitor = 10
	wrongPerBrand   = 20_000
)

// Find returns the Brand's pending request with the user code. A code that is
// wrong, dead or another Brand's is ErrUnknown, without saying which (B03); too
// many of them is a *LimitError, for right codes too, or guessing would go on.
// A success refills nothing.
func (a *Authority) Find(ctx context.Context, brand tenants.BrandID, input string, v Visitor) (uuid.UUID, UserCode, error) {
	code, ok := ParseUserCode(input)
	if !ok {
		code = "" // counted like any wrong code
	}
	mac, err := a.master.MAC(a.master.Version(), brand, purposeUserCode, []byte(code))
	if err != nil {
		return uuid.Nil, "", err
	}
	kinds, keys := v.buckets()
	const q = `
		WITH hit AS (
			SELECT id FROM device_requests
			 WHERE brand_id = @brand AND user_code_mac = @mac AND state = 'pending' AND expires_at > @now
		), bucket AS (
			SELECT t.kind, t.key, CASE t.kind WHEN 'brand' THEN @per_brand::int ELSE @per_visitor::int END AS allowed
			  FROM unnest(@kinds::text[], @keys::bytea[]) AS t (kind, key)
		), spent AS (
			SELECT min(c.started_at) AS since
			  FROM bucket b JOIN code_attempts c
			    ON c.brand_id = @brand AND c.kind = b.kind AND c.key = b.key
			 WHERE c.started_at > @window AND c.wrong >= b.allowed
		), counted AS (
			-- Only a wrong code of somebody who is not blocked yet fills buckets:
			-- one noisy address must neither use up what the whole Brand has, nor
			-- make every other visitor wait for the Brand's one row.
			INSERT INTO code_attempts AS c (brand_id, kind, key, started_at, wrong)
			SELECT @brand, b.kind, b.key, @now, 1
			  FROM bucket b, spent
			 WHERE spent.since IS NULL AND NOT EXISTS (SELECT FROM hit)
			 ORDER BY b.kind -- one order of locks for everybody
			ON CONFLICT (brand_id, kind, key) DO UPDATE
			   SET wrong = 1 + CASE WHEN c.started_at > @window THEN c.wrong ELSE 0 END,
			       started_at = CASE WHEN c.started_at > @window THEN c.started_at ELSE @now END
			RETURNING kind, wrong, started_at
		)
		SELECT (SELECT id FROM hit) AS id,
		       -- Parallel guesses all saw room; the count itself tells who was late.
		       coalesce(spent.since, (SELECT min(c.started_at) FROM counted c JOIN bucket b USING (kind)
		                              WHERE c.wrong > b.allowed)) AS blocked
		  FROM spent`
	now := a.clock()
	type row struct {
		ID      *uuid.UUID `db:"id"`
		Blocked *time.Time
	}
	r, err := tenants.One[row](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "mac": mac, "now": now, "window": now.Add(-codeWindow),
		"kinds": kinds, "keys": keys, "per_brand": wrongPerBrand, "per_visitor": wrongPerVisitor,
	})
	switch {
	case err != nil:
		return uuid.Nil, "", fmt.Errorf("find request at %s: %w", brand, err)
	case r.Blocked != nil:
		return uuid.Nil, "", &LimitError{What: "wrong codes", RetryAfter: r.Blocked.Add(codeWindow).Sub(now)}
	case r.ID == nil || !ok:
		return uuid.Nil, "", ErrUnknown
	}
	return *r.ID, code, nil
}

// buckets returns the counters the visitor fills, hashed: no address and no
// account is kept.
func (v Visitor) buckets() (kinds []string, keys [][]byte) {
	add := func(kind, value string) {
		sum := sha256.Sum256([]byte(kind + "\x00" + value))
		kinds, keys = append(kinds, kind), append(keys, sum[:])
	}
	if v.Address != "" {
		add("address", v.Address)
	}
	add("brand", "")
	if v.Session != "" {
		add("session", v.Session)
	}
	if v.Subject != "" {
		add("user", v.Subject)
	}
	return kinds, keys
}
