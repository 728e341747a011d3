package i18n

import (
	"strings"

	"golang.org/x/text/language"
)

// Anybody may send ten kilobytes of wishes. What a browser really sends fits
// well within these; the rest is cut off unread.
const (
	longestWish = 256
	mostWishes  = 8
)

// Match chooses the language for a visitor: first what the link asks for
// (ui_locales, separated by spaces), then what the browser prefers
// (Accept-Language). It always answers; the first language is the fallback.
//
// Wishes are tried one at a time, in the visitor's order: taken together, an
// exact second wish would win over a near first one, and readers in Hong Kong,
// whose browsers ask for zh-HK and then en-US, would get English.
func (c *Catalogue) Match(uiLocales, acceptLanguage string) Language {
	for _, wishes := range [][]language.Tag{parseLocales(uiLocales), parseAccept(acceptLanguage)} {
		for _, own := range []bool{true, false} { // a language itself before its neighbours
			for _, wish := range wishes {
				_, i, confidence := c.matcher.Match(wish)
				if confidence > language.No && (!own || c.languages[i].speaks(wish)) {
					return c.languages[i]
				}
			}
		}
	}
	return c.languages[0]
}

// speaks reports whether the wish is for this language, in whatever script or
// country. The matcher also knows neighbours: English for Esperanto.
func (l Language) speaks(wish language.Tag) bool {
	base, _ := wish.Base()
	own, _, _ := strings.Cut(l.Tag, "-")
	return base.String() == own
}

func parseLocales(s string) []language.Tag {
	var tags []language.Tag
	for _, field := range strings.Fields(cut(s, " ")) {
		if tag, err := language.Parse(field); err == nil && len(tags) < mostWishes {
			tags = append(tags, tag)
		}
	}
	return tags
}

func parseAccept(s string) []language.Tag {
	tags, _, err := language.ParseAcceptLanguage(cut(s, ","))
	if err != nil {
		return nil
	}
	return tags[:min(len(tags), mostWishes)]
}

// cut bounds s, and drops the wish that the cut went through.
func cut(s, separator string) string {
	if len(s) <= longestWish {
		return s
	}
	s = s[:longestWish]
	return s[:max(0, strings.LastIndex(s, separator))]
}
