package api

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"countersign.dev/authority/signing"
)

// keyView is a key as the API shows it. It has no private half to show.
type keyView struct {
	KID       string     `json:"kid"`
	State     string     `json:"state"` // next, current, retired, revoked
	Alg       string     `json:"alg"`
	Backend   string     `json:"backend"`
	CreatedAt time.Time  `json:"created_at"`
	ChangedAt time.Time  `json:"changed_at"`
	SignsFrom *time.Time `json:"signs_from,omitempty"` // of a next key, at the earliest
	Reason    *string    `json:"reason,omitempty"`     // of a revoked key
}

type keysReply struct {
	Keys []keyView `json:"keys"`
}

func view(k signing.KeyInfo) keyView {
	v := keyView{
		KID: k.KID, State: k.State, Alg: string(k.Alg), Backend: k.Backend,
		CreatedAt: k.CreatedAt.UTC(), ChangedAt: k.ChangedAt.UTC(), Reason: k.Reason,
	}
	if k.State == "next" {
		from := k.SignsFrom().UTC()
		v.SignsFrom = &from
	}
	return v
}

// keys are the Brand's as this caller changes them: the trail says who, and every
// owner hears of a key that is revoked.
func (h *Handler) keys(c caller) *signing.Keys {
	return h.Keys.Noted(h.Authority.NoteKeysTelling(c.by(), c.asker()))
}

func (h *Handler) listKeys(w http.ResponseWriter, r *http.Request, c caller) error {
	keys, err := h.Keys.List(r.Context(), c.ID)
	if err != nil {
		return err
	}
	views := make([]keyView, len(keys))
	for i, k := range keys {
		views[i] = view(k)
	}
	write(w, http.StatusOK, "application/json", keysReply{views})
	return nil
}

// rotateKey asks an owner: what the Brand's tokens are signed with is theirs.
func (h *Handler) rotateKey(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := h.Keys.AskNext(r.Context(), h.Asks, c.edit, c.ID, c.key, "api")
	return h.asked(w, p, err)
}

func (h *Handler) retireKey(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := h.Keys.AskRetire(r.Context(), h.Asks, c.edit, c.ID, r.PathValue("kid"), c.key, "api")
	return h.asked(w, p, err)
}

// revokeKey waits for nobody. Whoever learns that a key is in other hands must be
// able to end it in that minute: a false alarm costs each agent one refresh, a late
// one whatever a thief signs. So that nobody does it unseen, every owner hears of it.
func (h *Handler) revokeKey(w http.ResponseWriter, r *http.Request, c caller) error {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := read(w, r, &body); err != nil {
		return err
	}
	const longest = 200
	if body.Reason = strings.TrimSpace(body.Reason); body.Reason == "" || len(body.Reason) > longest {
		return problem{
			Title: "Say why, in up to 200 bytes", Status: http.StatusUnprocessableEntity,
			Detail: "The reason stands in the public archive of keys.",
		}
	}
	err := h.keys(c).Revoke(r.Context(), c.ID, r.PathValue("kid"), body.Reason, h.Policy(c.Brand))
	if errors.Is(err, signing.ErrNoSuccessor) {
		// It is revoked; the list shows that no key is current.
		h.Log.ErrorContext(r.Context(), "ALARM: no key signs for a Brand", "brand", string(c.ID), "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	return h.listKeys(w, r, c)
}
