package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// OwnPasskey is a passkey as its owner knows it.
type OwnPasskey struct {
	ID     []byte `db:"id"`
	Name   string // where it was made; may be empty
	MadeAt time.Time
	UsedAt *time.Time // nil: not since it was made
}

// Reasons a passkey is not removed.
var (
	ErrNoPasskey = errors.New("the person has no such passkey")
	ErrLastWay   = errors.New("one lost device would lock the person out")
)

// OwnPasskeys lists the person's passkeys, the oldest first.
func OwnPasskeys(ctx context.Context, db *DB, person uuid.UUID) ([]OwnPasskey, error) {
	const q = `SELECT id, name, created_at AS made_at, used_at FROM passkeys WHERE person_id = @person ORDER BY created_at, id`
	rows, err := db.pool.Query(ctx, q, pgx.NamedArgs{"person": person})
	if err != nil {
		return nil, fmt.Errorf("list own passkeys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByName[OwnPasskey])
	if err != nil {
		return nil, fmt.Errorf("list own passkeys: %w", err)
	}
	return keys, nil
}

// RemovePasskey takes a passkey from the person, who must still be Secured
// without it. The person's row is locked first, so that of two who are removed at
// the same moment the second is held against what the first left.
func RemovePasskey(ctx context.Context, db *DB, person uuid.UUID, id []byte) error {
	const lock = `SELECT FROM people WHERE id = @person FOR UPDATE`
	const remove = `DELETE FROM passkeys WHERE person_id = @person AND id = @id`
	args := pgx.NamedArgs{"person": person, "id": id}
	err := db.Tx(ctx, "", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lock, args); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, remove, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrNoPasskey
		}
		rows, err := tx.Query(ctx, selectPerson+` WHERE p.id = @person`, args)
		if err != nil {
			return err
		}
		left, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Person])
		if err == nil && !left.Secured() {
			return ErrLastWay
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remove passkey: %w", err)
	}
	return nil
}
