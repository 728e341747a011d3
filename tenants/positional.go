package tenants

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
)

// rewritten is a statement with $1, $2, … and the names they stand for.
type rewritten struct {
	text  string
	names []string
}

// statements remembers how each statement's names were numbered. pgx would read
// the whole text again at every call, which costs a poll a fifth of its time.
// It grows with the source code only: statements are constants.
var statements sync.Map // query text → rewritten

// positional returns the statement with its named arguments in order.
func positional(q string, args pgx.NamedArgs) (string, []any, error) {
	known, ok := statements.Load(q)
	if !ok {
		names := make(pgx.NamedArgs, len(args))
		for name := range args {
			names[name] = name
		}
		text, order, err := names.RewriteQuery(context.Background(), nil, q, nil)
		if err != nil {
			return "", nil, err
		}
		r := rewritten{text: text, names: make([]string, len(order))}
		for i, name := range order {
			r.names[i], _ = name.(string) // a name without a value stays empty, and is NULL
		}
		known, _ = statements.LoadOrStore(q, r)
	}
	r := known.(rewritten)
	values := make([]any, len(r.names))
	for i, name := range r.names {
		values[i] = args[name]
	}
	return r.text, values, nil
}
