package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrOtherwise is returned where an application is no longer as it was seen.
var ErrOtherwise = errors.New("the application is not as it was seen")

// Digest names the application as it is now, whole: whoever applies may change it
// for as long as it waits, and what is approved is what was seen. It is long enough
// that nobody can write two applications of one digest.
func (a Application) Digest() string {
	raw, err := json.Marshal([]string{a.Issuer, a.JWKSURI, a.Name, a.Contact, a.LogoHash})
	if err != nil {
		panic(err) // strings always can
	}
	sum := sha256.Sum256(raw)
	const bits = 128
	return hex.EncodeToString(sum[:bits/8])
}

// Applications returns those that wait, the oldest first.
func (r *Registry) Applications(ctx context.Context) ([]Application, error) {
	const q = `
		SELECT issuer, jwks_uri, name, contact, logo_hash, asked_at, state, decided_at
		  FROM agent_applications WHERE state = 'pending' ORDER BY asked_at, issuer`
	rows, err := r.db.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list applications: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[Application])
	if err != nil {
		return nil, fmt.Errorf("list applications: %w", err)
	}
	return all, nil
}

// Approve registers the agent as it applied, enabled. seen is the digest of the
// application that was looked at; if the applicant has changed it since, it is
// ErrOtherwise.
func (r *Registry) Approve(ctx context.Context, issuer, seen string) error {
	const q = `
		WITH approved AS (
			UPDATE agent_applications SET state = 'approved', decided_at = @now
			 WHERE issuer = @issuer AND state = 'pending'
			RETURNING issuer, jwks_uri, name, contact
		)
		INSERT INTO agents (issuer, jwks_uri, name, contact, enabled, created_at, updated_at)
		SELECT issuer, jwks_uri, name, contact, true, @now, @now FROM approved
		ON CONFLICT (issuer) DO UPDATE
		   SET jwks_uri = excluded.jwks_uri, name = excluded.name, contact = excluded.contact,
		       enabled = true, discovered = false, updated_at = excluded.updated_at, enabled_at = excluded.updated_at
		 WHERE agents.discovered`
	const picture = `
		INSERT INTO agent_logos (issuer, png, hash, changed_at)
		SELECT issuer, logo_png, logo_hash, @now FROM agent_applications
		 WHERE issuer = @issuer AND logo_png IS NOT NULL
		ON CONFLICT (issuer) DO UPDATE SET png = excluded.png, hash = excluded.hash, changed_at = excluded.changed_at`
	defer r.forget(issuer)
	return r.decide(ctx, issuer, &seen, "registered", q, picture, forgetPicture)
}

// Reject says no to the application, whatever it has become; the same issuer
// cannot apply again.
func (r *Registry) Reject(ctx context.Context, issuer string) error {
	const q = `
		UPDATE agent_applications SET state = 'rejected', decided_at = @now
		 WHERE issuer = @issuer AND state = 'pending'`
	return r.decide(ctx, issuer, nil, "", q, forgetPicture) // no Brand knew of it
}

// forgetPicture takes the picture out of an application that is decided.
const forgetPicture = `UPDATE agent_applications SET logo_png = NULL, logo_hash = '' WHERE issuer = @issuer AND state <> 'pending'`

// decide runs the statements on the application, if it still is as it was seen.
// The first one is the decision: where it finds nothing, there was nothing to decide.
func (r *Registry) decide(ctx context.Context, issuer string, seen *string, what string, first string, rest ...string) error {
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if seen != nil {
			if err := same(ctx, tx, issuer, *seen); err != nil {
				return err
			}
		}
		args := pgx.NamedArgs{"issuer": issuer, "now": r.now()}
		tag, err := tx.Exec(ctx, first, args)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNoApplication
		}
		for _, q := range rest {
			if err == nil {
				_, err = tx.Exec(ctx, q, args)
			}
		}
		if err != nil || what == "" {
			return err
		}
		return r.note(ctx, tx, issuer, what)
	})
	if err != nil && !errors.Is(err, ErrNoApplication) && !errors.Is(err, ErrOtherwise) {
		return fmt.Errorf("decide application: %w", err)
	}
	return err
}

// same holds the application as it is until tx ends, and compares it.
func same(ctx context.Context, tx pgx.Tx, issuer, seen string) error {
	const q = `
		SELECT issuer, jwks_uri, name, contact, logo_hash, asked_at, state, decided_at
		  FROM agent_applications WHERE issuer = @issuer AND state = 'pending' FOR UPDATE`
	rows, err := tx.Query(ctx, q, pgx.NamedArgs{"issuer": issuer})
	if err != nil {
		return err
	}
	a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Application])
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNoApplication
	case err != nil:
		return err
	case a.Digest() != seen:
		return ErrOtherwise
	}
	return nil
}
