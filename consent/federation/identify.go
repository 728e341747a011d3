package federation

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// identify verifies the ID token (OpenID Connect Core, 3.1.3.7) and returns what it
// says.
func (p *provider) identify(ctx context.Context, conn Connection, m metadata, f FinishParams, answer *oauth2.Token) (claims, error) {
	raw, ok := answer.Extra("id_token").(string)
	if !ok || raw == "" {
		return nil, misconfigured("the provider sends no ID token")
	}
	keys := &signatures{provider: p, address: m.JWKS, algorithms: m.Algorithms}
	verifier := oidc.NewVerifier(conn.Issuer, keys, &oidc.Config{
		ClientID: conn.ClientID, SupportedSigningAlgs: m.Algorithms,
		SkipExpiryCheck: true, // checkTimes knows about skew
	})
	token, err := verifier.Verify(ctx, raw)
	if keys.err != nil {
		return nil, keys.err
	}
	if err != nil {
		return nil, invalid("the ID token is not one of this provider for us")
	}
	// go-oidc makes an exception for one provider; we do not (B54).
	if token.Issuer != conn.Issuer {
		return nil, invalid("the ID token is another provider's")
	}
	claims, err := readClaims(token)
	if err != nil {
		return nil, err
	}
	if err := claims.checkParty(conn.ClientID, token.Audience); err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(f.Nonce)) != 1 {
		return nil, invalid("the ID token was issued for another login")
	}
	if token.AccessTokenHash != "" && token.VerifyAccessToken(answer.AccessToken) != nil {
		return nil, invalid("the ID token belongs to another answer")
	}
	if err := claims.checkTimes(token, p.client.now(), f); err != nil {
		return nil, err
	}
	if err := claims.checkAge(p.client.now(), conn, f); err != nil {
		return nil, err
	}
	return claims, nil
}

// person is who the claims are about.
func (c claims) person(conn Connection) (Identity, error) {
	subject, err := c.subject(conn.SubjectClaim)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Subject: subject, Account: c.account(subject), AuthTime: c.at("auth_time"), Issuer: conn.Issuer}, nil
}

// checkAge holds the provider to the connection's max_age, which it may have passed
// over (OpenID Connect Core, 3.1.2.1). A fresh login is young enough for any.
func (c claims) checkAge(now time.Time, conn Connection, f FinishParams) error {
	if conn.MaxAge == nil || f.Fresh {
		return nil
	}
	oldest := now.Add(-time.Duration(*conn.MaxAge)*time.Second - skew)
	if c.at("auth_time").Before(oldest.Truncate(time.Second)) {
		return invalid("the login is older than the connection allows")
	}
	return nil
}

// claims are an ID token's, numbers as they were written.
type claims map[string]any

func readClaims(token *oidc.IDToken) (claims, error) {
	var text json.RawMessage
	if err := token.Claims(&text); err != nil {
		return nil, invalid("the ID token is malformed")
	}
	return decodeClaims(text)
}

func decodeClaims(text []byte) (claims, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a customer number above 2^53 would become somebody else's
	var c claims
	if err := d.Decode(&c); err != nil {
		return nil, invalid("the ID token is malformed")
	}
	return c, nil
}

// checkParty makes sure that the token was issued to us, not merely that we are among
// those who may read it.
func (c claims) checkParty(clientID string, audience []string) error {
	party, named := c["azp"]
	if named && party != clientID {
		return invalid("the ID token was issued to another client")
	}
	if len(audience) > 1 && !named {
		return invalid("the ID token does not say which client it was issued to")
	}
	return nil
}

func (c claims) checkTimes(token *oidc.IDToken, now time.Time, f FinishParams) error {
	late, early := now.Add(-skew), now.Add(skew)
	switch {
	case token.Expiry.Before(late):
		return invalid("the ID token has expired")
	case token.IssuedAt.IsZero():
		return invalid("the ID token does not say when it was issued")
	case token.IssuedAt.After(early):
		return invalid("the ID token comes from the future: one of the clocks is wrong")
	case c.at("nbf").After(early):
		return invalid("the ID token is not valid yet")
	case c.at("auth_time").After(early):
		return invalid("the login lies in the future: one of the clocks is wrong")
	}
	// Asking for a fresh login is only a request in an address the browser could
	// change. This is the answer that counts (R72).
	if f.Fresh && c.at("auth_time").Before(f.StartedAt.Add(-skew).Truncate(time.Second)) {
		return invalid("the login is not fresh")
	}
	return nil
}

// at reads a time; zero when there is none.
func (c claims) at(name string) time.Time {
	number, ok := c[name].(json.Number)
	if !ok {
		return time.Time{}
	}
	seconds, err := number.Float64()
	if err != nil || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}
