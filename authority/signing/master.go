package signing

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"countersign.dev/tenants"
)

// Master is the secret that stands outside the database. From it come, per
// Brand and purpose, the keys that seal secrets at rest and that make MACs of
// what is too short to hash. Versions allow it to be changed: old ones go on
// opening and checking what they made.
type Master struct {
	keys    map[int][]byte
	current int
}

const masterSize = 32

// NewMaster returns a fresh Master with one version. It is lost with the
// process unless written down; see LoadMaster.
func NewMaster() *Master {
	key := make([]byte, masterSize)
	_, _ = rand.Read(key) // never fails
	return &Master{keys: map[int][]byte{1: key}, current: 1}
}

type masterFile struct {
	Current int            `json:"current"`
	Keys    map[int][]byte `json:"keys"`
}

// LoadMaster reads the master key file, and creates it with mode 0600 on the
// first start.
func LoadMaster(path string) (*Master, error) {
	m, err := OpenMaster(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createMaster(path)
	}
	return m, err
}

// OpenMaster reads the master key file; a missing one is fs.ErrNotExist, for a
// mistyped name must not make a second secret. A file that others can read is
// refused: the secret in it must be taken for known.
func OpenMaster(path string) (*Master, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("master key %s can be read by others (mode %#o): chmod 600 it, and replace it if others may have read it", path, info.Mode().Perm())
	}
	var f masterFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("master key %s is not what we wrote", path)
	}
	m := &Master{keys: f.Keys, current: f.Current}
	for v, key := range m.keys {
		if v < 1 || len(key) != masterSize {
			return nil, fmt.Errorf("master key %s: version %d is not %d bytes", path, v, masterSize)
		}
	}
	if m.keys[m.current] == nil {
		return nil, fmt.Errorf("master key %s: current version %d is missing", path, m.current)
	}
	return m, nil
}

func createMaster(path string) (*Master, error) {
	m := NewMaster()
	raw, err := json.Marshal(masterFile{Current: m.current, Keys: m.keys})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create master key: %w", err)
	}
	// Written whole under another name and then linked: two first starts at
	// once agree on one file, and a crash leaves none or a whole one.
	tmp, err := os.CreateTemp(filepath.Dir(path), ".master-*") // 0600
	if err != nil {
		return nil, fmt.Errorf("create master key: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(raw)
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return nil, fmt.Errorf("create master key: %w", err)
	}
	if err := os.Link(tmp.Name(), path); errors.Is(err, fs.ErrExist) {
		return LoadMaster(path)
	} else if err != nil {
		return nil, fmt.Errorf("create master key: %w", err)
	}
	return m, nil
}

func (m *Master) derive(version int, brand tenants.BrandID, purpose string) ([]byte, error) {
	root := m.keys[version]
	if root == nil {
		return nil, fmt.Errorf("master key version %d is not here", version)
	}
	// Length-prefixed, so that no Brand and purpose run into another pair.
	info := fmt.Sprintf("countersign/1 %d:%s %s", len(brand), brand, purpose)
	return hkdf.Key(sha256.New, root, nil, info, masterSize)
}

// Version returns the version that new MACs and seals use.
func (m *Master) Version() int { return m.current }

// MAC returns HMAC-SHA-256 of data under the key for the Brand and purpose.
func (m *Master) MAC(version int, brand tenants.BrandID, purpose string, data []byte) ([]byte, error) {
	key, err := m.derive(version, brand, purpose)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil), nil
}

// Seal encrypts plain with AES-256-GCM. It implements tenants.Sealer.
func (m *Master) Seal(_ context.Context, brand tenants.BrandID, purpose string, plain []byte) ([]byte, error) {
	aead, err := m.aead(m.current, brand, purpose)
	if err != nil {
		return nil, err
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(m.current))
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	out = append(out, nonce...)
	return aead.Seal(out, nonce, plain, out[:4]), nil
}

// Open decrypts what Seal made for the same Brand and purpose.
func (m *Master) Open(_ context.Context, brand tenants.BrandID, purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) < 4 {
		return nil, errors.New("sealed value is too short")
	}
	aead, err := m.aead(int(binary.BigEndian.Uint32(sealed)), brand, purpose)
	if err != nil {
		return nil, err
	}
	head, rest := sealed[:4], sealed[4:]
	if len(rest) < aead.NonceSize() {
		return nil, errors.New("sealed value is too short")
	}
	plain, err := aead.Open(nil, rest[:aead.NonceSize()], rest[aead.NonceSize():], head)
	if err != nil {
		return nil, errors.New("sealed value does not open")
	}
	return plain, nil
}

func (m *Master) aead(version int, brand tenants.BrandID, purpose string) (cipher.AEAD, error) {
	key, err := m.derive(version, brand, "seal "+purpose)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// LogValue and String keep the secret out of logs.
func (m *Master) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// String keeps the secret out of formatted text.
func (m *Master) String() string { return "[hidden]" }
