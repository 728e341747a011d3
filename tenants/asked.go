package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// The kinds of change that wait because on the dashboard, too, only a fresh touch
// makes them: whose the Brand is, what agents get back that was taken from them,
// and what its tokens are signed with. Whatever only stops something is none.
const (
	ChangeDomainAdd    = "domain.add" // a proven domain is a way to become an owner again
	ChangeDomainRemove = "domain.remove"
	ChangeRestore      = "scope.restore"
	ChangeResume       = "brand.resume"
	ChangeHookEnable   = "webhook.enable"
	ChangeRule         = "agents.rule" // more agents may ask, all of them registered

	// Package signing applies these.
	ChangeSigningNext   = "key.next"
	ChangeSigningRetire = "key.retire"
)

// about is the object of a change that has one and no more.
type about struct {
	ID string `json:"id"`
}

// The following are those objects as they were when it was asked: what is so no more
// was not what the owner read.
type (
	domainShown struct {
		Host   string    `json:"id"`
		Added  time.Time `json:"added"`
		Proven bool      `json:"proven"`
	}
	scopeShown struct {
		ID          string    `json:"id"`
		Retired     time.Time `json:"retired"`
		Description string    `json:"description"`
		Impact      string    `json:"impact"`
	}
	pauseShown struct {
		Pauses int `json:"pauses"`
	}
)

// applies is the Applier of changes whose payload is a T.
func applies[T any](do func(ctx context.Context, edit Editor, brand BrandID, p T) error) Applier {
	return func(ctx context.Context, edit Editor, brand BrandID, payload []byte) (string, error) {
		var p T
		if err := json.Unmarshal(payload, &p); err != nil {
			return "", fmt.Errorf("read change: %w", err)
		}
		return "", do(ctx, edit, brand, p)
	}
}

// askedAppliers apply the kinds above that are this package's.
func askedAppliers(db *DB, site Site) map[string]Applier {
	return map[string]Applier{
		ChangeDomainAdd: applies(func(ctx context.Context, edit Editor, brand BrandID, p about) error {
			_, err := AddDomain(ctx, db, edit, brand, p.ID)
			return err
		}),
		ChangeDomainRemove: applies(removeShown),
		ChangeRestore:      applies(restoreShown),
		ChangeResume: applies(func(ctx context.Context, edit Editor, brand BrandID, p pauseShown) error {
			return startShown(ctx, edit, brand, p.Pauses)
		}),
		ChangeHookEnable: applies(func(ctx context.Context, edit Editor, brand BrandID, p hookSwitch) error {
			return switchShown(ctx, edit, brand, p, true, "")
		}),
		ChangeRule: applies(func(ctx context.Context, edit Editor, brand BrandID, p ruleChange) error {
			return applyRule(ctx, edit, site, brand, p)
		}),
	}
}

// AskDomain asks an owner to begin the proof of a host name. One that is there
// already is ErrHaveDomain.
func (a *Asks) AskDomain(ctx context.Context, edit Editor, brand BrandID, name, by, channel string) (PendingChange, error) {
	host, err := hostForm(name)
	if err != nil {
		return PendingChange{}, err
	}
	found, err := domains(ctx, a.DB, brand, host)
	if err == nil && len(found) > 0 {
		err = ErrHaveDomain
	}
	if err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeDomainAdd, By: by, Channel: channel, Diff: map[string]any{"after": map[string]any{"host": host}}, Payload: about{host},
	})
}

// ErrHaveDomain is returned for the wish to add a domain that is there.
var ErrHaveDomain = errors.New("the brand has added this domain already")

// AskDomainRemoval asks an owner to take a domain away. What would be refused is
// told now.
func (a *Asks) AskDomainRemoval(ctx context.Context, edit Editor, brand BrandID, name, by, channel string) (PendingChange, error) {
	host, err := hostForm(name)
	if err != nil {
		return PendingChange{}, err
	}
	var d Domain
	err = edit.change(ctx, brand, "look at domain", func(e *Edit) error {
		d, err = e.removable(ctx, host)
		return err
	})
	if err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeDomainRemove, By: by, Channel: channel,
		Diff:    map[string]any{"before": map[string]any{"host": host, "proven": d.ProvenAt != nil}},
		Payload: domainShown{host, d.AddedAt, d.ProvenAt != nil},
	})
}

// AskRestore asks an owner to put a retired scope back on the card: grants that
// held it hold it again. One that stands there is ErrOnCard.
func (a *Asks) AskRestore(ctx context.Context, edit Editor, brand BrandID, id, by, channel string) (PendingChange, error) {
	all, err := Scopes(ctx, a.DB, brand)
	if err != nil {
		return PendingChange{}, err
	}
	i := slices.IndexFunc(all, func(s StoredScope) bool { return s.ID == id })
	switch {
	case i < 0:
		return PendingChange{}, ErrNoScope
	case all[i].RetiredAt == nil:
		return PendingChange{}, ErrOnCard
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeRestore, By: by, Channel: channel,
		Diff:    map[string]any{"after": map[string]any{"scope": id, "description": all[i].Description, "impact": all[i].Impact}},
		Payload: scopeShown{id, *all[i].RetiredAt, all[i].Description, all[i].Impact},
	})
}

// ErrOnCard is returned for the wish to restore a scope that was not retired.
var ErrOnCard = errors.New("the scope is on the card")

// AskResume asks an owner to let agents go on: that may be what somebody waits for
// whom the pause stopped.
func (a *Asks) AskResume(ctx context.Context, edit Editor, brand BrandID, by, channel string) (PendingChange, error) {
	const q = `SELECT state, pauses FROM brands WHERE id = @brand`
	type row struct {
		State  State
		Pauses int
	}
	b, err := One[row](ctx, a.DB, brand, q, pgx.NamedArgs{"brand": brand})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = ErrNoBrand
	case err != nil:
		err = fmt.Errorf("ask to resume %s: %w", brand, err)
	case b.State == Closed:
		err = ErrClosed
	case b.State != Paused:
		err = ErrNotPaused
	}
	if err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeResume, By: by, Channel: channel,
		Diff:    map[string]any{"changed": map[string]Difference{"state": {Before: Paused, After: Active}}},
		Payload: pauseShown{b.Pauses},
	})
}

// ErrNotPaused is returned for the wish to resume a Brand that is not paused.
var ErrNotPaused = errors.New("the brand is not paused")

// AskWebhookOn asks an owner to turn an endpoint on again. One that is on is
// ErrHookOn.
func (a *Asks) AskWebhookOn(ctx context.Context, edit Editor, brand BrandID, id, by, channel string) (PendingChange, error) {
	w, err := webhookNow(ctx, a.DB, brand, id)
	if err == nil && w.Enabled {
		err = ErrHookOn
	}
	if err != nil {
		return PendingChange{}, err
	}
	shown, err := toSwitch(ctx, a.DB, brand, id)
	if err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeHookEnable, By: by, Channel: channel, Diff: map[string]any{"webhook": id, "url": w.URL}, Payload: shown,
	})
}

// ErrHookOn is returned for the wish to turn an endpoint on that is on.
var ErrHookOn = errors.New("the webhook endpoint is on already")
