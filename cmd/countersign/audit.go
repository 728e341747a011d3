package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

// auditArgs say what of the trail.
type auditArgs struct {
	file, expect string
	since        int64
}

func (v *auditArgs) register(s settings) {
	s.StringVar(&v.file, "file", "", "verify an export in this `file`; needs no database")
	s.StringVar(&v.expect, "expect", "", "`SEQ:HASH`, a head that an earlier verify printed: the trail must still hold it")
	s.Int64Var(&v.since, "since", 0, "export only events after this `number`")
}

func runAudit(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "audit", about: "verify | export --brand ID [--expect SEQ:HASH] [--file FILE] [--since SEQ]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{"verify": verifyTrail, "export": exportTrail},
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

// exportTrail prints lines alone, so that they can go straight into a file.
func exportTrail(ctx context.Context, pool *pgxpool.Pool, a args) error {
	out := bufio.NewWriter(a.out)
	err := rules(pool).Trail(ctx, tenants.BrandID(a.brand), authority.Events{Since: a.audit.since}, math.MaxInt, func(e authority.Entry) error {
		line, err := e.Line()
		if err == nil {
			_, err = out.Write(line)
		}
		return err
	})
	return errors.Join(err, out.Flush())
}
