package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	mostScopes       = 50
	longestScopeText = 200
)

// StoredScope is a scope as it stands in the database, retired ones too.
type StoredScope struct {
	Scope
	RetiredAt *time.Time
}

// ErrNoScope is returned for a scope that the Brand does not have.
var ErrNoScope = errors.New("the brand has no such scope")

// Scopes returns all of the Brand's scopes: those on the card in its order, then
// the retired ones.
func Scopes(ctx context.Context, db *DB, brand BrandID) ([]StoredScope, error) {
	rows, err := All[scopeRow](ctx, db, brand, selectScopes, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list scopes of %s: %w", brand, err)
	}
	return stored(rows), nil
}

const selectScopes = `
	SELECT id, description, effect, impact, undo, texts, retired_at
	  FROM brand_scopes
	 WHERE brand_id = @brand
	 ORDER BY retired_at IS NOT NULL, position`

type scopeRow struct {
	ID          string `db:"id"`
	Description string
	Effect      string
	Impact      string
	Undo        string
	Texts       map[string]ScopeText
	RetiredAt   *time.Time
}

func stored(rows []scopeRow) []StoredScope {
	out := make([]StoredScope, len(rows))
	for i, r := range rows {
		out[i] = StoredScope{
			Scope:     Scope{ID: r.ID, Description: r.Description, Effect: r.Effect, Impact: r.Impact, Undo: r.Undo, Texts: r.Texts},
			RetiredAt: r.RetiredAt,
		}
	}
	return out
}

func (e *Edit) scopes(ctx context.Context) ([]StoredScope, error) {
	rows, err := e.Query(ctx, selectScopes, pgx.NamedArgs{"brand": e.Brand})
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[scopeRow])
	return stored(all), err
}

// SaveScope adds the scope at the end of the list, or changes it in its place.
// Grants that hold it keep it; a person who comes again reads the new words.
func SaveScope(ctx context.Context, edit Editor, brand BrandID, s Scope) error {
	return edit.change(ctx, brand, "save scope", func(e *Edit) error { return e.saveScope(ctx, s) })
}

// ErrScopeStale says that the scope is not as it was seen.
var ErrScopeStale = errors.New("the scope has changed since, or there is one with this id already")

// ReviseScope is SaveScope for somebody who has seen the scope, and writes over
// nothing else: seen is its Version, empty for a scope that is new. Otherwise it
// is ErrScopeStale.
func ReviseScope(ctx context.Context, edit Editor, brand BrandID, seen string, s Scope) error {
	return edit.change(ctx, brand, "revise scope", func(e *Edit) error {
		all, err := e.scopes(ctx)
		if err != nil {
			return err
		}
		now := ""
		for _, o := range all {
			if o.ID == s.ID {
				now = o.Version()
			}
		}
		if now != seen {
			return ErrScopeStale
		}
		return e.saveScope(ctx, s)
	})
}

// Version changes with anything that the Brand says of the scope.
func (s Scope) Version() string {
	raw, err := json.Marshal(scopeView(s))
	if err != nil {
		panic(err) // plain strings
	}
	return thumb(raw)
}

func (e *Edit) saveScope(ctx context.Context, s Scope) error {
	languages, err := e.languages(ctx)
	if err != nil {
		return err
	}
	return e.saveScopeIn(ctx, s, languages)
}

// saveScopeIn saves a scope of which the Brand owes words in the languages.
func (e *Edit) saveScopeIn(ctx context.Context, s Scope, languages []string) error {
	if s.Texts == nil {
		s.Texts = map[string]ScopeText{}
	}
	all, err := e.scopes(ctx)
	if err != nil {
		return err
	}
	if p := s.check(all, languages); len(p) > 0 {
		return p
	}
	i := slices.IndexFunc(all, func(o StoredScope) bool { return o.ID == s.ID })
	about := map[string]any{"scope": s.ID}
	if i < 0 {
		about["after"] = scopeView(s)
		e.Note("scope.added", about)
	} else if !e.noteDiff("scope.changed", about, scopeView(all[i].Scope), scopeView(s)) {
		return nil
	}
	const q = `
		INSERT INTO brand_scopes (brand_id, id, position, description, effect, impact, undo, texts)
		SELECT @brand, @id, coalesce(max(position) FILTER (WHERE retired_at IS NULL) + 1, 0),
		       @description, @effect, @impact, @undo, @texts
		  FROM brand_scopes WHERE brand_id = @brand
		ON CONFLICT (brand_id, id) DO UPDATE
		   SET description = excluded.description, effect = excluded.effect, impact = excluded.impact,
		       undo = excluded.undo, texts = excluded.texts`
	_, err = e.Exec(ctx, q, pgx.NamedArgs{
		"brand": e.Brand, "id": s.ID, "description": s.Description, "effect": s.Effect,
		"impact": s.Impact, "undo": s.Undo, "texts": s.Texts,
	})
	return err
}

func (e *Edit) languages(ctx context.Context) ([]string, error) {
	const q = `SELECT languages FROM brands WHERE id = @brand`
	var out []string
	err := e.QueryRow(ctx, q, pgx.NamedArgs{"brand": e.Brand}).Scan(&out)
	return out, err
}

// scopeView names a scope's fields as the API does.
func scopeView(s Scope) any {
	return struct {
		Description string               `json:"description"`
		Effect      string               `json:"effect"`
		Impact      string               `json:"impact"`
		Undo        string               `json:"undo"`
		Texts       map[string]ScopeText `json:"texts"`
	}{s.Description, s.Effect, s.Impact, s.Undo, s.Texts}
}

var scopeForm = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,100}$`)

// check returns every mistake in the scope, beside the others that the Brand has.
func (s Scope) check(others []StoredScope, languages []string) Problems {
	var p Problems
	if !scopeForm.MatchString(s.ID) {
		p.add("id", "holds something that no scope id may (RFC 6749)", `use 1 to 100 letters, digits and signs, no space, quote or backslash, such as bookings:read`)
		p.kind(NoScopeID)
	}
	live := 0
	for _, o := range others {
		// Ids that differ only in case would be told apart by nobody (B84).
		if o.ID != s.ID && strings.EqualFold(o.ID, s.ID) {
			p.add("id", "differs from "+o.ID+" only in case", "choose another, or change "+o.ID)
			p.kind(AlikeScope, o.ID)
		}
		if o.RetiredAt == nil && o.ID != s.ID {
			live++
		}
	}
	if live >= mostScopes {
		p.add("id", "would be one scope too many for one page", "retire one; "+count(mostScopes)+" fit")
		p.kind(TooManyScope, count(mostScopes))
	}
	p.words("description", s.Description, 1, longestScopeText)
	p.words("undo", s.Undo, 0, longestScopeText)
	p.oneOf("effect", s.Effect, "sees", "changes", "pays")
	p.oneOf("impact", s.Impact, "low", "medium", "high")
	for _, tag := range sortedTags(s.Texts) {
		field := "texts." + tag
		p.tag(field, tag)
		p.words(field+".description", s.Texts[tag].Description, 1, longestScopeText)
		p.words(field+".undo", s.Texts[tag].Undo, 0, longestScopeText)
	}
	for _, tag := range languages {
		if text := s.Texts[tag]; text.Description == "" || s.Undo != "" && text.Undo == "" {
			p.add("texts."+tag, "is not complete, and "+tag+" is one of the Brand's languages",
				"write description and undo in it, or take it off the languages")
			p.kind(LacksWords, tag)
		}
	}
	return p
}

// OrderScopes puts the scopes on the card in the order of ids, which must name
// each of them once.
func OrderScopes(ctx context.Context, edit Editor, brand BrandID, ids []string) error {
	return edit.change(ctx, brand, "order scopes", func(e *Edit) error {
		all, err := e.scopes(ctx)
		if err != nil {
			return err
		}
		before := onCard(all)
		if !slices.Equal(slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(ids))) {
			var p Problems
			p.add("order", "does not name each scope on the card once", "give all of "+strings.Join(before, ", "))
			p.kind(NotEachOnce)
			return p
		}
		if slices.Equal(before, ids) {
			return nil
		}
		e.Note("scope.ordered", map[string]any{"before": before, "after": ids})
		return e.arrange(ctx, ids)
	})
}

// RetireScope takes the scope off the card. Grants that hold it live on without
// it: their next token does not name it.
func RetireScope(ctx context.Context, edit Editor, brand BrandID, id string) error {
	return edit.change(ctx, brand, "retire scope", func(e *Edit) error {
		return e.setRetired(ctx, id, true)
	})
}

// RestoreScope puts a retired scope back, at the end of the list. Grants that
// held it hold it again.
func RestoreScope(ctx context.Context, edit Editor, brand BrandID, id string) error {
	return edit.change(ctx, brand, "restore scope", func(e *Edit) error {
		return e.setRetired(ctx, id, false)
	})
}

// restoreShown is RestoreScope of one as somebody saw it; one that was retired anew
// since, or has other words, is ErrChangeStale.
func restoreShown(ctx context.Context, edit Editor, brand BrandID, shown scopeShown) error {
	return edit.change(ctx, brand, "restore scope", func(e *Edit) error {
		all, err := e.scopes(ctx)
		if err != nil {
			return err
		}
		is := func(s StoredScope) bool {
			return s.RetiredAt == nil || s.RetiredAt.Equal(shown.Retired) && s.Description == shown.Description && s.Impact == shown.Impact
		}
		if i := slices.IndexFunc(all, func(s StoredScope) bool { return s.ID == shown.ID }); i >= 0 && !is(all[i]) {
			return ErrChangeStale
		}
		return e.setRetired(ctx, shown.ID, false)
	})
}

func (e *Edit) setRetired(ctx context.Context, id string, retired bool) error {
	all, err := e.scopes(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(o StoredScope) bool { return o.ID == id })
	if i < 0 {
		return ErrNoScope
	}
	if (all[i].RetiredAt != nil) == retired {
		return nil
	}
	ids, event := slices.DeleteFunc(onCard(all), func(o string) bool { return o == id }), "scope.retired"
	if !retired {
		// It may have been written before the Brand had its present languages.
		languages, err := e.languages(ctx)
		if err != nil {
			return err
		}
		if p := all[i].check(all, languages); len(p) > 0 {
			return p
		}
		ids, event = append(ids, id), "scope.restored"
	}
	e.Note(event, map[string]any{"scope": id})
	return e.arrange(ctx, ids)
}

func onCard(all []StoredScope) []string {
	ids := []string{}
	for _, s := range all {
		if s.RetiredAt == nil {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// arrange makes ids the card's scopes, in this order; every other one is retired.
func (e *Edit) arrange(ctx context.Context, ids []string) error {
	// Positions are unique, so all first step aside.
	for _, q := range []string{
		`UPDATE brand_scopes SET position = -1 - position WHERE brand_id = @brand AND position >= 0`,
		`UPDATE brand_scopes s SET position = o.n - 1, retired_at = NULL
		   FROM unnest(@ids::text[]) WITH ORDINALITY AS o (id, n)
		  WHERE s.brand_id = @brand AND s.id = o.id`,
		`UPDATE brand_scopes s SET position = 1000000 + r.n, retired_at = coalesce(s.retired_at, @now)
		   FROM (SELECT id, row_number() OVER (ORDER BY id) AS n
		           FROM brand_scopes WHERE brand_id = @brand AND position < 0) r
		  WHERE s.brand_id = @brand AND s.id = r.id`,
	} {
		if _, err := e.Exec(ctx, q, pgx.NamedArgs{"brand": e.Brand, "ids": ids, "now": e.Now}); err != nil {
			return err
		}
	}
	return nil
}

// sortedTags are the languages of the texts, in one order.
func sortedTags(texts map[string]ScopeText) []string {
	return slices.Sorted(maps.Keys(texts))
}
