package federation

import (
	"errors"
	"fmt"
)

// Reasons a login does not come about. Callers test them with errors.Is.
var (
	ErrRefused       = errors.New("the identity provider refused")                  // the person may try again
	ErrUnreachable   = errors.New("the identity provider cannot be reached")        // later
	ErrInvalid       = errors.New("the identity provider's answer is not for us")   // an attack or a late reply: begin anew
	ErrMisconfigured = errors.New("the login connection does not fit the provider") // the Brand's admin must act
)

// Refusal is an ErrRefused with the provider's reason: an error code of OAuth 2.0 or
// OpenID Connect, or "other". What the provider wrote beside it is dropped – it is
// meant for developers, can hold anything, and would be shown to people or logged.
type Refusal struct{ Code string }

func (r *Refusal) Error() string { return ErrRefused.Error() + ": " + r.Code }

// Unwrap makes a Refusal an ErrRefused.
func (r *Refusal) Unwrap() error { return ErrRefused }

// known are the codes of RFC 6749, 4.1.2.1 and 5.2, and OpenID Connect Core, 3.1.2.6.
var known = map[string]bool{
	"access_denied": true, "invalid_request": true, "invalid_scope": true, "server_error": true,
	"temporarily_unavailable": true, "unauthorized_client": true, "unsupported_response_type": true,
	"invalid_grant": true, "invalid_client": true, "unsupported_grant_type": true,
	"interaction_required": true, "login_required": true, "account_selection_required": true,
	"consent_required": true, "invalid_request_uri": true, "invalid_request_object": true,
	"request_not_supported": true, "request_uri_not_supported": true, "registration_not_supported": true,
}

func mapped(code string) string {
	if known[code] {
		return code
	}
	return "other"
}

// IssuerMismatch is an ErrMisconfigured: the provider calls itself differently. The
// two must be the same to the byte (OpenID Connect Discovery, 4.3), because tokens are
// compared with it, and a slash at the end is the usual difference; so whoever sets
// the connection up should be shown Found and asked whether to take it (B54).
type IssuerMismatch struct{ Configured, Found string }

func (m *IssuerMismatch) Error() string {
	return fmt.Sprintf("%s: configured %q, but it calls itself %q", ErrMisconfigured, m.Configured, m.Found)
}

// Unwrap makes an IssuerMismatch an ErrMisconfigured.
func (m *IssuerMismatch) Unwrap() error { return ErrMisconfigured }

func invalid(why string) error       { return fmt.Errorf("%w: %s", ErrInvalid, why) }
func misconfigured(why string) error { return fmt.Errorf("%w: %s", ErrMisconfigured, why) }
