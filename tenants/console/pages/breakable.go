package pages

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// breakable is an address or another long text of machines, which may go on in the
// next line where one of its parts ends and nowhere else. It is written by hand
// because a template adds space, which would be copied with it.
func breakable(text string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		from := 0
		for i, r := range text {
			if i < len(text)-1 && strings.ContainsRune("/.:?&=_-,", r) {
				b.WriteString(templ.EscapeString(text[from : i+1]))
				b.WriteString("<wbr>")
				from = i + 1
			}
		}
		b.WriteString(templ.EscapeString(text[from:]))
		_, err := io.WriteString(w, b.String())
		return err
	})
}
