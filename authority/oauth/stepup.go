package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"countersign.dev/authority"
	"countersign.dev/authority/agent"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// What a step-up may weigh.
const (
	maxStepUp = 16 << 10
	maxReason = 300 // characters
)

// stepUpRequest is the body of a step-up.
type stepUpRequest struct {
	PAJWT  string   `json:"pa_jwt"`
	Token  *string  `json:"delegation_token"` // nil: the agent sent none
	Scopes []string `json:"scopes"`
	Reason string   `json:"reason"`
}

var stepUpMembers = []string{"pa_jwt", "delegation_token", "scopes", "reason"}

// stepUpAnswer goes into the metadata of the Brand's task as it is (M22). Where
// nothing is missing there is no link, and no life of one: absent, never null.
type stepUpAnswer struct {
	Missing   []string `json:"pact.missingScopes"`
	Link      string   `json:"pact.verificationUriComplete,omitempty"`
	ExpiresIn int64    `json:"expires_in,omitempty"` // of the link, so less than 600 when it is given again
}

// stepUp is POST {issuer}/stepup, for a Brand's own server: its agent was told
// to do something that the person has not allowed yet. The Brand passes on what
// it was sent, the pa-jwt and the delegation token, and both are verified here:
// a Brand cannot speak in an agent's name.
//
// What it passed on may be bad although its own credential is good, so that is
// never a 401: a pa-jwt that does not verify is 400 invalid_pa_jwt (the Brand
// answers its caller with the 401 of M7), a token that is not good, or not of the
// same agent and person, is 400 invalid_token (M21). Its own mistakes are 400
// invalid_request and 400 invalid_scope.
func (h *Handler) stepUp(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	answer, err := h.steppedUp(w, r, brand)
	if errors.Is(err, authority.ErrAgentDisabled) {
		err = errPAJWT
	}
	if err != nil {
		h.fail(w, r, nil, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

var errPAJWT = refusal(http.StatusBadRequest, "invalid_pa_jwt", "pa_jwt does not prove a known agent at this Brand.")

func (h *Handler) steppedUp(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) (stepUpAnswer, error) {
	var body stepUpRequest
	if err := readJSON(w, r, maxStepUp, stepUpMembers, &body); err != nil {
		return stepUpAnswer{}, err
	}
	if utf8.RuneCountInString(body.Reason) > maxReason || !isText(body.Reason) {
		return stepUpAnswer{}, invalidRequest("reason is one line of at most 300 characters.")
	}
	// M1 to M6, as at every door that an agent comes to by itself.
	who, err := h.agents.At(r.Context(), brand, body.PAJWT)
	if errors.Is(err, agent.ErrRefused) {
		h.log.InfoContext(r.Context(), "pa-jwt refused", "brand", string(brand.ID), "reason", err)
		return stepUpAnswer{}, errPAJWT
	}
	if err != nil {
		return stepUpAnswer{}, err
	}
	ask := authority.StepUp{
		Who:    authority.Caller{Agent: who.Issuer, Sub: who.Subject},
		Scopes: body.Scopes, Reason: strings.TrimSpace(body.Reason),
	}
	if body.Token != nil {
		ask.Token, err = h.keys.Verify(r.Context(), brand.ID, signing.TypToken, *body.Token)
		if errors.Is(err, signing.ErrNotOurs) || errors.Is(err, signing.ErrNoKey) {
			err = authority.ErrToken
		}
		if err != nil {
			return stepUpAnswer{}, err
		}
	}
	got, err := h.authority.StepUp(r.Context(), brand, ask)
	if err != nil {
		return stepUpAnswer{}, err
	}
	answer := stepUpAnswer{Missing: got.Missing}
	if got.UserCode != "" {
		answer.Link, answer.ExpiresIn = h.completeLink(brand, got.UserCode), int64(got.ExpiresIn.Seconds())
	}
	return answer, nil
}

// readJSON reads one JSON object: every member under its exact name, once, not
// null, and none but those named. encoding/json by itself would take "Scopes"
// for scopes and the last of two (B84); with a null in the place of a token, a
// link that was meant for one person would be anybody's.
func readJSON(w http.ResponseWriter, r *http.Request, largest int64, members []string, into any) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return invalidRequest("Send a JSON object as application/json.")
	}
	if r.URL.RawQuery != "" {
		return invalidRequest("Send everything in the body, not in the URL.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largest))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return invalidRequest("The body is too large.")
	}
	if err != nil {
		return invalidRequest("The body could not be read.")
	}
	if !utf8.Valid(body) || !json.Valid(body) {
		return invalidRequest("The body is not JSON.")
	}
	return readMembers(body, members, into)
}

// readMembers is readJSON of JSON that was read. Of those named anything, null is a value
// like others.
func readMembers(body []byte, members []string, into any, anything ...string) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return invalidRequest("What should be a JSON object is none.")
	}
	var seen []string
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		key, _ := name.(string)
		switch {
		case err != nil, string(value) == "null" && !slices.Contains(anything, key):
			return invalidRequest("A member has no value. Leave out what there is not.")
		case !slices.Contains(members, key):
			return invalidRequest("A member is unknown here. There are: " + strings.Join(members, ", ") + ".")
		case slices.Contains(seen, key):
			return invalidRequest("A member is there twice.")
		}
		seen = append(seen, key)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return invalidRequest("A member is not of the kind that belongs there.")
	}
	return nil
}
