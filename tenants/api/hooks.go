package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/events"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// hookView is an endpoint without its secret, which only an owner is ever shown.
type hookView struct {
	ID      string   `json:"id"`
	URL     string   `json:"url"`
	Events  []string `json:"events"`
	Format  string   `json:"format"` // json, or set: a Security Event Token (RFC 8417)
	Enabled bool     `json:"enabled"`
	Note    string   `json:"note"` // why it is not enabled
	// FormerUntil is how long the former secret signs too, after a rotation.
	FormerUntil *time.Time `json:"former_secret_until"`
	CreatedAt   time.Time  `json:"created_at"`
}

type hooksReply struct {
	Webhooks []hookView `json:"webhooks"`
}

func (h *Handler) listHooks(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := tenants.Webhooks(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	out := hooksReply{Webhooks: make([]hookView, len(all))}
	for i, one := range all {
		out.Webhooks[i] = hookView(one)
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

// createHook asks an owner: events name the Brand's users, and must not go where
// a stolen API key wants them.
func (h *Handler) createHook(w http.ResponseWriter, r *http.Request, c caller) error {
	var d tenants.WebhookDraft
	if err := read(w, r, &d); err != nil {
		return err
	}
	p, err := h.Asks.AskWebhook(r.Context(), c.edit, h.Site, c.ID, d, c.key, "api")
	return h.asked(w, p, err)
}

func (h *Handler) rotateHook(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := h.Asks.AskWebhookSecret(r.Context(), c.edit, c.ID, r.PathValue("id"), c.key, "api")
	return h.asked(w, p, err)
}

// disableHook waits for nobody: whoever suspects its receiver must be able to stop
// it.
func (h *Handler) disableHook(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := tenants.EnableWebhook(r.Context(), c.edit, c.ID, r.PathValue("id"), false, ""); err != nil {
		return err
	}
	return h.listHooks(w, r, c)
}

// enableHook asks an owner: why it was stopped, this key may not know.
func (h *Handler) enableHook(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := h.Asks.AskWebhookOn(r.Context(), c.edit, c.ID, r.PathValue("id"), c.key, "api")
	return h.asked(w, p, err)
}

type sentReply struct {
	Webhook string `json:"webhook"`
	Event   string `json:"event"`
}

// testHook sends the one endpoint a test, whatever events it wants; what came of
// it stands among its deliveries.
func (h *Handler) testHook(w http.ResponseWriter, r *http.Request, c caller) error {
	id := r.PathValue("id")
	if err := nothing(w, r); err != nil {
		return err
	}
	if err := h.Outbox.SendTest(r.Context(), h.Authority, c.ID, id, c.by()); err != nil {
		return err
	}
	write(w, http.StatusAccepted, "application/json", sentReply{id, authority.EventTest})
	return nil
}

// deliveryView is one event's way to one endpoint.
type deliveryView struct {
	ID         uuid.UUID  `json:"id"` // the webhook-id
	Endpoint   string     `json:"webhook"`
	Seq        int64      `json:"seq"` // the event's place in the trail
	Event      string     `json:"event"`
	State      string     `json:"state"` // pending, delivered or dead
	Attempts   int        `json:"attempts"`
	DueAt      time.Time  `json:"due_at"`
	LastAt     *time.Time `json:"last_at"`
	LastStatus *int       `json:"last_status"` // null: no answer came
	LastError  string     `json:"last_error"`
}

type deliveriesReply struct {
	Deliveries []deliveryView `json:"deliveries"`
	Next       string         `json:"next,omitempty"`
}

func (h *Handler) listDeliveries(w http.ResponseWriter, r *http.Request, c caller) error {
	limit, err := pageSize(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	which := events.Which{Endpoint: r.PathValue("id"), State: q.Get("state")}
	if raw := q.Get("cursor"); raw != "" {
		if which.Before, err = strconv.ParseInt(raw, 10, 64); err != nil || which.Before < 1 {
			return problem{Title: "cursor is next of the page before", Status: http.StatusBadRequest}
		}
	}
	all, err := events.Some(r.Context(), h.DB, c.ID, which, limit+1)
	if err != nil {
		return err
	}
	out := deliveriesReply{Deliveries: []deliveryView{}}
	for i, d := range all {
		if i == limit {
			out.Next = strconv.FormatInt(all[i-1].Seq, 10)
			break
		}
		out.Deliveries = append(out.Deliveries, deliveryView(d))
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

type replayBody struct {
	// Delivery is its id; empty: all dead ones of the endpoint.
	Delivery string `json:"delivery"`
}

type replayedReply struct {
	Replayed int `json:"replayed"`
}

func (h *Handler) replay(w http.ResponseWriter, r *http.Request, c caller) error {
	var b replayBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	n, err := h.resend(r.Context(), c, r.PathValue("id"), b.Delivery)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", replayedReply{n})
	return nil
}

func (h *Handler) resend(ctx context.Context, c caller, endpoint, delivery string) (int, error) {
	if delivery == "" {
		return h.Outbox.Replay(ctx, c.ID, endpoint)
	}
	if _, err := uuid.Parse(delivery); err != nil {
		return 0, events.ErrNoDelivery
	}
	return h.Outbox.Replay(ctx, c.ID, delivery)
}
