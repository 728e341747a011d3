package authority_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"countersign.dev/authority/authoritytest"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// link is a line of the trail as it is stored.
type link struct {
	Seq                            int64
	BrandID                        string
	At                             time.Time
	Actor, ActorID, Channel, Event string
	Request, Grant                 *string
	Trace, Detail                  string
	Salt, Digest, Hash             []byte
}

// The trail's links are of these bytes and no others, however the database comes
// to compute them: what was written before must verify for ever.
func TestTheLinksOfTheTrailKeepTheirBytes(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read", "account:read")
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", tokens.GrantID); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `INSERT INTO audit_events (brand_id, at, actor, event, trace, detail)
		VALUES ('harbor-hotel', '2026-03-01 00:00:00.000001+02', 'system', 'ünïcode', 'x', '{"a":  "ß"}')`)
	const q = `
		SELECT seq, brand_id, at, actor, actor_id, channel, event, request_id::text AS request, grant_id::text AS grant,
		       trace, detail::text AS detail, salt, digest, hash
		  FROM audit_events ORDER BY seq`
	rows, err := w.Owner.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	links, err := pgx.CollectRows(rows, pgx.RowToStructByName[link])
	if err != nil {
		t.Fatal(err)
	}
	var before []byte
	for _, l := range links {
		digest := sha256.Sum256(join(l.Salt, field(&l.ActorID), field(&l.Detail)))
		if diff := cmp.Diff(digest[:], l.Digest); diff != "" {
			t.Errorf("digest of %s: %s", l.Event, diff)
		}
		at := l.At.UTC().Format("2006-01-02T15:04:05.000000Z")
		hash := sha256.Sum256(join(before, binary.BigEndian.AppendUint64(nil, uint64(l.Seq)), field(&l.BrandID), field(&at),
			field(&l.Actor), field(&l.Channel), field(&l.Event), field(l.Request), field(l.Grant), field(&l.Trace), l.Digest))
		if diff := cmp.Diff(hash[:], l.Hash); diff != "" {
			t.Errorf("hash of %s: %s", l.Event, diff)
		}
		before = l.Hash
	}
	const least = 4
	if len(links) < least {
		t.Errorf("only %d links", len(links))
	}
}

// field is its length and its bytes, or a length that no text has.
func field(text *string) []byte {
	if text == nil {
		return []byte{0xff, 0xff, 0xff, 0xff}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(*text))), *text...)
}

func join(parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// Facts and refresh tokens name a Brand that exists: the first by the head of their
// chain, the others by their grant.
func TestNothingIsKeptOfABrandThatIsNone(t *testing.T) {
	w := authoritytest.New(t)
	tokens := delegated(t, w, w.Authority(nil), "bookings:read")
	for _, q := range []string{
		`INSERT INTO audit_events (brand_id, at, actor, event, grant_id) VALUES ('nobody', now(), 'system', 'x', $1)`,
		`INSERT INTO refresh_tokens (brand_id, hash, grant_id, family_id, generation, key_version, created_at)
		 VALUES ('nobody', '\x00', $1, $1, 0, 1, now())`,
	} {
		_, err := w.Owner.Exec(t.Context(), q, tokens.GrantID)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "23503" {
			t.Errorf("%s: %v", q, err)
		}
	}
}
