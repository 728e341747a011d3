package authority_test

import (
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"github.com/prometheus/client_golang/prometheus"
)

// counted is an instance and what an operator sees of it.
func counted(w *authoritytest.World) (*authority.Authority, func(t *testing.T, name, outcome string) float64) {
	metrics := prometheus.NewRegistry()
	a := authority.New(authority.Config{DB: w.DB, Signer: w.NewKeys(), Master: w.Master, Now: w.Clock.Now, Metrics: metrics})
	return a, func(t *testing.T, name, outcome string) float64 {
		t.Helper()
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				if outcome == "" || m.GetLabel()[0].GetValue() == outcome {
					return m.GetCounter().GetValue()
				}
			}
		}
		return 0
	}
}

// B28, R45: an agent that lost the reply comes again after 20 s, 2 min, or a night
// in a closed laptop. Inside the window it gets the same again; after it, its
// grant ends for a reason that can be read, and no other grant of the person; and
// when the person allows it again, that is counted as a false alarm.
func TestALostReplyIsForgivenInTimeAndCountedAfter(t *testing.T) {
	const replays, alarms = "countersign_refresh_replays_total", "countersign_refresh_false_alarms_total"
	for _, tt := range []struct {
		after    time.Duration
		want     error
		forgiven bool
	}{
		{20 * time.Second, nil, true},
		{2 * time.Minute, authority.ErrReused, false},
		{8 * time.Hour, authority.ErrReused, false},
	} {
		t.Run(tt.after.String(), func(t *testing.T) {
			w := authoritytest.New(t)
			a, count := counted(w)
			token := delegated(t, w, a, "bookings:read").Refresh
			other := authority.Caller{Agent: authoritytest.OtherAgent, Sub: alex.Sub}
			s := authoritytest.Begin(t, a, w.Hotel, other, "bookings:read")
			authoritytest.Approve(t, a, w.Hotel, s, "guest-7", "bookings:read")
			theirs, err := a.Poll(t.Context(), w.Hotel, other, s.DeviceCode)
			if err != nil {
				t.Fatal(err)
			}
			lost, err := a.Refresh(t.Context(), w.Hotel, alex, token, nil)
			if err != nil {
				t.Fatal(err)
			}
			w.Clock.Advance(tt.after)
			again, err := a.Refresh(t.Context(), w.Hotel, alex, token, nil)
			wantErr(t, err, tt.want)
			want := map[bool]map[string]float64{true: {"grace": 1}, false: {"ended": 1}}[tt.forgiven]
			for _, outcome := range []string{"grace", "late", "ended"} {
				if got := count(t, replays, outcome); got != want[outcome] {
					t.Errorf("%v replays counted as %s, not %v", got, outcome, want[outcome])
				}
			}
			if tt.forgiven {
				if again.Refresh != lost.Refresh {
					t.Error("another successor")
				}
				return
			}
			if n := w.Count(t, `SELECT count(*) FROM grants WHERE end_reason = 'reuse_detected' AND agent = $1`, alex.Agent); n != 1 {
				t.Errorf("%d grants say why they ended", n)
			}
			if _, err := a.Refresh(t.Context(), w.Hotel, other, theirs.Refresh, nil); err != nil {
				t.Errorf("the person's other agent: %v", err)
			}
			delegated(t, w, a, "bookings:read")
			if got := count(t, alarms, ""); got != 1 {
				t.Errorf("%v false alarms counted", got)
			}
		})
	}
}

// A call that comes too late but was on its way is counted apart: it ends nothing.
func TestALateCallIsCountedApart(t *testing.T) {
	w := authoritytest.New(t)
	a, count := counted(w)
	first := delegated(t, w, a, "bookings:read")
	second, err := a.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Refresh(t.Context(), w.Hotel, alex, second.Refresh, nil); err != nil {
		t.Fatal(err)
	}
	_, err = a.Refresh(t.Context(), w.Hotel, alex, first.Refresh, nil)
	wantErr(t, err, authority.ErrUnknown)
	if got := count(t, "countersign_refresh_replays_total", "late"); got != 1 {
		t.Errorf("%v late calls counted", got)
	}
}
