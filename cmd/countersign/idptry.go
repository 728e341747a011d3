package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign.dev/consent/federation"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tryConnection begins a test login, for a browser to go through.
func tryConnection(ctx context.Context, pool *pgxpool.Pool, a args) error {
	id, err := uuid.Parse(a.id)
	if err != nil {
		return tenants.ErrNoConnection
	}
	site, err := a.site()
	if err != nil {
		return err
	}
	sealer, err := a.sealer()
	if err != nil {
		return err
	}
	client := federation.New(federation.Config{HTTP: a.outside().HTTP(), Now: time.Now, Context: ctx})
	trials := federation.Trials{Client: client, AllowLoopbackHTTP: a.dev}
	t, to, err := tenants.Trials{DB: tenants.NewDB(pool), Sealer: sealer, Site: site, Now: time.Now, Begin: trials.Begin}.Start(ctx, tenants.BrandID(a.brand), id)
	if err != nil {
		return err
	}
	if to == "" {
		return printTrial(a, t)
	}
	fmt.Fprintf(a.out, "open this in a browser, within %d minutes\n  %s\nthen: countersign idp tried --brand %s --id %s\n", int(tenants.TrialLife/time.Minute), to, a.brand, t.ID)
	return nil
}

// showTrial says what came of a test login.
func showTrial(ctx context.Context, pool *pgxpool.Pool, a args) error {
	id, err := uuid.Parse(a.id)
	if err != nil {
		return tenants.ErrNoTrial
	}
	t, err := tenants.TrialOf(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand), id, time.Now())
	if err != nil {
		return err
	}
	return printTrial(a, t)
}

func printTrial(a args, t tenants.Trial) error {
	switch t.State {
	case "good":
		fmt.Fprintf(a.out, "it works: people can log in so; the provider named %s\n", plain(strings.Join(t.Claims, ", ")))
		return nil
	case "failed":
		return fmt.Errorf("it does not work: %s: %s", t.Trouble, plain(t.Why))
	}
	fmt.Fprintf(a.out, "%s: nobody has come back from it, and it ends at %s\n", t.State, t.EndsAt.UTC().Format(time.RFC3339))
	return nil
}
