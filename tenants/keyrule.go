package tenants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// ChangeKeyRule is that keys of another kind sign for the Brand, or that they change
// at other times: upkeep then publishes a key and switches to it by itself.
const ChangeKeyRule = "key.rule"

// KeyRule is which keys sign for a Brand, and after how many days they change by
// themselves. It stands among the settings and is an owner's alone to change: a new
// kind of key can be one that its verifiers do not take, and each new key is one more
// in which they have to believe.
type KeyRule struct {
	Alg  string `json:"signing_alg"`
	Days int    `json:"rotation_days"`
}

// KeyRule is the rule that is part of the settings.
func (s Settings) KeyRule() KeyRule { return KeyRule{Alg: s.SigningAlg, Days: s.RotationDays} }

func (s *Settings) setKeyRule(r KeyRule) { s.SigningAlg, s.RotationDays = r.Alg, r.Days }

// KeyRuleIn says which rule of keys the settings as sent would have, if it is another
// than now, and whether nothing else would be different. Nil: it is as it is, or the
// settings cannot be read or be, which is told elsewhere.
func KeyRuleIn(now Settings, sent []byte) (rule *KeyRule, alone bool) {
	after := now.copied()
	d := json.NewDecoder(bytes.NewReader(sent))
	d.DisallowUnknownFields()
	if d.Decode(&after) != nil || after.KeyRule() == now.KeyRule() {
		return nil, false
	}
	wish := after.KeyRule()
	only := now.copied()
	only.setKeyRule(wish)
	if len(only.checkTimes()) > len(now.checkTimes()) {
		return nil, false
	}
	after.tidy()
	return &wish, len(Diff(only, after)) == 0
}

// copied shares nothing with s.
func (s Settings) copied() Settings {
	s.Languages, s.GrantDays = slices.Clone(s.Languages), slices.Clone(s.GrantDays)
	return s
}

// keysAside refuses what only SetKeyRule and ChangeAllSettings do.
func keysAside(before, after Settings) Problems {
	var p Problems
	for field := range Diff(before.KeyRule(), after.KeyRule()) {
		p.add(field, "is changed by an owner alone", "ask for signing_alg and rotation_days by themselves, and nothing else in the same change; it waits for an owner")
		p.kind(OwnersAlone)
	}
	slices.SortFunc(p, func(a, b Problem) int { return strings.Compare(a.Field, b.Field) })
	return p
}

// SetKeyRule gives the Brand the rule at once. It is for the operator: all other doors
// AskKeyRule, and an owner on the dashboard, freshly authenticated, uses
// ChangeAllSettings. Twice is once.
func SetKeyRule(ctx context.Context, edit Editor, site Site, brand BrandID, rule KeyRule) error {
	_, err := ChangeAllSettings(ctx, edit, site, brand, func(s *Settings) error {
		s.setKeyRule(rule)
		return nil
	})
	return err
}

// AskKeyRule asks an owner for the rule. What would be refused is told now; a rule that
// is so already is ErrSameKeys.
func (a *Asks) AskKeyRule(ctx context.Context, edit Editor, site Site, brand BrandID, rule KeyRule, by, channel string) (PendingChange, error) {
	c := keyRuleChange{After: rule}
	err := edit.change(ctx, brand, "try rule of keys", func(e *Edit) error {
		_, err := e.changeSettings(ctx, site, true, func(s *Settings) error {
			c.Before = s.KeyRule()
			s.setKeyRule(rule)
			return nil
		})
		if err == nil {
			err = errTrial
		}
		return err
	})
	if !errors.Is(err, errTrial) {
		return PendingChange{}, err
	}
	if c.Before == c.After {
		return PendingChange{}, ErrSameKeys
	}
	return a.Ask(ctx, edit, brand, Ask{
		Kind: ChangeKeyRule, By: by, Channel: channel,
		Diff: map[string]any{"changed": Diff(c.Before, c.After)}, Payload: c,
	})
}

// ErrSameKeys is returned for the wish for a rule of keys that is the Brand's already.
var ErrSameKeys = errors.New("the brand's signing keys are as wished already")

type keyRuleChange struct {
	Before KeyRule `json:"before"`
	After  KeyRule `json:"after"`
}

// keyRuleAppliers apply ChangeKeyRule.
func keyRuleAppliers(site Site) map[string]Applier {
	return map[string]Applier{
		ChangeKeyRule: applies(func(ctx context.Context, edit Editor, brand BrandID, c keyRuleChange) error {
			_, err := ChangeAllSettings(ctx, edit, site, brand, func(s *Settings) error {
				if now := s.KeyRule(); now != c.Before && now != c.After { // the latter: this ran before
					return ErrChangeStale
				}
				s.setKeyRule(c.After)
				return nil
			})
			return err
		}),
	}
}

// TakeKeyRule takes out of the file that other keys would sign, or at other times, and
// returns the rule: that is for AskKeyRule. Nil: there was nothing to take.
func (f *File) TakeKeyRule(ctx context.Context, db *DB) (*KeyRule, error) {
	now, err := SettingsOf(ctx, db, f.Brand)
	if err != nil {
		return nil, err
	}
	rule, _ := KeyRuleIn(now, f.Settings)
	if rule == nil {
		return nil, nil
	}
	f.Settings, err = without(f.Settings, "signing_alg", "rotation_days")
	return rule, err
}

// without takes members out of an object, however their letters are written: what
// reads it takes them all.
func without(raw json.RawMessage, names ...string) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	for member := range members {
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, member) }) {
			delete(members, member)
		}
	}
	return json.Marshal(members)
}
