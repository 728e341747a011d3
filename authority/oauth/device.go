package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

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

type deviceStart bound

// HandleDeviceEndpointRequest implements fosite.DeviceEndpointHandler.
func (d deviceStart) HandleDeviceEndpointRequest(ctx context.Context, request fosite.DeviceRequester, answer fosite.DeviceResponder) error {
	c := d.call
	// No Brand has authorization_details types yet (RFC 9396 §5).
	if request.GetRequestForm().Has("authorization_details") {
		return refusal(http.StatusBadRequest, "invalid_authorization_details", "This issuer has no authorization details types.")
	}
	started, err := c.h.authority.Begin(ctx, c.brand, c.who, request.GetRequestedScopes())
	if err != nil {
		return err
	}
	verification := c.h.pages + string(c.brand.ID) + "/device"
	answer.SetDeviceCode(started.DeviceCode)
	answer.SetUserCode(started.UserCode.String())
	answer.SetVerificationURI(verification)
	answer.SetVerificationURIComplete(verification + "?user_code=" + url.QueryEscape(started.UserCode.String()))
	answer.SetExpiresIn(int64(started.ExpiresIn.Seconds()))
	answer.SetInterval(int(started.Interval.Seconds()))
	return nil
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
