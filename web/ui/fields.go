package ui

// A Field is one thing to fill in.
type Field struct {
	Name, Label string
	Hint        string // empty: the label says it all
	Value       string
	Problem     string // what is wrong with the value, and how to mend it
	// Kind is what is typed: text where it is empty, or email. It chooses the
	// phone's keyboard only: an input of type email would be checked by the browser.
	// With Options the field is a choice.
	Kind         string
	Options      []Option
	Autocomplete string // what browsers may fill in by themselves; empty: nothing
	Longest      int    // characters; 0: 200
	Plain        bool   // an id or a code: no spelling, even letters
	Element      string // its id on the page, where two forms ask for the same; empty: as its name
	Secret       bool   // not to be read over a shoulder; its value is never sent back
}

// An Option is one of a field's choices.
type Option struct {
	Value, Label string
	Chosen       bool
}

func (f Field) id() string {
	if f.Element != "" {
		return "field-" + f.Element
	}
	return "field-" + f.Name
}

// input is the type of the element.
func (f Field) input() string {
	if f.Secret {
		return "password"
	}
	return "text"
}

func (f Field) value() string {
	if f.Secret {
		return ""
	}
	return f.Value
}

func (f Field) kind() string {
	if f.Kind == "" {
		return "text"
	}
	return f.Kind
}

func (f Field) longest() int {
	const usual = 200
	if f.Longest == 0 {
		return usual
	}
	return f.Longest
}

func (f Field) autocomplete() string {
	if f.Autocomplete == "" {
		return "off"
	}
	return f.Autocomplete
}

func (f Field) spellcheck() string {
	if f.Plain {
		return "false"
	}
	return "true"
}

// described names what is read out with the field.
func (f Field) described() string {
	var ids string
	if f.Hint != "" {
		ids = f.id() + "-hint"
	}
	if f.Problem != "" {
		ids += " " + f.id() + "-problem"
	}
	return ids
}

func (f Field) invalid() string {
	if f.Problem != "" {
		return "true"
	}
	return "false"
}

// Troubled reports whether any field has a problem.
func Troubled(fields []Field) bool {
	for _, f := range fields {
		if f.Problem != "" {
			return true
		}
	}
	return false
}
