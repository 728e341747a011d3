package tenants_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// Tables that belong to no Brand, each named on purpose: whoever adds a table
// either fences it or says here why not.
var unfenced = map[string]string{
	"providers": "who runs Brands", "agents": "the same everywhere", "agent_logos": "of agents", "agent_applications": "to the operator",
	"browser_sessions": "of a browser, by the hash of its secret", "one_time_links": "by the hash of a secret",
	"spent_forms": "random numbers",
	"people":      "may run several Brands", "passkeys": "of a person", "recovery_codes": "of a person",
	"river_job": "the queue carries ids", "river_leader": "", "river_migration": "", "river_notification": "", "river_queue": "",
	"goose_db_version": "the number of the schema",
}

// Views run with their owner's rights, so each is a hole in the wall.
var holes = map[string]string{
	"brand_ids": "upkeep walks over all Brands", "agent_states": "agents are nobody's",
	"agent_standing": "names both the Brand and the agent", "agent_audiences": "read for one agent",
	"person_brands": "one person's memberships", "person_recoveries": "those who name the person",
	"provider_brands": "for the operator", "agent_pictures": "the same at every Brand, by hash",
}

// R62, B90: the wall stands around every table that a Brand owns, with a row of
// another Brand behind it, and whatever rights the service may be given one day.
func TestSecondWallStandsAroundEveryTable(t *testing.T) {
	w := authoritytest.New(t)
	tables, faults := fencedTables(t, w)
	if len(tables) < 40 || !slices.ContainsFunc(tables, func(f fenced) bool { return f.name == "brands" }) {
		t.Fatalf("only %d tables are fenced", len(tables))
	}
	faults = append(faults, wallFaults(t, w, tables)...)
	for _, f := range faults {
		t.Error(f)
	}
}

// The test above, tested: each way to leave a hole turns it red.
func TestSecondWallIsMissedWhereItIsTakenDown(t *testing.T) {
	for _, tt := range []struct {
		name, sql, where string
		felt             bool // by a statement without a WHERE, and not only read in the catalogue
	}{
		{"no policy", `DROP POLICY brand_fence ON grants`, "grants", true},
		{"switched off", `ALTER TABLE receipts DISABLE ROW LEVEL SECURITY`, "receipts", true},
		{"not for the owner", `ALTER TABLE turns NO FORCE ROW LEVEL SECURITY`, "turns", false},
		{"the wrong rows", `ALTER POLICY brand_fence ON journeys USING (brand_id <> '')`, "journeys", true},
		{"read by one rule, written by another", `ALTER POLICY brand_fence ON api_keys WITH CHECK (true)`, "api_keys", true},
		{"one more way in", `CREATE POLICY support ON consents FOR SELECT USING (true)`, "consents", true},
		{"one more way in, for the service", `CREATE POLICY own_rows ON notices TO countersign_app USING (true)`, "notices", true},
		{"brands", `ALTER POLICY brand_fence ON brands USING (true)`, "brands", true},
		{"a new table", `CREATE TABLE favourites (brand_id text NOT NULL REFERENCES brands, agent text)`, "favourites", true},
		{"a new table that names its Brand otherwise", `CREATE TABLE favourites (owner text NOT NULL)`, "favourites", false},
		{"a new view", `CREATE VIEW all_grants AS SELECT * FROM grants`, "all_grants", false},
		{"emptied past every policy", `GRANT TRUNCATE ON usage_days TO countersign_app`, "usage_days", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := authoritytest.New(t)
			w.Exec(t, tt.sql)
			tables, faults := fencedTables(t, w)
			if !slices.ContainsFunc(faults, func(f string) bool { return strings.HasPrefix(f, tt.where+":") }) {
				t.Errorf("nothing is said of %s: %q", tt.where, faults)
			}
			tables = slices.DeleteFunc(tables, func(f fenced) bool { return f.name != tt.where })
			if felt := wallFaults(t, w, tables); tt.felt != (len(felt) > 0) {
				t.Errorf("without a WHERE this was felt: %q", felt)
			}
		})
	}
}

// fenced is a table that a Brand owns, and the column that says which.
type fenced struct{ name, key string }

// fencedTables reads from the catalogue what is fenced and how, and what is wrong
// with it.
func fencedTables(t *testing.T, w *authoritytest.World) (tables []fenced, faults []string) {
	t.Helper()
	rows, err := w.Owner.Query(t.Context(), `
		SELECT c.relname::text AS name, c.relkind = 'v' AS view,
		       c.relrowsecurity AS on, c.relforcerowsecurity AS forced,
		       EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'brand_id' AND NOT a.attisdropped) AS branded,
		       has_table_privilege('countersign_app', c.oid, 'TRUNCATE, REFERENCES, TRIGGER') AS above,
		       ARRAY(SELECT concat_ws(' ', p.policyname, p.cmd, p.permissive,
		                              CASE WHEN p.roles = ARRAY[pg_get_userbyid(c.relowner)] THEN 'owner' ELSE p.roles::text END,
		                              p.qual, 'CHECK ' || p.with_check)
		               FROM pg_policies p WHERE p.schemaname = 'public' AND p.tablename = c.relname ORDER BY 1) AS policies
		  FROM pg_class c
		 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relnamespace = 'public'::regnamespace
		 ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Name                             string
		View, On, Forced, Branded, Above bool
		Policies                         []string
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		t.Fatal(err)
	}
	gone := maps.Clone(unfenced)
	maps.Copy(gone, holes)
	for _, r := range all {
		say := func(what string) { faults = append(faults, r.Name+": "+what) }
		delete(gone, r.Name)
		if r.Above {
			say("the service may do what no policy holds back")
		}
		if r.View {
			if _, known := holes[r.Name]; !known {
				say("a view that nobody gave leave to see past the fence")
			}
			continue
		}
		if _, known := unfenced[r.Name]; known && !r.Branded {
			continue
		}
		f := fenced{r.Name, "brand_id"}
		if r.Name == "brands" {
			f.key = "id"
		} else if !r.Branded {
			say("neither a Brand's nor known to be nobody's")
			continue
		}
		tables = append(tables, f)
		// brands alone is not forced on its owner, whose view brand_ids upkeep reads.
		if !r.On || !r.Forced && r.Name != "brands" {
			say("row-level security is not on, or not forced")
		}
		want := []string{"brand_fence ALL PERMISSIVE {public} (" + f.key + " = current_setting('countersign.brand'::text, true))"}
		switch r.Name { // what the owner's own functions and views read
		case "memberships", "recoveries":
			want = append(want, "own_rows SELECT PERMISSIVE owner true")
		case "brand_urls":
			want = append(want, "own_rows ALL PERMISSIVE owner true")
		}
		if !slices.Equal(r.Policies, want) {
			say(fmt.Sprintf("policies %q, want %q", r.Policies, want))
		}
	}
	for name := range gone {
		faults = append(faults, name+": is on a list and not in the database")
	}
	return tables, faults
}

// wallFaults puts a row of each Brand into every fenced table, gives the service
// every right there is, and lets it forget every WHERE.
func wallFaults(t *testing.T, w *authoritytest.World, tables []fenced) (faults []string) {
	t.Helper()
	ctx := t.Context()
	mine, other := w.Hotel.ID, w.Shop.ID
	for _, f := range tables {
		open(t, w, f)
		insert := insertOf(t, w, f)
		if f.key == "brand_id" {
			w.Exec(t, `DELETE FROM `+f.name)
			w.Exec(t, insert, mine)
			w.Exec(t, insert, other)
		}
		say := func(format string, args ...any) {
			faults = append(faults, f.name+": "+fmt.Sprintf(format, args...))
		}
		// refused is whether the wall, and nothing else, held a statement back.
		refused := func(err error) bool { return err != nil && strings.Contains(err.Error(), "row-level security") }
		before := snapshot(t, w, f, other)
		for brand, want := range map[tenants.BrandID]int{mine: 1, "": 0, "nobody": 0} {
			n, err := tenants.One[struct{ Mine, Other int }](ctx, w.DB, brand, `
				SELECT count(*) FILTER (WHERE `+f.key+` = 'harbor-hotel') AS mine,
				       count(*) FILTER (WHERE `+f.key+` <> 'harbor-hotel') AS other FROM `+f.name, nil)
			if err != nil || n.Mine != want || n.Other != 0 {
				say("for Brand %q it shows %d rows of harbor-hotel and %d of others, %v", brand, n.Mine, n.Other, err)
			}
			changed, err := w.DB.Exec(ctx, brand, `UPDATE `+f.name+` SET `+f.key+` = `+f.key, nil)
			if err != nil || changed != int64(want) {
				say("for Brand %q %d rows were changed, %v", brand, changed, err)
			}
		}
		if n := unnamed(t, w, f); n != 0 {
			say("it shows %d rows to nobody", n)
		}
		if _, err := w.DB.Exec(ctx, mine, `UPDATE `+f.name+` SET `+f.key+` = 'a-third'`, nil); !refused(err) {
			say("a row was given away: %v", err)
		}
		if err := insertAs(ctx, w, mine, insert, "a-third"); !refused(err) {
			say("a row was written for another Brand: %v", err)
		}
		deleted, err := w.DB.Exec(ctx, mine, `DELETE FROM `+f.name, nil)
		if err != nil || deleted != 1 {
			say("%d rows were deleted, %v", deleted, err)
		}
		if after := snapshot(t, w, f, other); after != before || !strings.Contains(after, string(other)) {
			say("the other Brand's rows were %q and are %q", before, after)
		}
	}
	return faults
}

// open takes from a table, in this test's own database, all that might refuse a
// row before the wall does: rights, checks, keys of other tables, triggers.
func open(t *testing.T, w *authoritytest.World, f fenced) {
	t.Helper()
	w.Exec(t, `GRANT SELECT, INSERT, UPDATE, DELETE ON `+f.name+` TO countersign_app`)
	w.Exec(t, `ALTER TABLE `+f.name+` DISABLE TRIGGER ALL`)
	rows, err := w.Owner.Query(t.Context(), `SELECT conname::text FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'c'`, f.name)
	if err != nil {
		t.Fatal(err)
	}
	checks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		w.Exec(t, `ALTER TABLE `+f.name+` DROP CONSTRAINT `+pgx.Identifier{c}.Sanitize())
	}
}

// insertOf makes the statement that writes the least row there may be; $1 is the
// Brand, and stands in every text, so that what is unique among Brands is so.
func insertOf(t *testing.T, w *authoritytest.World, f fenced) string {
	t.Helper()
	rows, err := w.Owner.Query(t.Context(), `
		SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type
		  FROM pg_attribute a
		 WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped
		   AND (a.attname = $2 OR a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = '')
		 ORDER BY a.attnum`, f.name, f.key)
	if err != nil {
		t.Fatal(err)
	}
	type column struct{ Name, Type string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByName[column])
	if err != nil {
		t.Fatal(err)
	}
	var names, values []string
	for _, c := range columns {
		v := "$1::text"
		switch {
		case strings.HasSuffix(c.Type, "[]"):
			v = "'{}'::" + c.Type
		case c.Type == "bytea":
			v = "convert_to($1, 'UTF8')"
		case c.Type == "uuid":
			v = "gen_random_uuid()"
		case c.Type == "boolean":
			v = "true"
		case c.Type == "json", c.Type == "jsonb":
			v = "'{}'::" + c.Type
		case c.Type == "date", strings.HasPrefix(c.Type, "timestamp"):
			v = "now()"
		case c.Type == "integer", c.Type == "bigint", c.Type == "smallint", c.Type == "double precision":
			v = "1"
		}
		names, values = append(names, pgx.Identifier{c.Name}.Sanitize()), append(values, v)
	}
	return `INSERT INTO ` + f.name + ` (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(values, ", ") + `)`
}

func insertAs(ctx context.Context, w *authoritytest.World, as tenants.BrandID, insert string, whose tenants.BrandID) error {
	return w.DB.Tx(ctx, as, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insert, whose)
		return err
	})
}

// snapshot is what a Brand's rows of a table are, seen from above.
func snapshot(t *testing.T, w *authoritytest.World, f fenced, brand tenants.BrandID) string {
	t.Helper()
	var s string
	err := w.Owner.QueryRow(t.Context(), `SELECT coalesce(string_agg(x::text, E'\n' ORDER BY x::text), '') FROM `+f.name+` x WHERE `+f.key+` = $1`, brand).Scan(&s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unnamed counts the rows that a connection sees which never named a Brand.
func unnamed(t *testing.T, w *authoritytest.World, f fenced) (n int) {
	t.Helper()
	if err := w.DB.Pool().QueryRow(t.Context(), `SELECT count(*) FROM `+f.name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
