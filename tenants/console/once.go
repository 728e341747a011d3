package console

import (
	"errors"
	"slices"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web/ui"
	"github.com/google/uuid"
)

// once guards what makes something that is shown a single time: a form that was
// sent already makes no second one. The form carries what onceField gives it.
func (v *visit) once() (again bool, err error) {
	const most = 20
	id := v.form.Get("once")
	if _, err := uuid.Parse(id); err != nil {
		return false, problem{kind: stale, retry: v.from(), cause: err}
	}
	if slices.Contains(v.session.Sent, id) {
		return true, nil
	}
	v.session.Sent = append(v.session.Sent, id)
	v.session.Sent = v.session.Sent[max(0, len(v.session.Sent)-most):]
	return false, v.save()
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
