package tenants_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// P47, R39: every mistake in a type of authorization_details is found and says how
// to mend it. A schema is closed on every level, and the words name every member,
// so that nothing unknown comes in and nobody allows what was not shown.
func TestDetailTypesSayHowToMendThem(t *testing.T) {
	w := authoritytest.New(t)
	schema := func(s string) func(*tenants.DetailType) {
		return func(d *tenants.DetailType) { d.Schema = json.RawMessage(s) }
	}
	words := func(s string) func(*tenants.DetailType) { return func(d *tenants.DetailType) { d.Words = s } }
	open := `{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"}}}`
	member := func(s string) func(*tenants.DetailType) {
		return func(d *tenants.DetailType) {
			d.Schema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":` + s + `}}`)
			d.Words, d.Texts = "{a}", nil
		}
	}
	for name, tt := range map[string]struct {
		change func(*tenants.DetailType)
		field  string
	}{
		"as it is":                  {func(*tenants.DetailType) {}, ""},
		"no name":                   {func(d *tenants.DetailType) { d.Type = "" }, "type"},
		"a name with a space":       {func(d *tenants.DetailType) { d.Type = "a b" }, "type"},
		"a URI":                     {func(d *tenants.DetailType) { d.Type = "https://hotel.example/charge" }, ""},
		"a scope that is not there": {func(d *tenants.DetailType) { d.Scope = "extras:eat" }, "scope"},
		"no schema":                 {schema(``), "schema"},
		"null":                      {schema(`null`), "schema"},
		"not JSON":                  {schema(`{`), "schema"},
		"a huge schema":             {schema(`{"title":"` + strings.Repeat("x", 9000) + `"}`), "schema"},
		"of a string":               {schema(`{"type":"string"}`), "schema.type"},
		"open":                      {schema(open), "schema.additionalProperties"},
		"no members":                {schema(`{"type":"object","additionalProperties":false,"properties":{}}`), "schema.properties"},
		"type as a member":          {member(`{"type":"string"},"type":{"type":"string"}`), "schema.properties.type"},
		"a remote reference":        {member(`{"$ref":"https://schemas.example/x"}`), "schema.properties.a.type"},
		"a reference beside a type": {member(`{"type":"string","$ref":"https://schemas.example/x"}`), "schema.properties.a.$ref"},
		"anything of several":       {schema(`{"type":"object","additionalProperties":false,"properties":{},"anyOf":[{}]}`), "schema.anyOf"},
		"a pattern of members":      {schema(`{"type":"object","additionalProperties":false,"properties":{},"patternProperties":{".":{}}}`), "schema.patternProperties"},
		"open below":                {member(`{"type":"object","properties":{"b":{"type":"string"}}}`), "schema.properties.a.additionalProperties"},
		"closed below": {func(d *tenants.DetailType) {
			member(`{"type":"object","additionalProperties":false,"required":["b"],"properties":{"b":{"type":"string"}}}`)(d)
			d.Words = "{a.b}"
		}, ""},
		"a list":                     {member(`{"type":"array","items":{"type":"string"},"maxItems":3}`), ""},
		"a list of objects":          {member(`{"type":"array","items":{"type":"object"}}`), "schema.properties.a.items"},
		"yes or no":                  {member(`{"type":"boolean"}`), "schema.properties.a.type"},
		"two types":                  {member(`{"type":["string","null"]}`), "schema.properties.a.type"},
		"no such pattern":            {member(`{"type":"string","pattern":"("}`), "schema"},
		"no such format":             {member(`{"type":"string","format":"colour"}`), "schema.properties.a.format"},
		"no words":                   {words(""), "words"},
		"a member left unsaid":       {words("Up to {amount}[ at {shop}]"), "words"},
		"a member that is not there": {words("Up to {amount} {currency} {tip}[ at {shop}]"), "words"},
		"certain of what may lack":   {words("Up to {amount} {currency} at {shop}"), "words"},
		"an open brace":              {words("Up to {amount {currency}[ at {shop}]"), "words"},
		"an open bracket":            {words("Up to {amount} {currency}[ at {shop}"), "words"},
		"two members in one bracket": {words("Up to {amount}[ {currency} at {shop}]"), "words"},
		"a stray brace":              {words("Up to } {amount} {currency}[ at {shop}]"), "words"},
		"a bidi mark":                {words("Up to \u202e{amount} {currency}[ at {shop}]"), "words"},
		"words in no language":       {func(d *tenants.DetailType) { d.Texts = map[string]string{"??": d.Words} }, "texts.??"},
		"a translation that hides":   {func(d *tenants.DetailType) { d.Texts = map[string]string{"de": "Bis {amount}"} }, "texts.de"},
	} {
		d := authoritytest.StayCharge()
		d.Type = "t:" + strings.ReplaceAll(name, " ", "-")
		tt.change(&d)
		got := problemFields(t, tenants.SaveDetailType(t.Context(), editor(w), w.Hotel.ID, d))
		if tt.field == "" && len(got) > 0 || tt.field != "" && !slices.Contains(got, tt.field) {
			t.Errorf("%s: problems with %v, want %q", name, got, tt.field)
		}
		w.Exec(t, `DELETE FROM detail_types`)
	}
}

// A type is added, changed and removed, each in the trail; its scope stays, and off
// the card it is no type for agents. Another Brand has none of it.
func TestDetailTypesAreAddedChangedAndRemoved(t *testing.T) {
	w := authoritytest.New(t)
	ctx, edit, id := t.Context(), editor(w), w.Hotel.ID
	b := w.Detailed(t, authoritytest.StayCharge())
	if got, ok := b.DetailType("stay_charge"); !ok || got.Scope != "extras:order" || got.Words == "" || got.Texts["zh-Hant"] == "" {
		t.Errorf("%+v", got)
	}
	if event, _, _, detail := lastFact(t, w); event != "detail_type.added" || detail["type"] != "stay_charge" {
		t.Errorf("%s %v", event, detail)
	}
	if _, ok := w.Shop.DetailType("stay_charge"); ok {
		t.Error("the other Brand has it")
	}
	if all, err := tenants.DetailTypes(ctx, w.DB, w.Shop.ID); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	moved := authoritytest.StayCharge()
	moved.Scope = "bookings:change"
	if got := problemFields(t, tenants.SaveDetailType(ctx, edit, id, moved)); !slices.Equal(got, []string{"scope"}) {
		t.Errorf("its scope moved: %v", got)
	}
	n := w.Count(t, `SELECT count(*) FROM audit_events`)
	w.Detailed(t, authoritytest.StayCharge())
	if now := w.Count(t, `SELECT count(*) FROM audit_events`); now != n {
		t.Error("twice is not once")
	}
	other := authoritytest.StayCharge()
	other.Words = "No more than {amount} {currency}[ at {shop}]"
	w.Detailed(t, other)
	if event, _, _, detail := lastFact(t, w); event != "detail_type.changed" || detail["changed"].(map[string]any)["words"] == nil {
		t.Errorf("%s %v", event, detail)
	}
	if err := tenants.RetireScope(ctx, edit, id, "extras:order"); err != nil {
		t.Fatal(err)
	}
	if b := w.Reload(t, id); len(b.DetailTypes) != 0 {
		t.Errorf("of a scope that is off the card: %v", b.DetailTypes)
	}
	if err := tenants.RemoveDetailType(ctx, edit, w.Shop.ID, "stay_charge"); !errors.Is(err, tenants.ErrNoDetailType) {
		t.Errorf("another Brand removes it: %v", err)
	}
	for _, want := range []error{nil, tenants.ErrNoDetailType} {
		if err := tenants.RemoveDetailType(ctx, edit, id, "stay_charge"); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if event, _, _, _ := lastFact(t, w); event != "detail_type.removed" {
		t.Error(event)
	}
}

// The Brand's languages and its types are held against each other.
func TestATypeOwesWordsInTheBrandsLanguages(t *testing.T) {
	w := authoritytest.New(t)
	d := authoritytest.StayCharge()
	d.Texts = nil
	w.Detailed(t, d)
	w.Exec(t, `UPDATE brand_scopes SET texts = '{"de": {"description": "x", "undo": ""}}'`)
	_, err := tenants.ChangeSettings(t.Context(), editor(w), tenants.Site{}, w.Hotel.ID, func(s *tenants.Settings) error {
		s.Languages = []string{"de"}
		return nil
	})
	if got := problemFields(t, err); !slices.Equal(got, []string{"languages"}) {
		t.Errorf("%v", got)
	}
	w.Exec(t, `UPDATE brands SET languages = '{de}' WHERE id = 'harbor-hotel'`)
	d.Words = "Not more than {amount} {currency}[ at {shop}]"
	if got := problemFields(t, tenants.SaveDetailType(t.Context(), editor(w), w.Hotel.ID, d)); !slices.Equal(got, []string{"texts.de"}) {
		t.Errorf("%v", got)
	}
}

// What a file says of types becomes so: written out and read back nothing changes,
// and those it does not name are removed.
func TestAFileHoldsTheDetailTypes(t *testing.T) {
	w := authoritytest.New(t)
	w.Detailed(t, authoritytest.StayCharge())
	f, err := tenants.FileOf(t.Context(), w.DB, w.Hotel.ID, w.Clock.Now())
	if err != nil || len(f.DetailTypes) != 1 {
		t.Fatal(f.DetailTypes, err)
	}
	if facts, err := tenants.PlanFile(t.Context(), editor(w), tenants.Site{}, f); err != nil || len(facts) != 0 {
		t.Errorf("%v, %v", facts, err)
	}
	f.DetailTypes[0].Type = "room_charge"
	if err := tenants.ApplyFile(t.Context(), editor(w), tenants.Site{}, f); err != nil {
		t.Fatal(err)
	}
	b := w.Reload(t, w.Hotel.ID)
	if len(b.DetailTypes) != 1 || b.DetailTypes[0].Type != "room_charge" {
		t.Errorf("%+v", b.DetailTypes)
	}
	f.DetailTypes[0].Words = "{amount}"
	if got := problemFields(t, tenants.ApplyFile(t.Context(), editor(w), tenants.Site{}, f)); len(got) == 0 || got[0] != "detail_types.room_charge.words" {
		t.Errorf("%v", got)
	}
}

// P47: a detail is said in words, in the reader's language, and nothing of it is
// ever left unsaid: not by words that changed since, nor by a type that is gone.
func TestADetailIsSaidWhole(t *testing.T) {
	d := authoritytest.StayCharge()
	b := &tenants.Brand{DetailTypes: []tenants.DetailType{
		d, {Type: "deep", Words: "Rooms {rooms} until {limit.end}"},
	}}
	for _, tt := range []struct{ detail, lang, want string }{
		{`{"type":"stay_charge","amount":200,"currency":"EUR"}`, "en", "Up to 200 EUR"},
		{`{"type":"stay_charge","amount":200.5,"currency":"EUR","shop":"the bar"}`, "en", "Up to 200.5 EUR at the bar"},
		{`{"type":"stay_charge","amount":200,"currency":"EUR","shop":"酒吧"}`, "zh-Hant", "最多 200 EUR（酒吧）"},
		{`{"type":"stay_charge","amount":200,"currency":"EUR","shop":" "}`, "en", "Up to 200 EUR at –"},
		{`{"type":"deep","rooms":["12","14"],"limit":{"end":"2026-12-01"}}`, "en", "Rooms 12, 14 until 2026-12-01"},
		{`{"type":"stay_charge","amount":200,"currency":"EUR","tip":20}`, "en", "stay_charge: amount 200; currency EUR; tip 20"},
		{`{"type":"stay_charge","amount":200}`, "en", "stay_charge: amount 200"},
		{`{"type":"gone","limit":{"amount":1},"at":[]}`, "en", "gone: at –; limit.amount 1"},
	} {
		if got := tenants.Plain(b.SayDetail(json.RawMessage(tt.detail), tt.lang)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.detail, got, tt.want)
		}
	}
}

// Whatever the words are, every value stands in the sentence, as a value.
func FuzzNothingIsLeftUnsaid(f *testing.F) {
	f.Add("Up to {amount} {currency}[ at {shop}]", "the bar")
	f.Add("[{shop}]{", "x")
	f.Add("{shop", "{shop}")
	f.Fuzz(func(t *testing.T, words, shop string) {
		if strings.TrimSpace(shop) == "" {
			return
		}
		raw, err := json.Marshal(map[string]string{"type": "t", "shop": shop})
		if err != nil {
			return
		}
		var back map[string]string
		_ = json.Unmarshal(raw, &back)
		b := &tenants.Brand{DetailTypes: []tenants.DetailType{{Type: "t", Words: words}}}
		for _, part := range b.SayDetail(raw, "en") {
			if part.Value && strings.HasSuffix(part.Text, back["shop"]) {
				return
			}
		}
		t.Errorf("%q with %q leaves it unsaid", words, shop)
	})
}
