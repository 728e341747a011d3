package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/events"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"countersign.dev/web"
)

// Config is what a Handler needs.
type Config struct {
	Brands      *tenants.Directory
	Credentials *tenants.Credentials
	Keys        *signing.Keys
	Authority   *authority.Authority
	Outbox      *events.Outbox
	// Policy is how the Brand's keys are meant to be.
	Policy func(*tenants.Brand) signing.Policy
	DB     *tenants.DB
	Sealer tenants.Sealer
	Site   tenants.Site
	Prover tenants.Prover
	Asks   *tenants.Asks
	Trials tenants.Trials
	// Editor runs changes in the name of the API key with the id.
	Editor func(keyID string) tenants.Editor
	// ExamineInterface reads the Brand through its public URLs as a strict agent
	// does; ExamineLogin reads what a provider says of itself.
	ExamineInterface func(context.Context, *tenants.Brand) []tenants.Line
	ExamineLogin     func(context.Context, tenants.LoginConnection) []tenants.Line
	// TryAgent sends the Brand's own agent a test call.
	TryAgent func(context.Context, tenants.BrandID) (tenants.AgentTried, error)
	// Recognise tells registered agents from others, and Apply takes agents' own
	// applications.
	Recognise Recognise
	Apply     Apply
	Addresses web.Addresses
	Now       func() time.Time
	Log       *slog.Logger
}

// Handler serves the admin API.
type Handler struct {
	Config
	flood *web.Limiter // per address, over everything
	looks *web.Limiter // per Brand, over looks at servers that it names
	// Each application makes us fetch from an address that a stranger names: the
	// second bounds what all of them together make us do.
	applications, allApplications *web.Limiter
}

// What one address may ask for is what a Brand's servers behind it need (B95).
// Strangers are few at a time, and none of them uses up what is for all.
var (
	floodLimit           = web.Limit{Burst: 6000, Per: 5 * time.Minute}
	looksLimit           = web.Limit{Burst: 120, Per: time.Hour}
	applicationsLimit    = web.Limit{Burst: 20, Per: time.Hour}
	allApplicationsLimit = web.Limit{Burst: 200, Per: 10 * time.Minute}
)

// New returns a Handler.
func New(c Config) *Handler {
	return &Handler{
		Config: c, flood: web.NewLimiter(floodLimit, c.Now), looks: web.NewLimiter(looksLimit, c.Now),
		applications: web.NewLimiter(applicationsLimit, c.Now), allApplications: web.NewLimiter(allApplicationsLimit, c.Now),
	}
}

// Routes registers every route of this package.
func (h *Handler) Routes(mux *http.ServeMux) {
	for _, r := range h.routes() {
		call := r.serve
		if r.looks {
			call = h.look(call)
		}
		mux.Handle(r.method+" "+prefix+r.path, h.limited(h.admin(h.once(call))))
	}
	mux.Handle(applyRoute.method+" /api/v1/"+applyRoute.path, h.limited(http.HandlerFunc(h.applyAgent)))
	mux.Handle(audiencesRoute.method+" /api/v1/"+audiencesRoute.path, h.limited(http.HandlerFunc(h.audiences)))
	mux.Handle("GET /api/v1/openapi.json", h.limited(http.HandlerFunc(h.openAPI)))
}

// limited keeps an address within its budget, before anything is looked up for it.
func (h *Handler) limited(next http.Handler) http.Handler {
	return web.Limited(h.flood, h.Addresses.Of, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		h.fail(w, r, problem{Title: "Too many calls from this address", Status: http.StatusTooManyRequests})
	})(next)
}

// look keeps a Brand within its budget of looks at servers that it names.
func (h *Handler) look(next serve) serve {
	return func(w http.ResponseWriter, r *http.Request, c caller) error {
		if wait, ok := h.looks.Take(string(c.ID)); !ok {
			web.RetryAfter(w, wait)
			return problem{Title: "Too many checks of this Brand", Status: http.StatusTooManyRequests}
		}
		return next(w, r, c)
	}
}

const prefix = "/api/v1/brands/{brand}/"

// serve answers a call that has shown the Brand's key.
type serve func(http.ResponseWriter, *http.Request, caller) error

// caller is whose key opened, and the Brand that it opened.
type caller struct {
	*tenants.Brand
	key  string // the key's id
	edit tenants.Editor
}

// by is how the trail names the caller: an admin, by the key's id.
func (c caller) by() authority.By { return authority.By{Actor: "admin", ID: c.key, Channel: "api"} }

// admin checks the Brand credential. An unknown Brand and a wrong key are told
// alike: the API tells strangers nothing about who is here.
func (h *Handler) admin(serve serve) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		brand, err := h.Brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand")))
		var key string
		if err == nil {
			key, err = h.Credentials.Check(r.Context(), brand.ID, bearer(r), tenants.RightAdmin)
		}
		if err == nil {
			c := caller{Brand: brand, key: key}
			c.edit = h.Editor(key).TellingFor(c.asker(), tenants.OwnersHear()...)
			err = serve(w, r, c)
			if r.Method != http.MethodGet {
				h.Brands.Forget(brand.ID)
			}
		}
		if err != nil {
			h.fail(w, r, err)
		}
	})
}

// asker is how owners hear of the caller.
func (c caller) asker() tenants.Asker { return tenants.Asker{Name: c.key, Channel: "api"} }

func bearer(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, key, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// problem is RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Errors are all mistakes of the body, each with the way to mend it.
	Errors tenants.Problems `json:"errors,omitempty"`
}

func (p problem) Error() string { return p.Title }

// fail is the one place where an error becomes a problem document.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problem{Title: "Something went wrong on our side", Status: http.StatusInternalServerError}
	var problems tenants.Problems
	switch {
	case errors.As(err, &p):
	case errors.Is(err, tenants.ErrNoBrand), errors.Is(err, tenants.ErrBadKey):
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign", error="invalid_token"`)
		p = problem{Title: "Unknown or revoked API key", Status: http.StatusUnauthorized}
	case errors.Is(err, tenants.ErrNoRight):
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign", error="insufficient_scope"`)
		p = problem{Title: "The API key lacks the right admin", Status: http.StatusForbidden}
	case errors.As(err, &problems):
		p = problem{Title: "That cannot be set", Status: http.StatusUnprocessableEntity, Detail: "Nothing has changed.", Errors: problems}
	case errors.Is(err, tenants.ErrConfirm):
		p = problem{Title: "Name the Brand again, as id: closing is final", Status: http.StatusUnprocessableEntity, Detail: "Nothing has changed."}
	case refused(err) != "":
		p = problem{Title: refused(err), Status: http.StatusConflict, Detail: "Nothing has changed."}
	case missing(err) != "":
		p = problem{Title: missing(err), Status: http.StatusNotFound}
	case errors.Is(err, signing.ErrNextExists):
		p = problem{
			Title: "A next key is already published", Status: http.StatusConflict,
			Detail: "It takes its turn by itself. To make another, retire it first.",
		}
	case errors.Is(err, signing.ErrInUse):
		p = problem{Title: "The key signs now", Status: http.StatusConflict, Detail: "Publish a next key, or revoke this one."}
	case errors.Is(err, signing.ErrNoKey):
		p = problem{Title: "The Brand has no such key", Status: http.StatusNotFound}
	case errors.Is(err, authority.ErrUnknown):
		p = problem{Title: "The Brand has no such grant, or it does not hold that", Status: http.StatusNotFound}
	case errors.Is(err, signing.ErrUnavailable), errors.Is(err, authority.ErrTrail), tenants.Unavailable(err):
		w.Header().Set("Retry-After", "5")
		p = problem{Title: "Try again in a moment", Status: http.StatusServiceUnavailable, Detail: "Nothing has changed."}
	}
	if p.Status >= http.StatusInternalServerError {
		h.Log.ErrorContext(r.Context(), "admin call failed", "route", r.Pattern, "error", err)
	}
	p.Type = "about:blank"
	write(w, p.Status, "application/problem+json", p)
}

// refused is what the state of things does not allow; empty: something else.
func refused(err error) string {
	for sentinel, say := range map[error]string{
		tenants.ErrClosed:          "The Brand is closed, and that is final",
		tenants.ErrLive:            "People log in through this connection",
		tenants.ErrConnectionMoved: "The login connections changed meanwhile",
		tenants.ErrLastDomain:      "This is the Brand's last proven domain",
		tenants.ErrChangeOver:      "The change has been decided, or its time is over",
		tenants.ErrChangeStale:     "What it was asked about has changed since",
		tenants.ErrTooMany:         "Too many changes wait for an owner already",
		tenants.ErrTooManyWebhooks: "Too many webhook endpoints are on already",
		tenants.ErrMember:          "Is a member of the Brand already",
		tenants.ErrOwnPage:         "The Brand's own login page posts to people's pages alone; look at it with check",
		tenants.ErrTooTrying:       "Too many test logins wait already",
		tenants.ErrNotHeld:         "The membership does not rest",
		tenants.ErrBrandTaken:      "Another Brand has this id",
		tenants.ErrHaveDomain:      "The Brand has added this domain already",
		tenants.ErrOnCard:          "The scope is on the card",
		tenants.ErrNotPaused:       "The Brand is not paused",
		tenants.ErrSameKeys:        "The signing keys are as wished",
		tenants.ErrHookOn:          "The webhook endpoint is on already",
		signing.ErrNoNext:          "The key is no next key",
		events.ErrOff:              "The endpoint is off; enable it first",
	} {
		if errors.Is(err, sentinel) {
			return say
		}
	}
	return ""
}

// missing is what the Brand does not have; another Brand's is not there either.
func missing(err error) string {
	for sentinel, say := range map[error]string{
		tenants.ErrNoScope:      "The Brand has no such scope",
		tenants.ErrNoDetailType: "The Brand has no such type of authorization details",
		tenants.ErrNoDomain:     "The Brand has not added this domain",
		tenants.ErrNoConnection: "The Brand has no such login connection",
		tenants.ErrNoLogin:      "The Brand has no such login connection",
		tenants.ErrNoLogo:       "The Brand has no logo",
		tenants.ErrNoChange:     "The Brand has no such change",
		tenants.ErrNoWebhook:    "The Brand has no such webhook endpoint",
		tenants.ErrNotMember:    "The Brand has no such member",
		tenants.ErrNoInvitation: "The Brand has no such open invitation",
		tenants.ErrNoTrial:      "The Brand has no such test login",
		tenants.ErrNoRecovery:   "No such recovery is under way at the Brand",

		tenants.ErrNoAgentEndpoint: "The Brand has not said where its agent is",
		events.ErrNoDelivery:       "There is no such delivery, or it is under way",
	} {
		if errors.Is(err, sentinel) {
			return say
		}
	}
	return ""
}

func write(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// read decodes a small JSON body strictly: a misspelt member is a mistake to be
// told, not to be passed over.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	return readUpTo(w, r, into, 64<<10)
}

func readUpTo(w http.ResponseWriter, r *http.Request, into any, largest int64) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return problem{Title: "Send JSON", Status: http.StatusUnsupportedMediaType}
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largest))
	if err != nil {
		return problem{Title: "The body breaks off, or is larger than " + strconv.FormatInt(largest>>10, 10) + " KiB", Status: http.StatusBadRequest}
	}
	return decode(raw, into)
}

func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return problem{Title: "The body is not what is expected here", Status: http.StatusBadRequest, Detail: misread(err)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problem{Title: "The body goes on after its end", Status: http.StatusBadRequest}
	}
	return nil
}

// misread says where a body is wrong, as far as that can be said without
// repeating it.
func misread(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "Member " + wrong.Field + " should be " + wrong.Type.String() + "."
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok && len(name) < 100 {
		return "There is no member " + name + "."
	}
	return "It is not one JSON object."
}

// nothing refuses a body where none is expected: whoever sends one means more
// than would be done.
func nothing(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1))
	if err != nil || len(body) > 0 {
		return problem{Title: "Send no body here", Status: http.StatusBadRequest, Detail: "Nothing has changed."}
	}
	return nil
}
