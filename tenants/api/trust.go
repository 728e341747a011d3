package api

import (
	"net/http"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
)

type domainReply struct {
	Host         string     `json:"host"`
	State        string     `json:"state"`  // waiting, proven, failing or lost
	Token        string     `json:"token"`  // to be published at one of the two
	File         string     `json:"file"`   // as a line of this file,
	Record       string     `json:"record"` // or as a TXT record of this name
	ProvenAt     *time.Time `json:"proven_at"`
	CheckedAt    *time.Time `json:"checked_at"`
	FailingSince *time.Time `json:"failing_since"`
	Trouble      string     `json:"trouble"`
}

type domainsReply struct {
	Domains []domainReply `json:"domains"`
}

type hostBody struct {
	Host string `json:"host"`
}

func (h *Handler) domain(d tenants.Domain) domainReply {
	return domainReply{
		Host: d.Host, State: d.State(h.Now()), Token: d.Token, File: d.FileURL(), Record: d.Record(),
		ProvenAt: d.ProvenAt, CheckedAt: d.CheckedAt, FailingSince: d.FailingSince, Trouble: d.Trouble,
	}
}

func (h *Handler) listDomains(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := tenants.Domains(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	out := domainsReply{Domains: make([]domainReply, len(all))}
	for i, d := range all {
		out.Domains[i] = h.domain(d)
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

// addDomain asks an owner: whoever has a proven domain can come back as an owner by
// it.
func (h *Handler) addDomain(w http.ResponseWriter, r *http.Request, c caller) error {
	var b hostBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	p, err := h.Asks.AskDomain(r.Context(), c.edit, c.ID, b.Host, c.key, "api")
	return h.asked(w, p, err)
}

func (h *Handler) checkDomain(w http.ResponseWriter, r *http.Request, c caller) error {
	d, err := tenants.CheckDomain(r.Context(), h.DB, c.edit, h.Prover, c.ID, r.PathValue("host"))
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", h.domain(d))
	return nil
}

func (h *Handler) removeDomain(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := h.Asks.AskDomainRemoval(r.Context(), c.edit, c.ID, r.PathValue("host"), c.key, "api")
	return h.asked(w, p, err)
}

func (h *Handler) getInterface(w http.ResponseWriter, r *http.Request, c caller) error {
	i, err := tenants.InterfaceOf(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", i)
	return nil
}

type interfaceBody struct {
	Mode     string `json:"mode"`
	URL      string `json:"interface_url"`
	Provider string `json:"provider"`
	Audience string `json:"audience"`
}

// putInterface asks an owner: at another place every grant ends.
func (h *Handler) putInterface(w http.ResponseWriter, r *http.Request, c caller) error {
	var b interfaceBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	want := tenants.Interface{Mode: tenants.Mode(b.Mode), URL: b.URL, Provider: b.Provider, Audience: b.Audience}
	p, err := h.Asks.AskInterface(r.Context(), c.edit, h.Site, c.ID, want, c.key, "api")
	return h.asked(w, p, err)
}

// asked says that the change waits for an owner.
func (h *Handler) asked(w http.ResponseWriter, p tenants.PendingChange, err error) error {
	if err != nil {
		return err
	}
	write(w, http.StatusAccepted, "application/json", p)
	return nil
}

type linesReply struct {
	Lines []tenants.Line `json:"lines"`
}

func (h *Handler) checkInterface(w http.ResponseWriter, r *http.Request, c caller) error {
	write(w, http.StatusOK, "application/json", linesReply{h.ExamineInterface(r.Context(), c.Brand)})
	return nil
}

type connectionsReply struct {
	Connections []tenants.Connection `json:"connections"`
	// JWKS is where the public keys stand with which we authenticate.
	JWKS        string `json:"jwks_uri"`
	RedirectURI string `json:"redirect_uri"` // to be registered at the provider
	// Audience is what an assertion names in aud; one that leads to My agents
	// names AgentsAudience.
	Audience       string `json:"assertion_audience"`
	AgentsAudience string `json:"assertion_agents_audience"`
}

func (h *Handler) listConnections(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := tenants.Connections(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	pages := h.Site.PublicURL + "/b/" + string(c.ID)
	write(w, http.StatusOK, "application/json", connectionsReply{
		Connections: all, JWKS: pages + "/login/jwks.json", RedirectURI: pages + "/callback",
		Audience: pages + "/consent", AgentsAudience: pages + "/agents",
	})
	return nil
}

func (h *Handler) putCandidate(w http.ResponseWriter, r *http.Request, c caller) error {
	var d tenants.ConnectionDraft
	if err := read(w, r, &d); err != nil {
		return err
	}
	if _, err := tenants.SaveCandidate(r.Context(), h.DB, c.edit, h.Sealer, h.Site, c.ID, d); err != nil {
		return err
	}
	return h.listConnections(w, r, c)
}

// named reads an id of the path; what is no id is not there.
func named(r *http.Request, none error) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return uuid.Nil, none
	}
	return id, nil
}

func (h *Handler) checkConnection(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := named(r, tenants.ErrNoConnection)
	if err != nil {
		return err
	}
	l, err := tenants.Candidate(r.Context(), h.DB, h.Sealer, c.ID, id)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", linesReply{h.ExamineLogin(r.Context(), l)})
	return nil
}

func (h *Handler) makeLive(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := named(r, tenants.ErrNoConnection)
	if err != nil {
		return err
	}
	p, err := h.Asks.AskLive(r.Context(), c.edit, c.ID, id, c.key, "api")
	return h.asked(w, p, err)
}

func (h *Handler) removeConnection(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := named(r, tenants.ErrNoConnection)
	if err == nil {
		err = tenants.RemoveConnection(r.Context(), c.edit, c.ID, id)
	}
	if err != nil {
		return err
	}
	return h.listConnections(w, r, c)
}
