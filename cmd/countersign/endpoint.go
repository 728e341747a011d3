package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"countersign.dev/authority/a2a"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

func runEndpoint(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "endpoint", about: "show | set | remove | rotate | check --brand ID [--url URL]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"show": showEndpoint, "check": checkEndpoint, "rotate": rotateEndpoint,
			"set":    func(ctx context.Context, pool *pgxpool.Pool, a args) error { return a.callElsewhere(ctx, pool, a.url) },
			"remove": func(ctx context.Context, pool *pgxpool.Pool, a args) error { return a.callElsewhere(ctx, pool, "") },
		},
	}.run(ctx, argv, stdout, stderr)
}

func showEndpoint(ctx context.Context, pool *pgxpool.Pool, a args) error {
	e, err := tenants.AgentEndpointOf(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out, e.URL)
	if e.FormerUntil != nil && e.FormerUntil.After(time.Now()) {
		fmt.Fprintf(a.out, "the former secret signs too until %s\n", e.FormerUntil.UTC().Format(time.RFC3339))
	}
	return nil
}

// callElsewhere asks an owner to have the Brand's agent called at the URL, or
// nowhere. As operator it is done at once, and the secret printed, for the only
// time.
func (a args) callElsewhere(ctx context.Context, pool *pgxpool.Pool, url string) error {
	site, err := a.site()
	if err != nil {
		return err
	}
	asks, err := a.asks(pool)
	if err != nil {
		return err
	}
	edit, brand := operatorEdits(pool), tenants.BrandID(a.brand)
	if !a.asOperator {
		p, err := asks.AskAgentEndpoint(ctx, edit, site, brand, url, "operator", "cli")
		return waits(a.out, p, err)
	}
	secret, err := tenants.SetAgentEndpoint(ctx, edit, asks.Sealer, site, brand, url)
	if err == nil && secret != "" {
		_, err = fmt.Fprintln(a.out, secret)
	}
	return err
}

// callsElsewhere says whether the file has the Brand's agent elsewhere. An address
// that cannot be is refused here, before anything of the file is done.
func (a args) callsElsewhere(ctx context.Context, pool *pgxpool.Pool, p *plan) error {
	if p.AgentEndpoint == nil {
		return nil
	}
	url := *p.AgentEndpoint
	if wrong := tenants.CheckAgentURL(url, p.site); url != "" && len(wrong) > 0 {
		return wrong
	}
	now, err := tenants.AgentEndpointOf(ctx, tenants.NewDB(pool), p.Brand)
	if err != nil && !errors.Is(err, tenants.ErrNoAgentEndpoint) {
		return err
	}
	if now.URL == url {
		return nil
	}
	p.turns = true
	fmt.Fprintln(a.out, "agent endpoint (with a new secret):")
	printDiff(a.out, map[string]tenants.Difference{"url": {Before: now.URL, After: url}})
	return nil
}

func rotateEndpoint(ctx context.Context, pool *pgxpool.Pool, a args) error {
	asks, err := a.asks(pool)
	if err != nil {
		return err
	}
	edit, brand := operatorEdits(pool), tenants.BrandID(a.brand)
	if !a.asOperator {
		p, err := asks.AskAgentSecret(ctx, edit, brand, "operator", "cli")
		return waits(a.out, p, err)
	}
	overlap := tenants.AgentOverlap
	if a.atOnce {
		overlap = 0
	}
	secret, err := tenants.RotateAgentSecret(ctx, asks.DB, edit, asks.Sealer, brand, overlap)
	if err == nil {
		_, err = fmt.Fprintln(a.out, secret)
	}
	return err
}

// checkEndpoint sends the agent a signed test call and says what came back.
func checkEndpoint(ctx context.Context, pool *pgxpool.Pool, a args) error {
	sealer, err := a.sealer()
	if err != nil {
		return err
	}
	db := tenants.NewDB(pool)
	caller := a2a.NewCaller(a2a.CallerConfig{
		Places: tenants.NewAgentPlaces(db, sealer, time.Now), AllowLoopback: a.dev, Now: time.Now,
	})
	t, err := caller.Try(ctx, tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	if t.Wrong != "" {
		return fmt.Errorf("after %s: %s", t.Took.Round(time.Millisecond), t.Wrong)
	}
	_, err = fmt.Fprintf(a.out, "answered in %s: %s\n", t.Took.Round(time.Millisecond), t.Text)
	return err
}
