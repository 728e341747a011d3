package tenants

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// LoginKey is the key of a connection that authenticates with private_key_jwt.
type LoginKey struct {
	ID      string // kid, its RFC 7638 thumbprint
	Private *ecdsa.PrivateKey
}

// newLoginKey makes a P-256 key: its private half to be sealed, its public half
// as a JWK to be published.
func newLoginKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make login key: %w", err)
	}
	if private, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		return nil, nil, fmt.Errorf("make login key: %w", err)
	}
	x, y, err := coordinates(key)
	if err != nil {
		return nil, nil, err
	}
	public, err = json.Marshal(map[string]string{
		"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": thumbprint(x, y), "alg": "ES256", "use": "sig",
	})
	return private, public, err
}

func readLoginKey(private []byte) (*LoginKey, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(private)
	if err != nil {
		return nil, errors.New("what is sealed is no key") // never its bytes
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("what is sealed is another kind of key")
	}
	x, y, err := coordinates(key)
	if err != nil {
		return nil, err
	}
	return &LoginKey{ID: thumbprint(x, y), Private: key}, nil
}

func coordinates(key *ecdsa.PrivateKey) (x, y string, err error) {
	const half = 32
	point, err := key.PublicKey.Bytes()
	if err != nil || len(point) != 1+2*half {
		return "", "", errors.New("the login key is not on P-256")
	}
	return base64.RawURLEncoding.EncodeToString(point[1 : 1+half]), base64.RawURLEncoding.EncodeToString(point[1+half:]), nil
}

// thumbprint is RFC 7638 for an EC key: these members, in this order.
func thumbprint(x, y string) string {
	sum := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + x + `","y":"` + y + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// LoginKeys are the public keys with which we authenticate at the Brand's OpenID
// provider, the live connection's and the candidate's.
func LoginKeys(ctx context.Context, db *DB, brand BrandID) ([]json.RawMessage, error) {
	const q = `
		SELECT public_jwk::text AS key FROM login_connections
		 WHERE brand_id = @brand AND ended_at IS NULL AND public_jwk IS NOT NULL
		 ORDER BY live DESC`
	rows, err := All[struct{ Key string }](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list login keys of %s: %w", brand, err)
	}
	keys := make([]json.RawMessage, len(rows))
	for i, r := range rows {
		keys[i] = json.RawMessage(r.Key)
	}
	return keys, nil
}

// storedCredential is what authenticates us at the connection's provider, as it
// rests.
func storedCredential(ctx context.Context, db *DB, brand BrandID, id uuid.UUID) (sealed, public []byte, err error) {
	const q = `
		SELECT client_secret_sealed AS sealed, public_jwk::text AS public FROM login_connections
		 WHERE brand_id = @brand AND id = @id AND ended_at IS NULL`
	r, err := One[struct {
		Sealed []byte
		Public *string
	}](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "id": id})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, ErrConnectionMoved
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load login secret of %s: %w", brand, err)
	}
	if r.Public != nil {
		public = []byte(*r.Public)
	}
	return r.Sealed, public, nil
}
