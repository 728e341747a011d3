package tenants

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// KeyDraft is an API key as it is asked for.
type KeyDraft struct {
	Name   string  `json:"name"`
	Rights []Right `json:"rights"`
}

// Check returns every mistake in the draft.
func (d KeyDraft) Check() Problems {
	const longest = 100
	var p Problems
	p.words("name", d.Name, 1, longest)
	if len(d.Rights) == 0 {
		p.add("rights", "are missing", "name at least one, and no more than are needed")
		p.kind(NoRights)
	}
	known := make([]string, len(Rights()))
	for i, r := range Rights() {
		known[i] = string(r)
	}
	for i, r := range d.Rights {
		p.oneOf("rights", string(r), known...)
		if slices.Contains(d.Rights[:i], r) {
			p.add("rights", "hold "+string(r)+" twice", "take one away")
			p.kind(Twice, string(r))
		}
	}
	return p
}

// NewAPIKey makes a key and returns it, for the only time.
func NewAPIKey(ctx context.Context, edit Editor, brand BrandID, d KeyDraft) (string, error) {
	if p := d.Check(); len(p) > 0 {
		return "", p
	}
	var key string
	err := edit.change(ctx, brand, "create API key", func(e *Edit) error {
		var err error
		key, err = e.newKey(ctx, d, "apikey.created")
		return err
	})
	return key, err
}

func (e *Edit) newKey(ctx context.Context, d KeyDraft, event string) (string, error) {
	id, secret := strings.ToLower(rand.Text()[:apiKeyIDSize]), rand.Text()+rand.Text()
	const q = `
		INSERT INTO api_keys (brand_id, id, name, rights, secret_hash, created_at)
		VALUES (@brand, @id, @name, @rights, @hash, @now)`
	_, err := e.Exec(ctx, q, pgx.NamedArgs{
		"brand": e.Brand, "id": id, "name": d.Name, "rights": d.Rights, "hash": keyHash(secret), "now": e.Now,
	})
	e.Note(event, map[string]any{"key": id, "rights": d.Rights})
	return apiKeyPrefix + id + "_" + secret, err
}

// EndAPIKey revokes the key at once. Twice is once; an unknown one is ErrBadKey.
func EndAPIKey(ctx context.Context, edit Editor, brand BrandID, id string) error {
	return edit.change(ctx, brand, "revoke API key", func(e *Edit) error {
		const q = `
			UPDATE api_keys k SET revoked_at = least(k.revoked_at, @now)
			  FROM (SELECT id, revoked_at AS before FROM api_keys WHERE brand_id = @brand AND id = @id FOR UPDATE) o
			 WHERE k.brand_id = @brand AND k.id = o.id
			RETURNING o.before IS NULL OR o.before > @now`
		var ended bool
		err := e.QueryRow(ctx, q, pgx.NamedArgs{"brand": brand, "id": id, "now": e.Now}).Scan(&ended)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrBadKey
		}
		if err == nil && ended {
			e.Note("apikey.revoked", map[string]any{"key": id})
		}
		return err
	})
}

// RotateAPIKey makes a key with the name and rights of the one with the id, which
// opens for overlap longer, and returns the new one.
func RotateAPIKey(ctx context.Context, edit Editor, brand BrandID, id string, overlap time.Duration) (string, error) {
	var key string
	err := edit.change(ctx, brand, "rotate API key", func(e *Edit) error {
		const q = `
			UPDATE api_keys SET revoked_at = @until
			 WHERE brand_id = @brand AND id = @id AND revoked_at IS NULL
			RETURNING name, rights`
		var d KeyDraft
		err := e.QueryRow(ctx, q, pgx.NamedArgs{"brand": brand, "id": id, "until": e.Now.Add(overlap)}).Scan(&d.Name, &d.Rights)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrBadKey
		}
		if err != nil {
			return err
		}
		e.Note("apikey.rotated", map[string]any{"key": id, "until": e.Now.Add(overlap)})
		key, err = e.newKey(ctx, d, "apikey.created")
		return err
	})
	return key, err
}
