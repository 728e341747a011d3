package i18n

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/text/language"
)

//go:embed languages/*.json
var embedded embed.FS

// files are the languages in the order in which they are offered. The first is
// the reference: it says which keys and placeholders there must be.
var files = []string{"en", "zh-Hant"}

// A Catalogue is the set of languages the pages speak. It is safe for
// concurrent use.
type Catalogue struct {
	languages []Language
	matcher   language.Matcher
}

// source is one language as it is written in its file.
type source struct {
	Name     string                     `json:"name"`
	Calendar calendar                   `json:"calendar"`
	Messages map[string]json.RawMessage `json:"messages"`
}

// Load reads the embedded catalogue. It fails, naming all of them, when a
// language lacks a key or a placeholder of the first language, or has one more.
func Load() (*Catalogue, error) {
	sources := make(map[string][]byte, len(files))
	for _, tag := range files {
		text, err := embedded.ReadFile("languages/" + tag + ".json")
		if err != nil {
			return nil, fmt.Errorf("read language %s: %w", tag, err)
		}
		sources[tag] = text
	}
	return load(files, sources)
}

func load(tags []string, sources map[string][]byte) (*Catalogue, error) {
	c := &Catalogue{}
	var offered []language.Tag
	for _, name := range tags {
		tag, err := language.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("language %s: %w", name, err)
		}
		l, err := read(name, sources[name])
		if err != nil {
			return nil, fmt.Errorf("language %s: %w", name, err)
		}
		l.Dir = direction(tag)
		c.languages = append(c.languages, l)
		offered = append(offered, tag)
	}
	for _, l := range c.languages[1:] {
		if err := complete(c.languages[0], l); err != nil {
			return nil, fmt.Errorf("language %s: %w", l.Tag, err)
		}
	}
	c.matcher = language.NewMatcher(offered)
	return c, nil
}

func read(tag string, text []byte) (Language, error) {
	var s source
	if err := json.Unmarshal(text, &s); err != nil {
		return Language{}, err
	}
	if s.Name == "" {
		return Language{}, errors.New("has no name")
	}
	if err := s.Calendar.check(); err != nil {
		return Language{}, err
	}
	messages := make(map[string]message, len(s.Messages))
	for key, raw := range s.Messages {
		m, err := parseMessage(raw)
		if err != nil {
			return Language{}, fmt.Errorf("key %s: %w", key, err)
		}
		messages[key] = m
	}
	return Language{Tag: tag, Name: s.Name, messages: messages, calendar: s.Calendar}, nil
}

// complete compares a language with the reference and reports every difference
// at once, because a translator fixes them in one sitting.
func complete(reference, l Language) error {
	var wrong []error
	for key, want := range reference.messages {
		got, ok := l.messages[key]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("lacks key %s", key))
		case !maps.Equal(want.placeholders(), got.placeholders()):
			wrong = append(wrong, fmt.Errorf("key %s: placeholders %v, want %v", key,
				slices.Sorted(maps.Keys(got.placeholders())), slices.Sorted(maps.Keys(want.placeholders()))))
		}
	}
	for key := range l.messages {
		if _, ok := reference.messages[key]; !ok {
			wrong = append(wrong, fmt.Errorf("has unknown key %s", key))
		}
	}
	return errors.Join(wrong...)
}

// Languages lists what is offered, in the order of offering; the first one is
// spoken when a visitor wishes for nothing we have.
func (c *Catalogue) Languages() []Language { return slices.Clone(c.languages) }

// Keys lists every key, sorted.
func (c *Catalogue) Keys() []string {
	return slices.Sorted(maps.Keys(c.languages[0].messages))
}
