package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
	"github.com/jackc/pgx/v5/pgxpool"
)

// settingArgs are what commands about a Brand's settings may be given.
type settingArgs struct {
	set         pairs
	file        string
	yes         bool
	asOperator  bool
	email, role string
	publicURL   string
	host        string
	scope       string
	detailType  string
	order       string
	confirm     string
	mode, url   string
	provider    string
	audience    string
	login       tenants.ConnectionDraft
	scopes      string
	secret      string
	maxAge      int
	test        bool // of agent
	contact     string
	save        string // of agent logo
	// Of a Brand that is created.
	organisation, owner string
	search              string // of agent list
}

// pairs collects --set NAME=VALUE.
type pairs []string

func (p *pairs) String() string { return strings.Join(*p, " ") }

// Set adds one.
func (p *pairs) Set(s string) error {
	if name, _, ok := strings.Cut(s, "="); !ok || name == "" {
		return errors.New("write NAME=VALUE")
	}
	*p = append(*p, s)
	return nil
}

// settingFlags are those of brand and what belongs to it.
func (o operation) settingFlags(s settings, a *args) {
	s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
	s.BoolVar(&a.dev, "allow-loopback", false, "plain http on this machine, for development")
	s.StringVar(&a.publicURL, "public-url", "", "`URL` of the service's own origin")
	switch o.noun {
	case "tenant":
		o.newBrandFlags(s, a)
		s.StringVar(&a.audience, "audience", "", "`text` that pa-jwts name in aud, of a Provider that name makes; it never changes")
		s.StringVar(&a.provider, "provider", "", "`id` of the Provider whose audience a created Brand shares; empty: the operator's own")
		s.BoolVar(&a.yes, "yes", false, "close: every grant ends for good, at once with --as-operator, else when an owner allows it")
		o.sealFlags(s, a)
	case "brand":
		o.newBrandFlags(s, a)
		s.Var(&a.set, "set", "`NAME=VALUE`: a setting, as show names it; may be repeated")
		s.StringVar(&a.file, "f", "", "`file`: the Brand as YAML, for apply; a picture, for logo; - is standard input, none takes the logo away. For export, where to write it")
		s.BoolVar(&a.yes, "yes", false, "make it so: apply shows only the difference without it, and close, at once with --as-operator, else when an owner allows it, ends every grant for good")
		s.StringVar(&a.mode, "mode", "", "hosted, fronted or split")
		s.StringVar(&a.url, "interface", "", "`URL` where the Brand's agent answers")
		s.StringVar(&a.provider, "provider", "", "`id` of the Provider; empty: the one that fits")
		s.StringVar(&a.audience, "audience", "", "`text` that pa-jwts name in aud, of a Provider that is made")
		s.StringVar(&a.confirm, "confirm", "", "`id` of the Brand again: every grant ends when mode or interface change")
		o.sealFlags(s, a)
	case "brand domain":
		s.StringVar(&a.host, "host", "", "`name` of the domain")
		o.sealFlags(s, a)
	case "scope":
		s.StringVar(&a.scope, "scope", "", "`id` of the scope")
		s.Var(&a.set, "set", "`NAME=VALUE`: description, effect, impact, undo, or such as texts.de.description; may be repeated")
		s.StringVar(&a.order, "order", "", "comma-separated `list` of all scopes on the card")
		o.sealFlags(s, a)
	case "detail":
		s.StringVar(&a.detailType, "type", "", "`name` of the type, as agents write it")
		s.Var(&a.set, "set", "`NAME=VALUE`: scope, words such as \"Up to {amount} {currency}[ at {shop}]\", schema as JSON, or such as texts.de; may be repeated")
	case "idp":
		s.StringVar(&a.login.Kind, "kind", "", "oidc, or assertion: people sign in on the Brand's own page, which signs who they are")
		s.StringVar(&a.login.JWKSURI, "jwks-uri", "", "`URL` of the keys that assertions are signed with")
		s.StringVar(&a.login.LoginURL, "login-url", "", "`URL` of the Brand's own login page")
		s.StringVar(&a.login.LoginOrigin, "login-origin", "", "`origin` that the page posts assertions from; empty: that of --login-url")
		s.StringVar(&a.login.Issuer, "issuer", "", "`URL` of the OpenID provider, as it writes it; for assertion, what stands in iss")
		s.StringVar(&a.login.ClientID, "client-id", "", "`id` that the provider knows us by")
		s.StringVar(&a.secret, "client-secret", "", "`reference`: env:NAME or file:PATH")
		s.StringVar(&a.login.Auth, "auth", "", "secret, or private_key_jwt with a key that is made here")
		s.StringVar(&a.login.SubjectClaim, "subject-claim", "", "`claim` that is the Brand's id of a person")
		s.StringVar(&a.scopes, "scopes", "", "comma-separated `list` of scopes")
		s.StringVar(&a.login.Prompt, "prompt", "", "login, consent or select_account")
		s.IntVar(&a.maxAge, "max-age", -1, "`seconds` after which a login is too old; -1: any age")
		s.StringVar(&a.id, "id", "", "`id` of the connection, as list shows it; of tried, the one that try printed")
		o.sealFlags(s, a)
	case "endpoint":
		s.StringVar(&a.url, "url", "", "https `URL` at which the Brand's agent is called")
		s.BoolVar(&a.atOnce, "at-once", false, "rotate without a day in which the former secret signs too: somebody else may have it; with --as-operator")
		o.sealFlags(s, a)
	case "change":
		s.StringVar(&a.id, "id", "", "`id` of the change, as list shows it")
		o.sealFlags(s, a)
	}
	asOperator(s, a)
}

func asOperator(s settings, a *args) {
	s.BoolVar(&a.asOperator, "as-operator", false, "do it at once in the operator's name, instead of asking an owner of the Brand")
}

func (o operation) sealFlags(s settings, a *args) {
	a.vault.register(s, "vault")
	s.StringVar(&a.masterFile, "master-key-file", "", "`file` with the service's master key, for what is stored sealed")
}

func (a args) site() (tenants.Site, error) {
	site := tenants.Site{AllowLoopback: a.dev}
	if a.publicURL == "" {
		return site, nil
	}
	if a.dev {
		site.PublicURL = strings.TrimSuffix(a.publicURL, "/")
		return site, nil
	}
	var err error
	site.PublicURL, err = parsePublicURL(a.publicURL)
	return site, err
}

// byOperator is how owners hear of what is done, or asked for, by a command.
var byOperator = tenants.Asker{Name: "operator", Channel: "cli"}

// operatorEdits are changes in the name of whoever runs the command line. Owners
// hear of them as they hear of one another's.
func operatorEdits(pool *pgxpool.Pool) tenants.Editor {
	return rules(pool).Editor(authority.ByOperator()).TellingFor(byOperator, tenants.OwnersHear()...)
}

// sealer opens whoever keeps the service's secrets.
func (a args) sealer() (tenants.Sealer, error) {
	if a.masterFile == "" {
		return nil, errors.New("what is kept for an owner, and every secret, is stored sealed: name the service's --master-key-file, and its --vault-addr if it has one")
	}
	master, err := signing.OpenMaster(a.masterFile)
	if err != nil {
		return nil, err
	}
	vault, err := a.vault.open(nil, slog.New(slog.DiscardHandler))
	if err != nil || vault == nil {
		return master, err
	}
	return vault.Sealer(master), nil // lives as long as the command
}

// asks keeps changes for an owner.
func (a args) asks(pool *pgxpool.Pool) (*tenants.Asks, error) {
	site, err := a.site()
	if err != nil {
		return nil, err
	}
	sealer, err := a.sealer()
	if err != nil {
		return nil, err
	}
	db := tenants.NewDB(pool)
	return &tenants.Asks{DB: db, Sealer: sealer, Now: time.Now, Appliers: appliers(db, sealer, site)}, nil
}

func waits(w io.Writer, p tenants.PendingChange, err error) error {
	if err == nil {
		fmt.Fprintf(w, "asked: change %s (%s) waits for an owner of the Brand until %s\n", p.ID, p.Kind, p.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return err
}

// askOwner asks for what waits for an owner of the Brand.
func (a args) askOwner(pool *pgxpool.Pool, ask func(*tenants.Asks, tenants.Editor) (tenants.PendingChange, error)) error {
	asks, err := a.asks(pool)
	if err != nil {
		return err
	}
	p, err := ask(asks, operatorEdits(pool))
	return waits(a.out, p, err)
}

// reference reads a secret from where it is kept; it never stands in a file or
// on a command line itself.
func reference(text string) (string, error) {
	kind, at, _ := strings.Cut(text, ":")
	switch {
	case text == "":
		return "", nil
	case kind == "env" && at != "":
		value, ok := os.LookupEnv(at)
		if !ok || value == "" {
			return "", fmt.Errorf("client_secret: the environment variable %s is not set", at)
		}
		return value, nil
	case kind == "file" && at != "":
		raw, err := os.ReadFile(at)
		if err != nil {
			return "", fmt.Errorf("client_secret: %w", err)
		}
		return strings.TrimSpace(string(raw)), nil
	}
	return "", errors.New("client_secret: write env:NAME or file:PATH; a secret does not belong in a file or on a command line")
}

// outside is the way to addresses that a Brand named.
func (a args) outside() *egress.Client {
	return egress.New(egress.Config{AllowLoopback: a.dev})
}

func (a args) prover() tenants.Prover {
	return tenants.Prover{HTTP: a.outside().HTTP(), DNS: net.DefaultResolver}
}

// printLines shows what was looked at; a bad line is a failure.
func printLines(out io.Writer, lines []tenants.Line) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	wrong := 0
	for _, l := range lines {
		if l.State == "bad" {
			wrong++
		}
		text := l.Say
		if l.Mend != "" {
			text += ": " + l.Mend
		}
		if l.Offer != "" {
			text += " (" + l.Offer + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.State, l.What, l.At, text)
	}
	if err := w.Flush(); err != nil || wrong == 0 {
		return err
	}
	return fmt.Errorf("%d of %d are wrong", wrong, len(lines))
}

func tenantsBrand(ctx context.Context, pool *pgxpool.Pool, a args) (*tenants.Brand, error) {
	return tenants.NewDirectory(tenants.NewDB(pool), time.Now).Brand(ctx, tenants.BrandID(a.brand))
}
