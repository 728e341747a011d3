package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
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
	change := memberChange{Email: address, Role: role}
	return a.Ask(ctx, edit, brand, Ask{Kind: ChangeMemberInvite, By: by, Channel: channel, Diff: map[string]any{"after": change}, Payload: change, Personal: true})
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
			return Invite(ctx, a.DB, act(EventInvited), c.Email, c.Role)
		}),
		ChangeMemberRole: of(func(ctx context.Context, c memberChange) (string, error) {
			return "", stale(ChangeRole(ctx, a.DB, act(EventRole), c.Person, c.Role))
		}),
		ChangeMemberRemove: of(func(ctx context.Context, c memberChange) (string, error) {
			return "", stale(RemoveMember(ctx, a.DB, act(EventRemoved), c.Person))
		}),
		ChangeMemberConfirm: of(func(ctx context.Context, c memberChange) (string, error) {
			return "", stale(ConfirmMember(ctx, a.DB, act(EventConfirmed), c.Person))
		}),
		ChangeMemberVouch: of(func(ctx context.Context, c memberChange) (string, error) {
			as := act(EventVouched)
			if as.By == c.Person {
				return "", ErrOwnWord
			}
			token, err := Vouch(ctx, a.DB, as, c.Person)
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
