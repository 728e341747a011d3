package verify

import "errors"

// Reasons to refuse a token. Callers test them with errors.Is; the text around
// them says what was found and what was expected, and never quotes the token.
var (
	ErrMalformed   = errors.New("not a well-formed token")
	ErrHeader      = errors.New("header member that must not be there")
	ErrType        = errors.New("of another kind by its typ")
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

// The three answers that a Verifier has for a call it does not let through.
var (
	// ErrCaller: the caller did not prove who it is (M7).
	ErrCaller = errors.New("caller not proved")
	// ErrToken: the delegation token is not good, or not the caller's (M21).
	ErrToken = errors.New("delegation token refused")
	// ErrUnavailable: somebody who would have to be asked does not answer. It is
	// no verdict: let nobody in, and say to come again.
	ErrUnavailable = errors.New("cannot be told now")
)

// ErrUnknownAgent says that no agent with this issuer may call (M2).
var ErrUnknownAgent = errors.New("agent not known")

// ErrBearer says that a header does not hold exactly one bearer token.
var ErrBearer = errors.New("not exactly one bearer token")

// What a status list says against a token that is good by itself.
var (
	ErrRevoked   = errors.New("revoked")           // for ever
	ErrSuspended = errors.New("suspended for now") // it may become good again
)

// ErrStatusList says that a status list cannot tell what the token is worth: it
// is broken, too old, or another one. The token must then not be taken for good.
var ErrStatusList = errors.New("unusable status list")

// What receipts and their log are refused for, beside what tokens are.
var (
	ErrClaims     = errors.New("not the claims of a receipt")
	ErrDiffers    = errors.New("claims differ from what was signed")
	ErrBrand      = errors.New("of another brand")
	ErrGrant      = errors.New("of another grant")
	ErrUser       = errors.New("of another user")
	ErrRevokedKey = errors.New("signed with a key that was revoked, and nothing shows that it was before")
	ErrProof      = errors.New("the log does not prove it")
	ErrLog        = errors.New("the log is not whole")
)

// ErrKeys says that a key set cannot be used; it is no verdict on a token.
var ErrKeys = errors.New("unusable key set")

// ErrOptions says that the caller left out what a token must be compared with.
// It exists so that a forgotten setting refuses everything, not accepts it.
var ErrOptions = errors.New("verification not set up")
