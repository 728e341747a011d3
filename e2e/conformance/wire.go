package conformance

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
	plain    = `Bearer realm="a2a"`
)

// answer is what the server said, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// call is one request.
type call struct {
	method, url string
	bearer      string // of Authorization; empty: none
	delegation  string // beside it; empty: none
	media       string // Content-Type; empty: none
	body        string
	header      http.Header
}

// client follows no redirect: an agent would carry its token to a stranger.
var client = &http.Client{
	Timeout:       20 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (t *trial) do(c call) answer {
	a, err := t.send(c)
	if err != nil {
		t.fail("%s %s: %v", c.method, c.url, err)
	}
	return a
}

func (t *trial) send(c call) (answer, error) {
	r, err := http.NewRequestWithContext(t.ctx, c.method, c.url, strings.NewReader(c.body))
	if err != nil {
		return answer{}, err
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	if c.media != "" {
		r.Header.Set("Content-Type", c.media)
	}
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	if c.delegation != "" {
		r.Header.Set("X-A2A-User-Delegation", "Bearer "+c.delegation)
	}
	resp, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	const most = 1 << 20
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	return answer{resp.StatusCode, resp.Header, body}, err
}

func (t *trial) get(address string) answer { return t.do(call{method: http.MethodGet, url: address}) }

// form posts a form as an agent does.
func (t *trial) form(address, bearer string, values url.Values) answer {
	return t.do(call{method: http.MethodPost, url: address, bearer: bearer, media: formType, body: values.Encode()})
}

// json reads the body into v.
func (a answer) json(t *trial, v any) {
	if err := json.Unmarshal(a.body, v); err != nil {
		t.fail("status %d with a body that is not the JSON expected: %v", a.status, err)
	}
}

// oauthError is the error member of an OAuth error.
func (a answer) oauthError() string {
	var e struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(a.body, &e) // empty says as much
	return e.Error
}

// says describes an answer without anything secret that may be in it.
func (a answer) says() string {
	if e := a.oauthError(); e != "" {
		return fmt.Sprintf("%d %s", a.status, e)
	}
	return fmt.Sprintf("%d with %d bytes", a.status, len(a.body))
}

// is demands a status.
func (a answer) is(t *trial, what string, status int) {
	if a.status != status {
		t.fail("%s: %s, not %d", what, a.says(), status)
	}
}

// refuses demands an OAuth error, byte for byte in what the RFC fixes.
func (a answer) refuses(t *trial, what string, status int, code string) {
	switch {
	case a.status != status || a.oauthError() != code:
		t.fail("%s: %s, not %d %s", what, a.says(), status, code)
	case !isJSON(a.header):
		t.fail("%s: the error's Content-Type is %q", what, a.header.Get("Content-Type"))
	case a.header.Get("Cache-Control") != "no-store":
		t.fail("%s: Cache-Control of an error is %q, not no-store", what, a.header.Get("Cache-Control"))
	}
}

// plain401 demands the one answer to every failure of the pa-jwt (M7).
func (a answer) plain401(t *trial, what string) { a.bare401(t, what, plain) }

func (a answer) bare401(t *trial, what, challenge string) {
	switch got := a.header.Values("WWW-Authenticate"); {
	case a.status != http.StatusUnauthorized:
		t.fail("%s: %s, not 401", what, a.says())
	case len(got) != 1 || got[0] != challenge:
		t.fail("%s: WWW-Authenticate is %q, not %q", what, got, challenge)
	case len(a.body) != 0:
		t.fail("%s: the 401 has a body of %d bytes", what, len(a.body))
	}
}

func isJSON(h http.Header) bool {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(media), jsonType)
}

// newSub is an agent's user nobody had before: no check disturbs another.
func newSub() string { return "conformance-" + strings.ToLower(rand.Text()) }

func compact(raw []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}
