package authority

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// rewriting is what a living grant becomes.
type rewriting struct {
	agent, subject string
	scopes         []string
	details        Details
	ends           time.Time
	request        uuid.UUID // the request that led to it; may be zero
	seen           map[string]digest
}

// rewrite gives a grant that the caller holds locked its new scopes and end.
// Where it loses anything, tokens of the former version must be known to be
// worth less than they say: their status index becomes INVALID and the new
// version has one of its own. Where it only gains, they stay as good as they are.
// Other details are a loss and a gain: which of two is more, only the Brand knows.
func (c *change) rewrite(ctx context.Context, g livingGrant, w rewriting) error {
	lost := without(g.Scopes, w.scopes)
	gained := without(w.scopes, g.Scopes)
	// Of a scope that goes or comes, that is all there is to say.
	both := intersect(g.Scopes, w.scopes)
	other := !sameValues(g.Details.Of(both...).Values(), w.details.Of(both...).Values())
	if len(lost) > 0 || other || w.ends.Before(g.ExpiresAt) {
		c.fresh = append(c.fresh, g.ID)
		c.gone = append(c.gone, g.ID)
	}
	const q = `
		UPDATE grants SET scopes = @scopes, details = @details::jsonb, expires_at = @ends, version = version + 1, seen = seen || coalesce(@seen::jsonb, '{}')
		 WHERE brand_id = @brand AND id = @id AND ended_at IS NULL`
	_, err := c.Exec(ctx, q, pgx.NamedArgs{
		"brand": c.brand, "id": g.ID, "scopes": w.scopes, "details": w.details, "ends": w.ends, "seen": w.seen,
	})
	if err != nil {
		return err
	}
	data := EventData{Agent: w.agent, Subject: w.subject, Scopes: w.scopes, Details: w.details.Values(), Before: g.Scopes, Until: w.ends, WasUntil: g.ExpiresAt}
	for _, e := range []struct {
		event string
		is    bool
	}{
		{"grant.narrowed", len(lost) > 0 || other || w.ends.Before(g.ExpiresAt)},
		{"grant.widened", len(gained) > 0 || other || w.ends.After(g.ExpiresAt)},
	} {
		if e.is {
			c.note(fact{event: e.event, request: w.request, grant: g.ID, detail: told(data), values: data.Details})
		}
	}
	return nil
}

// without returns the ids of the first list that the second lacks.
func without(ids, other []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(s string) bool { return slices.Contains(other, s) })
}

// told is an event's data as a fact's detail: all but the details of what is
// allowed, which a person may have typed and the trail only knows the digests of.
func told(d EventData) map[string]any {
	m := map[string]any{"agent": d.Agent, "subject": d.Subject, "scopes": d.Scopes, "until": d.Until}
	if len(d.Before) > 0 {
		m["before"] = d.Before
	}
	if !d.WasUntil.IsZero() {
		m["before_until"] = d.WasUntil
	}
	if d.Reason != "" {
		m["reason"] = d.Reason
	}
	return m
}
