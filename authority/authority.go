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
	"github.com/prometheus/client_golang/prometheus"
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
	ErrWrongUser     = errors.New("another brand user was meant to answer")         // sign in as that one
	ErrToken         = errors.New("the delegation token is worth nothing here")     // 400
	ErrUnavailable   = errors.New("cannot sign right now")                          // 503, nothing lost
	ErrTrail         = errors.New("the audit trail cannot be written")              // 503, nothing changed (R82)
	ErrMalformed     = errors.New("the turn is not one that a receipt can be of")   // 400
	ErrConflict      = errors.New("the turn has a receipt of something else")       // 409
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

// Verifier returns what a JWS of the Brand says, if its published keys verify it;
// otherwise signing.ErrNotOurs.
type Verifier interface {
	Verify(ctx context.Context, brand tenants.BrandID, typ, compact string) ([]byte, error)
}

// Authority applies the rules. Safe for concurrent use by any number of
// instances over one database.
type Authority struct {
	db     *tenants.DB
	signer Signer
	proof  Verifier
	master *signing.Master
	now    func() time.Time
	rand   io.Reader
	trace  func(context.Context) string
	// announce is nil where nobody is told.
	announce Announce
	count    counters
	log      log
	walked   walked
	// What this instance has published, and for which Brands.
	lists  tenants.Memo[listKey, listing]
	listed tenants.Memo[tenants.BrandID, []int]

	checkpoints tenants.Memo[checkpointKey, Checkpoint]
}

// Config is what an Authority needs.
type Config struct {
	DB     *tenants.DB
	Signer Signer
	// Verifier reads the delegation tokens that Brands bring back (Countersign).
	Verifier Verifier
	// Master makes the MACs of user codes and derives refresh tokens.
	Master *signing.Master
	Now    func() time.Time
	Rand   io.Reader // nil: crypto/rand
	// Trace names the HTTP request in the audit trail; nil: nothing does.
	Trace func(context.Context) string
	// Announce is told of every change of a grant, in its transaction; may be nil.
	Announce Announce
	Metrics  prometheus.Registerer // nil: nowhere
}

// New returns an Authority.
func New(c Config) *Authority {
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Trace == nil {
		c.Trace = func(context.Context) string { return "" }
	}
	a := &Authority{
		db: c.DB, signer: c.Signer, proof: c.Verifier, master: c.Master, now: c.Now, rand: c.Rand,
		trace: c.Trace, announce: c.Announce, count: newCounters(c.Metrics),
	}
	a.rememberLists()
	return a
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
