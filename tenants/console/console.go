package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/events"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/tryout"
	"countersign.dev/tenants"
	"countersign.dev/tenants/mail"
	"countersign.dev/web"
	"countersign.dev/web/i18n"
	"countersign.dev/web/ui"
	"github.com/a-h/templ"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Config is what a Handler needs.
type Config struct {
	Authority *authority.Authority
	Brands    *tenants.Directory
	DB        *tenants.DB
	Keys      *signing.Keys
	// Policy is how a Brand's keys are meant to be.
	Policy    func(*tenants.Brand) signing.Policy
	Sessions  *web.Store // of web.NewConsoleStore
	Addresses web.Addresses
	Catalogue *i18n.Catalogue
	// Site is where we are, for what settings may name.
	Site tenants.Site
	// Preview is the page on which people decide, as it would be for such a Brand.
	Preview func(b *tenants.Brand, lang i18n.Language, css string, said ui.Notice) templ.Component
	// Mail is nil where the service sends none: then nobody can sign up.
	Mail mail.Sender
	// DomainProven reports whether the Brand has shown that its domain is its own;
	// nil: no Brand has.
	DomainProven func(context.Context, tenants.BrandID) (bool, error)
	// Provider is whose audience new Brands share.
	Provider string
	Outbox   *events.Outbox
	// Tester is the service's own agent, for Brands that try themselves out.
	Tester *tryout.Agent
	// Commands are what an operator does from a shell, for the landing page.
	Commands []string
	// PublicURL is the origin of every page and of every passkey; never taken from
	// a request.
	PublicURL string
	// CookieName is the __Host- cookie of the dashboard, not that of the people's
	// pages.
	CookieName string
	Now        func() time.Time
	Log        *slog.Logger

	// What follows is for the pages of domains, interface, login and changes. Sealer
	// encrypts what Brands entrust to us, Prover looks at what they publish, and Asks
	// keeps what waits for an owner.
	Sealer tenants.Sealer
	Prover tenants.Prover
	Asks   *tenants.Asks
	// ExamineInterface reads the Brand through its public URLs as a strict agent
	// does, and ExamineLogin what the connection's provider says of itself.
	ExamineInterface func(context.Context, *tenants.Brand) []tenants.Line
	ExamineLogin     func(context.Context, tenants.LoginConnection) []tenants.Line
	// TryAgent sends the Brand's own agent a test call.
	TryAgent func(context.Context, tenants.BrandID) (tenants.AgentTried, error)
	// BeginTry returns where a test login sends the browser, or what is in its way;
	// FinishTry is the other end of it.
	BeginTry  func(ctx context.Context, l tenants.LoginConnection, try tenants.Try, uiLocales string) (string, tenants.Tried)
	FinishTry func(ctx context.Context, l tenants.LoginConnection, try tenants.Try, answer url.Values) tenants.Tried
	// Trials are the test logins that programs begin.
	Trials tenants.Trials
}

// Handler serves the dashboard.
type Handler struct {
	Config
	mux      *http.ServeMux
	passkeys *webauthn.WebAuthn
	post     *mail.Queue
	due      *turns       // Brands that may have notices to send
	flood    *web.Limiter // per address, over everything
	mails    *web.Limiter // per account, over what sends mail
	// What strangers have us mail to whoever they name: per address, and over all of it.
	writers, allWriters *web.Limiter
	guesses             *web.Limiter // per account, over recovery codes
	invites             *web.Limiter // per Brand or person, over mail to others and new Brands
	looks               *web.Limiter // per Brand, over looks at servers that it names
}

// What one address may ask for is what 500 people behind one of them need, each
// of some ten pages at once (B95). What one account may cause is little.
var (
	floodLimit = web.Limit{Burst: 6000, Per: 5 * time.Minute}
	mailLimit  = web.Limit{Burst: 5, Per: time.Hour}
	// Nobody signs up often: these two are for those who have us flood others.
	writersLimit    = web.Limit{Burst: 20, Per: time.Hour}
	allWritersLimit = web.Limit{Burst: 300, Per: 10 * time.Minute}
	guessesLimit    = web.Limit{Burst: 10, Per: time.Hour}
	invitesLimit    = web.Limit{Burst: 50, Per: time.Hour}
	looksLimit      = web.Limit{Burst: 120, Per: time.Hour}
)

// New returns a Handler.
func New(c Config) (*Handler, error) {
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("console: public URL: %w", err)
	}
	h := &Handler{
		Config: c, mux: http.NewServeMux(), due: newTurns(),
		flood: web.NewLimiter(floodLimit, c.Now), mails: web.NewLimiter(mailLimit, c.Now), guesses: web.NewLimiter(guessesLimit, c.Now),
		writers: web.NewLimiter(writersLimit, c.Now), allWriters: web.NewLimiter(allWritersLimit, c.Now),
		invites: web.NewLimiter(invitesLimit, c.Now), looks: web.NewLimiter(looksLimit, c.Now),
	}
	h.passkeys, err = webauthn.New(&webauthn.Config{
		RPID: u.Hostname(), RPDisplayName: service, RPOrigins: []string{c.PublicURL},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("console: passkeys: %w", err)
	}
	if c.Mail != nil {
		h.post = mail.NewQueue(c.Mail, c.Log)
	}
	h.register(h.mux, routes())
	return h, nil
}

// ServeHTTP serves /console and everything below it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Run sends mail until ctx ends.
func (h *Handler) Run(ctx context.Context) {
	if h.post == nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { h.post.Run(ctx) })
	both.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-h.due.woken:
				if id, ok := h.due.next(); ok {
					h.sendNotices(ctx, id)
				}
			}
		}
	})
	both.Wait()
}

// Upkeep does what is due for one Brand: its first key if it still has none, and
// notices that have not left. Any number of instances may call it.
func (h *Handler) Upkeep(ctx context.Context, id tenants.BrandID) error {
	h.noticesDue(id)
	b, err := h.Brands.Brand(ctx, id)
	if err != nil || b.State != tenants.Pending {
		return err
	}
	return h.launch(ctx, id)
}

// Purge removes links that are over, and forms that nobody can send any more.
func (h *Handler) Purge(ctx context.Context) error {
	return errors.Join(tenants.PurgeLinks(ctx, h.DB, h.now()), tenants.PurgeForms(ctx, h.DB, h.now()))
}

// now is the present as PostgreSQL keeps it.
func (h *Handler) now() time.Time { return h.Now().UTC().Truncate(time.Microsecond) }

// record writes what members do into the Brand's trail.
func (h *Handler) record(ctx context.Context, tx pgx.Tx, brand tenants.BrandID, by uuid.UUID, event string, detail map[string]any) error {
	return h.Authority.Note(ctx, tx, brand, authority.ByMember(by.String()), event, detail)
}

// launch makes the Brand's key, tries it, and opens the Brand to agents.
func (h *Handler) launch(ctx context.Context, id tenants.BrandID) error {
	b, err := h.Brands.Brand(ctx, id)
	if err != nil {
		return err
	}
	p := h.Policy(b)
	if err := h.Keys.Ensure(ctx, id, p.Backend, p.Alg); err != nil {
		return fmt.Errorf("make the first key of %s: %w", id, err)
	}
	if err := h.Keys.SelfTest(ctx, id); err != nil {
		return fmt.Errorf("try the first key of %s: %w", id, err)
	}
	if err := tenants.Launch(ctx, h.DB, id); err != nil {
		return err
	}
	h.Brands.Forget(id)
	return nil
}

// proven reports whether the Brand's domain is proven.
func (h *Handler) proven(ctx context.Context, id tenants.BrandID) (bool, error) {
	if h.DomainProven == nil {
		return false, nil
	}
	return h.DomainProven(ctx, id)
}
