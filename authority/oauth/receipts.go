package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/receiptlog"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// What turns may weigh. Large arguments are sent as their hash.
const (
	maxTurn  = 256 << 10
	maxTurns = 4 << 20
	maxTask  = 4 << 10
)

// turnBody is a turn that a Brand's server has served.
type turnBody struct {
	Token string `json:"delegation_token"`
	// Agent is the iss of the pa-jwt that the Brand verified beside the token: a
	// token that another agent shows is a stolen one (M18), and has no receipt. The
	// pa-jwt itself is not asked for: it is over long before a retry may be.
	Agent      string            `json:"agent"`
	ContextID  string            `json:"contextId"`
	MessageID  string            `json:"messageId"`
	ScopesUsed []string          `json:"scopesUsed"`
	Actions    []json.RawMessage `json:"actions"`
	Began      *time.Time        `json:"began"`
	// Hashes of what was said and answered, each with a salt that the Brand keeps.
	MessageHash string `json:"messageHash"`
	ReplyHash   string `json:"replyHash"`
}

type actionBody struct {
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args"` // null is a value, and not that there were none
	ArgsHash string          `json:"argsHash"`
}

var (
	turnMembers   = []string{"delegation_token", "agent", "contextId", "messageId", "scopesUsed", "actions", "began", "messageHash", "replyHash"}
	actionMembers = []string{"tool", "args", "argsHash"}
	batchMembers  = []string{"turns"}
	taskMembers   = []string{"grantId", "contextId"}
)

// receipt is POST {issuer}/receipts, for a Brand's own server: the receipt of a turn
// that it served under a delegation, {jws, claims}, as it goes into the metadata of
// its answer (M24). The log's index stands in the header Countersign-Log-Seq, and
// whether it came late in Countersign-Late.
//
// A bad delegation token is 400 invalid_token, as its credential is good; scopes
// beyond token and grant are 400 invalid_scope; another content of a turn that has a
// receipt is 409 conflict. While nothing can be signed, or the Brand is paused, it is
// 202: the turn is written down, judged as of then, and signed as soon as that can be
// done; the same call again gets the one receipt. 503: not even that could be done.
func (h *Handler) receipt(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	var body turnBody
	err := readJSON(w, r, maxTurn, turnMembers, &body)
	var turn authority.Turn
	if err == nil {
		turn, err = body.turn()
	}
	var got authority.Receipt
	if err == nil {
		got, err = h.authority.Countersign(r.Context(), brand, turn)
	}
	if waits, ok := errors.AsType[*authority.WaitingError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(waitOf(waits)/time.Second)))
		writeJSON(w, http.StatusAccepted, map[string]string{"status": "waiting", "since": receiptlog.At(waits.Since)})
		return
	}
	if err != nil {
		h.fail(w, r, nil, receiptError(err))
		return
	}
	w.Header().Set("Countersign-Log-Seq", strconv.FormatInt(got.Seq, 10))
	w.Header().Set("Countersign-Late", strconv.FormatBool(got.Late))
	writeRaw(w, signedJSON(got.JWS, got.Claims))
}

// waitOf is when the same call may get its receipt.
func waitOf(waits *authority.WaitingError) time.Duration {
	if errors.Is(waits, authority.ErrPaused) {
		return pausedRetry
	}
	return retryAfter
}

func (b turnBody) turn() (authority.Turn, error) {
	t := authority.Turn{
		Token: b.Token, Agent: b.Agent, ContextID: b.ContextID, MessageID: b.MessageID, ScopesUsed: b.ScopesUsed,
		MessageHash: b.MessageHash, ReplyHash: b.ReplyHash,
	}
	if b.Agent == "" {
		return t, invalidRequest("agent is missing: the iss of the pa-jwt beside the token.")
	}
	if b.ScopesUsed == nil {
		return t, invalidRequest("scopesUsed is missing: [] where none was.")
	}
	if b.Began != nil {
		t.Began = *b.Began
	}
	for _, raw := range b.Actions {
		var a actionBody
		if err := readMembers(raw, actionMembers, &a, "args"); err != nil {
			return t, err
		}
		t.Actions = append(t.Actions, authority.Action(a))
	}
	return t, nil
}

// turnResult is what became of one turn of several.
type turnResult struct {
	Receipt     json.RawMessage `json:"receipt,omitempty"` // {jws, claims}
	Seq         *int64          `json:"seq,omitempty"`
	Late        bool            `json:"late,omitempty"`
	Since       string          `json:"since,omitempty"` // of 202: it waits, judged as of then
	Status      int             `json:"status"`          // as the single form would have answered
	Error       string          `json:"error,omitempty"`
	Description string          `json:"error_description,omitempty"`
}

// receipts is POST {issuer}/receipts/batch: up to 100 turns, each answered as alone,
// in their order. The answer is 200 whatever became of them.
func (h *Handler) receipts(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	var body struct {
		Turns []json.RawMessage `json:"turns"`
	}
	err := readJSON(w, r, maxTurns, batchMembers, &body)
	if err == nil && (len(body.Turns) == 0 || len(body.Turns) > authority.MaxTurns) {
		err = invalidRequest("turns is a list of 1 to 100.")
	}
	if err != nil {
		h.fail(w, r, nil, err)
		return
	}
	results := make([]turnResult, len(body.Turns))
	var turns []authority.Turn
	var places []int
	for i, raw := range body.Turns {
		var one turnBody
		err := readMembers(raw, turnMembers, &one)
		var turn authority.Turn
		if err == nil {
			turn, err = one.turn()
		}
		if err != nil {
			results[i] = h.refused(r, err)
			continue
		}
		turns, places = append(turns, turn), append(places, i)
	}
	for i, got := range h.authority.CountersignMany(r.Context(), brand, turns) {
		result := turnResult{Receipt: signedJSON(got.Receipt.JWS, got.Receipt.Claims), Seq: &got.Receipt.Seq, Late: got.Receipt.Late, Status: http.StatusOK}
		if waits, ok := errors.AsType[*authority.WaitingError](got.Err); ok {
			result = turnResult{Status: http.StatusAccepted, Since: receiptlog.At(waits.Since)}
		} else if got.Err != nil {
			result = h.refused(r, got.Err)
		}
		results[places[i]] = result
	}
	writeJSON(w, http.StatusOK, struct {
		Results []turnResult `json:"results"`
	}{results})
}

// refused is a refusal as one of several results.
func (h *Handler) refused(r *http.Request, err error) turnResult {
	answer, _ := oauthError(receiptError(err))
	if answer == nil {
		answer = refusal(http.StatusInternalServerError, "server_error", "Something went wrong on our side.")
	}
	if answer.CodeField >= http.StatusInternalServerError && !errors.Is(err, authority.ErrPaused) {
		h.log.ErrorContext(r.Context(), "turn failed", "route", r.Pattern, "error", err)
	}
	return turnResult{Status: answer.CodeField, Error: answer.ErrorField, Description: answer.DescriptionField}
}

// receiptError words what is refused here otherwise than elsewhere.
func receiptError(err error) error {
	switch {
	case errors.Is(err, authority.ErrMalformed):
		return invalidRequest("This cannot be put into a receipt (" + err.Error() + ").")
	case errors.Is(err, authority.ErrScope):
		return refusal(http.StatusBadRequest, "invalid_scope", "scopesUsed has a scope that the token or its grant does not hold.")
	case errors.Is(err, authority.ErrToken):
		return refusal(http.StatusBadRequest, "invalid_token", "delegation_token is not good, not of this agent, or had ended.")
	case errors.Is(err, authority.ErrConflict):
		return refusal(http.StatusConflict, "conflict", "This turn has a receipt, or waits for one, with other scopes, actions or hashes.")
	case errors.Is(err, authority.ErrUnavailable), tenants.Unavailable(err):
		return fmt.Errorf("%w: %w", authority.ErrNotKept, err) // or it would wait
	}
	return err
}

// taskReceipt is POST {issuer}/receipts/task, for a Brand's own server at the end of
// a conversation: one JWS that binds its receipts under a grant, in their order.
// A conversation without receipts is 404.
func (h *Handler) taskReceipt(w http.ResponseWriter, r *http.Request, brand *tenants.Brand) {
	var body struct {
		GrantID   string `json:"grantId"`
		ContextID string `json:"contextId"`
	}
	err := readJSON(w, r, maxTask, taskMembers, &body)
	var grant uuid.UUID
	if err == nil {
		if grant, err = uuid.Parse(body.GrantID); err != nil || body.ContextID == "" {
			err = invalidRequest("grantId is the id of a grant, and contextId is not empty.")
		}
	}
	var got authority.TaskReceipt
	if err == nil {
		got, err = h.authority.CountersignTask(r.Context(), brand, grant, body.ContextID)
	}
	if err != nil {
		h.failGrant(w, r, err)
		return
	}
	writeRaw(w, signedJSON(got.JWS, got.Claims))
}

// signedJSON is {jws, claims}, the claims byte for byte as they were signed.
func signedJSON(jws string, claims json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"jws":"` + jws + `","claims":` + string(claims) + `}`)
}

func writeRaw(w http.ResponseWriter, body json.RawMessage) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	_, _ = w.Write(body)
}
