package pa

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"

	"countersign.dev/cmd/countersign/pa/discovery"
	"countersign.dev/cmd/countersign/shell"
)

// exit says what went wrong, and what to do about it.
func (c *command) exit(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.Is(err, errUsage):
		return exitFault
	}
	fmt.Fprintf(c.stderr, "countersign pa %s: %v\n", c.name, err)
	if advice := c.remedy(err); advice != "" {
		fmt.Fprintln(c.stderr, advice)
	}
	switch {
	case errors.Is(err, ErrDenied):
		return exitDenied
	case errors.Is(err, ErrExpired):
		return exitExpired
	}
	return exitFault
}

// remedy is what a person can do about an error. Commands in it run as they
// stand there.
func (c *command) remedy(err error) string {
	r, isRefusal := errors.AsType[Refusal](err)
	switch {
	case errors.Is(err, context.Canceled):
		return "Stopped. Nothing was stored; the link runs out by itself."
	case errors.Is(err, ErrDenied):
		return "Nothing was shared. Ask again only when the person wants it."
	case errors.Is(err, ErrExpired):
		return "Nothing was shared. Run the command again for a new link."
	case errors.Is(err, ErrEnded):
		return "Ask the person again: " + c.loginLine()
	case errors.Is(err, ErrNoToken):
		return "First: " + c.loginLine()
	case errors.Is(err, ErrAmbiguous):
		return "Say which one with --card and --sub."
	case errors.Is(err, fs.ErrPermission):
		return "Those files are another user's. Be that user, or name a folder of your own with --data."
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("Start %s once to make a demo agent, or name its folder with --data.", c.devLine())
	case isRefusal && r.Status == http.StatusUnauthorized:
		return "The Brand does not recognise this agent. Is it registered there and enabled? Can the Brand fetch the agent's jwks_uri? Is --aud the audience that the Brand's Provider assigned? Is this clock right?"
	case isRefusal && r.RetryAfter > 0:
		return fmt.Sprintf("Try again in %s.", r.RetryAfter)
	case isRefusal && r.Status >= 500:
		return "The Brand is in trouble; try again later."
	}
	return discovery.Remedy(err)
}

// line is another command for the same agent, with the flags that it needs too.
func (c *command) line(name, card, sub string) string {
	words := append([]string{"pa", name}, c.dataFlag()...)
	if c.tokens != "" && c.tokens != tokensIn(c.data) {
		words = append(words, "--tokens", c.tokens)
	}
	words = append(words, "--card", card)
	if sub != "" {
		words = append(words, "--sub", sub)
	}
	// Afterwards they are stored with the token.
	if name == "login" && c.aud != "" {
		words = append(words, "--aud", c.aud)
	}
	if name == "login" && c.allowSplit {
		words = append(words, "--allow-split")
	}
	return shell.Line(words...)
}

// loginLine asks the same person again: as typed, or as it lies beside the one
// token that was meant.
func (c *command) loginLine() string {
	stored, err := Store{Path: c.tokens}.Find(c.which())
	if err != nil {
		stored = Tokens{Interface: "URL"}
	}
	return c.line("login", cmp.Or(c.card, stored.Interface), cmp.Or(c.sub, stored.Sub))
}

func (c *command) devLine() string {
	return shell.Line(append([]string{"dev"}, c.dataFlag()...)...)
}

func (c *command) dataFlag() []string {
	if c.data == c.flags.Lookup("data").DefValue {
		return nil
	}
	return []string{"--data", c.data}
}
