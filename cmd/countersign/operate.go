package main

import (
	"context"
	"fmt"
	"io"
	"slices"
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
	kid, reason, masterFile               string
	vault, former                         vaultFlags
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
		if slices.Contains([]string{"help", "-h", "-help", "--help"}, verb) {
			return 0
		}
		return 2
	}
	name := o.noun + " " + verb
	s := newSettings(name, o.about, stderr)
	a := args{out: stdout}
	database := s.String("database-url", "", "`URL` of PostgreSQL; countersign dev writes its own to the file of --ready-file (required)")
	o.flags(s, &a)
	if code := s.parse(rest); code >= 0 {
		return code
	}
	promise := promises[name]
	mistakes := []error{required("database-url", *database)}
	for _, need := range promise.needs {
		mistakes = append(mistakes, required(need, s.Lookup(need).Value.String()))
	}
	if code := s.refuse(mistakes...); code >= 0 {
		return code
	}
	pool, err := openPool(ctx, *database, 2)
	if err != nil {
		return failed(ctx, stderr, name, err)
	}
	defer pool.Close()
	if err = known(ctx, pool, a.brand); err == nil {
		err = act(ctx, pool, a)
	}
	if err == nil && promise.said != nil {
		fmt.Fprintln(stdout, promise.said(a))
	}
	return failed(ctx, stderr, name, advised(err))
}

// flags are those of all verbs of the noun.
func (o operation) flags(s settings, a *args) {
	switch o.noun {
	case "agent":
		s.StringVar(&a.issuer, "issuer", "", "issuer `URL` of the agent, byte for byte")
		s.StringVar(&a.jwksURI, "jwks-uri", "", "`URL` at which the agent publishes its keys")
		s.StringVar(&a.name, "name", "", "`name` that people will read")
		s.BoolVar(&a.dev, "allow-loopback", false, "plain http on this machine, for development")
	case "secrets":
		a.vault.register(s, "vault")
		a.former.register(s, "former-vault")
		s.StringVar(&a.masterFile, "master-key-file", "", "`file` with the service's master key")
	case "keys":
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
		s.StringVar(&a.kid, "kid", "", "`id` of the key, as list shows it")
		s.StringVar(&a.reason, "reason", "", "`text`: why it is revoked; stands in the public archive")
		a.vault.register(s, "vault")
		a.former.register(s, "former-vault")
		s.StringVar(&a.masterFile, "master-key-file", "", "`file` with the service's master key, where a new key is made")
	case "apikey":
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
		s.StringVar(&a.name, "name", "unnamed", "`text`: what the key is for")
		s.StringVar(&a.rights, "rights", "introspect", "comma-separated `list` of introspect, receipts, stepup, events, verify, admin")
		s.StringVar(&a.id, "id", "", "`id` of the key, as list shows it")
	case "user":
		s.StringVar(&a.subject, "subject", "", "`id` of the user at the Brand")
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
	case "brand":
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
	}
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
