package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

func runKeys(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "keys", about: "list | rotate | retire | revoke --brand ID [--kid KID] [--reason TEXT]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": listKeys, "rotate": rotateKey, "retire": retireKey, "revoke": revokeKey,
		},
	}.run(ctx, argv, stdout, stderr)
}

// keyring opens the Brand's keys. Only making a new key needs the master key.
func keyring(pool *pgxpool.Pool, a args, makes bool) (*signing.Keys, error) {
	master := signing.NewMaster() // opens nothing; enough to look and to retire
	if makes {
		if err := required("master-key-file", a.masterFile); err != nil {
			return nil, err
		}
		var err error
		if master, err = signing.LoadMaster(a.masterFile); err != nil {
			return nil, err
		}
	}
	db := tenants.NewDB(pool)
	silent := slog.New(slog.DiscardHandler)
	backends := []signing.Backend{local.New(db, master, time.Now)}
	vault, err := a.vault.open(nil, silent)
	if err != nil {
		return nil, err
	}
	if vault != nil { // lives as long as the command
		backends = append([]signing.Backend{vault}, backends...)
	}
	return signing.NewKeys(signing.Config{DB: db, Backends: backends, Log: silent, Now: time.Now}), nil
}

// target is where a new key is made: in Vault, once the service uses it.
func (a args) target() string {
	if a.vault.addr != "" {
		return a.vault.name
	}
	return "local"
}

func listKeys(ctx context.Context, pool *pgxpool.Pool, a args) error {
	keys, err := keyring(pool, a, false)
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

// rotateKey publishes a next key. The service lets it sign when every verifier
// must have seen it.
func rotateKey(ctx context.Context, pool *pgxpool.Pool, a args) error {
	keys, err := keyring(pool, a, true)
	if err != nil {
		return err
	}
	brand, err := tenants.NewDirectory(tenants.NewDB(pool), time.Now).Brand(ctx, tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	next, err := keys.Prepare(ctx, brand.ID, a.target(), signing.Alg(brand.SigningAlg))
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
	keys, err := keyring(pool, a, false)
	if err != nil {
		return err
	}
	return keys.Retire(ctx, tenants.BrandID(a.brand), a.kid)
}

// revokeKey is the emergency.
func revokeKey(ctx context.Context, pool *pgxpool.Pool, a args) error {
	if err := errors.Join(required("kid", a.kid), required("reason", a.reason)); err != nil {
		return err
	}
	keys, err := keyring(pool, a, true)
	if err != nil {
		return err
	}
	if err := keys.Revoke(ctx, tenants.BrandID(a.brand), a.kid, a.reason); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is out of the JWKS and in the archive. Tokens it signed count no more: agents get new ones at their next refresh.\nReceipts it signed count only with other proof of their time.\n", a.kid)
	return nil
}
