package console_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// authenticator is a device with passkeys, as WebAuthn describes it: what a
// browser and a security key do between them.
type authenticator struct {
	t      *testing.T
	origin string
	rp     string
	keys   []*credential
	// noCounter: many real ones never count.
	noCounter bool
}

type credential struct {
	id, user []byte
	private  *ecdsa.PrivateKey
	count    uint32
}

const (
	userPresent  = 0x01
	userVerified = 0x04
	attested     = 0x40
)

func newAuthenticator(t *testing.T, origin, rp string) *authenticator {
	t.Helper()
	return &authenticator{t: t, origin: origin, rp: rp}
}

// clone is a copy of the device: the same keys, counting on their own from here.
func (a *authenticator) clone() *authenticator {
	other := &authenticator{t: a.t, origin: a.origin, rp: a.rp}
	for _, k := range a.keys {
		copied := *k
		other.keys = append(other.keys, &copied)
	}
	return other
}

// create answers navigator.credentials.create.
func (a *authenticator) create(options string) string {
	a.t.Helper()
	var o struct {
		PublicKey struct {
			Challenge string
			User      struct{ ID string }
		}
	}
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		a.t.Fatal(err)
	}
	user, err := base64.RawURLEncoding.DecodeString(o.PublicKey.User.ID)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	k := &credential{id: []byte(rand.Text()), user: user, private: private}
	a.keys = append(a.keys, k)
	point, err := private.PublicKey.Bytes()
	if err != nil {
		a.t.Fatal(err)
	}
	public, err := cbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]})
	if err != nil {
		a.t.Fatal(err)
	}
	data := a.data(k, userPresent|userVerified|attested)
	data = append(data, make([]byte, 16)...) // of no known make
	data = binary.BigEndian.AppendUint16(data, uint16(len(k.id)))
	data = append(append(data, k.id...), public...)
	object, err := cbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	if err != nil {
		a.t.Fatal(err)
	}
	return a.answer(k, map[string]string{
		"clientDataJSON": a.client("webauthn.create", o.PublicKey.Challenge), "attestationObject": encode(object),
	})
}

// get answers navigator.credentials.get with the newest key.
func (a *authenticator) get(options string) string {
	a.t.Helper()
	var o struct{ PublicKey struct{ Challenge string } }
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		a.t.Fatal(err)
	}
	k := a.keys[len(a.keys)-1]
	if !a.noCounter {
		k.count++
	}
	data := a.data(k, userPresent|userVerified)
	client := a.client("webauthn.get", o.PublicKey.Challenge)
	raw, err := base64.RawURLEncoding.DecodeString(client)
	if err != nil {
		a.t.Fatal(err)
	}
	hash := sha256.Sum256(raw)
	digest := sha256.Sum256(append(append([]byte(nil), data...), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, k.private, digest[:])
	if err != nil {
		a.t.Fatal(err)
	}
	return a.answer(k, map[string]string{
		"clientDataJSON": client, "authenticatorData": encode(data), "signature": encode(signature), "userHandle": encode(k.user),
	})
}

func (a *authenticator) data(k *credential, flags byte) []byte {
	hash := sha256.Sum256([]byte(a.rp))
	return binary.BigEndian.AppendUint32(append(hash[:], flags), k.count)
}

func (a *authenticator) client(kind, challenge string) string {
	a.t.Helper()
	raw, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false})
	if err != nil {
		a.t.Fatal(err)
	}
	return encode(raw)
}

func (a *authenticator) answer(k *credential, response map[string]string) string {
	a.t.Helper()
	raw, err := json.Marshal(map[string]any{
		"id": encode(k.id), "rawId": encode(k.id), "type": "public-key", "response": response,
		"clientExtensionResults": map[string]any{},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return string(raw)
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
