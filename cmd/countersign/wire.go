package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/events"
	"countersign.dev/authority/oauth"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/signing/local"
	"countersign.dev/authority/signing/transit"
	"countersign.dev/authority/tryout"
	"countersign.dev/consent"
	"countersign.dev/consent/federation"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"countersign.dev/tenants/egress"
	"countersign.dev/tenants/mail"
	"countersign.dev/web"
	"countersign.dev/web/i18n"
	"countersign.dev/web/static"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// parts is what a running service is made of.
type parts struct {
	config
	pool       *pgxpool.Pool
	db         *tenants.DB
	brands     *tenants.Directory
	agents     *agent.Registry
	keys       *signing.Keys
	authority  *authority.Authority
	courier    *events.Courier
	feed       *events.Feed
	sessions   *web.Store
	consent    *consent.Handler
	console    *console.Handler
	handler    http.Handler
	sealer     tenants.Sealer
	backend    string       // where new signing keys are made
	outside    *http.Client // to addresses that others name
	caller     *a2a.Caller  // of hosted Brands' own agents
	tester     *tryout.Agent
	federation *federation.Client
}

// config is what wire needs to know.
type config struct {
	publicURL  string // our own origin, without a path
	cookieName string
	// consoleCookie is the dashboard's own.
	consoleCookie string
	// hosted is the operator's Provider, whose audience hosted Brands share.
	hosted    tenants.Provider
	mail      mail.Sender // nil: none is sent, and nobody can sign up
	dev       bool        // plain http on loopback is allowed
	master    *signing.Master
	vault     *transit.Backend // nil: keys rest in the local keyring
	former    *transit.Backend // where Brands' keys still are, on their way from one Vault to another
	metrics   *prometheus.Registry
	addresses web.Addresses
	demo      []demoBrand // shown on the front page
	log       *slog.Logger
}

// wire is the only place where packages meet. ctx lives as long as the process:
// clients that refresh keys in the background keep it. Time and randomness enter
// here and nowhere else.
func wire(ctx context.Context, pool *pgxpool.Pool, c config) (*parts, error) {
	now := time.Now
	p := &parts{config: c, pool: pool, db: tenants.NewDB(pool)}
	p.brands = tenants.NewDirectory(p.db, now)
	// The local keyring stays beside Vault: what it signed with goes on until the
	// key's turn is over, so that a Brand moves while verifiers look on.
	keyring := local.New(p.db, c.master, now)
	backends := []signing.Backend{keyring}
	p.backend, p.sealer = keyring.Name(), c.master
	// Whoever sealed a secret opens it, until rewrap has been over it.
	for _, store := range []*transit.Backend{c.former, c.vault} {
		if store != nil {
			backends = append(backends, store)
			p.backend, p.sealer = store.Name(), store.Sealer(p.sealer)
		}
	}
	p.keys = signing.NewKeys(signing.Config{DB: p.db, Backends: backends, Log: c.log, Now: now})
	var err error
	p.courier, err = events.NewCourier(events.Config{
		DB: p.db, Sealer: p.sealer, Signer: p.keys, Now: now, Log: c.log, AllowLoopback: c.dev, Metrics: c.metrics,
		Edit: func(ctx context.Context, brand tenants.BrandID, fn func(*tenants.Edit) error) error {
			return p.authority.Editor(authority.ByUpkeep())(ctx, brand, fn) // which tells the courier in its turn
		},
	})
	if err != nil {
		return nil, err
	}
	p.feed = events.NewFeed(p.db, c.log)
	p.authority = authority.New(authority.Config{
		DB: p.db, Signer: p.keys, Verifier: p.keys, Master: c.master, Now: now, Trace: web.RequestID, Metrics: c.metrics,
		Announce: p.courier.Announce,
	})
	p.keys = p.keys.Noted(p.authority.NoteKeys(authority.ByUpkeep())) // unless somebody else asks for it
	fetch := egress.New(egress.Config{AllowLoopback: c.dev})
	p.outside = fetch.HTTP()
	p.caller = a2a.NewCaller(a2a.CallerConfig{Places: tenants.NewAgentPlaces(p.db, p.sealer, now), AllowLoopback: c.dev, Now: now})
	if p.tester, err = testAgent(c, p.outside); err != nil {
		return nil, err
	}
	p.federation = federation.New(federation.Config{HTTP: p.outside, Now: now, Context: ctx})
	p.agents = agent.NewRegistry(agent.RegistryConfig{
		DB: pool, AllowLoopback: c.dev, Now: now, Note: p.authority.NoteAgent(authority.ByOperator()),
		Met: p.authority.NoteMet(),
	})
	verifier := agent.NewVerifier(agent.Config{Registry: p.agents, Fetch: fetch, Now: now, Log: c.log, Metrics: p.metrics})
	catalogue, err := i18n.Load()
	if err != nil {
		return nil, fmt.Errorf("load texts: %w", err)
	}
	p.sessions = web.NewStore(pool, now)
	p.consent = consent.New(consent.Config{
		Authority: p.authority, Brands: p.brands, DB: p.db, Sealer: p.sealer,
		Federation: p.federation,
		Sessions:   p.sessions, Addresses: c.addresses, Catalogue: catalogue,
		MAC: func(brand tenants.BrandID, purpose string, data []byte) ([]byte, error) {
			return c.master.MAC(c.master.Version(), brand, purpose, data)
		},
		PublicURL: c.publicURL, CookieName: c.cookieName, DevHTTP: c.dev, Now: now, Log: c.log,
		Tried: console.TriedPath,
	})
	front := frontDoor{catalogue: catalogue, brands: p.demo, log: p.log}
	p.console, err = console.New(console.Config{
		Authority: p.authority, Brands: p.brands, DB: p.db, Keys: p.keys, Policy: p.policy,
		Sessions: web.NewConsoleStore(pool, now), Addresses: c.addresses, Catalogue: catalogue,
		Site: p.site(), Preview: p.consent.Preview,
		DomainProven: p.domainProven, Mail: c.mail, Provider: c.hosted.ID, Commands: front.operations(),
		Outbox: p.courier.Outbox, Tester: p.tester,
		PublicURL: c.publicURL, CookieName: c.consoleCookie, Now: now, Log: c.log,
		Sealer: p.sealer, Prover: p.prover(), Asks: p.asks(now),
		ExamineInterface: p.examineInterface, ExamineLogin: p.examineLogin, TryAgent: p.caller.Try,
		BeginTry: p.trials().Begin, FinishTry: p.trials().Finish, Trials: p.programTrials(now),
	})
	if err != nil {
		return nil, err
	}
	p.handler, err = p.routes(verifier, front, now)
	return p, err
}

// routes puts the machines' routes and the people's pages on one origin.
func (p *parts) routes(verifier *agent.Verifier, front frontDoor, now func() time.Time) (http.Handler, error) {
	origin := http.NewCrossOriginProtection()
	if err := origin.AddTrustedOrigin(p.publicURL); err != nil {
		return nil, fmt.Errorf("public URL: %w", err)
	}
	for _, pattern := range consent.FromElsewhere() {
		origin.AddInsecureBypassPattern(pattern)
	}
	origin.SetDenyHandler(http.HandlerFunc(p.consent.Forged))

	people := http.NewServeMux()
	p.consent.Routes(people)
	people.HandleFunc("GET /{$}", front.home)
	people.Handle("/console", p.console)
	people.Handle("/console/", p.console)
	if outbox, ok := p.mail.(*mail.Outbox); ok && p.dev {
		people.HandleFunc("GET /dev/mail", front.mails(outbox))
	}
	people.HandleFunc("/", p.consent.NotFound)

	mux := http.NewServeMux()
	credentials := tenants.NewCredentials(p.db, now)
	p.adminAPI(credentials, verifier, now).Routes(mux)
	oauth.New(oauth.Config{
		Brands: p.brands, Agents: verifier, Authority: p.authority, Keys: p.keys,
		Credentials: credentials, Feed: p.feed, PublicURL: p.publicURL, Log: p.log,
		// The others always find a connection.
		MostAtOnce: max(1, int(p.db.Pool().Config().MaxConns)*3/4),
	}).Routes(mux)
	a2a.New(p.brands, p.log).Routes(mux)
	a2a.NewInterface(a2a.Config{
		Brands: p.brands, Agents: verifier, Authority: p.authority, Keys: p.keys, Caller: p.caller,
		Countersign: p.authority.Countersign, Bind: p.authority.CountersignTask,
		PublicURL: p.publicURL, Now: now, Log: p.log, Metrics: p.metrics,
	}).Routes(mux)
	if err := p.serveTestAgent(mux); err != nil {
		return nil, err
	}
	mux.Handle("/a2a/", http.NotFoundHandler())
	mux.Handle("/.well-known/", http.NotFoundHandler())
	mux.Handle("GET "+static.Prefix, static.Handler())
	alive := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("GET /readyz", p.ready)
	mux.Handle("/", web.Chain(people, web.Recover(p.log, p.consent.Failed), web.PageHeaders, origin.Handler))

	return web.Chain(mux, web.Deadline, web.Record(p.log, now), web.EveryAnswer(strings.HasPrefix(p.publicURL, "https:"))), nil
}

// ready says whether this instance can do its work.
func (p *parts) ready(w http.ResponseWriter, r *http.Request) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if err := p.pool.Ping(ctx); err != nil {
		http.Error(w, "database does not answer", http.StatusServiceUnavailable)
		return
	}
	// A key store that is away is named and no reason to send people elsewhere:
	// everything but signing goes on, and no other instance would do better.
	for _, store := range []*transit.Backend{p.vault, p.former} {
		if store == nil {
			continue
		}
		if err := store.Check(ctx); err != nil {
			fmt.Fprintf(w, "ready, but not all can be signed: %v\n", err)
			return
		}
	}
	w.WriteHeader(http.StatusOK)
}

// background does what no request asks for, until ctx ends and what is under way
// is over.
func (p *parts) background(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { p.upkeep(ctx) })
	all.Go(func() { p.feed.Run(ctx) })
	all.Go(func() { p.courier.Run(ctx) })
	all.Go(func() { p.console.Run(ctx) })
	all.Wait()
}

// upkeep removes what is over and changes keys that are due, until ctx ends.
func (p *parts) upkeep(ctx context.Context) {
	const pause = time.Minute
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if err := p.tidy(ctx); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "upkeep failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tidy goes on to the next Brand when one fails: its trouble is its own.
func (p *parts) tidy(ctx context.Context) error {
	_, failed := p.sessions.Purge(ctx)
	_, away := p.agents.ForgetAway(ctx)
	failed = errors.Join(failed, p.console.Purge(ctx), away)
	ids, err := p.brands.IDs(ctx)
	failed = errors.Join(failed, err)
	for _, id := range ids {
		closed, left := p.authority.Leave(ctx, id)
		failed = errors.Join(failed, left)
		_, expired := p.authority.Expire(ctx, id)
		_, rules := p.authority.Purge(ctx, id)
		_, journeys := p.consent.Purge(ctx, id)
		failed = errors.Join(failed, expired, rules, journeys, p.courier.Tidy(ctx, id), p.tidySettings(ctx, id))
		if !closed { // a Brand that is closed gets no more keys
			p.keepKeys(ctx, id)
			p.forget(ctx, id)
			p.countersign(ctx, id)
			p.keepLog(ctx, id)
		}
		failed = errors.Join(failed, p.console.Upkeep(ctx, id))
	}
	return failed
}

// policy is how the Brand's keys are meant to be.
func (p *parts) policy(b *tenants.Brand) signing.Policy {
	const day = 24 * time.Hour
	return signing.Policy{Every: time.Duration(b.RotationDays) * day, Alg: signing.Alg(b.SigningAlg), Backend: p.backend}
}

// keepKeys does what is due for the Brand's signing keys. One Brand's trouble,
// such as a key store that does not answer, must not stop the others' upkeep.
func (p *parts) keepKeys(ctx context.Context, id tenants.BrandID) {
	b, err := p.brands.Brand(ctx, id)
	if err == nil {
		err = p.keys.Keep(ctx, id, p.policy(b))
	}
	if err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "keys could not be kept", "brand", string(id), "error", err)
	}
}

// forget ends grants whose agents stay away.
func (p *parts) forget(ctx context.Context, id tenants.BrandID) {
	b, err := p.brands.Brand(ctx, id)
	if err == nil {
		_, err = p.authority.Forget(ctx, b)
	}
	if err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "forgotten grants could not be ended", "brand", string(id), "error", err)
	}
}

// countersign gives what was done at the Brand while nothing could be signed its
// receipts: what its own server handed in, and what its agent answered us.
func (p *parts) countersign(ctx context.Context, id tenants.BrandID) {
	b, err := p.brands.Brand(ctx, id)
	if err == nil {
		_, flushed := p.authority.Flush(ctx, b)
		_, drained := a2a.Drain(ctx, p.authority, b)
		err = errors.Join(flushed, drained)
	}
	if err != nil && !errors.Is(err, authority.ErrPaused) && ctx.Err() == nil {
		p.log.WarnContext(ctx, "turns wait for their receipts", "brand", string(id), "error", err)
	}
}

// keepLog has the Brand's log of receipts signed, when that is due.
func (p *parts) keepLog(ctx context.Context, id tenants.BrandID) {
	b, err := p.brands.Brand(ctx, id)
	if err == nil {
		err = p.authority.KeepCheckpoint(ctx, b)
	}
	if err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "the log of receipts could not be signed", "brand", string(id), "error", err)
	}
}
