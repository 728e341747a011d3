package i18n

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// A message is one sentence with named gaps. one is empty where the language,
// or the sentence, does not tell one from many.
type message struct {
	one, other []Piece
}

var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// parseMessage reads "text {name}" or {"one": "…", "other": "…"}.
func parseMessage(raw json.RawMessage) (message, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		other, err := parsePieces(text)
		return message{other: other}, err
	}
	var forms struct{ One, Other string }
	if err := json.Unmarshal(raw, &forms); err != nil {
		return message{}, errors.New("is neither text nor one/other")
	}
	one, errOne := parsePieces(forms.One)
	other, errOther := parsePieces(forms.Other)
	return message{one: one, other: other}, errors.Join(errOne, errOther)
}

func parsePieces(text string) ([]Piece, error) {
	if text == "" {
		return nil, errors.New("is empty")
	}
	var pieces []Piece
	rest := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		if at[0] > rest {
			pieces = append(pieces, Piece{Text: text[rest:at[0]]})
		}
		pieces = append(pieces, Piece{Arg: text[at[2]:at[3]]})
		rest = at[1]
	}
	if rest < len(text) {
		pieces = append(pieces, Piece{Text: text[rest:]})
	}
	return pieces, nil
}

// placeholders are the names the sentence needs, in whichever form: "one day"
// may leave the number out.
func (m message) placeholders() map[string]bool {
	names := map[string]bool{}
	for _, p := range m.other {
		if p.Arg != "" {
			names[p.Arg] = true
		}
	}
	return names
}

func (m message) fill(args []any) []Piece {
	values := make(map[string]any, len(args)/2)
	for i := 0; i+1 < len(args); i += 2 {
		name, _ := args[i].(string)
		values[name] = args[i+1]
	}
	form := m.other
	if n, ok := values["count"].(int); ok && n == 1 && m.one != nil {
		form = m.one
	}
	filled := make([]Piece, 0, len(form))
	for _, p := range form {
		if p.Arg != "" {
			value, ok := values[p.Arg]
			if !ok {
				continue
			}
			p.Text = fmt.Sprint(value)
		}
		filled = append(filled, p)
	}
	return filled
}
