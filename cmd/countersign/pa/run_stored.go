package pa

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

func runToken(ctx context.Context, c *command) error {
	return c.stored(ctx, Current, func(t Tokens) {
		fmt.Fprintln(c.stdout, string(t.AccessToken))
	})
}

func runRefresh(ctx context.Context, c *command) error {
	return c.stored(ctx, Refresh, func(t Tokens) {
		fmt.Fprintf(c.stdout, "Refreshed: %s may do %q at %s until %s.\n",
			printable(t.Sub), printable(t.Scope), t.Interface, t.ExpiresAt.Local().Format(time.DateTime))
	})
}

func runRevoke(ctx context.Context, c *command) error {
	c.storedFlags()
	if err := c.parse(); err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	t, err := Revoke(ctx, c.which(), o)
	if err != nil {
		return err
	}
	if c.json {
		return json.NewEncoder(c.stdout).Encode(map[string]string{
			"event": "revoked", "interface": t.Interface, "issuer": t.Issuer, "sub": t.Sub, "grant_id": t.GrantID,
		})
	}
	fmt.Fprintf(c.stdout, "Ended: this agent may do nothing more for %s at %s.\n", printable(t.Sub), t.Interface)
	return nil
}

// stored runs a command that prints a stored token, or something about it.
func (c *command) stored(ctx context.Context, fetch func(context.Context, Which, Options) (Tokens, error), print func(Tokens)) error {
	c.storedFlags()
	if err := c.parse(); err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	t, err := fetch(ctx, c.which(), o)
	if err != nil {
		return err
	}
	if c.json {
		return json.NewEncoder(c.stdout).Encode(tokenLine("token", t, o))
	}
	print(t)
	return nil
}
