package authority_test

import (
	"errors"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

// A Brand that is paused, or has no delegation, lets nobody in on our word: neither
// with a token nor without, whoever asks for it.
func TestNobodyIsPresentedToABrandThatIsNotOpen(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	h := holdAt(t, w, a)
	for what, change := range map[string]func(*tenants.Brand){
		"paused":             func(b *tenants.Brand) { b.State = tenants.Paused },
		"without delegation": func(b *tenants.Brand) { b.Delegation = false },
	} {
		shut := *w.Hotel
		change(&shut)
		for _, payload := range [][]byte{nil, rawPayload(t, h.paid.JWS)} {
			if _, err := a.Present(t.Context(), w.Hotel, authoritytest.Alex, payload); err != nil {
				t.Fatal(err)
			}
			s, err := a.Present(t.Context(), &shut, authoritytest.Alex, payload)
			if !errors.Is(err, authority.ErrPaused) || s.ID != "" {
				t.Errorf("%s: %+v, %v", what, s, err)
			}
		}
	}
}
