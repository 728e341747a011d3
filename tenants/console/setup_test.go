package console_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/consent/federation"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"countersign.dev/tenants/egress"
	"github.com/google/uuid"
)

// nowhere is a host that the network does not reach.
const nowhere = "nowhere.example"

// outside is what the world has published: files by URL, TXT records by name.
type outside struct {
	mu      sync.Mutex
	files   map[string]string
	records map[string]string
}

func (o *outside) put(where map[string]string, at, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text == "" {
		delete(where, at)
		return
	}
	where[at] = text
}

func (o *outside) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.URL.Hostname() == nowhere {
		return nil, egress.ErrUnreachable
	}
	body, ok := o.files[r.URL.String()]
	status := http.StatusOK
	if !ok {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (o *outside) LookupTXT(_ context.Context, name string) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text, ok := o.records[strings.TrimSuffix(name, ".")]; ok {
		return []string{text}, nil
	}
	return nil, errors.New("no such host")
}

// setUp fills in what the pages of domains, interface, login and changes need,
// with a real client of OpenID providers.
func (s *site) setUp(t *testing.T, c *console.Config) {
	t.Helper()
	s.published = &outside{files: map[string]string{}, records: map[string]string{}}
	life, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	transport := new(http.Transport)
	t.Cleanup(func() { cancel(); transport.CloseIdleConnections() })
	trials := federation.Trials{
		// Providers have clocks of their own.
		Client:            federation.New(federation.Config{HTTP: &http.Client{Transport: transport}, Now: time.Now, Context: life}),
		AllowLoopbackHTTP: true,
	}
	c.Site = tenants.Site{PublicURL: origin, AllowLoopback: true}
	c.Sealer = s.Master
	c.Prover = tenants.Prover{HTTP: &http.Client{Transport: s.published}, DNS: s.published}
	s.asks = &tenants.Asks{DB: s.DB, Sealer: s.Master, Now: s.Clock.Now, Appliers: tenants.SettingsAppliers(s.DB, c.Site)}
	maps.Copy(s.asks.Appliers, tenants.WebhookAppliers(s.Master, c.Site))
	maps.Copy(s.asks.Appliers, tenants.AgentAppliers(s.DB, s.Master, c.Site))
	c.Asks = s.asks
	c.ExamineInterface = func(_ context.Context, b *tenants.Brand) []tenants.Line {
		return []tenants.Line{
			{What: "card", At: b.CardURL(), State: "ok", Say: "answers"},
			{What: "issuer", At: b.Issuer, State: "bad", Say: "is another origin", Mend: "put it behind the proxy"},
		}
	}
	c.ExamineLogin, c.BeginTry, c.FinishTry = trials.Look, trials.Begin, trials.Finish
	c.Trials = tenants.Trials{DB: s.DB, Sealer: s.Master, Site: c.Site, Now: s.Clock.Now, Begin: trials.Begin, Finish: trials.Finish}
	s.trials = c.Trials
}

// owner is an owner of the Brand, who is signed in.
func (s *site) owner(t *testing.T, brand tenants.BrandID) *visitor {
	t.Helper()
	v := s.become(t, "olga@example.com", "Olga")
	s.own(t, v, brand, tenants.Owner)
	s.drain(t)
	return v
}

// own makes the visitor a member of the Brand.
func (s *site) own(t *testing.T, v *visitor, brand tenants.BrandID, role tenants.Role) {
	t.Helper()
	s.Exec(t, `INSERT INTO memberships VALUES ($1, $2, $3, $4, $4)`, brand, uuid.UUID(v.device.keys[0].user), role, s.Clock.Now())
}

const hotel = "/console/b/harbor-hotel/"

// filled are the values of a form.
func filled(pairs ...string) url.Values { return with(url.Values{}, pairs...) }

// told demands that the owner has had mail about it, and that nothing else came
// true: one notice for one change.
func (s *site) told(t *testing.T, event string, times int) {
	t.Helper()
	if n := s.Count(t, `SELECT count(*) FROM notices WHERE kind = $1`, event); n != times {
		t.Errorf("%d notices of %s, want %d", n, event, times)
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event = $1 AND channel = 'console'`, event); n != times {
		t.Errorf("%d facts of %s, want %d", n, event, times)
	}
}
