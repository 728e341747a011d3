package api

import (
	"encoding/json"
	"net/http"

	"countersign.dev/tenants"
)

// detailTypeReply is a type of authorization_details as it stands.
type detailTypeReply struct {
	Type string `json:"type"`
	detailTypeBody
}

type detailTypeBody struct {
	Scope  string            `json:"scope"`
	Schema json.RawMessage   `json:"schema"`
	Words  string            `json:"words"`
	Texts  map[string]string `json:"texts"`
}

type detailTypesReply struct {
	DetailTypes []detailTypeReply `json:"detail_types"`
}

func (h *Handler) listDetailTypes(w http.ResponseWriter, r *http.Request, c caller) error {
	all, err := tenants.DetailTypes(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	out := detailTypesReply{DetailTypes: make([]detailTypeReply, len(all))}
	for i, t := range all {
		out.DetailTypes[i] = detailTypeReply{t.Type, detailTypeBody{t.Scope, t.Schema, t.Words, t.Texts}}
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

func (h *Handler) putDetailType(w http.ResponseWriter, r *http.Request, c caller) error {
	var b detailTypeBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	t := tenants.DetailType{Type: r.PathValue("type"), Scope: b.Scope, Schema: b.Schema, Words: b.Words, Texts: b.Texts}
	if err := tenants.SaveDetailType(r.Context(), c.edit, c.ID, t); err != nil {
		return err
	}
	return h.listDetailTypes(w, r, c)
}

func (h *Handler) deleteDetailType(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := tenants.RemoveDetailType(r.Context(), c.edit, c.ID, r.PathValue("type")); err != nil {
		return err
	}
	return h.listDetailTypes(w, r, c)
}
