package witness

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrKey says that a key cannot be used; it is no verdict on anything.
var ErrKey = errors.New("not a witness's key")

// cosignatureV1 is the kind of key, the byte before its key material.
const cosignatureV1 = 0x04

const private = "PRIVATE+KEY+"

// Key is what a witness's cosignatures are verified with.
type Key struct {
	name   string
	public ed25519.PublicKey
}

// ParseKey reads a key as it is published, name+hash+base64.
func ParseKey(text string) (Key, error) {
	name, public, err := parse(strings.TrimSpace(text), ed25519.PublicKeySize)
	if err != nil {
		return Key{}, err
	}
	k := Key{name, public}
	if k.String() != strings.TrimSpace(text) { // the hash is the key's
		return Key{}, fmt.Errorf("%w: its hash is of another", ErrKey)
	}
	return k, nil
}

// Name is what the witness calls itself.
func (k Key) Name() string { return k.name }

// String is the key as it is published.
func (k Key) String() string {
	return fmt.Sprintf("%s+%08x+%s", k.name, k.KeyHash(), base64.StdEncoding.EncodeToString(append([]byte{cosignatureV1}, k.public...)))
}

// KeyHash tells keys of one name apart.
func (k Key) KeyHash() uint32 {
	h := sha256.New()
	h.Write([]byte(k.name + "\n"))
	h.Write([]byte{cosignatureV1})
	h.Write(k.public)
	return binary.BigEndian.Uint32(h.Sum(nil))
}

// Signer is a witness's private key. It prints as nothing.
type Signer struct {
	key     Key
	private ed25519.PrivateKey
}

// NewSigner makes a key under a name, by custom an address of the witness's
// without its scheme. secret is what ParseSigner reads.
func NewSigner(name string) (secret string, err error) {
	if err := named(name); err != nil {
		return "", err
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return "", fmt.Errorf("make a witness's key: %w", err)
	}
	s := signer(name, seed)
	return fmt.Sprintf("%s%s+%08x+%s", private, name, s.key.KeyHash(), base64.StdEncoding.EncodeToString(append([]byte{cosignatureV1}, seed...))), nil
}

// ParseSigner reads what NewSigner made.
func ParseSigner(secret string) (Signer, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(secret), private)
	if !ok {
		return Signer{}, fmt.Errorf("%w: not a private one", ErrKey)
	}
	name, seed, err := parse(text, ed25519.SeedSize)
	if err != nil {
		return Signer{}, err
	}
	s := signer(name, seed)
	if !strings.HasPrefix(text, fmt.Sprintf("%s+%08x+", name, s.key.KeyHash())) {
		return Signer{}, fmt.Errorf("%w: its hash is of another", ErrKey)
	}
	return s, nil
}

func signer(name string, seed []byte) Signer {
	p := ed25519.NewKeyFromSeed(seed)
	return Signer{Key{name, p.Public().(ed25519.PublicKey)}, p} // of this type, says the library
}

// Key is the public half.
func (s Signer) Key() Key { return s.key }

// String hides the key from whoever prints it.
func (s Signer) String() string { return "[hidden]" }

// parse takes name+hash+base64 apart.
func parse(text string, size int) (name string, material []byte, err error) {
	parts := strings.SplitN(text, "+", 3) // base64 has plusses of its own
	if len(parts) != 3 {
		return "", nil, fmt.Errorf("%w: not name+hash+key", ErrKey)
	}
	if err := named(parts[0]); err != nil {
		return "", nil, err
	}
	if _, err := strconv.ParseUint(parts[1], 16, 32); err != nil || len(parts[1]) != 8 {
		return "", nil, fmt.Errorf("%w: not name+hash+key", ErrKey)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(raw) != 1+size || raw[0] != cosignatureV1 {
		return "", nil, fmt.Errorf("%w: not an Ed25519 key for cosignatures", ErrKey)
	}
	return parts[0], raw[1:], nil
}

// named is what a signed note allows for a name.
func named(name string) error {
	if name == "" || !utf8.ValidString(name) || strings.Contains(name, "+") || strings.ContainsFunc(name, unicode.IsSpace) {
		return fmt.Errorf("%w: a name has no blanks and no plus, and is not empty", ErrKey)
	}
	return nil
}
