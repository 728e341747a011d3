package console

import (
	"strings"

	"countersign.dev/tenants/egress"
)

// causes are why somebody outside could not be asked, and the words for that.
var causes = []struct {
	is  error
	key string
}{
	{egress.ErrForbiddenURL, "console.cause.url"},
	{egress.ErrUnreachable, "console.cause.unreachable"}, // reads as ErrForbiddenAddress does
	{egress.ErrTLS, "console.cause.tls"},
	{egress.ErrTimeout, "console.cause.timeout"},
	{egress.ErrBroken, "console.cause.broken"},
	{egress.ErrRedirect, "console.cause.redirect"},
	{egress.ErrStatus, "console.cause.status"},
	{egress.ErrTooLarge, "console.cause.large"},
	{egress.ErrNotJSON, "console.cause.json"},
}

// cause says in the language of the page what a look outside says of the network. Names
// of members and documents around it stay as they are written.
func (v *visit) cause(text string) string {
	for _, c := range causes {
		text = strings.ReplaceAll(text, c.is.Error(), v.text(c.key))
	}
	return text
}
