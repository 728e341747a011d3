package tenants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DetailPart is a piece of the sentence that says a detail.
type DetailPart struct {
	Text  string
	Value bool // the agent's, to be kept apart from the Brand's words around it
}

// wordsPart is a piece of a type's words: what stands before a member, and the
// member; the last has none.
type wordsPart struct {
	before   string
	member   string
	after    string // inside the brackets
	optional bool   // in brackets
}

// parseWords takes "Up to {amount} {currency}[ at {shop}]" apart.
func parseWords(text string) ([]wordsPart, error) {
	var out []wordsPart
	for text != "" {
		i := strings.IndexAny(text, "{[]}")
		if i < 0 {
			return append(out, wordsPart{before: text}), nil
		}
		switch text[i] {
		case '{':
			member, rest, ok := strings.Cut(text[i+1:], "}")
			if !ok || member == "" || strings.ContainsAny(member, "{[]") {
				return nil, errors.New("hold a { without its }")
			}
			out = append(out, wordsPart{before: text[:i], member: member})
			text = rest
		case '[':
			inside, rest, ok := strings.Cut(text[i+1:], "]")
			if !ok || strings.Contains(inside, "[") {
				return nil, errors.New("hold a [ without its ]")
			}
			parts, err := parseWords(inside)
			if err != nil {
				return nil, err
			}
			// With two members in one bracket, a detail with only one of them would
			// hide it.
			if len(parts) == 0 || parts[0].member == "" || len(parts) > 2 || len(parts) == 2 && parts[1].member != "" {
				return nil, errors.New("hold a bracket without one {member} in it")
			}
			part := parts[0]
			part.optional = true
			if len(parts) == 2 {
				part.after = parts[1].before
			}
			if i > 0 {
				out = append(out, wordsPart{before: text[:i]})
			}
			out, text = append(out, part), rest
		default:
			return nil, errors.New("hold a " + text[i:i+1] + " that nothing opened")
		}
	}
	return out, nil
}

// SayDetail says a detail in words: those of its type or, where the Brand has no
// such type any more or its words leave anything out, one member after the other.
// Nothing of a detail is ever left unsaid.
func (b *Brand) SayDetail(detail json.RawMessage, lang string) []DetailPart {
	name, values := flatten(detail)
	if t, ok := b.DetailType(name); ok {
		if parts, complete := t.say(values, lang); complete {
			return parts
		}
	}
	out := []DetailPart{{Text: name, Value: true}}
	between := ": "
	for _, path := range slices.Sorted(maps.Keys(values)) {
		out = append(out, DetailPart{Text: between}, DetailPart{Text: path + " " + values[path], Value: true})
		between = "; "
	}
	return out
}

// Plain is the sentence as one text.
func Plain(parts []DetailPart) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

func (t DetailType) say(values map[string]string, lang string) (out []DetailPart, complete bool) {
	parts, err := parseWords(t.text(lang))
	if err != nil {
		return nil, false
	}
	said := make(map[string]bool)
	for _, part := range parts {
		value, there := values[part.member]
		switch {
		case part.member == "":
			out = append(out, DetailPart{Text: part.before})
			continue
		case !there && part.optional:
			continue
		case !there:
			return nil, false
		}
		said[part.member] = true
		for _, piece := range []DetailPart{{part.before, false}, {value, true}, {part.after, false}} {
			if piece.Text != "" {
				out = append(out, piece)
			}
		}
	}
	return out, len(said) == len(values)
}

// flatten returns a detail's type and, by path, what its other members say.
func flatten(detail json.RawMessage) (name string, values map[string]string) {
	d := json.NewDecoder(bytes.NewReader(detail))
	d.UseNumber()
	var members map[string]any
	_ = d.Decode(&members) // it was checked when it came
	name, _ = members["type"].(string)
	delete(members, "type")
	values = make(map[string]string)
	flattenInto(values, "", members)
	return name, values
}

func flattenInto(values map[string]string, path string, members map[string]any) {
	for name, v := range members {
		switch v := v.(type) {
		case map[string]any:
			if len(v) > 0 {
				flattenInto(values, path+name+".", v)
			}
		default:
			values[path+name] = sayValue(v)
		}
	}
}

// nothing stands for a value that would leave a hole in the sentence.
const nothing = "–"

func sayValue(v any) string {
	switch v := v.(type) {
	case string:
		if strings.TrimSpace(v) == "" {
			return nothing
		}
		return v
	case []any:
		texts := make([]string, len(v))
		for i, one := range v {
			texts[i] = sayValue(one)
		}
		if len(texts) == 0 {
			return nothing
		}
		return strings.Join(texts, ", ")
	case nil:
		return nothing
	default:
		return fmt.Sprint(v)
	}
}
