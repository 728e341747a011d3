package authority

import (
	"context"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// By says who acts, and through which door. Ids only, never a name or an address.
type By struct {
	Actor   string // user, agent, admin, operator, system
	ID      string // the Brand user's, the agent's issuer, the API key's or the member's id
	Channel string // page, oauth, api, console, cli, upkeep
}

// ByUser is the Brand user on our pages.
func ByUser(subject string) By { return By{Actor: "user", ID: subject, Channel: "page"} }

// ByOperator is whoever runs the command line.
func ByOperator() By { return By{Actor: "operator", Channel: "cli"} }

// ByAdminKey is a Brand's admin, through the API key with the id.
func ByAdminKey(id string) By { return By{Actor: "admin", ID: id, Channel: "api"} }

// ByUpkeep is nobody: time passed.
func ByUpkeep() By { return By{Actor: "system", Channel: "upkeep"} }

func byAgent(who Caller) By { return By{Actor: "agent", ID: who.Agent, Channel: "oauth"} }

// change is one transaction, and what it will have made true. What every change
// of a Brand must lock (its status lists, the head of its trail) is touched at
// the very end, always in the same order, so that no two changes can wait for
// one another and the locks are short.
type change struct {
	pgx.Tx
	brand tenants.BrandID
	now   time.Time
	by    By
	facts []fact
	// elsewhere are the same for the trails of other Brands.
	elsewhere []*change
	fresh     []uuid.UUID // grants whose version needs a status index of its own
	gone      []uuid.UUID // grants whose status index stands for nothing any more
	moved     []string    // Brand users whose tokens are to be judged anew
}

// note adds a fact, by whoever makes the change.
func (c *change) note(f fact) {
	if f.by == (By{}) {
		f.by = c.by
	}
	c.facts = append(c.facts, f)
}

// change runs fn in one transaction and then writes what it noted: either all
// of it becomes true and stands in the trail, or nothing does.
func (a *Authority) change(ctx context.Context, brand tenants.BrandID, by By, now time.Time, fn func(*change) error) error {
	return a.db.Tx(ctx, brand, func(tx pgx.Tx) error {
		c := &change{Tx: tx, brand: brand, now: now, by: by}
		if err := fn(c); err != nil {
			return err
		}
		if err := a.settleStatus(ctx, c); err != nil {
			return err
		}
		events, err := c.recordAll(ctx, a.trace(ctx))
		if err != nil || len(events) == 0 || a.announce == nil {
			return err
		}
		return a.announce(ctx, tx, brand, events)
	})
}
