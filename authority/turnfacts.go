package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// turnFacts is what is known of a turn's grant, and of the turn itself.
type turnFacts struct {
	Open      bool // the Brand, and its delegation
	Known     bool // the grant
	Erasing   bool // its person's data is being erased
	Enabled   bool // the agent
	Agent     string
	Subject   string
	Scopes    []string
	Details   Details
	Retired   map[string]time.Time // scopes that are not on the card any more
	Ends      *time.Time           // the grant, or ended
	Suspended *time.Time           // the Brand user
	Last      *time.Time           // ts of the grant's latest receipt
	Accepted  *time.Time           // the same turn, when it had to wait
	Began     *time.Time           // and when it said that it had begun
	Taken     bool                 // with other content it waits

	// The turn's receipt, where there is one.
	Seq     *int64
	JWS     *string `db:"jws"`
	Content []byte
	Late    bool
}

// One look by key for each turn and table: LIMIT keeps the planner, which does not
// know how few turns come, from reading whole tables. The arrays stand in subqueries
// to hide from it how many those are: knowing, it makes a new plan for every call,
// which takes longer than all else that a receipt costs.
const selectTurnFacts = `
	SELECT coalesce(b.state = 'active' AND b.delegation, false) AS open, g.id IS NOT NULL AS known, coalesce(g.erasing, false) AS erasing,
	       coalesce(s.enabled, false) AS enabled, coalesce(g.agent, '') AS agent, coalesce(g.subject, '') AS subject,
	       g.scopes, g.details,
	       (SELECT jsonb_object_agg(id, retired_at) FROM brand_scopes WHERE brand_id = @brand AND retired_at IS NOT NULL) AS retired, least(g.ended_at, g.expires_at) AS ends, u.suspended_at AS suspended,
	       (SELECT l.at FROM receipts l WHERE l.brand_id = @brand AND l.grant_id = i.grant_id ORDER BY l.at DESC LIMIT 1) AS last,
	       CASE WHEN t.content = i.content THEN t.accepted_at END AS accepted,
	       CASE WHEN t.content = i.content THEN (t.turn::json->>'began')::timestamptz END AS began,
	       coalesce(t.content <> i.content, false) AS taken, r.seq, r.jws, r.content, coalesce(r.late, false) AS late
	  FROM unnest((SELECT @grants::uuid[]), (SELECT @contexts::text[]), (SELECT @messages::text[]), (SELECT @contents::bytea[]))
	       WITH ORDINALITY i (grant_id, context_id, message_id, content, n)
	  LEFT JOIN brands b ON b.id = @brand
	  LEFT JOIN LATERAL (SELECT * FROM grants WHERE brand_id = @brand AND id = i.grant_id LIMIT 1) g ON true
	  LEFT JOIN LATERAL (SELECT enabled FROM agent_standing WHERE brand_id = @brand AND issuer = g.agent LIMIT 1) s ON true
	  LEFT JOIN LATERAL (SELECT suspended_at FROM suspended_users WHERE brand_id = @brand AND subject = g.subject LIMIT 1) u ON true
	  LEFT JOIN LATERAL (
	       SELECT seq, jws, content, late FROM receipts
	        WHERE brand_id = @brand AND grant_id = i.grant_id AND context_id = i.context_id AND message_id = i.message_id LIMIT 1) r ON true
	  LEFT JOIN LATERAL (
	       SELECT accepted_at, content, turn FROM turns_accepted
	        WHERE brand_id = @brand AND grant_id = i.grant_id AND context_id = i.context_id AND message_id = i.message_id LIMIT 1) t ON true
	 ORDER BY i.n`

// turnFacts is selectTurnFacts, another statement each time that what was written
// has doubled. A plan that is kept is as old as its connection, and one that was made
// of nearly empty tables reads all that came since; only the next ANALYZE, which is
// not ours to say when, would put an end to it.
func (l *log) turnFacts() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return selectTurnFacts + "\n-- 2^" + strconv.Itoa(bits.Len64(l.wrote))
}

func turnArgs(brand tenants.BrandID, turns []*served) pgx.NamedArgs {
	grants, contexts, messages, contents := make([]uuid.UUID, len(turns)), make([]string, len(turns)), make([]string, len(turns)), make([][]byte, len(turns))
	for i, s := range turns {
		grants[i], contexts[i], messages[i], contents[i] = s.grant, s.ContextID, s.MessageID, s.content
	}
	return pgx.NamedArgs{"brand": brand, "grants": grants, "contexts": contexts, "messages": messages, "contents": contents}
}

func (a *Authority) lookUp(ctx context.Context, brand tenants.BrandID, turns []*served) ([]turnFacts, error) {
	all, err := tenants.All[turnFacts](ctx, a.db, brand, a.log.turnFacts(), turnArgs(brand, turns))
	if err == nil && len(all) != len(turns) {
		err = fmt.Errorf("%d answers to %d turns", len(all), len(turns))
	}
	return all, err
}

// learn takes in what is known of the turn. What it said when it was first handed in
// of when it began stands, whatever it says when it comes again.
func (s *served) learn(f turnFacts) {
	s.facts = f
	switch {
	case f.Began != nil:
		s.Began = *f.Began
	case f.Accepted != nil && s.undated:
		s.Began = *f.Accepted // and not when it came again
	}
}

// settle ends a turn that is known already, or whose token is not its grant's, and
// reports whether it did.
func (s *served) settle(f turnFacts) bool {
	s.learn(f)
	s.result.Err = nil
	switch {
	case !s.held():
		s.result.Err = ErrToken
	case f.Seq == nil && f.Taken:
		s.result.Err = ErrConflict // as it will be when the other has its receipt
	case f.Seq == nil && s.gone():
		s.result.Err = errSettled
	case f.Seq == nil:
		return false
	case string(f.Content) != string(s.content):
		s.result.Err = ErrConflict
	default:
		s.result.Receipt = Receipt{JWS: *f.JWS, Claims: payloadOf(*f.JWS), Seq: *f.Seq, Late: f.Late, Again: true}
	}
	return true
}

// held reports whether the grant that the token names is of the token's agent and
// user. An erased user's is not any more.
func (s *served) held() bool {
	return s.facts.Known && !s.facts.Erasing && s.facts.Agent == s.token.ClientID && s.facts.Subject == s.token.Subject
}

// gone reports whether the turn was taken from those that wait, and waits no more:
// somebody else has settled it, or its person was erased.
func (s *served) gone() bool { return s.waits && s.facts.Accepted == nil }

// judge says whether a turn gets a receipt, and whether it comes late. A
// switched-off agent's turns get none: nobody knows for how long it has been off,
// and whoever switched it off distrusts it. ErrPaused is said last: the turn is good, and
// only has to wait.
func (s *served) judge(now time.Time) (late bool, err error) {
	f := s.facts
	if !f.Enabled {
		return false, ErrToken
	}
	came := s.first(now)
	for _, end := range []*time.Time{new(time.Unix(s.token.Expires, 0)), f.Ends, f.Suspended} {
		if end == nil || now.Before(*end) {
			continue
		}
		if late = true; !s.inTime(came, *end) {
			return late, ErrToken
		}
	}
	granted, moved := strings.Fields(s.token.Scope), s.moved()
	for _, scope := range s.scopes {
		if !slices.Contains(granted, scope) {
			return late, ErrScope
		}
		// As introspection has it: in the grant, on the card, with the token's own details.
		var ends []time.Time
		if !slices.Contains(f.Scopes, scope) {
			ends = append(ends, s.lost[scope]) // never, where the trail does not say when
		}
		if at, ok := f.Retired[scope]; ok {
			ends = append(ends, at)
		}
		if slices.Contains(moved, scope) {
			ends = append(ends, s.shifted[scope])
		}
		for _, end := range ends {
			if late = true; !s.inTime(came, end) {
				return late, ErrScope
			}
		}
	}
	if !f.Open {
		return late, ErrPaused
	}
	return late, nil
}

// moved are the token's scopes of which the grant says other details by now.
func (s *served) moved() []string {
	if len(s.token.Details) == 0 && len(s.facts.Details) == 0 {
		return nil // as of most turns
	}
	held := intersect(strings.Fields(s.token.Scope), s.facts.Scopes)
	return s.token.moved(s.brand, s.facts.Details.Of(held...))
}

// first is when the turn was first judged, or now. When only the signature was missing
// then, that counts; and so does when its answer was kept.
func (s *served) first(now time.Time) time.Time {
	if s.facts.Accepted != nil && s.facts.Accepted.Before(now) {
		now = *s.facts.Accepted
	}
	if !s.Kept.IsZero() && s.Kept.Before(now) {
		now = s.Kept
	}
	return now
}

// inTime reports whether something that ended allows for the turn all the same.
func (s *served) inTime(came, end time.Time) bool {
	return came.Before(end) || s.Began.Before(end) && came.Before(end.Add(LateTime))
}

// lately finds out when scopes that turns used and their grants do not hold any
// more were lost, or have other details since: that may have been while the turn was
// served.
func (a *Authority) lately(ctx context.Context, brand tenants.BrandID, turns []*served) error {
	const q = `
		SELECT at, ARRAY(SELECT json_array_elements_text((detail->'before')::json)) AS before,
		       ARRAY(SELECT json_array_elements_text((detail->'scopes')::json)) AS after
		  FROM audit_events
		 WHERE brand_id = @brand AND grant_id = @grant AND event = 'grant.narrowed' AND at > @since
		   AND detail->'before' IS NOT NULL
		 ORDER BY seq`
	for _, s := range turns {
		if err := a.shifts(ctx, s); err != nil {
			return err
		}
		if len(without(s.scopes, s.facts.Scopes)) == 0 {
			continue
		}
		type loss struct {
			At            time.Time
			Before, After []string
		}
		// The trail knows exactly when; what was accepted may be a day old.
		losses, err := tenants.All[loss](ctx, a.db, brand, q, pgx.NamedArgs{
			"brand": brand, "grant": s.grant, "since": s.came.Add(-LateTime - acceptedLife),
		})
		if err != nil {
			return fmt.Errorf("read what a grant at %s lost: %w", brand, err)
		}
		s.lost = make(map[string]time.Time)
		for _, l := range losses {
			for _, scope := range without(l.Before, l.After) {
				s.lost[scope] = l.At
			}
		}
	}
	return nil
}

// shifts finds out since when the grant says other details of a scope that the turn
// used than its token does. When the token was issued they were the same.
func (a *Authority) shifts(ctx context.Context, s *served) error {
	const q = `
		SELECT e.at, coalesce(d.details, '[]') AS details
		  FROM audit_events e
		  LEFT JOIN event_details d ON d.brand_id = e.brand_id AND d.seq = e.seq
		 WHERE e.brand_id = @brand AND e.grant_id = @grant AND e.event IN ('grant.narrowed', 'grant.widened') AND e.at > @since
		 ORDER BY e.seq`
	moved := intersect(s.scopes, s.moved())
	if len(moved) == 0 {
		return nil
	}
	type change struct {
		At      time.Time
		Details []json.RawMessage
	}
	changes, err := tenants.All[change](ctx, a.db, s.brand.ID, q, pgx.NamedArgs{
		"brand": s.brand.ID, "grant": s.grant, "since": time.Unix(s.token.IssuedAt, 0).Add(-clockSkew),
	})
	if err != nil {
		return fmt.Errorf("read what a grant at %s came to say: %w", s.brand.ID, err)
	}
	s.shifted = make(map[string]time.Time)
	for _, c := range changes {
		other := s.token.moved(s.brand, s.scoped(c.Details))
		for _, scope := range moved {
			_, already := s.shifted[scope]
			switch is := slices.Contains(other, scope); {
			case !is:
				delete(s.shifted, scope)
			case !already:
				s.shifted[scope] = c.At
			}
		}
	}
	return nil
}

// scoped gives details their scopes again: the trail tells them as agents know them.
func (s *served) scoped(values []json.RawMessage) Details {
	var out Details
	for _, v := range values {
		one := Detail{Value: v}
		if t, known := s.brand.DetailType(one.kind()); known {
			one.Scope = t.Scope
		} else if i := slices.IndexFunc(s.facts.Details, func(o Detail) bool { return o.kind() == one.kind() }); i >= 0 {
			one.Scope = s.facts.Details[i].Scope
		}
		out = append(out, one)
	}
	return out
}
