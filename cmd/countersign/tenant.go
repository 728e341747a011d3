package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// runTenant is about the organisations: whose Brands are whose, the audience that
// agents name at each, and how a Brand of theirs begins, stops and ends.
func runTenant(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "tenant", about: "list | show | name | create | pause | resume | close --database-url URL [--brand ID] [--id ID --name NAME --audience TEXT --organisation NAME --owner ADDRESS] [--as-operator]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": listTenants, "show": showTenant, "name": nameProvider, "create": createBrand,
			"pause": pauseBrand, "resume": resumeBrand, "close": closeBrand,
		},
	}.run(ctx, argv, stdout, stderr)
}

func listTenants(ctx context.Context, pool *pgxpool.Pool, a args) error {
	all, err := tenants.Providers(ctx, tenants.NewDB(pool))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROVIDER\tNAME\tAUDIENCE\tBRAND\tMODE\tSTATE")
	for _, h := range all {
		if h.Brand == nil {
			fmt.Fprintf(w, "%s\t%q\t%s\t-\t-\t-\n", h.Provider, h.Name, h.Audience)
			continue
		}
		fmt.Fprintf(w, "%s\t%q\t%s\t%s\t%s\t%s\n", h.Provider, h.Name, h.Audience, *h.Brand, *h.Mode, *h.State)
	}
	return w.Flush()
}

// showTenant says how one Brand stands and who is behind it.
func showTenant(ctx context.Context, pool *pgxpool.Pool, a args) error {
	b, err := tenantsBrand(ctx, pool, a)
	if err != nil {
		return err
	}
	db := tenants.NewDB(pool)
	members, err := tenants.Members(ctx, db, b.ID)
	if err != nil {
		return err
	}
	closing, err := tenants.ClosedSince(ctx, db, b.ID, time.Now())
	if err != nil {
		return err
	}
	owners := 0
	for _, m := range members {
		if m.Role == tenants.Owner && !m.Held {
			owners++
		}
	}
	state := string(b.State)
	if closing != nil {
		state += " since " + closing.At.UTC().Format(time.DateOnly) + ", empty on " + closing.EmptyAt().UTC().Format(time.DateOnly)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"brand", string(b.ID)},
		{"name", b.Name},
		{"organisation", b.Organisation},
		{"state", state},
		{"domain", b.Domain},
		{"proven", fmt.Sprint(b.Proven)},
		{"provider", b.Provider},
		{"audience", b.Audience},
		{"mode", string(b.Mode)},
		{"interface", b.InterfaceURL},
		{"members", fmt.Sprintf("%d, %d owners", len(members), owners)},
	} {
		fmt.Fprintf(w, "%s\t%s\n", line[0], line[1])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return showProviders(ctx, pool, a)
}

// showProviders lists the Provider of a Brand, and the one that it made.
func showProviders(ctx context.Context, pool *pgxpool.Pool, a args) error {
	all, err := tenants.ProvidersOf(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nPROVIDER\tNAME\tAUDIENCE\tMADE IT\tIS THERE\tBRANDS")
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%q\t%s\t%v\t%v\t%v\n", p.ID, p.Name, p.Audience, p.Own, p.Present, p.Brands)
	}
	return w.Flush()
}

// nameProvider makes the Provider of the Brand's organisation, or renames it.
func nameProvider(ctx context.Context, pool *pgxpool.Pool, a args) error {
	site, err := a.site()
	if err != nil {
		return err
	}
	if err := tenants.OwnAudience(tenants.BrandID(a.brand), a.audience); err != nil {
		return err
	}
	return tenants.NameProvider(ctx, operatorEdits(pool), site, tenants.BrandID(a.brand), a.name, a.audience)
}

// newBrandFlags are those of create.
func (o operation) newBrandFlags(s settings, a *args) {
	s.StringVar(&a.id, "id", "", "`id` of a Brand that is created")
	s.StringVar(&a.name, "name", "", "`name` of a Brand that is created, as customers read it; of name, what the organisation is called")
	s.StringVar(&a.organisation, "organisation", "", "`name` of who is behind a Brand that is created")
	s.StringVar(&a.owner, "owner", "", "`address` of somebody with an account and passkeys, whose a Brand will be that --as-operator creates")
}

// createBrand asks an owner of a Brand for another one, or as the operator makes
// one for somebody who has an account. Its key is made by the service.
func createBrand(ctx context.Context, pool *pgxpool.Pool, a args) error {
	draft := tenants.BrandDraft{ID: tenants.BrandID(a.id), Name: a.name, Organisation: a.organisation}
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskBrand(ctx, edit, tenants.BrandID(a.brand), draft, "operator", "cli")
		})
	}
	if p := draft.Check(); len(p) > 0 {
		return p
	}
	site, err := a.site()
	if err != nil {
		return err
	}
	address, err := tenants.ParseEmail(a.owner)
	if err != nil {
		return fmt.Errorf("--owner: %w", err)
	}
	db := tenants.NewDB(pool)
	owner, err := tenants.PersonByEmail(ctx, db, address)
	if err != nil || !owner.Secured() {
		return errors.Join(errNoAccount, err)
	}
	rules, now := rules(pool), time.Now()
	err = tenants.Create(ctx, db, tenants.NewBrand{
		ID: draft.ID, Name: draft.Name, Organisation: draft.Organisation, Provider: cmp.Or(a.provider, hostedProvider), PublicURL: site.PublicURL,
	}, owner.ID, func(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, _ uuid.UUID, event string, detail map[string]any) error {
		if err := rules.Note(ctx, tx, brand, authority.ByOperator(), event, detail); err != nil {
			return err
		}
		return byOperator.TellOwners(ctx, tx, brand, event, now) // who did not ask for it learns of it
	}, now)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is made and is %s's; the service makes its signing key, and opens it to agents then\n", draft.ID, a.owner)
	return nil
}

var errNoAccount = errors.New("nobody has an account with this address and two ways into it: they sign up at /console first")

// createNeeds are what create cannot do without.
func createNeeds(a args) error {
	if a.asOperator {
		return errors.Join(required("owner", a.owner), required("public-url", a.publicURL))
	}
	return required("brand", a.brand)
}

// pauseBrand waits for nobody, and every owner hears of it.
func pauseBrand(ctx context.Context, pool *pgxpool.Pool, a args) error {
	return tenants.Stop(ctx, operatorEdits(pool), tenants.BrandID(a.brand))
}

// closeBrand asks an owner, or as the operator closes. That is final: what it was
// broken off at, it goes on with when it is typed again.
func closeBrand(ctx context.Context, pool *pgxpool.Pool, a args) error {
	brand := tenants.BrandID(a.brand)
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskClose(ctx, edit, brand, a.brand, "operator", "cli")
		})
	}
	n, err := rules(pool).Close(ctx, brand, authority.ByOperator())
	if err != nil {
		return fmt.Errorf("%w; %d grants have ended: type it again for the rest", err, n)
	}
	fmt.Fprintf(a.out, "%s is closed for good, and %d grants have ended. Its public keys stay, for what was signed with them.\n", a.brand, n)
	return nil
}

// closing is asked for twice.
func closing(a args) error {
	if a.yes {
		return nil
	}
	return errors.New("--yes is required: a Brand that is closed, at once with --as-operator or else when an owner allows it, ends every grant and cannot be undone; brand pause can")
}

func runUsage(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "usage", about: "show --brand ID [--days N]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{"show": showUsage},
	}.run(ctx, argv, stdout, stderr)
}

// showUsage counts what happened, day by day.
func showUsage(ctx context.Context, pool *pgxpool.Pool, a args) error {
	all, err := rules(pool).Usage(ctx, tenants.BrandID(a.brand), a.days)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DATE\tASKED\tSTEP-UPS\tAPPROVED\tDENIED\tREVOKED\tREUSE DETECTED")
	for _, d := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", d.Date.Format(time.DateOnly), d.Asked, d.StepUps, d.Approved, d.Denied, d.Revoked, d.Reused)
	}
	return w.Flush()
}
