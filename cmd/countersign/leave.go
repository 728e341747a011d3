package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/export"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/transit"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

// exportBrand writes the Brand's archive into a file that nobody else may read. A
// file that is there already is left alone.
func exportBrand(ctx context.Context, pool *pgxpool.Pool, a args) (err error) {
	keys, err := keyring(pool, a)
	if err != nil {
		return err
	}
	rules := rules(pool)
	archive := export.Archive{Authority: rules, DB: tenants.NewDB(pool), Keys: keys, Now: time.Now}
	brand := tenants.BrandID(a.brand)
	noted := func(ctx context.Context) error {
		return operatorEdits(pool)(ctx, brand, func(e *tenants.Edit) error {
			e.Note(tenants.EventExported, nil)
			return nil
		})
	}
	if a.file == "-" {
		_, err := archive.Write(ctx, a.out, brand, noted)
		return err
	}
	if a.file == "" {
		a.file = archive.Name(brand)
	}
	to, err := os.OpenFile(a.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	m, err := archive.Write(ctx, to, brand, noted)
	if err = errors.Join(err, to.Close()); err != nil {
		return errors.Join(err, os.Remove(a.file))
	}
	fmt.Fprintf(a.out, "%s holds everything of %s: %d files, no secrets\n", a.file, a.brand, len(m.Files)+1)
	if m.Head != "" {
		fmt.Fprintf(a.out, "head %s\n", m.Head)
	}
	return nil
}

// eraseUser is final. What it was broken off at, it goes on with when it is typed
// again.
func eraseUser(ctx context.Context, pool *pgxpool.Pool, a args) error {
	e, err := rules(pool).Erase(ctx, tenants.BrandID(a.brand), authority.ByOperator(), a.subject)
	if err != nil {
		return fmt.Errorf("%w: type it again for the rest", err)
	}
	if e == (authority.Erased{}) {
		fmt.Fprintf(a.out, "there is nothing of this user at %s\n", a.brand)
		return nil
	}
	fmt.Fprintf(a.out, "erased at %s: %d grants have ended, the user is gone from %d rows and from %d events of the trail, which verifies as before\n",
		a.brand, e.Grants, e.Rows, e.Events)
	return nil
}

// destroyKeys prints what destroys the private keys of a Brand that is gone. The
// service itself cannot: its policy forbids it, so that nobody who takes its token
// can either.
func destroyKeys(ctx context.Context, pool *pgxpool.Pool, a args) error {
	brand := tenants.BrandID(a.brand)
	db := tenants.NewDB(pool)
	closing, err := tenants.ClosedSince(ctx, db, brand, time.Now())
	if err != nil {
		return err
	}
	switch {
	case closing == nil:
		return fmt.Errorf("%s is not closed: destroying its keys would stop it for good; brand close comes first", a.brand)
	case !closing.Emptied:
		return fmt.Errorf("%s was closed on %s: its keys may go when its data has, after %s",
			a.brand, closing.At.UTC().Format(time.DateOnly), closing.EmptyAt().UTC().Format(time.DateOnly))
	}
	keys, err := keyring(pool, a)
	if err != nil {
		return err
	}
	list, err := keys.List(ctx, brand)
	if err != nil {
		return err
	}
	if _, err := keys.JWKS(ctx, brand); err != nil {
		return fmt.Errorf("the public keys must stand in the database before the private ones go: %w", err)
	}
	return printDestroy(a.out, a.vault.mount, brand, list)
}

func printDestroy(out io.Writer, mount string, brand tenants.BrandID, list []signing.KeyInfo) error {
	var paths []string
	seen := make(map[string]bool)
	for _, k := range list {
		if k.Backend == "local" { // went with the Brand's data
			continue
		}
		path, err := transit.KeyPath(mount, brand, k.Alg)
		if err != nil {
			return err
		}
		if !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		fmt.Fprintf(out, "no private key of %s is left: those in the local keyring went with its data\n", brand)
		return nil
	}
	fmt.Fprintf(out, "# %d public keys of %s stand in the database and stay published. As an operator with deploy/vault/destroy.hcl:\n", len(list), brand)
	for _, path := range paths {
		fmt.Fprintf(out, "vault write %s/config deletion_allowed=true\nvault delete %s\n", path, path)
	}
	fmt.Fprintln(out, "# There is no way back from vault delete.")
	return nil
}
