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
	site, err := a.site()
	if err != nil {
		return err
	}
	edit := operatorEdits(pool)
	rule, restored, err := a.takeAsked(ctx, pool, &f)
	if err != nil {
		return err
	}
	facts, err := tenants.PlanFile(ctx, edit, site, f)
	if err != nil {
		return err
	}
	for _, fact := range facts {
		printFact(a.out, fact)
	}
	if rule != "" {
		fmt.Fprintf(a.out, "agents: %s (more agents may ask)\n", rule)
	}
	for _, id := range restored {
		fmt.Fprintln(a.out, "scope.restored", id)
	}
	moves, err := a.movesInterface(ctx, pool, f)
	if err != nil {
		return err
	}
	logs, err := a.changesLogin(ctx, pool, &f)
	if err != nil {
		return err
	}
	turns, err := a.callsElsewhere(ctx, pool, site, f)
	if err != nil {
		return err
	}
	shows, picture, err := a.showsElse(ctx, pool, f)
	if err != nil {
		return err
	}
	wishes, err := a.wishes(ctx, pool, site, f)
	if err != nil {
		return err
	}
	switch {
	case len(facts) == 0 && rule == "" && len(restored) == 0 && !moves && !logs && !turns && !shows && len(wishes) == 0:
		fmt.Fprintf(a.out, "%s is as the file says\n", a.brand)
		return nil
	case !a.yes:
		fmt.Fprintln(a.out, "nothing has changed; --yes makes it so")
		return nil
	}
	if asksOwner(wishes) || !a.asOperator && (rule != "" || len(restored) > 0 || moves || logs || turns) {
		if _, err := a.asks(pool); err != nil { // nothing is done by half
			return err
		}
	}
	if len(facts) > 0 {
		if err := tenants.ApplyFile(ctx, edit, site, f); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "done: %d changes\n", len(facts))
	}
	if shows {
		if err := showIt(ctx, pool, f.Brand, picture); err != nil {
			return err
		}
	}
	if rule != "" {
		if err := a.widen(ctx, pool, site, rule); err != nil {
			return err
		}
	}
	for _, id := range restored {
		a.scope = id
		if err := restoreScope(ctx, pool, a); err != nil {
			return err
		}
	}
	if moves {
		if err := a.move(ctx, pool, f.Interface.Interface()); err != nil {
			return err
		}
	}
	if logs {
		if err := a.applyLogin(ctx, pool, *f.Login); err != nil {
			return err
		}
	}
	if turns {
		if err := a.callElsewhere(ctx, pool, *f.AgentEndpoint); err != nil {
			return err
		}
	}
	return a.grant(ctx, pool, wishes)
}

// takeAsked takes out of the file what is only asked for: that more agents may ask,
// and scopes that come back. The operator restores scopes with the rest of the file.
func (a args) takeAsked(ctx context.Context, pool *pgxpool.Pool, f *tenants.File) (rule string, restored []string, err error) {
	db := tenants.NewDB(pool)
	rule, err = f.TakeWidening(ctx, db)
	if err == nil && !a.asOperator {
		restored, err = f.TakeRestored(ctx, db)
	}
	return rule, restored, err
}

// movesInterface says whether the file has the Brand elsewhere.
func (a args) movesInterface(ctx context.Context, pool *pgxpool.Pool, f tenants.File) (bool, error) {
	if f.Interface == nil {
		return false, nil
	}
	now, err := tenants.InterfaceOf(ctx, tenants.NewDB(pool), f.Brand)
	if err != nil {
		return false, err
	}
	want := *f.Interface
	before := tenants.FileInterface{Mode: now.Mode, URL: now.URL, Provider: now.Provider, Audience: now.Audience}
	// What is left out stays, or follows.
	for _, m := range []struct{ want, now *string }{{&want.URL, &before.URL}, {&want.Provider, &before.Provider}, {&want.Audience, &before.Audience}} {
		if *m.want == "" && want.Mode == before.Mode {
			*m.want = *m.now
		}
	}
	diff := tenants.Diff(before, want)
	if len(diff) == 0 {
		return false, nil
	}
	fmt.Fprintln(a.out, "interface (every grant ends):")
	printDiff(a.out, diff)
	return true, nil
}

// changesLogin resolves the file's secret and says whether its login is another
// than the live one.
func (a args) changesLogin(ctx context.Context, pool *pgxpool.Pool, f *tenants.File) (bool, error) {
	if f.Login == nil {
		return false, nil
	}
	secret, err := reference(f.Login.Secret)
	if err != nil {
		return false, err
	}
	f.Login.Secret = secret
	db := tenants.NewDB(pool)
	all, err := tenants.Connections(ctx, db, f.Brand)
	if err != nil {
		return false, err
	}
	present := ""
	for _, c := range all {
		if !c.Live {
			continue
		}
		if secret != "" {
			sealer, err := a.sealer()
			if err != nil {
				return false, err
			}
			l, err := tenants.Login(ctx, db, sealer, f.Brand)
			if err != nil {
				return false, err
			}
			present = l.ClientSecret
		}
		if f.Login.Is(c, present) {
			return false, nil
		}
	}
	if f.Login.Kind == tenants.KindAssertion {
		fmt.Fprintf(a.out, "login: on the Brand's own page %s, believed by the keys at %s\n", f.Login.LoginURL, f.Login.JWKSURI)
		return true, nil
	}
	fmt.Fprintf(a.out, "login: through %s as %s, by its claim %q\n", f.Login.Issuer, f.Login.ClientID, f.Login.SubjectClaim)
	return true, nil
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
