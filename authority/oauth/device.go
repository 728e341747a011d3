package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/ory/fosite"
)

// deviceAuthorization is POST {issuer}/device_authorization (RFC 8628 §3.1).
func (h *Handler) deviceAuthorization(w http.ResponseWriter, r *http.Request, c call) {
	provider := c.provider()
	request, err := provider.NewDeviceRequest(r.Context(), r)
	if err != nil {
		h.fail(w, r, provider, err)
		return
	}
	started, err := provider.NewDeviceResponse(r.Context(), request, session{})
	if err != nil {
		h.fail(w, r, provider, err)
		return
	}
	writeJSON(w, http.StatusOK, deviceAnswer{
		DeviceCode:              started.GetDeviceCode(),
		UserCode:                started.GetUserCode(),
		VerificationURI:         started.GetVerificationURI(),
		VerificationURIComplete: started.GetVerificationURIComplete(),
		ExpiresIn:               started.GetExpiresIn(),
		Interval:                started.GetInterval(),
	})
}

// deviceAnswer is RFC 8628 §3.2, nothing more; fosite's own writer adds a
// member of its own.
type deviceAnswer struct {
	DeviceCode              string `json:"device_code"`
	UserCode                string `json:"user_code"`
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"`
	ExpiresIn               int64  `json:"expires_in"`
	Interval                int    `json:"interval"`
}

// detailsMember is what RFC 9396 calls them everywhere: in the request, the answer,
// the token, and where that is introspected.
const detailsMember = "authorization_details"

type deviceStart bound

// HandleDeviceEndpointRequest implements fosite.DeviceEndpointHandler.
func (d deviceStart) HandleDeviceEndpointRequest(ctx context.Context, request fosite.DeviceRequester, answer fosite.DeviceResponder) error {
	c := d.call
	wish := authority.Wish{Scopes: request.GetRequestedScopes()}
	if form := request.GetRequestForm(); form.Has(detailsMember) {
		raw := form.Get(detailsMember)
		wish.Details = &raw
	}
	started, err := c.h.authority.BeginWith(ctx, c.brand, c.who, wish)
	if err != nil {
		return err
	}
	answer.SetDeviceCode(started.DeviceCode)
	answer.SetUserCode(started.UserCode.String())
	answer.SetVerificationURI(c.h.codePage(c.brand))
	answer.SetVerificationURIComplete(c.h.completeLink(c.brand, started.UserCode))
	answer.SetExpiresIn(int64(started.ExpiresIn.Seconds()))
	answer.SetInterval(int(started.Interval.Seconds()))
	return nil
}

// codePage is where a code is typed.
func (h *Handler) codePage(brand *tenants.Brand) string {
	return h.pages + string(brand.ID) + "/device"
}

// completeLink is the same page with the code in it.
func (h *Handler) completeLink(brand *tenants.Brand, code authority.UserCode) string {
	return h.codePage(brand) + "?user_code=" + url.QueryEscape(code.String())
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		writeServerError(w)
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
