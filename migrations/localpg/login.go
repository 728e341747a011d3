package localpg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// AppRole is the role that owns no table and passes no row-level security; the
// migrations create it and grant it what the service needs.
const AppRole = "countersign_app"

// EnsureLogin makes role a login that is a member of AppRole and of nothing else,
// with the given password. It may be called again, and changes the password then.
// The migrations must have run.
func EnsureLogin(ctx context.Context, ownerURL, role, password string) error {
	conn, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return fmt.Errorf("make login %s: %w", role, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Roles have no "if not exists", and two at once would fail for one of them.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('countersign login roles'))`); err != nil {
			return err
		}
		var exists bool
		const known = `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = @role)`
		if err := tx.QueryRow(ctx, known, pgx.NamedArgs{"role": role}).Scan(&exists); err != nil {
			return err
		}
		verb := "CREATE"
		if exists {
			verb = "ALTER"
		}
		name := pgx.Identifier{role}.Sanitize()
		// These statements take no arguments. The verifier is made of letters that
		// need no quoting, and keeps the password itself out of the server's log.
		define := verb + ` ROLE ` + name + ` WITH LOGIN INHERIT NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION
			PASSWORD '` + scramVerifier(password) + `'`
		if _, err := tx.Exec(ctx, define); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `GRANT `+AppRole+` TO `+name)
		return err
	})
	if err != nil {
		return fmt.Errorf("make login %s: %w", role, err)
	}
	return nil
}
