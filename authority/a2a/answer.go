package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a/surface"
	"countersign.dev/authority/receiptlog"
)

// Answer is what a Brand's agent says to a turn: either it served it, or it lacks
// permissions.
type Answer struct {
	Text       string   `json:"text"`
	ScopesUsed []string `json:"scopesUsed,omitempty"`
	Actions    []Action `json:"actions,omitempty"`
	Missing    []string `json:"missingScopes,omitempty"`
	Done       bool     `json:"done,omitempty"` // the conversation ends with this
}

// Action is something that the agent did. Args, any JSON, or their hash (M24) may
// be given, not both.
type Action struct {
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args,omitempty"`
	ArgsHash string          `json:"argsHash,omitempty"`
}

// What an answer may weigh.
const (
	maxText    = 100_000 // characters
	maxScopes  = 100
	maxActions = 100
	maxName    = 128 // characters
)

// ParseAnswer reads an answer strictly: a member whose name is not known is a
// mistake, because one that was meant as scopesUsed would leave an act without a
// receipt. The error says what to mend, in our own words.
func ParseAnswer(raw []byte) (Answer, error) {
	m, ok := surface.Members(raw)
	if !ok {
		return Answer{}, errors.New("its answer is not one JSON object with each member once")
	}
	for name := range m {
		if !slices.Contains([]string{"text", "scopesUsed", "actions", "missingScopes", "done"}, name) {
			return Answer{}, errors.New("its answer has a member that is not text, scopesUsed, actions, missingScopes or done")
		}
	}
	var a Answer
	var err error
	switch words, n := string(m["text"]), 0; {
	case words == "" || json.Unmarshal(m["text"], &a.Text) != nil || words == "null":
		return Answer{}, errors.New("text is missing in its answer, or not a string")
	default:
		if n = utf8.RuneCountInString(a.Text); n > maxText || strings.TrimSpace(a.Text) == "" || strings.ContainsRune(a.Text, 0) {
			return Answer{}, fmt.Errorf("text in its answer is blank or longer than %d characters", maxText)
		}
	}
	if a.ScopesUsed, err = names(m, "scopesUsed"); err != nil {
		return Answer{}, err
	}
	if a.Missing, err = names(m, "missingScopes"); err != nil {
		return Answer{}, err
	}
	if a.Actions, err = actions(m["actions"]); err != nil {
		return Answer{}, err
	}
	// What it did would go without a receipt.
	if len(a.Missing) > 0 && len(a.ScopesUsed)+len(a.Actions) > 0 {
		return Answer{}, errors.New("its answer has missingScopes beside scopesUsed or actions: ask first, then act")
	}
	if raw, there := m["done"]; there && (json.Unmarshal(raw, &a.Done) != nil || string(raw) == "null") {
		return Answer{}, errors.New("done in its answer is not true or false")
	}
	if a.Done && len(a.Missing) > 0 {
		return Answer{}, errors.New("its answer has done beside missingScopes: what waits for the person is not at its end")
	}
	if _, there := m["missingScopes"]; there && len(a.Missing) == 0 {
		return Answer{}, errors.New("missingScopes is empty in its answer: leave it out")
	}
	return a, nil
}

func names(m map[string]json.RawMessage, member string) ([]string, error) {
	raw, there := m[member]
	if !there {
		return nil, nil
	}
	var list []*string
	if json.Unmarshal(raw, &list) != nil || list == nil || len(list) > maxScopes {
		return nil, fmt.Errorf("%s in its answer is not a list of at most %d strings", member, maxScopes)
	}
	out := make([]string, 0, len(list))
	for _, s := range list {
		if s == nil || *s == "" || utf8.RuneCountInString(*s) > maxName {
			return nil, fmt.Errorf("%s in its answer holds something that is no scope", member)
		}
		if !slices.Contains(out, *s) {
			out = append(out, *s)
		}
	}
	return out, nil
}

func actions(raw json.RawMessage) ([]Action, error) {
	if raw == nil {
		return nil, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil || len(list) > maxActions {
		return nil, fmt.Errorf("actions in its answer is not a list of at most %d", maxActions)
	}
	out := make([]Action, 0, len(list))
	for _, one := range list {
		m, ok := surface.Members(one)
		if !ok {
			return nil, errors.New("an action in its answer is not an object")
		}
		a := Action{Args: m["args"]}
		_, hashed := m["argsHash"]
		switch {
		case json.Unmarshal(m["tool"], &a.Tool) != nil || strings.TrimSpace(a.Tool) == "" || utf8.RuneCountInString(a.Tool) > maxName || strings.ContainsFunc(a.Tool, unicode.IsControl):
			return nil, errors.New("an action in its answer names no tool")
		case hashed && (json.Unmarshal(m["argsHash"], &a.ArgsHash) != nil || a.ArgsHash == ""), hashed && a.Args != nil:
			return nil, errors.New("an action in its answer has args and argsHash, or an argsHash that is no string")
		}
		for name := range m {
			if !slices.Contains([]string{"tool", "args", "argsHash"}, name) {
				return nil, errors.New("an action in its answer has a member that is not tool, args or argsHash")
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// turn is the answer as it is countersigned.
func (a Answer) turn(agent string, x authority.Exchange) authority.Turn {
	t := authority.Turn{
		Claims: x.Claims, Agent: agent, ContextID: x.Context.String(), MessageID: x.MessageID,
		ScopesUsed: a.ScopesUsed, Began: x.Began, Kept: x.Answered, MessageHash: x.MessageHash,
	}
	if x.MessageHash != "" { // versions before kept none, and logged neither
		t.ReplyHash = receiptlog.HashText(a.Text)
	}
	for _, one := range a.Actions {
		t.Actions = append(t.Actions, authority.Action(one))
	}
	return t
}
