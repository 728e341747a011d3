package authority_test

import (
	"errors"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// P42: a scope gives receipts as long as its token is worth it by introspection, and
// what began before it was not any more for five minutes, marked late.
func TestAReceiptGoesByWhatTheTokenIsWorth(t *testing.T) {
	both := []string{"bookings:read", "extras:order"}
	limit := func(amount string) string {
		if amount == "" {
			return ""
		}
		return "[" + of("stay_charge", amount) + "]"
	}
	for name, tt := range map[string]struct {
		token string // its limit
		later func(t *testing.T, w *authoritytest.World, a *authority.Authority)
		stays bool // the token is worth the scope again
	}{
		"a lower limit": {"500", func(t *testing.T, w *authoritytest.World, a *authority.Authority) {
			detailed(t, w, a, limit("5"), both...)
		}, false},
		"a first limit": {"", func(t *testing.T, w *authoritytest.World, a *authority.Authority) {
			detailed(t, w, a, limit("5"), both...)
		}, false},
		"a limit that changes twice": {"500", func(t *testing.T, w *authoritytest.World, a *authority.Authority) {
			detailed(t, w, a, limit("300"), both...)
			w.Clock.Advance(authority.LateTime / 2)
			detailed(t, w, a, limit("5"), both...)
			w.Clock.Advance(-authority.LateTime / 2) // what began before the first counts
		}, false},
		"a limit that comes back": {"500", func(t *testing.T, w *authoritytest.World, a *authority.Authority) {
			detailed(t, w, a, limit("5"), both...)
			detailed(t, w, a, limit("500"), both...)
		}, true},
		"a limit that comes back and goes": {"500", func(t *testing.T, w *authoritytest.World, a *authority.Authority) {
			detailed(t, w, a, limit("5"), both...)
			detailed(t, w, a, limit("500"), both...)
			w.Clock.Advance(authority.LateTime)
			detailed(t, w, a, limit("5"), both...)
		}, false},
		"the scope is retired": {"500", func(t *testing.T, w *authoritytest.World, a *authority.Authority) {
			if err := tenants.RetireScope(t.Context(), a.Editor(authority.ByOperator()), w.Hotel.ID, "extras:order"); err != nil {
				t.Fatal(err)
			}
		}, false},
		"the scope is retired and restored": {"500", func(t *testing.T, w *authoritytest.World, a *authority.Authority) {
			edit := a.Editor(authority.ByOperator())
			err := errors.Join(tenants.RetireScope(t.Context(), edit, w.Hotel.ID, "extras:order"), tenants.RestoreScope(t.Context(), edit, w.Hotel.ID, "extras:order"))
			if err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := authoritytest.New(t)
			twoTypes(t, w)
			a := w.Authority(nil)
			tokens := detailed(t, w, a, limit(tt.token), both...)
			began := w.Clock.Now()
			w.Clock.Advance(time.Minute)
			tt.later(t, w, a)
			is := func(message, scope string, began time.Time, late bool, want error) {
				t.Helper()
				turn := servedTurn(tokens, message)
				turn.ScopesUsed, turn.Began = []string{scope}, began
				r, err := a.Countersign(t.Context(), w.Hotel, turn)
				if !errors.Is(err, want) || err == nil && r.Late != late {
					t.Errorf("%s: %+v, %v", message, r, err)
				}
			}
			refused := authority.ErrScope
			if tt.stays {
				refused = nil
			}
			after := w.Clock.Now()
			is("another scope", "bookings:read", after, false, nil)
			is("at once", "extras:order", began, !tt.stays, nil)
			is("began after", "extras:order", after, false, refused)
			w.Clock.Advance(authority.LateTime - time.Millisecond)
			is("just in time", "extras:order", began, !tt.stays, nil)
			w.Clock.Advance(time.Millisecond)
			is("too late", "extras:order", began, false, refused)
			s, err := a.Standing(t.Context(), w.Hotel, payload(t, tokens))
			if err != nil || len(s.Scopes) == 2 != tt.stays {
				t.Errorf("introspection says %q, %v", s.Scopes, err)
			}
		})
	}
}
