package agent

import "errors"

// ErrRefused is what every Refusal is: the caller did not prove who it is.
var ErrRefused = errors.New("caller refused")

// Refusal names why a caller was refused. It is for our logs; the caller learns
// nothing, since a stranger would use it to improve a forgery.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

// Is makes every Refusal an ErrRefused.
func (r Refusal) Is(target error) bool { return target == ErrRefused }

// The reasons, in the order in which they are found.
const (
	ErrBearer       = Refusal("not exactly one bearer token in Authorization")
	ErrTooLong      = Refusal("token is too long")
	ErrMalformed    = Refusal("token is malformed")
	ErrAlgorithm    = Refusal("alg is neither ES256 nor RS256")
	ErrHeader       = Refusal("header member that may not be there")
	ErrIssuer       = Refusal("iss is no registered agent")
	ErrUndiscovered = Refusal("agent cannot be discovered, or not now") // where the Brand is open
	ErrSubject      = Refusal("sub is not 1 to 256 plain characters")
	ErrAudience     = Refusal("aud is not this audience alone")
	ErrTimes        = Refusal("iat, exp or nbf is missing or no time")
	ErrEarly        = Refusal("token is not valid yet") // the agent's clock is ahead
	ErrExpired      = Refusal("token has expired")
	ErrLifetime     = Refusal("token lives too long or ends before it begins")
	ErrDisabled     = Refusal("agent is disabled")
	ErrKeysMissing  = Refusal("agent's published keys cannot be had") // its jwks_uri fails
	ErrUnknownKey   = Refusal("agent publishes no such key")
	ErrWrongKey     = Refusal("key is for another alg")
	ErrSignature    = Refusal("signature does not verify")
)
