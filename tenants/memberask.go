package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The kinds of change of members that wait for an owner: who works on the Brand.
const (
	ChangeMemberInvite = "member.invite"
	ChangeMemberRole   = "member.role"
	ChangeMemberRemove = "member.remove"
	// A membership that rests goes on, and a way back in for who lost all passkeys.
	ChangeMemberConfirm = "member.confirm"
	ChangeMemberVouch   = "member.vouch"
)

// The facts that changes of members leave in the trail.
const (
	EventInvited   = "member.invited"
	EventWithdrawn = "member.invitation_withdrawn"
	EventRole      = "member.role_changed"
	EventRemoved   = "member.removed"
	EventConfirmed = "member.confirmed"
	EventVouched   = "member.vouched"
)

type memberChange struct {
	Person uuid.UUID `json:"person,omitzero"`
	Email  string    `json:"email,omitempty"`
	Role   Role      `json:"role,omitempty"`
	// As it was when it was asked, and as the owner reads it: the role, of a member or of
	// an open invitation, since when the member is one, and the last time that somebody
	// came back as this person.
	Was      Role      `json:"was,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Restored time.Time `json:"restored,omitzero"`
}

// asRead refuses what the owner has read otherwise (ErrChangeStale): Monday's wish is
// not to undo what another owner has done on Thursday. What is as it is meant to be was
// made so by this, and its answer was lost.
func (c memberChange) asRead(ctx context.Context, tx pgx.Tx, brand BrandID) error {
	const q = `
		SELECT m.role, m.since, p.restored_at FROM memberships m JOIN people p ON p.id = m.person_id
		 WHERE m.brand_id = @brand AND m.person_id = @person FOR UPDATE OF m`
	var role Role
	var since time.Time
	var restored *time.Time
	err := tx.QueryRow(ctx, q, pgx.NamedArgs{"brand": brand, "person": c.Person}).Scan(&role, &since, &restored)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrChangeStale
	case err != nil:
		return err
	case role != c.Was && role != c.Role, !since.Equal(c.Since),
		restored != nil && !restored.Equal(c.Restored):
		return ErrChangeStale
	}
	return nil
}

// invitedAsRead is asRead of whoever is no member yet.
func (c memberChange) invitedAsRead(ctx context.Context, tx pgx.Tx, brand BrandID, now time.Time) error {
	const q = selectInvitations + ` AND email = @email`
	rows, err := tx.Query(ctx, q, pgx.NamedArgs{"brand": brand, "email": c.Email, "now": now})
	if err != nil {
		return err
	}
	open, err := pgx.CollectRows(rows, pgx.RowToStructByName[Invitation])
	if err != nil {
		return err
	}
	if role := invitedAs(open, c.Email); role != c.Was && role != c.Role {
		return ErrChangeStale
	}
	return nil
}

// invitedAs is the role in which the address is invited; empty: it is not.
func invitedAs(open []Invitation, email string) Role {
	i := slices.IndexFunc(open, func(i Invitation) bool { return i.Email == email })
	if i < 0 {
		return ""
	}
	return open[i].Role
}

// AskInvitation asks an owner to invite the address. Where it is a member's, or no
// address, that is told now.
func (a *Asks) AskInvitation(ctx context.Context, edit Editor, brand BrandID, email string, role Role, by, channel string) (PendingChange, error) {
	address, err := ParseEmail(email)
	if errors.Is(err, ErrOtherEmail) {
		return PendingChange{}, Problems{{Field: "email", Say: "has letters beyond a to z", Mend: "write it without accents and other scripts, and the domain as xn--"}}
	}
	if err != nil {
		return PendingChange{}, Problems{{Field: "email", Say: "is no e-mail address", Mend: "write it as name@host"}}
	}
	if p := badRole(role); len(p) > 0 {
		return PendingChange{}, p
	}
	all, err := Members(ctx, a.DB, brand)
	if err != nil {
		return PendingChange{}, err
	}
	for _, m := range all {
		if known, err := ParseEmail(m.Email); err == nil && known == address {
			return PendingChange{}, ErrMember
		}
	}
	open, err := Invitations(ctx, a.DB, brand, a.Now())
	if err != nil {
		return PendingChange{}, err
	}
	change := memberChange{Email: address, Role: role, Was: invitedAs(open, address)}
	diff := map[string]any{"after": memberChange{Email: address, Role: role}}
	if change.Was != "" {
		diff["before"] = memberChange{Email: address, Role: change.Was}
	}
	return a.Ask(ctx, edit, brand, Ask{Kind: ChangeMemberInvite, By: by, Channel: channel, Diff: diff, Payload: change, Personal: true})
}

func badRole(role Role) (p Problems) {
	p.oneOf("role", string(role), string(Owner), string(Security), string(Support), string(Viewer))
	return p
}

// AskRole asks an owner to give the member another role.
func (a *Asks) AskRole(ctx context.Context, edit Editor, brand BrandID, person uuid.UUID, role Role, by, channel string) (PendingChange, error) {
	if p := badRole(role); len(p) > 0 {
		return PendingChange{}, p
	}
	return a.askMember(ctx, edit, brand, ChangeMemberRole, memberChange{Person: person, Role: role}, by, channel)
}

// AskRemoval asks an owner to end the membership.
func (a *Asks) AskRemoval(ctx context.Context, edit Editor, brand BrandID, person uuid.UUID, by, channel string) (PendingChange, error) {
	return a.askMember(ctx, edit, brand, ChangeMemberRemove, memberChange{Person: person}, by, channel)
}

// AskConfirmation asks an owner to make sure who a member is whose membership
// rests. One that does not is ErrNotHeld.
func (a *Asks) AskConfirmation(ctx context.Context, edit Editor, brand BrandID, person uuid.UUID, by, channel string) (PendingChange, error) {
	if m, err := MemberOf(ctx, a.DB, brand, person); !m.Held {
		if err == nil {
			err = ErrNotHeld
		}
		return PendingChange{}, err
	}
	return a.askMember(ctx, edit, brand, ChangeMemberConfirm, memberChange{Person: person}, by, channel)
}

// ErrNotHeld is returned for the wish to confirm a member who is one.
var ErrNotHeld = errors.New("the membership does not rest")

// AskVouching asks an owner to vouch for a member who has lost all passkeys. The
// link goes by mail to the member, and nobody else sees it.
func (a *Asks) AskVouching(ctx context.Context, edit Editor, brand BrandID, person uuid.UUID, by, channel string) (PendingChange, error) {
	return a.askMember(ctx, edit, brand, ChangeMemberVouch, memberChange{Person: person}, by, channel)
}

// ErrOwnWord is returned to whoever would vouch for themselves.
var ErrOwnWord = errors.New("nobody vouches for themselves")

// askMember says whom it is about as the owner knows them.
func (a *Asks) askMember(ctx context.Context, edit Editor, brand BrandID, kind string, change memberChange, by, channel string) (PendingChange, error) {
	m, err := MemberOf(ctx, a.DB, brand, change.Person)
	if err != nil && !m.Held {
		return PendingChange{}, err
	}
	change.Was, change.Since = m.Role, m.Since
	if m.Restored != nil {
		change.Restored = *m.Restored
	}
	diff := map[string]any{"before": memberChange{Email: m.Email, Role: m.Role}}
	if kind == ChangeMemberRole {
		diff["after"] = memberChange{Email: m.Email, Role: change.Role}
	}
	return a.Ask(ctx, edit, brand, Ask{Kind: kind, By: by, Channel: channel, Diff: diff, Payload: change, Personal: true})
}

// For returns the same Asks for an owner who decides: act is what they do under
// their name. Applying an invitation, or vouching, returns the secret of the link
// to be mailed.
func (a *Asks) For(act func(event string) Act) *Asks {
	of := func(do func(ctx context.Context, c memberChange) (string, error)) Applier {
		return func(ctx context.Context, _ Editor, _ BrandID, payload []byte) (string, error) {
			var c memberChange
			if err := json.Unmarshal(payload, &c); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			return do(ctx, c)
		}
	}
	return a.With(map[string]Applier{
		ChangeMemberInvite: of(func(ctx context.Context, c memberChange) (string, error) {
			return invite(ctx, a.DB, act(EventInvited), c.Email, c.Role, c.invitedAsRead)
		}),
		ChangeMemberRole: of(func(ctx context.Context, c memberChange) (string, error) {
			return "", stale(changeRole(ctx, a.DB, act(EventRole), c.Person, c.Role, c.asRead))
		}),
		ChangeMemberRemove: of(func(ctx context.Context, c memberChange) (string, error) {
			return "", stale(removeMember(ctx, a.DB, act(EventRemoved), c.Person, c.asRead))
		}),
		ChangeMemberConfirm: of(func(ctx context.Context, c memberChange) (string, error) {
			return "", stale(confirmMember(ctx, a.DB, act(EventConfirmed), c.Person, c.asRead))
		}),
		ChangeMemberVouch: of(func(ctx context.Context, c memberChange) (string, error) {
			as := act(EventVouched)
			if as.By == c.Person {
				return "", ErrOwnWord
			}
			token, err := vouch(ctx, a.DB, as, c.Person, c.asRead)
			return token, stale(err)
		}),
	})
}

// stale is what a change comes to whose member is gone already.
func stale(err error) error {
	if errors.Is(err, ErrNotMember) {
		return ErrChangeStale
	}
	return err
}

// WithdrawInvitation is Withdraw for a program, which waits for nobody: it lets
// nobody in.
func WithdrawInvitation(ctx context.Context, edit Editor, brand BrandID, id uuid.UUID) error {
	return edit.change(ctx, brand, "withdraw invitation", func(e *Edit) error {
		if err := withdraw(ctx, e.Tx, brand, id, e.Now); err != nil {
			return err
		}
		e.Note(EventWithdrawn, map[string]any{"invitation": id})
		return nil
	})
}
