package authority_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/statuslist"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// staffed gives the Hotel members, and everything else that a Brand has.
func staffed(t *testing.T, w *authoritytest.World) (owner uuid.UUID) {
	t.Helper()
	now := w.Clock.Now()
	for i, role := range tenants.Roles() {
		id := uuid.New()
		if role == tenants.Owner {
			owner = id
		}
		email := fmt.Sprintf("%s@staff.example", role)
		w.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, $2, $2, $3, 'en', $4)`, id, email, string(role), now)
		w.Exec(t, `INSERT INTO memberships VALUES ('harbor-hotel', $1, $2, $3, $3)`, id, string(role), now)
		w.Exec(t, `INSERT INTO invitations (brand_id, id, email, role, invited_by, created_at, expires_at)
			VALUES ('harbor-hotel', gen_random_uuid(), $1, 'viewer', $2, $3, $3::timestamptz + interval '90 days')`, fmt.Sprintf("%d@asked.example", i), id, now)
	}
	for _, q := range []string{
		`INSERT INTO login_connections (brand_id, id, issuer, client_id, client_secret_sealed, live, created_at)
		 VALUES ('harbor-hotel', gen_random_uuid(), 'https://idp.example', 'c', 'sealed-login', true, $1)`,
		`INSERT INTO api_keys (brand_id, id, name, rights, secret_hash, created_at) VALUES ('harbor-hotel', 'aaaaaaaaaaaa', 'key of Otto', '{admin}', 'x', $1)`,
		`INSERT INTO webhook_endpoints (brand_id, id, url, events, secret_sealed, enabled, created_at)
		 VALUES ('harbor-hotel', 'aaaaaaaaaaaa', 'https://hook.example', '{grant.created}', 'sealed-hook', true, $1)`,
		`INSERT INTO webhook_deliveries (brand_id, id, endpoint_id, seq, state, since, due_at)
		 SELECT 'harbor-hotel', gen_random_uuid(), 'aaaaaaaaaaaa', seq, 'pending', $1, $1 FROM audit_events WHERE brand_id = 'harbor-hotel'`,
		`INSERT INTO login_tries (brand_id, id, connection_id, shown, state_hash, try_sealed, began_at, ends_at)
		 VALUES ('harbor-hotel', gen_random_uuid(), gen_random_uuid(), 'x', 'x', 'sealed-try', $1, $1)`,
		`INSERT INTO agent_endpoints (brand_id, url, secret_sealed, changed_at) VALUES ('harbor-hotel', 'https://otto.example', 'sealed-agent', $1)`,
		`INSERT INTO webhook_lines (brand_id, endpoint_id, rest_until) VALUES ('harbor-hotel', 'aaaaaaaaaaaa', $1)`,
		`INSERT INTO pending_changes (brand_id, id, kind, asked_by, channel, asked_at, expires_at, diff, payload_sealed, state)
		 VALUES ('harbor-hotel', gen_random_uuid(), 'k', 'otto', 'api', $1, $1, '{}', 'x', 'pending')`,
		`INSERT INTO brand_domains (brand_id, host, token, added_at) VALUES ('harbor-hotel', 'hotel.example', 't', $1)`,
		`INSERT INTO detail_types SELECT 'harbor-hotel', 'stay_charge', 'extras:order', '{}', 'Words', '{}' WHERE $1::timestamptz IS NOT NULL`,
		`INSERT INTO brand_logos VALUES ('harbor-hotel', 'x', 'h', $1)`,
		`INSERT INTO brand_agents VALUES ('harbor-hotel', 'https://agent.example', true, $1)`,
		`INSERT INTO code_attempts VALUES ('harbor-hotel', 'session', 'x', $1, 1)`,
		`INSERT INTO recoveries (brand_id, id, person_id, asked_at, due_at, token)
		 SELECT 'harbor-hotel', gen_random_uuid(), id, $1, $1::timestamptz + interval '72 hours', 't' FROM people LIMIT 1`,
		`INSERT INTO one_time_links (hash, purpose, email, data, created_at, expires_at)
		 VALUES ('x', 'invitation', 'new@asked.example', '{"brand": "harbor-hotel"}', $1, $1::timestamptz + interval '90 days')`,
	} {
		w.Exec(t, q, now)
	}
	w.Exec(t, `UPDATE brands SET organisation = 'Otto Ltd', support_url = 'https://otto.example' WHERE id = 'harbor-hotel'`)
	return owner
}

// B92, R66: from the moment a Brand is closed nothing that it paid out counts, even
// where ending its grants is broken off; no other Brand is touched, and closing
// again does the rest. Every member hears of it.
func TestAClosedBrandIsDeadAtOnce(t *testing.T) {
	tn := newTown(t)
	owner := staffed(t, tn.World)
	tn.Exec(t, `CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stopped'; END $$`)
	tn.Exec(t, `CREATE TRIGGER stop BEFORE UPDATE ON grants FOR EACH ROW WHEN (NEW.ended_at IS NOT NULL) EXECUTE FUNCTION stop()`)
	by := authority.ByMember(owner.String())
	if _, err := tn.rules.Close(t.Context(), tn.Hotel.ID, by); err == nil {
		t.Fatal("nothing was broken off")
	}
	if n := tn.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != 0 {
		t.Fatalf("%d grants have ended", n)
	}
	tn.Hotel = tn.Reload(t, tn.Hotel.ID)
	tn.dead("broken off", "hotel")
	lists, err := tn.rules.StatusLists(t.Context(), tn.Hotel.ID)
	if err != nil || len(lists) == 0 {
		t.Fatal(err)
	}
	for _, d := range tn.all {
		if d.brand.ID == tn.Hotel.ID {
			if got := statusAt(t, tn.World, tn.rules, d); got != statuslist.Invalid {
				t.Errorf("a token of the closed Brand is %v", got)
			}
		} else if got := statusAt(t, tn.World, tn.rules, d); got != statuslist.Valid {
			t.Errorf("a token of the other Brand is %v", got)
		}
	}
	if n := tn.Count(t, `SELECT count(*) FROM notices WHERE kind = 'brand.closed' AND brand_id = 'harbor-hotel' AND detail->>'by' = $1`, owner.String()); n != len(tenants.Roles()) {
		t.Errorf("%d members are told", n)
	}
	if n := tn.Count(t, `SELECT count(*) FROM invitations WHERE withdrawn_at IS NULL`); n != 0 {
		t.Errorf("%d invitations are open", n)
	}
	tn.Exec(t, `DROP TRIGGER stop ON grants`)
	if n, err := tn.rules.Close(t.Context(), tn.Hotel.ID, by); err != nil || n != 4 {
		t.Errorf("the rest: %d, %v", n, err)
	}
	if n := tn.Count(t, `SELECT count(*) FROM notices WHERE kind = 'brand.closed'`); n != len(tenants.Roles()) {
		t.Errorf("told twice: %d", n)
	}
	if n := tn.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'brand.closed' AND actor_id = $1`, owner.String()); n != 1 {
		t.Errorf("%d facts", n)
	}
	// Nobody opens it again.
	for _, s := range []tenants.State{tenants.Active, tenants.Paused, tenants.Pending} {
		if err := tenants.SetState(t.Context(), tn.DB, tn.Hotel.ID, s); !errors.Is(err, tenants.ErrClosed) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func statusAt(t *testing.T, w *authoritytest.World, a *authority.Authority, d *delegation) statuslist.Status {
	t.Helper()
	var list, idx int
	err := w.Owner.QueryRow(t.Context(), `SELECT status_list, status_idx FROM grants WHERE id = $1`, d.tokens.GrantID).Scan(&list, &idx)
	if err != nil {
		t.Fatal(err)
	}
	if list != 0 {
		t.Fatalf("list %d", list)
	}
	_, answers := read(t, w, d.brand, listed(t, a, d.brand))
	got, _ := answers.At(idx)
	return got
}

// snapshot counts every table's rows by Brand and digests them.
func snapshot(t *testing.T, w *authoritytest.World, brand string) map[string]string {
	t.Helper()
	rows, err := w.Owner.Query(t.Context(), `
		SELECT c.relname::text FROM pg_class c
		  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'brand_id' AND NOT a.attisdropped
		 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	out := make(map[string]string)
	for _, table := range tables {
		var text string
		q := `SELECT count(*) || ' ' || coalesce(md5(string_agg(x::text, '' ORDER BY x::text)), '') FROM ` + table + ` x WHERE brand_id = $1`
		if err := w.Owner.QueryRow(t.Context(), q, brand).Scan(&text); err != nil {
			t.Fatal(err)
		}
		out[table] = text
	}
	return out
}

// left are the tables in which a Brand that is gone still has rows.
var left = []string{"audit_events", "audit_heads", "brand_scopes", "brand_urls", "detail_types", "grants", "log_checkpoints", "log_heads", "log_roots", "receipts", "signing_keys"}

// leaving is a Brand with everything in it that is closed now.
func leaving(t *testing.T) (*authoritytest.World, *authority.Authority, string) {
	t.Helper()
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tip := authoritytest.StayCharge()
	tip.Type = "tip"
	w.Detailed(t, tip)
	detailed(t, w, a, "["+of("tip", "5")+"]", "extras:order")
	tokens := lives(t, w, a, "guest-1")
	lives(t, w, a, "guest-2")
	staffed(t, w)
	w.Exec(t, `UPDATE grants SET details = '[{"scope": "bookings:read", "detail": {"type": "x", "shop": "otto"}}]'`)
	if _, err := a.Checkpoint(t.Context(), w.Hotel); err != nil {
		t.Fatal(err)
	}
	s := authoritytest.Begin(t, a, w.Shop, authoritytest.Alex, "orders:read")
	authoritytest.Approve(t, a, w.Shop, s, "guest-1", "orders:read")
	if _, err := w.Keys.Prepare(t.Context(), w.Hotel.ID, "local", signing.ES256); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Close(t.Context(), w.Hotel.ID, authority.ByOperator()); err != nil {
		t.Fatal(err)
	}
	return w, a, tokens.JWS
}

// R66, B76: for 30 days everything can still be exported. Then what is personal
// goes, once and for good; keys and chain stay as they are for ever, and another
// Brand is not touched.
func TestAClosedBrandIsEmptiedInTheEnd(t *testing.T) {
	w, a, jws := leaving(t)
	remembered, err := a.VerifyTrail(t.Context(), w.Hotel.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	hotel, shop := snapshot(t, w, "harbor-hotel"), snapshot(t, w, "fern-and-fell")
	jwks, err := w.NewKeys().JWKS(t.Context(), w.Hotel.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(tenants.ClosedFor - time.Second)
	if closed, err := a.Leave(t.Context(), w.Hotel.ID); err != nil || !closed {
		t.Fatal(closed, err)
	}
	if now := snapshot(t, w, "harbor-hotel"); !maps.Equal(now, hotel) {
		t.Errorf("too early: %v", now)
	}
	w.Clock.Advance(time.Second)
	for range 2 {
		if closed, err := a.Leave(t.Context(), w.Hotel.ID); err != nil || !closed {
			t.Fatal(closed, err)
		}
		if closed, err := a.Leave(t.Context(), w.Shop.ID); err != nil || closed {
			t.Fatal(closed, err)
		}
	}
	gone(t, w)
	if now := snapshot(t, w, "fern-and-fell"); !maps.Equal(now, shop) {
		t.Errorf("the other Brand: %v, before %v", now, shop)
	}
	// What was signed verifies, with the document that always was.
	keys := w.NewKeys()
	after, err := keys.JWKS(t.Context(), w.Hotel.ID)
	if err != nil || string(after.Body) != string(jwks.Body) {
		t.Errorf("%s, %v", after.Body, err)
	}
	if _, err := keys.Verify(t.Context(), w.Hotel.ID, signing.TypToken, jws); err != nil {
		t.Errorf("an old signature: %v", err)
	}
	if _, err := keys.Sign(t.Context(), w.Hotel.ID, signing.TypToken, []byte(`{}`)); !errors.Is(err, signing.ErrUnavailable) {
		t.Errorf("it still signs: %v", err)
	}
	logIsSound(t, w, a, 0)
	proof, err := a.VerifyTrail(t.Context(), w.Hotel.ID, &remembered.Head)
	if err != nil || proof.Erased != remembered.Events || proof.Events != proof.Erased+1 {
		t.Errorf("%+v, %v", proof, err)
	}
	if _, err := a.StatusList(t.Context(), w.Hotel.ID, 0); !errors.Is(err, authority.ErrUnknown) {
		t.Errorf("status list: %v", err)
	}
}

// gone checks that nothing personal is left of the Hotel.
func gone(t *testing.T, w *authoritytest.World) {
	t.Helper()
	for table, rows := range snapshot(t, w, "harbor-hotel") {
		if slices.Contains(left, table) == strings.HasPrefix(rows, "0 ") {
			t.Errorf("%s: %s rows", table, rows)
		}
	}
	for _, words := range []string{"guest-1", "guest-2", "otto", "Otto", "sealed-", "asked.example"} {
		if at := traces(t, w, words); len(at) > 0 && !slices.Equal(at, []string{"browser_sessions.data"}) { // gone within the hour, whosever they are
			t.Errorf("%q still stands in %v", words, at)
		}
	}
}

// R66: the service dies at every step on the way, and begins again: it comes to
// the same.
func TestLeavingGoesOnWhereItStopped(t *testing.T) {
	w, a, _ := leaving(t)
	w.Clock.Advance(tenants.ClosedFor)
	w.Exec(t, `CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stopped'; END $$`)
	stopped := 0
	for table, rows := range snapshot(t, w, "harbor-hotel") {
		if strings.HasPrefix(rows, "0 ") || slices.Contains([]string{"brand_scopes", "brand_urls", "detail_types", "audit_heads", "log_heads", "log_roots", "log_checkpoints"}, table) {
			continue
		}
		w.Exec(t, `CREATE TRIGGER a_stop BEFORE UPDATE OR DELETE ON `+table+` FOR EACH ROW EXECUTE FUNCTION stop()`)
		_, err := a.Leave(t.Context(), w.Hotel.ID)
		if err != nil {
			stopped++
		}
		w.Exec(t, `DROP TRIGGER a_stop ON `+table)
		if n := w.Count(t, `SELECT count(*) FROM brands WHERE emptied_at IS NOT NULL`); err != nil && n != 0 {
			t.Errorf("%s: it says that it is empty", table)
		}
	}
	w.Exec(t, `CREATE TRIGGER a_stop BEFORE UPDATE OF emptied_at ON brands FOR EACH ROW EXECUTE FUNCTION stop()`)
	if _, err := a.Leave(t.Context(), w.Hotel.ID); err == nil && stopped > 0 {
		stopped++
	}
	w.Exec(t, `DROP TRIGGER a_stop ON brands`)
	if stopped == 0 {
		t.Error("it was never stopped")
	}
	if _, err := a.Leave(t.Context(), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	gone(t, w)
	if _, err := a.VerifyTrail(t.Context(), w.Hotel.ID, nil); err != nil {
		t.Error(err)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'brand.emptied'`); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// A Brand that was closed before there was a delay, or by hand, has it from when
// that is seen; and what it still allows ends.
func TestABrandClosedByOtherMeansLeavesToo(t *testing.T) {
	tn := newTown(t)
	if err := tenants.SetState(t.Context(), tn.DB, tn.Hotel.ID, tenants.Closed); err != nil {
		t.Fatal(err)
	}
	tn.Clock.Advance(10 * tenants.ClosedFor)
	for range 2 {
		if closed, err := tn.rules.Leave(t.Context(), tn.Hotel.ID); err != nil || !closed {
			t.Fatal(closed, err)
		}
	}
	if n := tn.Count(t, `SELECT count(*) FROM grants WHERE brand_id = 'harbor-hotel' AND ended_at IS NULL`); n != 0 {
		t.Errorf("%d grants live", n)
	}
	if n := tn.Count(t, `SELECT count(*) FROM brands WHERE emptied_at IS NOT NULL`); n != 0 {
		t.Error("emptied without a delay")
	}
	tn.Clock.Advance(tenants.ClosedFor)
	if _, err := tn.rules.Leave(t.Context(), tn.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	if n := tn.Count(t, `SELECT count(*) FROM brands WHERE emptied_at IS NOT NULL`); n != 1 {
		t.Error("not emptied")
	}
}

// B92: id and URLs of a Brand that is gone are taken for ever, as any other's.
func TestNothingOfAGoneBrandIsGivenAgain(t *testing.T) {
	w, a, _ := leaving(t)
	w.Clock.Advance(tenants.ClosedFor)
	if _, err := a.Leave(t.Context(), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	owner := uuid.New()
	w.Exec(t, `INSERT INTO people (id, email, email_typed, name, language, created_at) VALUES ($1, 'n@x.example', 'n@x.example', 'N', 'en', $2)`, owner, w.Clock.Now())
	edit := a.Editor(authority.ByOperator())
	for _, id := range []tenants.BrandID{w.Hotel.ID, w.Shop.ID} {
		err := tenants.Create(t.Context(), w.DB, tenants.NewBrand{ID: id, Name: "Harbor Hotel", Provider: "demo", PublicURL: authoritytest.PublicURL}, owner, nil, w.Clock.Now())
		if !errors.Is(err, tenants.ErrBrandTaken) {
			t.Errorf("%s: %v", id, err)
		}
	}
	// The Shop had another address before; neither that nor the Hotel's is free.
	w.Exec(t, `UPDATE brands SET interface_url = 'https://old.example', issuer = 'https://old.example/oauth', mode = 'split' WHERE id = 'fern-and-fell'`)
	w.Exec(t, `UPDATE brands SET interface_url = 'https://new.example', issuer = 'https://new.example/oauth' WHERE id = 'fern-and-fell'`)
	record := func(id tenants.BrandID) error {
		return tenants.Create(t.Context(), w.DB, tenants.NewBrand{ID: id, Name: "N", Provider: "demo", PublicURL: authoritytest.PublicURL}, owner,
			func(context.Context, pgx.Tx, tenants.BrandID, uuid.UUID, string, map[string]any) error { return nil }, w.Clock.Now())
	}
	if err := record("third"); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `UPDATE brands SET state = 'active', proven = true WHERE id = 'third'`)
	for _, host := range []string{"old.example", "new.example", "countersign.example"} {
		w.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method) VALUES ('third', $1, 't', $2, $2, 'dns')`, host, w.Clock.Now())
	}
	site := tenants.Site{PublicURL: "https://elsewhere.example"}
	for _, url := range []string{"https://old.example", "https://new.example", w.Hotel.InterfaceURL} {
		err := tenants.SetInterface(t.Context(), edit, site, "third", tenants.Interface{Mode: tenants.Fronted, URL: url}, "third", false)
		var p tenants.Problems
		if !errors.As(err, &p) || len(p) != 1 || p[0].Say != "is another Brand's" {
			t.Errorf("%s: %v", url, err)
		}
	}
	// The Shop itself may go back.
	w.Exec(t, `UPDATE brands SET interface_url = 'https://old.example', issuer = 'https://old.example/oauth' WHERE id = 'fern-and-fell'`)
}
