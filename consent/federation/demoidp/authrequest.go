package demoidp

import (
	"slices"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
)

// authRequest is an authorization request on its way through the login. What leaves
// the storage is always a copy.
type authRequest struct {
	id    string
	at    time.Time
	asked oidc.AuthRequest

	subject  string // set by the login
	authTime time.Time
}

func (a *authRequest) copy() *authRequest {
	c := *a
	return &c
}

// accepts tells whether an earlier login is good enough for this request.
func (a *authRequest) accepts(s session, now time.Time) bool {
	if slices.Contains(a.asked.Prompt, oidc.PromptSelectAccount) {
		return false
	}
	// zitadel/oidc has turned prompt=login into max_age=0.
	return a.asked.MaxAge == nil || now.Sub(s.authTime) < time.Duration(*a.asked.MaxAge)*time.Second
}

func (a *authRequest) GetID() string                      { return a.id }
func (a *authRequest) GetACR() string                     { return "" }
func (a *authRequest) GetAMR() []string                   { return []string{"pwd"} }
func (a *authRequest) GetAudience() []string              { return []string{a.asked.ClientID} }
func (a *authRequest) GetAuthTime() time.Time             { return a.authTime }
func (a *authRequest) GetClientID() string                { return a.asked.ClientID }
func (a *authRequest) GetNonce() string                   { return a.asked.Nonce }
func (a *authRequest) GetRedirectURI() string             { return a.asked.RedirectURI }
func (a *authRequest) GetResponseType() oidc.ResponseType { return a.asked.ResponseType }
func (a *authRequest) GetResponseMode() oidc.ResponseMode { return a.asked.ResponseMode }
func (a *authRequest) GetScopes() []string                { return a.asked.Scopes }
func (a *authRequest) GetState() string                   { return a.asked.State }
func (a *authRequest) GetSubject() string                 { return a.subject }
func (a *authRequest) Done() bool                         { return a.subject != "" }

func (a *authRequest) GetCodeChallenge() *oidc.CodeChallenge {
	return &oidc.CodeChallenge{Challenge: a.asked.CodeChallenge, Method: a.asked.CodeChallengeMethod}
}
