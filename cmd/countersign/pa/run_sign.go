package pa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

func runSign(_ context.Context, c *command) error {
	var keyFile, issuer string
	var expires time.Duration
	c.flags.StringVar(&c.sub, "sub", "alex-phone", "which of the agent's `user`s it speaks for")
	c.flags.StringVar(&c.aud, "aud", "", "`audience` assigned by the Brand's Provider (default: the one stored with the agent)")
	c.flags.DurationVar(&expires, "expires", life, "`life` of the pa-jwt, at most 300s")
	c.flags.StringVar(&keyFile, "key", "", "private P-256 JWK `file` of an agent that lies elsewhere")
	c.flags.StringVar(&issuer, "issuer", "", "`URL` of that agent, together with --key")
	// COUNTERSIGN_PA_ISSUER is the Brand's authority in the other commands.
	c.variables["issuer"] = "COUNTERSIGN_PA_AGENT_ISSUER"
	if err := c.parse(); err != nil {
		return err
	}
	if expires <= 0 || expires > maxLife {
		return fmt.Errorf("--expires %s: more than nothing, as in 120s, and at most %ds", expires, maxLife/time.Second)
	}
	identity, err := c.signer(keyFile, issuer)
	if err != nil {
		return err
	}
	now := time.Now()
	signed, err := identity.Sign(Claims{
		Sub: c.sub, Aud: cmp.Or(c.aud, identity.Audience), IssuedAt: now, Expires: now.Add(expires),
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, signed)
	return nil
}

func (c *command) signer(keyFile, issuer string) (*Identity, error) {
	switch {
	case keyFile != "":
		return IdentityFromKey(keyFile, issuer)
	case issuer != "":
		return nil, errors.New("--issuer goes with --key; the stored agent has an issuer of its own")
	}
	return LoadIdentity(c.data)
}
