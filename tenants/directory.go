package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoBrand is returned for an id that no Brand has.
var ErrNoBrand = errors.New("no such brand")

// staleness bounds how long an instance may act on old Brand settings. What
// must hold at once (paused, disabled, retired) is asked again by the rules
// inside their own statement.
const staleness = time.Second

// outage bounds how long old settings may serve while the database is away, so
// that cards, metadata and keys stay readable through a restart.
const outage = 10 * time.Minute

// Directory finds Brands. Lookups are answered from memory for up to a second.
type Directory struct {
	db   *DB
	memo Memo[BrandID, *Brand]
}

// NewDirectory returns a Directory over db.
func NewDirectory(db *DB, now func() time.Time) *Directory {
	d := &Directory{db: db}
	d.memo = Memo[BrandID, *Brand]{
		Fresh: staleness, Stale: outage, Now: now, Load: d.load,
		Missing: func(err error) bool { return errors.Is(err, ErrNoBrand) },
	}
	return d
}

// Brand returns the Brand with the id, or ErrNoBrand.
func (d *Directory) Brand(ctx context.Context, id BrandID) (*Brand, error) {
	if !validBrandID(id) {
		return nil, ErrNoBrand
	}
	return d.memo.Get(ctx, id)
}

// Forget drops what is remembered of a Brand, after a change made here.
func (d *Directory) Forget(id BrandID) { d.memo.Forget(id) }

func validBrandID(id BrandID) bool {
	if len(id) == 0 || len(id) > 40 || id[0] == '-' {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func (d *Directory) load(ctx context.Context, id BrandID) (*Brand, error) {
	const q = `
		SELECT b.provider_id, p.audience, b.name, b.organisation, b.description, b.mode, b.state, b.delegation,
		       b.interface_url, b.issuer, b.identity_scheme, b.colour, b.support_url, b.privacy_url,
		       b.token_seconds, b.grace_seconds, b.grant_days, b.grant_days_default, b.signing_alg, b.rotation_days, b.idle_days, b.skip_consent,
		       b.connected_url, b.languages, b.agents, b.proven,
		       coalesce((SELECT d.host FROM brand_domains d
		                  WHERE d.brand_id = b.id AND d.proven_at IS NOT NULL
		                    AND (d.failing_since IS NULL OR d.failing_since >= @lost)
		                  ORDER BY d.proven_at, d.host LIMIT 1), '') AS domain,
		       coalesce((SELECT l.hash FROM brand_logos l WHERE l.brand_id = b.id), '') AS logo,
		       coalesce((
		           SELECT jsonb_agg(jsonb_build_object(
		                      'ID', s.id, 'Description', s.description, 'Effect', s.effect,
		                      'Impact', s.impact, 'Undo', s.undo, 'Texts', s.texts) ORDER BY s.position)
		             FROM brand_scopes s
		            WHERE s.brand_id = b.id AND s.retired_at IS NULL), '[]') AS scopes,
		       coalesce((
		           SELECT jsonb_agg(jsonb_build_object(
		                      'Type', t.type, 'Scope', t.scope, 'Schema', t.schema,
		                      'Words', t.words, 'Texts', t.texts) ORDER BY t.type)
		             FROM detail_types t
		             JOIN brand_scopes s ON s.brand_id = t.brand_id AND s.id = t.scope AND s.retired_at IS NULL
		            WHERE t.brand_id = b.id), '[]') AS detail_types
		  FROM brands b
		  JOIN providers p ON p.id = b.provider_id
		 WHERE b.id = @brand`
	type row struct {
		ProviderID       string
		Audience         string
		Name             string
		Organisation     string
		Description      string
		Mode             Mode
		State            State
		Delegation       bool
		InterfaceURL     string `db:"interface_url"`
		Issuer           string
		IdentityScheme   string `db:"identity_scheme"`
		Colour           string
		SupportURL       string `db:"support_url"`
		PrivacyURL       string `db:"privacy_url"`
		TokenSeconds     int
		GraceSeconds     int
		GrantDays        []int
		GrantDaysDefault int
		SigningAlg       string
		RotationDays     int
		IdleDays         int
		SkipConsent      bool
		ConnectedURL     string `db:"connected_url"`
		Languages        []string
		Agents           string
		Proven           bool
		Domain           string
		Logo             string
		Scopes           []byte
		DetailTypes      []byte
	}
	r, err := One[row](ctx, d.db, id, q, pgx.NamedArgs{"brand": id, "lost": d.memo.Now().Add(-lostAfter)})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoBrand
	}
	if err != nil {
		return nil, fmt.Errorf("load brand %s: %w", id, err)
	}
	b := &Brand{
		ID: id, Provider: r.ProviderID, Audience: r.Audience, Name: r.Name, Organisation: r.Organisation, Description: r.Description,
		Mode: r.Mode, State: r.State, Delegation: r.Delegation,
		InterfaceURL: r.InterfaceURL, Issuer: r.Issuer, IdentityScheme: r.IdentityScheme,
		Colour: r.Colour, SupportURL: r.SupportURL, PrivacyURL: r.PrivacyURL,
		TokenLifetime: time.Duration(r.TokenSeconds) * time.Second,
		Grace:         time.Duration(r.GraceSeconds) * time.Second,
		GrantDays:     r.GrantDays, GrantDefault: r.GrantDaysDefault, SigningAlg: r.SigningAlg,
		RotationDays: r.RotationDays, IdleDays: r.IdleDays, SkipConsent: r.SkipConsent,
		ConnectedURL: r.ConnectedURL, Languages: r.Languages, Agents: r.Agents,
		Proven: r.Proven, Domain: r.Domain, Logo: r.Logo,
	}
	if err := json.Unmarshal(r.Scopes, &b.Scopes); err != nil {
		return nil, fmt.Errorf("read scopes of brand %s: %w", id, err)
	}
	if err := json.Unmarshal(r.DetailTypes, &b.DetailTypes); err != nil {
		return nil, fmt.Errorf("read detail types of brand %s: %w", id, err)
	}
	return b, nil
}

// IDs returns the ids of all Brands, closed ones too: upkeep is owed to all.
func (d *Directory) IDs(ctx context.Context) ([]BrandID, error) {
	rows, err := d.db.pool.Query(ctx, `SELECT id FROM brand_ids ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list brands: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[BrandID])
	if err != nil {
		return nil, fmt.Errorf("list brands: %w", err)
	}
	return ids, nil
}
