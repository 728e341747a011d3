package authority

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"countersign.dev/authority/canonical"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// sealedDetail stands in the trail for an entry of authorization_details: its type,
// and a digest that proves the value to whoever is shown it. The value may say what
// a person wanted and where, and a trail that nobody can edit is no place for that.
type sealedDetail struct {
	Type string `json:"type"`
	// Digest is SHA-256(salt ‖ the value in canonical form). Without the salt, which
	// goes with the value, nobody finds an amount by trying all amounts.
	Digest Octets `json:"digest"`
}

func sealDetails(salt []byte, values []json.RawMessage) ([]sealedDetail, error) {
	out := make([]sealedDetail, len(values))
	for i, v := range values {
		form, err := canonical.JSON(v)
		if err != nil {
			return nil, fmt.Errorf("seal detail %d: %w", i, err)
		}
		sum := sha256.Sum256(slices.Concat(salt, form))
		out[i] = sealedDetail{Type: Detail{Value: v}.kind(), Digest: sum[:]}
	}
	return out, nil
}

// setAside seals the fact's values in its detail, and returns the salt.
func (f *fact) setAside() ([]byte, error) {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	sealed, err := sealDetails(salt, f.values)
	f.detail["details"] = sealed
	return salt, err
}

// verifyDetails checks the values that events after one place and up to another tell
// against what the trail has sealed. A value that is gone from an event that still
// says who and what, or is another, is a *Fault.
func (a *Authority) verifyDetails(ctx context.Context, brand tenants.BrandID, after, upto int64) error {
	// One statement: an erasure meanwhile takes both or neither.
	const q = `
		SELECT coalesce(e.seq, d.seq) AS seq, coalesce(e.sealed, '[]') AS sealed, d.salt, coalesce(d.details, '[]') AS details
		  FROM (SELECT seq, detail->'details' AS sealed FROM audit_events
		         WHERE brand_id = @brand AND seq > @after AND seq <= @upto AND event LIKE 'grant.%' AND detail->'details' IS NOT NULL) e
		  FULL JOIN (SELECT seq, salt, details FROM event_details
		              WHERE brand_id = @brand AND seq > @after AND seq <= @upto) d ON d.seq = e.seq
		 ORDER BY 1`
	type row struct {
		Seq     int64
		Sealed  []sealedDetail
		Salt    []byte
		Details []json.RawMessage
	}
	rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "after": after, "upto": upto})
	if err != nil {
		return fmt.Errorf("read the details of events of %s: %w", brand, err)
	}
	for _, r := range rows {
		found, err := sealDetails(r.Salt, r.Details)
		same := err == nil && slices.EqualFunc(found, r.Sealed, func(x, y sealedDetail) bool {
			return x.Type == y.Type && slices.Equal(x.Digest, y.Digest)
		})
		if !same {
			return &Fault{Seq: r.Seq, Field: "details", Why: "the values that are told are not those that the trail has sealed"}
		}
	}
	return nil
}

// StoredDetails are the authorization_details that one event told, with the salt that
// proves them against the digests in the trail.
type StoredDetails struct {
	Seq     int64
	Salt    []byte
	Details []json.RawMessage
}

// EachDetails hands the details of every event of the Brand to fn, the oldest first,
// as EachGrant does.
func (a *Authority) EachDetails(ctx context.Context, brand tenants.BrandID, fn func(StoredDetails) error) error {
	const q = `
		SELECT seq, salt, details FROM event_details
		 WHERE brand_id = @brand AND seq > @after
		 ORDER BY seq LIMIT @limit`
	var after int64
	return each(ctx, a.db, brand, q, func() any { return after }, func(s StoredDetails) error {
		after = s.Seq
		return fn(s)
	})
}
