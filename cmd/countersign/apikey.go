package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

func runAPIKey(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "apikey", about: "create | list | rotate | revoke --brand ID [--name NAME --rights introspect,…] [--id ID] [--as-operator]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"create": createAPIKey, "list": listAPIKeys, "rotate": rotateAPIKey,
			"revoke": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				return tenants.EndAPIKey(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.id)
			},
		},
	}.run(ctx, argv, stdout, stderr)
}

// createAPIKey asks an owner, who is shown the key. As the operator it prints the
// key alone, so that it can go straight to where it is kept; it is never shown
// again.
func createAPIKey(ctx context.Context, pool *pgxpool.Pool, a args) error {
	var rights []tenants.Right
	for name := range strings.SplitSeq(a.rights, ",") {
		rights = append(rights, tenants.Right(strings.TrimSpace(name)))
	}
	draft := tenants.KeyDraft{Name: a.name, Rights: rights}
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskKey(ctx, edit, tenants.BrandID(a.brand), draft, "operator", "cli")
		})
	}
	key, err := tenants.NewAPIKey(ctx, operatorEdits(pool), tenants.BrandID(a.brand), draft)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, key)
	return err
}

// rotateAPIKey asks, or prints the new key alone, as create does.
func rotateAPIKey(ctx context.Context, pool *pgxpool.Pool, a args) error {
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskRotation(ctx, edit, tenants.BrandID(a.brand), a.id, "operator", "cli")
		})
	}
	key, err := tenants.RotateAPIKey(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.id, tenants.RotateOverlap)
	if err == nil {
		_, err = fmt.Fprintln(a.out, key)
	}
	return err
}

func listAPIKeys(ctx context.Context, pool *pgxpool.Pool, a args) error {
	keys, err := tenants.APIKeys(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tRIGHTS\tCREATED\tLAST USED\tREVOKED")
	for _, k := range keys {
		used, revoked := "never", "-"
		if k.LastUsedAt != nil {
			used = k.LastUsedAt.UTC().Format(time.RFC3339)
		}
		if k.RevokedAt != nil {
			revoked = k.RevokedAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%q\t%v\t%s\t%s\t%s\n", k.ID, k.Name, k.Rights, k.CreatedAt.UTC().Format(time.RFC3339), used, revoked)
	}
	return w.Flush()
}

// devAPIKey gives a demo Brand one key of this name, in place of the one of
// the former run.
func (p *parts) devAPIKey(ctx context.Context, brand tenants.BrandID, name string, rights ...tenants.Right) (string, error) {
	now := time.Now()
	keys, err := tenants.APIKeys(ctx, p.db, brand)
	if err != nil {
		return "", err
	}
	for _, k := range keys {
		if k.Name == name && k.RevokedAt == nil {
			if err := tenants.RevokeAPIKey(ctx, p.db, brand, k.ID, now); err != nil {
				return "", err
			}
		}
	}
	return tenants.CreateAPIKey(ctx, p.db, brand, name, rights, now)
}
