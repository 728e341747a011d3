package authority_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// delegated begins, approves and redeems.
func delegated(t *testing.T, w *authoritytest.World, a *authority.Authority, scopes ...string) authority.Tokens {
	t.Helper()
	s := authoritytest.Begin(t, a, w.Hotel, alex, scopes...)
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", scopes...)
	tokens, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// P30, R43, R45, B28: a refresh rotates; a retry inside the grace window gets
// the same successor; once that is used, the old one is worth nothing more.
func TestRefreshRotatesAndForgivesALostReply(t *testing.T) {
	w := authoritytest.New(t)
	a, b := w.Authority(nil), w.Authority(nil)
	first := delegated(t, w, a, "bookings:read", "bookings:change")
	second, err := a.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if second.Refresh == first.Refresh || second.JWS == first.JWS {
		t.Fatal("nothing was rotated")
	}
	if diff := cmp.Diff(first.Scopes, second.Scopes); diff != "" {
		t.Fatal(diff)
	}
	w.Clock.Advance(w.Hotel.Grace)
	again, err := b.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatalf("retry inside the window: %v", err)
	}
	if again.Refresh != second.Refresh {
		t.Fatal("the retry got another successor")
	}
	if _, err := a.Refresh(t.Context(), w.Hotel, alex, second.Refresh, nil); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(-time.Second)
	_, err = a.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	wantErr(t, err, authority.ErrUnknown) // inside the window: no more than that
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != 0 {
		t.Fatal("the grant ended")
	}
}

// M16, R46: after the window, reuse by the rightful caller ends the whole grant,
// its newest token included, and says why.
func TestReuseAfterTheWindowEndsTheGrant(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	first := delegated(t, w, a, "bookings:read")
	second, err := a.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(w.Hotel.Grace + time.Microsecond)
	_, err = a.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	wantErr(t, err, authority.ErrReused)
	_, err = a.Refresh(t.Context(), w.Hotel, alex, second.Refresh, nil)
	wantErr(t, err, authority.ErrEnded)
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE end_reason = 'reuse_detected'`); n != 1 {
		t.Fatal("the reason is not recorded")
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'grant.reuse_detected'`); n != 1 {
		t.Fatal("not audited")
	}
}

// Where a Brand wants no window, a replay ends the grant as soon as it cannot
// have been on its way when the token was spent.
func TestNoWindowStillToleratesCallsInFlight(t *testing.T) {
	w := authoritytest.New(t)
	hotel := w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Grace = 0 })
	a := w.Authority(nil)
	first := delegated(t, w, a, "bookings:read")
	second, err := a.Refresh(t.Context(), hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Second)
	_, err = a.Refresh(t.Context(), hotel, alex, first.Refresh, nil)
	wantErr(t, err, authority.ErrUnknown)
	next, err := a.Refresh(t.Context(), hotel, alex, second.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(3 * time.Second)
	_, err = a.Refresh(t.Context(), hotel, alex, first.Refresh, nil)
	wantErr(t, err, authority.ErrReused)
	_, err = a.Refresh(t.Context(), hotel, alex, next.Refresh, nil)
	wantErr(t, err, authority.ErrEnded)
}

// B25: where a Brand wants no window, one call is paid and no other, not even one
// that came at the same instant or by a clock that is a little behind.
func TestNoWindowPaysOnce(t *testing.T) {
	w := authoritytest.New(t)
	hotel := w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Grace = 0 })
	a := w.Authority(nil)
	first := delegated(t, w, a, "bookings:read")
	second, err := a.Refresh(t.Context(), hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, skew := range []time.Duration{0, -time.Second} {
		w.Clock.Advance(skew)
		_, err = a.Refresh(t.Context(), hotel, alex, first.Refresh, nil)
		wantErr(t, err, authority.ErrUnknown)
	}
	if _, err := a.Refresh(t.Context(), hotel, alex, second.Refresh, nil); err != nil {
		t.Fatalf("the one that was paid: %v", err)
	}
}

// M16, P31: whoever else presents a refresh token, fresh or long used, is told
// nothing, spends nothing and ends nothing.
func TestForeignRefreshTouchesNothing(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	first := delegated(t, w, a, "bookings:read")
	second, err := a.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Hour)
	for _, token := range []string{first.Refresh, second.Refresh, "rt_unknown", ""} {
		for _, foreign := range []struct {
			brand *tenants.Brand
			who   authority.Caller
		}{
			{w.Shop, alex},
			{w.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: alex.Sub}},
			{w.Hotel, authority.Caller{Agent: alex.Agent, Sub: "sam-phone"}},
		} {
			_, err := a.Refresh(t.Context(), foreign.brand, foreign.who, token, nil)
			wantErr(t, err, authority.ErrUnknown)
		}
	}
	if _, err := a.Refresh(t.Context(), w.Hotel, alex, second.Refresh, nil); err != nil {
		t.Fatalf("the rightful caller: %v", err)
	}
}

// R44, B24, B25: parallel refreshes on two instances leave exactly one living
// successor, whatever the window; nobody meets a surprise.
func TestParallelRefreshesShareOneSuccessor(t *testing.T) {
	for _, grace := range []time.Duration{30 * time.Second, 0} {
		t.Run(grace.String(), func(t *testing.T) {
			w := authoritytest.New(t)
			hotel := w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Grace = grace })
			instances := []*authority.Authority{w.Authority(nil), w.Authority(nil)}
			token := delegated(t, w, instances[0], "bookings:read").Refresh
			for range 15 {
				var mu sync.Mutex
				successors := make(map[string]int)
				start := make(chan struct{})
				var wg sync.WaitGroup
				for i := range 8 {
					wg.Go(func() {
						<-start
						tokens, err := instances[i%2].Refresh(t.Context(), hotel, alex, token, nil)
						mu.Lock()
						defer mu.Unlock()
						switch {
						case err == nil:
							successors[tokens.Refresh]++
						case errors.Is(err, authority.ErrUnknown) && grace == 0:
						default:
							t.Errorf("refresh: %v", err)
						}
					})
				}
				close(start)
				wg.Wait()
				if len(successors) != 1 {
					t.Fatalf("%d different successors", len(successors))
				}
				if n := w.Count(t, `SELECT count(*) FROM refresh_tokens WHERE used_at IS NULL`); n != 1 {
					t.Fatalf("%d living refresh tokens", n)
				}
				for next := range successors {
					token = next
				}
				if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n > 0 {
					t.Fatal("a race ended the grant")
				}
				w.Clock.Advance(time.Second)
			}
		})
	}
}

// B31, R48: scope narrows the access token only; more than granted is refused
// and spends nothing.
func TestRefreshNarrowsTheAccessTokenOnly(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read", "bookings:change")
	for _, wrong := range [][]string{{"extras:order"}, {"bookings:read", "extras:order"}, {"nonsense"}} {
		_, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, wrong)
		wantErr(t, err, authority.ErrScope)
	}
	narrow, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, []string{"bookings:change", "bookings:change"})
	if err != nil {
		t.Fatal(err)
	}
	if got := payloadOf(t, narrow.JWS)["scope"]; got != "bookings:change" {
		t.Fatalf("scope %v", got)
	}
	wide, err := a.Refresh(t.Context(), w.Hotel, alex, narrow.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bookings:read", "bookings:change"}, wide.Scopes); diff != "" {
		t.Fatal(diff)
	}
	w.Exec(t, `UPDATE brand_scopes SET retired_at = now() WHERE id = 'bookings:read'`)
	left, err := a.Refresh(t.Context(), w.Hotel, alex, wide.Refresh, nil)
	if err != nil || !cmp.Equal(left.Scopes, []string{"bookings:change"}) {
		t.Fatalf("after a scope was withdrawn: %v, %v", left.Scopes, err)
	}
}

// M14, R48, P32: everything is asked again at refresh, before and after
// signing, and a refusal keeps the token.
func TestRefreshAsksAgain(t *testing.T) {
	for _, tt := range []struct {
		name, break_, mend string
		want               error
	}{
		{"agent disabled", `UPDATE agents SET enabled = false`, `UPDATE agents SET enabled = true`, authority.ErrAgentDisabled},
		{"brand paused", `UPDATE brands SET state = 'paused'`, `UPDATE brands SET state = 'active'`, authority.ErrPaused},
		{"user suspended", `INSERT INTO suspended_users VALUES ('harbor-hotel', 'guest-7', now())`, `DELETE FROM suspended_users`, authority.ErrSuspended},
		{"grant ended", `UPDATE grants SET ended_at = now(), end_reason = 'test'`, ``, authority.ErrEnded},
		{"every scope retired", `UPDATE brand_scopes SET retired_at = now()`, `UPDATE brand_scopes SET retired_at = NULL`, authority.ErrEnded},
	} {
		for _, when := range []string{"before signing", "after signing"} {
			if tt.name == "every scope retired" && when == "after signing" {
				continue // the card is read once; the next refresh knows
			}
			t.Run(tt.name+" "+when, func(t *testing.T) {
				w := authoritytest.New(t)
				token := delegated(t, w, w.Authority(nil), "bookings:read").Refresh
				var once sync.Once
				a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
					if when == "after signing" {
						once.Do(func() { w.Exec(t, tt.break_) })
					}
					return w.Keys.Sign(ctx, brand, typ, payload)
				}))
				if when == "before signing" {
					w.Exec(t, tt.break_)
				}
				_, err := a.Refresh(t.Context(), w.Hotel, alex, token, nil)
				wantErr(t, err, tt.want)
				if n := w.Count(t, `SELECT count(*) FROM refresh_tokens WHERE used_at IS NOT NULL`); n != 0 {
					t.Fatal("the token was spent")
				}
				if tt.mend == "" {
					return
				}
				w.Exec(t, tt.mend)
				if _, err := a.Refresh(t.Context(), w.Hotel, alex, token, nil); err != nil {
					t.Fatalf("mended, still %v", err)
				}
			})
		}
	}
}

// A signer that fails spends nothing (R83).
func TestRefreshLosesNothingWhenSigningFails(t *testing.T) {
	w := authoritytest.New(t)
	token := delegated(t, w, w.Authority(nil), "bookings:read").Refresh
	broken := w.Authority(signerFunc(func(context.Context, tenants.BrandID, string, []byte) (string, error) {
		return "", errors.New("sealed")
	}))
	_, err := broken.Refresh(t.Context(), w.Hotel, alex, token, nil)
	wantErr(t, err, authority.ErrUnavailable)
	if _, err := w.Authority(nil).Refresh(t.Context(), w.Hotel, alex, token, nil); err != nil {
		t.Fatal(err)
	}
}

// P35, R50 (in part): an agent ends its own grant by either token, and no other.
func TestAgentEndsItsOwnGrant(t *testing.T) {
	for _, kind := range []string{"refresh", "access"} {
		t.Run(kind, func(t *testing.T) {
			w := authoritytest.New(t)
			a := w.Authority(nil)
			tokens := delegated(t, w, a, "bookings:read")
			token := map[string]string{"refresh": tokens.Refresh, "access": tokens.JWS}[kind]
			for _, foreign := range []authority.Caller{
				{Agent: authoritytest.OtherAgent, Sub: alex.Sub},
				{Agent: alex.Agent, Sub: "sam-phone"},
			} {
				if err := a.EndByToken(t.Context(), w.Hotel.ID, foreign, token); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.EndByToken(t.Context(), w.Shop.ID, alex, token); err != nil {
				t.Fatal(err)
			}
			next, err := a.Refresh(t.Context(), w.Hotel, alex, tokens.Refresh, nil)
			if err != nil {
				t.Fatalf("a stranger ended it: %v", err)
			}
			for _, unknown := range []string{"rt_nothing", "a.b.c", ""} {
				if err := a.EndByToken(t.Context(), w.Hotel.ID, alex, unknown); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // idempotent
				if err := a.EndByToken(t.Context(), w.Hotel.ID, alex, token); err != nil {
					t.Fatal(err)
				}
			}
			_, err = a.Refresh(t.Context(), w.Hotel, alex, next.Refresh, nil)
			wantErr(t, err, authority.ErrEnded)
		})
	}
}

// M14, M15: a grant that is narrowed while its token is being signed pays out
// what it then holds, not what was read before.
func TestRefreshPaysWhatTheGrantThenHolds(t *testing.T) {
	w := authoritytest.New(t)
	token := delegated(t, w, w.Authority(nil), "bookings:read", "bookings:change").Refresh
	var once sync.Once
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		once.Do(func() { w.Exec(t, `UPDATE grants SET scopes = '{bookings:read}', version = version + 1`) })
		return w.Keys.Sign(ctx, brand, typ, payload)
	}))
	tokens, err := a.Refresh(t.Context(), w.Hotel, alex, token, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := payloadOf(t, tokens.JWS)["scope"]; got != "bookings:read" {
		t.Fatalf("signed for %v", got)
	}
}

// M16: the same successor is given again only while it is unused, also when it
// comes to be used while the retry is being signed.
func TestRetryIsRefusedOnceTheSuccessorIsUsed(t *testing.T) {
	w := authoritytest.New(t)
	plain := w.Authority(nil)
	first := delegated(t, w, plain, "bookings:read")
	second, err := plain.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	retrying := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		once.Do(func() {
			if _, err := plain.Refresh(t.Context(), w.Hotel, alex, second.Refresh, nil); err != nil {
				t.Error(err)
			}
		})
		return w.Keys.Sign(ctx, brand, typ, payload)
	}))
	_, err = retrying.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	wantErr(t, err, authority.ErrUnknown)
}

// A disabled agent is told so even about tokens it never had, and ends nothing.
func TestDisabledAgentIsToldFirst(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	tokens := delegated(t, w, a, "bookings:read")
	w.Exec(t, `UPDATE agents SET enabled = false`)
	_, err := a.Refresh(t.Context(), w.Hotel, alex, "rt_unknown", nil)
	wantErr(t, err, authority.ErrAgentDisabled)
	_, err = a.Poll(t.Context(), w.Hotel, alex, "dc_unknown")
	wantErr(t, err, authority.ErrAgentDisabled)
	wantErr(t, a.EndByToken(t.Context(), w.Hotel.ID, alex, tokens.Refresh), authority.ErrAgentDisabled)
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != 0 {
		t.Fatal("it ended the grant")
	}
}

// R32: never more than an hour, whatever the Brand's settings came to say.
func TestTokenNeverLivesLongerThanAnHour(t *testing.T) {
	w := authoritytest.New(t)
	brand := *w.Hotel
	brand.TokenLifetime = 48 * time.Hour
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, &brand, alex, "bookings:read")
	authoritytest.Approve(t, a, &brand, s, "guest-7", "bookings:read")
	tokens, err := a.Poll(t.Context(), &brand, alex, s.DeviceCode)
	if err != nil || tokens.ExpiresIn != time.Hour {
		t.Fatalf("%v, %v", tokens.ExpiresIn, err)
	}
}
