package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
	"github.com/jackc/pgx/v5"
)

// Application is an agent's own request to be registered.
type Application struct {
	Issuer  string `db:"issuer"`
	JWKSURI string `db:"jwks_uri"`
	Name    string `db:"name"`
	Contact string `db:"contact"` // for the operator: an e-mail address or a URL
	// Logo is the bytes of a picture; empty: none. It comes with the application and
	// is not fetched from an address: so strangers send us nowhere, and what is shown
	// one day is what the operator saw, whatever stands at any address by then.
	Logo      []byte     `db:"-"`
	LogoHash  string     `db:"logo_hash"` // of what was made of it; empty: none
	AskedAt   time.Time  `db:"asked_at"`
	State     string     `db:"state"` // pending, approved, rejected
	DecidedAt *time.Time `db:"decided_at"`
}

// Why an application is not taken.
var (
	ErrBadContact    = errors.New("contact must have 3 to 320 plain characters")
	ErrForeignKeys   = errors.New("the JWKS URI must be on the issuer's own host")
	ErrKeysUnfetched = errors.New("the keys cannot be fetched")
	ErrRegistered    = errors.New("the agent is registered already, or was refused")
	ErrFull          = errors.New("too many applications wait already")
	ErrNoApplication = errors.New("no such application waits")
	ErrBadLogo       = errors.New("the picture is not taken")
)

// mostApplications bounds what strangers can pile up before the operator.
const mostApplications = 1000

// Apply keeps an application for the operator. The pa-jwt must be signed with a
// key that the agent publishes on its issuer's own host, and be meant for
// audience: whoever applies in somebody else's name holds no such key. Nothing is
// let in by it.
func (r *Registry) Apply(ctx context.Context, fetch *egress.Client, a Application, token, audience string) error {
	if err := r.appliable(a); err != nil {
		return err
	}
	t, err := parse(token)
	if err != nil {
		return err
	}
	if t.claims.issuer != a.Issuer {
		return ErrIssuer
	}
	if err := t.claims.valid(r.now(), audience); err != nil {
		return err
	}
	raw, err := fetch.GetJSON(ctx, a.JWKSURI)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeysUnfetched, err)
	}
	set, err := parseKeySet(raw)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeysUnfetched, err)
	}
	if _, err := set.prove(t); err != nil {
		return err
	}
	// Last: pictures are unfolded for whoever has proved something, and for nobody else.
	var logo []byte
	if len(a.Logo) > 0 {
		if logo, a.LogoHash, err = tenants.RemakeLogo(a.Logo); err != nil {
			return fmt.Errorf("%w: %w", ErrBadLogo, err)
		}
	}
	const q = `
		INSERT INTO agent_applications AS p (issuer, jwks_uri, name, contact, logo_png, logo_hash, asked_at, state)
		SELECT @issuer, @jwks_uri, @name, @contact, @logo, @hash, @now, 'pending'
		 WHERE NOT EXISTS (SELECT FROM agents WHERE issuer = @issuer AND NOT discovered)
		   AND (SELECT count(*) FROM agent_applications WHERE state = 'pending') < @most
		ON CONFLICT (issuer) DO UPDATE
		   SET jwks_uri = excluded.jwks_uri, name = excluded.name, contact = excluded.contact,
		       logo_png = excluded.logo_png, logo_hash = excluded.logo_hash
		 WHERE p.state = 'pending'`
	args := pgx.NamedArgs{
		"issuer": a.Issuer, "jwks_uri": a.JWKSURI, "name": a.Name, "contact": a.Contact,
		"logo": logo, "hash": a.LogoHash, "now": r.now(), "most": mostApplications,
	}
	tag, err := r.db.Exec(ctx, q, args)
	if err != nil {
		return fmt.Errorf("keep application: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return nil
	}
	const full = `SELECT count(*) >= @most FROM agent_applications WHERE state = 'pending'`
	var crowded bool
	if err := r.db.QueryRow(ctx, full, args).Scan(&crowded); err != nil {
		return fmt.Errorf("keep application: %w", err)
	}
	if crowded {
		return ErrFull
	}
	return ErrRegistered
}

func (r *Registry) appliable(a Application) error {
	if err := registrable(Agent{Issuer: a.Issuer, JWKSURI: a.JWKSURI, Name: a.Name}, r.allowLoopback); err != nil {
		return err
	}
	const least, most = 3, 320
	n := utf8.RuneCountInString(a.Contact)
	if n < least || n > most || !utf8.ValidString(a.Contact) || strings.ContainsFunc(a.Contact, tenants.Invisible) {
		return ErrBadContact
	}
	issuer, errIssuer := url.Parse(a.Issuer)
	keys, errKeys := url.Parse(a.JWKSURI)
	if errIssuer != nil || errKeys != nil || !strings.EqualFold(issuer.Host, keys.Host) || issuer.Scheme != keys.Scheme {
		return ErrForeignKeys
	}
	return nil
}

// PublishedKey is one key of an agent's set, as a look at it found it.
type PublishedKey struct {
	KID    string
	Kind   string // EC P-256, RSA 2048, or what it says of itself
	Usable bool   // a pa-jwt can be verified with it
}

// Inspect fetches a key set now and tells of each key whether it is of use.
func Inspect(ctx context.Context, fetch *egress.Client, jwksURI string) ([]PublishedKey, error) {
	raw, err := fetch.GetJSON(ctx, jwksURI)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysUnfetched, err)
	}
	if _, err := parseKeySet(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysUnfetched, err)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysUnfetched, errKeySet)
	}
	out := make([]PublishedKey, len(set.Keys))
	for i, one := range set.Keys {
		out[i] = describe(one)
	}
	return out, nil
}

func describe(raw []byte) PublishedKey {
	var said struct{ KID, Kty, Crv string }
	_ = json.Unmarshal(raw, &said) // what is no key is described as nothing
	k := PublishedKey{KID: said.KID, Kind: strings.TrimSpace(said.Kty + " " + said.Crv)}
	key, err := parseKey(raw)
	if err != nil {
		return k
	}
	k.Usable = true
	if key.rsa != nil {
		k.Kind = "RSA " + strconv.Itoa(key.rsa.N.BitLen())
	}
	return k
}
