package signing

import (
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// PublishWait is how long a next key is in the JWKS before it may sign: longer
// than any verifier may still be handed, or keep, a JWKS without it. That is the
// age of what a cut-off instance may serve from memory, plus how long that may
// be kept, plus how long a cache may serve it when we do not answer, plus a
// minute for clocks. Signing sooner would make good tokens be refused.
const PublishWait = outage + JWKSMaxAge + JWKSStaleIfError + time.Minute

// Reasons a key does not change. Callers test them with errors.Is.
var (
	ErrNextExists = errors.New("a next key is already published")
	ErrTooEarly   = errors.New("the next key has not been published for long enough")
	ErrNoNext     = errors.New("there is no next key")
	ErrInUse      = errors.New("the key signs now; rotate first, or revoke it")
	// ErrNoSuccessor: the key was revoked, and no other signs until its store
	// answers; upkeep makes one then.
	ErrNoSuccessor = errors.New("revoked, but no key signs in its place yet")
)

// KeyInfo is one of a Brand's keys as it is listed.
type KeyInfo struct {
	KID       string `db:"kid"`
	Backend   string
	Version   Version
	Alg       Alg
	State     string // next, current, retired, revoked
	CreatedAt time.Time
	ChangedAt time.Time
	Reason    *string // of a revoked key
}

// SignsFrom is when a next key may begin to sign.
func (k KeyInfo) SignsFrom() time.Time { return k.CreatedAt.Add(PublishWait) }

const listKeys = `
		SELECT kid, backend, version, alg, state, created_at, changed_at, reason
		  FROM signing_keys WHERE brand_id = @brand ORDER BY created_at DESC, kid`

// List returns the Brand's keys, the newest first.
func (k *Keys) List(ctx context.Context, brand tenants.BrandID) ([]KeyInfo, error) {
	keys, err := tenants.All[KeyInfo](ctx, k.db, brand, listKeys, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list keys of %s: %w", brand, err)
	}
	return keys, nil
}

// Prepare makes the Brand's next key in the backend and publishes it; it signs
// nothing yet. It may run on many instances at once; one key results, and the
// others hear ErrNextExists. Moving a Brand to another backend or algorithm is
// the same act.
func (k *Keys) Prepare(ctx context.Context, brand tenants.BrandID, backend string, alg Alg) (KeyInfo, error) {
	return k.make(ctx, brand, backend, alg, "next")
}

// make makes a key that no row knows yet, and publishes it in the state. A
// version may be taken without a row of ours: by a try that died half-way, or in
// a store that was restored from another's copy. Then the next one is tried.
func (k *Keys) make(ctx context.Context, brand tenants.BrandID, backend string, alg Alg, state string) (KeyInfo, error) {
	keys, err := k.List(ctx, brand)
	if err != nil {
		return KeyInfo{}, err
	}
	version := Version(1)
	for _, known := range keys {
		if known.State == state {
			return KeyInfo{}, ErrNextExists
		}
		if known.Backend == backend {
			version = max(version, known.Version+1)
		}
	}
	const tries = 16
	for range tries {
		made, err := k.publish(ctx, brand, backend, version, alg, state)
		if errors.Is(err, errTaken) || errors.Is(err, ErrOtherAlg) {
			version++
			continue
		}
		return made, err
	}
	return KeyInfo{}, fmt.Errorf("key for %s: %d versions in a row are taken in %s", brand, tries, backend)
}

// Activate lets the next key sign, once it has been tried, and retires the
// current one, which goes on verifying. Before PublishWait has passed it is
// ErrTooEarly. A next key that cannot sign replaces nothing.
func (k *Keys) Activate(ctx context.Context, brand tenants.BrandID) error {
	return k.activate(ctx, brand, PublishWait)
}

func (k *Keys) activate(ctx context.Context, brand tenants.BrandID, wait time.Duration) error {
	keys, err := k.List(ctx, brand)
	if err != nil {
		return err
	}
	next := find(keys, "next")
	now := k.now()
	switch {
	case next == nil:
		return ErrNoNext
	case now.Before(next.CreatedAt.Add(wait)):
		return ErrTooEarly
	}
	if err := k.trial(ctx, brand, *next); err != nil {
		return fmt.Errorf("activate next key of %s: %w", brand, err)
	}
	return k.change(ctx, brand, func(tx pgx.Tx, rows []KeyInfo) error {
		still := find(rows, "next")
		if still == nil || still.KID != next.KID {
			return ErrNoNext
		}
		return promote(ctx, tx, brand, next.KID, now)
	})
}

// trial signs with the key as it will be asked to.
func (k *Keys) trial(ctx context.Context, brand tenants.BrandID, info KeyInfo) error {
	set, err := k.load(ctx, brand)
	if err != nil {
		return err
	}
	for _, key := range set.published {
		if key.kid == info.KID {
			_, err := k.signature(ctx, brand, key, sha256.Sum256([]byte("countersign key trial "+info.KID)))
			return err
		}
	}
	return ErrNoKey
}

// Move is one key's way from one state to another; Before is empty of a new one.
type Move struct{ KID, Before, After string }

// Note takes down what becomes of a Brand's keys, in the transaction that makes
// it true. An error undoes it.
type Note func(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, moves []Move) error

// Noted returns the same Keys, whose changes are told to note: in whose name
// they are made, only the caller knows.
func (k *Keys) Noted(note Note) *Keys {
	noted := *k
	noted.note = note
	return &noted
}

// change runs fn over the Brand's keys as they stand, one change at a time: two
// that decide at once from what they read before would leave no current key.
func (k *Keys) change(ctx context.Context, brand tenants.BrandID, fn func(pgx.Tx, []KeyInfo) error) error {
	err := k.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		const lock = `SELECT pg_advisory_xact_lock(hashtextextended('countersign signing keys of ' || @brand, 0))`
		if _, err := tx.Exec(ctx, lock, pgx.NamedArgs{"brand": string(brand)}); err != nil {
			return err
		}
		before, err := listIn(ctx, tx, brand)
		if err != nil {
			return err
		}
		if err := fn(tx, before); err != nil || k.note == nil {
			return err
		}
		after, err := listIn(ctx, tx, brand)
		if err != nil {
			return err
		}
		if moves := moved(before, after); len(moves) > 0 {
			return k.note(ctx, tx, brand, moves)
		}
		return nil
	})
	k.memo.Forget(brand)
	return err
}

func listIn(ctx context.Context, tx pgx.Tx, brand tenants.BrandID) ([]KeyInfo, error) {
	rows, err := tx.Query(ctx, listKeys, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[KeyInfo])
}

// moved tells the one list from the other, whatever was done in between: so no
// way of changing a key goes unnoted.
func moved(before, after []KeyInfo) []Move {
	was := make(map[string]string)
	for _, k := range before {
		was[k.KID] = k.State
	}
	var moves []Move
	for _, k := range after {
		if was[k.KID] != k.State {
			moves = append(moves, Move{KID: k.KID, Before: was[k.KID], After: k.State})
		}
	}
	return moves
}

func find(keys []KeyInfo, state string) *KeyInfo {
	for i := range keys {
		if keys[i].State == state {
			return &keys[i]
		}
	}
	return nil
}

// promote makes the next key current and retires the one that was.
func promote(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, kid string, now time.Time) error {
	const retire = `
		UPDATE signing_keys SET state = 'retired', changed_at = @now
		 WHERE brand_id = @brand AND state = 'current'`
	const raise = `
		UPDATE signing_keys SET state = 'current', changed_at = @now
		 WHERE brand_id = @brand AND kid = @kid AND state = 'next'`
	args := pgx.NamedArgs{"brand": brand, "kid": kid, "now": now}
	if _, err := tx.Exec(ctx, retire, args); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, raise, args)
	if err == nil && tag.RowsAffected() != 1 {
		return ErrNoNext // rolls back: a Brand is never left without a current key
	}
	return err
}

// Retire takes a next key back that shall not come to sign. It stays published:
// nobody has to ask whether it ever signed.
func (k *Keys) Retire(ctx context.Context, brand tenants.BrandID, kid string) error {
	return k.change(ctx, brand, func(tx pgx.Tx, rows []KeyInfo) error {
		for _, known := range rows {
			switch {
			case known.KID != kid:
			case known.State == "current":
				return ErrInUse
			case known.State != "next":
				return nil // retired or revoked already
			default:
				const q = `UPDATE signing_keys SET state = 'retired', changed_at = @now WHERE brand_id = @brand AND kid = @kid`
				_, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "kid": kid, "now": k.now()})
				return err
			}
		}
		return ErrNoKey
	})
}

// Revoke is for a key that somebody else may hold. It leaves the JWKS at once
// and goes to the archive with the time and reason: whoever holds it chooses
// iat and ts, so nothing it signed counts by itself any more, tokens included.
// If it was the current one, the next one or a new one signs at once, because
// waiting would mean signing with a key that must not be believed; verifiers
// that cache refuse tokens of the new key for up to JWKSMaxAge, unless they
// fetch again at an unknown kid, as they should.
//
// The revocation does not wait for a key store: if none answers, it stands, and
// ErrNoSuccessor says that nothing is signed until one does.
func (k *Keys) Revoke(ctx context.Context, brand tenants.BrandID, kid, reason string, p Policy) error {
	now := k.now()
	err := k.change(ctx, brand, func(tx pgx.Tx, rows []KeyInfo) error {
		for _, known := range rows {
			if known.KID != kid {
				continue
			}
			if known.State == "revoked" {
				return nil
			}
			const q = `
				UPDATE signing_keys SET state = 'revoked', reason = @reason, changed_at = @now
				 WHERE brand_id = @brand AND kid = @kid`
			args := pgx.NamedArgs{"brand": brand, "kid": kid, "reason": reason, "now": now}
			if _, err := tx.Exec(ctx, q, args); err != nil {
				return err
			}
			if next := find(rows, "next"); known.State == "current" && next != nil {
				return promote(ctx, tx, brand, next.KID, now)
			}
			return nil
		}
		return ErrNoKey
	})
	if err != nil {
		return fmt.Errorf("revoke key of %s: %w", brand, err)
	}
	if err := k.heal(ctx, brand, p); err != nil {
		return fmt.Errorf("%w: %w", ErrNoSuccessor, err)
	}
	return nil
}

// heal gives a Brand that has no current key one: the next one, sooner than it
// was due, or a new one. Nothing is signed meanwhile, so nobody is hurt by haste.
func (k *Keys) heal(ctx context.Context, brand tenants.BrandID, p Policy) error {
	keys, err := k.List(ctx, brand)
	if err != nil || find(keys, "current") != nil {
		return err
	}
	if find(keys, "next") != nil {
		if err := k.activate(ctx, brand, 0); err == nil || !errors.Is(err, ErrNoKey) {
			return err
		}
	}
	_, err = k.make(ctx, brand, p.Backend, p.Alg, "current")
	if errors.Is(err, ErrNextExists) {
		return nil // another instance was quicker
	}
	return err
}

// replace takes the current key out of use that its own store has lost, and
// makes another. What the lost one signed goes on verifying.
func (k *Keys) replace(ctx context.Context, brand tenants.BrandID, p Policy) error {
	err := k.change(ctx, brand, func(tx pgx.Tx, rows []KeyInfo) error {
		const q = `UPDATE signing_keys SET state = 'retired', changed_at = @now WHERE brand_id = @brand AND state = 'current'`
		_, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "now": k.now()})
		return err
	})
	if err != nil {
		return fmt.Errorf("replace lost key of %s: %w", brand, err)
	}
	k.log.ErrorContext(ctx, "ALARM: a current key is gone from its store; another takes its place", "brand", string(brand))
	return k.heal(ctx, brand, p)
}

// Policy is how a Brand's keys are meant to be.
type Policy struct {
	Every   time.Duration // how often the key changes by itself
	Alg     Alg
	Backend string // who is to hold the private half
}

// Keep does what is due for the Brand's keys: a next one when the current one
// is too old, or is not of the algorithm or in the backend that the policy
// wants, and its turn when it has been published for long enough. So a Brand
// moves to another key store as it rotates, and no verifier notices. Any number
// of instances may call it as often as they like.
func (k *Keys) Keep(ctx context.Context, brand tenants.BrandID, p Policy) error {
	if _, lost := k.lost.LoadAndDelete(brand); lost {
		if err := k.SelfTest(ctx, brand); errors.Is(err, ErrNoKey) {
			k.lost.Delete(brand)
			return k.replace(ctx, brand, p)
		}
	}
	keys, err := k.List(ctx, brand)
	if err != nil {
		return err
	}
	now := k.now()
	current, next := find(keys, "current"), find(keys, "next")
	switch {
	case current == nil:
		return k.heal(ctx, brand, p)
	case next != nil && now.Before(next.SignsFrom()):
		return nil
	case next != nil:
		err = k.Activate(ctx, brand)
	case now.Sub(current.ChangedAt) >= p.Every || current.Alg != p.Alg || current.Backend != p.Backend:
		_, err = k.Prepare(ctx, brand, p.Backend, p.Alg)
	}
	if errors.Is(err, ErrNoNext) || errors.Is(err, ErrTooEarly) || errors.Is(err, ErrNextExists) {
		return nil // another instance was quicker
	}
	return err
}

// publish makes the key, tries it out, and only then writes it down.
func (k *Keys) publish(ctx context.Context, brand tenants.BrandID, backend string, version Version, alg Alg, state string) (KeyInfo, error) {
	b := k.backends[backend]
	if b == nil {
		return KeyInfo{}, fmt.Errorf("key for %s: no backend %q", brand, backend)
	}
	public, err := b.Create(ctx, brand, version, alg)
	if err != nil {
		return KeyInfo{}, fmt.Errorf("create key for %s: %w", brand, err)
	}
	kid, jwk, err := k.tryOut(ctx, brand, backend, version, alg, public)
	if err != nil {
		return KeyInfo{}, fmt.Errorf("try new key of %s: %w", brand, err)
	}
	now := k.now()
	err = k.change(ctx, brand, func(tx pgx.Tx, rows []KeyInfo) error {
		if find(rows, state) != nil {
			return ErrNextExists
		}
		const q = `
			INSERT INTO signing_keys (brand_id, kid, backend, version, alg, state, public_jwk, created_at, changed_at)
			VALUES (@brand, @kid, @backend, @version, @alg, @state, @jwk, @now, @now)
			ON CONFLICT DO NOTHING`
		tag, err := tx.Exec(ctx, q, pgx.NamedArgs{
			"brand": brand, "kid": kid, "backend": backend, "version": int(version), "alg": string(alg),
			"state": state, "jwk": jwk, "now": now,
		})
		if err == nil && tag.RowsAffected() == 0 {
			return errTaken
		}
		return err
	})
	if err != nil {
		return KeyInfo{}, fmt.Errorf("publish key of %s: %w", brand, err)
	}
	return KeyInfo{KID: kid, Backend: backend, Version: version, Alg: alg, State: state, CreatedAt: now, ChangedAt: now}, nil
}

// errTaken: a row has this key or this version already.
var errTaken = errors.New("key is known already")

// tryOut signs something and checks it under the key that would be published:
// a key that cannot be verified must never be.
func (k *Keys) tryOut(ctx context.Context, brand tenants.BrandID, backend string, version Version, alg Alg, public crypto.PublicKey) (kid string, jwk []byte, err error) {
	if kid, err = KID(public); err != nil {
		return "", nil, err
	}
	if jwk, err = publicJWK(public, kid, alg); err != nil {
		return "", nil, err
	}
	probe := &key{kid: kid, backend: backend, version: version, alg: alg, public: public}
	_, err = k.signature(ctx, brand, probe, sha256.Sum256([]byte("countersign key check "+kid)))
	return kid, jwk, err
}
