package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/web/alike"
	"github.com/jackc/pgx/v5/pgxpool"
)

// listAgentsAt lists the agents that may be met at one Brand, as its dashboard does.
func listAgentsAt(ctx context.Context, pool *pgxpool.Pool, a args) error {
	b, err := tenants.NewDirectory(tenants.NewDB(pool), time.Now).Brand(ctx, tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	found, err := agentsAt(ctx, pool, b.ID, a.search)
	if err != nil {
		return err
	}
	all, err := agentsAt(ctx, pool, b.ID, "")
	if err != nil {
		return err
	}
	crowd := new(alike.Crowd)
	addBrand(crowd, b)
	for _, one := range all {
		crowd.At("agent "+one.Issuer, alike.HostOf(one.Issuer))
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ISSUER\tDRAWN\tNAME\tMAY ASK\tTHE BRAND SAYS\tENABLED\tTEST\tDISCOVERED\tLOGO\tKEYS\tALIKE")
	for _, one := range found {
		says := "its rule"
		if one.Listed != nil {
			says = map[bool]string{true: "allowed", false: "denied"}[*one.Listed]
		}
		fmt.Fprintf(w, "%s\t%s\t%q\t%v\t%s\t%v\t%v\t%v\t%v\t%s\t%s\n", one.Issuer, drawn(one.Issuer), one.Name, one.May, says, one.Enabled, one.Test, one.Discovered,
			one.Logo != "", one.KeysURL, likeness(crowd, one.Issuer, one.Name))
	}
	return w.Flush()
}

// agentsAt reads all of them, page after page.
func agentsAt(ctx context.Context, pool *pgxpool.Pool, brand tenants.BrandID, search string) (all []tenants.AgentView, err error) {
	const page = 500
	for after := ""; ; after = all[len(all)-1].Issuer {
		some, err := tenants.AgentsAt(ctx, tenants.NewDB(pool), brand, search, after, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < page {
			return all, nil
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
