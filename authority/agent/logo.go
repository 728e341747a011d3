package agent

import (
	"context"
	"errors"
	"fmt"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// ErrNoLogo is returned where there is no picture.
var ErrNoLogo = errors.New("it has no logo")

// SetLogo gives a registered agent a picture, of the same making as a Brand's: see
// tenants.RemakeLogo for what is taken. No bytes take it away. One that was only
// discovered is ErrNotRegistered: nobody has looked at it, and its address is all
// that people are shown of it.
func (r *Registry) SetLogo(ctx context.Context, issuer string, raw []byte) error {
	var made []byte
	var hash string
	if len(raw) > 0 {
		var err error
		if made, hash, err = tenants.RemakeLogo(raw); err != nil {
			return err
		}
	}
	const find = `SELECT FROM agents WHERE issuer = @issuer AND NOT discovered FOR NO KEY UPDATE`
	const set = `
		INSERT INTO agent_logos (issuer, png, hash, changed_at) VALUES (@issuer, @png, @hash, @now)
		ON CONFLICT (issuer) DO UPDATE SET png = excluded.png, hash = excluded.hash, changed_at = excluded.changed_at
		 WHERE agent_logos.hash <> excluded.hash`
	const remove = `DELETE FROM agent_logos WHERE issuer = @issuer`
	args := pgx.NamedArgs{"issuer": issuer, "png": made, "hash": hash, "now": r.now()}
	defer r.forget(issuer)
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, find, args).Scan(); err != nil {
			if errors.Is(err, pgx.ErrNoRows) {
				return ErrNotRegistered
			}
			return err
		}
		q := set
		if hash == "" {
			q = remove
		}
		tag, err := tx.Exec(ctx, q, args)
		if err != nil || tag.RowsAffected() == 0 { // nothing is new
			return err
		}
		return r.note(ctx, tx, issuer, "logo")
	})
	if err != nil && !errors.Is(err, ErrNotRegistered) {
		return fmt.Errorf("set logo of agent: %w", err)
	}
	return err
}

// Logo returns the picture of the agent with the issuer, or of its application
// while that waits, for the operator to look at; or ErrNoLogo.
func (r *Registry) Logo(ctx context.Context, issuer string) ([]byte, error) {
	const q = `
		SELECT png FROM agent_logos WHERE issuer = @issuer
		UNION ALL
		SELECT logo_png FROM agent_applications WHERE issuer = @issuer AND state = 'pending' AND logo_png IS NOT NULL
		 LIMIT 1`
	var png []byte
	err := r.db.QueryRow(ctx, q, pgx.NamedArgs{"issuer": issuer}).Scan(&png)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoLogo
	}
	if err != nil {
		return nil, fmt.Errorf("load logo of agent: %w", err)
	}
	return png, nil
}
