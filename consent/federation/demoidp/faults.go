package demoidp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// Faults are ways in which providers misbehave, each seen somewhere or named by an
// attack. The zero value is an honest provider. SetFaults puts all of them in force
// at once, so tests of one provider must not run beside each other.
type Faults struct {
	// AuthorizeError answers the next authorization, and only that, with this error.
	AuthorizeError            string
	AuthorizeErrorDescription string

	OmitState      bool   // leaves out state on the way back
	OmitIssuer     bool   // leaves out iss (RFC 9207) on the way back
	ResponseIssuer string // sends another iss on the way back: a mix-up

	Discovery, JWKS, Token Answer

	EditDiscovery func(document map[string]any)
	EditIDToken   func(claims map[string]any) // before it is signed
	EditToken     func(answer map[string]any) // the token endpoint's

	ClockOffset time.Duration // added to iat, exp and auth_time

	// SignAs is "none" for an unsigned ID token, or "HS256" for one that is signed
	// with the client's secret.
	SignAs string
}

// Answer replaces what an endpoint says. The zero value changes nothing.
type Answer struct {
	Hang   bool // until the caller gives up
	Status int
	Body   string
}

// faulty holds the faults in force and counts what was asked.
type faulty struct {
	mu   sync.Mutex
	now  Faults
	hits map[string]int
}

// SetFaults replaces the faults in force.
func (p *Provider) SetFaults(f Faults) {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	p.faults.now = f
}

// Hits says how often a path was asked for.
func (p *Provider) Hits(path string) int {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	return p.faults.hits[path]
}

// RotateKeys makes a new signing key. The old one stays published only if keep is set.
func (p *Provider) RotateKeys(keep bool) error {
	key, err := newSigningKey()
	if err != nil {
		return err
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	if !keep {
		p.store.keys = nil
	}
	p.store.keys = append(p.store.keys, key)
	return nil
}

func (f *faulty) get() Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *faulty) authorizeError() (code, description string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	code, description = f.now.AuthorizeError, f.now.AuthorizeErrorDescription
	f.now.AuthorizeError, f.now.AuthorizeErrorDescription = "", ""
	return code, description
}

// misbehave counts every request and replaces the answers that are to be wrong.
func (p *Provider) misbehave(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.faults.mu.Lock()
		if p.faults.hits == nil {
			p.faults.hits = make(map[string]int)
		}
		p.faults.hits[r.URL.Path]++
		f := p.faults.now
		p.faults.mu.Unlock()
		wrong := map[string]Answer{PathDiscovery: f.Discovery, PathJWKS: f.JWKS, PathToken: f.Token}[r.URL.Path]
		switch {
		case wrong.Hang:
			// Until the caller hangs up, of which the server learns only when it has
			// read the request, or until Close.
			_ = r.ParseForm()
			<-r.Context().Done()
		case wrong.Status != 0:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(wrong.Status)
			_, _ = w.Write([]byte(wrong.Body))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// alterToken applies the faults that sit inside a token answer.
func (p *Provider) alterToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := p.faults.get()
		if p.config.Now != nil {
			f.ClockOffset += time.Until(p.config.Now())
		}
		if f.EditIDToken == nil && f.EditToken == nil && f.ClockOffset == 0 && f.SignAs == "" {
			next.ServeHTTP(w, r)
			return
		}
		held := &heldAnswer{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(held, r)
		text := held.body.Bytes()
		if held.status == http.StatusOK {
			if altered, err := p.alter(text, f); err == nil {
				text = altered
			}
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(held.status)
		_, _ = w.Write(text)
	})
}

func (p *Provider) alter(text []byte, f Faults) ([]byte, error) {
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	token, _ := answer["id_token"].(string)
	if parts := strings.Split(token, "."); len(parts) == 3 {
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			return nil, err
		}
		var claims map[string]any
		if err := json.Unmarshal(payload, &claims); err != nil {
			return nil, err
		}
		for _, name := range []string{"iat", "exp", "auth_time"} {
			if at, ok := claims[name].(float64); ok {
				claims[name] = int64(at) + int64(f.ClockOffset.Seconds())
			}
		}
		if f.EditIDToken != nil {
			f.EditIDToken(claims)
		}
		if answer["id_token"], err = p.sign(claims, f.SignAs); err != nil {
			return nil, err
		}
	}
	if f.EditToken != nil {
		f.EditToken(answer)
	}
	return json.Marshal(answer)
}

func (p *Provider) sign(claims map[string]any, as string) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	if as == "none" {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encode(payload) + ".", nil
	}
	key := p.store.signer()
	with := jose.SigningKey{Algorithm: signatureAlgorithm, Key: jose.JSONWebKey{Key: key.private, KeyID: key.id}}
	if as == "HS256" {
		secret := p.config.ClientSecret
		secret += strings.Repeat("\x00", max(0, 32-len(secret))) // HMAC pads its key the same way
		with = jose.SigningKey{Algorithm: jose.HS256, Key: []byte(secret)}
	}
	signer, err := jose.NewSigner(with, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// heldAnswer keeps an answer back, so that it can be changed.
type heldAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *heldAnswer) WriteHeader(status int)         { h.status = status }
func (h *heldAnswer) Write(text []byte) (int, error) { return h.body.Write(text) }
