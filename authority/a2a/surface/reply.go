package surface

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// The wire of A2A 1.0's SendMessageResponse, in the order written.
type sent struct {
	Message *agentMessage `json:"message,omitempty"`
	Task    *waiting      `json:"task,omitempty"`
}

const roleAgent = "ROLE_AGENT"

type agentMessage struct {
	MessageID string         `json:"messageId"`
	ContextID string         `json:"contextId"`
	TaskID    string         `json:"taskId,omitempty"`
	Role      string         `json:"role"`
	Parts     []part         `json:"parts"`
	Metadata  *replyMetadata `json:"metadata,omitempty"`
}

type part struct {
	Text string `json:"text"`
}

type replyMetadata struct {
	Receipt Receipt  `json:"pact.receipt"`
	Task    *Receipt `json:"pact.taskReceipt,omitempty"`
}

// Receipt countersigns a turn (M24).
type Receipt struct {
	JWS    string          `json:"jws"`
	Claims json.RawMessage `json:"claims"`
}

// Reply is what a message is answered, under a delegation with its receipt; nil:
// without one.
func Reply(context, text string, receipt *Receipt) ([]byte, error) {
	return LastReply(context, text, receipt, nil)
}

// LastReply is a Reply with which the conversation ends: beside its own receipt
// stands, where there is one, that of all that was countersigned in it.
func LastReply(context, text string, receipt, task *Receipt) ([]byte, error) {
	m := agentMessage{MessageID: uuid.NewString(), ContextID: context, Role: roleAgent, Parts: []part{{text}}}
	if receipt != nil {
		m.Metadata = &replyMetadata{*receipt, task}
	}
	return json.Marshal(sent{Message: &m})
}

// waiting is a task that waits for the person's permission (M22).
type waiting struct {
	ID        string         `json:"id"`
	ContextID string         `json:"contextId"`
	Status    status         `json:"status"`
	Metadata  stepUpMetadata `json:"metadata"`
}

type status struct {
	State     string       `json:"state"`
	Message   agentMessage `json:"message"`
	Timestamp string       `json:"timestamp"`
}

type stepUpMetadata struct {
	Missing []string `json:"pact.missingScopes"`                     // at least one
	Link    string   `json:"pact.verificationUriComplete,omitempty"` // absent, never null
}

// StepUp is the task that a message comes to for which a permission is missing
// (M22): at least one, and where the person allows it; empty: nowhere.
func StepUp(context, text string, missing []string, link string, now time.Time) ([]byte, error) {
	task := uuid.NewString()
	return json.Marshal(sent{Task: &waiting{
		ID: task, ContextID: context,
		Status: status{
			State:     "TASK_STATE_AUTH_REQUIRED",
			Timestamp: now.UTC().Format("2006-01-02T15:04:05.000Z"),
			Message: agentMessage{
				MessageID: uuid.NewString(), ContextID: context, TaskID: task, Role: roleAgent, Parts: []part{{text}},
			},
		},
		Metadata: stepUpMetadata{Missing: missing, Link: link},
	}})
}
