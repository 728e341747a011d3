package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// What is kept of turns that could not be signed, or not while their Brand was paused.
const (
	acceptedLife = 24 * time.Hour
	acceptedMost = 10_000 // of a Brand
)

// WaitingError says that a turn has no receipt yet, and is written down: it gets its
// receipt as soon as that can be signed, whether it comes again or not.
type WaitingError struct {
	Since time.Time // when it was first handed in; it is judged as of then
	Err   error     // ErrUnavailable or ErrPaused
}

// Error implements error.
func (e *WaitingError) Error() string { return "the receipt waits: " + e.Err.Error() }

// Unwrap returns why.
func (e *WaitingError) Unwrap() error { return e.Err }

// ErrNotKept is an ErrUnavailable of a turn that was not even written down: when it
// comes again it is judged as of then, and may be too late.
var ErrNotKept = fmt.Errorf("%w, and the turn is not written down", ErrUnavailable)

// accepted is what a receipt is made of, as it rests until one can be signed.
type accepted struct {
	Agent   string              `json:"agent"`
	Claims  json.RawMessage     `json:"claims"` // of the token that was shown
	Scopes  []string            `json:"scopes"`
	Actions []receiptlog.Action `json:"actions"`
	Began   time.Time           `json:"began"`
	Message string              `json:"messageHash,omitempty"`
	Reply   string              `json:"replyHash,omitempty"`
}

// turn is what was accepted, to be countersigned.
func (a accepted) turn(contextID, messageID string) Turn {
	t := Turn{
		Claims: a.Claims, Agent: a.Agent, ContextID: contextID, MessageID: messageID,
		ScopesUsed: a.Scopes, Began: a.Began, MessageHash: a.Message, ReplyHash: a.Reply, waits: true,
	}
	for _, one := range a.Actions {
		t.Actions = append(t.Actions, Action{Tool: one.Tool, ArgsHash: one.ArgsHash})
	}
	return t
}

// accept writes down that the turns were good when they came, though nothing could
// be signed, or their Brand was paused: durable and bounded (R77). Flush countersigns
// them, or the same call again. What we have written down ourselves is not written
// twice. Where there is no more room it is ErrNotKept; of two contents of one turn
// only the first waits; and of somebody who was erased meanwhile nothing does.
func (a *Authority) accept(ctx context.Context, brand tenants.BrandID, turns []*served) {
	var fresh []*served
	for _, s := range turns {
		if s.Kept.IsZero() && !s.waits {
			fresh = append(fresh, s)
			continue
		}
		s.result.Err = &WaitingError{Since: s.first(s.came), Err: s.result.Err}
	}
	if len(fresh) == 0 {
		return
	}
	all, err := a.keepAccepted(ctx, brand, fresh)
	if err != nil {
		fail(fresh, fmt.Errorf("keep turns at %s: %w: %w", brand, ErrNotKept, err))
		return
	}
	for i, s := range fresh {
		switch found := all[i]; {
		case !found.Held:
			s.result.Err = ErrToken
		case string(found.Content) == string(s.content):
			s.result.Err = &WaitingError{Since: s.first(found.At), Err: s.result.Err}
		case found.Content != nil:
			s.result.Err = ErrConflict
		case !found.Free:
			s.result.Err = fmt.Errorf("keep a turn at %s: %w: %d wait already", brand, ErrNotKept, acceptedMost)
		default: // another call with it came at this very moment
			s.result.Err = ErrNotKept
		}
	}
}

// place is what is written down of a turn, by now or before.
type place struct {
	Held    bool   // the grant is still its token's user's
	Free    bool   // there was room
	Content []byte // nil: nothing is
	At      time.Time
}

func (a *Authority) keepAccepted(ctx context.Context, brand tenants.BrandID, turns []*served) ([]place, error) {
	// Under the lock that an erasure holds to its end, and nobody who appends is passed:
	// a statement after it sees what they have done. It also makes the bound exact.
	const begun = `INSERT INTO log_heads (brand_id, size, edge, last) VALUES (@brand, 0, '', '') ON CONFLICT DO NOTHING`
	const lock = `SELECT FROM log_heads WHERE brand_id = @brand FOR UPDATE`
	// What a version before wrote down it kept nothing of to sign.
	const fill = `
		UPDATE turns_accepted t SET turn = i.turn, n = coalesce(t.n, nextval('turns_accepted_n'))
		  FROM unnest(@grants::uuid[], @contexts::text[], @messages::text[], @contents::bytea[], @turns::text[]) i (grant_id, context_id, message_id, content, turn)
		 WHERE t.brand_id = @brand AND (t.grant_id, t.context_id, t.message_id, t.content) = (i.grant_id, i.context_id, i.message_id, i.content)
		   AND t.turn IS NULL`
	const q = `
		WITH waits AS (
			SELECT count(*) AS n FROM (SELECT FROM turns_accepted WHERE brand_id = @brand LIMIT @most) t
		), came AS (
			SELECT i.*, g.id IS NOT NULL AS held, t.content AS there, t.accepted_at,
			       (SELECT n FROM waits) + count(*) FILTER (WHERE g.id IS NOT NULL AND t.content IS NULL) OVER (ORDER BY i.place) <= @most AS free
			  FROM unnest(@grants::uuid[], @contexts::text[], @messages::text[], @contents::bytea[], @turns::text[], @subjects::text[])
			       WITH ORDINALITY i (grant_id, context_id, message_id, content, turn, subject, place)
			  LEFT JOIN grants g ON g.brand_id = @brand AND g.id = i.grant_id AND g.subject = i.subject
			  LEFT JOIN turns_accepted t ON t.brand_id = @brand AND (t.grant_id, t.context_id, t.message_id) = (i.grant_id, i.context_id, i.message_id)
		), kept AS (
			INSERT INTO turns_accepted (brand_id, grant_id, context_id, message_id, content, turn, accepted_at)
			SELECT @brand, grant_id, context_id, message_id, content, turn, @now
			  FROM came WHERE held AND free AND there IS NULL ORDER BY place
			ON CONFLICT DO NOTHING
			RETURNING grant_id, context_id, message_id, content, accepted_at)
		SELECT c.held, c.free, coalesce(k.content, c.there) AS content, coalesce(k.accepted_at, c.accepted_at, @now) AS at
		  FROM came c
		  LEFT JOIN kept k ON (k.grant_id, k.context_id, k.message_id) = (c.grant_id, c.context_id, c.message_id)
		 ORDER BY c.place`
	texts, subjects := make([]string, len(turns)), make([]string, len(turns))
	for i, s := range turns {
		text, err := json.Marshal(accepted{Agent: s.Agent, Claims: s.payload, Scopes: s.scopes, Actions: s.actions, Began: s.Began, Message: s.MessageHash, Reply: s.ReplyHash})
		if err != nil {
			return nil, err
		}
		texts[i], subjects[i] = string(text), s.token.Subject
	}
	args := turnArgs(brand, turns)
	args["now"], args["most"], args["turns"], args["subjects"] = turns[0].came, acceptedMost, texts, subjects
	// The caller may have gone away, waiting for the signer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	var all []place
	err := a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		for _, q := range []string{begun, lock, fill} {
			if _, err := tx.Exec(ctx, q, args); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, q, args)
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByName[place])
		}
		return err
	})
	if err == nil && len(all) != len(turns) {
		err = fmt.Errorf("%d answers to %d turns", len(all), len(turns))
	}
	return all, err
}
