package tenants_test

import (
	"context"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// What waits already is not asked for again; what differs in anything is, be it
// only in what is done and not in what an owner reads. Once it is decided, it may
// be asked for anew.
func TestAskedTwiceIsAskedOnce(t *testing.T) {
	w := authoritytest.New(t)
	nothing := func(context.Context, tenants.Editor, tenants.BrandID, []byte) (string, error) { return "", nil }
	asks := &tenants.Asks{
		DB: w.DB, Sealer: w.Master, Now: w.Clock.Now,
		Appliers: map[string]tenants.Applier{"one": nothing, "other": nothing},
	}
	ask := func(brand tenants.BrandID, kind, says, does string) uuid.UUID {
		t.Helper()
		c, err := asks.Ask(t.Context(), editor(w), brand, tenants.Ask{Kind: kind, By: "somebody", Channel: "api", Diff: says, Payload: does})
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	id := w.Hotel.ID
	first := ask(id, "one", "says", "does")
	if again := ask(id, "one", "says", "does"); again != first {
		t.Error("it waits twice")
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'change.asked'`); n != 1 {
		t.Errorf("%d facts of one wish", n)
	}
	for name, other := range map[string]uuid.UUID{
		"another Brand's": ask(w.Shop.ID, "one", "says", "does"), "another kind": ask(id, "other", "says", "does"),
		"other words": ask(id, "one", "says so", "does"), "another meaning": ask(id, "one", "says", "does more"),
	} {
		if other == first {
			t.Errorf("%s is taken for the first", name)
		}
	}
	if err := asks.Reject(t.Context(), editor(w), id, first, "owner"); err != nil {
		t.Fatal(err)
	}
	if ask(id, "one", "says", "does") == first {
		t.Error("what was rejected comes back")
	}
}
