package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/cmd/countersign/shell"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

// listAgents lists the agents, wherever they may ask.
func listAgents(ctx context.Context, pool *pgxpool.Pool, a args) error {
	if a.brand != "" {
		return listAgentsAt(ctx, pool, a)
	}
	all, err := agentRegistry(pool, a).List(ctx)
	if err != nil {
		return err
	}
	crowd, err := everybody(ctx, pool, all)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ISSUER\tDRAWN\tNAME\tENABLED\tTEST\tDISCOVERED\tLOGO\tKEYS\tALIKE")
	for _, one := range all {
		fmt.Fprintf(w, "%s\t%s\t%q\t%v\t%v\t%v\t%v\t%s\t%s\n", one.Issuer, drawn(one.Issuer), one.Name, one.Enabled, one.Test, one.Discovered, one.Logo != "", one.JWKSURI,
			likeness(crowd, one.Issuer, one.Name))
	}
	return w.Flush()
}

// checkAgent fetches what the agent publishes, now. One that only applies is
// looked at too, for whoever has to decide.
func checkAgent(ctx context.Context, pool *pgxpool.Pool, a args) error {
	registry := agent.NewRegistry(agent.RegistryConfig{DB: pool, AllowLoopback: a.dev, Now: time.Now})
	known, err := registry.Find(ctx, a.issuer)
	if errors.Is(err, agent.ErrNotRegistered) {
		waiting, errList := registry.Applications(ctx)
		if errList != nil {
			return errList
		}
		for _, w := range waiting {
			if w.Issuer == a.issuer {
				known, err = agent.Agent{JWKSURI: w.JWKSURI}, nil
			}
		}
	}
	if err != nil {
		return err
	}
	keys, err := agent.Inspect(ctx, a.outside(), known.JWKSURI)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KID\tKIND\tUSABLE")
	usable := 0
	for _, k := range keys {
		if k.Usable {
			usable++
		}
		fmt.Fprintf(w, "%q\t%q\t%v\n", k.KID, k.Kind, k.Usable) // quoted: a stranger wrote them
	}
	if err := w.Flush(); err != nil || usable > 0 {
		return err
	}
	return errors.New("none of its keys can verify a pa-jwt")
}

// logoAgent gives an agent a picture, takes it away, or writes it out for the
// operator to look at, that of an application too.
func logoAgent(ctx context.Context, pool *pgxpool.Pool, a args) error {
	registry := agentRegistry(pool, a)
	if a.save != "" {
		png, err := registry.Logo(ctx, a.issuer)
		if err != nil {
			return err
		}
		return os.WriteFile(a.save, png, 0o644)
	}
	if a.file == "none" {
		return registry.SetLogo(ctx, a.issuer, nil)
	}
	raw, err := a.read(tenants.LargestLogo + 1)
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		return fmt.Errorf("%s is empty; -f none takes the logo away", a.file)
	}
	return registry.SetLogo(ctx, a.issuer, raw)
}

func agentRegistry(pool *pgxpool.Pool, a args) *agent.Registry {
	return agent.NewRegistry(agent.RegistryConfig{
		DB: pool, AllowLoopback: a.dev, Now: time.Now, Note: rules(pool).NoteAgent(authority.ByOperator()),
	})
}

// listApplications shows who asks to be registered, and for whom else it could be
// taken: whom the operator approves is let in at every Brand.
func listApplications(ctx context.Context, pool *pgxpool.Pool, a args) error {
	registry := agentRegistry(pool, a)
	waiting, err := registry.Applications(ctx)
	if err != nil {
		return err
	}
	known, err := registry.List(ctx)
	if err != nil {
		return err
	}
	crowd, err := everybody(ctx, pool, known)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ISSUER\tDRAWN\tNAME\tALIKE\tCONTACT\tLOGO\tASKED\tKEYS\tSEEN")
	for _, one := range waiting {
		fmt.Fprintf(w, "%s\t%s\t%q\t%s\t%q\t%v\t%s\t%s\t%s\n", one.Issuer, drawn(one.Issuer), one.Name, likeness(crowd, one.Issuer, one.Name), one.Contact, one.LogoHash != "", one.AskedAt.UTC().Format(time.RFC3339), one.JWKSURI, one.Digest())
	}
	return w.Flush()
}

// lookAgain is how the operator sees what waits.
func lookAgain() string {
	return "look at it with " + shell.Line("agent", "pending") + ", and name the digest that stands there under SEEN"
}

// approvesWhatItSaw asks which application was looked at: whoever applies may
// change it for as long as it waits.
func approvesWhatItSaw(a args) error {
	if a.issuer == "" || a.seen != "" {
		return nil
	}
	return errors.New("--seen is required: " + lookAgain())
}

// approveAgent registers the agent if its application still is what was seen.
func approveAgent(ctx context.Context, pool *pgxpool.Pool, a args) error {
	err := agentRegistry(pool, a).Approve(ctx, a.issuer, a.seen)
	if errors.Is(err, agent.ErrOtherwise) {
		return fmt.Errorf("%w, or --seen is mistyped: %s", err, lookAgain())
	}
	return err
}
