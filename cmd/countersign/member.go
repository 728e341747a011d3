package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// runMember is about who works on a Brand. Whatever lets somebody in or puts them
// out waits for an owner.
func runMember(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	ask := func(what func(context.Context, *tenants.Asks, tenants.Editor, args) (tenants.PendingChange, error)) func(context.Context, *pgxpool.Pool, args) error {
		return func(ctx context.Context, pool *pgxpool.Pool, a args) error {
			asks, err := a.asks(pool)
			if err != nil {
				return err
			}
			p, err := what(ctx, asks, operatorEdits(pool), a)
			return waits(a.out, p, err)
		}
	}
	return operation{
		noun: "member", about: "list | invite | role | remove | withdraw | confirm | vouch | deny --brand ID [--email ADDRESS --role ROLE] [--id ID]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": listMembers,
			"invite": ask(func(ctx context.Context, asks *tenants.Asks, edit tenants.Editor, a args) (tenants.PendingChange, error) {
				return asks.AskInvitation(ctx, edit, tenants.BrandID(a.brand), a.email, tenants.Role(a.role), "operator", "cli")
			}),
			"role": ask(func(ctx context.Context, asks *tenants.Asks, edit tenants.Editor, a args) (tenants.PendingChange, error) {
				return asks.AskRole(ctx, edit, tenants.BrandID(a.brand), a.member(), tenants.Role(a.role), "operator", "cli")
			}),
			"remove": ask(func(ctx context.Context, asks *tenants.Asks, edit tenants.Editor, a args) (tenants.PendingChange, error) {
				return asks.AskRemoval(ctx, edit, tenants.BrandID(a.brand), a.member(), "operator", "cli")
			}),
			"confirm": ask(func(ctx context.Context, asks *tenants.Asks, edit tenants.Editor, a args) (tenants.PendingChange, error) {
				return asks.AskConfirmation(ctx, edit, tenants.BrandID(a.brand), a.member(), "operator", "cli")
			}),
			"vouch": ask(func(ctx context.Context, asks *tenants.Asks, edit tenants.Editor, a args) (tenants.PendingChange, error) {
				return asks.AskVouching(ctx, edit, tenants.BrandID(a.brand), a.member(), "operator", "cli")
			}),
			"deny": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				return tenants.EndRecovery(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.member())
			},
			"withdraw": func(ctx context.Context, pool *pgxpool.Pool, a args) error {
				return tenants.WithdrawInvitation(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.member())
			},
		},
	}.run(ctx, argv, stdout, stderr)
}

// member is the id that was typed; what is no id is nobody's.
func (a args) member() uuid.UUID {
	id, err := uuid.Parse(a.id)
	if err != nil {
		return uuid.Nil
	}
	return id
}

func listMembers(ctx context.Context, pool *pgxpool.Pool, a args) error {
	db, brand := tenants.NewDB(pool), tenants.BrandID(a.brand)
	members, err := tenants.Members(ctx, db, brand)
	if err != nil {
		return err
	}
	open, err := tenants.Invitations(ctx, db, brand, time.Now())
	if err != nil {
		return err
	}
	waits, err := tenants.Recoveries(ctx, db, brand)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tEMAIL\tROLE\tSTATE\tSINCE OR UNTIL")
	for _, m := range members {
		state := "member"
		if m.Held {
			state = "held"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Person, m.Email, m.Role, state, m.Since.UTC().Format(time.RFC3339))
	}
	for _, i := range open {
		fmt.Fprintf(w, "%s\t%s\t%s\tinvited\t%s\n", i.ID, i.Email, i.Role, i.ExpiresAt.UTC().Format(time.RFC3339))
	}
	for _, r := range waits {
		fmt.Fprintf(w, "%s\t%s\towner\trecovery\t%s\n", r.ID, r.Person, r.DueAt.UTC().Format(time.RFC3339))
	}
	return w.Flush()
}

// showAgent lists what the agent names in aud at each Brand, and where it may act.
func showAgent(ctx context.Context, pool *pgxpool.Pool, a args) error {
	const page = 500
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROVIDER\tAUDIENCE\tBRAND\tINTERFACE\tMAY ACT")
	for after := tenants.BrandID(""); ; {
		all, err := tenants.Audiences(ctx, tenants.NewDB(pool), a.issuer, false, after, page)
		if err != nil {
			return err
		}
		for _, one := range all {
			fmt.Fprintf(w, "%q\t%s\t%s\t%s\t%v\n", one.Provider, one.Audience, one.Brand, one.InterfaceURL, one.Enabled)
			after = one.Brand
		}
		if len(all) < page {
			return w.Flush()
		}
	}
}
