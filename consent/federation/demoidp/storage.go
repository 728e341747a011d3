package demoidp

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"slices"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const (
	requestLifetime = 10 * time.Minute
	tokenLifetime   = 5 * time.Minute
	mostRequests    = 10_000 // a demo's memory has an end
)

var (
	errUnknownRequest = errors.New("unknown authorization request")
	errUnknownCode    = errors.New("unknown code")
	errUnknownClient  = errors.New("unknown client")
	errTooMany        = errors.New("too many authorization requests")
)

// storage is what zitadel/oidc asks of us. The embedded interface is nil: the methods
// that are not written below belong to flows that this provider does not offer.
type storage struct {
	op.Storage

	mu       sync.Mutex
	users    []User
	client   *client
	requests map[string]*authRequest // by id
	codes    map[string]string       // to request id
	sessions map[string]session      // by cookie value
	keys     []signingKey            // the last one signs
}

func newStorage(c Config) (*storage, error) {
	key, err := newSigningKey()
	if err != nil {
		return nil, err
	}
	return &storage{
		users:    slices.Clone(c.Users),
		client:   &client{id: c.ClientID, secret: c.ClientSecret, redirectURIs: slices.Clone(c.RedirectURIs)},
		requests: make(map[string]*authRequest),
		codes:    make(map[string]string),
		sessions: make(map[string]session),
		keys:     []signingKey{key},
	}, nil
}

// CreateAuthRequest keeps a validated authorization request until the login is done.
func (s *storage) CreateAuthRequest(_ context.Context, asked *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	if asked.CodeChallenge == "" || asked.CodeChallengeMethod != oidc.CodeChallengeMethodS256 {
		return nil, oidc.ErrInvalidRequest().WithDescription("PKCE with S256 is needed")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, old := range s.requests {
		if time.Since(old.at) > requestLifetime {
			s.drop(id)
		}
	}
	if len(s.requests) >= mostRequests {
		return nil, errTooMany
	}
	request := &authRequest{id: rand.Text(), at: time.Now(), asked: *asked}
	s.requests[request.id] = request
	return request.copy(), nil
}

// AuthRequestByID finds a request that is not yet redeemed.
func (s *storage) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	request, ok := s.request(id)
	if !ok {
		return nil, errUnknownRequest
	}
	return request, nil
}

// AuthRequestByCode finds the request of a code and uses the code up, whatever comes
// of this attempt.
func (s *storage) AuthRequestByCode(_ context.Context, code string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request, ok := s.requests[s.codes[code]]
	delete(s.codes, code)
	if !ok {
		return nil, errUnknownCode
	}
	return request.copy(), nil
}

// SaveAuthCode remembers the code of a request.
func (s *storage) SaveAuthCode(_ context.Context, id, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code] = id
	return nil
}

// DeleteAuthRequest forgets a request with its codes.
func (s *storage) DeleteAuthRequest(_ context.Context, id string) error {
	s.forget(id)
	return nil
}

func (s *storage) request(id string) (*authRequest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request, ok := s.requests[id]
	if !ok {
		return nil, false
	}
	return request.copy(), true
}

func (s *storage) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
}

func (s *storage) drop(id string) {
	delete(s.requests, id)
	for code, of := range s.codes {
		if of == id {
			delete(s.codes, code)
		}
	}
}

// CreateAccessToken names an access token; nothing but userinfo takes it.
func (s *storage) CreateAccessToken(context.Context, op.TokenRequest) (string, time.Time, error) {
	return rand.Text(), time.Now().Add(tokenLifetime), nil
}

// GetClientByClientID knows one client.
func (s *storage) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.client.id {
		return nil, errUnknownClient
	}
	current := *s.client
	return &current, nil
}

// AuthorizeClientIDSecret checks the client's secret.
func (s *storage) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.client.id || s.client.key != nil || subtle.ConstantTimeCompare([]byte(secret), []byte(s.client.secret)) != 1 {
		return errUnknownClient
	}
	return nil
}

// GetKeyByIDAndClientID finds the key that the client's assertions are verified with.
func (s *storage) GetKeyByIDAndClientID(_ context.Context, keyID, clientID string) (*jose.JSONWebKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := s.client.key; key != nil && clientID == s.client.id && keyID == key.KeyID {
		return key, nil
	}
	return nil, errUnknownClient
}

// SetUserinfoFromScopes is superseded by SetUserinfoFromRequest, but still called.
func (s *storage) SetUserinfoFromScopes(context.Context, *oidc.UserInfo, string, string, []string) error {
	return nil
}

// SetUserinfoFromRequest fills the ID token.
func (s *storage) SetUserinfoFromRequest(_ context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	return s.describe(info, request.GetSubject(), scopes)
}

// SetUserinfoFromToken fills the answer of the userinfo endpoint.
func (s *storage) SetUserinfoFromToken(_ context.Context, info *oidc.UserInfo, _, subject, _ string) error {
	return s.describe(info, subject, []string{oidc.ScopeProfile, oidc.ScopeEmail})
}

func (s *storage) describe(info *oidc.UserInfo, subject string, scopes []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.users, func(u User) bool { return u.Subject == subject })
	if i < 0 {
		return errors.New("unknown user")
	}
	u := s.users[i]
	info.Subject = u.Subject
	if slices.Contains(scopes, oidc.ScopeProfile) {
		info.Name, info.PreferredUsername = u.Name, u.Username
	}
	if slices.Contains(scopes, oidc.ScopeEmail) && u.Email != "" {
		info.Email, info.EmailVerified = u.Email, true
	}
	for name, value := range u.Claims {
		info.AppendClaims(name, value)
	}
	return nil
}

// SigningKey is the newest key.
func (s *storage) SigningKey(context.Context) (op.SigningKey, error) {
	return s.signer(), nil
}

// SignatureAlgorithms stands in the discovery document.
func (s *storage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{signatureAlgorithm}, nil
}

// KeySet is published.
func (s *storage) KeySet(context.Context) ([]op.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]op.Key, len(s.keys))
	for i, key := range s.keys {
		keys[i] = publicKey{key}
	}
	return keys, nil
}

// Health is always good: there is nothing outside to fail.
func (s *storage) Health(context.Context) error { return nil }
