package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// BrandID names a Brand in URLs and in every key. Immutable and never reused.
type BrandID string

// DB runs statements inside one Brand's fence. Each call names the Brand to
// row-level security and runs the statement in one round trip and one
// transaction.
type DB struct{ pool *pgxpool.Pool }

// NewDB returns a DB over pool. The pool must log in as a member of
// countersign_app: a superuser or the tables' owner would see through the fence.
func NewDB(pool *pgxpool.Pool) *DB { return &DB{pool: pool} }

// Pool returns the unfenced pool, for tables that belong to no Brand.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// setBrand is local to the transaction, so a pooled connection forgets it.
const setBrand = `SELECT set_config('countersign.brand', $1, true)`

// relaxed lets the commit return before the disk has it. Only for facts that
// may be lost in a crash without harm, such as when somebody last polled.
const relaxed = `SELECT set_config('synchronous_commit', 'off', true)`

// One runs a statement that yields exactly one row and scans it by column name
// into T. No row is pgx.ErrNoRows.
func One[T any](ctx context.Context, db *DB, brand BrandID, q string, args pgx.NamedArgs) (T, error) {
	return one[T](ctx, db, brand, q, args, setBrand)
}

// OneRelaxed is One whose commit does not wait for the disk: for statements
// that write only what a crash may forget. It must never record that something
// was spent, issued, decided or ended.
func OneRelaxed[T any](ctx context.Context, db *DB, brand BrandID, q string, args pgx.NamedArgs) (T, error) {
	return one[T](ctx, db, brand, q, args, setBrand, relaxed)
}

func one[T any](ctx context.Context, db *DB, brand BrandID, q string, args pgx.NamedArgs, before ...string) (T, error) {
	rows, err := collect[T](ctx, db, brand, q, args, before)
	if err != nil {
		var zero T
		return zero, err
	}
	if len(rows) != 1 {
		var zero T
		if len(rows) == 0 {
			return zero, pgx.ErrNoRows
		}
		return zero, fmt.Errorf("one row wanted, %d came", len(rows))
	}
	return rows[0], nil
}

// All runs a statement and scans every row by column name into T.
func All[T any](ctx context.Context, db *DB, brand BrandID, q string, args pgx.NamedArgs) ([]T, error) {
	return collect[T](ctx, db, brand, q, args, []string{setBrand})
}

func collect[T any](ctx context.Context, db *DB, brand BrandID, q string, args pgx.NamedArgs, before []string) ([]T, error) {
	var b pgx.Batch
	for _, s := range before {
		if s == setBrand {
			b.Queue(s, string(brand))
		} else {
			b.Queue(s)
		}
	}
	text, values, err := positional(q, args)
	if err != nil {
		return nil, err
	}
	b.Queue(text, values...)
	res := db.pool.SendBatch(ctx, &b)
	out, err := func() ([]T, error) {
		for range before {
			if _, err := res.Exec(); err != nil {
				return nil, err
			}
		}
		rows, err := res.Query()
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByName[T])
	}()
	// The implicit transaction commits when the batch is closed: only then is
	// a write a fact.
	if closed := res.Close(); err == nil {
		err = closed
	}
	return out, err
}

// Exec runs a statement for its effect and returns how many rows it touched.
func (db *DB) Exec(ctx context.Context, brand BrandID, q string, args pgx.NamedArgs) (int64, error) {
	var b pgx.Batch
	text, values, err := positional(q, args)
	if err != nil {
		return 0, err
	}
	b.Queue(setBrand, string(brand))
	b.Queue(text, values...)
	res := db.pool.SendBatch(ctx, &b)
	var tag pgconn.CommandTag
	_, err = res.Exec()
	if err == nil {
		tag, err = res.Exec()
	}
	if closed := res.Close(); err == nil {
		err = closed
	}
	return tag.RowsAffected(), err
}

// Tx runs fn in one transaction inside the Brand's fence and commits when fn
// returns nil. fn must not call the network: a transaction holds its locks for
// as long as the slowest thing in it.
func (db *DB) Tx(ctx context.Context, brand BrandID, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setBrand, string(brand)); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Enter moves a transaction that has to do with several Brands into the fence
// of the next one.
func Enter(ctx context.Context, tx pgx.Tx, brand BrandID) error {
	if _, err := tx.Exec(ctx, setBrand, string(brand)); err != nil {
		return fmt.Errorf("enter brand %s: %w", brand, err)
	}
	return nil
}

// CheckFence refuses a login that row-level security does not hold: a
// superuser's, the tables' owner's, or one that is no member of
// countersign_app. With such a login everything would work, and the second
// wall would not stand.
func (db *DB) CheckFence(ctx context.Context) error {
	const q = `
		SELECT r.rolsuper OR r.rolbypassrls AS above,
		       pg_has_role(r.oid, c.relowner, 'MEMBER') AS owner,
		       pg_has_role(r.oid, 'countersign_app', 'MEMBER') AS member
		  FROM pg_roles r, pg_class c
		 WHERE r.rolname = current_user AND c.oid = 'brands'::regclass`
	var above, owner, member bool
	if err := db.pool.QueryRow(ctx, q).Scan(&above, &owner, &member); err != nil {
		return fmt.Errorf("check the database login: %w", err)
	}
	if above || owner || !member {
		return errors.New("the database login sees past row-level security, or is no member of countersign_app: " +
			"give the service a login of its own (CREATE ROLE … LOGIN IN ROLE countersign_app)")
	}
	return nil
}
