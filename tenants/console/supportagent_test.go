package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign.dev/tenants"
)

// Where the Brand's own agent is called: the owners' word, under a touch; an
// address that we never call is refused with the way to mend it; the secret is
// shown once, also of another address; a check shows what came back.
func TestYourAgentOnTheDashboard(t *testing.T) {
	s := newSite(t)
	_, people := team(t, s)
	owner, at := people["owner"], lake+"support-agent"
	for _, role := range []string{"viewer", "support"} {
		people[role].open(at).must(http.StatusForbidden)
	}
	people["stranger"].open(at).must(http.StatusNotFound)
	owner.open(at).must(http.StatusOK, "None yet", "countersign endpoint show --brand lake")
	owner.post(at+"/check", nil, "").must(http.StatusBadRequest)
	form := func(address string) url.Values {
		return url.Values{"once": owner.open(at).fields(at)["once"], "url": {address}}
	}
	for _, bad := range []string{"", "http://hotel.example/turn", "https://192.168.1.1/turn", "https://u:p@hotel.example/", "https://hotel.example:8443/", "https://hotel.example/#x"} {
		owner.post(at, form(bad), at).must(http.StatusUnprocessableEntity, `id="field-url-problem"`)
	}
	people["security"].post(at, url.Values{"url": {"https://hotel.example/turn"}}, "").must(http.StatusForbidden)
	good := form("https://hotel.example/turn")
	first := owner.post(at, good, at).secret()
	owner.post(at, good, at).mustGo(at) // sent twice
	owner.post(at, form("https://hotel.example/turn"), at).mustGo(at)
	second := owner.post(at, form("https://hotel.example/other"), at).secret()
	fresh := owner.open(at).fields(at + "/secret")
	delete(fresh, "at-once") // a box that was not ticked
	third := owner.post(at+"/secret", fresh, "").secret()
	for i, secret := range []string{first, second, third} {
		if !strings.HasPrefix(secret, "whsec_") || i > 0 && secret == first {
			t.Errorf("secret %d is %q", i, secret)
		}
	}
	owner.open(at).must(http.StatusOK, "https://hotel.example/other", "Former secret")

	s.tried = tenants.AgentTried{Text: "Hello <b>there</b>."}
	owner.post(at+"/check", nil, "").must(http.StatusOK, "Your agent answered", "Hello &lt;b&gt;there&lt;/b&gt;.")
	s.tried = tenants.AgentTried{Wrong: "its answer is not application/json"}
	people["security"].post(at+"/check", nil, "").must(http.StatusOK, "its answer is not application/json")

	owner.post(at+"/remove", nil, "").mustGo(at + "?removed")
	owner.open(at+"?removed").must(http.StatusOK, "not called any more", "None yet")
	for event, want := range map[string]int{"agent_endpoint.set": 2, "agent_endpoint.secret_rotated": 1, "agent_endpoint.removed": 1} {
		if n := s.facts(t, event); n != want {
			t.Errorf("%d facts %s, want %d", n, event, want)
		}
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE detail::text LIKE '%hotel.example/%'`); n != 0 {
		t.Errorf("the address stands in %d facts", n)
	}
}
