package tenants

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The two ways in which a Brand's people sign in.
const (
	KindOIDC      = "oidc"      // at an OpenID provider
	KindAssertion = "assertion" // on the Brand's own page, which says who they are
)

// How we authenticate at a Brand's OpenID provider.
const (
	AuthSecret     = "secret"
	AuthPrivateKey = "private_key_jwt"
)

// Connection is a login connection as it is shown: its secret is write-only.
type Connection struct {
	ID           uuid.UUID `json:"id"`
	Live         bool      `json:"live"` // the other one is a candidate, which is tried
	Kind         string    `json:"kind"` // oidc or assertion
	Issuer       string    `json:"issuer"`
	ClientID     string    `json:"client_id"`
	Auth         string    `json:"auth"` // secret or private_key_jwt; empty for assertion
	SubjectClaim string    `json:"subject_claim"`
	Scopes       []string  `json:"scopes"`
	Prompt       string    `json:"prompt"`
	MaxAge       *int      `json:"max_age"` // seconds; nil: any
	// These three are the Brand's own page: where its keys stand, where people
	// sign in, and the one origin that assertions come from.
	JWKSURI     string    `json:"jwks_uri"`
	LoginURL    string    `json:"login_url"`
	LoginOrigin string    `json:"login_origin"`
	CreatedAt   time.Time `json:"created_at"`
}

// ConnectionDraft is what a Brand says of a connection.
type ConnectionDraft struct {
	Kind     string `json:"kind"` // empty: oidc
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id"`
	Auth     string `json:"auth"` // empty: secret
	// Secret may be empty where the candidate's own is to stay.
	Secret       string   `json:"client_secret"`
	SubjectClaim string   `json:"subject_claim"` // empty: sub
	Scopes       []string `json:"scopes"`        // empty: openid
	Prompt       string   `json:"prompt"`
	MaxAge       *int     `json:"max_age"`
	JWKSURI      string   `json:"jwks_uri"`
	LoginURL     string   `json:"login_url"`
	LoginOrigin  string   `json:"login_origin"` // empty: that of the login URL
}

// ErrNoConnection is returned for a connection that the Brand does not have.
var ErrNoConnection = errors.New("the brand has no such login connection")

const connectionColumns = `id, live, kind, issuer, client_id, auth, subject_claim, scopes, prompt, max_age,
	jwks_uri, login_url, login_origin, created_at`

type connectionRow struct {
	ID           uuid.UUID `db:"id"`
	Live         bool
	Kind         string
	Issuer       string
	ClientID     string `db:"client_id"`
	Auth         string
	SubjectClaim string
	Scopes       []string
	Prompt       string
	MaxAge       *int
	JWKSURI      string `db:"jwks_uri"`
	LoginURL     string `db:"login_url"`
	LoginOrigin  string
	CreatedAt    time.Time
}

// Connections returns the live connection and the candidate, as far as there are.
func Connections(ctx context.Context, db *DB, brand BrandID) ([]Connection, error) {
	const q = `SELECT ` + connectionColumns + ` FROM login_connections
		 WHERE brand_id = @brand AND ended_at IS NULL ORDER BY live DESC`
	rows, err := All[connectionRow](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list login connections of %s: %w", brand, err)
	}
	out := make([]Connection, len(rows))
	for i, r := range rows {
		out[i] = Connection(r)
	}
	return out, nil
}

// tidy fills in what may be left out.
func (d *ConnectionDraft) tidy() {
	if d.Kind == "" {
		d.Kind = KindOIDC
	}
	if d.Kind == KindAssertion {
		d.tidyPage()
		return
	}
	if d.Auth == "" {
		d.Auth = AuthSecret
	}
	if d.SubjectClaim == "" {
		d.SubjectClaim = "sub"
	}
	if len(d.Scopes) == 0 {
		d.Scopes = []string{"openid"}
	}
}

// Check returns every mistake that can be seen without asking the provider. hosts
// are the domains that the Brand has proved; a provider may be anybody's.
func (d ConnectionDraft) Check(site Site, hosts Hosts) Problems {
	d.tidy()
	var p Problems
	p.issuer(d.Issuer, site)
	switch d.Kind {
	case KindOIDC:
		d.checkProvider(&p)
	case KindAssertion:
		d.checkPage(&p, site, hosts)
	default:
		p.oneOf("kind", d.Kind, KindOIDC, KindAssertion)
	}
	return p
}

// issuer checks how the provider, or the Brand's page, calls itself.
func (p *Problems) issuer(raw string, site Site) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.User != nil || len(raw) > longestURL || strings.ContainsAny(raw, "?#"):
		p.add("issuer", "is no issuer URL", "copy the issuer from the provider's own pages, such as https://login.example.com")
		p.kind(NoIssuer)
	case strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/.well-known/openid-configuration"):
		p.add("issuer", "is the address of the discovery document", "take away /.well-known/openid-configuration")
		p.kind(DiscoveryURL)
	case u.Scheme != "https" && (u.Scheme != "http" || !site.AllowLoopback || !loopback(u.Hostname())):
		p.add("issuer", "is not https", "begin it with https://")
		p.kind(NoHTTPS)
	}
}

func (d ConnectionDraft) checkProvider(p *Problems) {
	const longest, mostScopes, longestAge = 255, 20, 30 * 24 * 3600
	p.words("client_id", d.ClientID, 1, longest)
	p.words("subject_claim", d.SubjectClaim, 1, longest)
	if strings.EqualFold(d.SubjectClaim, "email") {
		p.add("subject_claim", "is an e-mail address, which somebody else may have one day, with all that was allowed under it (R68)", "name a claim that never moves to another person")
		p.kind(MailSubject)
	}
	p.oneOf("auth", d.Auth, AuthSecret, AuthPrivateKey)
	if d.Auth == AuthPrivateKey && d.Secret != "" {
		p.add("client_secret", "is of no use with private_key_jwt", "leave it out: the key is made here, its public half is published")
		p.kind(SecretAndKey)
	}
	if len(d.Secret) > 4*longest {
		p.add("client_secret", "is longer than any real one", "copy the secret alone")
		p.kind(LongSecret)
	}
	p.oneOf("prompt", d.Prompt, "", "login", "consent", "select_account")
	if d.MaxAge != nil {
		p.between("max_age", *d.MaxAge, 0, longestAge, "seconds, or leave it out")
	}
	if len(d.Scopes) > mostScopes {
		p.add("scopes", "are too many", "name "+count(mostScopes)+" at most")
		p.kind(TooMany, count(mostScopes))
	}
	for _, s := range d.Scopes {
		if !scopeForm.MatchString(s) {
			p.add("scopes", "hold something that is no scope", "give single words, such as openid and email")
			p.kind(NoScopeWord)
			break
		}
	}
	for _, o := range []struct{ field, value string }{{"jwks_uri", d.JWKSURI}, {"login_url", d.LoginURL}, {"login_origin", d.LoginOrigin}} {
		if o.value != "" {
			p.add(o.field, "is of use with kind assertion only", "leave it out: an OpenID provider tells it by itself")
			p.kind(ForOwnPage)
		}
	}
}

// CheckCandidate returns what SaveCandidate would refuse, and changes nothing.
func CheckCandidate(ctx context.Context, db *DB, edit Editor, site Site, brand BrandID, d ConnectionDraft) error {
	d.tidy()
	_, err := d.fits(ctx, db, edit, site, brand)
	return err
}

// fits returns the candidate that the draft would change; nil is none. What is wrong
// with the draft is Problems.
func (d ConnectionDraft) fits(ctx context.Context, db *DB, edit Editor, site Site, brand BrandID) (*Connection, error) {
	var hosts Hosts
	err := edit.change(ctx, brand, "look at domains", func(e *Edit) (err error) {
		hosts, err = e.proven(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	before, err := candidateOf(ctx, db, brand)
	if err != nil {
		return nil, err
	}
	p := d.Check(site, hosts)
	if d.Kind == KindOIDC && d.Auth == AuthSecret && d.Secret == "" && !d.keeps(before) {
		p.add("client_secret", "is missing", "give the secret that the provider shows for this client; for another issuer or client, give it anew")
		p.kind(NoSecret)
	}
	return before, p.err()
}

// keeps reports whether what authenticates us is carried over from before. It never is
// to another issuer or client: whoever may edit a connection could send it to a server
// of his own.
func (d ConnectionDraft) keeps(before *Connection) bool {
	return before != nil && before.Kind == d.Kind && before.Auth == d.Auth && sameProvider(before.Issuer, d.Issuer) && before.ClientID == d.ClientID
}

// SaveCandidate keeps a connection to be tried beside the live one: the present
// candidate changes, or there was none and it begins. Nobody logs in through it
// before MakeLive.
func SaveCandidate(ctx context.Context, db *DB, edit Editor, sealer Sealer, site Site, brand BrandID, d ConnectionDraft) (Connection, error) {
	d.tidy()
	before, err := d.fits(ctx, db, edit, site, brand)
	if err != nil {
		return Connection{}, err
	}
	id := uuid.Must(uuid.NewV7())
	if before != nil {
		id = before.ID
	}
	sealed, public, err := d.credential(ctx, db, sealer, brand, before) // may ask Vault: outside the transaction
	if err != nil {
		return Connection{}, err
	}
	const q = `
		INSERT INTO login_connections (brand_id, id, issuer, client_id, client_secret_sealed, subject_claim, scopes,
		                               live, created_at, auth, public_jwk, prompt, max_age, kind, jwks_uri, login_url, login_origin)
		VALUES (@brand, @id, @issuer, @client, @sealed, @claim, @scopes, false, @now, @auth, @public, @prompt, @age,
		        @kind, @jwks, @login, @origin)
		ON CONFLICT (brand_id, id) DO UPDATE
		   SET issuer = excluded.issuer, client_id = excluded.client_id, subject_claim = excluded.subject_claim,
		       scopes = excluded.scopes, auth = excluded.auth, prompt = excluded.prompt, max_age = excluded.max_age,
		       client_secret_sealed = excluded.client_secret_sealed, public_jwk = excluded.public_jwk,
		       kind = excluded.kind, jwks_uri = excluded.jwks_uri, login_url = excluded.login_url,
		       login_origin = excluded.login_origin
		 WHERE NOT login_connections.live AND login_connections.ended_at IS NULL`
	var after Connection
	err = edit.change(ctx, brand, "save login candidate", func(e *Edit) error {
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{
			"brand": brand, "id": id, "issuer": d.Issuer, "client": d.ClientID, "sealed": sealed, "claim": d.SubjectClaim,
			"scopes": d.Scopes, "now": e.Now, "auth": d.Auth, "public": public, "prompt": d.Prompt, "age": d.MaxAge,
			"kind": d.Kind, "jwks": d.JWKSURI, "login": d.LoginURL, "origin": d.LoginOrigin,
		})
		const unique = "23505"
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == unique {
			return ErrConnectionMoved
		}
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrConnectionMoved
		}
		if after, err = e.connection(ctx, id); err != nil {
			return err
		}
		about := map[string]any{"connection": id, "new_secret": d.Secret != ""}
		if before == nil {
			about["after"] = after
			e.Note("login.candidate", about)
			return nil
		}
		if !e.noteDiff("login.candidate", about, before, after) && d.Secret != "" {
			e.Note("login.candidate", about)
		}
		return nil
	})
	return after, err
}

// ErrConnectionMoved says that somebody else changed the connections meanwhile.
var ErrConnectionMoved = errors.New("the login connections changed meanwhile")

func candidateOf(ctx context.Context, db *DB, brand BrandID) (*Connection, error) {
	all, err := Connections(ctx, db, brand)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(c Connection) bool { return !c.Live })
	if i < 0 {
		return nil, nil
	}
	return &all[i], nil
}

// credential returns what authenticates us, sealed: the secret that was given,
// or the candidate's own, or a key.
func (d ConnectionDraft) credential(ctx context.Context, db *DB, sealer Sealer, brand BrandID, before *Connection) (sealed, public []byte, err error) {
	if d.Kind == KindAssertion {
		return []byte{}, nil, nil
	}
	keeps := d.keeps(before)
	plain := []byte(d.Secret)
	switch {
	case d.Auth == AuthPrivateKey && !keeps:
		if plain, public, err = newLoginKey(); err != nil {
			return nil, nil, err
		}
	case d.Secret == "" && keeps: // or it was missing
		return storedCredential(ctx, db, brand, before.ID)
	}
	sealed, err = sealer.Seal(ctx, brand, secretPurpose, plain)
	if err != nil {
		return nil, nil, fmt.Errorf("seal login secret of %s: %w", brand, err)
	}
	return sealed, public, nil
}

// sameProvider reports whether two issuers are one server's, at one path: they
// differ at most in a slash at the end, in the host's letters, or in the port that
// goes without saying. Correcting such a slip needs no new secret (B54).
func sameProvider(a, b string) bool {
	plain := func(issuer string) string {
		u, err := url.Parse(issuer)
		if err != nil || u.Host == "" || u.User != nil {
			return issuer
		}
		port := u.Port()
		if port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
			port = ""
		}
		return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port + strings.TrimSuffix(u.EscapedPath(), "/") + "?" + u.RawQuery
	}
	return plain(a) == plain(b)
}
