package api

import (
	"net/http"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/web/alike"
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
	// Host is the issuer's as machines compare it, and Drawn as some browsers draw it
	// where that differs.
	Host  string `json:"host"`
	Drawn string `json:"drawn"`
	// AlikeBrand: its name reads like the Brand's, or its host is drawn like one of the
	// Brand's. AlikeAgents are the issuers of others whose hosts it can be taken for.
	AlikeBrand  bool     `json:"alike_brand"`
	AlikeAgents []string `json:"alike_agents"`
}

// mostCompared is among how many agents look-alikes are searched, as on the dashboard.
const mostCompared = 1000

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
	others, err := tenants.AgentsAt(r.Context(), h.DB, c.ID, "", "", mostCompared)
	if err != nil {
		return err
	}
	brand, agents := faces(c.Brand, others)
	out := knownReply{Agents: []knownAgent{}}
	for i, a := range all {
		if i == limit {
			out.Next = all[i-1].Issuer
			break
		}
		host := alike.HostOf(a.Issuer)
		drawn, differs := alike.Drawn(host)
		if !differs {
			drawn = ""
		}
		out.Agents = append(out.Agents, knownAgent{
			Issuer: a.Issuer, Name: a.Name, KeysURL: a.KeysURL, RegisteredAt: a.RegisteredAt, Discovered: a.Discovered, Test: a.Test,
			Enabled: a.Enabled, Listed: a.Listed, May: a.May, Logo: a.Logo, Host: alike.Host(host), Drawn: drawn,
			AlikeBrand:  len(brand.LikeName(a.Name))+len(brand.LikeHost(host)) > 0,
			AlikeAgents: append([]string{}, agents.LikeHost(host)...),
		})
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

// faces are what agents are held against: the Brand, and the other agents.
func faces(b *tenants.Brand, all []tenants.AgentView) (brand, agents alike.Crowd) {
	brand.Named(string(b.ID), b.Name)
	brand.At(string(b.ID), alike.HostOf(b.InterfaceURL))
	if b.Domain != "" {
		brand.At(string(b.ID), b.Domain)
	}
	for _, a := range all {
		agents.At(a.Issuer, alike.HostOf(a.Issuer))
	}
	return brand, agents
}
