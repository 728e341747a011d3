package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/migrations"
	"countersign.dev/tenants"
	"countersign.dev/tenants/mail"
	"countersign.dev/web"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func runServe(ctx context.Context, args []string, _ io.Reader, _, stderr io.Writer) int {
	s := newSettings("serve", "the service, over a PostgreSQL that countersign migrate has prepared", stderr)
	addr := s.String("addr", "127.0.0.1:8080", "`address` to listen at")
	public := s.String("public-url", "", "our own https `origin`, as browsers and agents reach it (required)")
	database := s.String("database-url", "", "`URL` of PostgreSQL, as a member of countersign_app (required)")
	masterFile := s.String("master-key-file", "", "`file` with the master key, created on the first start (required)")
	trusted := s.String("trusted-proxies", defaultProxies, "our own proxies, as comma-separated `networks`; only they are believed in X-Forwarded-For")
	metrics := s.String("metrics-addr", "", "`address` to serve /metrics at; empty: nowhere. Keep it off the internet")
	smtp := s.String("smtp-url", "", "`URL` of the mail server: smtps://user:password@host:465, or smtp://… with STARTTLS; empty: nobody can sign up")
	from := s.String("mail-from", "", "`address` that mail comes from")
	audience := s.String("hosted-audience", "", "`text` that agents name as the audience of all hosted Brands; empty: the public URL. Never change it")
	lead := s.Duration("stop-after", 5*time.Second, "how `long` to go on serving after the signal to stop, with /readyz saying no, so that the proxy sends nobody here any more")
	conns := s.Int("database-connections", 20, "at most so `many` connections to PostgreSQL")
	var vault, former vaultFlags
	vault.register(s, "vault")
	former.register(s, "former-vault")
	level := s.String("log-level", "info", "`level`: debug, info, warn or error")
	if code := s.parse(args); code >= 0 {
		return code
	}
	log, errLevel := logger(stderr, *level)
	proxies, errProxies := parseNetworks(*trusted)
	if !strings.HasPrefix(*addr, "127.0.0.1:") && !strings.HasPrefix(*addr, "localhost:") && *trusted == defaultProxies {
		// TLS ends at a proxy. Unknown, it would stand for every visitor, and ten
		// wrong codes by anybody would lock out everybody.
		errProxies = errors.New("--trusted-proxies: name the networks of the proxies before this address")
	}
	origin, errOrigin := parsePublicURL(*public)
	sender, errMail := openMail(*smtp, *from)
	if code := s.refuse(errLevel, errProxies, errOrigin, errMail, distinct(vault, former), required("database-url", *database), required("master-key-file", *masterFile)); code >= 0 {
		return code
	}
	err := func() error {
		master, err := signing.LoadMaster(*masterFile)
		if err != nil {
			return err
		}
		// Who is here when the signal to stop comes is served to the end: by parts
		// that live until then.
		life, die := context.WithCancel(context.WithoutCancel(ctx))
		defer die()
		pool, err := openPool(life, *database, int32(min(max(*conns, 1), 1000)))
		if err != nil {
			return err
		}
		defer pool.Close()
		l, err := net.Listen("tcp", *addr)
		if err != nil {
			return err
		}
		door := new(opening)
		serving, stop := context.WithCancel(life)
		served := make(chan error, 1)
		go func() { served <- web.Serve(serving, l, door, log) }()
		closed := func(err error) error { stop(); return errors.Join(err, <-served) }
		if err := awaitSchema(ctx, pool, log); err != nil {
			return closed(err)
		}
		registry := prometheus.NewRegistry()
		keys, err := vault.open(registry, log)
		if err != nil {
			return closed(err)
		}
		if keys != nil {
			defer keys.Close()
		}
		old, err := former.open(registry, log)
		if err != nil {
			return closed(err)
		}
		if old != nil {
			defer old.Close()
		}
		p, err := wire(life, pool, config{
			vault: keys, former: old, metrics: registry,
			publicURL: origin, cookieName: "__Host-countersign", consoleCookie: "__Host-countersign-console", master: master,
			mail: sender, hosted: tenants.Provider{ID: hostedProvider, Name: "Countersign", Audience: cmp.Or(*audience, origin), Shared: true},
			addresses: web.Addresses{Trusted: proxies}, log: log,
		})
		if err != nil {
			return closed(err)
		}
		if err := p.prepareToServe(ctx); err != nil {
			return closed(err)
		}
		if sender == nil {
			log.WarnContext(ctx, "no mail server: nobody can sign up, be invited or come back; see --smtp-url")
		}
		if keys == nil {
			log.WarnContext(ctx, "signing keys are in the local keyring, which is meant for development: whoever has the database and the master key file has the keys")
		}
		// What works in the background ends before the pool goes.
		work, rest := context.WithCancel(ctx)
		var background sync.WaitGroup
		defer func() { rest(); background.Wait() }()
		background.Go(func() { p.background(work) })
		if *metrics != "" {
			l, err := net.Listen("tcp", *metrics)
			if err != nil {
				return closed(err)
			}
			mux := http.NewServeMux()
			mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
			go func() { _ = web.Serve(serving, l, mux, log) }()
		}
		door.open(p.handler)
		log.InfoContext(ctx, "serving", "addr", l.Addr().String(), "public_url", origin)
		select {
		case err := <-served:
			stop()
			return err
		case <-ctx.Done():
		}
		door.leave()
		log.InfoContext(life, "stopping: not ready any more", "serving_for", lead.String())
		select {
		case err := <-served:
			stop()
			return err
		case <-time.After(*lead):
		}
		return closed(nil)
	}()
	return failed(ctx, stderr, "serve", err)
}

// prepareToServe looks whether all is as it must be, and brings in what an
// installation has once.
func (p *parts) prepareToServe(ctx context.Context) error {
	if err := p.selfTest(ctx); err != nil {
		return err
	}
	if err := tenants.SaveProvider(ctx, p.db, p.hosted, time.Now()); err != nil {
		return err
	}
	return p.registerTestAgent(ctx)
}

// hostedProvider is the operator's own Provider.
const hostedProvider = "hosted"

// openMail returns nobody for no server.
func openMail(server, from string) (mail.Sender, error) {
	switch {
	case server == "" && from == "":
		return nil, nil
	case server == "" || from == "":
		return nil, errors.New("--smtp-url and --mail-from: give both or none")
	}
	s, err := mail.NewSMTP(server, from)
	if err != nil {
		return nil, fmt.Errorf("--smtp-url, --mail-from: %w", err)
	}
	return s, nil
}

// defaultProxies is right where a proxy on the same machine ends TLS.
const defaultProxies = "127.0.0.0/8,::1/128"

// selfTest refuses to serve with a login that sees past the fence, or with a
// master key that is not the one this database was sealed under.
func (p *parts) selfTest(ctx context.Context) error {
	if err := p.db.CheckFence(ctx); err != nil {
		return err
	}
	ids, err := p.brands.IDs(ctx)
	if err != nil {
		return err
	}
	const brands = 50 // enough to meet every key store
	for _, id := range ids[:min(len(ids), brands)] {
		err := p.keys.SelfTest(ctx, id)
		switch {
		case errors.Is(err, signing.ErrUnavailable):
			p.log.WarnContext(ctx, "signing keys do not answer yet", "brand", string(id), "error", err)
		case errors.Is(err, signing.ErrNoKey), errors.Is(err, signing.ErrBadSignature):
			// One Brand's trouble: upkeep replaces a lost key.
			p.log.ErrorContext(ctx, "ALARM: a Brand's key does not sign", "brand", string(id), "error", err)
		case err != nil:
			return fmt.Errorf("the signing keys do not open; is this the master key that they were sealed under? %w", err)
		}
	}
	return nil
}

func required(name, value string) error {
	if value == "" {
		return fmt.Errorf("--%s is required", name)
	}
	return nil
}

// parsePublicURL takes an https origin and nothing more: tokens and links are
// made from it, so a slip here would stand in every one of them.
func parsePublicURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "", required("public-url", raw)
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "", errors.New("--public-url: give an origin, such as https://countersign.example")
	case u.Scheme != "https":
		return "", errors.New("--public-url: must be https; for a try on this machine use countersign dev")
	}
	return u.Scheme + "://" + u.Host, nil
}

func parseNetworks(list string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for field := range strings.SplitSeq(list, ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		p, err := netip.ParsePrefix(field)
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxies: %q is not a network such as 10.0.0.0/8", field)
		}
		out = append(out, p)
	}
	return out, nil
}

func runMigrate(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	s := newSettings("migrate", "bring a database up to this version; safe to run twice and on several machines", stderr)
	database := s.String("database-url", "", "`URL` of PostgreSQL, as the owner of the tables (required)")
	if code := s.parse(args); code >= 0 {
		return code
	}
	if code := s.refuse(required("database-url", *database)); code >= 0 {
		return code
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	err := migrations.Up(ctx, *database, log)
	if err == nil {
		fmt.Fprintln(stdout, "the database is up to date")
	}
	return failed(ctx, stderr, "migrate", err)
}
