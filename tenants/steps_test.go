package tenants_test

import (
	"errors"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// Two steps are one transaction, inside the fence: both come true or neither, and
// the connection goes back as it came.
func TestStepsAreOneTransaction(t *testing.T) {
	w := authoritytest.New(t)
	const suspend = `INSERT INTO suspended_users VALUES (@brand, @user, now())`
	wrong := errors.New("wrong")
	for name, tt := range map[string]struct {
		brand tenants.BrandID
		read  func(*tenants.Batch) error
		want  int
		fails bool
	}{
		"both": {"harbor-hotel", func(b *tenants.Batch) error {
			b.Queue(suspend, pgx.NamedArgs{"brand": "harbor-hotel", "user": "2"})
			return nil
		}, 2, false},
		"nothing to add": {"harbor-hotel", func(*tenants.Batch) error { return nil }, 0, false},
		"refused between": {"harbor-hotel", func(b *tenants.Batch) error {
			b.Queue(suspend, pgx.NamedArgs{"brand": "harbor-hotel", "user": "2"})
			return wrong
		}, 0, true},
		"the second twice": {"harbor-hotel", func(b *tenants.Batch) error {
			for range 2 {
				b.Queue(suspend, pgx.NamedArgs{"brand": "harbor-hotel", "user": "2"})
			}
			return nil
		}, 0, true},
		"another's row": {"harbor-hotel", func(b *tenants.Batch) error {
			b.Queue(suspend, pgx.NamedArgs{"brand": "fern-and-fell", "user": "2"})
			return nil
		}, 0, true},
		"another's fence": {"fern-and-fell", func(b *tenants.Batch) error {
			b.Queue(suspend, pgx.NamedArgs{"brand": "harbor-hotel", "user": "2"})
			return nil
		}, 0, true},
		"a wrong statement": {"harbor-hotel", func(b *tenants.Batch) error { b.Queue(`NOTHING`, nil); return nil }, 0, true},
	} {
		var first tenants.Batch
		first.Queue(suspend, pgx.NamedArgs{"brand": "harbor-hotel", "user": "1"})
		first.Queue(`SELECT count(*) FROM suspended_users WHERE brand_id = @brand`, pgx.NamedArgs{"brand": "harbor-hotel"})
		err := w.DB.Steps(t.Context(), tt.brand, &first, func(found pgx.BatchResults, second *tenants.Batch) error {
			if _, err := found.Exec(); err != nil {
				return err
			}
			var n int
			if err := found.QueryRow().Scan(&n); err != nil || n != 1 {
				t.Errorf("%s: %d, %v", name, n, err)
			}
			return tt.read(second)
		})
		if (err != nil) != tt.fails {
			t.Errorf("%s: %v", name, err)
		}
		if n := w.Count(t, `SELECT count(*) FROM suspended_users`); n != tt.want {
			t.Errorf("%s: %d rows", name, n)
		}
		for _, c := range w.DB.Pool().AcquireAllIdle(t.Context()) {
			if s := c.Conn().PgConn().TxStatus(); s != 'I' {
				t.Errorf("%s: a connection is left in state %c", name, s)
			}
			c.Release()
		}
		w.Exec(t, `DELETE FROM suspended_users`)
	}
}

// The same batch may be sent again, on a connection that has seen none of it.
func TestABatchIsSentAgain(t *testing.T) {
	w := authoritytest.New(t)
	var look tenants.Batch
	look.Queue(`SELECT 6 * @n::int`, pgx.NamedArgs{"n": 7})
	for range 2 {
		err := w.DB.Steps(t.Context(), w.Hotel.ID, &look, func(found pgx.BatchResults, _ *tenants.Batch) error {
			var n int
			if err := found.QueryRow().Scan(&n); err != nil || n != 42 {
				t.Errorf("%d, %v", n, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		for _, c := range w.DB.Pool().AcquireAllIdle(t.Context()) {
			defer c.Release() // the next one has another
		}
	}
}
