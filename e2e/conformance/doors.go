package conformance

import (
	"net/http"
	"net/url"
)

// atBothDoors asks each check twice: at the authority, and again at message:send,
// which may be another program with eyes of its own. They are two checks, so that
// where one of the two is not served the other's verdict stands.
func atBothDoors(all []check) []check {
	var both []check
	for _, c := range all {
		both = append(both, c, check{c.rule, c.name + ", at message:send", func(t *trial) {
			t.talks()
			t.atAgent = true
			c.ask(t)
		}})
	}
	return both
}

// authorized is a call with these Authorization headers that begins nothing when
// it is made often. The agent is sent a message that is none: what it says of
// that it says to callers whom it knows, after it has looked at the pa-jwt.
func (t *trial) authorized(values ...string) answer {
	c := call{method: http.MethodPost, header: http.Header{"Authorization": values}}
	if t.atAgent {
		c.url, c.media, c.body = t.operation("message:send"), a2aType, `{}`
	} else {
		c.url, c.media = t.brand.oauth.DeviceEndpoint, formType
		c.body = url.Values{"client_id": {t.PA.Issuer}, "scope": {t.brand.document.scopes[0]}}.Encode()
	}
	return t.do(c)
}

// admits demands that the answer is one to a caller who was let in.
func (t *trial) admits(what string, a answer) {
	if t.atAgent {
		a.a2aError(t, what+", with no message", http.StatusBadRequest, "INVALID_PARAMS")
		return
	}
	a.is(t, what, http.StatusOK)
}

// second is the second agent, which talks to the Brand's. Another check may have
// had it disabled: a server may take its time to let it in again, and must.
func (t *trial) second() *Agent {
	t.needs(t.OtherPA != nil, "a second agent (--other-pa)")
	t.letsIn("the first agent", t.PA.sign(newSub(), nil)) // or waiting is for nothing
	u := t.user().at(t.OtherPA)
	t.soon("the second agent is enabled and kept out", func() bool { return u.says(say{}).status == http.StatusOK })
	return t.OtherPA
}
