package console

import (
	"errors"
	"strconv"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
)

// noNumber is a mistake that only a form can hold: the rules get numbers.
const noNumber tenants.Mistake = "number"

// edits makes changes in the member's name; where the rights table says so, every
// owner hears of those of the events that come about, or, none named, of all.
func (v *visit) edits(events ...string) tenants.Editor {
	edit := v.h.Authority.Editor(authority.ByMember(v.person.ID.String()))
	if v.right.tell {
		return edit.Telling(v.person.ID, events...)
	}
	return edit
}

// made goes on to a page of the Brand after a change of it.
func (v *visit) made(page string) error {
	v.h.Brands.Forget(v.brand.ID)
	v.h.noticesDue(v.brand.ID)
	return v.redirect(pageOf(v.brand.ID, page))
}

// mistakesIn are the mistakes for which a change was refused; any other error
// stays one.
func mistakesIn(err error) (tenants.Problems, error) {
	if p, ok := errors.AsType[tenants.Problems](err); ok {
		return p, nil
	}
	return nil, err
}

// mistake words one: what is wrong and how to mend it.
func (v *visit) mistake(p tenants.Problem) string {
	if text := v.text("console.mistake."+string(p.Mistake), "one", p.About[0], "two", p.About[1]); text != "" {
		return text
	}
	return p.Say + ": " + p.Mend
}

// beside puts the mistakes beside the fields that they are about. What no field is
// about is returned, to be said above. at names the field of a mistake that the
// form calls otherwise; it may be nil.
func (v *visit) beside(parts []pages.Part, problems tenants.Problems, at func(string) string) []ui.Notice {
	var above []ui.Notice
	for _, p := range problems {
		name := p.Field
		if at != nil {
			name = at(name)
		}
		f := fieldIn(parts, name)
		switch {
		case f == nil:
			above = append(above, ui.Notice{Text: ui.Plain(v.mistake(p)), Warning: true})
		case f.Problem == "":
			f.Problem = f.Label + ": " + v.mistake(p)
		default:
			f.Problem += " " + v.mistake(p)
		}
	}
	return above
}

func fieldIn(parts []pages.Part, name string) *ui.Field {
	for i := range parts {
		for j := range parts[i].Fields {
			if parts[i].Fields[j].Name == name {
				return &parts[i].Fields[j]
			}
		}
	}
	return nil
}

// typed is a field as it was sent, but for the space around it. The rules say what
// is wrong with the rest.
func (v *visit) typed(name string) string { return strings.TrimSpace(v.form.Get(name)) }

// number reads one, and notes the mistake where there is none.
func number(field, text string, p *tenants.Problems) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		*p = append(*p, tenants.Problem{Field: field, Say: "is no number", Mend: "write digits alone", Mistake: noNumber})
	}
	return n
}

// list reads what stands between commas or spaces.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t、，", r) })
}
