package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// Access is a signed delegation token and how long it lives.
type Access struct {
	JWS       string
	ExpiresIn time.Duration // whole seconds
}

// Tokens is what an agent is paid out.
type Tokens struct {
	Access
	Refresh string
	Scopes  []string // of the access token, in the order of its scope claim
	Details Details  // of those scopes
	GrantID uuid.UUID
}

// claims of a delegation token (PACT §5.4, RFC 9068), in the order written.
type claims struct {
	Issuer   string `json:"iss"`
	Audience string `json:"aud"` // one string: the interface URL of one Brand (M17)
	Subject  string `json:"sub"`
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
	GrantID  string `json:"grant_id"`
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
	ID       string `json:"jti"`
	// What the scopes are to allow, more exactly (RFC 9396 §9.1).
	Details []json.RawMessage `json:"authorization_details,omitempty"`
	// Where its status stands (Token Status List), for Brands that verify offline.
	Status *statusClaim `json:"status,omitempty"`
}

type statusClaim struct {
	List struct {
		Index int    `json:"idx"`
		URI   string `json:"uri"`
	} `json:"status_list"`
}

// read takes the claims out of a payload that we signed.
func (c *claims) read(payload []byte) error {
	if err := json.Unmarshal(payload, c); err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	return nil
}

// signTime is how long a signature may take before the caller is told to come
// again.
const signTime = 3 * time.Second

type signable struct {
	grant     uuid.UUID
	subject   string
	scopes    []string
	details   Details // of the scopes
	grantEnds time.Time
	status    *statusRef // nil: a grant from before there were status lists
}

// sign makes a delegation token. It lives as long as the Brand says, an hour at
// most, and never past the grant's end. A signer that cannot answer now is
// ErrUnavailable.
func (a *Authority) sign(ctx context.Context, brand *tenants.Brand, who Caller, s signable) (Access, error) {
	if len(s.scopes) == 0 {
		return Access{}, ErrEnded // nothing that was allowed is still offered
	}
	const longest = time.Hour
	now := a.now().Truncate(time.Second)
	ends := now.Add(min(brand.TokenLifetime, longest))
	if s.grantEnds.Before(ends) {
		ends = s.grantEnds.Truncate(time.Second)
	}
	if !ends.After(now) {
		return Access{}, ErrEnded
	}
	c := claims{
		Issuer: brand.Issuer, Audience: brand.InterfaceURL, Subject: s.subject, ClientID: who.Agent,
		Scope: strings.Join(s.scopes, " "), GrantID: s.grant.String(),
		IssuedAt: now.Unix(), Expires: ends.Unix(), ID: uuid.NewString(),
		Details: s.details.Values(),
	}
	if s.status != nil {
		c.Status = &statusClaim{}
		c.Status.List.Index, c.Status.List.URI = s.status.Index, brand.StatusListURI(s.status.List)
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return Access{}, fmt.Errorf("encode token: %w", err)
	}
	// Shorter than a lease, so that who signs too slowly has not lost it yet.
	ctx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	jws, err := a.signer.Sign(ctx, brand.ID, signing.TypToken, payload)
	if err != nil {
		return Access{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return Access{JWS: jws, ExpiresIn: ends.Sub(now)}, nil
}
