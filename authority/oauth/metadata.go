package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// metadataDocument is RFC 8414. It names only what answers.
type metadataDocument struct {
	Issuer                        string   `json:"issuer"`
	DeviceAuthorizationEndpoint   string   `json:"device_authorization_endpoint"`
	TokenEndpoint                 string   `json:"token_endpoint"`
	JWKSURI                       string   `json:"jwks_uri"`
	RevocationEndpoint            string   `json:"revocation_endpoint"`
	IntrospectionEndpoint         string   `json:"introspection_endpoint"`
	ScopesSupported               []string `json:"scopes_supported"`
	DetailTypes                   []string `json:"authorization_details_types_supported,omitempty"` // RFC 9396 §10
	GrantTypesSupported           []string `json:"grant_types_supported"`
	ResponseTypesSupported        []string `json:"response_types_supported"`
	TokenEndpointAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	TokenEndpointAuthSigningAlgs  []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevocationEndpointAuthMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	RevocationEndpointSigningAlgs []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
	IntrospectionAuthMethods      []string `json:"introspection_endpoint_auth_methods_supported"`
	StatusLists                   string   `json:"status_list_aggregation_endpoint"`
	GrantManagementEndpoint       string   `json:"grant_management_endpoint"`
	GrantManagementActions        []string `json:"grant_management_actions_supported"`
	ReceiptLogCheckpoint          string   `json:"receipt_log_checkpoint_uri"` // ours
}

func (h *Handler) metadata(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	scopes := make([]string, len(brand.Scopes))
	for i, s := range brand.Scopes {
		scopes[i] = s.ID
	}
	var types []string
	for _, t := range brand.DetailTypes {
		types = append(types, t.Type)
	}
	algs := []string{string(signing.ES256), string(signing.RS256)}
	body, err := json.Marshal(metadataDocument{
		Issuer:                        brand.Issuer,
		DeviceAuthorizationEndpoint:   brand.DeviceAuthorizationEndpoint(),
		TokenEndpoint:                 brand.TokenEndpoint(),
		JWKSURI:                       brand.JWKSURI(),
		RevocationEndpoint:            brand.RevocationEndpoint(),
		IntrospectionEndpoint:         brand.IntrospectionEndpoint(),
		ScopesSupported:               scopes,
		DetailTypes:                   types,
		GrantTypesSupported:           []string{grantDeviceCode, grantRefreshToken},
		ResponseTypesSupported:        []string{}, // required by RFC 8414; there is no authorization endpoint
		TokenEndpointAuthMethods:      []string{"private_key_jwt"},
		TokenEndpointAuthSigningAlgs:  algs,
		RevocationEndpointAuthMethods: []string{"private_key_jwt"},
		RevocationEndpointSigningAlgs: algs,
		IntrospectionAuthMethods:      []string{"Bearer"},
		StatusLists:                   brand.StatusListsURI(),
		GrantManagementEndpoint:       brand.GrantManagementEndpoint(),
		GrantManagementActions:        []string{"query", "revoke"},
		ReceiptLogCheckpoint:          brand.LogURI() + "/checkpoint",
	})
	if err != nil {
		h.fail(w, r, nil, fmt.Errorf("encode metadata of %s: %w", brand.ID, err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=60")
	_, _ = w.Write(body)
}

// jwks serves the Brand's public keys even when its delegation is off or it is
// gone: receipts outlive both.
func (h *Handler) jwks(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	h.keyDocument(w, r, brand, h.keys.JWKS)
}

// archive serves the Brand's compromised keys, each with when and why.
func (h *Handler) archive(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	h.keyDocument(w, r, brand, h.keys.Archive)
}

func (h *Handler) keyDocument(w http.ResponseWriter, r *http.Request, brand *tenants.Brand, load func(context.Context, tenants.BrandID) (signing.Document, error)) {
	doc, err := load(r.Context(), brand.ID)
	if errors.Is(err, signing.ErrNoKey) {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		h.fail(w, r, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d, stale-if-error=%d",
		int(signing.JWKSMaxAge.Seconds()), int(signing.JWKSStaleIfError.Seconds())))
	w.Header().Set("ETag", doc.ETag)
	if etagMatches(r.Header.Get("If-None-Match"), doc.ETag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(doc.Body)
}

// etagMatches compares as RFC 9110 §13.1.2 says: weakly, any of the list.
func etagMatches(header, etag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == etag || candidate == "*" {
			return true
		}
	}
	return false
}
