package tenants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Role is what a member is to a Brand. What each may do stands in the console's
// rights table.
type Role string

// The roles.
const (
	Owner    Role = "owner"
	Security Role = "security"
	Support  Role = "support"
	Viewer   Role = "viewer"
)

// Roles lists all of them.
func Roles() []Role { return []Role{Owner, Security, Support, Viewer} }

// Reasons a membership does not change.
var (
	ErrNotMember    = errors.New("not a member of the brand")
	ErrMember       = errors.New("is a member of the brand already")
	ErrLastOwner    = errors.New("the last owner stays")
	ErrNoInvitation = errors.New("no open invitation")
	ErrNoRole       = errors.New("no such role")
)

// Membership is one of a person's Brands.
type Membership struct {
	Brand BrandID `db:"brand_id"`
	Role  Role
	Name  string // the Brand's
	State State
	Held  bool // rests until an owner confirms who this is
}

// namePerson is local to the transaction, as setBrand is.
const namePerson = `SELECT set_config('countersign.person', $1, true)`

// Memberships lists the person's Brands by name.
func Memberships(ctx context.Context, db *DB, person uuid.UUID) ([]Membership, error) {
	const q = `SELECT brand_id, role, name, state, held FROM person_brands WHERE person_id = @person ORDER BY name, brand_id`
	out, err := ofPerson[Membership](ctx, db, person, q)
	if err != nil {
		return nil, fmt.Errorf("list a person's brands: %w", err)
	}
	return out, nil
}

// ofPerson runs a query over one of the views that go across the fence.
func ofPerson[T any](ctx context.Context, db *DB, person uuid.UUID, q string) (out []T, err error) {
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, namePerson, person.String()); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, q, pgx.NamedArgs{"person": person})
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	})
	return out, err
}

// Member is somebody who works on the Brand.
type Member struct {
	Person uuid.UUID `db:"person_id"`
	Email  string
	Name   string
	Role   Role
	Since  time.Time
	Held   bool
	// Restored is when somebody last came back as this person, on a Brand's word.
	Restored *time.Time `db:"restored_at"`
}

const selectMember = `
		SELECT m.person_id, p.email_typed AS email, p.name, m.role, m.since,
		       coalesce(p.restored_at > m.confirmed_at, false) AS held, p.restored_at
		  FROM memberships m
		  JOIN people p ON p.id = m.person_id
		 WHERE m.brand_id = @brand`

// Members lists the Brand's members, in the order in which they came.
func Members(ctx context.Context, db *DB, brand BrandID) ([]Member, error) {
	const q = selectMember + ` ORDER BY m.since, m.person_id`
	out, err := All[Member](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list members of %s: %w", brand, err)
	}
	return out, nil
}

// MemberOf returns the person as a member of the Brand. Whoever is none, and
// whoever's membership rests, is ErrNotMember: the latter comes with the error.
func MemberOf(ctx context.Context, db *DB, brand BrandID, person uuid.UUID) (Member, error) {
	const q = selectMember + ` AND m.person_id = @person`
	m, err := One[Member](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "person": person})
	if errors.Is(err, pgx.ErrNoRows) || err == nil && m.Held {
		return m, ErrNotMember
	}
	if err != nil {
		return Member{}, fmt.Errorf("find member of %s: %w", brand, err)
	}
	return m, nil
}

// Invitation is somebody who was asked to join and has not come yet.
type Invitation struct {
	ID        uuid.UUID `db:"id"`
	Email     string
	Role      Role
	ExpiresAt time.Time
}

const selectInvitations = `
		SELECT id, email, role, expires_at FROM invitations
		 WHERE brand_id = @brand AND accepted_at IS NULL AND withdrawn_at IS NULL AND expires_at > @now`

// Invitations lists the Brand's open invitations.
func Invitations(ctx context.Context, db *DB, brand BrandID, now time.Time) ([]Invitation, error) {
	const q = selectInvitations + ` ORDER BY created_at, id`
	out, err := All[Invitation](ctx, db, brand, q, pgx.NamedArgs{"brand": brand, "now": now})
	if err != nil {
		return nil, fmt.Errorf("list invitations of %s: %w", brand, err)
	}
	return out, nil
}

// Invite asks the address to join the Brand and returns the secret of the link to
// be mailed. A new invitation of the same address takes the place of the old one.
func Invite(ctx context.Context, db *DB, a Act, email string, role Role) (string, error) {
	return invite(ctx, db, a, email, role, func(context.Context, pgx.Tx, BrandID, time.Time) error { return nil })
}

// invite is Invite where check, in the same transaction, finds nothing against it.
func invite(ctx context.Context, db *DB, a Act, email string, role Role, check func(context.Context, pgx.Tx, BrandID, time.Time) error) (string, error) {
	if !role.known() {
		return "", ErrNoRole
	}
	const member = `
		SELECT EXISTS (SELECT FROM memberships m JOIN people p ON p.id = m.person_id
		                WHERE m.brand_id = @brand AND p.email = @email)`
	const replace = `
		UPDATE invitations SET withdrawn_at = @now
		 WHERE brand_id = @brand AND email = @email AND accepted_at IS NULL AND withdrawn_at IS NULL`
	const insert = `
		INSERT INTO invitations (brand_id, id, email, role, invited_by, created_at, expires_at)
		VALUES (@brand, @id, @email, @role, @by, @now, @expires)`
	id := uuid.Must(uuid.NewV7())
	a.Detail = map[string]any{"invitation": id, "role": role}
	var token string
	err := a.Do(ctx, db, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{
			"brand": a.Brand, "id": id, "email": email, "role": role, "by": a.By, "now": a.Now,
			"expires": a.Now.Add(LinkInvitation.Life()),
		}
		var is bool
		if err := tx.QueryRow(ctx, member, args).Scan(&is); err != nil {
			return err
		}
		if is {
			return ErrMember
		}
		if err := check(ctx, tx, a.Brand, a.Now); err != nil {
			return err
		}
		for _, q := range []string{replace, insert} {
			if _, err := tx.Exec(ctx, q, args); err != nil {
				return err
			}
		}
		var err error
		token, err = issueLink(ctx, tx, LinkInvitation, email, LinkData{Brand: a.Brand, Invitation: id}, a.Now)
		return err
	})
	return token, err
}

// Withdraw ends an open invitation.
func Withdraw(ctx context.Context, db *DB, a Act, id uuid.UUID) error {
	a.Detail = map[string]any{"invitation": id}
	return a.Do(ctx, db, func(tx pgx.Tx) error { return withdraw(ctx, tx, a.Brand, id, a.Now) })
}

func withdraw(ctx context.Context, tx pgx.Tx, brand BrandID, id uuid.UUID, now time.Time) error {
	const q = `
		UPDATE invitations SET withdrawn_at = @now
		 WHERE brand_id = @brand AND id = @id AND accepted_at IS NULL AND withdrawn_at IS NULL`
	tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "id": id, "now": now})
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoInvitation
	}
	return err
}

// Accept makes a person that is known already a member, by an invitation's link. The
// owners hear of it.
// The caller has seen to it that the person is the one who was invited.
func Accept(ctx context.Context, db *DB, l Link, person uuid.UUID, record Record, now time.Time) error {
	err := db.Tx(ctx, l.Data.Brand, func(tx pgx.Tx) error {
		if err := l.spend(ctx, tx, now); err != nil {
			return err
		}
		return accept(ctx, tx, l, person, record, now)
	})
	if err != nil {
		return fmt.Errorf("accept invitation to %s: %w", l.Data.Brand, err)
	}
	return nil
}

// EventJoined is the fact that somebody accepted an invitation.
const EventJoined = "member.joined"

// accept joins the person to the Brand under the invitation as it now stands: one
// that was withdrawn since the mail was sent is none.
func accept(ctx context.Context, tx pgx.Tx, l Link, person uuid.UUID, record Record, now time.Time) error {
	const take = `
		UPDATE invitations SET accepted_at = @now
		 WHERE brand_id = @brand AND id = @id AND email = @email
		   AND accepted_at IS NULL AND withdrawn_at IS NULL AND expires_at > @now
		RETURNING role`
	var role Role
	err := tx.QueryRow(ctx, take, pgx.NamedArgs{
		"brand": l.Data.Brand, "id": l.Data.Invitation, "email": l.Email, "now": now,
	}).Scan(&role)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoInvitation
	}
	if err != nil {
		return err
	}
	if err := join(ctx, tx, l.Data.Brand, person, role, now); err != nil {
		return err
	}
	return Act{
		Brand: l.Data.Brand, By: person, Event: EventJoined, Detail: map[string]any{"role": role, "invitation": l.Data.Invitation},
		Record: record, Now: now,
	}.come(ctx, tx)
}

func join(ctx context.Context, tx pgx.Tx, brand BrandID, person uuid.UUID, role Role, now time.Time) error {
	const q = `
		INSERT INTO memberships (brand_id, person_id, role, since, confirmed_at)
		VALUES (@brand, @person, @role, @now, @now)
		ON CONFLICT DO NOTHING`
	tag, err := tx.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "person": person, "role": role, "now": now})
	if err == nil && tag.RowsAffected() == 0 {
		return ErrMember
	}
	return err
}

// ChangeRole gives the member another role. The last owner keeps theirs.
func ChangeRole(ctx context.Context, db *DB, a Act, person uuid.UUID, role Role) error {
	return changeRole(ctx, db, a, person, role, asItIs)
}

// asItIs is the check of whoever changes a membership as they find it.
func asItIs(context.Context, pgx.Tx, BrandID) error { return nil }

type memberCheck func(context.Context, pgx.Tx, BrandID) error

func changeRole(ctx context.Context, db *DB, a Act, person uuid.UUID, role Role, check memberCheck) error {
	if !role.known() {
		return ErrNoRole
	}
	const q = `UPDATE memberships SET role = @role WHERE brand_id = @brand AND person_id = @person`
	a.Detail = map[string]any{"member": person, "role": role}
	return a.keepOwner(ctx, db, check, q, pgx.NamedArgs{"brand": a.Brand, "person": person, "role": role})
}

// RemoveMember ends the membership at once. The last owner cannot go.
func RemoveMember(ctx context.Context, db *DB, a Act, person uuid.UUID) error {
	return removeMember(ctx, db, a, person, asItIs)
}

func removeMember(ctx context.Context, db *DB, a Act, person uuid.UUID, check memberCheck) error {
	const q = `DELETE FROM memberships WHERE brand_id = @brand AND person_id = @person`
	a.Detail = map[string]any{"member": person}
	return a.keepOwner(ctx, db, check, q, pgx.NamedArgs{"brand": a.Brand, "person": person})
}

// ConfirmMember ends a membership's rest: an owner has made sure who it is.
func ConfirmMember(ctx context.Context, db *DB, a Act, person uuid.UUID) error {
	return confirmMember(ctx, db, a, person, asItIs)
}

func confirmMember(ctx context.Context, db *DB, a Act, person uuid.UUID, check memberCheck) error {
	const q = `UPDATE memberships SET confirmed_at = @now WHERE brand_id = @brand AND person_id = @person`
	a.Detail = map[string]any{"member": person}
	return a.keepOwner(ctx, db, check, q, pgx.NamedArgs{"brand": a.Brand, "person": person, "now": a.Now})
}

// keepOwner changes one membership and refuses if nobody is left who owns the
// Brand and can act. All owners' rows are locked first, so that two owners who
// remove each other at the same moment come one after the other.
func (a Act) keepOwner(ctx context.Context, db *DB, check memberCheck, q string, args pgx.NamedArgs) error {
	const lock = `SELECT person_id FROM memberships WHERE brand_id = @brand AND role = 'owner' ORDER BY person_id FOR UPDATE`
	const left = `
		SELECT count(*) FROM memberships m JOIN people p ON p.id = m.person_id
		 WHERE m.brand_id = @brand AND m.role = 'owner' AND NOT coalesce(p.restored_at > m.confirmed_at, false)`
	return a.Do(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lock, args); err != nil {
			return err
		}
		if err := check(ctx, tx, a.Brand); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, q, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrNotMember
		}
		var owners int
		if err := tx.QueryRow(ctx, left, args).Scan(&owners); err != nil {
			return err
		}
		if owners == 0 {
			return ErrLastOwner
		}
		return nil
	})
}

func (r Role) known() bool {
	switch r {
	case Owner, Security, Support, Viewer:
		return true
	}
	return false
}
