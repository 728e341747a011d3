package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"countersign.dev/e2e/conformance"
)

// Exit codes of conformance, so that a script can tell a broken rule from one
// that nobody looked at.
const (
	conformanceFailed  = 1
	conformanceUnknown = 2 // the server could not be asked
	conformancePartial = 3 // nothing failed, and not everything was asked
)

type conformanceArgs struct {
	card, pa, issuer, audience string
	otherPA, otherCard         string
	otherAudience, verify      string
	people, ask, assertion     string
	brandKey, operator, only   string
	grace                      time.Duration
	texts                      pairs
	json                       bool
}

func runConformance(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "keys" {
		return conformanceKeys(args[1:], stdout, stderr)
	}
	s := newSettings("conformance", `ask a PACT server, over HTTP alone, whether it keeps every rule

"countersign conformance keys --issuer URL --audience TEXT" writes an agent with
keys of every kind to ask with, for --pa. Register it at the server first; where
its issuer is on this machine, its keys are published while the checks run.

Exit codes: 0 every rule holds, 1 one is broken, 2 the server could not be asked,
3 nothing is broken, but not everything could be asked.`, stderr)
	var a conformanceArgs
	s.StringVar(&a.card, "card", "", "`URL` of the Brand's interface or agent card (required)")
	s.StringVar(&a.pa, "pa", "", "`file` with the agent to ask with, as keys writes it, or its private JWK (required)")
	s.StringVar(&a.issuer, "pa-issuer", "", "issuer `URL` of that agent, where the file is a JWK")
	s.StringVar(&a.audience, "pa-audience", "", "`text` that the Brand's Provider assigned, where the file is a JWK")
	s.StringVar(&a.otherPA, "other-pa", "", "`file` with a second registered agent")
	s.StringVar(&a.otherCard, "other-card", "", "`URL` of another Brand that knows the agent")
	s.StringVar(&a.verify, "verify-url", "", "`URL` where the Brand's proxy asks who calls; empty: {issuer}/verify")
	s.StringVar(&a.otherAudience, "other-audience", "", "`text` that the agent names as aud there; empty: the same")
	s.StringVar(&a.people, "people", "", "`file` with a JSON list of username, password and subject: people whose sign-in and consent are driven by posting the pages' forms")
	s.StringVar(&a.assertion, "assertion", "", "`file` with iss and private key of a Brand that signs people in on its own page; the page's part is played")
	s.StringVar(&a.ask, "ask", "", "comma-separated `names` of people at this terminal, who open links themselves")
	s.StringVar(&a.brandKey, "brand-key", "", "`credential` of the Brand's own server")
	s.StringVar(&a.operator, "operator", "", "`program` that acts as the operator: called with suspend-user, resume-user, disable-agent, enable-agent, retire-scope, restore-scope, pause-brand or resume-brand, and on what")
	s.DurationVar(&a.grace, "grace", 0, "`time` for which a spent refresh token gets its successor again; one check waits for it")
	s.Var(&a.texts, "text", "SCOPE=TEXT: what to tell the Brand's agent so that it needs the scope; may be repeated")
	s.StringVar(&a.only, "rule", "", "comma-separated `rules` to check alone")
	s.BoolVar(&a.json, "json", false, "write JSON")
	if code := s.parse(args); code >= 0 {
		return code
	}
	var missing error
	if a.card == "" || a.pa == "" {
		missing = errors.New("--card and --pa are needed")
	}
	if code := s.refuse(missing); code >= 0 {
		return code
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results, err := conform(ctx, a, stdin, stderr)
	if err == nil {
		if a.json {
			err = conformance.PrintJSON(stdout, results)
		} else {
			err = conformance.Print(stdout, results)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "countersign conformance: %v\n", err)
		return conformanceUnknown
	}
	switch conformance.Verdict(results) {
	case conformance.Pass:
		return 0
	case conformance.Fail:
		return conformanceFailed
	}
	return conformancePartial
}

func conform(ctx context.Context, a conformanceArgs, stdin io.Reader, stderr io.Writer) ([]conformance.Result, error) {
	c := conformance.Config{
		Card: a.card, OtherCard: a.otherCard, OtherAudience: a.otherAudience, Verify: a.verify, BrandKey: a.brandKey, Grace: a.grace, Texts: make(map[string]string),
	}
	var err error
	if c.PA, err = conformance.ReadAgent(a.pa, a.issuer, a.audience); err != nil {
		return nil, err
	}
	agents := []*conformance.Agent{c.PA}
	if a.otherPA != "" {
		if c.OtherPA, err = conformance.ReadAgent(a.otherPA, "", ""); err != nil {
			return nil, err
		}
		agents = append(agents, c.OtherPA)
	}
	for _, one := range agents {
		if err := one.Serve(ctx); err != nil {
			return nil, err
		}
	}
	if c.People, err = peopleFor(a, stdin, stderr); err != nil {
		return nil, err
	}
	for _, pair := range a.texts {
		scope, text, _ := strings.Cut(pair, "=")
		c.Texts[scope] = text
	}
	if a.only != "" {
		c.Only = strings.Split(a.only, ",")
	}
	if a.operator != "" {
		c.Operator = func(ctx context.Context, action, object string) error {
			out, err := exec.CommandContext(ctx, a.operator, action, object).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w: %s", a.operator, err, strings.TrimSpace(string(out)))
			}
			return nil
		}
	}
	return conformance.Run(ctx, c)
}

func peopleFor(a conformanceArgs, stdin io.Reader, stderr io.Writer) (conformance.People, error) {
	switch {
	case a.people != "":
		f := &conformance.Forms{}
		if err := readInto(a.people, &f.People); err != nil {
			return nil, fmt.Errorf("read people: %w", err)
		}
		if a.assertion != "" {
			f.Assertion = &conformance.Assertion{}
			if err := readInto(a.assertion, f.Assertion); err != nil {
				return nil, fmt.Errorf("read the Brand's login key: %w", err)
			}
		}
		return f, nil
	case a.ask != "":
		return conformance.Asked{In: bufio.NewReader(stdin), Out: stderr, Names: strings.Split(a.ask, ",")}, nil
	}
	return nil, nil
}

func readInto(file string, v any) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s is not the JSON expected", file)
	}
	return nil
}

// conformanceKeys writes an agent to ask with. Its private keys are for tests
// alone: one of them is weak on purpose.
func conformanceKeys(args []string, stdout, stderr io.Writer) int {
	s := newSettings("conformance keys", "an agent with keys of every kind, for --pa; for tests alone, one of its keys is weak on purpose", stderr)
	issuer := s.String("issuer", "", "issuer `URL` of the agent (required)")
	audience := s.String("audience", "", "`text` that the Brand's Provider assigned (required)")
	public := s.String("public", "", "`file` with an agent whose public keys to write instead")
	if code := s.parse(args); code >= 0 {
		return code
	}
	write := func() error {
		if *public != "" {
			agent, err := conformance.ReadAgent(*public, "", "")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "%s\n", agent.JWKS())
			return err
		}
		if *issuer == "" || *audience == "" {
			return errors.New("--issuer and --audience are needed")
		}
		agent, err := conformance.NewAgent(*issuer, *audience)
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(agent)
	}
	if err := write(); err != nil {
		fmt.Fprintf(stderr, "countersign conformance keys: %v\n", err)
		return conformanceUnknown
	}
	return 0
}
