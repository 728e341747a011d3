package pages_test

import (
	"bytes"
	"testing"

	"github.com/a-h/templ"

	"countersign.dev/consent/pages"
	"countersign.dev/consent/words"
	"countersign.dev/e2e/bench/yardstick"
)

// BenchmarkPage words a page and renders it into memory, as it is done for
// every visitor before anything is sent.
func BenchmarkPage(b *testing.B) {
	c := catalogue(b)
	english := common(c, c.Languages()[0], kind)
	raw := yardstick.Verify(b)
	for _, page := range []struct {
		name   string
		render func() templ.Component
	}{
		{"ask, 4 permissions", func() templ.Component { return pages.Ask(words.Ask(ask(english, kind, 4))) }},
		{"ask, 8 permissions", func() templ.Component { return pages.Ask(words.Ask(ask(english, kind, 8))) }},
		{"start", func() templ.Component {
			return pages.Start(words.Start(words.StartData{Common: english, SignInURL: "/b/demo/login?request=abc"}))
		}},
	} {
		b.Run(page.name+", "+yardstick.Called(1), func(b *testing.B) {
			var out bytes.Buffer
			yardstick.Callers(b, 1, func(int) error {
				out.Reset()
				return page.render().Render(b.Context(), &out)
			})
			raw.Beside(b, 1)
		})
	}
}
