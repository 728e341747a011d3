package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
)

// A Brand is opened to agents that nobody registered by an owner, under a fresh
// touch, once its domain is proven; the page says what that means before, marks
// such agents, and says before it is closed whom that stops.
func TestABrandIsOpenedToStrangers(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner := people["owner"]
	open := url.Values{"agents": {tenants.AgentsOpen}}
	owner.open(agentsAt).must(http.StatusOK, "prove your domain first").mustNot(`value="open"`)
	owner.post(agentsAt+"/rule", open, agentsAt)
	if n := s.Count(t, `SELECT count(*) FROM brands WHERE agents = 'open'`); n != 0 {
		t.Fatal("opened unproven")
	}
	s.letIn(t, brand)
	owner.open(agentsAt).must(http.StatusOK, `value="open"`, "nobody has looked at who runs it")
	people["security"].post(agentsAt+"/rule", open, agentsAt).must(http.StatusForbidden, refusedByRole)
	const stranger = "https://stranger.example"
	s.Exec(t, `INSERT INTO agents (issuer, jwks_uri, name, enabled, discovered, created_at, updated_at)
		VALUES ($1, $1 || '/jwks.json', 'stranger.example', true, true, $2, $2)`, stranger, s.Clock.Now())
	owner.open(agentsAt).mustNot("stranger.example") // who met it is another Brand's matter
	s.drain(t)
	owner.post(agentsAt+"/rule", open, agentsAt).mustGo(agentsAt + "?saved")
	if m := s.letter(t); m.To != "owner@example.com" || !strings.Contains(m.Subject, "Settings changed") {
		t.Errorf("%s reads %s", m.To, m.Subject)
	}
	owner.open(agentsAt).must(http.StatusOK, "stranger.example", "Nobody registered it", "stop at their next call")
	one := agentsAt + "/one?" + url.Values{"issuer": {stranger}}.Encode()
	owner.open(one).must(http.StatusOK, "Nobody registered this agent", "Allow this agent", "Met here first")
	owner.post(agentsAt+"/judge", judge(stranger, "deny"), one).mustGo(one + "&saved")
	owner.post(agentsAt+"/rule", url.Values{"agents": {tenants.AgentsRegistered}}, agentsAt).mustGo(agentsAt + "?saved")
	owner.open(one).must(http.StatusOK).mustNot("Allow this agent") // it would let nobody in
	s.Clock.Advance(6 * time.Minute)
	if p := owner.post(agentsAt+"/rule", open, agentsAt); !strings.HasPrefix(p.location, "/console/touch") {
		t.Errorf("without a touch: %d to %s", p.status, p.location)
	}
}
