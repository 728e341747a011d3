package storm

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/oauth"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/tenants/egress"
)

// counter is two instances of the doors where turns are countersigned, and all that
// goes wrong around them.
type counter struct {
	*authoritytest.World
	t         *testing.T
	pa        *agenttest.PA
	key       string // the Shop's, for receipts
	instances []*instanceOf
	sealed    atomic.Bool // nobody signs receipts
	calm      atomic.Bool // nothing goes wrong any more
}

// instanceOf is one instance with a line of its own to the database.
type instanceOf struct {
	url   string
	rules *authority.Authority
	dead  chan struct{}
}

// sealable signs, unless it is sealed, or one time in a hundred of bad luck.
type sealable struct {
	*signing.Keys
	c *counter
}

func (s sealable) Sign(ctx context.Context, brand tenants.BrandID, typ string, payload []byte) (string, error) {
	const unlucky = 100
	if typ == signing.TypReceipt && !s.c.calm.Load() && (s.c.sealed.Load() || rand.IntN(unlucky) == 0) {
		return "", signing.ErrUnavailable
	}
	return s.Keys.Sign(ctx, brand, typ, payload)
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{World: authoritytest.NewAt(t, time.Now()), t: t, pa: agenttest.New(t)}
	c.pa.Audience, c.pa.Now = "https://provider.example", c.Clock.Now
	reg := agent.NewRegistry(agent.RegistryConfig{DB: c.DB.Pool(), Now: c.Clock.Now, AllowLoopback: true})
	if err := reg.Register(t.Context(), c.pa.Agent()); err != nil {
		t.Fatal(err)
	}
	behind := httptest.NewServer(http.HandlerFunc(c.brandAgent))
	t.Cleanup(behind.Close)
	edits := c.Authority(nil).Editor(authority.ByOperator())
	_, err := tenants.SetAgentEndpoint(t.Context(), edits, c.Master, tenants.Site{AllowLoopback: true}, c.Hotel.ID, behind.URL)
	if err == nil {
		c.key, err = tenants.CreateAPIKey(t.Context(), c.DB, c.Shop.ID, "storm", []tenants.Right{tenants.RightReceipts}, c.Clock.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.instances = append(c.instances, c.instance())
	}
	return c
}

// brandAgent acts; and now and then it fails, hangs or dies instead of answering.
func (c *counter) brandAgent(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	const of = 200
	switch n := rand.IntN(of); {
	case c.calm.Load(), n > 6:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Done.","scopesUsed":["bookings:read"],"actions":[{"tool":"bookings.list","args":{"month":12}}]}`)
	case n > 2:
		w.WriteHeader(http.StatusBadGateway)
	case n > 1:
		<-r.Context().Done()
	default:
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
}

func (c *counter) instance() *instanceOf {
	const connections, patience = 24, 400 * time.Millisecond
	i := &instanceOf{dead: make(chan struct{})}
	db := newLine(c.t, c.DB.Pool().Config().ConnString(), until(i.dead)).database(c.t, connections)
	keys := signing.NewKeys(signing.Config{DB: db, Backends: c.backends(db), Log: slog.New(slog.DiscardHandler), Now: c.Clock.Now})
	i.rules = authority.New(authority.Config{DB: db, Signer: sealable{keys, c}, Verifier: keys, Master: c.Master, Now: c.Clock.Now})
	log, brands := slog.New(slog.DiscardHandler), tenants.NewDirectory(db, c.Clock.Now)
	agents := agent.NewVerifier(agent.Config{
		Registry: agent.NewRegistry(agent.RegistryConfig{DB: db.Pool(), Now: c.Clock.Now, AllowLoopback: true}),
		Fetch:    egress.New(egress.Config{AllowLoopback: true}), Now: c.Clock.Now, Log: log,
	})
	mux := http.NewServeMux()
	a2a.NewInterface(a2a.Config{
		Brands: brands, Authority: i.rules, Keys: keys, Countersign: i.rules.Countersign, Bind: i.rules.CountersignTask,
		Caller: a2a.NewCaller(a2a.CallerConfig{
			Places: tenants.NewAgentPlaces(db, c.Master, c.Clock.Now), AllowLoopback: true, Now: c.Clock.Now, Patience: patience,
		}),
		PublicURL: authoritytest.PublicURL, Now: c.Clock.Now, Log: log, Agents: agents,
	}).Routes(mux)
	oauth.New(oauth.Config{
		Brands: brands, Authority: i.rules, Keys: keys, Credentials: tenants.NewCredentials(db, c.Clock.Now),
		PublicURL: authoritytest.PublicURL, Log: log, Agents: agents,
	}).Routes(mux)
	s := httptest.NewServer(mux)
	c.t.Cleanup(s.Close)
	i.url = s.URL
	go func() {
		<-i.dead
		s.CloseClientConnections()
		_ = s.Listener.Close()
	}()
	return i
}

// until carries connections for as long as their instance lives.
func until(dead chan struct{}) func(near, far net.Conn) {
	return func(near, far net.Conn) {
		done := make(chan struct{})
		var once sync.Once
		pass := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			once.Do(func() { close(done) })
		}
		go pass(far, near)
		go pass(near, far)
		select {
		case <-dead:
		case <-done:
		}
	}
}

// cut has the database end one connection of the instances, now and then.
func (c *counter) cut(ctx context.Context) {
	const often = 100 * time.Millisecond
	const q = `
		SELECT count(pg_terminate_backend(pid)) FROM (
		       SELECT pid FROM pg_stat_activity
		        WHERE datname = current_database() AND application_name = $1 ORDER BY random() LIMIT 1) s`
	for ctx.Err() == nil {
		time.Sleep(often)
		var n int
		if err := c.Owner.QueryRow(ctx, q, overLine).Scan(&n); err != nil && ctx.Err() == nil {
			c.t.Error(err)
		}
	}
}
