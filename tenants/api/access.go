package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
)

type apiKeyReply struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Rights    []tenants.Right `json:"rights"`
	CreatedAt time.Time       `json:"created_at"`
	RevokedAt *time.Time      `json:"revoked_at"` // may lie ahead, after a rotation
	// LastUsedAt is to the minute; null: it has opened nothing yet.
	LastUsedAt *time.Time `json:"last_used_at"`
}

type apiKeysReply struct {
	Keys []apiKeyReply `json:"api_keys"`
}

func (h *Handler) listAPIKeys(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := tenants.APIKeys(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	out := apiKeysReply{Keys: make([]apiKeyReply, len(all))}
	for i, k := range all {
		out.Keys[i] = apiKeyReply(k)
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

// createAPIKey asks an owner, who is shown the key.
func (h *Handler) createAPIKey(w http.ResponseWriter, r *http.Request, c caller) error {
	var d tenants.KeyDraft
	if err := read(w, r, &d); err != nil {
		return err
	}
	p, err := h.Asks.AskKey(r.Context(), c.edit, c.ID, d, c.key, "api")
	return h.asked(w, p, err)
}

func (h *Handler) rotateAPIKey(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := h.Asks.AskRotation(r.Context(), c.edit, c.ID, r.PathValue("id"), c.key, "api")
	return h.asked(w, p, noKey(err))
}

// revokeAPIKey waits for nobody: whoever suspects a key must be able to end it.
func (h *Handler) revokeAPIKey(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := tenants.EndAPIKey(r.Context(), c.edit, c.ID, r.PathValue("id")); err != nil {
		return noKey(err)
	}
	return h.listAPIKeys(w, r, c)
}

// noKey tells a key that is spoken of from the one that the caller bears.
func noKey(err error) error {
	if errors.Is(err, tenants.ErrBadKey) {
		return problem{Title: "The Brand has no such API key", Status: http.StatusNotFound}
	}
	return err
}

type agentReply struct {
	Issuer  string    `json:"issuer"`
	Allowed bool      `json:"allowed"`
	NotedAt time.Time `json:"noted_at"`
}

type agentsReply struct {
	Agents []agentReply `json:"agents"`
	Next   string       `json:"next,omitempty"`
}

func (h *Handler) listAgents(w http.ResponseWriter, r *http.Request, c caller) error {
	limit, err := pageSize(r)
	if err != nil {
		return err
	}
	all, err := tenants.ListedAgents(r.Context(), h.DB, c.ID, r.URL.Query().Get("cursor"), limit+1)
	if err != nil {
		return err
	}
	out := agentsReply{Agents: []agentReply{}}
	for i, a := range all {
		if i == limit {
			out.Next = all[i-1].Issuer
			break
		}
		out.Agents = append(out.Agents, agentReply(a))
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

type agentBody struct {
	Issuer string `json:"issuer"`
	// Allowed: true or false, or null to leave the agent to the Brand's rule.
	Allowed *bool `json:"allowed"`
}

func (h *Handler) setAgent(w http.ResponseWriter, r *http.Request, c caller) error {
	var b agentBody
	err := read(w, r, &b)
	switch {
	case err != nil:
	case b.Allowed == nil:
		err = tenants.UnlistAgent(r.Context(), c.edit, c.ID, b.Issuer)
	default:
		err = tenants.ListAgent(r.Context(), c.edit, c.ID, b.Issuer, *b.Allowed)
	}
	if err != nil {
		return err
	}
	return h.listAgents(w, r, c)
}

type changesReply struct {
	Changes []tenants.PendingChange `json:"changes"`
	Next    string                  `json:"next,omitempty"`
}

func (h *Handler) listChanges(w http.ResponseWriter, r *http.Request, c caller) error {
	limit, err := pageSize(r)
	if err != nil {
		return err
	}
	before := uuid.Nil
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if before, err = uuid.Parse(cursor); err != nil {
			return problem{Title: "The cursor is none of ours", Status: http.StatusBadRequest}
		}
	}
	all, err := h.Asks.Changes(r.Context(), c.ID, before, limit+1)
	if err != nil {
		return err
	}
	out := changesReply{Changes: []tenants.PendingChange{}}
	for i, change := range all {
		if i == limit {
			out.Next = all[i-1].ID.String()
			break
		}
		out.Changes = append(out.Changes, change)
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

func (h *Handler) getChange(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := named(r, tenants.ErrNoChange)
	if err != nil {
		return err
	}
	change, err := h.Asks.Change(r.Context(), c.ID, id)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", change)
	return nil
}

// withdrawChange takes a change back. Applying one is for an owner alone.
func (h *Handler) withdrawChange(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := named(r, tenants.ErrNoChange)
	if err == nil {
		_, err = h.Asks.Change(r.Context(), c.ID, id)
	}
	if err == nil {
		err = h.Asks.Reject(r.Context(), c.edit, c.ID, id, c.key)
	}
	if err != nil {
		return err
	}
	return h.getChange(w, r, c)
}

// pageSize reads how many a page holds.
func pageSize(r *http.Request) (int, error) {
	const usual, most = 50, 200
	raw := r.URL.Query().Get("limit")
	if raw == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(raw)
	if err != nil || n < 1 || n > most {
		return 0, problem{Title: "limit is a number from 1 to 200", Status: http.StatusBadRequest}
	}
	return n, nil
}
