package verify

import "errors"

// Reasons to refuse a token. Callers test them with errors.Is; the text around
// them says what was found and what was expected, and never quotes the token.
var (
	ErrMalformed   = errors.New("not a well-formed token")
	ErrHeader      = errors.New("header member that must not be there")
	ErrType        = errors.New("not a delegation token by its typ")
	ErrAlgorithm   = errors.New("algorithm not allowed")
	ErrUnknownKey  = errors.New("signed with a key that is not published")
	ErrSignature   = errors.New("signature does not verify")
	ErrIssuer      = errors.New("from another issuer")
	ErrAudience    = errors.New("for another audience")
	ErrExpired     = errors.New("expired")
	ErrNotYetValid = errors.New("from the future")
	ErrLifetime    = errors.New("lives longer than allowed")
	ErrSubject     = errors.New("names no subject")
	ErrScope       = errors.New("allows nothing")
	ErrIncomplete  = errors.New("claim missing")

	// ErrNotTransferable: the token was issued to another agent than the one
	// that shows it (M18). A stolen token meets this error.
	ErrNotTransferable = errors.New("issued to another agent")
)

// ErrKeys says that a key set cannot be used; it is no verdict on a token.
var ErrKeys = errors.New("unusable key set")

// ErrOptions says that the caller left out what a token must be compared with.
// It exists so that a forgotten setting refuses everything, not accepts it.
var ErrOptions = errors.New("verification not set up")
