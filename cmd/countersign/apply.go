package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"sigs.k8s.io/yaml"
)

const largestFile = 1 << 20

// applyBrand brings a Brand to what a file says: it shows the difference, and
// with --yes makes it so. Where people log in and tokens are good, and whom the Brand
// trusts, an owner is asked, unless --as-operator; who its members are, always.
func applyBrand(ctx context.Context, pool *pgxpool.Pool, a args) error {
	raw, err := a.read(largestFile)
	if err != nil {
		return err
	}
	var f tenants.File
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		return fmt.Errorf("%s: %w", a.file, err)
	}
	switch {
	case f.Brand == "":
		return fmt.Errorf("%s: say whose file it is: brand: ID", a.file)
	case a.brand != "" && a.brand != string(f.Brand):
		return fmt.Errorf("%s is the file of %s, not of %s", a.file, f.Brand, a.brand)
	}
	a.brand = string(f.Brand)
	if err := known(ctx, pool, a.brand); err != nil {
		return err
	}
	p, err := a.plan(ctx, pool, f)
	switch {
	case err != nil:
		return err
	case p.empty():
		fmt.Fprintf(a.out, "%s is as the file says\n", a.brand)
		return nil
	case !a.yes:
		fmt.Fprintln(a.out, "nothing has changed; --yes makes it so")
		return nil
	}
	return a.follow(ctx, pool, p)
}

// plan is what would become of a Brand by its file.
type plan struct {
	tenants.File // without what stands beside it
	site         tenants.Site
	facts        []tenants.Fact
	rule         string           // more agents may ask
	keys         *tenants.KeyRule // other keys sign, or at other times
	restored     []string         // scopes
	moves        bool             // the interface
	logs         bool             // people in, through another connection
	turns        bool             // where the Brand's agent is called
	shows        bool             // another logo
	picture      []byte
	wishes       []tenants.Wish
}

func (p plan) empty() bool {
	return len(p.facts) == 0 && p.rule == "" && p.keys == nil && len(p.restored) == 0 &&
		!p.moves && !p.logs && !p.turns && !p.shows && len(p.wishes) == 0
}

// plan shows what the file changes. Everything that will be refused is refused here,
// all together, since nothing of a file is done by half.
func (a args) plan(ctx context.Context, pool *pgxpool.Pool, f tenants.File) (plan, error) {
	site, err := a.site()
	if err != nil {
		return plan{}, err
	}
	p := plan{File: f, site: site}
	if err := a.takeAsked(ctx, pool, &p); err != nil {
		return plan{}, err
	}
	var wrong []error
	for _, look := range []func(context.Context, *pgxpool.Pool, *plan) error{
		a.changesFacts, a.movesInterface, a.changesLogin, a.callsElsewhere, a.showsElse, a.wishes,
	} {
		wrong = append(wrong, look(ctx, pool, &p))
	}
	if a.yes && a.seals(p) {
		_, err := a.asks(pool)
		wrong = append(wrong, err)
	}
	return p, errors.Join(wrong...)
}

// seals reports whether something is kept for an owner, or a secret is.
func (a args) seals(p plan) bool {
	return asksOwner(p.wishes) || p.logs || p.turns ||
		!a.asOperator && (p.rule != "" || p.keys != nil || len(p.restored) > 0 || p.moves)
}

// takeAsked takes out of the file what is only asked for: that more agents may ask,
// another rule of signing keys, and scopes that come back. The operator restores scopes
// with the rest of the file.
func (a args) takeAsked(ctx context.Context, pool *pgxpool.Pool, p *plan) (err error) {
	db := tenants.NewDB(pool)
	if p.keys, err = p.TakeKeyRule(ctx, db); err != nil { // first: settings that cannot be read are left alone
		return err
	}
	if p.rule, err = p.TakeWidening(ctx, db); err == nil && !a.asOperator {
		p.restored, err = p.TakeRestored(ctx, db)
	}
	return err
}

// changesFacts shows what changes at once, and what of settings and scopes is asked for.
func (a args) changesFacts(ctx context.Context, pool *pgxpool.Pool, p *plan) (err error) {
	if p.facts, err = tenants.PlanFile(ctx, operatorEdits(pool), p.site, p.File); err != nil {
		return err
	}
	for _, fact := range p.facts {
		printFact(a.out, fact)
	}
	db := tenants.NewDB(pool)
	if p.keys != nil {
		now, err := tenants.SettingsOf(ctx, db, p.Brand)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, "signing keys:")
		printDiff(a.out, tenants.Diff(now.KeyRule(), *p.keys))
	}
	for _, id := range p.restored {
		fmt.Fprintln(a.out, "scope.restored", id)
	}
	if p.rule == "" {
		return nil
	}
	fmt.Fprintf(a.out, "agents: %s (more agents may ask)\n", p.rule)
	return tenants.CheckRule(ctx, db, p.Brand, p.rule)
}

// follow does what the plan says: first what waits for nobody.
func (a args) follow(ctx context.Context, pool *pgxpool.Pool, p plan) error {
	if len(p.facts) > 0 {
		if err := tenants.ApplyFile(ctx, operatorEdits(pool), p.site, p.File); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "done: %d changes\n", len(p.facts))
	}
	if p.shows {
		if err := showIt(ctx, pool, p.Brand, p.picture); err != nil {
			return err
		}
	}
	if p.rule != "" {
		if err := a.widen(ctx, pool, p.site, p.rule); err != nil {
			return err
		}
	}
	if p.keys != nil {
		if err := a.ruleKeys(ctx, pool, p.site, *p.keys); err != nil {
			return err
		}
	}
	for _, id := range p.restored {
		a.scope = id
		if err := restoreScope(ctx, pool, a); err != nil {
			return err
		}
	}
	if p.moves {
		if err := a.move(ctx, pool, p.Interface.Interface()); err != nil {
			return err
		}
	}
	if p.logs {
		if err := a.applyLogin(ctx, pool, *p.Login); err != nil {
			return err
		}
	}
	if p.turns {
		if err := a.callElsewhere(ctx, pool, *p.AgentEndpoint); err != nil {
			return err
		}
	}
	return a.grant(ctx, pool, p.wishes)
}

// movesInterface says whether the file has the Brand elsewhere, and shows what of it
// the file names: the rest follows.
func (a args) movesInterface(ctx context.Context, pool *pgxpool.Pool, p *plan) error {
	if p.Interface == nil {
		return nil
	}
	now, err := tenants.InterfaceOf(ctx, tenants.NewDB(pool), p.Brand)
	if err != nil {
		return err
	}
	want := *p.Interface
	before := tenants.FileInterface{Mode: now.Mode, URL: now.URL, Provider: now.Provider, Audience: now.Audience}
	// What is left out stays, or follows.
	for _, m := range []struct{ want, now *string }{{&want.URL, &before.URL}, {&want.Provider, &before.Provider}, {&want.Audience, &before.Audience}} {
		if *m.want == "" {
			*m.now = ""
		}
	}
	diff := tenants.Diff(before, want)
	if len(diff) == 0 {
		return nil
	}
	if err := required("public-url", p.site.PublicURL); err != nil {
		return err
	}
	p.moves = true
	fmt.Fprintln(a.out, "interface (every grant ends):")
	printDiff(a.out, diff)
	return a.checkMove(ctx, pool, p)
}

// checkMove tells what the move would be refused for.
func (a args) checkMove(ctx context.Context, pool *pgxpool.Pool, p *plan) error {
	edit, want := operatorEdits(pool), p.Interface.Interface()
	var err error
	if a.asOperator {
		_, err = tenants.CheckInterface(ctx, edit, p.site, p.Brand, want, true)
	} else {
		_, err = tenants.CheckAsked(ctx, edit, p.site, p.Brand, want)
	}
	if err == nil && a.yes && a.asOperator && a.confirm != a.brand {
		err = errors.New("confirm: is not the Brand's id: every grant ends; repeat the Brand's id to say that you know (--confirm)")
	}
	return err
}

// changesLogin resolves the file's secret and says whether its login is another
// than the live one.
func (a args) changesLogin(ctx context.Context, pool *pgxpool.Pool, p *plan) error {
	if p.Login == nil {
		return nil
	}
	d := *p.Login
	var err error
	if d.Secret, err = reference(d.Secret); err != nil {
		return err
	}
	p.Login = &d
	db := tenants.NewDB(pool)
	all, err := tenants.Connections(ctx, db, p.Brand)
	if err != nil {
		return err
	}
	present := ""
	for _, c := range all {
		if !c.Live {
			continue
		}
		if d.Secret != "" {
			sealer, err := a.sealer()
			if err != nil {
				return err
			}
			l, err := tenants.Login(ctx, db, sealer, p.Brand)
			if err != nil {
				return err
			}
			present = l.ClientSecret
		}
		if d.Is(c, present) {
			return nil
		}
	}
	p.logs = true
	if d.Kind == tenants.KindAssertion {
		fmt.Fprintf(a.out, "login: on the Brand's own page %s, believed by the keys at %s\n", d.LoginURL, d.JWKSURI)
	} else {
		fmt.Fprintf(a.out, "login: through %s as %s, by its claim %q\n", d.Issuer, d.ClientID, d.SubjectClaim)
	}
	return tenants.CheckCandidate(ctx, db, operatorEdits(pool), p.site, p.Brand, d)
}

// applyLogin saves the candidate and has it made live.
func (a args) applyLogin(ctx context.Context, pool *pgxpool.Pool, d tenants.ConnectionDraft) error {
	site, err := a.site()
	if err != nil {
		return err
	}
	asks, err := a.asks(pool)
	if err != nil {
		return err
	}
	edit, brand := operatorEdits(pool), tenants.BrandID(a.brand)
	id, err := candidateLike(ctx, asks, brand, d)
	if err != nil {
		return err
	}
	if id == uuid.Nil {
		c, err := tenants.SaveCandidate(ctx, asks.DB, edit, asks.Sealer, site, brand, d)
		if err != nil {
			return err
		}
		id = c.ID
	}
	if a.asOperator {
		return tenants.MakeLive(ctx, edit, site, brand, id)
	}
	p, err := asks.AskLive(ctx, edit, brand, id, "operator", "cli")
	return waits(a.out, p, err)
}

// candidateLike finds the candidate that is as the file says already, its secret
// too; the zero id is none.
func candidateLike(ctx context.Context, asks *tenants.Asks, brand tenants.BrandID, d tenants.ConnectionDraft) (uuid.UUID, error) {
	all, err := tenants.Connections(ctx, asks.DB, brand)
	if err != nil {
		return uuid.Nil, err
	}
	for _, c := range all {
		if c.Live || !d.Is(c, d.Secret) {
			continue
		}
		l, err := tenants.Candidate(ctx, asks.DB, asks.Sealer, brand, c.ID)
		if err != nil {
			return uuid.Nil, err
		}
		if d.Is(c, l.ClientSecret) {
			return c.ID, nil
		}
	}
	return uuid.Nil, nil
}

// printFact shows what would stand in the audit trail.
func printFact(w io.Writer, f tenants.Fact) {
	object := ""
	for _, name := range []string{"scope", "type", "agent"} {
		if v, ok := f.Detail[name]; ok {
			object = fmt.Sprint(" ", v)
		}
	}
	fmt.Fprintf(w, "%s%s\n", f.Event, object)
	if diff, ok := f.Detail["changed"].(map[string]tenants.Difference); ok {
		printDiff(w, diff)
	}
	if before, ok := f.Detail["before"].([]string); ok {
		fmt.Fprintf(w, "  - %s\n  + %s\n", strings.Join(before, " "), strings.Join(f.Detail["after"].([]string), " "))
	}
}

func printDiff(w io.Writer, diff map[string]tenants.Difference) {
	for _, name := range slices.Sorted(maps.Keys(diff)) {
		fmt.Fprintf(w, "  %s: %s → %s\n", name, asJSON(diff[name].Before), asJSON(diff[name].After))
	}
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return errors.Unwrap(err).Error()
	}
	return string(raw)
}
