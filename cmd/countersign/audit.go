package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// auditArgs say what of the trail.
type auditArgs struct {
	file, expect string
	since        int64
	limit        int
	// What of the trail; empty: all of it.
	event, actor, grant, subject, from, until string
}

func (v *auditArgs) filtered() bool {
	return v.event+v.actor+v.grant+v.subject+v.from+v.until != ""
}

// which reads the filters.
func (v *auditArgs) which() (authority.Events, error) {
	which := authority.Events{Event: v.event, Actor: v.actor, Subject: v.subject, Since: v.since}
	var err error
	if v.grant != "" {
		if which.Grant, err = uuid.Parse(v.grant); err != nil {
			return which, fmt.Errorf("--grant: %w", err)
		}
	}
	if which.From, which.Until, err = authority.Days(v.from, v.until); err != nil {
		return which, fmt.Errorf("days are written as 2026-11-30: %w", err)
	}
	return which, nil
}

func (v *auditArgs) register(s settings) {
	s.StringVar(&v.file, "file", "", "verify an export in this `file`; needs no database")
	s.StringVar(&v.expect, "expect", "", "`SEQ:HASH`, a head that an earlier verify printed: the trail must still hold it")
	s.Int64Var(&v.since, "since", 0, "list and export only events after this `number`")
	s.IntVar(&v.limit, "limit", 100, "list at most this `number` of events, the newest first")
	s.StringVar(&v.event, "event", "", "only events of this `name`, such as grant.revoked")
	s.StringVar(&v.actor, "actor", "", "only what whoever has this `id` did: a member, an API key, an agent, a user")
	s.StringVar(&v.grant, "grant", "", "only events of the grant with this `id`")
	s.StringVar(&v.subject, "subject", "", "only what the user with this `id` at the Brand did")
	s.StringVar(&v.from, "from", "", "only from this `day` of UTC on, such as 2026-11-30")
	s.StringVar(&v.until, "until", "", "only up to this `day` of UTC, which is included")
}

func runAudit(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "audit", about: "list | verify | export --brand ID [--expect SEQ:HASH] [--file FILE] [--since SEQ] [--event NAME --actor ID --grant ID --subject ID --from DAY --until DAY]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{"list": listTrail, "verify": verifyTrail, "export": exportTrail},
	}.run(ctx, argv, stdout, stderr)
}

func verifyTrail(ctx context.Context, pool *pgxpool.Pool, a args) error {
	var expect *authority.Head
	if a.audit.expect != "" {
		head, err := authority.ParseHead(a.audit.expect)
		if err != nil {
			return fmt.Errorf("--expect: %w", err)
		}
		expect = &head
	}
	var proof authority.Proof
	var err error
	if a.audit.file != "" {
		proof, err = verifyFile(a.audit.file, expect)
	} else {
		proof, err = rules(pool).VerifyTrail(ctx, tenants.BrandID(a.brand), expect)
	}
	if fault := new(authority.Fault); errors.As(err, &fault) {
		return fmt.Errorf("the trail of %s is NOT SOUND: %w (events before it, all sound: %d)", plain(proof.Brand), fault, proof.Events)
	}
	if err != nil {
		return err
	}
	if a.brand != "" && proof.Brand != a.brand {
		return fmt.Errorf("this is the trail of %s, not of %s", plain(proof.Brand), a.brand)
	}
	if proof.Head.Seq == 0 {
		fmt.Fprintf(a.out, "nothing has happened at %s yet\n", proof.Brand)
		return nil
	}
	fmt.Fprintf(a.out, "the trail of %s is sound: %d events, in %d of which who and what were erased\n", proof.Brand, proof.Events, proof.Erased)
	fmt.Fprintf(a.out, "head %s\n", proof.Head)
	fmt.Fprintln(a.out, "Keep the head where nobody who writes to this database can reach it, and give it to --expect next time.")
	return nil
}

func verifyFile(name string, expect *authority.Head) (authority.Proof, error) {
	f, err := os.Open(name)
	if err != nil {
		return authority.Proof{}, err
	}
	defer f.Close()
	return authority.VerifyExport(f, expect)
}

// listTrail prints the newest events for people.
func listTrail(ctx context.Context, pool *pgxpool.Pool, a args) error {
	which, err := a.audit.which()
	if err != nil {
		return err
	}
	all, err := rules(pool).Latest(ctx, tenants.BrandID(a.brand), which, 0, max(1, a.audit.limit))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SEQ\tAT\tEVENT\tACTOR\tID\tCHANNEL\tGRANT")
	for _, e := range all {
		grant := "-"
		if e.GrantID != nil {
			grant = *e.GrantID
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Seq, e.At, e.Event, e.Actor, plain(cmp.Or(e.ActorID, "-")), cmp.Or(e.Channel, "-"), grant)
	}
	return w.Flush()
}

// exportTrail prints lines alone, so that they can go straight into a file.
func exportTrail(ctx context.Context, pool *pgxpool.Pool, a args) error {
	which, err := a.audit.which()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.out)
	err = rules(pool).Trail(ctx, tenants.BrandID(a.brand), which, math.MaxInt, func(e authority.Entry) error {
		line, err := e.Line()
		if err == nil {
			_, err = out.Write(line)
		}
		return err
	})
	return errors.Join(err, out.Flush())
}
