package tenants

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Passkey is a credential of a person. Data is what whoever checks it needs.
type Passkey struct {
	ID        []byte `db:"id"`
	Data      json.RawMessage
	SignCount int64
	Name      string // where it was made, for its owner
}

// Reasons a passkey or a code does not count.
var (
	ErrPasskeyTaken = errors.New("the passkey is registered already")
	ErrCloned       = errors.New("the passkey's counter fell back: there are two of it")
	ErrBadCode      = errors.New("unknown or used recovery code")
)

// Passkeys lists the person's passkeys, the oldest first.
func Passkeys(ctx context.Context, db *DB, person uuid.UUID) ([]Passkey, error) {
	const q = `SELECT id, data, sign_count, name FROM passkeys WHERE person_id = @person ORDER BY created_at, id`
	rows, err := db.pool.Query(ctx, q, pgx.NamedArgs{"person": person})
	if err != nil {
		return nil, fmt.Errorf("list passkeys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByName[Passkey])
	if err != nil {
		return nil, fmt.Errorf("list passkeys: %w", err)
	}
	return keys, nil
}

// AddPasskey gives the person one more passkey.
func AddPasskey(ctx context.Context, db *DB, person uuid.UUID, key Passkey, now time.Time) error {
	err := db.Tx(ctx, "", func(tx pgx.Tx) error { return addPasskey(ctx, tx, person, key, now) })
	if err != nil {
		return fmt.Errorf("add passkey: %w", err)
	}
	return nil
}

func addPasskey(ctx context.Context, tx pgx.Tx, person uuid.UUID, key Passkey, now time.Time) error {
	const q = `
		INSERT INTO passkeys (id, person_id, data, sign_count, name, created_at)
		VALUES (@id, @person, @data, @count, @name, @now)
		ON CONFLICT (id) DO NOTHING`
	tag, err := tx.Exec(ctx, q, pgx.NamedArgs{
		"id": key.ID, "person": person, "data": key.Data, "count": key.SignCount, "name": key.Name, "now": now,
	})
	if err == nil && tag.RowsAffected() == 0 {
		return ErrPasskeyTaken
	}
	return err
}

// UsePasskey records that the person's passkey was used. Of two authenticators
// with one key the one that lags behind is ErrCloned, whichever instance it
// meets: the comparison is the database's.
func UsePasskey(ctx context.Context, db *DB, person uuid.UUID, key Passkey, now time.Time) error {
	const q = `
		UPDATE passkeys SET data = @data, sign_count = @count, used_at = @now
		 WHERE id = @id AND person_id = @person
		   AND (sign_count < @count OR sign_count = 0 AND @count = 0)`
	tag, err := db.pool.Exec(ctx, q, pgx.NamedArgs{
		"id": key.ID, "person": person, "data": key.Data, "count": key.SignCount, "now": now,
	})
	if err != nil {
		return fmt.Errorf("use passkey: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrCloned
	}
	return nil
}

const recoveryCodes = 10

// NewRecoveryCodes replaces the person's codes and returns the new ones, for the
// only time. They do not count as kept before KeepRecoveryCodes.
func NewRecoveryCodes(ctx context.Context, db *DB, person uuid.UUID) ([]string, error) {
	const forget = `DELETE FROM recovery_codes WHERE person_id = @person`
	const doubt = `UPDATE people SET codes_kept_at = NULL WHERE id = @person`
	const insert = `INSERT INTO recovery_codes (person_id, hash) SELECT @person, unnest(@hashes::bytea[])`
	codes := make([]string, recoveryCodes)
	hashes := make([][]byte, recoveryCodes)
	for i := range codes {
		t := strings.ToLower(rand.Text()) // 16 of its characters are 80 bits
		codes[i] = t[:4] + "-" + t[4:8] + "-" + t[8:12] + "-" + t[12:16]
		hashes[i] = codeHash(codes[i])
	}
	args := pgx.NamedArgs{"person": person, "hashes": hashes}
	err := db.Tx(ctx, "", func(tx pgx.Tx) error {
		for _, q := range []string{forget, doubt, insert} {
			if _, err := tx.Exec(ctx, q, args); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make recovery codes: %w", err)
	}
	return codes, nil
}

// KeepRecoveryCodes records that the person says to have kept the codes.
func KeepRecoveryCodes(ctx context.Context, db *DB, person uuid.UUID, now time.Time) error {
	const q = `
		UPDATE people SET codes_kept_at = @now
		 WHERE id = @person AND EXISTS (SELECT FROM recovery_codes WHERE person_id = @person AND used_at IS NULL)`
	if _, err := db.pool.Exec(ctx, q, pgx.NamedArgs{"person": person, "now": now}); err != nil {
		return fmt.Errorf("keep recovery codes: %w", err)
	}
	return nil
}

// codeHash takes a code as it is typed: case, dashes and spaces do not matter.
// 80 random bits need no slower hash.
func codeHash(code string) []byte {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(strings.TrimSpace(code)))
	sum := sha256.Sum256([]byte(plain))
	return sum[:]
}
