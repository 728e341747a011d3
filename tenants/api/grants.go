package api

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign.dev/authority"
	"github.com/google/uuid"
)

// grantView is a grant as the API shows it. The agent's own name for the person
// is not the Brand's to know.
type grantView struct {
	ID        uuid.UUID `json:"id"`
	State     string    `json:"state"` // living or ended
	Agent     string    `json:"agent"`
	AgentName string    `json:"agent_name,omitempty"` // the agent's own words
	Subject   string    `json:"subject"`
	Suspended bool      `json:"suspended,omitempty"` // its subject is
	Scopes    []string  `json:"scopes"`
	// Details say more exactly what the scopes allow (RFC 9396).
	Details   []json.RawMessage `json:"authorization_details,omitempty"`
	CreatedAt time.Time         `json:"created_at"`
	ExpiresAt time.Time         `json:"expires_at"`
	LastUsed  *time.Time        `json:"last_used_at,omitempty"`
	EndedAt   *time.Time        `json:"ended_at,omitempty"`
	Reason    string            `json:"end_reason,omitempty"`
}

func (h *Handler) viewGrant(g authority.Record) grantView {
	v := grantView{
		ID: g.ID, State: string(authority.Ended), Agent: g.Agent, AgentName: g.AgentName, Subject: g.Subject,
		Suspended: g.Suspended, Scopes: g.Scopes, Details: g.Details.Values(), CreatedAt: g.CreatedAt.UTC(), ExpiresAt: g.ExpiresAt.UTC(),
		LastUsed: g.LastUsed, EndedAt: g.EndedAt, Reason: g.EndReason,
	}
	if g.Living(h.Now()) {
		v.State = string(authority.Living)
	}
	return v
}

// consentView is an answer that a person gave.
type consentView struct {
	ID       uuid.UUID  `json:"id"`
	Request  *uuid.UUID `json:"request_id,omitempty"`
	At       time.Time  `json:"at"`
	Answer   string     `json:"answer"`
	Language string     `json:"language,omitempty"`
	Ticked   []string   `json:"ticked"`
	Unticked []string   `json:"unticked"`
	Hash     string     `json:"hash"`
	// Record is what was shown, word for word; Hash is over its very text.
	Record json.RawMessage `json:"record"`
}

type grantsReply struct {
	Grants []grantView `json:"grants"`
	Next   string      `json:"next,omitempty"` // the cursor of the next page
}

// grantStory is a grant with what led to it, and what became of it.
type grantStory struct {
	grantView
	Consents []consentView `json:"consents"`
	Trail    []eventView   `json:"trail"` // the first of it; the rest is at audit
}

// whoseBody names all grants of an agent, of a Brand user, or of both.
type whoseBody struct {
	Agent   string `json:"agent,omitempty"`
	Subject string `json:"subject,omitempty"`
}

type revokedReply struct {
	Revoked int `json:"revoked"`
}

type suspendedReply struct {
	Subject   string `json:"subject"`
	Suspended bool   `json:"suspended"`
}

// Pages of lists.
const (
	usualPage   = 50
	largestPage = 200
)

// listGrants is GET grants.
func (h *Handler) listGrants(w http.ResponseWriter, r *http.Request, c caller) error {
	q, err := parameters(r, "agent", "subject", "scope", "state", "cursor", "limit")
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", 1, usualPage, largestPage)
	if err != nil {
		return err
	}
	f := authority.Filter{
		Agent: q.Get("agent"), Subject: q.Get("subject"), Scope: q.Get("scope"), State: authority.State(q.Get("state")),
	}
	if f.State != authority.AnyState && f.State != authority.Living && f.State != authority.Ended {
		return badParameter("state is living or ended")
	}
	var after uuid.UUID
	if q.Has("cursor") {
		if after, err = uuid.Parse(q.Get("cursor")); err != nil {
			return badParameter("cursor is the next of the page before")
		}
	}
	// One more tells whether there is another page.
	found, err := h.Authority.List(r.Context(), c.ID, f, after, limit+1)
	if err != nil {
		return err
	}
	body := grantsReply{Grants: []grantView{}}
	if len(found) > limit {
		found = found[:limit]
		body.Next = found[limit-1].ID.String()
	}
	for _, g := range found {
		body.Grants = append(body.Grants, h.viewGrant(g))
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

// showGrant is GET grants/{grant}: with what led to it, and what became of it.
func (h *Handler) showGrant(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := grantID(r)
	if err != nil {
		return err
	}
	g, err := h.Authority.Look(r.Context(), c.ID, id)
	if err != nil {
		return err
	}
	consents, err := h.Authority.Answers(r.Context(), c.ID, id)
	if err != nil {
		return err
	}
	body := grantStory{h.viewGrant(g), []consentView{}, []eventView{}}
	for _, s := range consents {
		body.Consents = append(body.Consents, consentView{
			ID: s.ID, Request: s.RequestID, At: s.At.UTC(), Answer: s.Answer, Language: s.Language,
			Ticked: s.Ticked, Unticked: s.Unticked, Hash: base64.RawURLEncoding.EncodeToString(s.Hash),
			Record: s.Record,
		})
	}
	err = h.Authority.Trail(r.Context(), c.ID, authority.Events{Grant: id}, largestPage, func(e authority.Entry) error {
		body.Trail = append(body.Trail, viewEvent(e))
		return nil
	})
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

// endGrant is POST grants/{grant}/revoke. Ending what has ended is no mistake.
func (h *Handler) endGrant(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := grantID(r)
	if err != nil {
		return err
	}
	// Somebody who sends a scope here means that one, not the whole grant.
	if err := nothing(w, r); err != nil {
		return err
	}
	if _, err := h.Authority.End(r.Context(), c.ID, c.by(), authority.Which{Grant: id}); err != nil {
		return err
	}
	return h.tellGrant(w, r, c, id)
}

// endScope is POST grants/{grant}/scopes/{scope}/revoke. The last scope ends the
// grant; one that it does not hold is not there.
func (h *Handler) endScope(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := grantID(r)
	if err != nil {
		return err
	}
	if err := nothing(w, r); err != nil {
		return err
	}
	scope := r.PathValue("scope")
	if !isName(scope) {
		return authority.ErrUnknown
	}
	if err := h.Authority.EndScope(r.Context(), c.ID, c.by(), id, scope); err != nil {
		return err
	}
	return h.tellGrant(w, r, c, id)
}

func (h *Handler) tellGrant(w http.ResponseWriter, r *http.Request, c caller, id uuid.UUID) error {
	g, err := h.Authority.Look(r.Context(), c.ID, id)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", h.viewGrant(g))
	return nil
}

// endGrants is POST grants/revoke: all of an agent, of a Brand user, or of both.
func (h *Handler) endGrants(w http.ResponseWriter, r *http.Request, c caller) error {
	var body whoseBody
	if err := read(w, r, &body); err != nil {
		return err
	}
	for _, name := range []string{body.Agent, body.Subject} {
		if name != "" && !isName(name) {
			return badParameter("the agent or the subject is no id that one could have")
		}
	}
	which := authority.Which{Agent: body.Agent, Subject: body.Subject}
	if which == (authority.Which{}) {
		return problem{Title: "Name an agent or a subject", Status: http.StatusUnprocessableEntity, Detail: "Nothing has ended."}
	}
	n, err := h.Authority.End(r.Context(), c.ID, c.by(), which)
	if err != nil && n > 0 {
		h.Log.ErrorContext(r.Context(), "ending many was broken off", "brand", string(c.ID), "ended", n, "error", err)
		w.Header().Set("Retry-After", "5")
		return problem{
			Title: "Not all could be ended", Status: http.StatusServiceUnavailable,
			Detail: strconv.Itoa(n) + " have ended. Send it again for the rest.",
		}
	}
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", revokedReply{n})
	return nil
}

// setSuspended is POST users/{subject}/suspend and resume.
func (h *Handler) setSuspended(suspended bool) serve {
	return func(w http.ResponseWriter, r *http.Request, c caller) error {
		if err := nothing(w, r); err != nil {
			return err
		}
		subject, act := r.PathValue("subject"), h.Authority.Resume
		if !isName(subject) {
			return badParameter("the subject is no id that a user could have")
		}
		if suspended {
			act = h.Authority.Suspend
		}
		if err := act(r.Context(), c.ID, c.by(), subject); err != nil {
			return err
		}
		write(w, http.StatusOK, "application/json", suspendedReply{subject, suspended})
		return nil
	}
}

func grantID(r *http.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue("grant"))
	if err != nil || id == uuid.Nil {
		return uuid.Nil, authority.ErrUnknown
	}
	return id, nil
}

// parameters reads the query strictly: a misspelt filter would show everything.
func parameters(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badParameter("the query is not well formed")
	}
	for _, name := range known {
		if v, ok := q[name]; ok && (len(v) > 1 || v[0] == "") {
			return nil, badParameter(name + " stands there twice, or empty")
		} else if ok && !isName(v[0]) {
			return nil, badParameter(name + " is not plain text, or too long")
		}
	}
	for name := range q {
		if !slices.Contains(known, name) {
			return nil, badParameter("a parameter is unknown here")
		}
	}
	return q, nil
}

// isName reports whether an agent, a user or a scope could be called s: what the
// database cannot even hold is a mistake to be told, and no trouble of ours.
func isName(s string) bool {
	const longest = 2000 // an agent's URL
	return s != "" && len(s) <= longest && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func number[N int | int64](q url.Values, name string, least, usual, most N) (N, error) {
	if !q.Has(name) {
		return usual, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < int64(least) || n > int64(most) {
		return 0, badParameter(name + " is a number from " + strconv.FormatInt(int64(least), 10) + " to " + strconv.FormatInt(int64(most), 10))
	}
	return N(n), nil
}

func badParameter(detail string) problem {
	return problem{Title: "A parameter is not what is expected here", Status: http.StatusBadRequest, Detail: detail}
}
