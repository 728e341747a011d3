package authority_test

import (
	"errors"
	"slices"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

// stands compares everything that there is with the model.
func (l *lived) stands(rt *rapid.T) {
	l.grantsStand(rt)
	l.tokensStand(rt)
	l.trailStands(rt)
}

// storedGrant is a grant with all that hangs on it.
type storedGrant struct {
	ID        uuid.UUID `db:"id"`
	BrandID   string    `db:"brand_id"`
	Agent     string
	AgentSub  string
	Subject   string
	Scopes    []string
	ExpiresAt time.Time
	EndReason *string
	StatusIdx int
	Valid     []int // status indexes that say so
	Indexes   int   // all that it has had
	Events    []string
	Spent     int // refresh tokens
	Fresh     int
	Families  int // with a fresh one
}

const everyGrant = `
	SELECT g.id, g.brand_id, g.agent, g.agent_sub, g.subject, g.scopes, g.expires_at, g.end_reason, g.status_idx,
	       ARRAY(SELECT idx FROM status_entries e
	              WHERE e.brand_id = g.brand_id AND e.grant_id = g.id AND invalid_at IS NULL) AS valid,
	       (SELECT count(*) FROM status_entries e WHERE e.brand_id = g.brand_id AND e.grant_id = g.id) AS indexes,
	       ARRAY(SELECT event FROM audit_events e
	              WHERE e.brand_id = g.brand_id AND e.grant_id = g.id AND event LIKE 'grant.%' ORDER BY seq) AS events,
	       (SELECT count(*) FROM refresh_tokens t
	         WHERE t.brand_id = g.brand_id AND t.grant_id = g.id AND used_at IS NOT NULL) AS spent,
	       (SELECT count(*) FROM refresh_tokens t
	         WHERE t.brand_id = g.brand_id AND t.grant_id = g.id AND used_at IS NULL) AS fresh,
	       (SELECT count(DISTINCT family_id) FROM refresh_tokens t
	         WHERE t.brand_id = g.brand_id AND t.grant_id = g.id AND used_at IS NULL) AS families
	  FROM grants g
	 WHERE g.agent_sub = ANY ($1)
	 ORDER BY g.id`

// grantsStand: the grants are the model's, each with one valid status index
// while nobody has ended it, told of step by step, and with at most one fresh
// refresh token in each family.
func (l *lived) grantsStand(rt *rapid.T) {
	rows, err := l.w.Owner.Query(l.t.Context(), everyGrant, []string{l.callers[0].Sub, l.callers[2].Sub})
	if err != nil {
		rt.Fatal(err)
	}
	stored, err := pgx.CollectRows(rows, pgx.RowToStructByName[storedGrant])
	if err != nil {
		rt.Fatal(err)
	}
	if len(stored) != len(l.grants) {
		rt.Fatalf("%d grants, the model has %d", len(stored), len(l.grants))
	}
	unended := make(map[any]bool)
	for i, s := range stored { // ids follow one another in time
		g := l.grants[i]
		if g.id == uuid.Nil {
			g.id = s.ID
		}
		four := struct {
			login
			who authority.Caller
		}{login{tenants.BrandID(s.BrandID), s.Subject}, authority.Caller{Agent: s.Agent, Sub: s.AgentSub}}
		reason := ""
		if s.EndReason != nil {
			reason = *s.EndReason
		}
		if s.ID != g.id || four.login != g.login || four.who != g.who || !slices.Equal(s.Scopes, g.scopes) ||
			!s.ExpiresAt.Equal(g.expires) || reason != g.ended {
			rt.Fatalf("grant %+v (%s), the model has %+v", s, reason, g)
		}
		if reason == "" && unended[four] {
			rt.Fatalf("two grants for %+v", four)
		}
		unended[four] = unended[four] || reason == ""
		if want := map[bool][]int{true: {s.StatusIdx}, false: {}}[reason == ""]; !slices.Equal(s.Valid, want) || s.Indexes != g.indexes {
			rt.Fatalf("valid indexes %v of %d, the model says %v of %d", s.Valid, s.Indexes, want, g.indexes)
		}
		if !slices.Equal(s.Events, g.events) {
			rt.Fatalf("told %v, the model says %v", s.Events, g.events)
		}
		spent, fresh := 0, 0
		for _, t := range l.refresh {
			switch {
			case t.grant == g && t.used:
				spent++
			case t.grant == g:
				fresh++
			}
		}
		if s.Spent != spent || s.Fresh != fresh || s.Families != fresh {
			rt.Fatalf("%d spent and %d fresh refresh tokens in %d families, the model has %d and %d", s.Spent, s.Fresh, s.Families, spent, fresh)
		}
	}
}

// tokensStand: each access token is worth what the model says, nothing at
// another Brand, and where its status index is valid it says no more than the
// grant holds and ends no later.
func (l *lived) tokensStand(rt *rapid.T) {
	l.access = slices.DeleteFunc(l.access, func(t *lifeAccess) bool { return l.now.Sub(t.expires) > time.Minute })
	for i, t := range l.access {
		a := l.instances[i%2]
		s, err := a.Standing(l.t.Context(), l.brands[t.grant.brand], t.payload)
		want := l.worth(t)
		if len(want) == 0 {
			must(rt, "introspect", err, authority.ErrEnded)
		} else if err != nil || !slices.Equal(s.Scopes, want) {
			rt.Fatalf("worth %v (%v), the model says %v", s.Scopes, err, want)
		}
		other := l.w.Shop.ID
		if t.grant.brand == other {
			other = l.w.Hotel.ID
		}
		if _, err := a.Standing(l.t.Context(), l.brands[other], t.payload); !errors.Is(err, authority.ErrEnded) {
			rt.Fatalf("worth something at another Brand: %v", err)
		}
		var valid bool
		const q = `SELECT invalid_at IS NULL FROM status_entries WHERE brand_id = $1 AND grant_id = $2 AND idx = $3`
		if err := l.w.Owner.QueryRow(l.t.Context(), q, t.grant.brand, t.grant.id, t.index).Scan(&valid); err != nil {
			rt.Fatal(err)
		}
		if valid && (t.grant.ended != "" || t.expires.After(t.grant.expires) || len(intersected(t.scopes, t.grant.scopes)) < len(t.scopes)) {
			rt.Fatalf("the status list vouches for %v of a grant of %v", t.scopes, t.grant.scopes)
		}
	}
}

// trailStands: no gap and no break in either Brand's trail.
func (l *lived) trailStands(rt *rapid.T) {
	const q = `
		SELECT count(*) FROM (
			SELECT seq, lag(seq, 1, 0) OVER brand AS before, hash, audit_hash(e, lag(hash, 1, '') OVER brand) AS want
			  FROM audit_events e
			WINDOW brand AS (PARTITION BY brand_id ORDER BY seq)) AS links
		 WHERE seq <> before + 1 OR hash <> want`
	if n := l.w.Count(l.t, q); n != 0 {
		rt.Fatalf("the trail breaks %d times", n)
	}
}

// turn is whether something is turned off that is on; what is off is always
// turned on again, or soon nothing would happen any more.
func turn(rt *rapid.T, off bool) bool { return !off && seldom(rt, 6, "off") }
