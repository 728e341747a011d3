package pa

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"countersign.dev/cmd/countersign/pa/discovery"
)

func runLogin(ctx context.Context, c *command) error {
	var scope, details string
	var withQR bool
	c.brandFlags()
	c.flags.StringVar(&c.sub, "sub", "alex-phone", "which of the agent's `user`s is asking")
	c.flags.StringVar(&scope, "scope", "", "what to ask for, as `ids` with spaces between (default: everything on the card)")
	c.flags.StringVar(&details, "details", "", "what the scopes are to allow, more exactly: authorization_details as `JSON`, of types that the Brand has")
	c.flags.BoolVar(&withQR, "qr", false, "draw the QR code even where it is of little use")
	if err := c.parse(); err != nil {
		return err
	}
	if c.card == "" {
		return fmt.Errorf("--card is missing: the URL of the Brand's interface; %s prints those of its Brands", c.devLine())
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	o.Scopes, o.Details = strings.Fields(scope), details
	if c.json {
		return loginForPrograms(ctx, c.stdout, o)
	}
	if err := loginForPeople(ctx, &screen{out: c.stdout, live: isTerminal(c.stdout), qr: withQR}, o); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "\nKept in %s. The access token: %s\n", o.TokenFile, c.line("token", c.card, o.Sub))
	return nil
}

func loginForPeople(ctx context.Context, s *screen, o Options) error {
	var brand discovery.Brand
	o.Found = func(b discovery.Brand) { brand = b }
	o.Started = func(started Started) { s.ask(brand, started) }
	o.Waiting = s.wait
	tokens, err := Login(ctx, o)
	s.clear()
	if err != nil {
		return err
	}
	asked, err := wanted(o.Scopes, brand.Scopes)
	if err != nil {
		return err
	}
	s.allowed(brand, asked, tokens)
	return nil
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
