package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Agent is a personal agent that the server knows. With one ES256 key it can ask
// most questions; the others of NewAgent are for what a server must refuse.
type Agent struct {
	Issuer   string             `json:"issuer"`
	Audience string             `json:"audience"`
	Keys     jose.JSONWebKeySet `json:"jwks"` // private; public halves are to be at the agent's jwks_uri
	good     map[string]jose.JSONWebKey
}

// What the keys of an agent are for.
const (
	keyEC   = "ES256"
	keyRSA  = "RS256"
	keyWeak = "RS256, 1024 bits"
	keyEnc  = "use enc"
	keyBare = "without kid"
)

// NewAgent makes an agent with every kind of key that there are checks for.
func NewAgent(issuer, audience string) (*Agent, error) {
	a := &Agent{Issuer: issuer, Audience: audience}
	strong, err1 := rsa.GenerateKey(rand.Reader, 2048)
	weak, err2 := rsa.GenerateKey(rand.Reader, 1024)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("make the agent's keys: %w", err)
	}
	a.Keys.Keys = []jose.JSONWebKey{
		{Key: newEC(), KeyID: "ec", Algorithm: "ES256", Use: "sig"},
		{Key: strong, KeyID: "rsa", Algorithm: "RS256", Use: "sig"},
		{Key: weak, KeyID: "weak", Algorithm: "RS256", Use: "sig"},
		{Key: newEC(), KeyID: "enc", Use: "enc"},
		{Key: newEC(), Algorithm: "ES256", Use: "sig"},
	}
	return a, a.sort()
}

// ReadAgent reads what "countersign conformance keys" wrote, or a single private
// JWK, which needs the issuer and the audience beside it.
func ReadAgent(file, issuer, audience string) (*Agent, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the agent: %w", err)
	}
	a := &Agent{}
	if err := json.Unmarshal(raw, a); err != nil {
		return nil, fmt.Errorf("read the agent %s: not JSON of an agent", file)
	}
	if len(a.Keys.Keys) == 0 {
		var one jose.JSONWebKey
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, fmt.Errorf("read the agent %s: neither an agent nor a private key", file)
		}
		a.Keys.Keys = []jose.JSONWebKey{one}
	}
	if issuer != "" {
		a.Issuer = issuer
	}
	if audience != "" {
		a.Audience = audience
	}
	if a.Issuer == "" || a.Audience == "" {
		return nil, fmt.Errorf("read the agent %s: its issuer and the audience that the Brand's Provider assigned are needed too", file)
	}
	return a, a.sort()
}

// As is another agent of the same kinds of keys. It shares the RSA keys, which
// are slow to make, and no other.
func (a *Agent) As(issuer, audience string) (*Agent, error) {
	other := &Agent{Issuer: issuer, Audience: audience}
	for _, k := range a.Keys.Keys {
		if _, slow := k.Key.(*rsa.PrivateKey); !slow {
			k.Key = newEC()
		}
		other.Keys.Keys = append(other.Keys.Keys, k)
	}
	return other, other.sort()
}

// naming is the same agent where it names another audience.
func (a *Agent) naming(audience string) *Agent {
	if audience == "" {
		return a
	}
	there := *a
	there.Audience = audience
	return &there
}

func newEC() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // never, with the system's randomness
	}
	return key
}

// sort finds out which key is good for what.
func (a *Agent) sort() error {
	a.good = make(map[string]jose.JSONWebKey)
	for _, k := range a.Keys.Keys {
		kind := ""
		switch key := k.Key.(type) {
		case *ecdsa.PrivateKey:
			switch {
			case key.Curve != elliptic.P256():
			case k.Use == "enc":
				kind = keyEnc
			case k.KeyID == "":
				kind = keyBare
			default:
				kind = keyEC
			}
		case *rsa.PrivateKey:
			if kind = keyRSA; key.N.BitLen() < 2048 {
				kind = keyWeak
			}
		}
		if _, there := a.good[kind]; kind != "" && !there {
			a.good[kind] = k
		}
	}
	if _, there := a.good[keyEC]; !there {
		return errors.New("the agent has no private P-256 key with a kid")
	}
	return nil
}

// JWKS is what the agent publishes.
func (a *Agent) JWKS() []byte {
	var public jose.JSONWebKeySet
	for _, k := range a.Keys.Keys {
		public.Keys = append(public.Keys, k.Public())
	}
	raw, err := json.Marshal(public)
	if err != nil {
		panic(err) // keys of these kinds have a JSON form
	}
	return raw
}

// Serve publishes the agent's keys at {issuer}/jwks.json until ctx ends, where
// the issuer is this machine and nobody else serves there.
func (a *Agent) Serve(ctx context.Context) error {
	u, err := url.Parse(a.Issuer)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return nil // published elsewhere
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", u.Host)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil // countersign dev serves its own agent's
	}
	if err != nil {
		return fmt.Errorf("publish the agent's keys: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(a.JWKS())
	})
	const patience = 15 * time.Second
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: 4 * patience}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }() // ends with ctx
	return nil
}

// header is that of a good pa-jwt.
func (a *Agent) header() object {
	return object{"alg": "ES256", "typ": "JWT", "kid": a.good[keyEC].KeyID}
}

// claims are those of a good pa-jwt for the agent's user.
func (a *Agent) claims(sub string) object {
	now := time.Now().Unix()
	return object{"iss": a.Issuer, "sub": sub, "aud": a.Audience, "iat": now, "exp": now + 120}
}

// PAJWT is a good pa-jwt for the agent's user, for two minutes.
func (a *Agent) PAJWT(sub string) string { return a.sign(sub, nil) }

// sign makes a pa-jwt with changes to its claims.
func (a *Agent) sign(sub string, changes object) string {
	return seal(a.header(), a.claims(sub).with(changes), a.good[keyEC].Key)
}
