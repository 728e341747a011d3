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
	also  func(args) error // what else is asked of the flags
	alone string           // a flag with which it needs neither those nor a database
}

// promises of the operations, by what is typed. An empty id must not reach the
// database: it would be nobody's, and the operator would believe in it.
var promises = map[string]promise{
	"agent list": {},
	"agent allow": {needs: []string{"brand", "issuer"}, said: func(a args) string {
		return a.brand + " allows " + a.issuer
	}},
	"agent deny": {needs: []string{"brand", "issuer"}, said: func(a args) string {
		return a.brand + " denies " + a.issuer
	}},
	"agent unlist": {needs: []string{"brand", "issuer"}, said: func(a args) string {
		return a.brand + " leaves " + a.issuer + " to its rule"
	}},
	"agent add": {needs: []string{"issuer", "jwks-uri", "name"}, said: func(a args) string {
		return fmt.Sprintf("%s (%s) is registered and may ask for delegations", a.issuer, a.name)
	}},
	"agent enable": {needs: []string{"issuer"}, said: func(a args) string {
		return a.issuer + " is enabled"
	}},
	"agent disable": {needs: []string{"issuer"}, said: func(a args) string {
		return a.issuer + " is disabled: no Brand recognises it until agent enable"
	}},

	"agent show": {needs: []string{"issuer"}},
	"agent logo": {needs: []string{"issuer"}, also: func(a args) error {
		if (a.file == "") == (a.save == "") {
			return errors.New("name one of -f, to set it, and --save, to look at it")
		}
		return nil
	}, said: func(a args) string {
		if a.save != "" {
			return "the logo of " + a.issuer + " is in " + a.save
		}
		return "the logo of " + a.issuer + " is changed"
	}},
	"tenant list": {},
	"tenant show": {needs: []string{"brand"}},
	"tenant name": {needs: []string{"brand", "name"}, said: func(a args) string {
		return fmt.Sprintf("the Provider of %s is called %q", a.brand, a.name)
	}},
	"tenant create": {needs: []string{"id", "name", "organisation"}, also: createNeeds},
	"tenant pause":  {needs: []string{"brand"}, said: paused},
	"tenant resume": {needs: []string{"brand"}},
	"tenant close":  {needs: []string{"brand"}, also: closing},
	"agent check":   {needs: []string{"issuer"}},
	"agent pending": {},
	"agent approve": {needs: []string{"issuer"}, also: approvesWhatItSaw, said: func(a args) string {
		return a.issuer + " is registered and may ask for delegations"
	}},
	"agent reject": {needs: []string{"issuer"}, said: func(a args) string {
		return a.issuer + " is refused and cannot apply again"
	}},

	"brand list":   {},
	"brand create": {needs: []string{"id", "name", "organisation"}, also: createNeeds},
	"brand pause":  {needs: []string{"brand"}, said: paused},
	"brand resume": {needs: []string{"brand"}},
	"brand close":  {needs: []string{"brand"}, also: closing},

	"brand show":  {needs: []string{"brand"}},
	"brand set":   {needs: []string{"brand", "set"}},
	"brand apply": {needs: []string{"f"}},
	"brand check": {needs: []string{"brand"}},
	"brand logo": {needs: []string{"brand", "f"}, said: func(a args) string {
		return "the logo of " + a.brand + " is changed"
	}},
	"brand export": {needs: []string{"brand"}},
	"brand move":   {needs: []string{"brand", "mode", "public-url"}},

	"brand domain list":   {needs: []string{"brand"}},
	"brand domain add":    {needs: []string{"brand", "host"}},
	"brand domain check":  {needs: []string{"brand", "host"}},
	"brand domain remove": {needs: []string{"brand", "host"}},

	"scope list": {needs: []string{"brand"}},
	"scope set": {needs: []string{"brand", "scope", "set"}, said: func(a args) string {
		return fmt.Sprintf("scope %s of %s is saved", a.scope, a.brand)
	}},
	"scope order": {needs: []string{"brand", "order"}, said: func(a args) string {
		return "the scopes of " + a.brand + " are in order"
	}},
	"scope retire": {needs: []string{"brand", "scope"}, said: func(a args) string {
		return fmt.Sprintf("scope %s of %s is off the card; grants live on without it", a.scope, a.brand)
	}},
	"scope restore": {needs: []string{"brand", "scope"}},

	"detail list": {needs: []string{"brand"}},
	"detail set": {needs: []string{"brand", "type", "set"}, said: func(a args) string {
		return fmt.Sprintf("type %s of %s is saved", a.detailType, a.brand)
	}},
	"detail remove": {needs: []string{"brand", "type"}, said: func(a args) string {
		return fmt.Sprintf("agents name type %s of %s no more; what people allowed stays as it is", a.detailType, a.brand)
	}},

	"idp list": {needs: []string{"brand"}},
	"idp set": {needs: []string{"brand", "issuer"}, also: func(a args) error {
		if a.login.Kind == tenants.KindAssertion {
			return errors.Join(required("jwks-uri", a.login.JWKSURI), required("login-url", a.login.LoginURL))
		}
		return required("client-id", a.login.ClientID)
	}},
	"idp try":   {needs: []string{"brand", "id", "public-url", "master-key-file"}},
	"idp tried": {needs: []string{"brand", "id"}},
	"idp check": {needs: []string{"brand", "id"}},
	"idp live":  {needs: []string{"brand", "id"}},
	"idp remove": {needs: []string{"brand", "id"}, said: func(a args) string {
		return fmt.Sprintf("connection %s of %s is removed", a.id, a.brand)
	}},

	"change list": {needs: []string{"brand"}},
	"change reject": {needs: []string{"brand", "id"}, said: func(a args) string {
		return fmt.Sprintf("change %s of %s is rejected", a.id, a.brand)
	}},
	"change apply": {needs: []string{"brand", "id"}, said: func(a args) string {
		return fmt.Sprintf("change %s of %s is applied", a.id, a.brand)
	}},

	"user suspend": {needs: []string{"brand", "subject"}, said: func(a args) string {
		return fmt.Sprintf("%s is suspended at %s: agents get no token for them until user resume", a.subject, a.brand)
	}},
	"user resume": {needs: []string{"brand", "subject"}, said: func(a args) string {
		return fmt.Sprintf("%s is not suspended at %s", a.subject, a.brand)
	}},

	"user erase": {needs: []string{"brand", "subject"}, also: func(a args) error {
		if a.yes {
			return nil
		}
		return errors.New("--yes is required: erasing ends this user's grants, takes away what they were shown, and cannot be undone")
	}},

	"grants list":   {needs: []string{"brand"}},
	"grants show":   {needs: []string{"brand", "grant"}},
	"grants revoke": {also: whichGrants},

	"audit list": {needs: []string{"brand"}, also: onlyVerify},
	"audit verify": {needs: []string{"brand"}, alone: "file", also: func(a args) error {
		if a.audit.since != 0 || a.audit.filtered() {
			return errors.New("--since and filters are for list and export: a chain is verified from its beginning, or after --expect")
		}
		return nil
	}},
	"audit export": {needs: []string{"brand"}, also: onlyVerify},

	"keys list":    {needs: []string{"brand"}},
	"keys rotate":  {needs: []string{"brand"}},
	"keys retire":  {needs: []string{"brand", "kid"}},
	"keys destroy": {needs: []string{"brand"}},
	"keys revoke":  {needs: []string{"brand", "kid", "reason"}},

	"secrets rewrap": {needs: []string{"vault-addr", "master-key-file"}},

	"member list":    {needs: []string{"brand"}},
	"member invite":  {needs: []string{"brand", "email", "role", "master-key-file"}},
	"member role":    {needs: []string{"brand", "id", "role", "master-key-file"}},
	"member remove":  {needs: []string{"brand", "id", "master-key-file"}},
	"member confirm": {needs: []string{"brand", "id", "master-key-file"}},
	"member vouch":   {needs: []string{"brand", "id", "master-key-file"}},
	"member deny": {needs: []string{"brand", "id"}, said: func(a args) string {
		return fmt.Sprintf("recovery %s of %s is ended", a.id, a.brand)
	}},
	"usage show": {needs: []string{"brand"}, also: func(a args) error {
		if a.days < 1 || a.days > 366 {
			return errors.New("--days: give 1 to 366")
		}
		return nil
	}},
	"member withdraw": {needs: []string{"brand", "id"}, said: func(a args) string {
		return fmt.Sprintf("invitation %s of %s leads nowhere any more", a.id, a.brand)
	}},

	"apikey create": {needs: []string{"brand"}},
	"apikey list":   {needs: []string{"brand"}},
	"apikey rotate": {needs: []string{"brand", "id"}},
	"apikey revoke": {needs: []string{"brand", "id"}, said: func(a args) string {
		return fmt.Sprintf("API key %s of %s is revoked", a.id, a.brand)
	}},

	"endpoint show":   {needs: []string{"brand"}},
	"endpoint set":    {needs: []string{"brand", "url", "master-key-file"}},
	"endpoint remove": {needs: []string{"brand", "master-key-file"}},
	"endpoint rotate": {needs: []string{"brand", "master-key-file"}, also: func(a args) error {
		if a.atOnce && !a.asOperator {
			return errors.New("--at-once is for --as-operator: an owner does that on the dashboard")
		}
		return nil
	}},
	"endpoint check": {needs: []string{"brand", "master-key-file"}},

	"webhook create":     {needs: []string{"brand", "url", "master-key-file"}},
	"webhook list":       {needs: []string{"brand"}},
	"webhook rotate":     {needs: []string{"brand", "id", "master-key-file"}},
	"webhook deliveries": {needs: []string{"brand"}},
	"webhook test": {needs: []string{"brand", "id"}, said: func(a args) string {
		return fmt.Sprintf("a test goes to webhook %s of %s; webhook deliveries shows what came of it", a.id, a.brand)
	}},
	"webhook replay": {needs: []string{"brand", "id"}},
	"webhook disable": {needs: []string{"brand", "id"}, said: func(a args) string {
		return fmt.Sprintf("webhook %s of %s is off: what was still to be sent is kept for replay", a.id, a.brand)
	}},
	"webhook enable": {needs: []string{"brand", "id"}},
}

func paused(a args) string {
	return a.brand + " is paused: agents hear temporarily_unavailable until brand resume"
}

// onlyVerify refuses what only verify takes.
func onlyVerify(a args) error {
	if a.audit.file != "" || a.audit.expect != "" {
		return errors.New("--file and --expect are for verify: list and export print, so redirect them into a file")
	}
	return nil
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
