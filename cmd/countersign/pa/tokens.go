package pa

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Tokens is a delegation as the agent holds it.
type Tokens struct {
	Interface    string    `json:"interface"` // the Brand's interface URL
	Issuer       string    `json:"issuer"`    // the Brand's authority
	Card         string    `json:"card"`      // where both were found
	Sub          string    `json:"sub"`       // which of the agent's users
	Audience     string    `json:"audience"`  // of the pa-jwts sent there
	AccessToken  Secret    `json:"access_token"`
	RefreshToken Secret    `json:"refresh_token,omitempty"`
	Scope        string    `json:"scope"`
	GrantID      string    `json:"grant_id,omitempty"`
	ExpiresAt    time.Time `json:"expires_at"`
	Split        bool      `json:"split,omitempty"` // another origin was accepted
}

// read turns a token answer into Tokens. What the answer leaves out is taken
// from before (RFC 6749 §5.1 and §6).
func (j *journey) read(body []byte, before Tokens) (Tokens, error) {
	var answer struct {
		AccessToken  string  `json:"access_token"`
		TokenType    string  `json:"token_type"`
		RefreshToken string  `json:"refresh_token"`
		ExpiresIn    int64   `json:"expires_in"`
		Scope        *string `json:"scope"`
		GrantID      string  `json:"grant_id"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		// The decoder's own words could quote a token.
		return Tokens{}, fmt.Errorf("%w: the token answer is not the JSON it should be", ErrBadAnswer)
	}
	switch {
	case answer.AccessToken == "":
		return Tokens{}, fmt.Errorf("%w: no access_token", ErrBadAnswer)
	case !strings.EqualFold(answer.TokenType, "Bearer"):
		return Tokens{}, fmt.Errorf("%w: token_type %q", ErrBadAnswer, answer.TokenType)
	case answer.ExpiresIn <= 0 || answer.ExpiresIn > 366*86400:
		return Tokens{}, fmt.Errorf("%w: expires_in %d", ErrBadAnswer, answer.ExpiresIn)
	case answer.Scope != nil && len(strings.Fields(*answer.Scope)) == 0:
		return Tokens{}, fmt.Errorf("%w: a token that allows nothing", ErrBadAnswer)
	}
	t := before
	t.Interface, t.Issuer, t.Card = j.brand.Interface, j.brand.Issuer, j.brand.Card
	t.AccessToken = Secret(answer.AccessToken)
	t.ExpiresAt = j.now().Add(time.Duration(answer.ExpiresIn) * time.Second).UTC().Truncate(time.Second)
	if answer.RefreshToken != "" {
		t.RefreshToken = Secret(answer.RefreshToken)
	}
	if answer.Scope != nil {
		t.Scope = joinScopes(strings.Fields(*answer.Scope))
	}
	if answer.GrantID == "" {
		answer.GrantID = grantOf(answer.AccessToken)
	}
	t.GrantID = printable(answer.GrantID)
	return t, nil
}

// grantOf looks for the grant's id in the access token. The agent only notes it,
// for the person's records; to verify the token is the Brand's affair.
func grantOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		GrantID string `json:"grant_id"`
	}
	_ = json.Unmarshal(payload, &claims) // an opaque token simply has none
	return claims.GrantID
}

func joinScopes(ids []string) string { return strings.Join(ids, " ") }
