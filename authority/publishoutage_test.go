package authority_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/statuslist"
	"countersign.dev/tenants"
)

// sealable signs as the World does until it is sealed, and counts who asks it.
type sealable struct {
	w      *authoritytest.World
	sealed atomic.Bool
	asked  atomic.Int32
	before func() // what happens while somebody waits; may be nil
}

func (s *sealable) Sign(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
	s.asked.Add(1)
	if s.before != nil {
		s.before()
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
	if s.sealed.Load() {
		return "", errors.New("sealed")
	}
	return s.w.Keys.Sign(ctx, brand, typ, payload)
}

// R83 (in part), R54: while nothing can be signed, the last list serves as long as
// it says what is so, until it expires; then the new one is there at once.
func TestALastListServesWhileItIsTrue(t *testing.T) {
	w := authoritytest.New(t)
	signer := &sealable{w: w}
	a := w.Authority(signer)
	grant, index := allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	signer.sealed.Store(true)
	_, err := a.StatusList(t.Context(), w.Hotel.ID, 0)
	wantErr(t, err, authority.ErrUnavailable)
	signer.sealed.Store(false)
	w.Clock.Advance(noticed)
	first := listed(t, a, w.Hotel)

	signer.sealed.Store(true)
	for w.Clock.Advance(noticed); w.Clock.Now().Before(first.Expires); w.Clock.Advance(time.Second) {
		if l := listed(t, a, w.Hotel); l.JWS != first.JWS || l.Age >= noticed {
			t.Fatalf("another list without a signer, or one %s old", l.Age)
		}
	}
	_, err = a.StatusList(t.Context(), w.Hotel.ID, 0)
	wantErr(t, err, authority.ErrUnavailable)
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", grant); err != nil {
		t.Fatal(err)
	}
	signer.sealed.Store(false)
	w.Clock.Advance(noticed)
	mustSay(t, w, a, w.Hotel, statuslist.Valid, says{index: statuslist.Invalid})
}

// R54: what is known to have changed is not hidden by the last list: while none can
// be signed that shows it, there is none, whoever made the change and however many
// ask. Where all is as it was again, the last list is true again.
func TestALastListHidesNoChange(t *testing.T) {
	w := authoritytest.New(t)
	signer := &sealable{w: w}
	a, elsewhere := w.Authority(signer), w.Authority(nil)
	grant, index := allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	first := listed(t, a, w.Hotel)
	refused := func(what string) {
		t.Helper()
		w.Clock.Advance(time.Second)
		if _, err := a.StatusList(t.Context(), w.Hotel.ID, 0); !errors.Is(err, authority.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	signer.sealed.Store(true)
	for _, state := range []tenants.State{tenants.Paused, tenants.Active} {
		if err := tenants.SetState(t.Context(), w.DB, w.Hotel.ID, state); err != nil {
			t.Fatal(err)
		}
		if state == tenants.Paused {
			refused("paused")
		}
	}
	w.Clock.Advance(noticed)
	if l := listed(t, a, w.Hotel); l.JWS != first.JWS {
		t.Error("another list without a signer")
	}
	if err := elsewhere.EndByUser(t.Context(), w.Hotel.ID, "guest-7", grant); err != nil {
		t.Fatal(err)
	}
	refused("ended")
	before := signer.asked.Load()
	for range 50 {
		if _, err := a.StatusList(t.Context(), w.Hotel.ID, 0); !errors.Is(err, authority.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n := signer.asked.Load() - before; n != 0 {
		t.Errorf("the signer was asked %d times within a second", n)
	}
	for range 5 {
		refused("still ended")
	}
	if n := signer.asked.Load() - before; n < 4 || n > 5 {
		t.Errorf("the signer was asked %d times in five seconds", n)
	}
	signer.sealed.Store(false)
	w.Clock.Advance(noticed)
	mustSay(t, w, a, w.Hotel, statuslist.Valid, says{index: statuslist.Invalid})
}

// A grant that runs out is a change, too.
func TestALastListHidesNoGrantThatRanOut(t *testing.T) {
	w := authoritytest.New(t)
	signer := &sealable{w: w}
	a := w.Authority(signer)
	allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	w.Clock.Advance(30*24*time.Hour - 3*time.Second)
	listed(t, a, w.Hotel)
	signer.sealed.Store(true)
	w.Clock.Advance(noticed)
	listed(t, a, w.Hotel)
	w.Clock.Advance(noticed)
	_, err := a.StatusList(t.Context(), w.Hotel.ID, 0)
	wantErr(t, err, authority.ErrUnavailable)
}

// A signer that hangs is asked again no sooner than a second after it gave up: nobody
// waits for it twice in a row.
func TestASlowSignerIsLeftAlone(t *testing.T) {
	w := authoritytest.New(t)
	var slow atomic.Bool
	var asked atomic.Int32
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if asked.Add(1); slow.Load() {
			w.Clock.Advance(3 * time.Second)
			return "", context.DeadlineExceeded
		}
		return w.Keys.Sign(ctx, brand, typ, payload)
	}))
	allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	listed(t, a, w.Hotel)
	if err := a.Suspend(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	w.Clock.Advance(noticed)
	before := asked.Load()
	for range 10 {
		_, err := a.StatusList(t.Context(), w.Hotel.ID, 0)
		wantErr(t, err, authority.ErrUnavailable)
	}
	if n := asked.Load() - before; n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// While nobody can read whether something changed, the last list serves for half a
// minute, and says how old it is; where something was known to have changed, it does
// not serve at all.
func TestALastListServesShortlyWithoutADatabase(t *testing.T) {
	w := authoritytest.New(t)
	signer := &sealable{w: w}
	a, knowing := w.Authority(nil), w.Authority(signer)
	grant, _ := allowed(t, w, a, w.Hotel, alex, "guest-7", "bookings:read")
	listed(t, knowing, w.Hotel)
	first := listed(t, a, w.Hotel)
	signer.sealed.Store(true)
	if err := a.EndByUser(t.Context(), w.Hotel.ID, "guest-7", grant); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Second)
	_, err := knowing.StatusList(t.Context(), w.Hotel.ID, 0)
	wantErr(t, err, authority.ErrUnavailable)
	w.DB.Pool().Close()
	w.Clock.Advance(28 * time.Second)
	if l := listed(t, a, w.Hotel); l.JWS != first.JWS || l.Age != 29*time.Second {
		t.Errorf("another list without a database, or %s old", l.Age)
	}
	_, err = knowing.StatusList(t.Context(), w.Hotel.ID, 0)
	wantErr(t, err, authority.ErrUnavailable)
	w.Clock.Advance(time.Second)
	_, err = a.StatusList(t.Context(), w.Hotel.ID, 0)
	if !errors.Is(err, authority.ErrUnavailable) && !tenants.Unavailable(err) {
		t.Errorf("half a minute without a database: %v", err)
	}
}
