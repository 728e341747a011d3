package words

import "countersign.dev/web/ui"

// origins says whose words a placeholder takes. What is not named here is
// foreign: the safe way round.
var origins = map[string]ui.Origin{
	"ago":     ui.Ours,
	"count":   ui.Ours,
	"date":    ui.Ours,
	"when":    ui.Ours,
	"id":      ui.Ours,
	"agents":  ui.Ours,
	"past":    ui.Ours,
	"service": ui.Ours,
	"host":    ui.Proven,
	"shown":   ui.Proven,
	"account": ui.Proven,
	"domain":  ui.Proven,
}

// links are addresses for placeholders whose text leads somewhere.
type links map[string]string

// say words a sentence whose parts keep their origin. The Brand's name is
// always at hand.
func (c Common) say(key string, args ...any) ui.Phrase {
	return c.sayLinked(nil, key, args...)
}

func (c Common) sayLinked(hrefs links, key string, args ...any) ui.Phrase {
	args = append([]any{"brand", c.BrandName}, args...)
	var phrase ui.Phrase
	for _, p := range c.Lang.Pieces(key, args...) {
		span := ui.Span{Text: p.Text}
		if p.Arg != "" {
			origin, known := origins[p.Arg]
			if !known {
				origin = ui.Foreign
			}
			span.Origin, span.Href = origin, hrefs[p.Arg]
		}
		phrase = append(phrase, span)
	}
	return phrase
}
