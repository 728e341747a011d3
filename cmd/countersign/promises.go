package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"countersign.dev/cmd/countersign/shell"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// promise is what an operation cannot do without, and what it says when it is
// done. Where the output is data, or the operation reports itself, it says
// nothing here.
type promise struct {
	needs []string // flags
	said  func(args) string
}

// promises of the operations, by what is typed. An empty id must not reach the
// database: it would be nobody's, and the operator would believe in it.
var promises = map[string]promise{
	"agent list": {},
	"agent add": {[]string{"issuer", "jwks-uri", "name"}, func(a args) string {
		return fmt.Sprintf("%s (%s) is registered and may ask for delegations", a.issuer, a.name)
	}},
	"agent enable": {[]string{"issuer"}, func(a args) string {
		return a.issuer + " is enabled"
	}},
	"agent disable": {[]string{"issuer"}, func(a args) string {
		return a.issuer + " is disabled: no Brand recognises it until agent enable"
	}},

	"brand list": {},
	"brand pause": {[]string{"brand"}, func(a args) string {
		return a.brand + " is paused: agents hear temporarily_unavailable until brand resume"
	}},
	"brand resume": {[]string{"brand"}, func(a args) string {
		return a.brand + " is active"
	}},

	"user suspend": {[]string{"brand", "subject"}, func(a args) string {
		return fmt.Sprintf("%s is suspended at %s: agents get no token for them until user resume", a.subject, a.brand)
	}},
	"user resume": {[]string{"brand", "subject"}, func(a args) string {
		return fmt.Sprintf("%s is not suspended at %s", a.subject, a.brand)
	}},

	"keys list":   {needs: []string{"brand"}},
	"keys rotate": {needs: []string{"brand"}},
	"keys retire": {[]string{"brand", "kid"}, func(a args) string {
		return fmt.Sprintf("%s of %s is retired", a.kid, a.brand)
	}},
	"keys revoke": {needs: []string{"brand", "kid", "reason"}},

	"secrets rewrap": {needs: []string{"vault-addr", "master-key-file"}},

	"apikey create": {needs: []string{"brand"}},
	"apikey list":   {needs: []string{"brand"}},
	"apikey revoke": {[]string{"brand", "id"}, func(a args) string {
		return fmt.Sprintf("API key %s of %s is revoked", a.id, a.brand)
	}},
}

// known refuses a Brand that is not there before anything is done in its name.
func known(ctx context.Context, pool *pgxpool.Pool, brand string) error {
	if brand == "" {
		return nil
	}
	_, err := tenants.NewDirectory(tenants.NewDB(pool), time.Now).Brand(ctx, tenants.BrandID(brand))
	if errors.Is(err, tenants.ErrNoBrand) {
		return fmt.Errorf("%w: %q; %s shows those there are", tenants.ErrNoBrand, brand, shell.Line("brand", "list"))
	}
	return err
}

// advised adds what an operator can do about a database that does not answer, or
// is not ours yet.
func advised(err error) error {
	const undefinedTable = "42P01"
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == undefinedTable {
		return fmt.Errorf("the database is not prepared: %s comes first (%w)", shell.Line("migrate"), err)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fmt.Errorf("%w\nIs the database running? That of countersign dev has another address after every start", err)
	}
	return err
}
