package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// grantArgs say which grants.
type grantArgs struct {
	id, agent, subject, scope, state string
}

func (g *grantArgs) register(s settings) {
	s.StringVar(&g.id, "grant", "", "`id` of the grant, as list shows it")
	s.StringVar(&g.agent, "agent", "", "issuer `URL` of the agent, byte for byte")
	s.StringVar(&g.subject, "subject", "", "`id` of the user at the Brand")
	s.StringVar(&g.scope, "scope", "", "`id` of a permission: to list those that hold it, or to end it alone")
	s.StringVar(&g.state, "state", "", "list only `living` or ended")
}

func runGrants(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "grants", about: "list | show | revoke --brand ID [--grant ID | --agent URL | --subject ID] [--scope ID]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"list": listGrants, "show": showGrant, "revoke": revokeGrants,
		},
	}.run(ctx, argv, stdout, stderr)
}

// whichGrants refuses to end anything that is not named.
func whichGrants(a args) error {
	g := a.grants
	switch {
	case g.state != "":
		return errors.New("--state is for list: only living grants can be ended")
	case g.id == "" && g.agent == "" && g.subject == "":
		return errors.New("--grant, --agent or --subject is required")
	case a.brand == "" && (g.id != "" || g.subject != ""):
		return errors.New("--brand is required: grants and users are known by their Brand")
	case g.scope != "" && (g.id == "" || g.agent != "" || g.subject != ""):
		return errors.New("--scope ends one permission of one --grant")
	}
	return nil
}

// grantID reads an id that somebody typed.
func grantID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id == uuid.Nil {
		return uuid.Nil, fmt.Errorf("%q is not the id of a grant", text)
	}
	return id, nil
}

func listGrants(ctx context.Context, pool *pgxpool.Pool, a args) error {
	g := a.grants
	state := authority.State(g.state)
	if state != authority.AnyState && state != authority.Living && state != authority.Ended {
		return fmt.Errorf("--state %q: use living or ended", g.state)
	}
	if g.id != "" {
		return errors.New("--grant is for show and revoke")
	}
	now, all := time.Now(), rules(pool)
	filter := authority.Filter{Agent: g.agent, Subject: g.subject, Scope: g.scope, State: state}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tAGENT\tSUBJECT\tSCOPES\tSINCE\tUNTIL\tLAST USED")
	const page = 500
	var after uuid.UUID
	for {
		found, err := all.List(ctx, tenants.BrandID(a.brand), filter, after, page)
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		for _, r := range found {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, stateOf(r, now), plain(r.Agent), plain(r.Subject),
				plain(strings.Join(r.Scopes, " ")), day(&r.CreatedAt), day(until(r)), day(r.LastUsed))
			after = r.ID
		}
		// Page by page, so that a million grants need no more memory than these.
		if err := w.Flush(); err != nil || len(found) < page {
			return err
		}
	}
}

func showGrant(ctx context.Context, pool *pgxpool.Pool, a args) error {
	id, err := grantID(a.grants.id)
	if err != nil {
		return err
	}
	all, brand := rules(pool), tenants.BrandID(a.brand)
	r, err := all.Look(ctx, brand, id)
	if errors.Is(err, authority.ErrUnknown) {
		return fmt.Errorf("%s has no grant %s", brand, id)
	}
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"grant", r.ID.String()},
		{"state", stateOf(r, time.Now())},
		{"agent", plain(r.Agent)},
		{"subject", plain(r.Subject)},
		{"scopes", plain(strings.Join(r.Scopes, " "))},
		{"since", day(&r.CreatedAt)},
		{"until", day(until(r))},
		{"last used", day(r.LastUsed)},
	} {
		fmt.Fprintf(w, "%s\t%s\n", line[0], line[1])
	}
	consents, err := all.Answers(ctx, brand, id)
	if err != nil {
		return errors.Join(err, w.Flush())
	}
	fmt.Fprintln(w, "\nCONSENT\tAT\tANSWER\tTICKED\tUNTICKED")
	for _, c := range consents {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.ID, day(&c.At), c.Answer, plain(strings.Join(c.Ticked, " ")), plain(strings.Join(c.Unticked, " ")))
	}
	fmt.Fprintln(w, "\nEVENT\tAT\tWHAT\tWHO\tTHROUGH")
	const most = 1000
	err = all.Trail(ctx, brand, authority.Events{Grant: id}, most, func(e authority.Entry) error {
		_, err := fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", e.Seq, e.At, e.Event, strings.TrimSpace(e.Actor+" "+plain(e.ActorID)), e.Channel)
		return err
	})
	return errors.Join(err, w.Flush())
}

func revokeGrants(ctx context.Context, pool *pgxpool.Pool, a args) error {
	g := a.grants
	which := authority.Which{Agent: g.agent, Subject: g.subject}
	if g.id != "" {
		id, err := grantID(g.id)
		if err != nil {
			return err
		}
		which.Grant = id
	}
	brand := tenants.BrandID(a.brand)
	switch {
	case g.scope != "":
		err := rules(pool).EndScope(ctx, brand, authority.ByOperator(), which.Grant, g.scope)
		if errors.Is(err, authority.ErrUnknown) {
			return fmt.Errorf("%s has no living grant %s that holds %s", brand, which.Grant, plain(g.scope))
		}
		if err == nil {
			fmt.Fprintf(a.out, "%s no longer holds %s\n", which.Grant, plain(g.scope))
		}
		return err
	case a.brand == "":
		return revokeEverywhere(ctx, pool, a, which)
	}
	n, err := rules(pool).End(ctx, brand, authority.ByOperator(), which)
	if err != nil {
		return fmt.Errorf("%w; %d have ended: type it again for the rest", err, n)
	}
	if n == 0 && which.Grant != uuid.Nil {
		return fmt.Errorf("%s has no such living grant: nothing has ended", brand)
	}
	fmt.Fprintf(a.out, "%s ended at %s\n", counted(n), brand)
	return nil
}

// revokeEverywhere goes on to the next Brand when one fails: its trouble is its
// own, and whoever is in a hurry wants the rest ended.
func revokeEverywhere(ctx context.Context, pool *pgxpool.Pool, a args, which authority.Which) error {
	ids, err := tenants.NewDirectory(tenants.NewDB(pool), time.Now).IDs(ctx)
	if err != nil {
		return err
	}
	all := rules(pool)
	var failed error
	total := 0
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, id := range ids {
		n, err := all.End(ctx, id, authority.ByOperator(), which)
		total += n
		note := ""
		if err != nil {
			failed = errors.Join(failed, err)
			note = "and not all: type it again"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", id, n, note)
	}
	fmt.Fprintf(w, "in all\t%d\t\n", total)
	return errors.Join(w.Flush(), failed)
}

func counted(n int) string {
	if n == 1 {
		return "1 grant"
	}
	return strconv.Itoa(n) + " grants"
}

func stateOf(r authority.Record, now time.Time) string {
	switch {
	case r.EndReason != "":
		return "ended: " + r.EndReason
	case !r.Living(now):
		return "ended: expired"
	case r.Suspended:
		return "living, user suspended"
	}
	return "living"
}

// until is when the grant ended, or will.
func until(r authority.Record) *time.Time {
	if r.EndedAt != nil {
		return r.EndedAt
	}
	return &r.ExpiresAt
}

func day(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// plain is a stranger's text as a terminal may show it: it could hold sequences
// that a terminal obeys.
func plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
