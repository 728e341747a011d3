package tenants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ChangeOpen is that any agent may come which can be discovered.
const ChangeOpen = "agents.open"

// OpenAgents lets agents ask at the Brand that nobody has registered (AgentsOpen).
// It is for an owner to say, freshly authenticated: all other doors AskOpen. A
// Brand that has proved nothing is a Problem. Twice is once.
func OpenAgents(ctx context.Context, edit Editor, brand BrandID) error {
	return edit.change(ctx, brand, "open to agents", func(e *Edit) error {
		const find = `SELECT agents, proven FROM brands WHERE id = @brand`
		const set = `UPDATE brands SET agents = 'open' WHERE id = @brand AND proven`
		var before string
		var proven bool
		if err := e.QueryRow(ctx, find, pgx.NamedArgs{"brand": brand}).Scan(&before, &proven); err != nil {
			return err
		}
		if !proven {
			return unprovenOpen()
		}
		if before == AgentsOpen {
			return nil
		}
		e.Note("brand.settings", map[string]any{"changed": map[string]Difference{"agents": {Before: before, After: AgentsOpen}}})
		_, err := e.Exec(ctx, set, pgx.NamedArgs{"brand": brand})
		return err
	})
}

func unprovenOpen() Problems {
	var p Problems
	p.add("agents", "cannot be open before a domain is proven", "prove the domain first (countersign brand domain)")
	p.kind(Unproven)
	return p
}

// opening refuses what only OpenAgents does.
func opening(before, after Settings) Problems {
	var p Problems
	if before.Agents != AgentsOpen && after.Agents == AgentsOpen {
		p.add("agents", "is opened by an owner alone", "ask for it by itself, and nothing else in the same change; it waits for an owner")
		p.kind(OwnersAlone)
	}
	return p
}

// AskOpen asks for OpenAgents. What would be refused is told now.
func (a *Asks) AskOpen(ctx context.Context, edit Editor, brand BrandID, by, channel string) (PendingChange, error) {
	s, err := SettingsOf(ctx, a.DB, brand)
	if err != nil {
		return PendingChange{}, err
	}
	after := s
	after.Agents = AgentsOpen
	if len(Diff(s, after)) == 0 {
		return PendingChange{}, ErrOpen
	}
	const q = `SELECT proven FROM brands WHERE id = @brand`
	is, err := One[struct{ Proven bool }](ctx, a.DB, brand, q, pgx.NamedArgs{"brand": brand})
	switch {
	case err != nil:
		return PendingChange{}, fmt.Errorf("ask to open %s: %w", brand, err)
	case !is.Proven:
		return PendingChange{}, unprovenOpen()
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeOpen, By: by, Channel: channel,
		Diff: map[string]any{"changed": Diff(s, after)}, Payload: struct{}{},
	})
}

// ErrOpen is returned for the wish to open what is open.
var ErrOpen = errors.New("the brand is open to agents already")

// Opens reports whether the settings as sent would open the Brand, and whether
// they would do nothing else.
func Opens(now Settings, sent []byte) (opens, alone bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(sent, &members) != nil || !bytes.Equal(bytes.TrimSpace(members["agents"]), []byte(`"`+AgentsOpen+`"`)) {
		return false, false
	}
	return now.Agents != AgentsOpen, len(members) == 1
}

// TakeOpening takes out of the file that it would open the Brand, and reports
// whether it did: that is for AskOpen.
func (f *File) TakeOpening(ctx context.Context, db *DB) (bool, error) {
	now, err := SettingsOf(ctx, db, f.Brand)
	if err != nil {
		return false, err
	}
	if opens, _ := Opens(now, f.Settings); !opens {
		return false, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(f.Settings, &members); err != nil {
		return false, err
	}
	delete(members, "agents")
	f.Settings, err = json.Marshal(members)
	return true, err
}
