package conformance

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// limitChecks are about how much one User may say.
func limitChecks() []check {
	return []check{
		{"§9", "who says too much hears 429 and when to come again, and nobody else does", func(t *trial) {
			t.talks()
			u := t.user()
			const most = 200 // a server that takes so many has no limit that we would meet
			for range most {
				a := u.says(say{})
				if a.status == http.StatusOK {
					continue
				}
				a.is(t, "a message too many", http.StatusTooManyRequests)
				seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
				if err != nil || seconds < 1 {
					t.fail("Retry-After of the 429 is %q", a.header.Get("Retry-After"))
				}
				u.other().says(say{}).replies(t, "another User of the same agent")
				return
			}
			t.notServed("no limit within 200 messages")
		}},
	}
}

// sendChecks are about message:send without any delegation.
func sendChecks() []check {
	return []check{
		{"§9", "a message is answered by a message", func(t *trial) {
			t.talks()
			r := t.user().says(say{}).replies(t, "a message")
			if r.Message == nil || r.Message.ID == "" || r.Message.Role != "ROLE_AGENT" || len(r.Message.Parts) == 0 {
				t.fail("the answer is not a message by ROLE_AGENT with an id and parts")
			}
			if text, _ := r.Message.Parts[0]["text"].(string); strings.TrimSpace(text) == "" {
				t.fail("the answer's first part has no text")
			}
		}},
		{"§9", "the pa-jwt comes before the body", func(t *trial) {
			t.talks()
			for _, body := range []string{"", "{", `{}`, say{ID: newSub(), Text: "Hello"}.body()} {
				for _, bearer := range []string{"", "not-a-jwt", t.PA.sign(newSub(), object{"exp": 1})} {
					t.do(call{method: http.MethodPost, url: t.operation("message:send"), media: a2aType, bearer: bearer, body: body}).
						plain401(t, "message:send with a bad pa-jwt")
				}
			}
		}},
		{"§9", "messages that are none are INVALID_PARAMS", func(t *trial) {
			t.talks()
			u := t.user()
			good := object{"messageId": newSub(), "role": "ROLE_USER", "parts": []object{{"text": "Hello"}}}
			for what, m := range map[string]any{
				"no message":      nil,
				"no messageId":    good.with(object{"messageId": nil}),
				"empty messageId": good.with(object{"messageId": ""}),
				"no role":         good.with(object{"role": nil}),
				"the agent's":     good.with(object{"role": "ROLE_AGENT"}),
				"a lower case":    good.with(object{"role": "user"}),
				"no parts":        good.with(object{"parts": nil}),
				"empty parts":     good.with(object{"parts": []object{}}),
				"blank text":      good.with(object{"parts": []object{{"text": " \n"}}}),
				"a list":          []object{good},
			} {
				body := object{}
				if m != nil {
					body["message"] = m
				}
				raw, err := json.Marshal(body)
				if err != nil {
					t.fail("encode: %v", err)
				}
				u.sends(string(raw), "").a2aError(t, what, http.StatusBadRequest, "INVALID_PARAMS")
			}
			for what, body := range map[string]string{"nothing": "", "broken JSON": `{"message":`, "no object": `[]`} {
				u.sends(body, "").a2aError(t, what, http.StatusBadRequest, "INVALID_PARAMS")
			}
		}},
		{"§9", "parts other than text are CONTENT_TYPE_NOT_SUPPORTED", func(t *trial) {
			t.talks()
			u := t.user()
			for what, p := range map[string]object{
				"data": {"data": object{"a": 1}}, "a file by address": {"url": "https://example.com/a.png", "mediaType": "image/png"},
				"raw bytes": {"raw": "AAAA", "mediaType": "application/octet-stream"},
			} {
				for _, parts := range [][]object{{p}, {{"text": "Look"}, p}} {
					raw, err := json.Marshal(object{"message": object{"messageId": newSub(), "role": "ROLE_USER", "parts": parts}})
					if err != nil {
						t.fail("encode: %v", err)
					}
					u.sends(string(raw), "").a2aError(t, what, http.StatusBadRequest, "CONTENT_TYPE_NOT_SUPPORTED")
				}
			}
		}},
		{"§9", "a message to a task is TASK_NOT_FOUND", func(t *trial) {
			t.talks()
			raw, err := json.Marshal(object{"message": object{
				"messageId": newSub(), "role": "ROLE_USER", "parts": []object{{"text": "Hello"}}, "taskId": "any",
			}})
			if err != nil {
				t.fail("encode: %v", err)
			}
			t.user().sends(string(raw), "").a2aError(t, "taskId", http.StatusNotFound, "TASK_NOT_FOUND")
		}},
		{"§9", "conversations go on, and an unknown one is INVALID_PARAMS", func(t *trial) {
			t.talks()
			u := t.user()
			first := u.says(say{}).replies(t, "the first message")
			second := u.says(say{Context: first.context()}).replies(t, "the second")
			if first.context() != second.context() {
				t.fail("the conversation moved to another context")
			}
			if other := u.says(say{}).replies(t, "a message without a context"); other.context() == first.context() {
				t.fail("a message without a context did not begin a conversation")
			}
			u.says(say{Context: newSub()}).a2aError(t, "an unknown context", http.StatusBadRequest, "INVALID_PARAMS")
		}},
		{"§9", "the same message again gets the stored reply", func(t *trial) {
			t.talks()
			u := t.user()
			first := u.says(say{}).replies(t, "the first message")
			again := say{Context: first.context(), ID: newSub(), Text: "And what else?"}
			one := u.says(again).replies(t, "the message")
			two := u.says(again).replies(t, "the same message")
			if compact(one.raw.body) != compact(two.raw.body) {
				t.fail("a repeated messageId got another reply")
			}
			if other := u.says(say{Context: first.context()}).replies(t, "another message"); compact(other.raw.body) == compact(one.raw.body) {
				t.fail("another message got the stored reply")
			}
		}},
	}
}
