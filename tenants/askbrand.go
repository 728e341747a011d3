package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The kinds of change that begin and end a Brand. Both are done in the name of the
// owner who approves: the new Brand is theirs.
const (
	ChangeBrandNew = "brand.create"
	ChangeClose    = "brand.close"
)

// ErrConfirm is returned to whoever would close a Brand without naming it twice.
var ErrConfirm = errors.New("name the Brand again to close it: that is final")

// BrandDraft is a Brand as it is asked for; all else has its default.
type BrandDraft struct {
	ID           BrandID `json:"id"`
	Name         string  `json:"name"`
	Organisation string  `json:"organisation"`
}

// Check returns every mistake in the draft.
func (d BrandDraft) Check() Problems {
	var p Problems
	if !validBrandID(d.ID) {
		p.add("id", "is no id of a Brand", "use 1 to 40 of a-z, 0-9 and -, and begin with a letter or digit")
	}
	p.words("name", d.Name, 1, longestName)
	p.words("organisation", d.Organisation, 1, longestName)
	return p
}

// AskBrand asks an owner of the Brand for another one, which will be the owner's.
// An id that was ever taken is ErrBrandTaken.
func (a *Asks) AskBrand(ctx context.Context, edit Editor, brand BrandID, d BrandDraft, by, channel string) (PendingChange, error) {
	if p := d.Check(); len(p) > 0 {
		return PendingChange{}, p
	}
	const q = `SELECT EXISTS (SELECT FROM brand_ids WHERE id = @id) AS taken`
	is, err := One[struct{ Taken bool }](ctx, a.DB, brand, q, pgx.NamedArgs{"id": d.ID})
	switch {
	case err != nil:
		return PendingChange{}, fmt.Errorf("ask for brand %s: %w", d.ID, err)
	case is.Taken:
		return PendingChange{}, ErrBrandTaken
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeBrandNew, By: by, Channel: channel,
		Diff:    map[string]any{"after": map[string]any{"brand": d.ID, "name": d.Name, "organisation": d.Organisation}},
		Payload: d,
	})
}

// BrandApplier has create make the Brand that an owner allowed; whose it becomes,
// only create knows.
func BrandApplier(create func(context.Context, BrandDraft) error) Applier {
	return func(ctx context.Context, _ Editor, _ BrandID, payload []byte) (string, error) {
		var d BrandDraft
		if err := json.Unmarshal(payload, &d); err != nil {
			return "", fmt.Errorf("read change: %w", err)
		}
		return "", create(ctx, d)
	}
}

// AskClose asks an owner to close the Brand for good. confirm is its id once more,
// as whoever does it on the dashboard types it.
func (a *Asks) AskClose(ctx context.Context, edit Editor, brand BrandID, confirm, by, channel string) (PendingChange, error) {
	if confirm != string(brand) {
		return PendingChange{}, ErrConfirm
	}
	const q = `SELECT state FROM brands WHERE id = @brand`
	b, err := One[struct{ State State }](ctx, a.DB, brand, q, pgx.NamedArgs{"brand": brand})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = ErrNoBrand
	case err != nil:
		err = fmt.Errorf("ask to close %s: %w", brand, err)
	case b.State == Closed:
		err = ErrClosed
	}
	if err != nil {
		return PendingChange{}, err
	}
	// Whatever state it is in then, it is closed.
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeClose, By: by, Channel: channel,
		Diff:    map[string]any{"changed": map[string]Difference{"state": {Before: "open", After: Closed}}, "ends_all_grants": true},
		Payload: about{},
	})
}
