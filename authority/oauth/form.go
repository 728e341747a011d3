package oauth

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"countersign.dev/tenants"
	"github.com/ory/fosite"
)

// maxForm is the largest body that any of our parameters could need.
const maxForm = 8 << 10

// readForm reads the body strictly and leaves it in r.PostForm for fosite,
// which would take multipart bodies, parameters in the query and the first of
// two values without a word (B100).
//
// agent is the caller's issuer, which client_id must equal (M9): that is checked
// as soon as the form can be read, before anything else in it; empty where no
// agent calls. optional: client_id may be left out.
func readForm(w http.ResponseWriter, r *http.Request, brand *tenants.Brand, agent string, optional bool) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return invalidRequest("Send the parameters as application/x-www-form-urlencoded.")
	}
	if r.URL.RawQuery != "" {
		return invalidRequest("Send parameters in the body, not in the URL.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return invalidRequest("The body is larger than 8 KiB.")
	}
	if err != nil {
		return invalidRequest("The body could not be read.")
	}
	form, err := parseForm(string(body))
	if err != nil {
		return err
	}
	if len(form) == 0 {
		return invalidRequest("The body is empty.")
	}
	if agent != "" && form.Get("client_id") != agent && !(optional && !form.Has("client_id")) {
		return errClientID
	}
	for _, method := range []string{"client_secret", "client_assertion", "client_assertion_type"} {
		if form.Has(method) {
			return invalidRequest("Authenticate with the pa-jwt in the Authorization header and nothing else.")
		}
	}
	// The audience of a token is the Brand it was asked at, never a wish (B90).
	for _, target := range []string{"resource", "audience"} {
		if form.Has(target) && form.Get(target) != brand.InterfaceURL {
			return &fosite.RFC6749Error{
				ErrorField: "invalid_target", CodeField: http.StatusBadRequest,
				DescriptionField: "Tokens of this issuer are for its own interface only.",
			}
		}
	}
	r.PostForm, r.Form = form, form
	return nil
}

var errClientID = refusal(http.StatusUnauthorized, "invalid_client", "client_id must equal the iss of the pa-jwt.")

// parseForm decodes a form once. Every parameter may appear at most once
// (RFC 6749 §3.2), and every value is text.
func parseForm(body string) (url.Values, error) {
	form, err := url.ParseQuery(body)
	if err != nil {
		return nil, invalidRequest("The body is not a well-formed form.")
	}
	for name, values := range form {
		if len(values) > 1 {
			return nil, invalidRequest("A parameter is repeated.")
		}
		if !isText(name) || !isText(values[0]) {
			return nil, invalidRequest("A parameter is not plain text.")
		}
	}
	return form, nil
}

func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
