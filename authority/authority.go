package authority

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// Refusals. Callers test them with errors.Is and turn them into OAuth errors or
// pages; every other error is a surprise.
var (
	ErrPending       = errors.New("waiting for the person")                         // keep polling
	ErrTooSoon       = errors.New("polled before the interval")                     // poll slower
	ErrBusy          = errors.New("another call is paying this out")                // poll again
	ErrDenied        = errors.New("the person said no")                             // stop
	ErrExpired       = errors.New("the request has expired")                        // begin again
	ErrRedeemed      = errors.New("already paid out")                               // stop
	ErrUnknown       = errors.New("unknown, or not the caller's")                   // stop; says no more
	ErrEnded         = errors.New("the grant has ended")                            // begin again
	ErrReused        = errors.New("a spent refresh token came back")                // the grant has ended
	ErrScope         = errors.New("scope not on the card or not granted")           // ask for less
	ErrDecided       = errors.New("the request has been decided")                   // show how
	ErrChanged       = errors.New("what was shown no longer stands")                // show again
	ErrAgentDisabled = errors.New("the agent is unknown or disabled")               // 401
	ErrPaused        = errors.New("the brand or its delegation is paused")          // 503
	ErrSuspended     = errors.New("the person's account at the brand is suspended") // kept for later
	ErrUnavailable   = errors.New("cannot sign right now")                          // 503, nothing lost
)

// LimitError says that too much was asked, and when to ask again.
type LimitError struct {
	What       string // never contains anything a caller sent
	RetryAfter time.Duration
}

func (e *LimitError) Error() string { return "too many " + e.What }

// Caller is who calls, as its pa-jwt proved: the User is the pair.
type Caller struct {
	Agent string // the agent's issuer, its client_id
	Sub   string // the agent's name for the person
}

// Signer makes the JWS that are paid out.
type Signer interface {
	Sign(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error)
}

// Authority applies the rules. Safe for concurrent use by any number of
// instances over one database.
type Authority struct {
	db     *tenants.DB
	signer Signer
	master *signing.Master
	now    func() time.Time
	rand   io.Reader
}

// Config is what an Authority needs.
type Config struct {
	DB     *tenants.DB
	Signer Signer
	// Master makes the MACs of user codes and derives refresh tokens.
	Master *signing.Master
	Now    func() time.Time
	Rand   io.Reader // nil: crypto/rand
}

// New returns an Authority.
func New(c Config) *Authority {
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return &Authority{db: c.DB, signer: c.Signer, master: c.Master, now: c.Now, rand: c.Rand}
}

// clock returns the present as PostgreSQL keeps it.
func (a *Authority) clock() time.Time { return a.now().UTC().Truncate(time.Microsecond) }

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// secret returns prefix and 256 random bits.
func (a *Authority) secret(prefix string) (string, error) {
	var b [32]byte
	if _, err := io.ReadFull(a.rand, b[:]); err != nil {
		return "", fmt.Errorf("draw randomness: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// hash is how secrets with 256 random bits rest in the database.
func hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
