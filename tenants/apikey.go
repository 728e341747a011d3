package tenants

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Right is what an API key lets a Brand's server do: one per endpoint.
type Right string

// The rights.
const (
	RightIntrospect Right = "introspect"
	RightReceipts   Right = "receipts"
	RightStepUp     Right = "stepup"
	RightEvents     Right = "events"
	RightVerify     Right = "verify"
	RightAdmin      Right = "admin"
)

// Rights lists all of them.
func Rights() []Right {
	return []Right{RightIntrospect, RightReceipts, RightStepUp, RightEvents, RightVerify, RightAdmin}
}

// Reasons a Brand credential does not count. Another Brand's key is an unknown
// one.
var (
	ErrBadKey  = errors.New("unknown or revoked API key")  // 401
	ErrNoRight = errors.New("the API key lacks the right") // 403
)

// APIKey is a Brand credential as it is listed; its secret was shown once.
type APIKey struct {
	ID        string `db:"id"`
	Name      string
	Rights    []Right
	CreatedAt time.Time
	RevokedAt *time.Time // may lie ahead: it was rotated, and both open for a while
	// LastUsedAt is to the minute; nil: it has opened nothing yet.
	LastUsedAt *time.Time
}

const (
	apiKeyPrefix  = "cs_"
	apiKeyIDSize  = 12
	apiKeyLongest = 256
)

// CreateAPIKey makes a key cs_<id>_<secret> and returns it, for the only time.
func CreateAPIKey(ctx context.Context, db *DB, brand BrandID, name string, rights []Right, now time.Time) (string, error) {
	id := strings.ToLower(rand.Text()[:apiKeyIDSize])
	secret := rand.Text() + rand.Text()
	const q = `
		INSERT INTO api_keys (brand_id, id, name, rights, secret_hash, created_at)
		VALUES (@brand, @id, @name, @rights, @hash, @now)`
	_, err := db.Exec(ctx, brand, q, pgx.NamedArgs{
		"brand": brand, "id": id, "name": name, "rights": rights, "hash": keyHash(secret), "now": now,
	})
	if err != nil {
		return "", fmt.Errorf("create API key of %s: %w", brand, err)
	}
	return apiKeyPrefix + id + "_" + secret, nil
}

// RevokeAPIKey ends the key with the id; an unknown one is ErrBadKey.
func RevokeAPIKey(ctx context.Context, db *DB, brand BrandID, id string, now time.Time) error {
	const q = `UPDATE api_keys SET revoked_at = least(revoked_at, @now) WHERE brand_id = @brand AND id = @id`
	n, err := db.Exec(ctx, brand, q, pgx.NamedArgs{"brand": brand, "id": id, "now": now})
	if err != nil {
		return fmt.Errorf("revoke API key of %s: %w", brand, err)
	}
	if n == 0 {
		return ErrBadKey
	}
	return nil
}

// APIKeys lists the Brand's keys, revoked ones too.
func APIKeys(ctx context.Context, db *DB, brand BrandID) ([]APIKey, error) {
	const q = `SELECT id, name, rights, created_at, revoked_at, last_used_at FROM api_keys WHERE brand_id = @brand ORDER BY created_at, id`
	keys, err := All[APIKey](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list API keys of %s: %w", brand, err)
	}
	return keys, nil
}

// Credentials checks Brand credentials. What it knows is at most a second old.
type Credentials struct {
	db   *DB
	memo Memo[keyRef, storedKey]
	uses uses
}

type keyRef struct {
	brand BrandID
	id    string
}

type storedKey struct {
	Rights     []Right
	SecretHash []byte
}

// NewCredentials returns a Credentials over db.
func NewCredentials(db *DB, now func() time.Time) *Credentials {
	c := &Credentials{db: db}
	c.memo = Memo[keyRef, storedKey]{
		Fresh: staleness, Now: now, Load: c.load,
		Missing: func(err error) bool { return errors.Is(err, ErrBadKey) },
	}
	return c
}

// Check verifies that the key is the Brand's own, lives, and has the right, and
// returns its id, which is no secret.
func (c *Credentials) Check(ctx context.Context, brand BrandID, key string, right Right) (id string, err error) {
	id, secret, ok := splitKey(key)
	if !ok {
		return "", ErrBadKey
	}
	stored, err := c.memo.Get(ctx, keyRef{brand, id})
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare(stored.SecretHash, keyHash(secret)) != 1 {
		return "", ErrBadKey
	}
	if !slices.Contains(stored.Rights, right) {
		return "", ErrNoRight
	}
	c.used(ctx, keyRef{brand, id})
	return id, nil
}

// KeyID is the part of a key that may be told: who called, in an audit trail.
func KeyID(key string) string {
	id, _, _ := splitKey(key)
	return id
}

func splitKey(key string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(key, apiKeyPrefix)
	if !ok || len(key) > apiKeyLongest {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	if len(id) != apiKeyIDSize || strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '2' || r > '7')
	}) {
		return "", "", false
	}
	return id, secret, ok
}

func (c *Credentials) load(ctx context.Context, ref keyRef) (storedKey, error) {
	const q = `SELECT rights, secret_hash FROM api_keys WHERE brand_id = @brand AND id = @id AND (revoked_at IS NULL OR revoked_at > @now)`
	k, err := One[storedKey](ctx, c.db, ref.brand, q, pgx.NamedArgs{"brand": ref.brand, "id": ref.id, "now": c.memo.Now()})
	if errors.Is(err, pgx.ErrNoRows) {
		return storedKey{}, ErrBadKey
	}
	if err != nil {
		return storedKey{}, fmt.Errorf("look up API key of %s: %w", ref.brand, err)
	}
	return k, nil
}

func keyHash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
