package tenants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// PendingChange is something that was asked for through API, command line or
// file and waits for an owner of the Brand.
type PendingChange struct {
	ID        uuid.UUID       `json:"id" db:"id"`
	Kind      string          `json:"kind"`
	AskedBy   string          `json:"asked_by"`
	Channel   string          `json:"channel"`
	AskedAt   time.Time       `json:"asked_at"`
	ExpiresAt time.Time       `json:"expires_at"`
	Diff      json.RawMessage `json:"diff"`
	State     string          `json:"state"` // pending, applied, rejected, expired
	DecidedAt *time.Time      `json:"decided_at"`
	DecidedBy string          `json:"decided_by"`
}

// PendingLife is how long an owner has. What nobody wanted for a week is asked
// for again, with what is true then.
const PendingLife = 7 * 24 * time.Hour

const (
	pendingPurpose = "pending-change"
	mostPending    = 50
	applyTime      = time.Minute
)

// Reasons that a pending change does not come about.
var (
	ErrNoChange    = errors.New("the brand has no such pending change")
	ErrChangeOver  = errors.New("the change has been decided, or its time is over")
	ErrChangeStale = errors.New("what it was asked about has changed since; ask again")
	ErrTooMany     = errors.New("too many changes wait already")
)

// Ask is a change that somebody asks for.
type Ask struct {
	Kind    string
	By      string // who asks, as the owner will read it
	Channel string
	Diff    any // what the owner will read; never a secret
	Payload any // what will be done
	// Personal keeps the Diff out of the trail: it names somebody. That of a kind which
	// OfWebhook or OfAgentEndpoint is stays out by itself.
	Personal bool
}

// OfWebhook reports whether the kind of change is about a webhook, and
// OfAgentEndpoint whether it is about where the Brand's agent is called. Their Diff
// holds an address, which may hold a secret: the trail, which forgets nothing, has
// none of it, and whoever may not see the address may not read the Diff.
func OfWebhook(kind string) bool { return strings.HasPrefix(kind, "webhook.") }

// OfAgentEndpoint is described with OfWebhook.
func OfAgentEndpoint(kind string) bool { return strings.HasPrefix(kind, "agent_endpoint.") }

// Asks keeps changes until an owner decides. Appliers make them true, by kind:
// each checks again that what it was asked about is still as it was. One whose
// answer was lost may run again, so a second run does no harm: at worst there is
// a key that nobody was shown.
type Asks struct {
	DB       *DB
	Sealer   Sealer
	Now      func() time.Time
	Appliers map[string]Applier
}

// Applier makes a change true. What it returns is shown to the owner, once.
type Applier func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error)

// With returns the same Asks, in which the kinds are applied so: what is done in
// somebody's own name is known only where they are.
func (a *Asks) With(own map[string]Applier) *Asks {
	theirs := *a
	theirs.Appliers = maps.Clone(a.Appliers)
	maps.Copy(theirs.Appliers, own)
	return &theirs
}

// ErrOwnerDecides is returned to whoever would apply a change that is made in an
// owner's own name: an invitation comes from a person, and nobody is let in or put
// out in an operator's name.
var ErrOwnerDecides = errors.New("an owner of the Brand decides about this, in the dashboard")

// ownerDecides stands for kinds until somebody decides who does them in their own
// name (With): it applies nothing.
func ownerDecides(kinds ...string) map[string]Applier {
	all := make(map[string]Applier, len(kinds))
	for _, kind := range kinds {
		all[kind] = func(context.Context, Editor, BrandID, []byte) (string, error) { return "", ErrOwnerDecides }
	}
	return all
}

// Ask keeps the change for an owner, and has every owner hear of it by mail, once.
// Twice is once: while an equal one waits, that is returned, whoever asked for it.
func (a *Asks) Ask(ctx context.Context, edit Editor, brand BrandID, ask Ask) (PendingChange, error) {
	if a.Appliers[ask.Kind] == nil {
		return PendingChange{}, fmt.Errorf("ask for %s at %s: nothing applies it", ask.Kind, brand)
	}
	payload, err := json.Marshal(ask.Payload)
	if err != nil {
		return PendingChange{}, fmt.Errorf("ask for %s at %s: %w", ask.Kind, brand, err)
	}
	diff, err := json.Marshal(ask.Diff)
	if err != nil {
		return PendingChange{}, fmt.Errorf("ask for %s at %s: %w", ask.Kind, brand, err)
	}
	id := uuid.Must(uuid.NewV7())
	sealed, err := a.Sealer.Seal(ctx, brand, purposeOf(id, ask.Kind, diff), payload)
	if err != nil {
		return PendingChange{}, fmt.Errorf("seal change of %s: %w", brand, err)
	}
	const tries = 8
	for range tries {
		alike, equal, err := a.equal(ctx, brand, ask.Kind, diff, payload)
		if err != nil {
			return PendingChange{}, err
		}
		if equal != uuid.Nil {
			return a.Change(ctx, brand, equal)
		}
		err = a.keep(ctx, edit, brand, ask, id, diff, sealed, alike)
		if errors.Is(err, errAlike) {
			continue
		}
		if err != nil {
			return PendingChange{}, err
		}
		return a.Change(ctx, brand, id)
	}
	return PendingChange{}, fmt.Errorf("ask for %s at %s: %w", ask.Kind, brand, errAlike)
}

// errAlike is that meanwhile somebody asked for something that reads the same.
var errAlike = errors.New("others ask for something alike at once")

// keep writes the change down, and has every owner hear of it. No transaction
// waits for a sealer, so those that read the same were compared before it: where
// another has come, they are compared again.
func (a *Asks) keep(ctx context.Context, edit Editor, brand BrandID, ask Ask, id uuid.UUID, diff, sealed []byte, alike []uuid.UUID) error {
	const another = `
		SELECT EXISTS (SELECT FROM pending_changes
		                WHERE brand_id = @brand AND kind = @kind AND diff::text = @diff AND state = 'pending' AND expires_at > @now
		                  AND id <> ALL (@alike::uuid[]))`
	const q = `
		INSERT INTO pending_changes (brand_id, id, kind, asked_by, channel, asked_at, expires_at, diff, payload_sealed, state)
		SELECT @brand, @id, @kind, @by, @channel, @now, @expires, @diff, @sealed, 'pending'
		 WHERE (SELECT count(*) FROM pending_changes WHERE brand_id = @brand AND state = 'pending' AND expires_at > @now) < @most`
	return edit.change(ctx, brand, "ask for change", func(e *Edit) error {
		var more bool
		err := e.QueryRow(ctx, another, pgx.NamedArgs{
			"brand": brand, "kind": ask.Kind, "diff": string(diff), "now": e.Now, "alike": alike,
		}).Scan(&more)
		if err != nil {
			return err
		}
		if more {
			return errAlike
		}
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{
			"brand": brand, "id": id, "kind": ask.Kind, "by": ask.By, "channel": ask.Channel, "now": e.Now,
			"expires": e.Now.Add(PendingLife), "diff": json.RawMessage(diff), "sealed": sealed, "most": mostPending,
		})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrTooMany
		}
		detail := map[string]any{"change": id, "kind": ask.Kind}
		if !ask.Personal && !OfWebhook(ask.Kind) && !OfAgentEndpoint(ask.Kind) {
			detail["diff"] = json.RawMessage(diff)
		}
		e.Note(EventAsked, detail)
		return Asker{Name: ask.By, Channel: ask.Channel}.tellAsked(ctx, e.Tx, brand, ask.Kind, e.Now)
	})
}

// equal finds a waiting change that says and does the same, the zero id is none,
// and all that at least say the same. The text alone would not do: what is done may
// hold more than an owner reads.
func (a *Asks) equal(ctx context.Context, brand BrandID, kind string, diff, payload []byte) (alike []uuid.UUID, equal uuid.UUID, err error) {
	const q = `
		SELECT id, payload_sealed AS sealed FROM pending_changes
		 WHERE brand_id = @brand AND kind = @kind AND diff::text = @diff AND state = 'pending' AND expires_at > @now
		 ORDER BY id`
	type row struct {
		ID     uuid.UUID `db:"id"`
		Sealed []byte
	}
	all, err := All[row](ctx, a.DB, brand, q, pgx.NamedArgs{"brand": brand, "kind": kind, "diff": string(diff), "now": a.Now()})
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("list equal changes of %s: %w", brand, err)
	}
	alike = []uuid.UUID{}
	for _, r := range all {
		alike = append(alike, r.ID)
		// One that does not open can never be applied, and stands in nobody's way.
		does, err := a.Sealer.Open(ctx, brand, purposeOf(r.ID, kind, diff), r.Sealed)
		if err == nil && bytes.Equal(does, payload) {
			return alike, r.ID, nil
		}
	}
	return alike, uuid.Nil, nil
}

// purposeOf binds the sealed payload to what the owner reads: neither can be
// exchanged without the other.
func purposeOf(id uuid.UUID, kind string, diff []byte) string {
	return pendingPurpose + " " + id.String() + " " + kind + " " + thumb(diff)
}

const pendingColumns = `id, kind, asked_by, channel, asked_at, expires_at, diff,
	CASE WHEN state = 'pending' AND expires_at <= @now THEN 'expired' ELSE state END AS state, decided_at, decided_by`

// Change returns one change, or ErrNoChange.
func (a *Asks) Change(ctx context.Context, brand BrandID, id uuid.UUID) (PendingChange, error) {
	const q = `SELECT ` + pendingColumns + ` FROM pending_changes WHERE brand_id = @brand AND id = @id`
	c, err := One[PendingChange](ctx, a.DB, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "now": a.Now()})
	if errors.Is(err, pgx.ErrNoRows) {
		return PendingChange{}, ErrNoChange
	}
	if err != nil {
		return PendingChange{}, fmt.Errorf("find change of %s: %w", brand, err)
	}
	return c, nil
}

// Changes returns up to limit changes, the newest first, decided ones too; those
// before the id, if it is not zero.
func (a *Asks) Changes(ctx context.Context, brand BrandID, before uuid.UUID, limit int) ([]PendingChange, error) {
	const q = `SELECT ` + pendingColumns + ` FROM pending_changes
		 WHERE brand_id = @brand AND (@before = '00000000-0000-0000-0000-000000000000'::uuid OR id < @before)
		 ORDER BY id DESC LIMIT @limit`
	all, err := All[PendingChange](ctx, a.DB, brand, q, pgx.NamedArgs{"brand": brand, "before": before, "limit": limit, "now": a.Now()})
	if err != nil {
		return nil, fmt.Errorf("list changes of %s: %w", brand, err)
	}
	return all, nil
}

// Waiting returns every change that an owner can still decide, the newest first.
func (a *Asks) Waiting(ctx context.Context, brand BrandID) ([]PendingChange, error) {
	const q = `SELECT ` + pendingColumns + ` FROM pending_changes
		 WHERE brand_id = @brand AND state = 'pending' AND expires_at > @now ORDER BY id DESC`
	all, err := All[PendingChange](ctx, a.DB, brand, q, pgx.NamedArgs{"brand": brand, "now": a.Now()})
	if err != nil {
		return nil, fmt.Errorf("list waiting changes of %s: %w", brand, err)
	}
	return all, nil
}

// Apply makes the change true in the owner's name. The caller has seen a fresh
// touch of the owner's passkey. A change that fails stays pending.
func (a *Asks) Apply(ctx context.Context, edit Editor, brand BrandID, id uuid.UUID, by string) (string, error) {
	lease := uuid.New()
	const claim = `
		UPDATE pending_changes SET lease_id = @lease, lease_until = @until
		 WHERE brand_id = @brand AND id = @id AND state = 'pending' AND expires_at > @now
		   AND (lease_until IS NULL OR lease_until <= @now)
		RETURNING kind, diff::text, payload_sealed`
	var kind, diff string
	var sealed []byte
	err := edit.change(ctx, brand, "apply change", func(e *Edit) error {
		err := e.QueryRow(ctx, claim, pgx.NamedArgs{
			"brand": brand, "id": id, "lease": lease, "now": e.Now, "until": e.Now.Add(applyTime),
		}).Scan(&kind, &diff, &sealed)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrChangeOver
		}
		return err
	})
	if err != nil {
		return "", err
	}
	payload, err := a.Sealer.Open(ctx, brand, purposeOf(id, kind, []byte(diff)), sealed)
	if err != nil {
		return "", errors.Join(fmt.Errorf("open change of %s: %w", brand, err), a.release(ctx, brand, id, lease))
	}
	apply := a.Appliers[kind]
	if apply == nil {
		return "", errors.Join(fmt.Errorf("apply %s at %s: nothing applies it", kind, brand), a.release(ctx, brand, id, lease))
	}
	said, err := apply(ctx, edit, brand, payload)
	if err != nil {
		return "", errors.Join(err, a.release(ctx, brand, id, lease))
	}
	return said, a.decide(ctx, edit, brand, id, lease, by, "applied")
}

// Reject says no to the change, or takes it back.
func (a *Asks) Reject(ctx context.Context, edit Editor, brand BrandID, id uuid.UUID, by string) error {
	return a.decide(ctx, edit, brand, id, uuid.Nil, by, "rejected")
}

func (a *Asks) decide(ctx context.Context, edit Editor, brand BrandID, id, lease uuid.UUID, by, state string) error {
	// Whoever holds the lease decides; without one, only what nobody is applying.
	const q = `
		UPDATE pending_changes SET state = @state, decided_at = @now, decided_by = @by, payload_sealed = NULL,
		       lease_id = NULL, lease_until = NULL
		 WHERE brand_id = @brand AND id = @id AND state = 'pending'
		   AND CASE WHEN @lease = '00000000-0000-0000-0000-000000000000'::uuid
		            THEN lease_until IS NULL OR lease_until <= @now ELSE lease_id = @lease END`
	// Also of a Brand that is closed: that may be what was decided.
	err := edit(ctx, brand, func(e *Edit) error {
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "id": id, "lease": lease, "state": state, "now": e.Now, "by": by})
		if err == nil && tag.RowsAffected() == 0 {
			return ErrChangeOver
		}
		e.Note("change."+state, map[string]any{"change": id, "by": by})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s change of %s: %w", state, brand, err)
	}
	return nil
}

func (a *Asks) release(ctx context.Context, brand BrandID, id, lease uuid.UUID) error {
	const q = `
		UPDATE pending_changes SET lease_id = NULL, lease_until = NULL
		 WHERE brand_id = @brand AND id = @id AND lease_id = @lease`
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, err := a.DB.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "lease": lease})
	return err
}
