package api

import (
	"net/http"
	"time"

	"countersign.dev/tenants"
)

// knownAgent is an agent as it stands at the Brand.
type knownAgent struct {
	Issuer       string    `json:"issuer"`
	Name         string    `json:"name"` // as it calls itself
	KeysURL      string    `json:"jwks_uri"`
	RegisteredAt time.Time `json:"registered_at"`
	Discovered   bool      `json:"discovered"` // nobody registered it: it may ask at open Brands only
	Test         bool      `json:"test"`
	Enabled      bool      `json:"enabled"` // by the operator, everywhere
	Listed       *bool     `json:"allowed"` // by name; null: the Brand's rule decides
	May          bool      `json:"may"`     // all of it together: it may ask at the Brand now
	Logo         string    `json:"logo"`    // hash of its picture, of its own choice; empty: none
}

type knownReply struct {
	Agents []knownAgent `json:"agents"`
	Next   string       `json:"next,omitempty"`
}

// knownAgents is GET agents/known: all that the dashboard lists, by their issuers.
func (h *Handler) knownAgents(w http.ResponseWriter, r *http.Request, c caller) error {
	limit, err := pageSize(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	all, err := tenants.AgentsAt(r.Context(), h.DB, c.ID, q.Get("search"), q.Get("cursor"), limit+1)
	if err != nil {
		return err
	}
	out := knownReply{Agents: []knownAgent{}}
	for i, a := range all {
		if i == limit {
			out.Next = all[i-1].Issuer
			break
		}
		out.Agents = append(out.Agents, knownAgent(a))
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}
