package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/consent/federation"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

func runIDP(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "idp", about: "list | set | check | try | tried | live | remove --brand ID [--issuer URL --client-id ID --client-secret env:NAME …] [--kind assertion --jwks-uri URL --login-url URL] [--id ID] [--as-operator]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": listConnections, "set": setCandidate, "check": checkConnection, "live": makeLive, "try": tryConnection, "tried": showTrial,
			"remove": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				id, err := uuid.Parse(a.id)
				if err != nil {
					return tenants.ErrNoConnection
				}
				return tenants.RemoveConnection(ctx, operatorEdits(pool), tenants.BrandID(a.brand), id)
			},
		},
	}.run(ctx, argv, stdout, stderr)
}

func listConnections(ctx context.Context, pool *pgxpool.Pool, a args) error {
	all, err := tenants.Connections(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tKIND\tISSUER\tCLIENT\tAUTH\tSUBJECT\tSCOPES\tLOGIN PAGE")
	for _, c := range all {
		state := "candidate"
		if c.Live {
			state = "live"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, state, c.Kind, c.Issuer, c.ClientID, c.Auth, c.SubjectClaim, strings.Join(c.Scopes, " "), c.LoginURL)
	}
	return w.Flush()
}

// setCandidate saves the connection that is tried beside the live one.
func setCandidate(ctx context.Context, pool *pgxpool.Pool, a args) error {
	site, err := a.site()
	if err != nil {
		return err
	}
	d := a.login
	if d.Secret, err = reference(a.secret); err != nil {
		return err
	}
	if a.scopes != "" {
		d.Scopes = strings.Split(a.scopes, ",")
	}
	if a.maxAge >= 0 {
		d.MaxAge = &a.maxAge
	}
	var sealer tenants.Sealer
	if d.Kind != tenants.KindAssertion { // with which nothing secret comes
		if sealer, err = a.sealer(); err != nil {
			return err
		}
	}
	db, brand := tenants.NewDB(pool), tenants.BrandID(a.brand)
	c, err := tenants.SaveCandidate(ctx, db, operatorEdits(pool), sealer, site, brand, d)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is the candidate; idp check reads its provider, idp live lets people in through it\n", c.ID)
	return nil
}

// checkConnection reads what the provider says of itself, or looks at the Brand's
// own page.
func checkConnection(ctx context.Context, pool *pgxpool.Pool, a args) error {
	id, err := uuid.Parse(a.id)
	if err != nil {
		return tenants.ErrNoConnection
	}
	sealer, err := a.sealer()
	if err != nil {
		return err
	}
	l, err := tenants.Candidate(ctx, tenants.NewDB(pool), sealer, tenants.BrandID(a.brand), id)
	if err != nil {
		return err
	}
	client := federation.New(federation.Config{HTTP: a.outside().HTTP(), Now: time.Now, Context: ctx})
	return printLines(a.out, federation.Trials{Client: client, AllowLoopbackHTTP: a.dev}.Look(ctx, l))
}

// makeLive lets people in through the candidate: now, as the operator, or by
// asking an owner.
func makeLive(ctx context.Context, pool *pgxpool.Pool, a args) error {
	id, err := uuid.Parse(a.id)
	if err != nil {
		return tenants.ErrNoConnection
	}
	site, err := a.site()
	if err != nil {
		return err
	}
	edit, brand := operatorEdits(pool), tenants.BrandID(a.brand)
	if a.asOperator {
		return tenants.MakeLive(ctx, edit, site, brand, id)
	}
	asks, err := a.asks(pool)
	if err != nil {
		return err
	}
	p, err := asks.AskLive(ctx, edit, brand, id, "operator", "cli")
	return waits(a.out, p, err)
}

func runChange(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	decide := func(act func(context.Context, *tenants.Asks, *pgxpool.Pool, args, uuid.UUID) error) func(context.Context, *pgxpool.Pool, args) error {
		return func(ctx context.Context, pool *pgxpool.Pool, a args) error {
			id, err := uuid.Parse(a.id)
			if err != nil {
				return tenants.ErrNoChange
			}
			asks := &tenants.Asks{DB: tenants.NewDB(pool), Now: time.Now}
			return act(ctx, asks, pool, a, id)
		}
	}
	return operation{
		noun: "change", about: "list | reject | apply --brand ID [--id ID] [--as-operator]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": listChanges,
			"reject": decide(func(ctx context.Context, asks *tenants.Asks, pool *pgxpool.Pool, a args, id uuid.UUID) error {
				return asks.Reject(ctx, operatorEdits(pool), tenants.BrandID(a.brand), id, "operator")
			}),
			"apply": decide(func(ctx context.Context, _ *tenants.Asks, pool *pgxpool.Pool, a args, id uuid.UUID) error {
				if !a.asOperator {
					return fmt.Errorf("an owner of the Brand applies it in the console; --as-operator does it in your name")
				}
				asks, err := a.operatorAsks(pool)
				if err != nil {
					return err
				}
				edit := rules(pool).Editor(authority.ByOperator()).TellingFor(byOperator, "change.applied")
				said, err := asks.Apply(ctx, edit, tenants.BrandID(a.brand), id, "operator")
				if said != "" {
					fmt.Fprintln(a.out, said)
				}
				return err
			}),
		},
	}.run(ctx, argv, stdout, stderr)
}

// operatorAsks apply in the operator's name what is done in somebody's name.
func (a args) operatorAsks(pool *pgxpool.Pool) (*tenants.Asks, error) {
	asks, err := a.asks(pool)
	if err != nil {
		return nil, err
	}
	keys, err := keyring(pool, a)
	if err != nil {
		return nil, err
	}
	own := signing.Appliers(keys, func(ctx context.Context, _ tenants.BrandID) (signing.Policy, error) {
		return policy(ctx, pool, keys, a)
	})
	own[tenants.ChangeClose] = func(ctx context.Context, _ tenants.Editor, brand tenants.BrandID, _ []byte) (string, error) {
		_, err := rules(pool).Close(ctx, brand, authority.ByOperator())
		return "", err
	}
	return asks.With(own), nil
}

func listChanges(ctx context.Context, pool *pgxpool.Pool, a args) error {
	const most = 200
	asks := &tenants.Asks{DB: tenants.NewDB(pool), Now: time.Now}
	all, err := asks.Changes(ctx, tenants.BrandID(a.brand), uuid.Nil, most)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tKIND\tSTATE\tASKED BY\tASKED\tDIFFERENCE")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Kind, c.State, c.AskedBy, c.AskedAt.UTC().Format(time.RFC3339), c.Diff)
	}
	return w.Flush()
}
