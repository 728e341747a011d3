package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// ChangeOpen is that any agent may come which can be discovered.
const ChangeOpen = "agents.open"

// OpenAgents lets agents ask at the Brand that nobody has registered (AgentsOpen).
// It is for an owner to say, freshly authenticated: all other doors AskOpen. A
// Brand that has proved nothing is a Problem. Twice is once.
func OpenAgents(ctx context.Context, edit Editor, brand BrandID) error {
	return openAgents(ctx, edit, brand, rules...)
}

// openAgents is OpenAgents where the rule is one of those still; any other is
// ErrChangeStale.
func openAgents(ctx context.Context, edit Editor, brand BrandID, from ...string) error {
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
		if !slices.Contains(from, before) {
			return ErrChangeStale
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
	if before.Agents != AgentsOpen && after.Agents == AgentsOpen {
		return Widening()
	}
	return nil
}

// Widening is the mistake of letting more agents ask in passing.
func Widening() Problems {
	var p Problems
	p.add("agents", "is opened by an owner alone", "ask for it by itself, and nothing else in the same change; it waits for an owner")
	p.kind(OwnersAlone)
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
	if err := CheckRule(ctx, a.DB, brand, AgentsOpen); err != nil {
		return PendingChange{}, err
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeOpen, By: by, Channel: channel,
		Diff: map[string]any{"changed": Diff(s, after)}, Payload: ruleChange{Before: s.Agents, After: after.Agents},
	})
}

// CheckRule returns why the Brand cannot have the rule, though it may be asked for.
func CheckRule(ctx context.Context, db *DB, brand BrandID, rule string) error {
	if rule != AgentsOpen {
		return nil
	}
	const q = `SELECT proven FROM brands WHERE id = @brand`
	is, err := One[struct{ Proven bool }](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	switch {
	case err != nil:
		return fmt.Errorf("see whether %s can be open: %w", brand, err)
	case !is.Proven:
		return unprovenOpen()
	}
	return nil
}

// ErrOpen is returned for the wish to open what is open.
var ErrOpen = errors.New("the brand is open to agents already")

// rules are who may ask, each more than the one before.
var rules = []string{AgentsListed, AgentsRegistered, AgentsOpen}

// Widens says which rule the settings as sent would have, if more agents could ask
// then, and whether they would do nothing else. Empty: they widen nothing.
func Widens(now Settings, sent []byte) (rule string, alone bool) {
	var members map[string]json.RawMessage
	after := struct {
		Agents string `json:"agents"` // read as the settings are, capitals or not
	}{now.Agents}
	if json.Unmarshal(sent, &members) != nil || json.Unmarshal(sent, &after) != nil {
		return "", false
	}
	rule = after.Agents
	if slices.Index(rules, rule) <= slices.Index(rules, now.Agents) {
		return "", false // as it is, fewer, or no rule at all: a mistake is told elsewhere
	}
	return rule, len(members) == 1
}

// AskRule asks an owner to let more agents ask. What would be refused is told now.
func (a *Asks) AskRule(ctx context.Context, edit Editor, brand BrandID, rule, by, channel string) (PendingChange, error) {
	if rule == AgentsOpen {
		return a.AskOpen(ctx, edit, brand, by, channel)
	}
	s, err := SettingsOf(ctx, a.DB, brand)
	if err != nil {
		return PendingChange{}, err
	}
	if slices.Index(rules, rule) <= slices.Index(rules, s.Agents) {
		return PendingChange{}, ErrWide
	}
	c := ruleChange{Before: s.Agents, After: rule}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeRule, By: by, Channel: channel,
		Diff: map[string]any{"changed": map[string]Difference{"agents": {Before: c.Before, After: c.After}}}, Payload: c,
	})
}

// ErrWide is returned for the wish that more agents may ask where they may.
var ErrWide = errors.New("as many agents may ask already")

type ruleChange struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

func applyRule(ctx context.Context, edit Editor, site Site, brand BrandID, c ruleChange) error {
	_, err := ChangeSettings(ctx, edit, site, brand, func(s *Settings) error {
		if s.Agents != c.Before && s.Agents != c.After { // the latter: this ran before
			return ErrChangeStale
		}
		s.Agents = c.After
		return nil
	})
	return err
}

// TakeWidening takes out of the file that it would let more agents ask, and
// returns the rule: that is for AskRule. Empty: there was nothing to take.
func (f *File) TakeWidening(ctx context.Context, db *DB) (rule string, err error) {
	now, err := SettingsOf(ctx, db, f.Brand)
	if err != nil {
		return "", err
	}
	if rule, _ = Widens(now, f.Settings); rule == "" {
		return "", nil
	}
	f.Settings, err = without(f.Settings, "agents")
	return rule, err
}

// TakeRestored takes the scopes out of the file that are retired now, with the
// types that belong to them, and returns their ids: that they come back is for
// AskRestore. Once they have, the file is applied again, for their place and their
// words.
func (f *File) TakeRestored(ctx context.Context, db *DB) (ids []string, err error) {
	all, err := Scopes(ctx, db, f.Brand)
	if err != nil {
		return nil, err
	}
	retired := make(map[string]bool)
	for _, s := range all {
		retired[s.ID] = s.RetiredAt != nil
	}
	f.Scopes = slices.DeleteFunc(slices.Clone(f.Scopes), func(s FileScope) bool {
		if retired[s.ID] {
			ids = append(ids, s.ID)
		}
		return retired[s.ID]
	})
	f.DetailTypes = slices.DeleteFunc(slices.Clone(f.DetailTypes), func(t FileDetailType) bool { return slices.Contains(ids, t.Scope) })
	return ids, nil
}
