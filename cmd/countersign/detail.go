package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

func runDetail(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "detail", about: "list | set | remove --brand ID [--type NAME] [--set NAME=VALUE …]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": listDetailTypes, "set": setDetailType,
			"remove": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				return tenants.RemoveDetailType(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.detailType)
			},
		},
	}.run(ctx, argv, stdout, stderr)
}

func listDetailTypes(ctx context.Context, pool *pgxpool.Pool, a args) error {
	all, err := tenants.DetailTypes(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TYPE\tSCOPE\tWORDS\tSCHEMA")
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Type, t.Scope, t.Words, asJSON(t.Schema))
	}
	return w.Flush()
}

// setDetailType adds a type, or changes what is named of one.
func setDetailType(ctx context.Context, pool *pgxpool.Pool, a args) error {
	all, err := tenants.DetailTypes(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	t := tenants.FileDetailType{Type: a.detailType}
	for _, o := range all {
		if o.Type == a.detailType {
			t = tenants.FileDetailType(o)
		}
	}
	if err := assign(&t, a.set); err != nil {
		return err
	}
	t.Type = a.detailType
	return tenants.SaveDetailType(ctx, operatorEdits(pool), tenants.BrandID(a.brand), tenants.DetailType(t))
}
