package agent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// At tells who made the pa-jwt that was shown at the Brand: at an open one that may
// be a stranger (M2).
func (v *Verifier) At(ctx context.Context, brand *tenants.Brand, text string) (Caller, error) {
	if brand.Open() {
		return v.Meet(ctx, brand.ID, text, brand.Audience)
	}
	return v.Verify(ctx, text, brand.Audience)
}

// Meet is Verify where agents may come that nobody has registered (M2, the open
// policy): one that we do not know is looked up through OIDC discovery at its
// issuer, and known from then on as discovered, if the pa-jwt is signed with a key
// it publishes. Where they met, at, has it in its trail. Nothing is fetched for a token that anything else is wrong with. A
// discovered agent whose keys fail it is looked up anew, for it may have moved them.
func (v *Verifier) Meet(ctx context.Context, at tenants.BrandID, text, audience string) (Caller, error) {
	said, outcome, err := v.verify(ctx, text, audience)
	if v.worthLooking(ctx, text, err) {
		if errMeet := v.discover(ctx, at, text, audience); errMeet == nil {
			said, outcome, err = v.verify(ctx, text, audience)
		} else if !errors.Is(errMeet, ErrRefused) || errors.Is(err, ErrIssuer) {
			err = errMeet
		}
	}
	v.metrics.count(outcome, err)
	if err != nil {
		return Caller{}, fmt.Errorf("meet agent: %w", err)
	}
	v.came(ctx, said.issuer)
	return said.caller(), nil
}

// worthLooking tells whether a discovery could mend why the token was refused.
func (v *Verifier) worthLooking(ctx context.Context, text string, why error) bool {
	if errors.Is(why, ErrIssuer) {
		return true
	}
	if !errors.Is(why, ErrUnknownKey) && !errors.Is(why, ErrKeysMissing) {
		return false
	}
	t, err := parse(text)
	if err != nil {
		return false
	}
	a, err := v.registry.current(ctx, t.claims.issuer)
	return err == nil && a.Enabled && a.Discovered
}

// discover lets the token's issuer in as discovered, or refuses.
func (v *Verifier) discover(ctx context.Context, at tenants.BrandID, text, audience string) error {
	t, err := parse(text)
	if err != nil {
		return err
	}
	// verify has asked all of this before it asked for the issuer; what makes us
	// reach out stands here too.
	if err := t.claims.valid(v.now(), audience); err != nil {
		return err
	}
	if err := checkIssuer(t.claims.issuer, v.registry.allowLoopback); err != nil {
		return ErrIssuer
	}
	found, err := v.searches.find(ctx, t.claims.issuer)
	if err != nil {
		return err
	}
	// Whoever began the search may have had no key: each token proves itself.
	if _, err := found.set.prove(t); err != nil {
		return err
	}
	a := Agent{Issuer: t.claims.issuer, JWKSURI: found.jwksURI, Name: hostName(t.claims.issuer)}
	if err := v.registry.discovered(ctx, at, a); err != nil {
		return err
	}
	known, err := v.registry.current(ctx, a.Issuer)
	switch {
	case errors.Is(err, ErrNotRegistered): // refused by the operator, or too many are known
		return ErrIssuer
	case err != nil:
		return err
	case known.JWKSURI == found.jwksURI:
		v.ring(known).seed(found.set, found.began)
	}
	return nil
}

// lookUp fetches what the issuer says of itself and the keys it names. allow is
// asked before each exchange with another site.
func (v *Verifier) lookUp(ctx context.Context, issuer string, allow func(site string) bool) (found, error) {
	out := found{began: v.now()}
	raw, err := v.fetch.GetJSON(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration")
	if err == nil {
		out.jwksURI, err = readConfiguration(raw, issuer)
	}
	if err == nil {
		err = registrable(Agent{Issuer: issuer, JWKSURI: out.jwksURI, Name: hostName(issuer)}, v.registry.allowLoopback)
	}
	if keys := siteOf(out.jwksURI); err == nil && keys != siteOf(issuer) && !allow(keys) {
		err = errTooOften
	}
	if err == nil {
		out.set, err = v.fetchKeys(ctx, Agent{Issuer: issuer, JWKSURI: out.jwksURI})
	}
	v.metrics.discovered(err)
	if err != nil {
		v.log.InfoContext(ctx, "agent cannot be discovered", "agent", issuer, "error", err)
	}
	return out, err
}

var errTooOften = errors.New("its keys are at a site that was asked too often")

var errConfiguration = errors.New("its OpenID configuration names another issuer or no keys")

// readConfiguration takes the jwks_uri out of OpenID Provider metadata that is
// the issuer's own (OpenID Connect Discovery 1.0 §4.3): members by their exact
// names, each once, the issuer byte for byte.
func readConfiguration(raw []byte, issuer string) (string, error) {
	o, err := parseObject(raw)
	if err != nil {
		return "", errConfiguration
	}
	named, okIssuer := o.text("issuer")
	keys, okKeys := o.text("jwks_uri")
	if !okIssuer || !okKeys || named != issuer {
		return "", errConfiguration
	}
	return keys, nil
}

// hostName is what a discovered agent is called: its address and no words of its own.
func hostName(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return ""
	}
	return u.Host
}

// discovered keeps an agent that proved what it is, or where it has moved its keys.
// Whom the operator registered, disabled or refused stays as the operator said.
func (r *Registry) discovered(ctx context.Context, at tenants.BrandID, a Agent) error {
	const q = `
		INSERT INTO agents AS a (issuer, jwks_uri, name, enabled, discovered, created_at, updated_at, came_at, site)
		SELECT @issuer, @jwks_uri, @name, true, true, @now, @now, @now, @site
		 WHERE NOT EXISTS (SELECT FROM agent_applications WHERE issuer = @issuer AND state = 'rejected')
		   AND (EXISTS (SELECT FROM agents WHERE issuer = @issuer)
		        OR (SELECT count(*) FROM agents WHERE discovered) < @most
		       AND (SELECT count(*) FROM agents WHERE discovered AND site = @site) < @most_of_site)
		ON CONFLICT (issuer) DO UPDATE SET jwks_uri = excluded.jwks_uri, updated_at = excluded.updated_at
		 WHERE a.discovered AND a.enabled AND a.jwks_uri <> excluded.jwks_uri
		RETURNING xmax = 0`
	defer r.forget(a.Issuer)
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		var fresh bool
		err := tx.QueryRow(ctx, q, pgx.NamedArgs{
			"issuer": a.Issuer, "jwks_uri": a.JWKSURI, "name": a.Name, "now": r.now(),
			"most": mostDiscovered, "site": siteOf(a.Issuer), "most_of_site": mostOfSite,
		}).Scan(&fresh)
		switch {
		case errors.Is(err, pgx.ErrNoRows): // known as it is, or not wanted
			return nil
		case err != nil:
			return err
		case fresh:
			return r.met(ctx, tx, at, a.Issuer, "discovered")
		}
		return r.met(ctx, tx, at, a.Issuer, "moved")
	})
	if err != nil {
		return fmt.Errorf("keep discovered agent: %w", err)
	}
	return nil
}
