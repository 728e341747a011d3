package surface

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Problem is an error of A2A 1.0 in the envelope of AIP-193.
type Problem struct {
	Code    int    // of HTTP
	Status  string // of AIP-193
	Reason  string // of A2A
	Message string // for whoever reads logs; the agent's user does not see it
	// RetryAfter is how long to wait before the same may work; zero: it is not said.
	RetryAfter time.Duration
}

func (p *Problem) Error() string { return p.Reason + ": " + p.Message }

// Invalid is INVALID_PARAMS.
func Invalid(message string) *Problem {
	return &Problem{Code: http.StatusBadRequest, Status: "INVALID_ARGUMENT", Reason: "INVALID_PARAMS", Message: message}
}

// Internal is INTERNAL.
func Internal(message string) *Problem {
	return &Problem{Code: http.StatusInternalServerError, Status: "INTERNAL", Reason: "INTERNAL", Message: message}
}

// The problems that wire.md names.
var (
	ErrContentType = &Problem{http.StatusBadRequest, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED", "Send text parts, in a JSON body.", 0}
	ErrUnsupported = &Problem{http.StatusBadRequest, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION", "This operation is not supported.", 0}
	ErrPush        = &Problem{http.StatusBadRequest, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED", "Push notifications are not supported.", 0}
	ErrTask        = &Problem{http.StatusNotFound, "NOT_FOUND", "TASK_NOT_FOUND", "There is no such task.", 0}
	ErrInternal    = Internal("Something went wrong on our side.")
	ErrBusy        = &Problem{http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "RATE_LIMITED", "Too many messages. Try again later.", time.Second}
	ErrAway        = &Problem{http.StatusServiceUnavailable, "UNAVAILABLE", "UNAVAILABLE", "Try again in a moment. Nothing was lost.", 5 * time.Second}
	// One text for a conversation that is foreign, unknown or another user's (M23).
	ErrContext = Invalid("contextId names no conversation of yours.")
	ErrNoReply = Invalid("This messageId came before and has no reply: it is still being answered, or came to nothing. Ask again in a moment, or send a new message.")
)

// WriteProblem answers with the problem. A wait above zero is said in Retry-After
// in place of the problem's own, in whole seconds and at least one.
func WriteProblem(w http.ResponseWriter, p *Problem, wait time.Duration) {
	type info struct {
		Type   string `json:"@type"`
		Reason string `json:"reason"`
		Domain string `json:"domain"`
	}
	type envelope struct {
		Code    int    `json:"code"`
		Status  string `json:"status"`
		Message string `json:"message"`
		Details []info `json:"details"`
	}
	body, _ := json.Marshal(struct { // texts and a number
		Error envelope `json:"error"`
	}{envelope{p.Code, p.Status, p.Message, []info{{
		Type: "type.googleapis.com/google.rpc.ErrorInfo", Reason: p.Reason, Domain: "a2a-protocol.org",
	}}}})
	if wait = cmp.Or(wait, p.RetryAfter); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second))))
	}
	Write(w, p.Code, body)
}

// MediaType is that of every answer with a body of A2A.
const MediaType = "application/a2a+json"

// Write answers with a body of A2A.
func Write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", MediaType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
