package api

import (
	"net/http"

	"countersign.dev/tenants"
)

// trialReply is a test login, and where a browser goes for it.
type trialReply struct {
	tenants.Trial
	URL string `json:"url,omitempty"`
}

// tryLogin begins a test login. What the provider says of whoever goes there is
// shown to them alone: this key learns whether it worked,
// and which claims were named, without their values.
func (h *Handler) tryLogin(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := nothing(w, r); err != nil {
		return err
	}
	id, err := named(r, tenants.ErrNoConnection)
	if err != nil {
		return err
	}
	t, to, err := h.Trials.Start(r.Context(), c.ID, id)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", trialReply{t, to})
	return nil
}

func (h *Handler) getTrial(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := named(r, tenants.ErrNoTrial)
	if err != nil {
		return err
	}
	t, err := tenants.TrialOf(r.Context(), h.DB, c.ID, id, h.Now())
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", t)
	return nil
}

var exampleTrial = tenants.Trial{
	ID: exampleID, Connection: exampleID, State: "good", Claims: []string{"email", "sub"}, Subject: true,
	BeganAt: exampleTime, EndsAt: exampleTime.Add(tenants.TrialLife), DoneAt: &exampleTime,
}
