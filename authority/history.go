package authority

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Events says which events of a trail: all that match every field that is set.
type Events struct {
	Event   string
	Grant   uuid.UUID
	Subject string    // what this Brand user did
	Actor   string    // what whoever has this id did
	From    time.Time // not earlier
	Until   time.Time // earlier
	Since   int64     // only those after it

	before int64 // only those before it
}

// Days reads the days of UTC from which and until which events are wanted, both
// included; either may be empty.
func Days(from, until string) (after, before time.Time, err error) {
	if from != "" {
		if after, err = time.Parse(time.DateOnly, from); err != nil {
			return time.Time{}, time.Time{}, fmt.Errorf("from: %w", err)
		}
	}
	if until != "" {
		if before, err = time.Parse(time.DateOnly, until); err != nil {
			return time.Time{}, time.Time{}, fmt.Errorf("until: %w", err)
		}
		before = before.AddDate(0, 0, 1) // that day too
	}
	return after, before, nil
}

// Trail hands the Brand's events to fn, the oldest first, and at most limit of
// them; it stops at fn's first error. It holds no transaction open meanwhile,
// since a trail only ever grows.
func (a *Authority) Trail(ctx context.Context, brand tenants.BrandID, which Events, limit int, fn func(Entry) error) error {
	for limit > 0 {
		entries, err := a.entries(ctx, brand, which, oldestFirst, min(limit, trailBatch))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := fn(e); err != nil {
				return err
			}
			which.Since = e.Seq
		}
		if limit -= len(entries); len(entries) < trailBatch {
			return nil
		}
	}
	return nil
}

// trailBatch is how many events are read at a time.
const trailBatch = 1000

// Latest returns up to limit of the Brand's events, the newest first, and only
// those before the place, unless that is zero.
func (a *Authority) Latest(ctx context.Context, brand tenants.BrandID, which Events, before int64, limit int) ([]Entry, error) {
	which.before = before
	return a.entries(ctx, brand, which, newestFirst, limit)
}

const (
	oldestFirst = ` ORDER BY seq LIMIT @limit`
	newestFirst = ` ORDER BY seq DESC LIMIT @limit`
)

func (a *Authority) entries(ctx context.Context, brand tenants.BrandID, which Events, order string, limit int) ([]Entry, error) {
	q := `
		SELECT seq, brand_id, at, actor, actor_id, channel, event, request_id::text AS request_id,
		       grant_id::text AS grant_id, trace, detail::text AS detail, salt, digest, hash
		  FROM audit_events
		 WHERE brand_id = @brand AND seq > @since`
	// Conditions that are not asked for are left out, so that a plan made for
	// all filters at once never serves one.
	for _, c := range []struct {
		set  bool
		text string
	}{
		{which.before > 0, ` AND seq < @before`},
		{which.Event != "", ` AND event = @event`},
		{which.Grant != uuid.Nil, ` AND grant_id = @grant`},
		{which.Subject != "", ` AND actor = 'user' AND actor_id <> '' AND actor_id = @subject`},
		{which.Actor != "", ` AND actor_id <> '' AND actor_id = @actor`},
		// Facts stand in the order in which they were written, which is nearly that
		// of their times. The hour is what somebody may have waited to write one.
		{!which.From.IsZero(), ` AND at >= @from AND seq > coalesce((
			SELECT seq FROM audit_events
			 WHERE brand_id = @brand AND at < @from::timestamptz - interval '1 hour' ORDER BY at DESC LIMIT 1), 0)`},
		{!which.Until.IsZero(), ` AND at < @until AND seq < coalesce((
			SELECT seq FROM audit_events
			 WHERE brand_id = @brand AND at >= @until::timestamptz + interval '1 hour' ORDER BY at LIMIT 1), 9223372036854775807)`},
	} {
		if c.set {
			q += c.text
		}
	}
	q += order
	type row struct {
		Seq       int64
		BrandID   string `db:"brand_id"`
		At        time.Time
		Actor     string
		ActorID   string `db:"actor_id"`
		Channel   string
		Event     string
		RequestID *string `db:"request_id"`
		GrantID   *string `db:"grant_id"`
		Trace     string
		Detail    string
		Salt      []byte
		Digest    []byte
		Hash      []byte
	}
	rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{
		"brand": brand, "since": which.Since, "before": which.before, "event": which.Event, "grant": which.Grant,
		"subject": which.Subject, "actor": which.Actor, "from": which.From, "until": which.Until, "limit": limit,
	})
	if err != nil {
		return nil, fmt.Errorf("read the trail of %s after event %d: %w", brand, which.Since, err)
	}
	out := make([]Entry, len(rows))
	for i, r := range rows {
		out[i] = Entry{
			Seq: r.Seq, Brand: r.BrandID, At: auditTime(r.At), Actor: r.Actor, ActorID: r.ActorID,
			Channel: r.Channel, Event: r.Event, RequestID: r.RequestID, GrantID: r.GrantID,
			Trace: r.Trace, Detail: r.Detail, Salt: r.Salt, Digest: r.Digest, Hash: r.Hash,
		}
	}
	return out, nil
}

// TrailHead returns the newest link of the Brand's chain, to be remembered
// elsewhere; Seq 0 where nothing has happened yet.
func (a *Authority) TrailHead(ctx context.Context, brand tenants.BrandID) (Head, error) {
	const q = `SELECT seq, hash FROM audit_heads WHERE brand_id = @brand`
	type row struct {
		Seq  int64
		Hash []byte
	}
	r, err := tenants.One[row](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Head{}, fmt.Errorf("read the head of the trail of %s: %w", brand, err)
	}
	return Head{Seq: r.Seq, Hash: r.Hash}, nil
}

// VerifyTrail checks the Brand's whole trail as it stands in the database. What
// is wrong is a *Fault. Whoever may change the tables can also write a whole
// chain anew: that is found by a head that was remembered elsewhere, expect.
func (a *Authority) VerifyTrail(ctx context.Context, brand tenants.BrandID, expect *Head) (Proof, error) {
	c := chain{expect: expect, proof: Proof{Brand: string(brand)}}
	since := int64(math.MinInt64) // events before the first are looked for too
	var owed int64                // events up to here must have been there before this reading
	for {
		entries, err := a.entries(ctx, brand, Events{Since: since}, oldestFirst, trailBatch)
		if err != nil {
			return c.proof, err
		}
		before := since
		for _, e := range entries {
			if err := c.add(e); err != nil {
				return c.proof, err
			}
			since = e.Seq
		}
		if err := a.verifyDetails(ctx, brand, before, since); err != nil {
			return c.proof, err
		}
		if len(entries) == trailBatch {
			continue
		}
		// The head is read after the events: it can only be ahead of them. Then more
		// have happened meanwhile, and another reading finds them, or they are gone.
		head, err := a.TrailHead(ctx, brand)
		if err != nil {
			return c.proof, err
		}
		switch last := c.proof.Head; {
		case len(entries) == 0 && last.Seq < owed:
			return c.proof, &Fault{Seq: last.Seq + 1, Field: "seq", Why: fmt.Sprintf("missing: the trail ends before event %d, its head", owed)}
		case head.Seq > last.Seq:
			owed = head.Seq
			continue
		case head.Seq < last.Seq:
			return c.proof, &Fault{Seq: head.Seq + 1, Field: "seq", Why: "stands after the head of the trail"}
		case !bytes.Equal(head.Hash, last.Hash):
			return c.proof, &Fault{Seq: last.Seq, Field: "hash", Why: "is not that of the head of the trail"}
		}
		return c.finish()
	}
}

// VerifyExport checks an export without any database. It must begin at event 1,
// or right after expect. Lines must be as they were written, to the byte: what
// another program would read differently is no export of ours.
func VerifyExport(r io.Reader, expect *Head) (Proof, error) {
	const longest = 16 << 20
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longest)
	c := chain{expect: expect}
	for n := int64(1); lines.Scan(); n++ {
		var e Entry
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			return c.proof, &Fault{Seq: c.proof.Head.Seq + 1, Field: "line", Why: fmt.Sprintf("line %d is no event: %v", n, err)}
		}
		line, err := e.Line()
		if err != nil {
			return c.proof, err
		}
		if !bytes.Equal(bytes.TrimSuffix(line, []byte("\n")), lines.Bytes()) {
			return c.proof, &Fault{Seq: e.Seq, Field: "line", Why: fmt.Sprintf("line %d is not as it was exported", n)}
		}
		if n == 1 {
			c.proof.Brand = e.Brand
			if expect != nil && e.Seq == expect.Seq+1 {
				c.start(*expect)
			}
		}
		if err := c.add(e); err != nil {
			return c.proof, err
		}
	}
	if err := lines.Err(); err != nil {
		return c.proof, fmt.Errorf("read the export: %w", err)
	}
	if c.proof.Events == 0 {
		return c.proof, errors.New("the export holds no event")
	}
	return c.finish()
}
