package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What the database cannot do now is told apart from what is wrong (R87, R91):
// the one is 503 and lost nothing, the other is ours to mend.
func TestUnavailableTellsOutagesFromMistakes(t *testing.T) {
	code := func(c string) error { return fmt.Errorf("x: %w", &pgconn.PgError{Code: c}) }
	for what, err := range map[string]error{
		"killed": code("57P01"), "lock timeout": code("55P03"), "statement timeout": code("57014"),
		"deadlock": code("40P01"), "disk full": code("53100"), "read-only": code("25006"), "idle": code("25P03"),
		"cut off": io.ErrUnexpectedEOF, "closed": fmt.Errorf("x: %w", io.EOF), "too slow": context.DeadlineExceeded,
	} {
		if !tenants.Unavailable(err) {
			t.Errorf("%s counts as a mistake", what)
		}
	}
	for what, err := range map[string]error{
		"syntax": code("42601"), "constraint": code("23505"), "no code": code(""), "nothing found": pgx.ErrNoRows,
		"anything": errors.New("x"), "none": nil,
	} {
		if tenants.Unavailable(err) {
			t.Errorf("%s counts as an outage", what)
		}
	}
}
