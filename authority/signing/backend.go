package signing

import (
	"context"
	"crypto"
	"errors"

	"countersign.dev/tenants"
)

// Alg is a JWS algorithm a Brand's key may have.
type Alg string

// The two algorithms PACT allows.
const (
	ES256 Alg = "ES256"
	RS256 Alg = "RS256"
)

// Version is a backend's own number for one key of a Brand, starting at 1. It
// is named in every request for a signature: a backend must never pick "the
// newest" by itself, or a rotation would sign with a key nobody has fetched.
type Version int

// Reasons a backend gives. Callers test them with errors.Is.
var (
	ErrUnavailable = errors.New("signing backend unavailable") // 503, try again
	ErrNoKey       = errors.New("signing backend does not hold the key")
	ErrOtherAlg    = errors.New("the version is there with another algorithm") // take the next one
)

// Job asks for one signature over a SHA-256 digest.
type Job struct {
	Version Version
	Alg     Alg
	Digest  [32]byte // an array: a digest of another length cannot be asked for
}

// Result answers the Job at the same place: for ES256 the 64 bytes r‖s, for
// RS256 the PKCS #1 v1.5 signature.
type Result struct {
	Signature []byte
	Err       error
}

// Backend holds private keys that never leave it. Implementations are safe for
// concurrent use and honour the context's deadline.
type Backend interface {
	// Name is stored beside every key, so that a Brand can move between backends.
	Name() string
	// Create makes the Brand's key of the given version, or finds the one it
	// made before, and returns its public half.
	Create(ctx context.Context, brand tenants.BrandID, version Version, alg Alg) (crypto.PublicKey, error)
	// Sign answers every job; one job's failure is its own.
	Sign(ctx context.Context, brand tenants.BrandID, jobs []Job) []Result
}
