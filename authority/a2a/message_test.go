package a2a_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign.dev/authority/agent/agenttest"
	"github.com/google/uuid"
)

// wire.md §9: what is sent, member by member, and B84: names are exact.
func TestMessagesThatAreRefused(t *testing.T) {
	d := newDoor(t)
	jwt := d.pa.Token(t, agenttest.Claims{Sub: "alex"})
	send := func(media, body string) answer {
		r := d.request(http.MethodPost, d.url+"/message:send", jwt, "", body)
		if media != "" {
			r.Header.Set("Content-Type", media)
		}
		return d.do(r)
	}
	const ok = `"messageId":"m","role":"ROLE_USER","parts":[{"text":"Hi"}]`
	for what, body := range map[string]string{
		"nothing":               ``,
		"not JSON":              `%%%`,
		"not UTF-8":             "{\"message\":{\"messageId\":\"\xff\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]}}",
		"an array":              `[]`,
		"a string":              `"message"`,
		"two values":            `{"message":{` + ok + `}}{}`,
		"no message":            `{}`,
		"message null":          `{"message":null}`,
		"message of text":       `{"message":"Hi"}`,
		"message twice":         `{"message":{` + ok + `},"message":{` + ok + `}}`,
		"Message":               `{"Message":{` + ok + `}}`,
		"no messageId":          `{"message":{"role":"ROLE_USER","parts":[{"text":"Hi"}]}}`,
		"messageId blank":       `{"message":{"messageId":" ","role":"ROLE_USER","parts":[{"text":"Hi"}]}}`,
		"messageId a number":    `{"message":{"messageId":1,"role":"ROLE_USER","parts":[{"text":"Hi"}]}}`,
		"messageId with a zero": `{"message":{"messageId":"\u0000","role":"ROLE_USER","parts":[{"text":"Hi"}]}}`,
		"messageId too long":    `{"message":{"messageId":"` + strings.Repeat("m", 257) + `","role":"ROLE_USER","parts":[{"text":"Hi"}]}}`,
		"messageID":             `{"message":{"messageID":"m","role":"ROLE_USER","parts":[{"text":"Hi"}]}}`,
		"no role":               `{"message":{"messageId":"m","parts":[{"text":"Hi"}]}}`,
		"ROLE_AGENT":            `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"Hi"}]}}`,
		"user":                  `{"message":{"messageId":"m","role":"user","parts":[{"text":"Hi"}]}}`,
		"role twice":            `{"message":{"messageId":"m","role":"ROLE_AGENT","role":"ROLE_USER","parts":[{"text":"Hi"}]}}`,
		"no parts":              `{"message":{"messageId":"m","role":"ROLE_USER"}}`,
		"empty parts":           `{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}`,
		"parts of text":         `{"message":{"messageId":"m","role":"ROLE_USER","parts":"Hi"}}`,
		"a part of text":        `{"message":{"messageId":"m","role":"ROLE_USER","parts":["Hi"]}}`,
		"blank text":            `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":" \n\t"}]}}`,
		"two blank texts":       `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":""},{"text":" "}]}}`,
		"text a number":         `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":1}]}}`,
		"text null":             `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":null}]}}`,
		"contextId a number":    `{"message":{"contextId":1,` + ok + `}}`,
		"contextId unknown":     `{"message":{"contextId":"` + uuid.NewString() + `",` + ok + `}}`,
		"contextId no id":       `{"message":{"contextId":"../x",` + ok + `}}`,
		"contextId zero":        `{"message":{"contextId":"00000000-0000-0000-0000-000000000000",` + ok + `}}`,
		"taskId a number":       `{"message":{"taskId":1,` + ok + `}}`,
		"too large":             `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"` + strings.Repeat("x", 256<<10) + `"}]}}`,
	} {
		send("application/a2a+json", body).invalid(t, what)
	}
	for what, body := range map[string]string{
		"a file":            `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"url":"https://a.example/x.png"}]}}`,
		"bytes":             `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"AAAA"}]}}`,
		"data":              `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{}}]}}`,
		"text and a file":   `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Hi"},{"url":"https://a.example/x.png"}]}}`,
		"text with a file":  `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Hi","url":"https://a.example/x.png"}]}}`,
		"an unknown kind":   `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"Text":"Hi"}]}}`,
		"text that is none": `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Hi","mediaType":"image/png"}]}}`,
	} {
		send("application/a2a+json", body).is(t, what, http.StatusBadRequest, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")
	}
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/", ";"} {
		send(media, said("m", "", "Hi")).is(t, media, http.StatusBadRequest, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")
	}
	send("", `{"message":{"taskId":"t1",`+ok+`}}`).is(t, "a task", http.StatusNotFound, "NOT_FOUND", "TASK_NOT_FOUND")
	if n := d.agent.count(); n != 0 {
		t.Errorf("the Brand's agent was called %d times", n)
	}
	if n := d.Count(t, `SELECT count(*) FROM conversations`); n != 0 {
		t.Errorf("%d conversations began", n)
	}
}

// What A2A clients send beside what means something here is let be.
func TestMessagesThatAreTaken(t *testing.T) {
	d := newDoor(t)
	jwt := d.pa.Token(t, agenttest.Claims{Sub: "alex"})
	const ok = `"messageId":"m","role":"ROLE_USER","parts":[{"text":"Hi"},{"text":" "},{"text":"there","mediaType":"text/markdown","metadata":{}}]`
	for what, body := range map[string]string{
		"plain":            `{"message":{` + ok + `}}`,
		"more members":     `{"tenant":"","configuration":{"acceptedOutputModes":["text/plain"]},"metadata":{},"message":{"extensions":[],"referenceTaskIds":[],"metadata":{},` + ok + `}}`,
		"empty references": `{"message":{"taskId":"","contextId":"",` + ok + `}}`,
		"null references":  `{"message":{"taskId":null,"contextId":null,` + ok + `}}`,
	} {
		for _, media := range []string{"application/a2a+json", "application/json", "application/json; charset=utf-8"} {
			r := d.request(http.MethodPost, d.url+"/message:send", jwt, "", body)
			r.Header.Set("Content-Type", media)
			a := d.do(r)
			turn, _, _ := d.agent.last()
			if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/a2a+json" || turn.Text != "Hi\nthere" {
				t.Errorf("%s as %s: %d %s; the agent read %q", what, media, a.status, a.body, turn.Text)
			}
		}
	}
}
