package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

// operation is a command of an operator over the database.
type operation struct {
	noun  string
	verbs map[string]func(context.Context, *pgxpool.Pool, args) error
	about string
}

// args are what operations may be given.
type args struct {
	issuer, jwksURI, name, brand, subject string
	id, rights                            string
	dev                                   bool
	out                                   io.Writer
}

func (o operation) run(ctx context.Context, argv []string, stdout, stderr io.Writer) int {
	verb, rest := "", argv
	if len(argv) > 0 {
		verb, rest = argv[0], argv[1:]
	}
	act, ok := o.verbs[verb]
	if !ok {
		fmt.Fprintf(stderr, "countersign %s: %s\n", o.noun, o.about)
		return 2
	}
	s := newSettings(o.noun+" "+verb, o.about, stderr)
	a := args{out: stdout}
	database := s.String("database-url", "", "PostgreSQL; countersign dev names its own in the ready file (required)")
	switch o.noun {
	case "agent":
		s.StringVar(&a.issuer, "issuer", "", "the agent's issuer URL, byte for byte")
		s.StringVar(&a.jwksURI, "jwks-uri", "", "where the agent publishes its keys")
		s.StringVar(&a.name, "name", "", "what people will read")
		s.BoolVar(&a.dev, "allow-loopback", false, "plain http on this machine, for development")
	case "apikey":
		s.StringVar(&a.brand, "brand", "", "the Brand's id")
		s.StringVar(&a.name, "name", "unnamed", "what the key is for")
		s.StringVar(&a.rights, "rights", "introspect", "comma-separated: introspect, receipts, stepup, events, verify, admin")
		s.StringVar(&a.id, "id", "", "the key's id, as list shows it")
	case "user":
		s.StringVar(&a.subject, "subject", "", "the user's id at the Brand")
		fallthrough
	case "brand":
		s.StringVar(&a.brand, "brand", "", "the Brand's id")
	}
	if code := s.parse(rest); code >= 0 {
		return code
	}
	if code := s.refuse(required("database-url", *database)); code >= 0 {
		return code
	}
	pool, err := openPool(ctx, *database, 2)
	if err != nil {
		return failed(ctx, stderr, s.Name(), err)
	}
	defer pool.Close()
	return failed(ctx, stderr, o.noun+" "+verb, act(ctx, pool, a))
}

func runAgent(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	registry := func(pool *pgxpool.Pool, a args) *agent.Registry {
		return agent.NewRegistry(agent.RegistryConfig{DB: pool, AllowLoopback: a.dev, Now: time.Now})
	}
	enable := func(on bool) func(context.Context, *pgxpool.Pool, args) error {
		return func(ctx context.Context, pool *pgxpool.Pool, a args) error {
			return registry(pool, a).SetEnabled(ctx, a.issuer, on)
		}
	}
	return operation{
		noun: "agent", about: "list | add | enable | disable --issuer URL [--jwks-uri URL --name NAME]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"enable": enable(true), "disable": enable(false),
			"add": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				return registry(pool, a).Register(ctx, agent.Agent{Issuer: a.issuer, JWKSURI: a.jwksURI, Name: a.name, Enabled: true})
			},
			"list": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				all, err := registry(pool, a).List(ctx)
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ISSUER\tNAME\tENABLED\tKEYS")
				for _, one := range all {
					fmt.Fprintf(w, "%s\t%s\t%v\t%s\n", one.Issuer, one.Name, one.Enabled, one.JWKSURI)
				}
				return w.Flush()
			},
		},
	}.run(ctx, argv, stdout, stderr)
}

func runBrand(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	set := func(state tenants.State) func(context.Context, *pgxpool.Pool, args) error {
		return func(ctx context.Context, pool *pgxpool.Pool, a args) error {
			return tenants.SetState(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand), state)
		}
	}
	return operation{
		noun: "brand", about: "list | pause | resume --brand ID",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"pause": set(tenants.Paused), "resume": set(tenants.Active),
			"list": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				d := tenants.NewDirectory(tenants.NewDB(pool), time.Now)
				ids, err := d.IDs(ctx)
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tNAME\tSTATE\tINTERFACE")
				for _, id := range ids {
					b, err := d.Brand(ctx, id)
					if err != nil {
						return err
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", b.ID, b.Name, b.State, b.InterfaceURL)
				}
				return w.Flush()
			},
		},
	}.run(ctx, argv, stdout, stderr)
}

func runUser(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	act := func(f func(*authority.Authority, context.Context, tenants.BrandID, string) error) func(context.Context, *pgxpool.Pool, args) error {
		return func(ctx context.Context, pool *pgxpool.Pool, a args) error {
			rules := authority.New(authority.Config{DB: tenants.NewDB(pool), Now: time.Now})
			return f(rules, ctx, tenants.BrandID(a.brand), a.subject)
		}
	}
	return operation{
		noun: "user", about: "suspend | resume --brand ID --subject ID",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"suspend": act((*authority.Authority).Suspend), "resume": act((*authority.Authority).Resume),
		},
	}.run(ctx, argv, stdout, stderr)
}
