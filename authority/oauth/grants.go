package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"countersign.dev/authority"
	"github.com/google/uuid"
)

// grantView is what Grant Management for OAuth 2.0 (draft 03, §6.4) shows of a
// grant, and how long it lives. Of a person nothing but what the agent knows.
type grantView struct {
	Scopes    []grantScopes     `json:"scopes"`
	Details   []json.RawMessage `json:"authorization_details,omitempty"`
	CreatedAt time.Time         `json:"created_at"`
	ExpiresAt time.Time         `json:"expires_at"`
}

// grantScopes are scopes that belong together: with us, all of a grant.
type grantScopes struct {
	Scope     string   `json:"scope"`
	Resources []string `json:"resources"`
}

// queryGrant is GET {issuer}/grants/{grant_id}: the living grant as far as the
// card still offers it. While the Brand is paused it is 503: nothing is lost.
func (h *Handler) queryGrant(w http.ResponseWriter, r *http.Request, c call) {
	id, err := grantID(r)
	var g authority.Grant
	if err == nil {
		g, err = h.authority.GrantOfAgent(r.Context(), c.brand, c.who, id)
	}
	if err != nil {
		h.failGrant(w, r, err)
		return
	}
	view := grantView{Scopes: []grantScopes{}, Details: g.Details.Values(), CreatedAt: g.CreatedAt.UTC(), ExpiresAt: g.ExpiresAt.UTC()}
	if len(g.Scopes) > 0 {
		view.Scopes = append(view.Scopes, grantScopes{Scope: strings.Join(g.Scopes, " "), Resources: []string{c.brand.InterfaceURL}})
	}
	writeJSON(w, http.StatusOK, view)
}

// endGrant is DELETE {issuer}/grants/{grant_id}. It works while the Brand is
// paused and while its user is suspended: what can be ended must always be
// endable. Of several calls one is 204; afterwards the grant is as good as
// unknown, 404, which tells an agent as well that there is nothing left.
func (h *Handler) endGrant(w http.ResponseWriter, r *http.Request, c call) {
	id, err := grantID(r)
	if err == nil {
		err = h.authority.EndByAgent(r.Context(), c.brand.ID, c.who, id)
	}
	if err != nil {
		h.failGrant(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// grantID reads the id as we write it. What we would never write is as unknown
// as any other id.
func grantID(r *http.Request) (uuid.UUID, error) {
	if r.URL.RawQuery != "" {
		return uuid.Nil, invalidRequest("Send no parameters.")
	}
	text := r.PathValue("grant")
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return uuid.Nil, authority.ErrUnknown
	}
	return id, nil
}

// failGrant is fail where an unknown grant is a URL that is not there. It looks
// the same for another's, an ended one and one that never was.
func (h *Handler) failGrant(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, authority.ErrUnknown) {
		w.Header().Set("Cache-Control", "no-store")
		http.NotFound(w, r)
		return
	}
	h.fail(w, r, nil, err)
}
