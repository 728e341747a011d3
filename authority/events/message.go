package events

import (
	"encoding/json"
	"fmt"
	"time"

	"countersign.dev/authority"
	"github.com/google/uuid"
)

// message is an event as it is sent, by webhook and on the stream.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	GrantID uuid.UUID `json:"grant_id"`
	Agent   string    `json:"agent"`
	Subject string    `json:"subject"`
	Scopes  []string  `json:"scopes"` // from now on
	// Details say more exactly what those scopes allow, as the token does.
	Details []json.RawMessage `json:"authorization_details,omitempty"`
	Before  []string          `json:"before,omitempty"` // until now
	Until   time.Time         `json:"until"`
	// WasUntil is the end until now, where there was one.
	WasUntil time.Time `json:"before_until,omitzero"`
	Reason   string    `json:"reason,omitempty"`
	Seq      int64     `json:"seq"`
}

// Message returns the JSON that is told of the event. It is the same at every
// call, and one line.
func Message(e authority.Event) ([]byte, error) {
	if e.Type == authority.EventTest {
		return testMessage(e)
	}
	var d authority.EventData
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return nil, fmt.Errorf("read event %d of %s: %w", e.Seq, e.Brand, err)
	}
	if d.Scopes == nil {
		d.Scopes = []string{}
	}
	body, err := json.Marshal(message{Type: e.Type, Timestamp: e.At.UTC(), Data: data{
		GrantID: e.Grant, Agent: d.Agent, Subject: d.Subject, Scopes: d.Scopes, Details: e.Details, Before: d.Before,
		Until: d.Until.UTC(), WasUntil: d.WasUntil.UTC(), Reason: d.Reason, Seq: e.Seq,
	}})
	if err != nil {
		return nil, fmt.Errorf("write event %d of %s: %w", e.Seq, e.Brand, err)
	}
	return body, nil
}

// testMessage speaks of no grant: there is none.
func testMessage(e authority.Event) ([]byte, error) {
	type place struct {
		Seq int64 `json:"seq"`
	}
	body, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      place     `json:"data"`
	}{e.Type, e.At.UTC(), place{e.Seq}})
	if err != nil {
		return nil, fmt.Errorf("write test %d of %s: %w", e.Seq, e.Brand, err)
	}
	return body, nil
}
