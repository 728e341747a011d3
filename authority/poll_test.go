package authority_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// P12, P14, R5, R6, R7, B13, B17: the first poll is never early, the next one
// inside the interval is, and the interval does not grow; polling decides nothing.
func TestPollKeepsTheInterval(t *testing.T) {
	w := authoritytest.New(t)
	a, b := w.Authority(nil), w.Authority(nil) // two instances
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	poll := func(who *authority.Authority, want error) {
		t.Helper()
		_, err := who.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
		wantErr(t, err, want)
	}
	poll(a, authority.ErrPending)
	poll(b, authority.ErrTooSoon)
	w.Clock.Advance(authority.PollInterval)
	poll(b, authority.ErrPending)
	w.Clock.Advance(authority.PollInterval - time.Second) // the slack
	poll(a, authority.ErrPending)
	w.Clock.Advance(time.Second)
	for range 5 {
		poll(a, authority.ErrTooSoon)
	}
	w.Clock.Advance(authority.PollInterval - time.Second)
	poll(b, authority.ErrPending)
}

// R7: of fifty polls at once in one interval one is pending, the others early.
func TestParallelPollsShareOneInterval(t *testing.T) {
	w := authoritytest.New(t)
	instances := []*authority.Authority{w.Authority(nil), w.Authority(nil)}
	s := authoritytest.Begin(t, instances[0], w.Hotel, alex, "bookings:read")
	var pending, early atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			_, err := instances[i%2].Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
			switch {
			case errors.Is(err, authority.ErrPending):
				pending.Add(1)
			case errors.Is(err, authority.ErrTooSoon):
				early.Add(1)
			default:
				t.Errorf("poll: %v", err)
			}
		})
	}
	wg.Wait()
	if pending.Load() != 1 || early.Load() != 49 {
		t.Fatalf("%d pending, %d early", pending.Load(), early.Load())
	}
}

// M12, P13, B14: a decision is delivered even to an early poll.
func TestApprovedCodePaysOutWhenPolledEarly(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	_, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
	wantErr(t, err, authority.ErrPending)
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read")
	if _, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode); err != nil {
		t.Fatalf("early poll of an approved code: %v", err)
	}
}

// M13, P15, R8, B19: exactly once under parallel polls of two instances, and no
// more signatures than payments.
func TestCodeIsPaidOutOnce(t *testing.T) {
	w := authoritytest.New(t)
	signer := &countingSigner{next: w.Keys}
	instances := []*authority.Authority{w.Authority(signer), w.Authority(signer)}
	const codes, polls = 20, 16
	for range codes {
		s := authoritytest.Begin(t, instances[0], w.Hotel, alex, "bookings:read")
		authoritytest.Approve(t, instances[0], w.Hotel, s, "guest-7", "bookings:read")
		var paid atomic.Int32
		var wg sync.WaitGroup
		for i := range polls {
			wg.Go(func() {
				_, err := instances[i%2].Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
				switch {
				case err == nil:
					paid.Add(1)
				case errors.Is(err, authority.ErrBusy), errors.Is(err, authority.ErrRedeemed):
				default:
					t.Errorf("a losing poll got %v", err)
				}
			})
		}
		wg.Wait()
		if paid.Load() != 1 {
			t.Fatalf("paid out %d times", paid.Load())
		}
		_, err := instances[1].Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
		wantErr(t, err, authority.ErrRedeemed)
		w.Clock.Advance(time.Minute)
	}
	if n := signer.n.Load(); n != codes {
		t.Errorf("%d signatures for %d codes", n, codes)
	}
	if n := w.Count(t, `SELECT count(*) FROM refresh_tokens`); n != codes {
		t.Errorf("%d refresh families for %d codes", n, codes)
	}
	// A repeated redemption revokes nothing, but is written down.
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NOT NULL`); n != 0 {
		t.Errorf("%d grants ended", n)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'request.redeemed_again'`); n < 1 || n > codes {
		t.Errorf("%d repeats audited: one per interval and code is meant", n)
	}
}

type countingSigner struct {
	next authority.Signer
	n    atomic.Int32
}

func (c *countingSigner) Sign(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
	c.n.Add(1)
	return c.next.Sign(ctx, brand, typ, payload)
}

// signerFunc is a signer that the test plays.
type signerFunc func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error)

func (f signerFunc) Sign(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
	return f(ctx, brand, typ, payload)
}

// M13: a failed signature frees the code, and the next poll is paid.
func TestFailedSignatureLosesNothing(t *testing.T) {
	w := authoritytest.New(t)
	down := true
	a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		if down {
			return "", errors.New("vault is sealed")
		}
		return w.Keys.Sign(ctx, brand, typ, payload)
	}))
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read")
	_, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
	wantErr(t, err, authority.ErrUnavailable)
	down = false
	if _, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode); err != nil {
		t.Fatalf("after the signer came back: %v", err)
	}
}

// M13: while one instance signs, others are told to wait; a lease that ran out
// frees the code, and what its holder signed is dropped.
func TestExpiredLeaseCannotPayOut(t *testing.T) {
	w := authoritytest.New(t)
	signing := make(chan struct{})
	resume := make(chan struct{})
	slow := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
		close(signing)
		<-resume
		return w.Keys.Sign(ctx, brand, typ, payload)
	}))
	quick := w.Authority(nil)
	s := authoritytest.Begin(t, quick, w.Hotel, alex, "bookings:read")
	authoritytest.Approve(t, quick, w.Hotel, s, "guest-7", "bookings:read")
	lost := make(chan error)
	go func() {
		_, err := slow.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
		lost <- err
	}()
	<-signing
	_, err := quick.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
	wantErr(t, err, authority.ErrBusy)
	w.Clock.Advance(11 * time.Second)
	if _, err := quick.Poll(t.Context(), w.Hotel, alex, s.DeviceCode); err != nil {
		t.Fatalf("after the lease: %v", err)
	}
	close(resume)
	if err := <-lost; !errors.Is(err, authority.ErrRedeemed) {
		t.Fatalf("the slow instance got %v", err)
	}
	if n := w.Count(t, `SELECT count(*) FROM refresh_tokens`); n != 1 {
		t.Fatalf("%d refresh families", n)
	}
}

// M13: who let the lease run out has lost, even if he is ready first: the code
// is the next holder's now.
func TestOnlyTheHolderOfTheLeasePaysOut(t *testing.T) {
	w := authoritytest.New(t)
	gate := func() (signed, resume chan struct{}, a *authority.Authority) {
		signed, resume = make(chan struct{}), make(chan struct{})
		var once sync.Once
		return signed, resume, w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
			once.Do(func() { close(signed) })
			<-resume
			return w.Keys.Sign(ctx, brand, typ, payload)
		}))
	}
	firstSigns, firstGo, first := gate()
	nextSigns, nextGo, next := gate()
	s := authoritytest.Begin(t, first, w.Hotel, alex, "bookings:read")
	authoritytest.Approve(t, first, w.Hotel, s, "guest-7", "bookings:read")
	poll := func(a *authority.Authority) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
			done <- err
		}()
		return done
	}
	one := poll(first)
	<-firstSigns
	w.Clock.Advance(11 * time.Second)
	two := poll(next)
	<-nextSigns
	close(firstGo)
	if err := <-one; !errors.Is(err, authority.ErrBusy) {
		t.Errorf("who lost the lease got %v", err)
	}
	close(nextGo)
	if err := <-two; err != nil {
		t.Errorf("who holds the lease got %v", err)
	}
}

// M11, P16, R9, B90: a code at another Brand, by another agent or another person
// of the same agent is unknown, and the rightful caller loses nothing: not even
// its poll.
func TestForeignPollTouchesNothing(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	for _, state := range []string{"pending", "approved", "redeemed"} {
		s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
		if state != "pending" {
			authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read")
		}
		if state == "redeemed" {
			if _, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode); err != nil {
				t.Fatal(err)
			}
		}
		audited := w.Count(t, `SELECT count(*) FROM audit_events`)
		for _, foreign := range []struct {
			brand *tenants.Brand
			who   authority.Caller
		}{
			{w.Shop, alex},
			{w.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: alex.Sub}},
			{w.Hotel, authority.Caller{Agent: alex.Agent, Sub: "sam-phone"}},
		} {
			_, err := a.Poll(t.Context(), foreign.brand, foreign.who, s.DeviceCode)
			wantErr(t, err, authority.ErrUnknown)
		}
		if n := w.Count(t, `SELECT count(*) FROM audit_events`); n != audited {
			t.Errorf("%s: a foreign poll was handled as a replay", state)
		}
		_, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
		want := map[string]error{"pending": authority.ErrPending, "approved": nil, "redeemed": authority.ErrRedeemed}[state]
		if !errors.Is(err, want) {
			t.Errorf("%s: the rightful caller got %v, want %v", state, err, want)
		}
	}
}

// R4, P17: the request's time ends once, at its second; an approval in the last
// second is worth a minute more.
func TestRequestExpires(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	late := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	w.Clock.Advance(authority.RequestLife - time.Second)
	_, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
	wantErr(t, err, authority.ErrPending)
	authoritytest.Approve(t, a, w.Hotel, late, "guest-7", "bookings:read")
	w.Clock.Advance(time.Second)
	_, err = a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
	wantErr(t, err, authority.ErrExpired)
	wantErr(t, authoritytest.TryApprove(t.Context(), a, w.Hotel, s, "guest-7", "bookings:read"), authority.ErrExpired)
	wantErr(t, a.Deny(t.Context(), w.Hotel.ID, authority.Decision{Request: s.ID, Subject: "guest-7"}), authority.ErrExpired)
	_, _, err = a.Find(t.Context(), w.Hotel.ID, s.UserCode.String(), authority.Visitor{})
	wantErr(t, err, authority.ErrUnknown)

	w.Clock.Advance(58 * time.Second)
	if _, err := a.Poll(t.Context(), w.Hotel, alex, late.DeviceCode); err != nil {
		t.Fatalf("59 s after a late approval: %v", err)
	}
	later := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, later, "guest-7", "bookings:read")
	w.Clock.Advance(authority.RequestLife + time.Second)
	_, err = a.Poll(t.Context(), w.Hotel, alex, later.DeviceCode)
	wantErr(t, err, authority.ErrExpired)
}

// R10, B01, P17: a no is heard at every later poll, and no token ever comes.
func TestDeniedStaysDenied(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read")
	if err := a.Deny(t.Context(), w.Hotel.ID, authority.Decision{Request: s.ID, Subject: "guest-7"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
		wantErr(t, err, authority.ErrDenied)
	}
	wantErr(t, authoritytest.TryApprove(t.Context(), a, w.Hotel, s, "guest-7", "bookings:read"), authority.ErrDecided)
}

// M14, P32: everything is asked again when the code is paid out.
func TestRedemptionAsksAgain(t *testing.T) {
	for _, tt := range []struct {
		name       string
		break_     string
		mend       string
		want       error
		wantScopes []string // after mending
	}{
		{
			"agent disabled", `UPDATE agents SET enabled = false`, `UPDATE agents SET enabled = true`,
			authority.ErrAgentDisabled,
			[]string{"bookings:read", "bookings:change"},
		},
		{
			"brand paused", `UPDATE brands SET state = 'paused'`, `UPDATE brands SET state = 'active'`,
			authority.ErrPaused,
			[]string{"bookings:read", "bookings:change"},
		},
		{
			"delegation off", `UPDATE brands SET delegation = false`, `UPDATE brands SET delegation = true`,
			authority.ErrPaused,
			[]string{"bookings:read", "bookings:change"},
		},
		{
			"user suspended", `INSERT INTO suspended_users VALUES ('harbor-hotel', 'guest-7', now())`, `DELETE FROM suspended_users`,
			authority.ErrSuspended,
			[]string{"bookings:read", "bookings:change"},
		},
		{"grant ended", `UPDATE grants SET ended_at = now(), end_reason = 'test'`, ``, authority.ErrEnded, nil},
		{"grant run out", `UPDATE grants SET expires_at = '2026-11-30 12:00:00Z'`, ``, authority.ErrEnded, nil},
		{
			"every scope retired", `UPDATE brand_scopes SET retired_at = now()`,
			`UPDATE brand_scopes SET retired_at = NULL WHERE id <> 'bookings:change'`,
			authority.ErrEnded,
			[]string{"bookings:read"}, // B39: withdrawn between consent and redemption
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := authoritytest.New(t)
			a := w.Authority(nil)
			s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read", "bookings:change")
			authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read", "bookings:change")
			w.Exec(t, tt.break_)
			_, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
			wantErr(t, err, tt.want)
			if tt.mend == "" {
				return
			}
			w.Exec(t, tt.mend)
			tokens, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
			if err != nil {
				t.Fatalf("mended, still %v", err)
			}
			if diff := cmp.Diff(tt.wantScopes, tokens.Scopes); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// M14: what changes while the token is being signed stops the payment too.
func TestRedemptionAsksAgainAfterSigning(t *testing.T) {
	for name, change := range map[string]string{
		"agent disabled": `UPDATE agents SET enabled = false`,
		"brand paused":   `UPDATE brands SET state = 'paused'`,
		"user suspended": `INSERT INTO suspended_users VALUES ('harbor-hotel', 'guest-7', now())`,
		"grant ended":    `UPDATE grants SET ended_at = now(), end_reason = 'test'`,
		"grant narrowed": `UPDATE grants SET version = version + 1, scopes = '{bookings:read}'`,
	} {
		t.Run(name, func(t *testing.T) {
			w := authoritytest.New(t)
			var once sync.Once
			a := w.Authority(signerFunc(func(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
				once.Do(func() { w.Exec(t, change) })
				return w.Keys.Sign(ctx, brand, typ, payload)
			}))
			s := authoritytest.Begin(t, a, w.Hotel, alex, "bookings:read", "bookings:change")
			authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read", "bookings:change")
			tokens, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
			if name == "grant narrowed" {
				if err != nil || !cmp.Equal(tokens.Scopes, []string{"bookings:read"}) {
					t.Fatalf("got %v, %v; want the narrowed grant", tokens.Scopes, err)
				}
				return
			}
			if err == nil {
				t.Fatal("paid out all the same")
			}
		})
	}
}

// M15, M17, R29, R30, R32, P28, P36: what a token says.
func TestTokenSaysWhatWasAllowed(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, alex, "account:read", "extras:order", "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read", "account:read")
	tokens, err := a.Poll(t.Context(), w.Hotel, alex, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	// Requested ids in requested order.
	if diff := cmp.Diff([]string{"account:read", "bookings:read"}, tokens.Scopes); diff != "" {
		t.Fatal(diff)
	}
	now := w.Clock.Now().Unix()
	got := payloadOf(t, tokens.JWS)
	jti, _ := got["jti"].(string)
	if len(jti) < 32 {
		t.Errorf("jti %q", jti)
	}
	delete(got, "jti")
	status, _ := got["status"].(map[string]any)
	where, _ := status["status_list"].(map[string]any)
	if index, ok := where["idx"].(float64); !ok || index < 0 || index >= authority.StatusListSize || where["uri"] != w.Hotel.Issuer+"/status/0" {
		t.Errorf("status %v", status)
	}
	delete(got, "status")
	want := map[string]any{
		"iss": w.Hotel.Issuer, "aud": w.Hotel.InterfaceURL, "sub": "guest-7", "client_id": alex.Agent,
		"scope": "account:read bookings:read", "grant_id": tokens.GrantID.String(),
		"iat": float64(now), "exp": float64(now + 900),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if tokens.ExpiresIn != 15*time.Minute {
		t.Errorf("expires in %v", tokens.ExpiresIn)
	}
	// A second request for something else widens the same grant, and pays out
	// the whole of it: the requested first, the others in the card's order.
	more := authoritytest.Begin(t, a, w.Hotel, alex, "extras:order")
	authoritytest.Approve(t, a, w.Hotel, more, "guest-7", "extras:order", "bookings:read", "account:read")
	wide, err := a.Poll(t.Context(), w.Hotel, alex, more.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	if wide.GrantID != tokens.GrantID {
		t.Error("a second grant was made")
	}
	if diff := cmp.Diff([]string{"extras:order", "bookings:read", "account:read"}, wide.Scopes); diff != "" {
		t.Fatal(diff)
	}
	// Never past the grant's end.
	w.Exec(t, `UPDATE grants SET expires_at = $1`, w.Clock.Now().Add(100*time.Second+300*time.Millisecond))
	short, err := a.Refresh(t.Context(), w.Hotel, alex, wide.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if short.ExpiresIn != 100*time.Second {
		t.Errorf("expires in %v, the grant ends in 100 s", short.ExpiresIn)
	}
}

func payloadOf(t *testing.T, jws string) map[string]any {
	t.Helper()
	parts := strings.Split(jws, ".")
	if len(parts) != 3 {
		t.Fatalf("%d parts", len(parts))
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
