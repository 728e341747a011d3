package tenants

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Purpose is what a mailed link is good for.
type Purpose string

// The purposes.
const (
	LinkSignUp     Purpose = "signup"     // become a person, then make a Brand
	LinkInvitation Purpose = "invitation" // join a Brand
	LinkRecovery   Purpose = "recovery"   // with a recovery code, or after the wait: a new passkey
	LinkRestore    Purpose = "restore"    // an owner vouches: a new passkey
	LinkDemo       Purpose = "demo"       // countersign dev only: own the demo Brands
)

// lives are as short as people can bear.
var lives = map[Purpose]time.Duration{
	LinkSignUp: 30 * time.Minute, LinkRecovery: 30 * time.Minute, LinkRestore: 30 * time.Minute,
	LinkInvitation: 7 * 24 * time.Hour, LinkDemo: 24 * time.Hour,
}

// Life is how long a link for the purpose lives.
func (p Purpose) Life() time.Duration { return lives[p] }

// ErrDeadLink is returned for a link that is unknown, used or too old. It never
// says which.
var ErrDeadLink = errors.New("the link is unknown, used or too old")

// Link proves that whoever brings it reads the mail of Email.
type Link struct {
	Hash      []byte
	Purpose   Purpose
	Email     string // lower case
	Data      LinkData
	ExpiresAt time.Time
}

// LinkData is what the link leads to.
type LinkData struct {
	Organisation string    `json:"organisation,omitempty"` // sign-up
	BrandName    string    `json:"brand_name,omitempty"`
	Typed        string    `json:"typed,omitempty"`      // the address as typed
	Brand        BrandID   `json:"brand,omitempty"`      // invitation, restore
	Invitation   uuid.UUID `json:"invitation,omitempty"` // invitation
	Brands       []BrandID `json:"brands,omitempty"`     // demo
}

// IssueLink makes a link and returns its secret, for the only time.
func IssueLink(ctx context.Context, db *DB, purpose Purpose, email string, data LinkData, now time.Time) (string, error) {
	var token string
	err := db.Tx(ctx, data.Brand, func(tx pgx.Tx) error {
		var err error
		token, err = issueLink(ctx, tx, purpose, email, data, now)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("issue %s link: %w", purpose, err)
	}
	return token, nil
}

func issueLink(ctx context.Context, tx pgx.Tx, purpose Purpose, email string, data LinkData, now time.Time) (string, error) {
	const q = `
		INSERT INTO one_time_links (hash, purpose, email, data, created_at, expires_at)
		VALUES (@hash, @purpose, @email, @data, @now, @expires)`
	token := rand.Text() + rand.Text() // 260 bits
	_, err := tx.Exec(ctx, q, pgx.NamedArgs{
		"hash": linkHash(token), "purpose": purpose, "email": email, "data": data,
		"now": now, "expires": now.Add(purpose.Life()),
	})
	return token, err
}

// OpenLink looks a link up and changes nothing: mail programs open links too.
func OpenLink(ctx context.Context, db *DB, token string, now time.Time) (Link, error) {
	const q = `
		SELECT hash, purpose, email, data, expires_at FROM one_time_links
		 WHERE hash = @hash AND used_at IS NULL AND expires_at > @now`
	rows, err := db.pool.Query(ctx, q, pgx.NamedArgs{"hash": linkHash(token), "now": now})
	if err != nil {
		return Link{}, fmt.Errorf("open link: %w", err)
	}
	l, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Link])
	if errors.Is(err, pgx.ErrNoRows) {
		return Link{}, ErrDeadLink
	}
	if err != nil {
		return Link{}, fmt.Errorf("open link: %w", err)
	}
	return l, nil
}

// spend uses the link up, in the transaction of what it is used for.
func (l Link) spend(ctx context.Context, tx pgx.Tx, now time.Time) error {
	const q = `UPDATE one_time_links SET used_at = @now WHERE hash = @hash AND used_at IS NULL AND expires_at > @now`
	tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"hash": l.Hash, "now": now})
	if err == nil && tag.RowsAffected() == 0 {
		return ErrDeadLink
	}
	return err
}

// PurgeLinks removes links that are over.
func PurgeLinks(ctx context.Context, db *DB, now time.Time) error {
	const q = `DELETE FROM one_time_links WHERE expires_at <= @now`
	if _, err := db.pool.Exec(ctx, q, pgx.NamedArgs{"now": now}); err != nil {
		return fmt.Errorf("purge links: %w", err)
	}
	return nil
}

func linkHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
