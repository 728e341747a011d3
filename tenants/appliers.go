package tenants

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// The kinds of change that wait for an owner, of those that are this package's.
const (
	ChangeInterface = "interface"     // where tokens are good
	ChangeLogin     = "login.live"    // where people log in
	ChangeKeyNew    = "apikey.create" // who may act as the Brand
	ChangeKeyRotate = "apikey.rotate"
)

// RotateOverlap is how long the former key still opens, for servers to take over
// the new one.
const RotateOverlap = 24 * time.Hour

// SettingsAppliers apply this package's kinds.
func SettingsAppliers(db *DB, site Site) map[string]Applier {
	all := map[string]Applier{
		ChangeInterface: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var p interfaceChange
			if err := json.Unmarshal(payload, &p); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			now, err := InterfaceOf(ctx, db, brand)
			if err == nil && now != p.Before {
				err = ErrChangeStale
			}
			if err != nil {
				return "", err
			}
			return "", SetInterface(ctx, edit, site, brand, p.After, string(brand), false)
		},
		ChangeOpen: applies(func(ctx context.Context, edit Editor, brand BrandID, p ruleChange) error {
			return openAgents(ctx, edit, brand, p.Before)
		}),
		ChangeLogin: applies(func(ctx context.Context, edit Editor, brand BrandID, p loginChange) error {
			return makeAskedLive(ctx, edit, site, brand, p)
		}),
		ChangeKeyNew: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var p KeyDraft
			if err := json.Unmarshal(payload, &p); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			return NewAPIKey(ctx, edit, brand, p)
		},
		ChangeKeyRotate: func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
			var p struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(payload, &p); err != nil {
				return "", fmt.Errorf("read change: %w", err)
			}
			return RotateAPIKey(ctx, edit, brand, p.ID, RotateOverlap)
		},
	}
	maps.Copy(all, askedAppliers(db, site))
	maps.Copy(all, fileAppliers())
	maps.Copy(all, keyRuleAppliers(site))
	maps.Copy(all, ownerDecides(
		ChangeMemberInvite, ChangeMemberRole, ChangeMemberRemove,
		ChangeMemberConfirm, ChangeMemberVouch, ChangeBrandNew, ChangeClose, ChangeSigningNext, ChangeSigningRetire,
	))
	return all
}

type interfaceChange struct{ Before, After Interface }

// loginChange is a candidate as somebody saw it, and the connection that it would take
// the place of: none, where it would be the first.
type loginChange struct {
	Connection Connection
	Before     *Connection `json:",omitempty"`
}

// AskInterface asks for a move of the interface. What would be refused is told
// now, and not to the owner.
func (a *Asks) AskInterface(ctx context.Context, edit Editor, site Site, brand BrandID, want Interface, by, channel string) (PendingChange, error) {
	want, err := CheckAsked(ctx, edit, site, brand, want)
	if err != nil {
		return PendingChange{}, err
	}
	before, err := InterfaceOf(ctx, a.DB, brand)
	if err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeInterface, By: by, Channel: channel,
		Diff:    map[string]any{"changed": Diff(before, want), "ends_all_grants": before.Mode != want.Mode || before.URL != want.URL},
		Payload: interfaceChange{before, want},
	})
}

// AskLive asks for the candidate to be made live.
func (a *Asks) AskLive(ctx context.Context, edit Editor, brand BrandID, id uuid.UUID, by, channel string) (PendingChange, error) {
	c, err := connectionNow(ctx, a.DB, brand, id)
	if err != nil {
		return PendingChange{}, err
	}
	if c.Live {
		return PendingChange{}, ErrLive
	}
	all, err := Connections(ctx, a.DB, brand)
	if err != nil {
		return PendingChange{}, err
	}
	var before *Connection
	if i := slices.IndexFunc(all, func(o Connection) bool { return o.Live }); i >= 0 {
		before = &all[i]
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeLogin, By: by, Channel: channel,
		Diff: map[string]any{"before": before, "after": c}, Payload: loginChange{c, before},
	})
}

// AskKey asks for a new API key.
func (a *Asks) AskKey(ctx context.Context, edit Editor, brand BrandID, d KeyDraft, by, channel string) (PendingChange, error) {
	if p := d.Check(); len(p) > 0 {
		return PendingChange{}, p
	}
	return a.Ask(ctx, edit, brand, Ask{Kind: ChangeKeyNew, By: by, Channel: channel, Diff: map[string]any{"after": d}, Payload: d})
}

// AskRotation asks for an API key to be replaced.
func (a *Asks) AskRotation(ctx context.Context, edit Editor, brand BrandID, id, by, channel string) (PendingChange, error) {
	keys, err := APIKeys(ctx, a.DB, brand)
	if err != nil {
		return PendingChange{}, err
	}
	i := slices.IndexFunc(keys, func(k APIKey) bool { return k.ID == id && k.RevokedAt == nil })
	if i < 0 {
		return PendingChange{}, ErrBadKey
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeKeyRotate, By: by, Channel: channel,
		Diff:    map[string]any{"key": id, "name": keys[i].Name, "rights": keys[i].Rights},
		Payload: map[string]string{"id": id},
	})
}

func connectionNow(ctx context.Context, db *DB, brand BrandID, id uuid.UUID) (Connection, error) {
	all, err := Connections(ctx, db, brand)
	if err != nil {
		return Connection{}, err
	}
	i := slices.IndexFunc(all, func(c Connection) bool { return c.ID == id })
	if i < 0 {
		return Connection{}, ErrNoConnection
	}
	return all[i], nil
}

// Shown stands for all of the connection that somebody can see. Where people
// already log in through it is no part of it.
func (c Connection) Shown() string {
	c.CreatedAt, c.Live = time.Time{}, false // JSON does not carry times over alike
	raw, _ := json.Marshal(c)                // a struct of texts and numbers
	return thumb(raw)
}

func thumb(raw []byte) string {
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
