package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A page, a token and a person's patience have room for this much.
const (
	mostDetailTypes   = 20
	longestDetailText = 300
)

// DetailType is a type of authorization_details (RFC 9396 §2) that agents may name
// beside the scope it belongs to: it says more exactly what that scope is to allow.
type DetailType struct {
	Type  string // as the agent writes it
	Scope string // never changes
	// Schema is a JSON Schema of the members beside type, closed on every level.
	Schema json.RawMessage
	// Words say a detail to a person, in the Brand's own language: "Up to {amount}
	// {currency}[ at {shop}]". They name every member, so that nobody allows
	// what was not shown; what may be missing stands in brackets.
	Words string
	Texts map[string]string // the Brand's translations
}

// text is the words in the language, or in the Brand's own where it wrote no
// translation.
func (t DetailType) text(lang string) string {
	if s := t.Texts[lang]; s != "" {
		return s
	}
	return t.Words
}

// DetailType returns the type with the name, if its scope is on the card.
func (b *Brand) DetailType(name string) (DetailType, bool) {
	i := slices.IndexFunc(b.DetailTypes, func(t DetailType) bool { return t.Type == name })
	if i < 0 {
		return DetailType{}, false
	}
	return b.DetailTypes[i], true
}

// ErrNoDetailType is returned for a type that the Brand does not have.
var ErrNoDetailType = errors.New("the brand has no such type of authorization details")

// DetailTypes returns all of the Brand's types by name, those too whose scope is
// retired.
func DetailTypes(ctx context.Context, db *DB, brand BrandID) ([]DetailType, error) {
	out, err := All[DetailType](ctx, db, brand, selectDetailTypes, pgx.NamedArgs{"brand": brand})
	if err != nil {
		return nil, fmt.Errorf("list detail types of %s: %w", brand, err)
	}
	return out, nil
}

const selectDetailTypes = `
	SELECT type, scope, schema, words, texts FROM detail_types WHERE brand_id = @brand ORDER BY type`

func (e *Edit) detailTypes(ctx context.Context) ([]DetailType, error) {
	rows, err := e.Query(ctx, selectDetailTypes, pgx.NamedArgs{"brand": e.Brand})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[DetailType])
}

// SaveDetailType adds the type, or changes all of it but the scope. What people
// allowed before stays as they allowed it.
func SaveDetailType(ctx context.Context, edit Editor, brand BrandID, t DetailType) error {
	return edit.change(ctx, brand, "save detail type", func(e *Edit) error {
		languages, err := e.languages(ctx)
		if err != nil {
			return err
		}
		return e.saveDetailType(ctx, t, languages)
	})
}

func (e *Edit) saveDetailType(ctx context.Context, t DetailType, languages []string) error {
	if t.Texts == nil {
		t.Texts = map[string]string{}
	}
	all, err := e.detailTypes(ctx)
	if err != nil {
		return err
	}
	scopes, err := e.scopes(ctx)
	if err != nil {
		return err
	}
	if p := t.check(all, onCard(scopes), languages); len(p) > 0 {
		return p
	}
	about := map[string]any{"type": t.Type}
	if i := slices.IndexFunc(all, func(o DetailType) bool { return o.Type == t.Type }); i < 0 {
		about["after"] = detailTypeView(t)
		e.Note("detail_type.added", about)
	} else if !e.noteDiff("detail_type.changed", about, detailTypeView(all[i]), detailTypeView(t)) {
		return nil
	}
	const q = `
		INSERT INTO detail_types (brand_id, type, scope, schema, words, texts)
		VALUES (@brand, @type, @scope, @schema, @words, @texts)
		ON CONFLICT (brand_id, type) DO UPDATE
		   SET schema = excluded.schema, words = excluded.words, texts = excluded.texts`
	_, err = e.Exec(ctx, q, pgx.NamedArgs{
		"brand": e.Brand, "type": t.Type, "scope": t.Scope, "schema": t.Schema, "words": t.Words, "texts": t.Texts,
	})
	return err
}

// RemoveDetailType has agents name the type no more. What people allowed in its
// terms stays as it is until its scope goes: without it, the scope would allow
// more than they did.
func RemoveDetailType(ctx context.Context, edit Editor, brand BrandID, name string) error {
	return edit.change(ctx, brand, "remove detail type", func(e *Edit) error {
		return e.removeDetailType(ctx, name)
	})
}

func (e *Edit) removeDetailType(ctx context.Context, name string) error {
	const q = `DELETE FROM detail_types WHERE brand_id = @brand AND type = @type`
	tag, err := e.Exec(ctx, q, pgx.NamedArgs{"brand": e.Brand, "type": name})
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return ErrNoDetailType
	}
	e.Note("detail_type.removed", map[string]any{"type": name})
	return nil
}

// FileDetailType is a type in a File.
type FileDetailType struct {
	Type   string            `json:"type"`
	Scope  string            `json:"scope"`
	Schema json.RawMessage   `json:"schema"`
	Words  string            `json:"words"`
	Texts  map[string]string `json:"texts,omitempty"`
}

// applyDetailTypes makes the types those of the file.
func (e *Edit) applyDetailTypes(ctx context.Context, want []FileDetailType, languages []string) error {
	before, err := e.detailTypes(ctx)
	if err != nil {
		return err
	}
	named := make([]string, len(want))
	for i, t := range want {
		named[i] = t.Type
		if slices.Contains(named[:i], t.Type) {
			return Problems{{Field: "detail_types", Say: t.Type + " stands there twice", Mend: "take one away"}}
		}
	}
	scopes, err := e.scopes(ctx)
	if err != nil {
		return err
	}
	for _, t := range before { // first: there is room for so many
		// The file names none whose scope is retired.
		if !slices.Contains(named, t.Type) && slices.Contains(onCard(scopes), t.Scope) {
			if err := e.removeDetailType(ctx, t.Type); err != nil {
				return err
			}
		}
	}
	for _, t := range want {
		err := e.saveDetailType(ctx, DetailType(t), languages)
		if p := Problems(nil); errors.As(err, &p) {
			for n := range p {
				p[n].Field = "detail_types." + t.Type + "." + p[n].Field
			}
			return p
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// detailTypeView names a type's fields as the API does.
func detailTypeView(t DetailType) any {
	return struct {
		Scope  string            `json:"scope"`
		Schema json.RawMessage   `json:"schema"`
		Words  string            `json:"words"`
		Texts  map[string]string `json:"texts"`
	}{t.Scope, t.Schema, t.Words, t.Texts}
}

var detailTypeForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:/._~-]{0,99}$`)

// check returns every mistake in the type, beside the others that the Brand has.
func (t DetailType) check(others []DetailType, scopes, languages []string) Problems {
	var p Problems
	if !detailTypeForm.MatchString(t.Type) {
		p.add("type", "is no name for a type", "use 1 to 100 letters, digits and : / . _ ~ -, such as stay_charge")
	}
	i := slices.IndexFunc(others, func(o DetailType) bool { return o.Type == t.Type })
	switch {
	case i >= 0 && others[i].Scope != t.Scope:
		p.add("scope", "cannot change: people allowed this type beside "+others[i].Scope, "name a new type")
	case i < 0 && !slices.Contains(scopes, t.Scope):
		p.add("scope", "is not on the card", "name the one scope that the type belongs to")
	}
	if i < 0 && len(others) >= mostDetailTypes {
		p.add("type", "would be one too many", "remove one; "+count(mostDetailTypes)+" fit")
	}
	leaves, bad := readSchema(t.Schema)
	if p = append(p, bad...); len(bad) > 0 {
		leaves = nil // or each member would be missed in the words
	}
	t.checkWords(&p, "words", t.Words, leaves, len(bad) == 0)
	for _, tag := range sortedKeys(t.Texts) {
		p.tag("texts."+tag, tag)
		t.checkWords(&p, "texts."+tag, t.Texts[tag], leaves, len(bad) == 0)
	}
	for _, tag := range languages {
		if t.Texts[tag] == "" {
			p.add("texts."+tag, "is missing, and "+tag+" is one of the Brand's languages",
				"write the words in it, or take it off the languages")
			p.kind(LacksWords, tag)
		}
	}
	return p
}

// checkWords judges one language's words by the schema's members.
func (t DetailType) checkWords(p *Problems, field, text string, leaves []leaf, known bool) {
	before := len(*p)
	p.words(field, text, 1, longestDetailText)
	if len(*p) > before {
		return
	}
	parts, err := parseWords(text)
	if err != nil {
		p.add(field, err.Error(), `write such as "Up to {amount} {currency}[ at {shop}]"`)
		return
	}
	if !known {
		return
	}
	for _, part := range parts {
		i := slices.IndexFunc(leaves, func(l leaf) bool { return l.path == part.member })
		switch {
		case part.member == "":
		case i < 0:
			p.add(field, "names {"+part.member+"}, which is no member of the schema", "name members, such as {"+firstPath(leaves)+"}")
		case leaves[i].optional && !part.optional:
			p.add(field, "names {"+part.member+"} as if it were always there", "put what is said of it in brackets: [ … {"+part.member+"}]; or make it required")
		}
	}
	for _, l := range leaves {
		if !slices.ContainsFunc(parts, func(part wordsPart) bool { return part.member == l.path }) {
			p.add(field, "do not name {"+l.path+"}", "name every member: nobody allows what is not shown")
		}
	}
}

func firstPath(leaves []leaf) string {
	if len(leaves) == 0 {
		return "amount"
	}
	return leaves[0].path
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}

// untranslatedTypes tells which types lack the Brand's words in which of the
// languages.
func untranslatedTypes(types []DetailType, scopes, languages []string) Problems {
	var p Problems
	for _, t := range types {
		for _, tag := range languages {
			if slices.Contains(scopes, t.Scope) && t.Texts[tag] == "" {
				p.add("languages", "type "+t.Type+" of authorization details has no words in "+tag, "translate it first")
				p.kind(Untranslated, t.Type, tag)
			}
		}
	}
	return p
}
