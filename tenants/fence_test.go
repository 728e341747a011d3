package tenants_test

import (
	"errors"
	"strings"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// The second wall, as the product meets it: a statement that forgot its Brand
// changes only rows of the Brand it was run for. TestSecondWallStandsAroundEveryTable
// goes over all tables.
func TestForgottenWhereChangesOneBrandOnly(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:read")
	s := authoritytest.Begin(t, a, w.Shop, authoritytest.Alex, "orders:read")
	authoritytest.Approve(t, a, w.Shop, s, "7", "orders:read")

	n, err := w.DB.Exec(t.Context(), w.Hotel.ID, `UPDATE grants SET ended_at = now(), end_reason = 'x'`, nil)
	if err != nil || n != 0 {
		t.Errorf("another Brand's grants were ended: %d, %v", n, err)
	}
	_, err = w.DB.Exec(t.Context(), w.Hotel.ID, `INSERT INTO suspended_users VALUES ('fern-and-fell', '7', now())`, nil)
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("a row was written for another Brand: %v", err)
	}
	// The trail can be added to, and neither changed nor shortened.
	for _, q := range []string{`UPDATE audit_events SET event = 'x'`, `DELETE FROM audit_events`, `TRUNCATE audit_events`} {
		if _, err := w.DB.Exec(t.Context(), w.Shop.ID, q, nil); err == nil {
			t.Errorf("%s went through", q)
		}
	}
}

// A pooled connection forgets the Brand it worked for.
func TestConnectionForgetsItsBrand(t *testing.T) {
	w := authoritytest.New(t)
	for range 20 {
		if _, err := tenants.One[struct{ N int }](t.Context(), w.DB, w.Hotel.ID, `SELECT count(*) AS n FROM brand_scopes`, nil); err != nil {
			t.Fatal(err)
		}
		var brand *string
		if err := w.DB.Pool().QueryRow(t.Context(), `SELECT nullif(current_setting('countersign.brand', true), '')`).Scan(&brand); err != nil {
			t.Fatal(err)
		}
		if brand != nil {
			t.Fatalf("the connection still works for %s", *brand)
		}
	}
}

// What a Tx does is undone when it fails.
func TestTxIsAllOrNothing(t *testing.T) {
	w := authoritytest.New(t)
	stop := errors.New("stop")
	err := w.DB.Tx(t.Context(), w.Hotel.ID, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `INSERT INTO suspended_users VALUES ('harbor-hotel', '7', now())`); err != nil {
			return err
		}
		return stop
	})
	if !errors.Is(err, stop) || w.Count(t, `SELECT count(*) FROM suspended_users`) != 0 {
		t.Fatal(err)
	}
}

// R106 (in part), decision 6: the service does not run with a login that sees
// past the fence.
func TestServiceLoginMustBeFenced(t *testing.T) {
	w := authoritytest.New(t)
	if err := w.DB.CheckFence(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tenants.NewDB(w.Owner).CheckFence(t.Context()); err == nil {
		t.Fatal("a superuser passes")
	}
}

// The trail's trigger works with its owner's rights. Whoever holds the service's
// login can neither put heads of his own in front of the real ones nor have them
// moved for a table of his own.
func TestNobodyLendsTheTrailAHead(t *testing.T) {
	w := authoritytest.New(t)
	const fact = `INSERT INTO public.audit_events (brand_id, at, actor, event) VALUES ('harbor-hotel', now(), 'system', $1)`
	w.Exec(t, fact, "first")
	err := w.DB.Tx(t.Context(), w.Hotel.ID, func(tx pgx.Tx) error {
		for _, q := range []string{
			`CREATE TEMP TABLE audit_heads (LIKE public.audit_heads INCLUDING ALL)`,
			`INSERT INTO pg_temp.audit_heads VALUES ('harbor-hotel', 41, 'forged')`,
			`GRANT ALL ON pg_temp.audit_heads TO PUBLIC`,
		} {
			if _, err := tx.Exec(t.Context(), q); err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), fact, "second")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'second' AND seq = 2`); n != 1 {
		t.Error("an event was chained to a head that its writer had made")
	}
	_, err = w.DB.Exec(t.Context(), w.Hotel.ID, `
		WITH x AS (SELECT has_function_privilege('audit_chain()', 'EXECUTE') AS may)
		SELECT 1 / (1 - may::int) FROM x`, nil)
	if err != nil {
		t.Errorf("the service may attach the trail's trigger to tables of its own: %v", err)
	}
}
