package console

import (
	"errors"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// once runs edits that make something which is shown a single time: for a form that
// was sent already they are tenants.ErrFormSpent. The form carries what onceField
// gives it.
func (v *visit) once(event string) (tenants.Editor, error) {
	form, err := uuid.Parse(v.form.Get("once"))
	if err != nil {
		return nil, problem{kind: stale, retry: v.from(), cause: err}
	}
	return v.edits(event).Once(form), nil
}

func onceField() ui.Hidden { return ui.Hidden{Name: "once", Value: uuid.NewString()} }

// fieldProblems words what is wrong with the fields of a form, by their names.
func (v *visit) fieldProblems(err error) map[string]string {
	var all tenants.Problems
	if !errors.As(err, &all) {
		return nil
	}
	out := make(map[string]string)
	for _, p := range all {
		if out[p.Field] == "" {
			out[p.Field] = v.mistake(p)
		}
	}
	return out
}

// cell is one sentence in a table.
func cell(p ui.Phrase) pages.Cell { return pages.Cell{Text: p} }
