package authority

import (
	"context"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// Day is what happened at a Brand on one day of UTC.
type Day struct {
	Date     time.Time // its first moment
	Asked    int       // delegations that agents asked for
	StepUps  int       // the Brand's own server asked for more
	Approved int
	Denied   int
	Revoked  int // grants that somebody ended
	Reused   int // grants that ended because a spent refresh token came back
}

// Usage returns the last days up to today, the oldest first, days on which
// nothing happened too.
func (a *Authority) Usage(ctx context.Context, brand tenants.BrandID, days int) ([]Day, error) {
	const q = `
		SELECT day, what, sum(n)::bigint AS n FROM (
			SELECT (at AT TIME ZONE 'UTC')::date AS day, event AS what, count(*) AS n FROM audit_events
			 WHERE brand_id = @brand AND at >= @since AND event = ANY (@events)
			 GROUP BY 1, 2
			UNION ALL -- what is not purged yet …
			SELECT (created_at AT TIME ZONE 'UTC')::date, kind, count(*) FROM device_requests
			 WHERE brand_id = @brand AND created_at >= @since
			 GROUP BY 1, 2
			UNION ALL -- … and what is
			SELECT u.day, k.kind, k.n FROM usage_days u, LATERAL (VALUES ('device', u.asked), ('stepup', u.stepups)) AS k (kind, n)
			 WHERE u.brand_id = @brand AND u.day >= @first
		) AS counted
		 GROUP BY 1, 2`
	now := a.clock().UTC()
	first := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC).AddDate(0, 0, 1-days)
	out := make([]Day, days)
	for i := range out {
		out[i].Date = first.AddDate(0, 0, i)
	}
	type row struct {
		Day  time.Time
		What string
		N    int
	}
	rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "since": first, "first": first.Format(time.DateOnly),
		"events": []string{"request.approved", "request.denied", "grant.revoked", "grant.reuse_detected"},
	})
	if err != nil {
		return nil, fmt.Errorf("count the usage of %s: %w", brand, err)
	}
	for _, r := range rows {
		// Clocks differ: a day that has not begun here is not shown yet.
		i := int(r.Day.Sub(first) / (24 * time.Hour))
		if i < 0 || i >= days {
			continue
		}
		d := &out[i]
		switch r.What {
		case "device":
			d.Asked = r.N
		case "stepup":
			d.StepUps = r.N
		case "request.approved":
			d.Approved = r.N
		case "request.denied":
			d.Denied = r.N
		case "grant.revoked":
			d.Revoked = r.N
		case "grant.reuse_detected":
			d.Reused = r.N
		}
	}
	return out, nil
}

// Alarms counts the grants that ended since then because a spent refresh token
// came back.
func (a *Authority) Alarms(ctx context.Context, brand tenants.BrandID, since time.Time) (int, error) {
	const q = `
		SELECT count(*) AS n FROM audit_events
		 WHERE brand_id = @brand AND at >= @since AND event = 'grant.reuse_detected'`
	r, err := tenants.One[struct{ N int }](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "since": since})
	if err != nil {
		return 0, fmt.Errorf("count alarms at %s: %w", brand, err)
	}
	return r.N, nil
}
