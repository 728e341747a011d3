package verify

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Archive holds a Brand's revoked keys, {issuer}/jwks-archive.json. They verify
// nothing by themselves.
type Archive struct{ keys []revokedKey }

type revokedKey struct {
	kid  string
	at   time.Time
	keys []jose.JSONWebKey
}

// ParseArchive reads an archive that was fetched or saved.
func ParseArchive(jwks []byte) (Archive, error) {
	var a Archive
	if len(jwks) > maxKeySet {
		return a, fmt.Errorf("%w: more than %d KiB", ErrKeys, maxKeySet>>10)
	}
	top, err := parseObject(jwks)
	if err != nil {
		return a, fmt.Errorf("%w: %v", ErrKeys, err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(top["keys"], &raw); err != nil {
		return a, fmt.Errorf("%w: no list of keys in it", ErrKeys)
	}
	for _, one := range raw {
		m, err := parseObject(one)
		if err != nil {
			return a, fmt.Errorf("%w: %v", ErrKeys, err)
		}
		revoked, err := m.object("revoked")
		if err != nil {
			return a, fmt.Errorf("%w: %v", ErrKeys, err)
		}
		text, err := revoked.text("revoked_at")
		if err != nil {
			return a, fmt.Errorf("%w: %v", ErrKeys, err)
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return a, fmt.Errorf("%w: revoked_at is no time", ErrKeys)
		}
		delete(m, "revoked")
		plain, err := json.Marshal(m)
		if err != nil {
			return a, fmt.Errorf("%w: %v", ErrKeys, err)
		}
		key, usable, err := parseKey(plain)
		if err != nil {
			return a, err
		}
		if usable && key.KeyID != "" {
			a.keys = append(a.keys, revokedKey{key.KeyID, at, []jose.JSONWebKey{key}})
		}
	}
	return a, nil
}

func (a Archive) find(kid string) (revokedKey, bool) {
	for _, k := range a.keys {
		if k.kid == kid {
			return k, true
		}
	}
	return revokedKey{}, false
}

// Checkpoint is Checkpoint for whoever has an archive beside the keys: it also reads
// what a revoked key signed, which is worth something only where Vouches says so.
func (a Archive) Checkpoint(keys Keys, jws, log string, now time.Time) (LogCheckpoint, Report, error) {
	if revoked, ok := a.find(kidIn(jws)); ok {
		keys = Keys{set: revoked.keys}
	}
	return Checkpoint(keys, jws, log, now)
}

// Vouches is nil where the checkpoint may be believed: no revoked key signed it, or
// a witness saw it while that key was good. Whoever stole one key may have stolen
// two, and then the one says of the other what he likes.
func (a Archive) Vouches(c LogCheckpoint) error {
	revoked, ok := a.find(c.KID)
	if !ok || c.witnessedBefore(revoked.at) {
		return nil
	}
	if c.Witnessed.IsZero() {
		return fmt.Errorf("%w: the checkpoint, and no witness saw it before", ErrRevokedKey)
	}
	return fmt.Errorf("%w: the checkpoint, revoked %s and witnessed %s", ErrRevokedKey, stamp(revoked.at), stamp(c.Witnessed))
}

func (c LogCheckpoint) witnessedBefore(t time.Time) bool {
	return !c.Witnessed.IsZero() && c.Witnessed.Before(t)
}

// outlived is nil where it was shown before this key was revoked that the entry was
// in the log: by a witness, or by another key that may be believed. That the entry
// is the receipt's, and is in that log, is looked at with the rest (Logged.include).
func (a Archive) outlived(k revokedKey, l *Logged) error {
	if l == nil {
		return ErrRevokedKey
	}
	c := l.Checkpoint
	switch another := c.KID != "" && c.KID != k.kid; {
	case another && c.At.Before(k.at), c.witnessedBefore(k.at):
		return a.Vouches(c)
	case !c.Witnessed.IsZero():
		return fmt.Errorf("%w: revoked %s, and the checkpoint was witnessed %s", ErrRevokedKey, stamp(k.at), stamp(c.Witnessed))
	case !another:
		return fmt.Errorf("%w: no other key signed the checkpoint, and no witness saw it", ErrRevokedKey)
	}
	return fmt.Errorf("%w: revoked %s, and the checkpoint is of %s", ErrRevokedKey, stamp(k.at), stamp(c.At))
}
