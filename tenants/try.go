package tenants

import "time"

// Try is a test login under way: what has to be kept between leaving for the
// provider and coming back. Its values are fresh and not to be guessed.
type Try struct {
	State, Nonce, Verifier string
	RedirectURI            string
	Began                  time.Time
}

// TryPrefix begins the state of every test login, and of no other: by it the page
// that all logins come back to tells who is waiting for this one.
const TryPrefix = "try."

// Reasons that a test login leads nowhere.
const (
	TryRefused       = "refused"       // by the provider, for the reason in Why
	TryUnreachable   = "unreachable"   // the provider does not answer
	TryInvalid       = "invalid"       // the answer is not one to this login
	TryMisconfigured = "misconfigured" // connection and provider do not fit
)

// Tried is what a test login came to. The claims are the own data of whoever
// logged in: to be shown to them, and neither kept nor logged.
type Tried struct {
	Trouble string // empty: it went well
	Why     string // about the trouble, one bounded line
	Subject string // what would become sub
	Account string // what people would see themselves called
	Claims  []Claim
}

// Claim is one thing that a provider said of somebody, its value as JSON unless it
// is text.
type Claim struct{ Name, Value string }
