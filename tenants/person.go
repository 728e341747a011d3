package tenants

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Person is somebody who works on Brands here. Not a Brand's user: those belong
// to the Brand.
type Person struct {
	ID          uuid.UUID `db:"id"`
	Email       string    // lower case: by it a person is found
	EmailTyped  string    // as the person writes it
	Name        string
	Language    string
	Passkeys    int
	Codes       int // recovery codes that are not used
	CodesKeptAt *time.Time
	RestoredAt  *time.Time // whoever signed in before then has to again
}

// Secured reports whether one lost device cannot lock this person out.
func (p Person) Secured() bool {
	return p.Passkeys >= 2 || p.Passkeys == 1 && p.Codes > 0 && p.CodesKeptAt != nil
}

// Reasons that have to do with who somebody is.
var (
	ErrNoPerson    = errors.New("no such person")
	ErrKnownPerson = errors.New("the address has a person already") // sign in instead
	ErrBadEmail    = errors.New("not an e-mail address")
	ErrOtherEmail  = errors.New("an e-mail address with letters beyond a to z")
)

// ParseEmail returns the address as people are found by it: in lower case,
// without the space around it. One with other letters than ASCII's is
// ErrOtherEmail: some of them become ASCII in lower case, such as the Kelvin sign,
// and would find the account of somebody whose mail goes elsewhere.
func ParseEmail(typed string) (string, error) {
	const longest = 254 // RFC 5321
	typed = strings.TrimSpace(typed)
	a, err := mail.ParseAddress(typed)
	if err != nil || a.Address != typed || len(typed) > longest || strings.ContainsFunc(typed, unicode.IsControl) {
		return "", ErrBadEmail
	}
	if strings.ContainsFunc(typed, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "", ErrOtherEmail
	}
	return strings.ToLower(typed), nil
}

const selectPerson = `
		SELECT p.id, p.email, p.email_typed, p.name, p.language, p.codes_kept_at, p.restored_at,
		       (SELECT count(*) FROM passkeys k WHERE k.person_id = p.id) AS passkeys,
		       (SELECT count(*) FROM recovery_codes c WHERE c.person_id = p.id AND c.used_at IS NULL) AS codes
		  FROM people p`

// PersonByID returns the person, or ErrNoPerson.
func PersonByID(ctx context.Context, db *DB, id uuid.UUID) (Person, error) {
	const q = selectPerson + ` WHERE p.id = @id`
	return person(ctx, db, q, pgx.NamedArgs{"id": id})
}

// PersonByEmail returns the person with the address that ParseEmail returned, or
// ErrNoPerson.
func PersonByEmail(ctx context.Context, db *DB, email string) (Person, error) {
	const q = selectPerson + ` WHERE p.email = @email`
	return person(ctx, db, q, pgx.NamedArgs{"email": email})
}

func person(ctx context.Context, db *DB, q string, args pgx.NamedArgs) (Person, error) {
	rows, err := db.pool.Query(ctx, q, args)
	if err != nil {
		return Person{}, fmt.Errorf("find person: %w", err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Person])
	if errors.Is(err, pgx.ErrNoRows) {
		return Person{}, ErrNoPerson
	}
	if err != nil {
		return Person{}, fmt.Errorf("find person: %w", err)
	}
	return p, nil
}

// Newcomer is who a link makes a person of. The address is the link's: only that
// was proven.
type Newcomer struct {
	ID       uuid.UUID // also the user handle of the first passkey
	Typed    string    // the address as typed; empty: as in the link
	Name     string
	Language string
}

// Register spends the link and makes a person with a first passkey; an
// invitation is accepted in the same breath. It all happens, or nothing does: a
// link that brought nobody in still works.
func Register(ctx context.Context, db *DB, l Link, n Newcomer, key Passkey, record Record, now time.Time) error {
	const insert = `
		INSERT INTO people (id, email, email_typed, name, language, created_at)
		VALUES (@id, @email, @typed, @name, @language, @now)
		ON CONFLICT (email) DO NOTHING`
	if n.Typed == "" || strings.ToLower(n.Typed) != l.Email {
		n.Typed = l.Email
	}
	err := db.Tx(ctx, l.Data.Brand, func(tx pgx.Tx) error {
		if err := l.spend(ctx, tx, now); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, insert, pgx.NamedArgs{
			"id": n.ID, "email": l.Email, "typed": n.Typed, "name": n.Name, "language": n.Language, "now": now,
		})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrKnownPerson
		}
		if err := addPasskey(ctx, tx, n.ID, key, now); err != nil {
			return err
		}
		if l.Purpose == LinkInvitation {
			return accept(ctx, tx, l, n.ID, record, now)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("register by %s link: %w", l.Purpose, err)
	}
	return nil
}
