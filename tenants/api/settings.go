package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"countersign.dev/tenants"
)

// settingsReply is everything a Brand sets at once, and what of it is not done.
type settingsReply struct {
	ID string `json:"id"`
	tenants.Settings
	State  string `json:"state"`  // active or paused
	Proven bool   `json:"proven"` // until then only test agents work with it
	Logo   string `json:"logo"`   // hash of the picture; empty: none
}

func (h *Handler) getSettings(w http.ResponseWriter, r *http.Request, c caller) error {
	s, err := tenants.SettingsOf(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	return h.replySettings(w, r, c, s)
}

func (h *Handler) replySettings(w http.ResponseWriter, r *http.Request, c caller, s tenants.Settings) error {
	h.Brands.Forget(c.ID)
	b, err := h.Brands.Brand(r.Context(), c.ID)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", settingsReply{
		ID: string(c.ID), Settings: s, State: string(b.State), Proven: b.Proven, Logo: b.Logo,
	})
	return nil
}

// patchSettings changes the members that are named, and no others. That more
// agents may ask is only asked for, and by itself; so is another rule of signing keys.
func (h *Handler) patchSettings(w http.ResponseWriter, r *http.Request, c caller) error {
	raw, err := body(w, r)
	if err != nil {
		return err
	}
	now, err := tenants.SettingsOf(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	switch rule, alone := tenants.Widens(now, raw); {
	case rule != "" && alone:
		p, err := h.Asks.AskRule(r.Context(), c.edit, c.ID, rule, c.key, "api")
		return h.asked(w, p, err)
	case rule != "":
		return tenants.Widening()
	}
	if rule, alone := tenants.KeyRuleIn(now, raw); alone { // with more, ChangeSettings refuses it
		p, err := h.Asks.AskKeyRule(r.Context(), c.edit, h.Site, c.ID, *rule, c.key, "api")
		return h.asked(w, p, err)
	}
	s, err := tenants.ChangeSettings(r.Context(), c.edit, h.Site, c.ID, func(s *tenants.Settings) error {
		return decode(raw, s)
	})
	if err != nil {
		return err
	}
	return h.replySettings(w, r, c, s)
}

func (h *Handler) pause(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := tenants.Stop(r.Context(), c.edit, c.ID); err != nil {
		return err
	}
	return h.getSettings(w, r, c)
}

// resume asks an owner: to stop is anybody's, to go on may be what an attacker
// waits for.
func (h *Handler) resume(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := h.Asks.AskResume(r.Context(), c.edit, c.ID, c.key, "api")
	return h.asked(w, p, err)
}

// putLogo takes the bytes of a picture as they are.
func (h *Handler) putLogo(w http.ResponseWriter, r *http.Request, c caller) error {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, tenants.LargestLogo+1))
	if _, large := errors.AsType[*http.MaxBytesError](err); err != nil && !large {
		return problem{Title: "The body breaks off", Status: http.StatusBadRequest}
	}
	if err := tenants.SetLogo(r.Context(), c.edit, c.ID, raw); err != nil {
		return err
	}
	return h.getSettings(w, r, c)
}

func (h *Handler) deleteLogo(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := tenants.RemoveLogo(r.Context(), c.edit, c.ID); err != nil {
		return err
	}
	return h.getSettings(w, r, c)
}

// scopeReply is a scope as it stands; a retired one is not on the card.
type scopeReply struct {
	ID string `json:"id"`
	scopeBody
	RetiredAt *time.Time `json:"retired_at"`
}

type scopeBody struct {
	Description string                       `json:"description"`
	Effect      string                       `json:"effect"`
	Impact      string                       `json:"impact"`
	Undo        string                       `json:"undo"`
	Texts       map[string]tenants.ScopeText `json:"texts"`
}

type scopesReply struct {
	Scopes []scopeReply `json:"scopes"`
}

func (h *Handler) listScopes(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := tenants.Scopes(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	out := scopesReply{Scopes: make([]scopeReply, len(all))}
	for i, s := range all {
		out.Scopes[i] = scopeReply{s.ID, scopeBody{s.Description, s.Effect, s.Impact, s.Undo, s.Texts}, s.RetiredAt}
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

func (h *Handler) putScope(w http.ResponseWriter, r *http.Request, c caller) error {
	var b scopeBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	s := tenants.Scope{ID: r.PathValue("scope"), Description: b.Description, Effect: b.Effect, Impact: b.Impact, Undo: b.Undo, Texts: b.Texts}
	if err := tenants.SaveScope(r.Context(), c.edit, c.ID, s); err != nil {
		return err
	}
	return h.listScopes(w, r, c)
}

type orderBody struct {
	Order []string `json:"order"`
}

func (h *Handler) orderScopes(w http.ResponseWriter, r *http.Request, c caller) error {
	var b orderBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := tenants.OrderScopes(r.Context(), c.edit, c.ID, b.Order); err != nil {
		return err
	}
	return h.listScopes(w, r, c)
}

func (h *Handler) retireScope(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := tenants.RetireScope(r.Context(), c.edit, c.ID, r.PathValue("scope")); err != nil {
		return err
	}
	return h.listScopes(w, r, c)
}

// restoreScope asks an owner: grants that held it hold it again.
func (h *Handler) restoreScope(w http.ResponseWriter, r *http.Request, c caller) error {
	p, err := h.Asks.AskRestore(r.Context(), c.edit, c.ID, r.PathValue("scope"), c.key, "api")
	return h.asked(w, p, err)
}

// body reads a small JSON body; decode takes it apart, strictly.
func body(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	var raw json.RawMessage
	err := read(w, r, &raw)
	return raw, err
}
