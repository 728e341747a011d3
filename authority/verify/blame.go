package verify

import (
	"bytes"
	"encoding/json"
	"strings"
)

// blame names the member of an entry that was changed since it was logged, where that
// is one bit of it, or one yes that was a no; otherwise it is empty. was says whether a
// text is what was logged.
func blame(entry string, was func(text []byte) bool) string {
	if len(entry) > mostBlamed {
		return ""
	}
	text := []byte(entry)
	for i := range text {
		for bit := range 8 {
			text[i] ^= 1 << bit
			found := was(text)
			text[i] ^= 1 << bit
			if found {
				return memberAt(entry, i)
			}
		}
	}
	for _, name := range []string{"late", "clockBack"} {
		for _, says := range []string{"true", "false"} {
			other := map[string]string{"true": "false", "false": "true"}[says]
			before := `"` + name + `":`
			if was([]byte(strings.Replace(entry, before+says, before+other, 1))) {
				return name
			}
		}
	}
	return ""
}

// mostBlamed bounds what is looked at bit by bit: no entry is longer.
const mostBlamed = 2 << 10

// garbled names the member of which one bit keeps the text from being an entry; empty:
// it is another thing, or several may be.
func garbled(entry string) string {
	if len(entry) > mostBlamed {
		return ""
	}
	text, found := []byte(entry), ""
	for i := range text {
		for bit := range 8 {
			text[i] ^= 1 << bit
			may, mended := shaped(text) && json.Valid(text), string(text)
			text[i] ^= 1 << bit
			if !may {
				continue
			}
			if _, err := parseEntry(mended); err != nil {
				continue
			}
			name := memberAt(mended, i)
			if found != "" && name != found {
				return ""
			}
			found = name
		}
	}
	return found
}

// shaped reports, at once, whether the text can be an entry: its members in their order.
func shaped(text []byte) bool {
	for _, name := range []string{`{"at":"`, `","began":"`, `","brand":"`, `","clockBack":`, `,"direction":"`, `","grant":"`, `","late":`, `,"logged":"`, `","message":"`, `","previous":"`, `","receipt":"`, `"seq":`, `,"token":"`} {
		at := bytes.Index(text, []byte(name))
		if at < 0 {
			return false
		}
		text = text[at:]
	}
	return true
}

// memberAt names the member of a canonical object of texts, numbers and booleans that
// the byte belongs to, its name or its value.
func memberAt(entry string, at int) string {
	d := json.NewDecoder(strings.NewReader(entry))
	name, isName := "", true
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		if _, brace := token.(json.Delim); brace {
			continue
		}
		if isName {
			name, _ = token.(string)
		} else if at < int(d.InputOffset()) {
			return name
		}
		isName = !isName
	}
}
