package api

import (
	"context"
	"net/http"

	"countersign.dev/tenants"
	"countersign.dev/web"
)

// Application is an agent's own request to be registered with the service.
type Application struct {
	Issuer  string `json:"issuer"`
	JWKSURI string `json:"jwks_uri"` // on the issuer's own host
	Name    string `json:"name"`
	Contact string `json:"contact"` // for the operator: an e-mail address or a URL
	// Logo is a picture, in base64: PNG, JPEG, WebP or GIF, up to 1 MiB. Empty: none.
	Logo []byte `json:"logo,omitempty"`
}

// largestApplication has room for a picture, in base64.
const largestApplication = 64<<10 + (tenants.LargestLogo+2)/3*4

// Apply keeps an application that the pa-jwt proves. what is empty where it is
// kept; otherwise it says why not, to be read by the agent's people.
type Apply func(ctx context.Context, a Application, token string) (what string, err error)

type applied struct {
	State string `json:"state"` // pending: the operator decides
}

// applyAgent is open to everybody: the pa-jwt, which names our own origin as its
// audience, is the proof.
func (h *Handler) applyAgent(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	wait, ok := h.applications.Take(h.Addresses.Of(r))
	if ok { // what an address has used up costs the others nothing
		wait, ok = h.allApplications.Take("")
	}
	if !ok {
		web.RetryAfter(w, wait)
		h.fail(w, r, problem{Title: "Too many applications at once", Status: http.StatusTooManyRequests})
		return
	}
	var a Application
	err := readUpTo(w, r, &a, largestApplication)
	if err == nil {
		var what string
		if what, err = h.Apply(r.Context(), a, bearer(r)); err == nil && what != "" {
			err = problem{Title: "The application is not taken", Status: http.StatusUnprocessableEntity, Detail: what}
		}
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	write(w, http.StatusAccepted, "application/json", applied{"pending"})
}

var applyRoute = route{
	method: http.MethodPost, path: "agents", says: "An agent asks to be registered; its pa-jwt, for our origin as audience, is the proof",
	takes:  Application{"https://agent.example", "https://agent.example/jwks.json", "Aria", "ops@agent.example", []byte("\x89PNG…")},
	status: http.StatusAccepted, gives: applied{"pending"},
}

// Recognise returns the issuer of the registered agent whose pa-jwt, for our own
// origin, this is; empty where it is none. An error is no verdict.
type Recognise func(ctx context.Context, token string) (issuer string, err error)

type audiencesReply struct {
	Audiences []tenants.AudienceAt `json:"audiences"`
	Next      string               `json:"next,omitempty"`
}

// audiences tells a registered agent what to name in aud, at every Brand at which
// it may act (wire.md M3).
func (h *Handler) audiences(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	out, err := h.audiencesOf(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	write(w, http.StatusOK, "application/json", out)
}

func (h *Handler) audiencesOf(r *http.Request) (audiencesReply, error) {
	issuer, err := h.Recognise(r.Context(), bearer(r))
	if err != nil {
		return audiencesReply{}, err
	}
	if issuer == "" {
		return audiencesReply{}, problem{
			Title: "No pa-jwt of a registered agent", Status: http.StatusUnauthorized,
			Detail: "Its aud is " + h.Site.PublicURL + ", as in an application.",
		}
	}
	limit, err := pageSize(r)
	if err != nil {
		return audiencesReply{}, err
	}
	all, err := tenants.Audiences(r.Context(), h.DB, issuer, true, tenants.BrandID(r.URL.Query().Get("cursor")), limit+1)
	if err != nil {
		return audiencesReply{}, err
	}
	out := audiencesReply{Audiences: append([]tenants.AudienceAt{}, all...)}
	if len(all) > limit {
		out.Audiences = out.Audiences[:limit]
		out.Next = string(out.Audiences[limit-1].Brand)
	}
	return out, nil
}

var audiencesRoute = route{
	method: http.MethodGet, path: "agents/audiences", says: "What an agent names in aud, at every Brand at which it may act; its pa-jwt, for our origin as audience, says who it is",
	pages: true, status: http.StatusOK,
	gives: audiencesReply{Audiences: []tenants.AudienceAt{{
		Provider: "Harbor Hotels", Audience: "urn:countersign:provider:harbor-hotel", Brand: "harbor-hotel", Name: "Harbor Hotel",
		InterfaceURL: "https://agents.hotel.example", Enabled: true,
	}}},
}
