package authority_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
)

// R45, R46, R83: a reply was lost, and every retry in time meets a signer that is
// away. The agent that comes again when it is back gets its successor, however long
// that took; a thief's second use is found out after that as ever, and whoever did
// not come in time is no later for an outage.
func TestARetryThatMetAnOutageIsNoReuse(t *testing.T) {
	w := authoritytest.New(t)
	signer := &sealable{w: w}
	a := w.Authority(signer)
	spent := delegated(t, w, a, "bookings:read").Refresh
	refresh := func(token string) (authority.Tokens, error) {
		return a.Refresh(t.Context(), w.Hotel, alex, token, nil)
	}
	lost, err := refresh(spent) // and the reply does not arrive
	if err != nil {
		t.Fatal(err)
	}
	signer.sealed.Store(true)
	w.Clock.Advance(w.Hotel.Grace)
	for range 4 {
		if _, err := refresh(spent); err == nil || errors.Is(err, authority.ErrReused) || errors.Is(err, authority.ErrUnknown) {
			t.Fatalf("nothing can be signed: %v", err)
		}
		w.Clock.Advance(10 * time.Minute) // agents come less and less often
	}
	signer.sealed.Store(false)
	found, err := refresh(spent)
	if err != nil {
		t.Fatalf("the signer is back: %v", err)
	}
	if found.Refresh != lost.Refresh {
		t.Error("the retry got another successor")
	}
	w.Clock.Advance(w.Hotel.Grace) // this reply may be lost as well, and no later one
	if again, err := refresh(spent); err != nil || again.Refresh != lost.Refresh {
		t.Errorf("the reply of then was lost: %v", err)
	}
	if _, err := refresh(found.Refresh); err != nil {
		t.Fatal(err)
	}
	_, err = refresh(spent) // its successor is in use now
	wantErr(t, err, authority.ErrReused)

	spent = delegated(t, w, a, "bookings:read").Refresh
	if _, err := refresh(spent); err != nil {
		t.Fatal(err)
	}
	signer.sealed.Store(true)
	if _, err := refresh(spent); err == nil {
		t.Fatal("nothing can be signed")
	}
	w.Clock.Advance(10*time.Minute + time.Microsecond)
	_, err = refresh(spent)
	wantErr(t, err, authority.ErrReused)

	signer.sealed.Store(false)
	spent = delegated(t, w, a, "bookings:read").Refresh
	if _, err := refresh(spent); err != nil {
		t.Fatal(err)
	}
	signer.sealed.Store(true)
	w.Clock.Advance(w.Hotel.Grace + time.Microsecond)
	_, err = refresh(spent)
	wantErr(t, err, authority.ErrReused)
}

// R46: the window that an outage leaves open closes with the answer, is no longer than
// half a day, and cannot be made by hanging up.
func TestAnOutageLeavesNoWindowOpen(t *testing.T) {
	w := authoritytest.New(t)
	signer := &sealable{w: w}
	a := w.Authority(signer)
	refresh := func(ctx context.Context, token string) error {
		_, err := a.Refresh(ctx, w.Hotel, alex, token, nil)
		return err
	}
	use := func() string {
		t.Helper()
		signer.sealed.Store(false)
		spent := delegated(t, w, a, "bookings:read").Refresh
		if err := refresh(t.Context(), spent); err != nil {
			t.Fatal(err)
		}
		return spent
	}
	spent := use()
	signer.sealed.Store(true)
	if err := refresh(t.Context(), spent); err == nil {
		t.Fatal("nothing can be signed")
	}
	signer.sealed.Store(false)
	w.Clock.Advance(5 * time.Minute)
	if err := refresh(t.Context(), spent); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(w.Hotel.Grace + time.Microsecond)
	wantErr(t, refresh(t.Context(), spent), authority.ErrReused)

	spent = use()
	signer.sealed.Store(true)
	for n := range 12*6 + 1 { // an outage of half a day, with retries all the time
		if n > 0 {
			w.Clock.Advance(10 * time.Minute)
		}
		if err := refresh(t.Context(), spent); err == nil || errors.Is(err, authority.ErrReused) {
			t.Fatalf("nothing can be signed: %v", err)
		}
	}
	w.Clock.Advance(time.Microsecond)
	wantErr(t, refresh(t.Context(), spent), authority.ErrReused)

	spent = use()
	ctx, hangUp := context.WithCancel(t.Context())
	signer.before = hangUp // while it is being signed
	if err := refresh(ctx, spent); err == nil {
		t.Fatal("answered to nobody")
	}
	signer.before = nil
	w.Clock.Advance(w.Hotel.Grace + time.Microsecond)
	wantErr(t, refresh(t.Context(), spent), authority.ErrReused)
}
