package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/tenants"
	"countersign.dev/web/alike"
	"github.com/jackc/pgx/v5/pgxpool"
)

// brandsCrowd is the Brands, for holding agents against their names and addresses.
func brandsCrowd(ctx context.Context, pool *pgxpool.Pool) (*alike.Crowd, error) {
	d := tenants.NewDirectory(tenants.NewDB(pool), time.Now)
	ids, err := d.IDs(ctx)
	if err != nil {
		return nil, err
	}
	crowd := new(alike.Crowd)
	for _, id := range ids {
		b, err := d.Brand(ctx, id)
		if err != nil {
			return nil, err
		}
		addBrand(crowd, b)
	}
	return crowd, nil
}

func addBrand(crowd *alike.Crowd, b *tenants.Brand) {
	who := "Brand " + string(b.ID)
	crowd.Named(who, b.Name)
	crowd.Named(who, b.Organisation)
	crowd.At(who, alike.HostOf(b.InterfaceURL))
	if b.Domain != "" {
		crowd.At(who, b.Domain)
	}
}

// everybody is the Brands and the agents that are registered already. The name of
// one that nobody registered is its address.
func everybody(ctx context.Context, pool *pgxpool.Pool, agents []agent.Agent) (*alike.Crowd, error) {
	crowd, err := brandsCrowd(ctx, pool)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		crowd.At("agent "+a.Issuer, alike.HostOf(a.Issuer))
		if !a.Discovered {
			crowd.Named("agent "+a.Issuer, a.Name)
		}
	}
	return crowd, nil
}

// drawn is the issuer's host as some browsers draw it, where that is otherwise.
func drawn(issuer string) string {
	if shown, differs := alike.Drawn(alike.HostOf(issuer)); differs {
		return strconv.Quote(shown)
	}
	return "-"
}

// likeness says who the agent can be taken for, by its name and by its address.
func likeness(crowd *alike.Crowd, issuer, name string) string {
	var out []string
	say := func(what string, all []string) {
		const most = 5 // of what may be a crowd itself
		all = slices.Compact(slices.DeleteFunc(all, func(who string) bool { return who == "agent "+issuer }))
		if more := len(all) - most; more > 0 {
			all = append(all[:most], strconv.Itoa(more)+" more")
		}
		if len(all) > 0 {
			out = append(out, what+" like "+strings.Join(all, ", "))
		}
	}
	say("name", crowd.LikeName(name))
	say("host", crowd.LikeHost(alike.HostOf(issuer)))
	return cmp.Or(strings.Join(out, "; "), "-")
}
