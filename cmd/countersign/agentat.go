package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

// listAgentsAt lists the agents that may be met at one Brand, as its dashboard does.
func listAgentsAt(ctx context.Context, pool *pgxpool.Pool, a args) error {
	const page = 500
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ISSUER\tNAME\tMAY ASK\tTHE BRAND SAYS\tENABLED\tTEST\tDISCOVERED\tLOGO\tKEYS")
	after := ""
	for {
		all, err := tenants.AgentsAt(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand), a.search, after, page)
		if err != nil {
			return err
		}
		for _, one := range all {
			says := "its rule"
			if one.Listed != nil {
				says = map[bool]string{true: "allowed", false: "denied"}[*one.Listed]
			}
			fmt.Fprintf(w, "%s\t%s\t%v\t%s\t%v\t%v\t%v\t%v\t%s\n", one.Issuer, one.Name, one.May, says, one.Enabled, one.Test, one.Discovered, one.Logo != "", one.KeysURL)
			after = one.Issuer
		}
		if len(all) < page {
			return w.Flush()
		}
	}
}

// judgeAgent says the Brand's own word on an agent, at once, as the API does.
func judgeAgent(allowed bool) func(context.Context, *pgxpool.Pool, args) error {
	return func(ctx context.Context, pool *pgxpool.Pool, a args) error {
		return tenants.ListAgent(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.issuer, allowed)
	}
}

// unlistAgent leaves the agent to the Brand's rule again.
func unlistAgent(ctx context.Context, pool *pgxpool.Pool, a args) error {
	return tenants.UnlistAgent(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.issuer)
}
