package pa

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// Identity is who a personal agent is (PACT §3): an issuer URL and the key that
// speaks for it.
type Identity struct {
	Issuer   string // also the client_id
	JWKSURI  string // where the world finds the public key
	Name     string
	Audience string // assigned by a Provider; empty when none is stored
	// At are the audiences of Providers, by interface URL; one that ends with a slash
	// stands for every Brand below it. Where there are any, a Brand that is not among
	// them is told none: the pa-jwt would be good at others.
	At map[string]string

	folder string
	key    jose.JSONWebKey
}

// agentFile is agent/agent.json.
type agentFile struct {
	Issuer   string `json:"issuer"`
	JWKSURI  string `json:"jwks_uri"`
	Name     string `json:"name"`
	Audience string `json:"audience,omitempty"`

	At map[string]string `json:"audiences,omitempty"`
}

// CreateIdentity writes an agent's identity below the data folder dir and
// returns it. A key that is already there is kept, so that what others know of
// the agent stays true; the rest is replaced.
func CreateIdentity(dir, issuer, jwksURI, name string) (*Identity, error) {
	folder := agentFolder(dir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the agent's folder: %w", err)
	}
	key, err := readKey(filepath.Join(folder, "key.json"))
	if errors.Is(err, fs.ErrNotExist) {
		key, err = newKey(filepath.Join(folder, "key.json"))
	}
	if err != nil {
		return nil, err
	}
	id := &Identity{Issuer: issuer, JWKSURI: jwksURI, Name: name, folder: folder, key: key}
	return id, id.store()
}

// LoadIdentity reads the identity below the data folder dir. Where there is none
// the error wraps fs.ErrNotExist.
func LoadIdentity(dir string) (*Identity, error) {
	folder := agentFolder(dir)
	data, err := os.ReadFile(filepath.Join(folder, "agent.json"))
	if err != nil {
		return nil, fmt.Errorf("read the agent's identity: %w", err)
	}
	var file agentFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(folder, "agent.json"), err)
	}
	if file.Issuer == "" {
		return nil, fmt.Errorf("read %s: no issuer in it", filepath.Join(folder, "agent.json"))
	}
	key, err := readKey(filepath.Join(folder, "key.json"))
	if err != nil {
		return nil, err
	}
	return &Identity{
		Issuer: file.Issuer, JWKSURI: file.JWKSURI, Name: file.Name, Audience: file.Audience, At: file.At,
		folder: folder, key: key,
	}, nil
}

// IdentityFromKey is an agent whose key lies elsewhere.
func IdentityFromKey(path, issuer string) (*Identity, error) {
	if issuer == "" {
		return nil, errors.New("a key alone is nobody: the agent's issuer is needed too")
	}
	key, err := readKey(path)
	if err != nil {
		return nil, err
	}
	return &Identity{Issuer: issuer, key: key}, nil
}

// StoreAudiences notes what Providers assigned.
func (id *Identity) StoreAudiences(audience string, at map[string]string) error {
	id.Audience, id.At = audience, at
	return id.store()
}

// audienceAt is what to name at the Brand with this interface URL.
func (id *Identity) audienceAt(brand string) string {
	if own, there := id.At[brand]; there || len(id.At) == 0 {
		return cmp.Or(own, id.Audience)
	}
	for place, audience := range id.At {
		if strings.HasSuffix(place, "/") && strings.HasPrefix(brand, place) {
			return audience
		}
	}
	return ""
}

func (id *Identity) store() error {
	data, err := json.MarshalIndent(agentFile{id.Issuer, id.JWKSURI, id.Name, id.Audience, id.At}, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(id.folder, "agent.json"), append(data, '\n'), 0o644)
}

// PublicJWKS is what belongs at the agent's jwks_uri.
func (id *Identity) PublicJWKS() []byte {
	data, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{id.key.Public()}})
	if err != nil {
		panic(err) // a P-256 key always has a JSON form
	}
	return data
}

// KeyID is the RFC 7638 thumbprint of the key.
func (id *Identity) KeyID() string { return id.key.KeyID }

func agentFolder(dir string) string { return filepath.Join(dir, "agent") }

func newKey(path string) (jose.JSONWebKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("make the agent's key: %w", err)
	}
	key, err := named(private)
	if err != nil {
		return key, err
	}
	data, err := json.MarshalIndent(key, "", "  ")
	if err != nil {
		return key, err
	}
	// O_EXCL: of two that start at once, one key wins and nobody overwrites it.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return readKey(path)
	}
	if err != nil {
		return key, fmt.Errorf("store the agent's key: %w", err)
	}
	_, err = file.Write(append(data, '\n'))
	return key, errors.Join(err, file.Close())
}

// readKey reads a private P-256 JWK and refuses a file that others may read:
// such a key has to be taken for stolen.
func readKey(path string) (jose.JSONWebKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("read the agent's key: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return jose.JSONWebKey{}, fmt.Errorf("the key %s is readable by others (mode %#o): chmod 600 it, or better make a new one", path, info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("read the agent's key: %w", err)
	}
	var key jose.JSONWebKey
	if err := json.Unmarshal(data, &key); err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("read the key %s: not a JWK", path)
	}
	private, ok := key.Key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return jose.JSONWebKey{}, fmt.Errorf("read the key %s: not a private P-256 key", path)
	}
	return named(private)
}

// named gives the key the id everybody else would compute for it.
func named(private *ecdsa.PrivateKey) (jose.JSONWebKey, error) {
	key := jose.JSONWebKey{Key: private, Algorithm: string(jose.ES256), Use: "sig"}
	thumbprint, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return key, fmt.Errorf("name the agent's key: %w", err)
	}
	key.KeyID = base64.RawURLEncoding.EncodeToString(thumbprint)
	return key, nil
}
