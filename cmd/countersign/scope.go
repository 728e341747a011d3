package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

func runScope(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	on := func(act func(context.Context, tenants.Editor, tenants.BrandID, string) error) func(context.Context, *pgxpool.Pool, args) error {
		return func(ctx context.Context, pool *pgxpool.Pool, a args) error {
			return act(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.scope)
		}
	}
	return operation{
		noun: "scope", about: "list | set | order | retire | restore --brand ID [--scope ID] [--set NAME=VALUE …] [--order ID,…] [--as-operator]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": listScopes, "set": setScope,
			"retire": on(tenants.RetireScope), "restore": restoreScope,
			"order": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				return tenants.OrderScopes(ctx, operatorEdits(pool), tenants.BrandID(a.brand), strings.Split(a.order, ","))
			},
		},
	}.run(ctx, argv, stdout, stderr)
}

// restoreScope puts a retired scope back: now, as the operator, or by asking an
// owner, for grants that held it hold it again.
func restoreScope(ctx context.Context, pool *pgxpool.Pool, a args) error {
	brand := tenants.BrandID(a.brand)
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskRestore(ctx, edit, brand, a.scope, "operator", "cli")
		})
	}
	if err := tenants.RestoreScope(ctx, operatorEdits(pool), brand, a.scope); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "scope %s of %s is on the card\n", a.scope, a.brand)
	return nil
}

func listScopes(ctx context.Context, pool *pgxpool.Pool, a args) error {
	all, err := tenants.Scopes(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tEFFECT\tIMPACT\tDESCRIPTION\tSTATE")
	for _, s := range all {
		state := "on the card"
		if s.RetiredAt != nil {
			state = "retired"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.Effect, s.Impact, s.Description, state)
	}
	return w.Flush()
}

// setScope adds a scope, or changes what is named of one.
func setScope(ctx context.Context, pool *pgxpool.Pool, a args) error {
	all, err := tenants.Scopes(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	s := tenants.FileScope{ID: a.scope, Effect: "sees", Impact: "low"}
	for _, o := range all {
		if o.ID == a.scope {
			s = tenants.FileScope(o.Scope)
		}
	}
	if err := assign(&s, a.set); err != nil {
		return err
	}
	s.ID = a.scope
	return tenants.SaveScope(ctx, operatorEdits(pool), tenants.BrandID(a.brand), tenants.Scope(s))
}
