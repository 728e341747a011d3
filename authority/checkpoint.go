package authority

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"
)

// ErrForked is an alarm: the log as it is stored contradicts what was signed of it.
var ErrForked = errors.New("the log contradicts its own checkpoints")

// Checkpoint is what was signed of a Brand's log: a JWS of receiptlog.Checkpoint
// by the Brand's token key, which verifies offline from its JWKS.
type Checkpoint struct {
	JWS  string
	Size int64
	At   time.Time // when it was signed
}

const (
	// CheckpointTTL bounds how old a growing log's checkpoint is.
	CheckpointTTL   = 5 * time.Second
	checkpointStale = 10 * time.Minute
)

type checkpointKey struct {
	brand tenants.BrandID
	log   string
}

// Checkpoint returns the newest signed checkpoint of the Brand's log. For one size
// there is one root, for ever (R78): every one that was signed is kept, and a new
// one is signed only where the stored tree still gives what the last one says
// (ErrForked); and, for a size that did not change, only by a new key or under a new
// name. While nothing can be signed the last one is returned; ErrUnavailable: there is
// none under the log's name of today, and no verifier takes another.
func (a *Authority) Checkpoint(ctx context.Context, brand *tenants.Brand) (Checkpoint, error) {
	c, err := a.checkpoints.Get(ctx, checkpointKey{brand.ID, brand.LogURI()})
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint of %s: %w", brand.ID, err)
	}
	return c, nil
}

// logState is a log and the last that was signed of it.
type logState struct {
	Size     int64
	Edge     []byte
	KID      string     `db:"kid"` // of the Brand's current key; empty: it has none
	Signed   *int64     // the size that was signed last
	Root     []byte     // and what it said
	SignedBy *string    // one of those who did, the current key first
	SignedAt *time.Time // when
	JWS      *string    `db:"jws"`
}

// signedAs says whether what was signed last calls the log so. Since when a Brand
// moves the issuer changes, and with it the log's name.
func (s logState) signedAs(log string) bool {
	var says receiptlog.Checkpoint
	return s.JWS != nil && json.Unmarshal(payloadOf(*s.JWS), &says) == nil && says.Log == log
}

func (a *Authority) logState(ctx context.Context, key checkpointKey) (logState, error) {
	const q = `
		SELECT coalesce(h.size, 0) AS size, coalesce(h.edge, '') AS edge, coalesce(k.kid, '') AS kid,
		       c.size AS signed, r.root, c.kid AS signed_by, c.signed_at, c.jws
		  FROM brands b
		  LEFT JOIN log_heads h ON h.brand_id = b.id
		  LEFT JOIN signing_keys k ON k.brand_id = b.id AND k.state = 'current'
		  LEFT JOIN LATERAL (
		       SELECT * FROM log_checkpoints l WHERE l.brand_id = @brand
		        ORDER BY l.size DESC, l.log = @log DESC, l.kid = k.kid DESC, l.signed_at DESC LIMIT 1) c ON true
		  LEFT JOIN log_roots r ON r.brand_id = @brand AND r.size = c.size
		 WHERE b.id = @brand`
	s, err := tenants.One[logState](ctx, a.db, key.brand, q, pgx.NamedArgs{"brand": key.brand, "log": key.log})
	if errors.Is(err, pgx.ErrNoRows) {
		return s, ErrUnknown
	}
	return s, err
}

func (a *Authority) publishCheckpoint(ctx context.Context, key checkpointKey) (Checkpoint, error) {
	s, err := a.logState(ctx, key)
	if err != nil {
		return Checkpoint{}, err
	}
	var last Checkpoint
	if s.signedAs(key.log) {
		last = Checkpoint{JWS: *s.JWS, Size: *s.Signed, At: *s.SignedAt}
		if last.Size == s.Size && (*s.SignedBy == s.KID || s.KID == "") {
			return last, nil
		}
	}
	edge, err := receiptlog.ReadEdge(s.Size, s.Edge)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrForked, err)
	}
	if err := a.extends(ctx, key.brand, s, edge); err != nil {
		return Checkpoint{}, err
	}
	c, err := a.signCheckpoint(ctx, key, edge)
	if errors.Is(err, ErrUnavailable) && last.JWS != "" {
		return last, nil
	}
	return c, err
}

// extends is ErrForked unless the tree that is stored gives both the root that was
// signed last and the one that is to be signed.
func (a *Authority) extends(ctx context.Context, brand tenants.BrandID, s logState, edge receiptlog.Edge) error {
	reader := a.hashes(ctx, brand, nil)
	same := func(size int64, want []byte) error {
		root, err := tlog.TreeHash(size, reader)
		if err == nil && string(root[:]) != string(want) {
			err = fmt.Errorf("%w: that of %d entries", ErrForked, size)
		}
		return err
	}
	head := edge.Root()
	if err := same(s.Size, head[:]); err != nil || s.Signed == nil {
		return err
	}
	if *s.Signed > s.Size {
		return fmt.Errorf("%w: it has %d entries, and %d were signed", ErrForked, s.Size, *s.Signed)
	}
	return same(*s.Signed, s.Root)
}

// signCheckpoint signs first; what it hands out is what the database then says.
func (a *Authority) signCheckpoint(ctx context.Context, key checkpointKey, edge receiptlog.Edge) (Checkpoint, error) {
	now, root := a.clock().Truncate(time.Millisecond), edge.Root()
	payload, err := canonical.Of(receiptlog.Checkpoint{
		Log: key.log, Size: edge.Size, Root: receiptlog.Text(root), TS: receiptlog.At(now),
	})
	if err != nil {
		return Checkpoint{}, fmt.Errorf("encode checkpoint: %w", err)
	}
	signCtx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	jws, err := a.signer.Sign(signCtx, key.brand, signing.TypCheckpoint, payload)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	const settle = `INSERT INTO log_roots (brand_id, size, root) VALUES (@brand, @size, @root) ON CONFLICT DO NOTHING`
	const keep = `
		INSERT INTO log_checkpoints (brand_id, size, kid, log, signed_at, jws)
		SELECT @brand, @size, @kid, @log, @now, @jws FROM log_roots WHERE brand_id = @brand AND size = @size AND root = @root
		ON CONFLICT DO NOTHING`
	const kept = `
		SELECT c.jws, c.signed_at FROM log_checkpoints c
		  JOIN log_roots r ON r.brand_id = c.brand_id AND r.size = c.size AND r.root = @root
		 WHERE c.brand_id = @brand AND c.size = @size AND c.kid = @kid AND c.log = @log`
	args := pgx.NamedArgs{
		"brand": key.brand, "size": edge.Size, "root": root[:], "kid": kidOf(jws), "log": key.log, "now": now, "jws": jws,
	}
	c := Checkpoint{Size: edge.Size}
	err = a.db.Tx(ctx, key.brand, func(tx pgx.Tx) error {
		for _, q := range []string{settle, keep} {
			if _, err := tx.Exec(ctx, q, args); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, kept, args).Scan(&c.JWS, &c.At)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Checkpoint{}, fmt.Errorf("%w: another root of %d entries was signed", ErrForked, edge.Size)
	}
	return c, err
}

// kidOf is the key by which a JWS of our own was signed.
func kidOf(jws string) string {
	var header struct {
		KID string `json:"kid"`
	}
	first, _, _ := strings.Cut(jws, ".")
	raw, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil || json.Unmarshal(raw, &header) != nil {
		return ""
	}
	return header.KID
}

// KeepCheckpoint signs what came since the last checkpoint, where nobody has asked
// for one in an hour, or the Brand's key or the log's name has changed: what is in the log then
// counts even if the former key is compromised later.
func (a *Authority) KeepCheckpoint(ctx context.Context, brand *tenants.Brand) error {
	const often = time.Hour
	key := checkpointKey{brand.ID, brand.LogURI()}
	s, err := a.logState(ctx, key)
	if err != nil {
		return fmt.Errorf("look at the log of %s: %w", brand.ID, err)
	}
	settled := s.signedAs(key.log) && *s.SignedBy == s.KID && (*s.Signed == s.Size || a.now().Before(s.SignedAt.Add(often)))
	if s.Size == 0 || s.KID == "" || settled {
		return nil
	}
	_, err = a.publishCheckpoint(ctx, key)
	if err != nil {
		return fmt.Errorf("sign the log of %s: %w", brand.ID, err)
	}
	return nil
}
