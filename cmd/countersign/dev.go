package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/signing"
	"countersign.dev/cmd/countersign/outfitter"
	"countersign.dev/cmd/countersign/pa"
	"countersign.dev/migrations"
	"countersign.dev/migrations/localpg"
	"countersign.dev/tenants"
	"countersign.dev/tenants/mail"
	"countersign.dev/web"
	"github.com/prometheus/client_golang/prometheus"
)

// defaultData is also where the pa commands look.
const defaultData = ".countersign"

func runDev(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	s := newSettings("dev", "everything on this machine: the service, PostgreSQL, two demo Brands with their sign-in, a demo agent", stderr)
	data := s.String("data", defaultData, "`folder` that keeps the data between runs")
	addr := s.String("addr", "localhost:8080", "`address` to listen at on this machine; moves the public URL with it")
	ready := s.String("ready-file", "", "`file` to write once everything answers: JSON with addresses, people, keys and the database URL")
	var vault vaultFlags
	vault.register(s, "vault")
	level := s.String("log-level", "warn", "`level`: debug, info, warn or error; logs go to standard error")
	if code := s.parse(args); code >= 0 {
		return code
	}
	log, errLevel := logger(stderr, *level)
	port, errAddr := loopbackPort(*addr)
	folder, errData := filepath.Abs(*data)
	if code := s.refuse(errLevel, errAddr, errData); code >= 0 {
		return code
	}
	d := &devServer{data: folder, port: port, readyFile: *ready, vault: vault, log: log, stdout: stdout, stderr: stderr}
	return failed(ctx, stderr, "dev", d.run(ctx))
}

// loopbackPort reads --addr. dev has well-known passwords, so it is never
// reachable from another machine.
func loopbackPort(addr string) (int, error) {
	host, rawPort, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, fmt.Errorf("--addr %q: give a port on this machine, such as localhost:9000", addr)
	}
	if ip := net.ParseIP(host); host != "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return 0, fmt.Errorf("--addr %q: dev listens on this machine only, because its passwords are known to everybody", addr)
	}
	port, err := strconv.Atoi(rawPort)
	if err != nil || port < 0 || port > 65535 {
		return 0, fmt.Errorf("--addr %q: %q is not a port", addr, rawPort)
	}
	return port, nil
}

// devServer is one run of countersign dev.
type devServer struct {
	data           string
	port           int
	readyFile      string
	vault          vaultFlags
	log            *slog.Logger
	stdout, stderr io.Writer

	servers sync.WaitGroup
	failed  chan error
}

// run starts every part in the order in which they need one another, and stops
// them in the opposite one when ctx ends.
func (d *devServer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.failed = make(chan error, 8)
	if d.readyFile != "" {
		// A file from a former run would say "ready" too early.
		if err := os.Remove(d.readyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove old ready file: %w", err)
		}
	}
	if err := writable(d.data); err != nil {
		return err
	}
	public, err := listenLoopback(d.port)
	if err != nil {
		return fmt.Errorf("port %d: %w; choose another with --addr localhost:PORT", d.port, err)
	}
	defer closeAll(public)
	publicURL := "http://localhost:" + portOf(public[0])

	fmt.Fprintln(d.stderr, "starting PostgreSQL …")
	database, err := localpg.Start(ctx, localpg.Config{DataDir: filepath.Join(d.data, "postgres")})
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer stopDatabase(ctx, database)
	master, err := signing.LoadMaster(filepath.Join(d.data, "master.key"))
	if err != nil {
		return err
	}
	appURL, err := d.prepare(ctx, database)
	if err != nil {
		return err
	}
	pool, err := openPool(ctx, appURL, 20)
	if err != nil {
		return err
	}
	defer pool.Close()
	// From here on everything that is started ends before the pool and the
	// database go.
	defer func() { cancel(); d.servers.Wait() }()

	ports, err := openPorts(filepath.Join(d.data, "ports.json"))
	if err != nil {
		return err
	}
	shop, err := ports.listen("shop-" + string(demoOutfitter))
	if err != nil {
		return err
	}
	defer shop.Close() //nolint:errcheck // ending anyway
	brands := demoBrands(publicURL, "http://127.0.0.1:"+portOf(shop)+"/support")
	registry := prometheus.NewRegistry()
	keys, err := d.vault.setUp(ctx, registry, d.log)
	if err != nil {
		return err
	}
	if keys != nil {
		defer keys.Close()
	}
	p, err := wire(ctx, pool, config{
		vault: keys, metrics: registry,
		publicURL: publicURL,
		// Cookies are shared by all ports of a host; two dev instances must not
		// sign each other out.
		cookieName:    "__Host-countersign-" + portOf(public[0]),
		consoleCookie: "__Host-countersign-console-" + portOf(public[0]),
		hosted:        tenants.Provider{ID: demoProvider, Name: "Countersign demo", Audience: demoAudience, Shared: true}, mail: &mail.Outbox{},
		dev: true, master: master, demo: values(brands), log: d.log,
	})
	if err != nil {
		return err
	}
	identity, err := d.startAgent(ctx, p, ports, brands)
	if err != nil {
		return err
	}
	secret := rand.Text()
	for _, b := range brands {
		if err := d.startIdentityProvider(b, ports, secret); err != nil {
			return err
		}
		defer b.provider.Close() //nolint:errcheck // ending anyway
	}
	support, err := d.startSupportAgent(ctx, ports)
	if err != nil {
		return err
	}
	if err := ports.save(); err != nil {
		return err
	}
	if err := p.seed(ctx, brands, secret); err != nil {
		return err
	}
	if err := p.employ(ctx, support); err != nil {
		return err
	}
	if err := p.registerTestAgent(ctx); err != nil {
		return err
	}
	owner, err := p.ownerLink(ctx, brands)
	if err != nil {
		return err
	}
	d.servers.Go(func() { p.background(ctx) })
	for _, l := range public {
		d.serve(ctx, l, p.handler)
	}
	if err := d.startShop(ctx, p, shop, brands[1]); err != nil {
		return err
	}
	r := describe(publicURL, database.URL(devDatabase), brands, identity, d.data)
	r.ConsoleLink, r.MailURL = owner, publicURL+"/dev/mail"
	if err := r.answers(ctx); err != nil {
		return err
	}
	if d.readyFile != "" {
		if err := r.write(d.readyFile); err != nil {
			return err
		}
	}
	r.print(d.stdout, d.data, d.readyFile)
	select {
	case <-ctx.Done():
		fmt.Fprintln(d.stderr, "stopping …")
		return nil
	case err := <-d.failed:
		return err
	case <-database.Done():
		return errors.New("PostgreSQL has ended by itself; see its log in the data folder")
	}
}

// writable makes the data folder and tries it, before anything deeper in trips
// over it with less to say.
func writable(folder string) error {
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		var try *os.File
		if try, err = os.CreateTemp(folder, ".try-*"); err == nil {
			err = errors.Join(try.Close(), os.Remove(try.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("%w; choose another folder with --data", err)
	}
	return nil
}

const devDatabase = "countersign"

// prepare makes the database, its tables and the service's own login, which is
// as powerless here as in production.
func (d *devServer) prepare(ctx context.Context, database *localpg.Server) (appURL string, err error) {
	if err := ensureDatabase(ctx, database.URL("postgres"), devDatabase); err != nil {
		return "", err
	}
	owner := database.URL(devDatabase)
	if err := migrations.Up(ctx, owner, d.log); err != nil {
		return "", err
	}
	const login = "countersign_dev"
	password := rand.Text()
	if err := localpg.EnsureLogin(ctx, owner, login, password); err != nil {
		return "", err
	}
	return withLogin(owner, login, password)
}

// startAgent serves the demo agent's public key and registers the agent.
func (d *devServer) startAgent(ctx context.Context, p *parts, ports *ports, brands []*demoBrand) (*pa.Identity, error) {
	l, err := ports.listen("agent")
	if err != nil {
		return nil, err
	}
	issuer := "http://127.0.0.1:" + portOf(l)
	identity, err := pa.CreateIdentity(d.data, issuer, issuer+"/jwks.json", demoAgentName)
	if err != nil {
		return nil, err
	}
	at := map[string]string{p.publicURL + "/a2a/": demoAudience} // every hosted Brand
	for _, b := range brands {
		if b.brand.Mode != tenants.Hosted {
			at[b.brand.InterfaceURL] = b.audience
		}
	}
	if err := identity.StoreAudiences(demoAudience, at); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(identity.PublicJWKS())
	})
	d.serve(ctx, l, mux)
	err = p.agents.Register(ctx, agent.Agent{Issuer: issuer, JWKSURI: issuer + "/jwks.json", Name: demoAgentName, Enabled: true, Test: true})
	return identity, err
}

// startShop serves the outfitter's own program, which knows the service by HTTP
// alone.
func (d *devServer) startShop(ctx context.Context, p *parts, l net.Listener, b *demoBrand) error {
	// No more than it needs, as a Brand's own would have.
	key, err := p.devAPIKey(ctx, b.brand.ID, "the shop's program", tenants.RightVerify, tenants.RightStepUp, tenants.RightReceipts, tenants.RightEvents)
	if err != nil {
		return err
	}
	shop, err := outfitter.New(outfitter.Config{
		Service: p.publicURL, Brand: string(b.brand.ID), Interface: b.brand.InterfaceURL,
		Audience: b.audience, Credential: key, Log: d.log.With("program", "outfitter"),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", b.brand.Name, err)
	}
	d.serve(ctx, l, shop)
	d.servers.Go(func() { shop.Follow(ctx) })
	return nil
}

func (d *devServer) startIdentityProvider(b *demoBrand, ports *ports, secret string) error {
	l, err := ports.listen("idp-" + string(b.brand.ID))
	if err != nil {
		return err
	}
	if b.provider, err = b.identityProvider(secret); err != nil {
		return errors.Join(fmt.Errorf("sign-in of %s: %w", b.brand.Name, err), l.Close())
	}
	if err := b.provider.Start(l); err != nil {
		return fmt.Errorf("sign-in of %s: %w", b.brand.Name, err)
	}
	return nil
}

func (d *devServer) serve(ctx context.Context, l net.Listener, h http.Handler) {
	d.servers.Go(func() {
		if err := web.Serve(ctx, l, h, d.log); err != nil && ctx.Err() == nil {
			d.failed <- err
		}
	})
}

func stopDatabase(ctx context.Context, database *localpg.Server) {
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = database.Stop(ctx) // ending anyway
}

func values(brands []*demoBrand) []demoBrand {
	out := make([]demoBrand, len(brands))
	for i, b := range brands {
		out[i] = *b
	}
	return out
}
