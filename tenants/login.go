package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Sealer encrypts what a Brand entrusts to us, so that a copy of the database
// gives nothing away. The Brand and the purpose are bound into the ciphertext:
// moved to another row, it does not open.
type Sealer interface {
	Seal(ctx context.Context, brand BrandID, purpose string, plain []byte) ([]byte, error)
	Open(ctx context.Context, brand BrandID, purpose string, sealed []byte) ([]byte, error)
}

// LoginConnection is how a Brand's people log in: its OpenID provider, or for
// KindAssertion its own page.
type LoginConnection struct {
	ID           uuid.UUID
	Kind         string
	Issuer       string
	ClientID     string
	ClientSecret string
	Key          *LoginKey // in place of a secret
	SubjectClaim string    // the ID-token claim that is the Brand's id of the person
	Scopes       []string
	Prompt       string
	MaxAge       *int // seconds

	JWKSURI     string // the page's keys
	LoginURL    string // where people sign in
	LoginOrigin string // where assertions come from, and from nowhere else
}

const secretPurpose = "login-connection-secret"

// ErrNoLogin is returned for a Brand that has no live login connection.
var ErrNoLogin = errors.New("brand has no live login connection")

// SaveLogin makes c, which has a secret, the Brand's live login connection; the
// former one is over, and its secret gone.
func SaveLogin(ctx context.Context, db *DB, sealer Sealer, brand BrandID, c LoginConnection, now time.Time) error {
	sealed, err := sealer.Seal(ctx, brand, secretPurpose, []byte(c.ClientSecret))
	if err != nil {
		return fmt.Errorf("seal login secret of %s: %w", brand, err)
	}
	const retire = `UPDATE login_connections SET live = false, ended_at = @now, client_secret_sealed = ''
		 WHERE brand_id = @brand AND live AND id <> @id`
	const save = `
		INSERT INTO login_connections (brand_id, id, issuer, client_id, client_secret_sealed, subject_claim, scopes, live, created_at)
		VALUES (@brand, @id, @issuer, @client, @secret, @claim, @scopes, true, @now)
		ON CONFLICT (brand_id, id) DO UPDATE
		   SET issuer = excluded.issuer, client_id = excluded.client_id,
		       client_secret_sealed = excluded.client_secret_sealed,
		       subject_claim = excluded.subject_claim, scopes = excluded.scopes, live = true,
		       auth = 'secret', public_jwk = NULL, prompt = '', max_age = NULL, ended_at = NULL,
		       kind = 'oidc', jwks_uri = '', login_url = '', login_origin = ''`
	args := pgx.NamedArgs{
		"brand": brand, "id": c.ID, "issuer": c.Issuer, "client": c.ClientID, "secret": sealed,
		"claim": c.SubjectClaim, "scopes": c.Scopes, "now": now,
	}
	err = db.Tx(ctx, brand, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, retire, args); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, save, args)
		return err
	})
	if err != nil {
		return fmt.Errorf("save login of %s: %w", brand, err)
	}
	return nil
}

// Login returns the Brand's live login connection, or ErrNoLogin.
func Login(ctx context.Context, db *DB, sealer Sealer, brand BrandID) (LoginConnection, error) {
	return openLogin(ctx, db, sealer, brand, uuid.Nil)
}

// Candidate returns a connection of the Brand, live or not, for a try; or
// ErrNoLogin.
func Candidate(ctx context.Context, db *DB, sealer Sealer, brand BrandID, id uuid.UUID) (LoginConnection, error) {
	if id == uuid.Nil {
		return LoginConnection{}, ErrNoLogin
	}
	return openLogin(ctx, db, sealer, brand, id)
}

// openLogin opens the connection with the id, or the live one for the zero id.
func openLogin(ctx context.Context, db *DB, sealer Sealer, brand BrandID, id uuid.UUID) (LoginConnection, error) {
	const q = `
		SELECT id, kind, issuer, client_id, client_secret_sealed, subject_claim, scopes, auth, prompt, max_age,
		       jwks_uri, login_url, login_origin
		  FROM login_connections
		 WHERE brand_id = @brand AND ended_at IS NULL
		   AND CASE WHEN @id = '00000000-0000-0000-0000-000000000000'::uuid THEN live ELSE id = @id END`
	type row struct {
		ID                 uuid.UUID `db:"id"`
		Kind               string
		Issuer             string
		ClientID           string
		ClientSecretSealed []byte
		SubjectClaim       string
		Scopes             []string
		Auth               string
		Prompt             string
		MaxAge             *int
		JWKSURI            string `db:"jwks_uri"`
		LoginURL           string `db:"login_url"`
		LoginOrigin        string
	}
	r, err := One[row](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "id": id})
	if errors.Is(err, pgx.ErrNoRows) {
		return LoginConnection{}, ErrNoLogin
	}
	if err != nil {
		return LoginConnection{}, fmt.Errorf("load login of %s: %w", brand, err)
	}
	if r.Kind == KindAssertion { // there is nothing secret about it
		return LoginConnection{
			ID: r.ID, Kind: r.Kind, Issuer: r.Issuer, SubjectClaim: r.SubjectClaim,
			JWKSURI: r.JWKSURI, LoginURL: r.LoginURL, LoginOrigin: r.LoginOrigin,
		}, nil
	}
	secret, err := sealer.Open(ctx, brand, secretPurpose, r.ClientSecretSealed)
	if err != nil {
		return LoginConnection{}, fmt.Errorf("open login secret of %s: %w", brand, err)
	}
	c := LoginConnection{
		ID: r.ID, Kind: r.Kind, Issuer: r.Issuer, ClientID: r.ClientID, SubjectClaim: r.SubjectClaim, Scopes: r.Scopes,
		Prompt: r.Prompt, MaxAge: r.MaxAge,
	}
	if r.Auth == AuthPrivateKey {
		c.Key, err = readLoginKey(secret)
	} else {
		c.ClientSecret = string(secret)
	}
	if err != nil {
		return LoginConnection{}, fmt.Errorf("open login key of %s: %w", brand, err)
	}
	return c, nil
}

// RewrapLogins brings the secrets of all of the Brand's login connections under
// the newest key, and returns how many changed. A secret that somebody replaces
// meanwhile is left as it is: it is under the newest key already.
func RewrapLogins(ctx context.Context, db *DB, to Rewrapper, brand BrandID) (int, error) {
	const list = `SELECT id, client_secret_sealed AS sealed FROM login_connections
		 WHERE brand_id = @brand AND ended_at IS NULL AND kind = 'oidc' ORDER BY id`
	type row struct {
		ID     uuid.UUID `db:"id"`
		Sealed []byte
	}
	rows, err := All[row](ctx, db, brand, list, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return 0, fmt.Errorf("list login secrets of %s: %w", brand, err)
	}
	const save = `
		UPDATE login_connections SET client_secret_sealed = @fresh
		 WHERE brand_id = @brand AND id = @id AND client_secret_sealed = @sealed`
	total := 0
	for _, r := range rows {
		fresh, changed, err := to.Rewrap(ctx, brand, secretPurpose, r.Sealed)
		if err != nil {
			return total, fmt.Errorf("rewrap login secret of %s: %w", brand, err)
		}
		if !changed {
			continue
		}
		n, err := db.Exec(ctx, brand, save, pgx.NamedArgs{"brand": brand, "id": r.ID, "fresh": fresh, "sealed": r.Sealed})
		if err != nil {
			return total, fmt.Errorf("rewrap login secret of %s: %w", brand, err)
		}
		total += int(n)
	}
	return total, nil
}

// Logins finds Brands' live login connections. Each is asked for anew; but while
// the database or whoever keeps the secrets is away, the last one known goes on
// serving, so that people can still log in.
type Logins struct {
	memo Memo[BrandID, LoginConnection]
}

// NewLogins returns a Logins over db.
func NewLogins(db *DB, sealer Sealer, now func() time.Time) *Logins {
	return &Logins{Memo[BrandID, LoginConnection]{
		Stale: outage, Now: now,
		Load: func(ctx context.Context, brand BrandID) (LoginConnection, error) {
			return Login(ctx, db, sealer, brand)
		},
		Missing: func(err error) bool { return errors.Is(err, ErrNoLogin) },
	}}
}

// Login returns the Brand's live login connection, or ErrNoLogin.
func (l *Logins) Login(ctx context.Context, brand BrandID) (LoginConnection, error) {
	return l.memo.Get(ctx, brand)
}
