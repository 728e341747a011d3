package tenants_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// newKey is a keeper of secrets whose newest key is a mark in front.
type newKey struct{}

var mark = []byte("newest:")

func (newKey) Rewrap(_ context.Context, _ tenants.BrandID, _ string, sealed []byte) ([]byte, bool, error) {
	if bytes.HasPrefix(sealed, mark) {
		return sealed, false, nil
	}
	return append(bytes.Clone(mark), sealed...), true, nil
}

const moves = "moves"

// columns are all that hold bytes, or sealed in their names: those whose values
// move to the newest key, and why the others do not.
var columns = map[string]string{
	"login_connections.client_secret_sealed": moves,
	"webhook_endpoints.secret_sealed":        moves,
	"webhook_endpoints.former_sealed":        moves,
	"agent_endpoints.secret_sealed":          moves,
	"agent_endpoints.former_sealed":          moves,
	"pending_changes.payload_sealed":         moves,

	"local_keys.sealed":                "the keyring for development, under the master key alone; Vault's keys replace it",
	"device_requests.user_code_sealed": "under the master key alone, for the ten minutes of a request",
	"login_tries.try_sealed":           "the ten minutes of a test login, which is begun again",
	"sessions.data":                    "a session's life: a try sealed in it is begun again",
	"console_sessions.data":            "a session's life: a try sealed in it is begun again",
}

// unsealed are columns of bytes that hold no secret we could read: hashes, keys that
// are public, pictures, answers.
const unsealed = `hash|mac|salt|digest|png|^passkeys\.id$|^links\.|audit_checkpoints|erasures\.key|api_replies\.body|browser|^code_attempts\.key$|^river_|^log_heads\.|^log_roots\.root$|^(receipts|turns_accepted)\.content$`

// Every sealed value that lasts is brought under the newest key. The columns are
// asked of the database: whoever adds one has to say here what becomes of it.
func TestNoSealedColumnIsForgotten(t *testing.T) {
	w := authoritytest.New(t)
	ctx, id := t.Context(), w.Hotel.ID
	edit := w.Authority(nil).Editor(authority.ByOperator())
	const q = `
		SELECT table_name || '.' || column_name FROM information_schema.columns c
		  JOIN information_schema.tables USING (table_schema, table_name)
		 WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
		   AND (data_type = 'bytea' OR column_name LIKE '%sealed%')
		   AND (column_name LIKE '%sealed%' OR table_name || '.' || column_name !~ $1)`
	rows, err := w.Owner.Query(ctx, q, unsealed)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range found {
		if columns[column] == "" {
			t.Errorf("%s: is it sealed, and who brings it under a new key?", column)
		}
	}

	login := tenants.LoginConnection{ID: uuid.New(), Issuer: "https://idp.example", ClientID: "c", ClientSecret: "hush", SubjectClaim: "sub", Scopes: []string{"openid"}}
	hook, _, errHook := tenants.CreateWebhook(ctx, edit, w.Master, tenants.Site{}, id, tenants.WebhookDraft{URL: "https://hotel.example/hook"})
	if errHook != nil {
		t.Fatal(errHook)
	}
	asks := &tenants.Asks{DB: w.DB, Sealer: w.Master, Now: w.Clock.Now, Appliers: tenants.SettingsAppliers(w.DB, tenants.Site{})}
	_, errAsk := asks.AskKey(ctx, edit, id, tenants.KeyDraft{Name: "x", Rights: []tenants.Right{"events"}}, "key", "api")
	_, errTurn := tenants.RotateWebhook(ctx, edit, w.Master, id, hook.ID, time.Hour)
	_, errAgent := tenants.SetAgentEndpoint(ctx, edit, w.Master, tenants.Site{}, id, "https://hotel.example/turns")
	_, errSecret := tenants.RotateAgentSecret(ctx, w.DB, edit, w.Master, id, time.Hour)
	for _, err := range []error{errAgent, errSecret, tenants.SaveLogin(ctx, w.DB, w.Master, id, login, w.Clock.Now()), errAsk, errTurn} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{6, 0} {
		if n, err := tenants.Rewrap(ctx, w.DB, newKey{}, id); err != nil || n != want {
			t.Errorf("%d moved, %v; want %d", n, err, want)
		}
	}
	for column, what := range columns {
		if what != moves {
			continue
		}
		table, name, _ := bytes.Cut([]byte(column), []byte("."))
		count := func(where string) int {
			return w.Count(t, fmt.Sprintf(`SELECT count(*) FROM %s WHERE length(%s) > 0 AND %s`, table, name, where))
		}
		if all, old := count("true"), count(fmt.Sprintf("position('newest:'::bytea IN %s) <> 1", name)); all == 0 || old > 0 {
			t.Errorf("%s: %d values, %d of them under the old key", column, all, old)
		}
	}
}
