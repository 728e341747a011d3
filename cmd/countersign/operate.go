package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/events"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
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
	id, rights, seen                      string
	kid, reason, masterFile               string
	vault, former                         vaultFlags
	dev                                   bool
	grants                                grantArgs
	audit                                 auditArgs
	events, state, format                 string
	atOnce                                bool
	days                                  int
	settingArgs
	out io.Writer
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
	alone := promise.alone != "" && s.Lookup(promise.alone).Value.String() != ""
	var mistakes []error
	if !alone {
		mistakes = append(mistakes, required("database-url", *database))
		for _, need := range promise.needs {
			mistakes = append(mistakes, required(need, s.Lookup(need).Value.String()))
		}
	}
	if promise.also != nil {
		mistakes = append(mistakes, promise.also(a))
	}
	if code := s.refuse(mistakes...); code >= 0 {
		return code
	}
	if alone {
		return failed(ctx, stderr, name, act(ctx, nil, a))
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
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand: whose word it is, of allow, deny and unlist; of list, at which")
		s.StringVar(&a.search, "search", "", "list only agents with this `text` in issuer or name, at the Brand")
		s.StringVar(&a.jwksURI, "jwks-uri", "", "`URL` at which the agent publishes its keys")
		s.StringVar(&a.name, "name", "", "`name` that people will read")
		s.BoolVar(&a.dev, "allow-loopback", false, "plain http on this machine, for development")
		s.BoolVar(&a.test, "test", false, "for trying things out: also Brands that have proved no domain work with it")
		s.StringVar(&a.contact, "contact", "", "`text`: whom to ask about it")
		s.StringVar(&a.file, "f", "", "`file`: a picture, for logo: PNG, JPEG, WebP or GIF; - is standard input, none takes the logo away")
		s.StringVar(&a.seen, "seen", "", "`digest` of the application that you looked at, as pending shows it")
		s.StringVar(&a.save, "save", "", "`file` to write the logo to as it is shown, that of an application too, instead of setting it")
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
		s.StringVar(&a.masterFile, "master-key-file", "", "`file` with the service's master key, where a new key is made, or an owner is asked")
		asOperator(s, a)
	case "member":
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
		s.StringVar(&a.email, "email", "", "`address` that is invited")
		s.StringVar(&a.role, "role", "", "owner, security, support or viewer")
		s.StringVar(&a.id, "id", "", "`id` of the member, invitation or recovery, as list shows it")
		o.sealFlags(s, a)
	case "apikey":
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
		s.StringVar(&a.name, "name", "unnamed", "`text`: what the key is for")
		s.StringVar(&a.rights, "rights", "introspect", "comma-separated `list` of introspect, receipts, stepup, events, verify, admin")
		s.StringVar(&a.id, "id", "", "`id` of the key, as list shows it")
		o.sealFlags(s, a)
		asOperator(s, a)
	case "webhook":
		flagsWebhook(s, a)
		asOperator(s, a)
	case "user":
		s.StringVar(&a.subject, "subject", "", "`id` of the user at the Brand")
		s.BoolVar(&a.yes, "yes", false, "erase for good")
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
	case "grants":
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand; to end all of an agent, none means every Brand")
		a.grants.register(s)
	case "audit":
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
		a.audit.register(s)
	case "usage":
		s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
		s.IntVar(&a.days, "days", 30, "how many `days` of UTC, today included")
	case "brand", "tenant", "brand domain", "scope", "detail", "idp", "change", "endpoint":
		o.settingFlags(s, a)
	}
}

// rules are those of the service, for whoever works on its database by hand. What
// they end, the Brand's webhooks are told of by whichever instance is running.
func rules(pool *pgxpool.Pool) *authority.Authority {
	db := tenants.NewDB(pool)
	return authority.New(authority.Config{
		DB: db, Now: time.Now,
		Announce: func(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, told []authority.Event) error {
			outbox, err := events.NewOutbox(db, time.Now)
			if err != nil {
				return err
			}
			return outbox.Announce(ctx, tx, brand, told)
		},
	})
}

func runAgent(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	registry := agentRegistry
	enable := func(on bool) func(context.Context, *pgxpool.Pool, args) error {
		return func(ctx context.Context, pool *pgxpool.Pool, a args) error {
			return registry(pool, a).SetEnabled(ctx, a.issuer, on)
		}
	}
	return operation{
		noun: "agent", about: "list | show | add | logo | enable | disable | check | pending | approve | reject | allow | deny | unlist --issuer URL [--brand ID --search TEXT] [--seen DIGEST --jwks-uri URL --name NAME --contact TEXT --test]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"enable": enable(true), "disable": enable(false), "check": checkAgent, "pending": listApplications, "show": showAgent, "logo": logoAgent,
			"approve": approveAgent, "allow": judgeAgent(true), "deny": judgeAgent(false), "unlist": unlistAgent,
			"reject": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				return registry(pool, a).Reject(ctx, a.issuer)
			},
			"add": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				return registry(pool, a).Register(ctx, agent.Agent{Issuer: a.issuer, JWKSURI: a.jwksURI, Name: a.name, Enabled: true, Test: a.test, Contact: a.contact})
			},
			"list": listAgents,
		},
	}.run(ctx, argv, stdout, stderr)
}

func runBrand(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	if len(argv) > 0 && argv[0] == "domain" {
		return runBrandDomain(ctx, argv[1:], nil, stdout, stderr)
	}
	brand := operation{
		noun: "brand", about: "list | pause | resume | close | create | export | show | set | apply | check | logo | move --brand ID …; and brand domain",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"pause": pauseBrand, "resume": resumeBrand, "close": closeBrand, "create": createBrand,
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
					fmt.Fprintf(w, "%s\t%q\t%s\t%s\n", b.ID, b.Name, b.State, b.InterfaceURL)
				}
				return w.Flush()
			},
		},
	}
	maps.Copy(brand.verbs, brandVerbs())
	return brand.run(ctx, argv, stdout, stderr)
}

func runUser(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	act := func(f func(*authority.Authority, context.Context, tenants.BrandID, authority.By, string) error) func(context.Context, *pgxpool.Pool, args) error {
		return func(ctx context.Context, pool *pgxpool.Pool, a args) error {
			return f(rules(pool), ctx, tenants.BrandID(a.brand), authority.ByOperator(), a.subject)
		}
	}
	return operation{
		noun: "user", about: "suspend | resume | erase --brand ID --subject ID",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"suspend": act((*authority.Authority).Suspend), "resume": act((*authority.Authority).Resume), "erase": eraseUser,
		},
	}.run(ctx, argv, stdout, stderr)
}
