package pa

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"countersign.dev/cmd/countersign/shell"
)

// command is one invocation: its flags and where it writes.
type command struct {
	name           string
	args           []string
	flags          *flag.FlagSet
	variables      map[string]string // flag → environment variable, where not the usual one
	stdout, stderr io.Writer

	data, tokens, card, issuer, sub, aud string
	allowSplit, json                     bool
}

func newCommand(name string, args []string, stdout, stderr io.Writer) *command {
	c := &command{name: name, args: args, stdout: stdout, stderr: stderr, variables: map[string]string{}}
	c.flags = flag.NewFlagSet("countersign pa "+name, flag.ContinueOnError)
	c.flags.SetOutput(stderr)
	c.flags.Usage = c.usage
	c.flags.StringVar(&c.data, "data", ".countersign", "data `folder`, the same as of countersign dev")
	return c
}

// brandFlags are the flags of every command that talks to a Brand.
func (c *command) brandFlags() {
	c.flags.StringVar(&c.card, "card", "", "`URL` of the Brand's interface, or of its agent card")
	c.flags.StringVar(&c.aud, "aud", "", "`audience` assigned by the Brand's Provider (default: the one stored with the agent)")
	c.flags.StringVar(&c.tokens, "tokens", "", "`file` to keep tokens in (default: agent/tokens.json in the data folder)")
	c.flags.BoolVar(&c.allowSplit, "allow-split", false, "accept OAuth URLs on another origin than the Brand's interface")
	c.flags.BoolVar(&c.json, "json", false, "write JSON for a program, tokens included")
}

// storedFlags are the flags of commands that work on a stored token.
func (c *command) storedFlags() {
	c.brandFlags()
	c.flags.StringVar(&c.issuer, "issuer", "", "`URL` of the Brand's authority, instead of --card")
	c.flags.StringVar(&c.sub, "sub", "", "which of the agent's `user`s, where there are several")
}

func (c *command) variable(flagName string) string {
	if name, there := c.variables[flagName]; there {
		return name
	}
	return "COUNTERSIGN_PA_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

func (c *command) usage() {
	fmt.Fprintf(c.stderr, "countersign pa %s\n\n", c.name)
	shell.Flags(c.stderr, c.flags, c.variable)
}

// errUsage ends a command whose mistake has been explained already.
var errUsage = errors.New("usage")

// parse reads the environment first and then the flags, which win.
func (c *command) parse() error {
	var wrong error
	c.flags.VisitAll(func(f *flag.Flag) {
		value, there := os.LookupEnv(c.variable(f.Name))
		if !there || value == "" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", c.variable(f.Name), err))
		}
	})
	if wrong != nil {
		return wrong
	}
	if err := c.flags.Parse(c.args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if c.flags.NArg() > 0 {
		return fmt.Errorf("%q is one word too many; everything here is a --flag", c.flags.Arg(0))
	}
	if c.tokens == "" {
		c.tokens = tokensIn(c.data)
	}
	return nil
}

// options are those of the journeys, with the stored identity.
func (c *command) options() (Options, error) {
	identity, err := LoadIdentity(c.data)
	if err != nil {
		return Options{}, err
	}
	return Options{
		Identity: identity, Card: c.card, Sub: c.sub, Audience: c.aud,
		TokenFile: c.tokens, AllowSplit: c.allowSplit,
	}, nil
}

func (c *command) which() Which { return Which{Issuer: c.issuer, Card: c.card, Sub: c.sub} }

func tokensIn(data string) string { return filepath.Join(agentFolder(data), "tokens.json") }
