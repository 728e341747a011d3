package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"countersign.dev/cmd/countersign/pa/discovery"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
	"sigs.k8s.io/yaml"
)

// brandVerbs are those about what a Brand sets.
func brandVerbs() map[string]func(context.Context, *pgxpool.Pool, args) error {
	return map[string]func(context.Context, *pgxpool.Pool, args) error{
		"show": showBrand, "set": setBrand, "apply": applyBrand, "check": checkBrand, "logo": setLogo, "move": moveBrand, "export": exportBrand,
	}
}

// showBrand writes the Brand as the file that apply reads.
func showBrand(ctx context.Context, pool *pgxpool.Pool, a args) error {
	f, err := tenants.FileOf(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand), time.Now())
	if err != nil {
		return err
	}
	raw, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	text := string(raw)
	if f.Login != nil && f.Login.Auth == tenants.AuthSecret {
		text = strings.Replace(text, "  client_secret: \"\"\n", "  client_secret: \"\" # stays as it is; a new one: env:NAME or file:PATH\n", 1)
	}
	_, err = io.WriteString(a.out, text)
	return err
}

// setBrand changes single settings.
func setBrand(ctx context.Context, pool *pgxpool.Pool, a args) error {
	site, err := a.site()
	if err != nil {
		return err
	}
	before, err := tenants.SettingsOf(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	wanted := before
	if err := assign(&wanted, a.set); err != nil {
		return err
	}
	sent, err := json.Marshal(map[string]string{"agents": wanted.Agents})
	if err != nil {
		return err
	}
	if rule, _ := tenants.Widens(before, sent); rule != "" {
		if len(a.set) > 1 {
			return tenants.Widening()
		}
		return a.isSet(a.widen(ctx, pool, site, rule))
	}
	if sent, err = json.Marshal(wanted); err != nil {
		return err
	}
	if rule, alone := tenants.KeyRuleIn(before, sent); alone { // with more, ChangeSettings refuses it
		return a.isSet(a.ruleKeys(ctx, pool, site, *rule))
	}
	after, err := tenants.ChangeSettings(ctx, operatorEdits(pool), site, tenants.BrandID(a.brand), func(s *tenants.Settings) error {
		return assign(s, a.set)
	})
	if err != nil {
		return err
	}
	printDiff(a.out, tenants.Diff(before, after))
	fmt.Fprintln(a.out, a.brand+" is set")
	return nil
}

// isSet says so of what is done at once; of what waits, what it waits for has been said.
func (a args) isSet(err error) error {
	if err == nil && a.asOperator {
		fmt.Fprintln(a.out, a.brand+" is set")
	}
	return err
}

// assign sets fields by the names that show gives them. A value is YAML, so that
// numbers and lists can be written; what has to be text is taken as it stands.
func assign(into any, set pairs) error {
	raw, err := json.Marshal(into)
	if err != nil {
		return err
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for _, pair := range set {
		name, text, _ := strings.Cut(pair, "=")
		at, member := members, name
		for {
			first, rest, deeper := strings.Cut(member, ".")
			if !deeper {
				break
			}
			below, ok := at[first].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[first] = below
			}
			at, member = below, rest
		}
		var value any
		if _, isText := at[member].(string); isText || at[member] == nil && strings.Contains(name, ".") {
			value = text
		} else if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return fmt.Errorf("--set %s: the value is not one", name)
		}
		at[member] = value
	}
	if raw, err = json.Marshal(members); err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	return nil
}

// setLogo takes a picture from a file.
func setLogo(ctx context.Context, pool *pgxpool.Pool, a args) error {
	brand := tenants.BrandID(a.brand)
	if a.file == "none" {
		return tenants.RemoveLogo(ctx, operatorEdits(pool), brand)
	}
	raw, err := a.read(tenants.LargestLogo + 1)
	if err != nil {
		return err
	}
	return tenants.SetLogo(ctx, operatorEdits(pool), brand, raw)
}

// read reads the file of -f, no more than most bytes of it.
func (a args) read(most int64) ([]byte, error) {
	from := io.Reader(os.Stdin)
	if a.file != "-" {
		f, err := os.Open(a.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	return io.ReadAll(io.LimitReader(from, most))
}

// checkBrand reads the Brand through its public URLs as a strict agent does.
func checkBrand(ctx context.Context, pool *pgxpool.Pool, a args) error {
	b, err := tenantsBrand(ctx, pool, a)
	if err != nil {
		return err
	}
	keys, err := keyring(pool, a)
	if err != nil {
		return err
	}
	list, err := keys.List(ctx, b.ID)
	if err != nil {
		return err
	}
	want := discovery.Expected{Interface: b.InterfaceURL, Issuer: b.Issuer, Split: b.Mode == tenants.Split}
	for _, k := range list {
		if k.State == "current" || k.State == "next" {
			want.KIDs = append(want.KIDs, k.KID)
		}
	}
	return printLines(a.out, examined(ctx, a.outside().HTTP(), want))
}

// moveBrand changes mode and interface: now, as the operator, or by asking.
func moveBrand(ctx context.Context, pool *pgxpool.Pool, a args) error {
	want := tenants.Interface{Mode: tenants.Mode(a.mode), URL: a.url, Provider: a.provider, Audience: a.audience}
	return a.move(ctx, pool, want)
}

func (a args) move(ctx context.Context, pool *pgxpool.Pool, want tenants.Interface) error {
	site, err := a.site()
	if err == nil {
		err = required("public-url", site.PublicURL)
	}
	if err != nil {
		return err
	}
	brand := tenants.BrandID(a.brand)
	if a.asOperator {
		return tenants.SetInterface(ctx, operatorEdits(pool), site, brand, want, a.confirm, true)
	}
	asks, err := a.asks(pool)
	if err != nil {
		return err
	}
	p, err := asks.AskInterface(ctx, operatorEdits(pool), site, brand, want, "operator", "cli")
	return waits(a.out, p, err)
}

// widen lets more agents ask, or asks an owner to.
func (a args) widen(ctx context.Context, pool *pgxpool.Pool, site tenants.Site, rule string) error {
	brand := tenants.BrandID(a.brand)
	switch {
	case !a.asOperator:
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskRule(ctx, edit, brand, rule, "operator", "cli")
		})
	case rule == tenants.AgentsOpen:
		return tenants.OpenAgents(ctx, operatorEdits(pool), brand)
	}
	_, err := tenants.ChangeSettings(ctx, operatorEdits(pool), site, brand, func(s *tenants.Settings) error {
		s.Agents = rule
		return nil
	})
	return err
}

// ruleKeys has other keys sign, or change at other times, or asks an owner to.
func (a args) ruleKeys(ctx context.Context, pool *pgxpool.Pool, site tenants.Site, rule tenants.KeyRule) error {
	brand := tenants.BrandID(a.brand)
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskKeyRule(ctx, edit, site, brand, rule, "operator", "cli")
		})
	}
	return tenants.SetKeyRule(ctx, operatorEdits(pool), site, brand, rule)
}

// resumeBrand undoes pause: now, as the operator, or by asking an owner.
func resumeBrand(ctx context.Context, pool *pgxpool.Pool, a args) error {
	brand := tenants.BrandID(a.brand)
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskResume(ctx, edit, brand, "operator", "cli")
		})
	}
	if err := tenants.Start(ctx, operatorEdits(pool), brand); err != nil {
		return err
	}
	fmt.Fprintln(a.out, a.brand, "is active")
	return nil
}

func runBrandDomain(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "brand domain", about: "list | add | check | remove --brand ID [--host NAME] [--as-operator]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				all, err := tenants.Domains(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
				if err != nil {
					return err
				}
				return printDomains(a.out, all)
			},
			"add": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				if !a.asOperator {
					return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
						return asks.AskDomain(ctx, edit, tenants.BrandID(a.brand), a.host, "operator", "cli")
					})
				}
				d, err := tenants.AddDomain(ctx, tenants.NewDB(pool), operatorEdits(pool), tenants.BrandID(a.brand), a.host)
				if err == nil {
					fmt.Fprintf(a.out, "publish this line\n  %s\nin the file\n  %s\nor as a TXT record of\n  %s\nthen: countersign brand domain check --brand %s --host %s\n",
						d.Token, d.FileURL(), d.Record(), a.brand, d.Host)
				}
				return err
			},
			"check": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				d, err := tenants.CheckDomain(ctx, tenants.NewDB(pool), operatorEdits(pool), a.prover(), tenants.BrandID(a.brand), a.host)
				if err != nil {
					return err
				}
				if err := printDomains(a.out, []tenants.Domain{d}); err != nil || d.State(time.Now()) == "proven" {
					return err
				}
				return errors.New("the proof is not there")
			},
			"remove": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				if !a.asOperator {
					return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
						return asks.AskDomainRemoval(ctx, edit, tenants.BrandID(a.brand), a.host, "operator", "cli")
					})
				}
				err := tenants.RemoveDomain(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.host)
				if err == nil {
					fmt.Fprintf(a.out, "%s is no domain of %s any more\n", a.host, a.brand)
				}
				return err
			},
		},
	}.run(ctx, argv, stdout, stderr)
}

func printDomains(out io.Writer, all []tenants.Domain) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tSTATE\tTOKEN\tTROUBLE")
	for _, d := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.Host, d.State(time.Now()), d.Token, d.Trouble)
	}
	return w.Flush()
}
