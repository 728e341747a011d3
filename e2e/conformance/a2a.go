package conformance

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

const a2aType = "application/a2a+json"

// say is one message to the Brand's agent.
type say struct {
	Context, ID, Text string
	Delegation        string // empty: none
}

// reply is what message:send answered.
type reply struct {
	Message *message `json:"message"`
	Task    *task    `json:"task"`

	raw answer
}

type message struct {
	ID       string                     `json:"messageId"`
	Context  string                     `json:"contextId"`
	Role     string                     `json:"role"`
	Parts    []map[string]any           `json:"parts"`
	Metadata map[string]json.RawMessage `json:"metadata"`
}

type task struct {
	ID      string `json:"id"`
	Context string `json:"contextId"`
	Status  struct {
		State string `json:"state"`
	} `json:"status"`
	Metadata map[string]json.RawMessage `json:"metadata"`
}

// context is where the conversation goes on.
func (r reply) context() string {
	if r.Task != nil {
		return r.Task.Context
	}
	return r.Message.Context
}

func (t *trial) operation(name string) string { return strings.TrimRight(t.brand.at, "/") + "/" + name }

// talks ends the trial where nobody serves message:send: nothing that is not
// there keeps a rule.
func (t *trial) talks() {
	a := t.do(call{method: http.MethodPost, url: t.operation("message:send"), media: a2aType, body: `{}`})
	if a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotImplemented {
		t.notServed("message:send answers " + a.says())
	}
}

func (s say) body() string {
	m := object{
		"messageId": s.ID, "role": "ROLE_USER", "parts": []object{{"text": s.Text}},
	}
	if s.Context != "" {
		m["contextId"] = s.Context
	}
	raw, err := json.Marshal(object{"message": m})
	if err != nil {
		panic(err) // texts alone
	}
	return string(raw)
}

// says sends it, as the user; what is missing in it is made up.
func (u user) says(s say) answer {
	if s.ID == "" {
		s.ID = newSub()
	}
	if s.Text == "" {
		s.Text = "Hello. What can you do for me?"
	}
	return u.sends(s.body(), s.Delegation)
}

func (u user) sends(body, delegation string) answer {
	return u.t.do(call{
		method: http.MethodPost, url: u.t.operation("message:send"), bearer: u.bearer(), delegation: delegation,
		media: a2aType, body: body,
	})
}

// replies demands a message, or a task, as the answer.
func (a answer) replies(t *trial, what string) reply {
	a.is(t, what, http.StatusOK)
	if a.header.Get("Content-Type") != a2aType {
		t.fail("%s: Content-Type is %q, not %s", what, a.header.Get("Content-Type"), a2aType)
	}
	r := reply{raw: a}
	a.json(t, &r)
	if (r.Message == nil) == (r.Task == nil) {
		t.fail("%s: the answer is not one message or one task", what)
	}
	if r.context() == "" {
		t.fail("%s: the answer names no context", what)
	}
	return r
}

// a2aError demands the envelope of an A2A error.
func (a answer) a2aError(t *trial, what string, status int, reason string) {
	name := map[string]string{
		"INVALID_PARAMS": "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED": "INVALID_ARGUMENT",
		"UNSUPPORTED_OPERATION": "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED": "FAILED_PRECONDITION",
		"TASK_NOT_FOUND": "NOT_FOUND", "INTERNAL": "INTERNAL",
	}[reason]
	a.is(t, what, status)
	if a.header.Get("Content-Type") != a2aType {
		t.fail("%s: Content-Type is %q, not %s", what, a.header.Get("Content-Type"), a2aType)
	}
	var e struct {
		Error struct {
			Code    int              `json:"code"`
			Status  string           `json:"status"`
			Message string           `json:"message"`
			Details []map[string]any `json:"details"`
		} `json:"error"`
	}
	a.json(t, &e)
	if e.Error.Code != status || e.Error.Status != name || e.Error.Message == "" {
		t.fail("%s: code %d, status %q, not %d and %s with a message", what, e.Error.Code, e.Error.Status, status, name)
	}
	info := slices.IndexFunc(e.Error.Details, func(d map[string]any) bool {
		return d["@type"] == "type.googleapis.com/google.rpc.ErrorInfo" && d["reason"] == reason && d["domain"] == "a2a-protocol.org"
	})
	if info < 0 {
		t.fail("%s: details %v have no ErrorInfo with reason %s of a2a-protocol.org", what, e.Error.Details, reason)
	}
}

// needing is a scope that one of the texts needs, the text, and a scope beside it.
func (t *trial) needing() (scope, text, other string) {
	for _, id := range t.brand.document.scopes {
		if text, there := t.Texts[id]; there {
			i := slices.IndexFunc(t.brand.document.scopes, func(o string) bool { return o != id && t.Texts[o] != text })
			t.needs(i >= 0, "a second scope on the card")
			return id, text, t.brand.document.scopes[i]
		}
	}
	t.needs(false, "what to tell the Brand's agent so that it needs a scope (--text)")
	return "", "", ""
}

// surfaceChecks are the operations other than message:send.
func surfaceChecks() []check {
	unsupported := func(name string, calls map[string]string, status int, reason string) check {
		return check{"§9", name, func(t *trial) {
			t.talks()
			for operation, method := range calls {
				c := call{method: method, url: t.operation(operation), media: a2aType}
				if method == http.MethodPost {
					c.body = `{}`
				}
				t.do(c).plain401(t, operation+" without a pa-jwt")
				c.bearer = t.PA.sign(newSub(), nil)
				t.do(c).a2aError(t, operation, status, reason)
			}
		}}
	}
	return []check{
		{"§9", "tasks: an empty list, page sizes from 1 to 100", func(t *trial) {
			t.talks()
			u := t.user()
			list := func(query string) answer {
				return t.do(call{method: http.MethodGet, url: t.operation("tasks") + query, bearer: u.bearer()})
			}
			t.get(t.operation("tasks")).plain401(t, "tasks without a pa-jwt")
			for _, query := range []string{"", "?pageSize=1", "?pageSize=100"} {
				a := list(query)
				a.is(t, "tasks"+query, http.StatusOK)
				var got struct {
					Tasks *[]any `json:"tasks"`
				}
				a.json(t, &got)
				if got.Tasks == nil || len(*got.Tasks) != 0 || a.header.Get("Content-Type") != a2aType {
					t.fail("tasks%s: not an empty list as %s", query, a2aType)
				}
			}
			for _, query := range []string{"?pageSize=0", "?pageSize=101", "?pageSize=-1", "?pageSize=many", "?pageSize="} {
				list(query).a2aError(t, "tasks"+query, http.StatusBadRequest, "INVALID_PARAMS")
			}
		}},
		unsupported("a task is not found", map[string]string{"tasks/any": http.MethodGet, "tasks/any:cancel": http.MethodPost},
			http.StatusNotFound, "TASK_NOT_FOUND"),
		unsupported("streams and the extended card are not supported", map[string]string{
			"tasks/any:subscribe": http.MethodPost, "message:stream": http.MethodPost, "extendedAgentCard": http.MethodGet,
		}, http.StatusBadRequest, "UNSUPPORTED_OPERATION"),
		unsupported("push notifications are not supported", map[string]string{
			"tasks/any/pushNotificationConfigs": http.MethodPost, "tasks/any/pushNotificationConfigs/one": http.MethodGet,
		}, http.StatusBadRequest, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
		{"§9", "anything else is 404 or 405, before the pa-jwt and without an A2A body", func(t *trial) {
			t.talks()
			for _, bearer := range []string{"", t.PA.sign(newSub(), nil)} {
				for _, c := range []call{
					{method: http.MethodPost, url: t.operation("message:sendx")},
					{method: http.MethodGet, url: t.operation("no-such-operation")},
					{method: http.MethodPost, url: t.operation("v1/message:send")},
					{method: http.MethodPost, url: t.unknownBrand(t.operation("message:send"))},
					{method: http.MethodGet, url: t.operation("message:send")},
					{method: http.MethodDelete, url: t.operation("tasks/any")},
				} {
					c.bearer = bearer
					a := t.do(c)
					if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
						t.fail("%s %s: %s, not 404 or 405", c.method, path(c.url), a.says())
					}
					if strings.Contains(a.header.Get("Content-Type"), "a2a") || strings.Contains(string(a.body), "a2a-protocol.org") {
						t.fail("%s %s: a body of A2A", c.method, path(c.url))
					}
				}
			}
		}},
	}
}
