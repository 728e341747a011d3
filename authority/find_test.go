package authority_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
)

// P20, B03, B07, R2: a code is found however it is typed; dead codes and other
// Brands' are unknown, all alike.
func TestFindTakesCodesAsPeopleTypeThem(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	code := string(s.UserCode)
	for _, typed := range []string{
		s.UserCode.String(), code, strings.ToLower(code), " " + code[:4] + " " + code[4:] + " ",
		code[:4] + "—" + code[4:], code[:2] + "-" + code[2:] + "\u200b",
	} {
		id, shown, err := a.Find(t.Context(), w.Hotel.ID, typed, authority.Visitor{Address: "192.0.2.1"})
		if err != nil || id != s.ID || shown != s.UserCode {
			t.Errorf("%q: %v, %v", typed, id, err)
		}
	}
	denied := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	if err := a.Deny(t.Context(), w.Hotel.ID, authority.Decision{Request: denied.ID, Subject: "guest-7"}); err != nil {
		t.Fatal(err)
	}
	approved := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, approved, "guest-7", "bookings:read")
	for what, dead := range map[string]string{"denied": denied.UserCode.String(), "approved": approved.UserCode.String(), "never made": "BBBB-BBBB"} {
		_, _, err := a.Find(t.Context(), w.Hotel.ID, dead, authority.Visitor{})
		if !errors.Is(err, authority.ErrUnknown) || err.Error() != authority.ErrUnknown.Error() {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, _, err := a.Find(t.Context(), w.Shop.ID, code, authority.Visitor{})
	wantErr(t, err, authority.ErrUnknown)
}

// P26, R3, B05: ten wrong codes by one browser, person or address in ten
// minutes; then even the right one must wait. Others are not touched.
func TestGuessingIsLimited(t *testing.T) {
	for name, v := range map[string]authority.Visitor{
		"session": {Session: "s"}, "user": {Subject: "u"}, "address": {Address: "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := authoritytest.New(t)
			a := w.Authority(nil)
			s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
			for i := range 10 {
				if i == 5 { // a success refills nothing
					if _, _, err := a.Find(t.Context(), w.Hotel.ID, s.UserCode.String(), v); err != nil {
						t.Fatal(err)
					}
				}
				wrong := []string{"BBBB-BBBB", "not a code"}[i%2]
				_, _, err := a.Find(t.Context(), w.Hotel.ID, wrong, v)
				wantErr(t, err, authority.ErrUnknown)
			}
			w.Clock.Advance(time.Minute)
			for _, code := range []string{"BBBB-BBBC", s.UserCode.String()} {
				_, _, err := a.Find(t.Context(), w.Hotel.ID, code, v)
				limit := new(authority.LimitError)
				if !errors.As(err, &limit) || limit.RetryAfter != 9*time.Minute {
					t.Fatalf("after ten wrong ones: %v", err)
				}
			}
			if _, _, err := a.Find(t.Context(), w.Hotel.ID, s.UserCode.String(), authority.Visitor{Session: "o", Subject: "o", Address: "192.0.2.2"}); err != nil {
				t.Fatalf("somebody else: %v", err)
			}
			other := authoritytest.Begin(t, a, w.Shop, alex, "orders:read")
			if _, _, err := a.Find(t.Context(), w.Shop.ID, other.UserCode.String(), v); err != nil {
				t.Fatalf("another Brand: %v", err)
			}
			w.Clock.Advance(9 * time.Minute)
			again := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
			if _, _, err := a.Find(t.Context(), w.Hotel.ID, again.UserCode.String(), v); err != nil {
				t.Fatalf("ten minutes later: %v", err)
			}
		})
	}
}

// B05: guesses in parallel do not slip past the budget, a blocked address does
// not use up the Brand's, and the Brand's own budget holds against many.
func TestParallelGuessesAreCounted(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	var allowed atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				_, _, err := a.Find(t.Context(), w.Hotel.ID, "BBBB-BBBB", authority.Visitor{Address: "192.0.2.1"})
				if errors.Is(err, authority.ErrUnknown) {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := allowed.Load(); n > 10 {
		t.Fatalf("%d guesses got through", n)
	}
	// Right codes and blocked guesses write nothing: the Brand's one row is not
	// everybody's queue.
	live := authoritytest.Begin(t, a, w.Shop, alex, "orders:read")
	if _, _, err := a.Find(t.Context(), w.Shop.ID, live.UserCode.String(), authority.Visitor{Session: "s", Address: "192.0.2.7"}); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(t, `SELECT count(*) FROM code_attempts WHERE brand_id = $1`, w.Shop.ID); n != 0 {
		t.Errorf("a right code wrote %d rows", n)
	}
	if n := w.Count(t, `SELECT wrong FROM code_attempts WHERE kind = 'brand'`); n > 18 {
		t.Fatalf("a blocked address filled the Brand's budget to %d", n)
	}
	w.Exec(t, `UPDATE code_attempts SET wrong = 20000 WHERE kind = 'brand'`)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	_, _, err := a.Find(t.Context(), w.Hotel.ID, s.UserCode.String(), authority.Visitor{Address: "192.0.2.9"})
	if limit := new(authority.LimitError); !errors.As(err, &limit) {
		t.Fatalf("the Brand's budget is spent, yet %v", err)
	}
}

// The isolation test (P16, B90, B96): every id of Brand A, tried under Brand B,
// is not found.
func TestIdsOfOneBrandAreUnknownAtAnother(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	pending := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	tokens := delegated(t, w, a, "bookings:read")
	b := w.Shop
	tries := map[string]func() error{
		"device code": func() error { _, err := a.Poll(t.Context(), b, alex, pending.DeviceCode); return err },
		"user code": func() error {
			_, _, err := a.Find(t.Context(), b.ID, pending.UserCode.String(), authority.Visitor{})
			return err
		},
		"request, asked": func() error { _, err := a.Ask(t.Context(), b.ID, pending.ID, "guest-7"); return err },
		"request, approved": func() error {
			return a.Approve(t.Context(), b, authority.Decision{Request: pending.ID, Subject: "guest-7", Ticked: []string{"bookings:read"}, Days: 30})
		},
		"request, denied": func() error {
			return a.Deny(t.Context(), b.ID, authority.Decision{Request: pending.ID, Subject: "guest-7"})
		},
		"refresh token": func() error { _, err := a.Refresh(t.Context(), b, alex, tokens.Refresh, nil); return err },
		"grant":         func() error { return a.EndByUser(t.Context(), b.ID, "guest-7", tokens.GrantID) },
	}
	for what, try := range tries {
		if err := try(); !errors.Is(err, authority.ErrUnknown) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"refresh token": a.EndByToken(t.Context(), b.ID, alex, tokens.Refresh),
		"access token":  a.EndByToken(t.Context(), b.ID, alex, tokens.JWS),
		"suspension":    a.Suspend(t.Context(), b.ID, authority.ByOperator(), "guest-7"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil); err != nil {
		t.Fatalf("what was done at B reached A: %v", err)
	}
	if len(grants(t, w, a, b, "guest-7")) != 0 {
		t.Fatal("A's grant is listed at B")
	}
}

// Purge takes what is dead and nothing else (R102 in part).
func TestPurgeKeepsTheLiving(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	for i := range 3 {
		_, _, err := a.Find(t.Context(), w.Hotel.ID, "BBBB-BBBB", authority.Visitor{Address: fmt.Sprint(i)})
		wantErr(t, err, authority.ErrUnknown)
	}
	w.Clock.Advance(25 * time.Hour)
	live := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	n, err := a.Purge(t.Context(), w.Hotel.ID)
	if err != nil || n != 5 { // one request, three addresses, one Brand counter
		t.Fatalf("purged %d, %v", n, err)
	}
	if _, err := a.Poll(t.Context(), w.Hotel, alex, live.DeviceCode); !errors.Is(err, authority.ErrPending) {
		t.Fatal(err)
	}
	if _, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil); err != nil {
		t.Fatal(err)
	}
}
