package surface

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// What a message may weigh.
const (
	maxBody      = 256 << 10
	maxMessageID = 256 // characters
)

// Message is what a personal agent says.
type Message struct {
	ID      string    // 1 to 256 printable characters
	Context uuid.UUID // zero: it begins a conversation
	Text    string    // of all its text parts, a line each; not blank
}

// ReadMessage reads the SendMessageRequest of A2A 1.0, as far as it means
// something here. Members are matched case-sensitively, and those that we do not
// know are let be. Every error is a *Problem.
func ReadMessage(w http.ResponseWriter, r *http.Request) (Message, error) {
	switch media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case r.Header.Get("Content-Type") == "":
	case err != nil, media != MediaType && media != "application/json":
		return Message{}, ErrContentType
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return Message{}, Invalid("The body is too large.")
	}
	if err != nil {
		return Message{}, Invalid("The body could not be read.")
	}
	root, ok := Members(body)
	if !ok {
		return Message{}, Invalid("The body is not one JSON object with each member once.")
	}
	m, ok := Members(root["message"])
	if !ok {
		return Message{}, Invalid("message is missing, or not an object.")
	}
	return parseMessage(m)
}

func parseMessage(m map[string]json.RawMessage) (Message, error) {
	var out Message
	var role, taskID, contextID string
	for name, into := range map[string]*string{"messageId": &out.ID, "role": &role, "taskId": &taskID, "contextId": &contextID} {
		if !text(m[name], into) {
			return Message{}, Invalid(name + " is not a string.")
		}
	}
	switch n := utf8.RuneCountInString(out.ID); {
	case strings.TrimSpace(out.ID) == "" || n > maxMessageID || strings.ContainsFunc(out.ID, unicode.IsControl):
		return Message{}, Invalid("messageId has 1 to 256 printable characters.")
	case role != "ROLE_USER":
		return Message{}, Invalid("role is ROLE_USER.")
	}
	var err error
	if out.Text, err = parts(m["parts"]); err != nil {
		return Message{}, err
	}
	if taskID != "" {
		return Message{}, ErrTask
	}
	if contextID != "" {
		// One form only, so that a conversation has one name.
		if out.Context, err = uuid.Parse(contextID); err != nil || out.Context.String() != contextID || out.Context == uuid.Nil {
			return Message{}, ErrContext
		}
	}
	return out, nil
}

// parts joins the text parts. Other kinds are not supported: the Brand's agent
// would answer without having seen them.
func parts(raw json.RawMessage) (string, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return "", Invalid("parts is a list of at least one part.")
	}
	var texts []string
	for _, one := range list {
		part, ok := Members(one)
		if !ok {
			return "", Invalid("A part is not an object.")
		}
		for _, other := range []string{"raw", "url", "data"} {
			if _, there := part[other]; there {
				return "", ErrContentType
			}
		}
		if _, there := part["text"]; !there {
			return "", ErrContentType
		}
		var words, media string
		if !text(part["text"], &words) || string(part["text"]) == "null" || !text(part["mediaType"], &media) {
			return "", Invalid("A text part's text is a string.")
		}
		if media != "" && !strings.HasPrefix(media, "text/") {
			return "", ErrContentType
		}
		if strings.TrimSpace(words) != "" {
			texts = append(texts, words)
		}
	}
	if len(texts) == 0 {
		return "", Invalid("At least one text part is not blank.")
	}
	return strings.Join(texts, "\n"), nil
}

// text reads a string; absent and null leave it empty, as in ProtoJSON.
func text(raw json.RawMessage, into *string) bool {
	return raw == nil || json.Unmarshal(raw, into) == nil
}

// Members reads a JSON object by the exact names of its members, each of them
// once. encoding/json by itself would take "Role" for role and the last of two.
func Members(raw []byte) (map[string]json.RawMessage, bool) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	out := make(map[string]json.RawMessage)
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		key, _ := name.(string)
		if _, twice := out[key]; twice || err != nil {
			return nil, false
		}
		out[key] = value
	}
	return out, true
}
