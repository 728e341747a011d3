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
// than any verifier may keep the old JWKS, plus what our own instances may lag
// behind and a minute for clocks. Signing sooner would make good tokens be
// refused by everybody whose cache is still fresh.
const PublishWait = JWKSMaxAge + 2*freshness + time.Minute

// Reasons a key does not change. Callers test them with errors.Is.
var (
	ErrNextExists = errors.New("a next key is already published")
	ErrTooEarly   = errors.New("the next key has not been published for long enough")
	ErrNoNext     = errors.New("there is no next key")
	ErrInUse      = errors.New("the key signs now; rotate first, or revoke it")
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

// List returns the Brand's keys, the newest first.
func (k *Keys) List(ctx context.Context, brand tenants.BrandID) ([]KeyInfo, error) {
	const q = `
		SELECT kid, backend, version, alg, state, created_at, changed_at, reason
		  FROM signing_keys WHERE brand_id = @brand ORDER BY created_at DESC, kid`
	keys, err := tenants.All[KeyInfo](ctx, k.db, brand, q, pgx.NamedArgs{"brand": brand})
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
	keys, err := k.List(ctx, brand)
	if err != nil {
		return KeyInfo{}, err
	}
	version := Version(1)
	for _, known := range keys {
		if known.State == "next" {
			return KeyInfo{}, ErrNextExists
		}
		if known.Backend == backend {
			version = max(version, known.Version+1)
		}
	}
	return k.publish(ctx, brand, backend, version, alg, "next")
}

// Activate lets the next key sign, and retires the current one, which goes on
// verifying. Before PublishWait has passed it is ErrTooEarly.
func (k *Keys) Activate(ctx context.Context, brand tenants.BrandID) error {
	now := k.now()
	err := k.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		var kid string
		var created time.Time
		const next = `SELECT kid, created_at FROM signing_keys WHERE brand_id = @brand AND state = 'next' FOR UPDATE`
		err := tx.QueryRow(ctx, next, pgx.NamedArgs{"brand": brand}).Scan(&kid, &created)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoNext
		}
		if err != nil {
			return err
		}
		if now.Before(created.Add(PublishWait)) {
			return ErrTooEarly
		}
		return swap(ctx, tx, brand, kid, now)
	})
	k.memo.Forget(brand)
	if err != nil {
		return fmt.Errorf("activate next key of %s: %w", brand, err)
	}
	return nil
}

// swap makes the key current and retires the one that was.
func swap(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, kid string, now time.Time) error {
	const retire = `
		UPDATE signing_keys SET state = 'retired', changed_at = @now
		 WHERE brand_id = @brand AND state = 'current' AND kid <> @kid`
	const promote = `
		UPDATE signing_keys SET state = 'current', changed_at = @now
		 WHERE brand_id = @brand AND kid = @kid AND state = 'next'`
	args := pgx.NamedArgs{"brand": brand, "kid": kid, "now": now}
	if _, err := tx.Exec(ctx, retire, args); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, promote, args)
	return err
}

// Retire takes a next key back that shall not come to sign. It stays published:
// nobody has to ask whether it ever signed.
func (k *Keys) Retire(ctx context.Context, brand tenants.BrandID, kid string) error {
	const q = `
		UPDATE signing_keys SET state = 'retired', changed_at = @now
		 WHERE brand_id = @brand AND kid = @kid AND state = 'next'`
	n, err := k.db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "kid": kid, "now": k.now()})
	k.memo.Forget(brand)
	switch {
	case err != nil:
		return fmt.Errorf("retire key of %s: %w", brand, err)
	case n == 0:
		return k.whyNot(ctx, brand, kid)
	}
	return nil
}

func (k *Keys) whyNot(ctx context.Context, brand tenants.BrandID, kid string) error {
	keys, err := k.List(ctx, brand)
	if err != nil {
		return err
	}
	for _, known := range keys {
		if known.KID == kid && known.State == "current" {
			return ErrInUse
		}
		if known.KID == kid {
			return nil // retired or revoked already
		}
	}
	return ErrNoKey
}

// Revoke is for a key that somebody else may hold. It leaves the JWKS at once
// and goes to the archive with the time and reason: whoever holds it chooses
// iat and ts, so nothing it signed counts by itself any more, tokens included.
// If it was the current one, a new key is made and signs at once, because
// waiting would mean signing with a key that must not be believed; verifiers
// that cache refuse tokens of the new key for up to JWKSMaxAge, unless they
// fetch again at an unknown kid, as they should.
func (k *Keys) Revoke(ctx context.Context, brand tenants.BrandID, kid, reason string) error {
	keys, err := k.List(ctx, brand)
	if err != nil {
		return err
	}
	var target *KeyInfo
	var next *KeyInfo
	for i := range keys {
		if keys[i].KID == kid {
			target = &keys[i]
		} else if keys[i].State == "next" {
			next = &keys[i]
		}
	}
	switch {
	case target == nil:
		return ErrNoKey
	case target.State == "revoked":
		return nil
	}
	successor := ""
	if target.State == "current" {
		if next == nil {
			made, err := k.Prepare(ctx, brand, target.Backend, target.Alg)
			if err != nil {
				return fmt.Errorf("replace revoked key of %s: %w", brand, err)
			}
			next = &made
		}
		successor = next.KID
	}
	now := k.now()
	err = k.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		const q = `
			UPDATE signing_keys SET state = 'revoked', reason = @reason, changed_at = @now
			 WHERE brand_id = @brand AND kid = @kid AND state <> 'revoked'`
		args := pgx.NamedArgs{"brand": brand, "kid": kid, "reason": reason, "now": now}
		if _, err := tx.Exec(ctx, q, args); err != nil || successor == "" {
			return err
		}
		return swap(ctx, tx, brand, successor, now)
	})
	k.memo.Forget(brand)
	if err != nil {
		return fmt.Errorf("revoke key of %s: %w", brand, err)
	}
	return nil
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
	keys, err := k.List(ctx, brand)
	if err != nil {
		return err
	}
	now := k.now()
	for _, known := range keys {
		switch {
		case known.State == "next":
			if now.Before(known.SignsFrom()) {
				return nil
			}
			err := k.Activate(ctx, brand)
			if errors.Is(err, ErrNoNext) || errors.Is(err, ErrTooEarly) {
				return nil // another instance was quicker
			}
			return err
		case known.State == "current" && (now.Sub(known.ChangedAt) >= p.Every || known.Alg != p.Alg || known.Backend != p.Backend):
			if hasNext(keys) {
				continue
			}
			_, err := k.Prepare(ctx, brand, p.Backend, p.Alg)
			if errors.Is(err, ErrNextExists) {
				return nil
			}
			return err
		}
	}
	return nil
}

func hasNext(keys []KeyInfo) bool {
	for _, known := range keys {
		if known.State == "next" {
			return true
		}
	}
	return false
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
	const q = `
		INSERT INTO signing_keys (brand_id, kid, backend, version, alg, state, public_jwk, created_at, changed_at)
		VALUES (@brand, @kid, @backend, @version, @alg, @state, @jwk, @now, @now)
		ON CONFLICT DO NOTHING`
	n, err := k.db.Exec(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "kid": kid, "backend": backend, "version": int(version), "alg": string(alg),
		"state": state, "jwk": jwk, "now": now,
	})
	k.memo.Forget(brand)
	if err != nil {
		return KeyInfo{}, fmt.Errorf("publish key of %s: %w", brand, err)
	}
	if n == 0 {
		return KeyInfo{}, ErrNextExists
	}
	return KeyInfo{KID: kid, Backend: backend, Version: version, Alg: alg, State: state, CreatedAt: now, ChangedAt: now}, nil
}

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
