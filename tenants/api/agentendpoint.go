package api

import (
	"net/http"

	"countersign.dev/tenants"
)

func (h *Handler) getAgentEndpoint(w http.ResponseWriter, r *http.Request, c caller) error {
	e, err := tenants.AgentEndpointOf(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", e)
	return nil
}

type urlBody struct {
	URL string `json:"url"`
}

// putAgentEndpoint asks an owner: what people say to the Brand must not go, and
// its answers not come, where a stolen API key wants it.
func (h *Handler) putAgentEndpoint(w http.ResponseWriter, r *http.Request, c caller) error {
	var b urlBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	p, err := h.Asks.AskAgentEndpoint(r.Context(), c.edit, h.Site, c.ID, b.URL, c.key, "api")
	return h.asked(w, p, err)
}

func (h *Handler) rotateAgentSecret(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := h.Asks.AskAgentSecret(r.Context(), c.edit, c.ID, c.key, "api")
	return h.asked(w, p, err)
}

// triedReply is what came of a test call.
type triedReply struct {
	OK           bool   `json:"ok"`
	Milliseconds int64  `json:"milliseconds"`
	Text         string `json:"text"`  // what the agent said
	Wrong        string `json:"wrong"` // and what is wrong with it
}

func (h *Handler) checkAgent(w http.ResponseWriter, r *http.Request, c caller) error {
	t, err := h.TryAgent(r.Context(), c.ID)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", triedReply{
		OK: t.Wrong == "", Milliseconds: t.Took.Milliseconds(), Text: t.Text, Wrong: t.Wrong,
	})
	return nil
}
