package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// What a proxy says beside the caller's own headers. Its key cannot be in
// Authorization, where the pa-jwt is.
const (
	proxyCredential  = "Countersign-Authorization"
	delegationHeader = "X-A2a-User-Delegation"
)

// verify is {issuer}/verify, for the Brand's own proxy: nginx auth_request,
// forward_auth of Caddy and Traefik, ext_authz of Envoy over HTTP. The proxy
// passes the caller's Authorization and X-A2A-User-Delegation on as they are and
// adds its own key, with the right verify, in Countersign-Authorization. Whatever
// the method and body, they mean nothing here.
//
// 200 and an empty body let the caller through; then every header of verdict is
// set, empty where there is nothing. Otherwise the proxy answers with what it got:
// the 401 of M7 or M21, or 503 where nobody can tell, which lets nobody through. That
// goes for a key which is not good, too: the caller would take a 401 for his own.
func (h *Handler) verify(w http.ResponseWriter, r *http.Request) {
	brand, ok := h.brand(w, r)
	if !ok || !available(w, r, brand, r.Method) {
		return
	}
	if _, err := h.keyIn(r, proxyCredential, brand, tenants.RightVerify); err != nil {
		if errors.Is(err, tenants.ErrBadKey) || errors.Is(err, tenants.ErrNoRight) {
			h.log.WarnContext(r.Context(), "proxy's own key refused", "brand", string(brand.ID), "reason", err)
			err = errProxyKey
		}
		h.fail(w, r, nil, err)
		return
	}
	if err := guards(brand, r); err != nil {
		h.log.WarnContext(r.Context(), "proxy guards what is not the Brand's interface", "brand", string(brand.ID), "reason", err)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusForbidden)
		return
	}
	who, s, err := h.presented(r, brand)
	switch {
	case errors.Is(err, agent.ErrRefused), errors.Is(err, authority.ErrAgentDisabled):
		h.log.InfoContext(r.Context(), "pa-jwt refused", "brand", string(brand.ID), "reason", err)
		unauthorized(w)
	case errors.Is(err, authority.ErrToken):
		h.log.InfoContext(r.Context(), "delegation token refused", "brand", string(brand.ID))
		invalidToken(w)
	case err != nil:
		h.fail(w, r, nil, err)
	default:
		letThrough(w, who, s)
	}
}

// errProxyKey is returned where the proxy's own key is not good, or lacks the right.
var errProxyKey = errors.New("the proxy's own key is not good")

// presented judges what the agent came with: its pa-jwt first, then whether the
// Brand lets it in, then the token.
func (h *Handler) presented(r *http.Request, brand *tenants.Brand) (authority.Caller, authority.Standing, error) {
	who, err := h.caller(r, brand)
	if err != nil {
		return who, authority.Standing{}, err
	}
	var payload []byte
	if shown := r.Header.Values(delegationHeader); len(shown) > 0 {
		token, err := agent.Bearer(shown)
		if err == nil {
			payload, err = h.keys.Verify(r.Context(), brand.ID, signing.TypToken, token)
		}
		switch {
		case errors.Is(err, agent.ErrRefused), errors.Is(err, signing.ErrNotOurs), errors.Is(err, signing.ErrNoKey):
			// Not yet ErrToken: an agent that is kept out hears that first.
			payload = []byte{}
		case err != nil:
			return who, authority.Standing{}, err
		}
	}
	s, err := h.authority.Present(r.Context(), brand, who, payload)
	return who, s, err
}

// letThrough tells the proxy who it is. Each header is set at every 200, so that
// a proxy that copies them leaves none in place that the caller sent.
func letThrough(w http.ResponseWriter, who authority.Caller, s authority.Standing) {
	grant, expires, details := "", "", ""
	if values := s.Details.Values(); values != nil {
		raw, err := json.Marshal(values)
		if err != nil { // or the scopes would look unlimited
			writeServerError(w)
			return
		}
		details = plain(string(raw))
	}
	if s.ID != "" {
		grant, expires = s.GrantID.String(), strconv.FormatInt(s.Expires.Unix(), 10)
	}
	head := w.Header()
	head.Set("Countersign-Agent", plain(who.Agent))
	head.Set("Countersign-Agent-Subject", plain(who.Sub))
	head.Set("Countersign-User", plain(s.Subject))
	head.Set("Countersign-Scopes", strings.Join(s.Scopes, " "))
	head.Set("Countersign-Details", details)
	head.Set("Countersign-Grant", grant)
	head.Set("Countersign-Token", plain(s.ID))
	head.Set("Countersign-Expires", expires)
	head.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK) // Envoy takes no other 2xx
}

// plain percent-encodes what would not come through a header as it is: proxies
// trim blanks, and then " alex" would be alex. Visible ASCII stays, but for %.
func plain(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// invalidToken is the answer to a delegation token that is not good (M21).
func invalidToken(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="a2a", error="invalid_token"`)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusUnauthorized)
}

// guards refuses to speak for anything but the Brand's interface: a token is
// good there and nowhere else, and what a proxy guards with another Brand's key
// by mistake would take that Brand's tokens. It goes by every place in which
// proxies say what they were asked for; a caller who adds one of them can only
// shut itself out.
func guards(brand *tenants.Brand, r *http.Request) error {
	front, err := url.Parse(brand.InterfaceURL)
	if err != nil {
		return err
	}
	told := r.Header.Values("X-Original-Uri")
	told = append(told, r.Header.Values("X-Forwarded-Uri")...)
	if uri := r.PathValue("uri"); uri != "" {
		told = append(told, "/"+uri)
	}
	for _, uri := range told {
		at, err := url.ParseRequestURI(uri)
		if err != nil {
			return errors.New("not a path")
		}
		// Both as written and as it reads: nothing may climb out of the interface.
		if !below(front.EscapedPath(), at.EscapedPath()) || !below(front.Path, at.Path) {
			return errors.New("path outside of the interface URL")
		}
	}
	return nil
}

// below reports whether p is beneath base to every server: to some a backslash is a
// slash, and what stands behind a semicolon no part of a name.
func below(base, p string) bool {
	generous := strings.Split(strings.ReplaceAll(p, `\`, "/"), "/")
	for i, one := range generous {
		generous[i], _, _ = strings.Cut(one, ";")
	}
	base = strings.TrimSuffix(base, "/")
	for _, p := range []string{p, strings.Join(generous, "/")} {
		if p = path.Clean("/" + p); p != base && !strings.HasPrefix(p, base+"/") {
			return false
		}
	}
	return true
}
