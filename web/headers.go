package web

import (
	"net/http"
	"strings"
)

// policy is the Content-Security-Policy of every page. There is no script, no
// inline style and no frame. form-action is written out because default-src
// does not cover it; it is 'self' alone, and the way to another site is a link.
const policy = "default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// AllowScript lets the answer's page run script, from our own files alone. Only
// the dashboard does: a passkey cannot be asked for without.
func AllowScript(w http.ResponseWriter) {
	w.Header().Set("Content-Security-Policy", policy+"; script-src 'self'")
}

// ForbidForms keeps every form of the answer's page from being sent: it only shows
// what another page looks like.
func ForbidForms(w http.ResponseWriter) {
	w.Header().Set("Content-Security-Policy", strings.Replace(policy, "form-action 'self'", "form-action 'none'", 1))
}

// AllowFormTo lets a form of the answer's page end at the origin as well, which is
// one of a Brand's settings: Chromium holds every redirect of a form post against
// form-action.
func AllowFormTo(w http.ResponseWriter, origin string) {
	if origin == "" || strings.ContainsAny(origin, " ;,*'\"") { // nothing may end the directive
		return
	}
	w.Header().Set("Content-Security-Policy", strings.Replace(policy, "form-action 'self'", "form-action 'self' "+origin, 1))
}

// PageHeaders sets what every HTML answer needs, errors included.
//
// Referrer-Policy is same-origin, not no-referrer: with the latter browsers
// send Origin: null on our own forms, and the cross-origin check could not
// tell them from an attack.
func PageHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
		next.ServeHTTP(w, r)
	})
}

// EveryAnswer sets what no answer may lack. secure is whether the public URL is
// https, so that browsers may be told never to come without.
func EveryAnswer(secure bool) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			if secure {
				w.Header().Set("Strict-Transport-Security", "max-age=63072000; includeSubDomains")
			}
			next.ServeHTTP(w, r)
		})
	}
}
