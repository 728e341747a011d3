package transit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config says which Vault to use and how. Address and Auth are needed.
type Config struct {
	// Name is stored beside every key; "vault" by default. A second Vault, for
	// moving to it, has another name.
	Name string
	// Address of the server. http is accepted on loopback only, unless
	// AllowPlaintext says that something else keeps the token secret.
	Address        string
	AllowPlaintext bool
	TLS            TLS
	Namespace      string
	// Mount of the transit engine; "transit" by default.
	Mount string
	// Prefix of Brands' keys; "tenant-" by default. It must end with a dash.
	Prefix string
	Auth   Auth
	// Timeout bounds every signature, queueing included; 2 s by default.
	Timeout time.Duration
	// InFlight bounds the calls under way, over all Brands; 32 by default.
	InFlight int
	Metrics  prometheus.Registerer // may be nil
	Log      *slog.Logger
	Now      func() time.Time
}

const (
	defaultTimeout  = 2 * time.Second
	defaultInFlight = 32
	// patience bounds calls that no person waits for: making a key. An RSA key
	// takes a busy Vault a while.
	patience = 10 * time.Second
)

// Backend implements signing.Backend.
type Backend struct {
	name    string
	mount   string
	prefix  string
	timeout time.Duration
	server  *server
	gather  *gatherer
	log     *slog.Logger

	creating turns // see Create

	end  context.CancelFunc
	work *sync.WaitGroup
}

// New returns a Backend. It checks the configuration and speaks to nobody yet.
// Close it when done: it keeps its token alive in the background.
func New(c Config) (*Backend, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	base, end := context.WithCancel(context.Background())
	b := &Backend{
		name: c.Name, mount: c.Mount, prefix: c.Prefix, timeout: c.Timeout,
		log: c.Log.With("backend", c.Name), end: end, work: new(sync.WaitGroup),
	}
	metrics := newMetrics(c.Metrics, c.Name)
	b.server, err = newServer(base, b.work, c, b.log, metrics)
	if err != nil {
		end()
		return nil, err
	}
	b.gather = newGatherer(limits{inFlight: c.InFlight}, metrics, b.send)
	return b, nil
}

func (c Config) complete() (Config, error) {
	setDefault(&c.Name, "vault")
	setDefault(&c.Mount, "transit")
	setDefault(&c.Prefix, usualPrefix)
	setDefault(&c.Timeout, defaultTimeout)
	setDefault(&c.InFlight, defaultInFlight)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	var wrong []error
	if c.Auth == nil {
		wrong = append(wrong, errors.New("no way to log in is given"))
	}
	if !mountForm.MatchString(c.Mount) {
		wrong = append(wrong, fmt.Errorf("mount %q: give it as in transit or team/transit", c.Mount))
	}
	if !prefixForm.MatchString(c.Prefix) || strings.HasPrefix(sealKey, c.Prefix) {
		wrong = append(wrong, fmt.Errorf("key prefix %q: small letters, digits and dashes, a dash at the end, and not the beginning of %s", c.Prefix, sealKey))
	}
	if c.Timeout < 0 || c.InFlight < 0 {
		wrong = append(wrong, errors.New("timeout and calls in flight must be positive"))
	}
	if err := checkAddress(c.Address, c.AllowPlaintext); err != nil {
		wrong = append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return c, fmt.Errorf("vault %s: %w", c.Name, err)
	}
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Name implements signing.Backend.
func (b *Backend) Name() string { return b.name }

// Check answers whether Vault can be used now, for the readiness probe. Its
// error says what is wrong in words for an operator.
func (b *Backend) Check(ctx context.Context) error {
	if err := b.server.check(ctx); err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	return nil
}

// Close ends what runs in the background and waits for it. Calls made later fail.
func (b *Backend) Close() {
	b.end()
	b.work.Wait()
}
