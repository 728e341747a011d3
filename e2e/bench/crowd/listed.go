package crowd

import (
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
)

// PerList is how many indexes of a status list are taken before the next begins.
const PerList = authority.StatusListSize / 2

// Listed puts n living grants, all of one agent, into the Hotel, each with an
// index in a status list: PerList of them in each but the last. One in a hundred
// has been voided.
func Listed(tb testing.TB, w *authoritytest.World, agent string, n int) {
	tb.Helper()
	// While a million rows come in, what keeps others' rows right is only dear.
	for _, drop := range []string{
		"grants DROP CONSTRAINT grants_brand_id_fkey",
		"status_entries DROP CONSTRAINT status_entries_brand_id_fkey",
		"status_entries DROP CONSTRAINT status_entries_brand_id_list_fkey",
	} {
		w.Exec(tb, `ALTER TABLE `+drop)
	}
	for _, index := range []string{
		"grants_one_living", "grants_running_out", "grants_by_agent", "grants_by_subject", "grants_by_list",
		"status_entries_by_grant",
	} {
		var definition string
		err := w.Owner.QueryRow(tb.Context(), `SELECT pg_get_indexdef($1::regclass)`, index).Scan(&definition)
		if err != nil {
			tb.Fatal(err)
		}
		w.Exec(tb, `DROP INDEX `+index)
		defer w.Exec(tb, definition)
	}
	const id = `(lpad(to_hex(1800000000000 + n), 12, '0') || '7000' || '8' || substr(md5(n::text), 1, 15))::uuid`
	// An odd factor modulo a power of two meets no index twice, and scatters.
	const place = `n / $3::int AS list, ((n % $3::int)::bigint * 40503 % (2 * $3::int))::int AS idx`
	w.Exec(tb, `
		INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at, status_list, status_idx)
		SELECT $1, `+id+`, $2, 'listed-' || n, 'guest-' || n, $4, $5::timestamptz, $5::timestamptz + interval '30 days', list, idx
		  FROM (SELECT n, `+place+` FROM generate_series(0, $6::int - 1) AS n) AS n`,
		w.Hotel.ID, agent, PerList, scopes, w.Clock.Now(), n)
	w.Exec(tb, `
		INSERT INTO status_lists (brand_id, list, used, version)
		SELECT brand_id, status_list, count(*), 0 FROM grants WHERE brand_id = $1 AND status_list IS NOT NULL GROUP BY 1, 2`, w.Hotel.ID)
	w.Exec(tb, `
		INSERT INTO status_entries (brand_id, list, idx, grant_id, invalid_at)
		SELECT brand_id, status_list, status_idx, id, CASE WHEN status_idx % 100 = 0 THEN created_at END
		  FROM grants WHERE brand_id = $1 AND status_list IS NOT NULL ORDER BY 1, 2, 3`, w.Hotel.ID)
}
