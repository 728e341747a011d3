package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Config is what a Verifier needs. Issuer, Interface and Agents must be given.
type Config struct {
	// Issuer of the Brand's OAuth metadata, byte for byte. Keys, status lists and
	// everything else of the authority's is fetched below it and nowhere else.
	Issuer string
	// Interface is the Brand's interface URL, the aud of its tokens (M17).
	Interface string
	// Agents say which personal agents may call. Brands of one Provider share one.
	Agents *Agents

	// Stale is how old what is known of revocations may be; DefaultStale if 0. In
	// the ordinary course it is five seconds old. However long Stale is, a status list
	// is gone by no longer than until the end that it names itself, ten minutes at most
	// after it was signed.
	Stale time.Duration
	// FailOpen goes on with what was known last when that is older than Stale or over,
	// and takes tokens that name no status list. Otherwise nobody with a token is let
	// in then: 503. Where a call can do harm, leave it alone.
	FailOpen bool

	// Credential is the Brand's API key, with the rights of what is called: stepup,
	// receipts, events. Verifying needs none.
	Credential string

	// AllowLoopback allows an authority on this machine, without TLS. For
	// development.
	AllowLoopback bool
	HTTP          *http.Client     // reaches the authority; nil: one of our own
	Now           func() time.Time // nil: time.Now
	Log           *slog.Logger     // hears why callers were refused, never with what; nil: nobody
}

// Verifier is the Brand's door: it tells who calls and what they may do. It may be
// used by many goroutines at once. It starts no goroutine that outlives a fetch,
// so there is nothing to close.
type Verifier struct {
	issuer     string
	audience   string
	agents     *Agents
	keys       *keyring
	revoked    *revocations
	credential string
	client     *http.Client
	now        func() time.Time
	log        *slog.Logger
}

// New checks the configuration. It fetches nothing yet: the first call does.
func New(c Config) (*Verifier, error) {
	switch {
	case c.Agents == nil:
		return nil, fmt.Errorf("%w: Agents, who may call, must be given", ErrOptions)
	case c.Interface == "":
		return nil, fmt.Errorf("%w: Interface, the aud of tokens, must be given", ErrOptions)
	case c.Stale < 0:
		return nil, fmt.Errorf("%w: Stale is negative", ErrOptions)
	}
	if err := checkURL(c.Issuer, c.AllowLoopback); err != nil || strings.HasSuffix(c.Issuer, "/") {
		return nil, fmt.Errorf("%w: Issuer %q is not a plain https URL", ErrOptions, c.Issuer)
	}
	if c.Stale == 0 {
		c.Stale = DefaultStale
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	client := steady(c.HTTP)
	keys := newKeyring(client, always(c.Issuer+"/jwks.json"), c.Now)
	return &Verifier{
		issuer: c.Issuer, audience: c.Interface, agents: c.Agents, keys: keys,
		revoked: &revocations{
			issuer: c.Issuer, keys: keys, client: client, now: c.Now, stale: c.Stale, failOpen: c.FailOpen,
			ended: newEnded(c.Now), lists: map[string]*kept[fetchedList]{},
		},
		credential: c.Credential, client: client, now: c.Now, log: c.Log,
	}, nil
}

// Call is who calls, and what for.
type Call struct {
	// Agent is the personal agent, and its own name for its user: all that is
	// known of a caller who shows no delegation token.
	Agent Agent
	// Delegation is what a person allowed; nil where no token was shown.
	Delegation *Delegation

	paJWT, token string // as they were shown, for StepUp and Countersign
}

// Call verifies what an agent sent: the pa-jwt in Authorization and the delegation
// token, if any, in X-A2A-User-Delegation (PACT §5.5). The pa-jwt is judged first.
//
// An error is one of three, by errors.Is: ErrCaller (answer with the 401 of M7),
// ErrToken (that of M21), and ErrUnavailable, which is no verdict (503). Respond
// writes them.
func (v *Verifier) Call(ctx context.Context, header http.Header) (Call, error) {
	var c Call
	var err error
	if c.paJWT, err = bearer(header.Values("Authorization")); err == nil {
		c.Agent, err = v.agents.Verify(ctx, c.paJWT)
	}
	if err != nil {
		return Call{}, verdict(ErrCaller, err)
	}
	shown := header.Values(delegationHeader)
	if len(shown) == 0 {
		return c, nil
	}
	if c.token, err = bearer(shown); err == nil {
		c.Delegation, err = v.delegation(ctx, c.token, c.Agent)
	}
	if err != nil {
		return Call{}, verdict(ErrToken, err)
	}
	return c, nil
}

// verdict is a refusal of that kind, unless nobody could tell.
func verdict(kind, err error) error {
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// delegation verifies a token shown by the agent. What can be refused without
// reaching out is refused first; nothing is believed before the signature is.
func (v *Verifier) delegation(ctx context.Context, token string, shownBy Agent) (*Delegation, error) {
	e, err := openDelegation(token)
	if err != nil {
		return nil, err
	}
	var unread Report
	d, err := readDelegation(&unread, e.claims, Options{
		Issuer: v.issuer, Audience: v.audience, Agent: shownBy.Issuer, Now: v.now(), // M18
	})
	if err != nil {
		return nil, err
	}
	if err := v.keys.verify(ctx, &e); err != nil {
		return nil, err
	}
	if err := v.revoked.judge(ctx, &d); err != nil {
		return nil, err
	}
	return &d, nil
}

func openDelegation(token string) (envelope, error) {
	e, err := open(token, maxToken)
	if err == nil {
		err = e.readHeader(token)
	}
	if err == nil {
		err = readTokenHeader(e)
	}
	return e, err
}

// Allows reports whether the person allowed this. Nobody allowed anything where
// there is no delegation.
func (c Call) Allows(scope string) bool { return len(c.Missing(scope)) == 0 }

// Missing are those of the scopes that the person did not allow, in this order:
// what to ask for with StepUp (M22).
func (c Call) Missing(scopes ...string) []string {
	var missing []string
	for _, scope := range scopes {
		if c.Delegation == nil || !c.Delegation.Allows(scope) {
			missing = append(missing, scope)
		}
	}
	return missing
}
