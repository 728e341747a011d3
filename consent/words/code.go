package words

import (
	"countersign.dev/consent/pages"
	"countersign.dev/web/ui"
)

// CodeProblem is what was wrong with the code that was typed.
type CodeProblem int

// What can be wrong with a code. A dead code is a wrong one: the page does not
// tell a guesser which.
const (
	NoProblem CodeProblem = iota
	CodeEmpty
	CodeWrong
)

// CodeData is what the page for typing a code needs.
type CodeData struct {
	Common
	Action  string
	Hidden  []ui.Hidden
	Typed   string // kept in the field
	Problem CodeProblem
}

// Code words the page where a code is typed by hand.
func Code(d CodeData) pages.CodeView {
	t := d.Lang.Text
	v := pages.CodeView{
		Heading: t("code.heading"), Lead: d.say("code.lead"), Care: d.say("code.care"),
		Action: d.Action, Hidden: d.Hidden, Code: d.Typed,
		Label: t("code.label"), Hint: t("code.hint"), Button: d.say("code.button"),
		ProblemHeading: t("code.problem"),
	}
	title := v.Heading
	switch d.Problem {
	case CodeEmpty:
		v.Problem = t("code.empty")
	case CodeWrong:
		v.Problem = t("code.wrong")
	case NoProblem:
	}
	if v.Problem != "" {
		// The title is what a screen reader says first after the post.
		title = t("page.title.problem", "title", title)
	}
	v.Page = d.page(title)
	return v
}
