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
	"unicode"
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
	if n < least || n > most || !utf8.ValidString(a.Contact) || strings.ContainsFunc(a.Contact, unicode.IsControl) {
		return ErrBadContact
	}
	issuer, errIssuer := url.Parse(a.Issuer)
	keys, errKeys := url.Parse(a.JWKSURI)
	if errIssuer != nil || errKeys != nil || !strings.EqualFold(issuer.Host, keys.Host) || issuer.Scheme != keys.Scheme {
		return ErrForeignKeys
	}
	return nil
}

// Applications returns those that wait, the oldest first.
func (r *Registry) Applications(ctx context.Context) ([]Application, error) {
	const q = `
		SELECT issuer, jwks_uri, name, contact, logo_hash, asked_at, state, decided_at
		  FROM agent_applications WHERE state = 'pending' ORDER BY asked_at, issuer`
	rows, err := r.db.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list applications: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[Application])
	if err != nil {
		return nil, fmt.Errorf("list applications: %w", err)
	}
	return all, nil
}

// Approve registers the agent as it applied, enabled.
func (r *Registry) Approve(ctx context.Context, issuer string) error {
	const q = `
		WITH approved AS (
			UPDATE agent_applications SET state = 'approved', decided_at = @now
			 WHERE issuer = @issuer AND state = 'pending'
			RETURNING issuer, jwks_uri, name, contact
		)
		INSERT INTO agents (issuer, jwks_uri, name, contact, enabled, created_at, updated_at)
		SELECT issuer, jwks_uri, name, contact, true, @now, @now FROM approved
		ON CONFLICT (issuer) DO UPDATE
		   SET jwks_uri = excluded.jwks_uri, name = excluded.name, contact = excluded.contact,
		       enabled = true, discovered = false, updated_at = excluded.updated_at, enabled_at = excluded.updated_at
		 WHERE agents.discovered`
	const picture = `
		INSERT INTO agent_logos (issuer, png, hash, changed_at)
		SELECT issuer, logo_png, logo_hash, @now FROM agent_applications
		 WHERE issuer = @issuer AND logo_png IS NOT NULL
		ON CONFLICT (issuer) DO UPDATE SET png = excluded.png, hash = excluded.hash, changed_at = excluded.changed_at`
	defer r.forget(issuer)
	return r.decide(ctx, issuer, "registered", q, picture, forgetPicture)
}

// Reject says no to the application; the same issuer cannot apply again.
func (r *Registry) Reject(ctx context.Context, issuer string) error {
	const q = `
		UPDATE agent_applications SET state = 'rejected', decided_at = @now
		 WHERE issuer = @issuer AND state = 'pending'`
	return r.decide(ctx, issuer, "", q, forgetPicture) // no Brand knew of it
}

// forgetPicture takes the picture out of an application that is decided.
const forgetPicture = `UPDATE agent_applications SET logo_png = NULL, logo_hash = '' WHERE issuer = @issuer AND state <> 'pending'`

// decide runs the statements. The first one is the decision: where it finds
// nothing, there was nothing to decide.
func (r *Registry) decide(ctx context.Context, issuer, what string, first string, rest ...string) error {
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{"issuer": issuer, "now": r.now()}
		tag, err := tx.Exec(ctx, first, args)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNoApplication
		}
		for _, q := range rest {
			if err == nil {
				_, err = tx.Exec(ctx, q, args)
			}
		}
		if err != nil || what == "" {
			return err
		}
		return r.note(ctx, tx, issuer, what)
	})
	if err != nil && !errors.Is(err, ErrNoApplication) {
		return fmt.Errorf("decide application: %w", err)
	}
	return err
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
