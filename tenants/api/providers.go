package api

import (
	"net/http"

	"countersign.dev/tenants"
)

type providersReply struct {
	Providers []tenants.ProviderView `json:"providers"`
}

type providerBody struct {
	Name     string `json:"name"`
	Audience string `json:"audience"` // only where it is made; empty: a name of its own
}

func (h *Handler) listProviders(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := tenants.ProvidersOf(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", providersReply{append([]tenants.ProviderView{}, all...)})
	return nil
}

func (h *Handler) nameProvider(w http.ResponseWriter, r *http.Request, c caller) error {
	var b providerBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	if err := tenants.OwnAudience(c.ID, b.Audience); err != nil {
		return err
	}
	if err := tenants.NameProvider(r.Context(), c.edit, h.Site, c.ID, b.Name, b.Audience); err != nil {
		return err
	}
	return h.listProviders(w, r, c)
}
