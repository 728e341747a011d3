package transit_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/signingtest"
	"countersign.dev/authority/signing/transit"
	"github.com/hashicorp/vault/api"
	"github.com/prometheus/client_golang/prometheus"
)

// world is a real Vault, set up as for the service.
type world struct {
	*signingtest.Vault
	root *api.Client
	role transit.AppRole
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Vault: signingtest.StartVault(t)}
	w.root = w.Client(t, w.RootToken)
	auth, err := transit.Setup(t.Context(), w.config(transit.Token(w.RootToken)))
	if err != nil {
		t.Fatal(err)
	}
	w.role = auth.(transit.AppRole)
	return w
}

func (w *world) config(auth transit.Auth) transit.Config {
	return transit.Config{Address: w.Addr, Auth: auth, Log: slog.New(slog.DiscardHandler)}
}

// backend is the service's: it may do what the policy allows. Its timeout is long:
// a claim that is not about deadlines must not fail by what neighbours do to the
// machine.
func (w *world) backend(t testing.TB, change ...func(*transit.Config)) *measured {
	t.Helper()
	c := w.config(w.role)
	c.Timeout = 15 * time.Second
	m := &measured{registry: prometheus.NewRegistry()}
	c.Metrics = m.registry
	for _, f := range change {
		f(&c)
	}
	var err error
	if m.Backend, err = transit.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// operator does what only an operator may.
func (w *world) operator(t testing.TB, path string, body map[string]any) {
	t.Helper()
	if _, err := w.root.Logical().WriteWithContext(t.Context(), path, body); err != nil {
		t.Fatal(err)
	}
}

// measured is a Backend whose numbers can be read.
type measured struct {
	*transit.Backend
	registry *prometheus.Registry
}

// number sums a metric over all its series whose labels hold the given values.
func (m *measured) number(t testing.TB, name string, values ...string) (count int, sum float64) {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, series := range f.GetMetric() {
			text := series.String()
			for _, v := range values {
				if !strings.Contains(text, `"`+v+`"`) {
					text = ""
				}
			}
			if text == "" {
				continue
			}
			count += int(series.GetHistogram().GetSampleCount()) + int(series.GetCounter().GetValue()) + int(series.GetGauge().GetValue())
			sum += series.GetHistogram().GetSampleSum()
		}
	}
	return count, sum
}

func (m *measured) calls(t testing.TB) int {
	t.Helper()
	n, _ := m.number(t, "countersign_vault_call_seconds", "sign")
	return n
}

// sign asks for one signature of version 1.
func (m *measured) sign(ctx context.Context) error {
	return m.signWith(ctx, 1)
}

func (m *measured) signWith(ctx context.Context, v signing.Version) error {
	r := m.Sign(ctx, signingtest.Hotel, []signing.Job{{Version: v, Alg: signing.ES256, Digest: [32]byte{1}}})[0]
	if r.Err == nil && len(r.Signature) != 64 {
		return errors.New("no signature and no error")
	}
	return r.Err
}

// recovers asks until there is a signature, and returns how long that took.
func (m *measured) recovers(t testing.TB) time.Duration {
	t.Helper()
	const never = 30 * time.Second
	start := time.Now()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := m.sign(t.Context())
		if err == nil {
			return time.Since(start)
		}
		if time.Since(start) > never {
			t.Fatalf("does not recover: %v", err)
		}
		<-ticker.C
	}
}
