package pa

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign.dev/cmd/countersign/pa/discovery"
)

// Said is what a Brand's agent answered.
type Said struct {
	Text    string
	Context string          // of the conversation, to go on with
	Receipt json.RawMessage // {jws, claims}; nil: the turn had no delegation
	// Missing is what the person has not allowed yet; then the Brand did nothing
	// (M22). Link is where they can; it may be empty.
	Missing []string
	Link    string
}

// Message is one to send.
type Message struct {
	ID      string // empty: drawn
	Context string // empty: it begins a conversation
	Text    string
}

// Send says something to a Brand's agent, with the stored delegation if there is
// one. It is sent once: whoever gets no answer sends the same message again.
func Send(ctx context.Context, m Message, o Options) (Said, error) {
	j, err := setOut(ctx, o)
	if err != nil {
		return Said{}, err
	}
	tokens, err := Current(ctx, Which{Card: o.Card, Sub: o.Sub}, o)
	if err != nil && !errors.Is(err, ErrNoToken) {
		return Said{}, err
	}
	body, err := json.Marshal(map[string]any{"message": m.members()})
	if err != nil {
		return Said{}, fmt.Errorf("send: %w", err)
	}
	bearer, err := j.credential.bearer()
	if err != nil {
		return Said{}, signError{err}
	}
	answer, err := j.client.PostMessage(ctx, j.brand.Interface+"/message:send", bearer, string(tokens.AccessToken), body)
	if err != nil {
		return Said{}, fmt.Errorf("send: %w", err)
	}
	return readSaid(answer)
}

func (m Message) members() map[string]any {
	out := map[string]any{"messageId": m.ID, "role": "ROLE_USER", "parts": []any{map[string]string{"text": m.Text}}}
	if m.Context != "" {
		out["contextId"] = m.Context
	}
	return out
}

// newMessageID draws the name of a message.
func newMessageID() string { return strings.ToLower(rand.Text()) }

func readSaid(a discovery.Answer) (Said, error) {
	type message struct {
		ContextID string
		Parts     []struct{ Text string }
		Metadata  map[string]json.RawMessage
	}
	var body struct {
		Message *message
		Task    *struct {
			ContextID string
			Status    struct {
				State   string
				Message *message
			}
			Metadata map[string]json.RawMessage
		}
		Error struct {
			Message string
			Details []struct{ Reason string }
		}
	}
	err := json.Unmarshal(a.Body, &body)
	switch {
	case a.Status == http.StatusUnauthorized:
		return Said{}, fmt.Errorf("send: the Brand refused: %s", printable(a.Header.Get("WWW-Authenticate")))
	case a.Status == http.StatusOK && err != nil:
		return Said{}, fmt.Errorf("send: %w: it is not JSON", ErrBadAnswer)
	case a.Status != http.StatusOK && len(body.Error.Details) > 0:
		return Said{}, fmt.Errorf("send: the Brand answered %d %s: %s", a.Status, printable(body.Error.Details[0].Reason), printable(body.Error.Message))
	case a.Status != http.StatusOK:
		return Said{}, fmt.Errorf("send: the Brand answered %d", a.Status)
	case body.Message != nil:
		return Said{Text: texts(body.Message.Parts), Context: body.Message.ContextID, Receipt: body.Message.Metadata["pact.receipt"]}, nil
	case body.Task == nil || body.Task.Status.State != "TASK_STATE_AUTH_REQUIRED":
		return Said{}, fmt.Errorf("send: %w: neither a message nor a task that waits", ErrBadAnswer)
	}
	out := Said{Context: body.Task.ContextID}
	if m := body.Task.Status.Message; m != nil {
		out.Text = texts(m.Parts)
	}
	if json.Unmarshal(body.Task.Metadata["pact.missingScopes"], &out.Missing) != nil || len(out.Missing) == 0 {
		return Said{}, fmt.Errorf("send: %w: a task that waits for nothing", ErrBadAnswer)
	}
	if raw, there := body.Task.Metadata["pact.verificationUriComplete"]; there {
		if json.Unmarshal(raw, &out.Link) != nil || out.Link == "" {
			return Said{}, fmt.Errorf("send: %w: the link is no text", ErrBadAnswer)
		}
		if _, err := discovery.Address("pact.verificationUriComplete", out.Link); err != nil {
			return Said{}, fmt.Errorf("send: %w: %w", ErrBadAnswer, err)
		}
	}
	return out, nil
}

func texts(parts []struct{ Text string }) string {
	var out []string
	for _, p := range parts {
		out = append(out, p.Text)
	}
	return strings.Join(out, "\n")
}

// Follow waits until the person has allowed what is missing, and sends the same
// message again. stepUp is told of every task that waits.
func Follow(ctx context.Context, m Message, o Options, stepUp func(Said)) (Said, error) {
	const (
		interval = 5 * time.Second
		longest  = 10 * time.Minute // a link lives no longer
	)
	if o.Wait == nil {
		o.Wait = sleep
	}
	if m.ID == "" {
		m.ID = newMessageID()
	}
	for {
		said, err := Send(ctx, m, o)
		if err != nil || len(said.Missing) == 0 {
			return said, err
		}
		stepUp(said)
		m.Context = said.Context
		for waited := time.Duration(0); ; waited += interval {
			if waited >= longest {
				return Said{}, ErrExpired
			}
			if err := o.Wait(ctx, interval); err != nil {
				return Said{}, err
			}
			t, err := Refresh(ctx, Which{Card: o.Card, Sub: o.Sub}, o)
			if errors.Is(err, ErrNoToken) {
				return said, fmt.Errorf("%w: the person's answer reaches this agent only with a delegation of its own", ErrNoToken)
			}
			if err != nil {
				return Said{}, err
			}
			held := strings.Fields(t.Scope)
			if !slices.ContainsFunc(said.Missing, func(s string) bool { return !slices.Contains(held, s) }) {
				break
			}
		}
	}
}
