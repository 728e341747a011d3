package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

func runKeys(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "keys", about: "list | rotate | retire | revoke | destroy --brand ID [--kid KID] [--reason TEXT] [--as-operator]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": listKeys, "rotate": rotateKey, "retire": retireKey, "revoke": revokeKey, "destroy": destroyKeys,
		},
	}.run(ctx, argv, stdout, stderr)
}

// keyring opens the stores that the flags name. Looking and retiring need none.
func keyring(pool *pgxpool.Pool, a args) (*signing.Keys, error) {
	if err := distinct(a.vault, a.former); err != nil {
		return nil, err
	}
	db := tenants.NewDB(pool)
	silent := slog.New(slog.DiscardHandler)
	master := signing.NewMaster() // opens nothing
	if a.masterFile != "" {
		var err error
		if master, err = signing.OpenMaster(a.masterFile); err != nil {
			return nil, err
		}
	}
	backends := []signing.Backend{local.New(db, master, time.Now)}
	for _, v := range []*vaultFlags{&a.vault, &a.former} {
		store, err := v.open(nil, silent)
		if err != nil {
			return nil, err
		}
		if store != nil { // lives as long as the command
			backends = append(backends, store)
		}
	}
	keys := signing.NewKeys(signing.Config{DB: db, Backends: backends, Log: silent, Now: time.Now})
	return keys.Noted(rules(pool).NoteKeysTelling(authority.ByOperator(), byOperator)), nil
}

// policy is where a new key of the Brand belongs: in the Vault that is named,
// otherwise where its current key is. The store must have been named, or the
// key would end up where the service does not look for it.
func policy(ctx context.Context, pool *pgxpool.Pool, keys *signing.Keys, a args) (signing.Policy, error) {
	brand, err := tenants.NewDirectory(tenants.NewDB(pool), time.Now).Brand(ctx, tenants.BrandID(a.brand))
	if err != nil {
		return signing.Policy{}, err
	}
	p := signing.Policy{Alg: signing.Alg(brand.SigningAlg), Backend: "local"}
	list, err := keys.List(ctx, brand.ID)
	if err != nil {
		return signing.Policy{}, err
	}
	for _, k := range list {
		if k.State == "current" {
			p.Backend = k.Backend
		}
	}
	if a.vault.addr != "" {
		p.Backend = a.vault.name
	}
	switch {
	case p.Backend == "local" && a.masterFile == "":
		return signing.Policy{}, errors.New("the Brand's keys are in the local keyring: name the service's --master-key-file")
	case p.Backend != "local" && p.Backend != a.vault.name && p.Backend != a.former.name,
		p.Backend != "local" && a.vault.addr == "" && a.former.addr == "":
		return signing.Policy{}, fmt.Errorf("the Brand's keys are in %q: say how to reach it with --vault-addr and --vault-name", p.Backend)
	}
	return p, nil
}

func listKeys(ctx context.Context, pool *pgxpool.Pool, a args) error {
	keys, err := keyring(pool, a)
	if err != nil {
		return err
	}
	list, err := keys.List(ctx, tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KID\tSTATE\tALG\tKEPT IN\tSINCE\tNOTE")
	for _, k := range list {
		note := ""
		switch k.State {
		case "next":
			note = "signs from " + k.SignsFrom().UTC().Format(time.RFC3339)
		case "revoked":
			note = *k.Reason
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s %d\t%s\t%s\n", k.KID, k.State, k.Alg, k.Backend, k.Version, k.ChangedAt.UTC().Format(time.RFC3339), note)
	}
	return w.Flush()
}

// rotateKey asks an owner, or as the operator publishes a next key. The service
// lets it sign when every verifier must have seen it.
func rotateKey(ctx context.Context, pool *pgxpool.Pool, a args) error {
	keys, err := keyring(pool, a)
	if err != nil {
		return err
	}
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return keys.AskNext(ctx, asks, edit, tenants.BrandID(a.brand), "operator", "cli")
		})
	}
	p, err := policy(ctx, pool, keys, a)
	if err != nil {
		return err
	}
	next, err := keys.Prepare(ctx, tenants.BrandID(a.brand), p.Backend, p.Alg)
	if errors.Is(err, signing.ErrNextExists) {
		return fmt.Errorf("%w: it takes its turn by itself; see countersign keys list", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is published and signs from %s; until then, and for tokens that live, the current key stays\n",
		next.KID, next.SignsFrom().UTC().Format(time.RFC3339))
	return nil
}

func retireKey(ctx context.Context, pool *pgxpool.Pool, a args) error {
	keys, err := keyring(pool, a)
	if err != nil {
		return err
	}
	brand := tenants.BrandID(a.brand)
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return keys.AskRetire(ctx, asks, edit, brand, a.kid, "operator", "cli")
		})
	}
	if err := keys.Retire(ctx, brand, a.kid); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s of %s is retired\n", a.kid, a.brand)
	return nil
}

// revokeKey is the emergency: it waits for nobody, and every owner hears of it.
func revokeKey(ctx context.Context, pool *pgxpool.Pool, a args) error {
	if err := errors.Join(required("kid", a.kid), required("reason", a.reason)); err != nil {
		return err
	}
	keys, err := keyring(pool, a)
	if err != nil {
		return err
	}
	p, err := policy(ctx, pool, keys, a)
	if err != nil {
		return err
	}
	err = keys.Revoke(ctx, tenants.BrandID(a.brand), a.kid, a.reason, p)
	if errors.Is(err, signing.ErrNoSuccessor) {
		fmt.Fprintf(a.out, "Nothing is signed for %s until its key store answers; the service then makes a key by itself.\n", a.brand)
		err = nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is out of the JWKS and in the archive. Tokens it signed count no more: agents get new ones at their next refresh.\nReceipts it signed count only with other proof of their time.\n", a.kid)
	return nil
}
