package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

const agentsAt = lakePages + "agents"

func (s *site) register(t *testing.T, issuer, name string, test bool) {
	t.Helper()
	s.Exec(t, `INSERT INTO agents (issuer, jwks_uri, name, enabled, test, contact, created_at, updated_at)
		VALUES ($1, $1 || '/jwks.json', $2, true, $3, 'ops@agent.example', $4, $4)`, issuer, name, test, s.Clock.Now())
}

func judge(issuer, word string) url.Values { return url.Values{"issuer": {issuer}, "word": {word}} }

// Agents are allowed and denied by owners and security; it holds from the next
// call on, and the page says why an agent may not ask.
func TestAgentsAreJudged(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner, security := people["owner"], people["security"]
	s.register(t, "https://test.example", "Tester", true)
	one := agentsAt + "/one?issuer=" + url.QueryEscape(authoritytest.Agent)
	p := owner.open(agentsAt).must(http.StatusOK, "agent.example", "until your domain is proven", "Test agent", "Every registered agent may ask")
	if strings.Contains(p.body, "ops@agent.example") {
		t.Error("whom the operator can ask is shown")
	}
	owner.permit("boats:read").mustGo(permissionsAt + "?saved")
	s.letIn(t, brand)
	a := s.Authority(nil)
	started := authoritytest.Begin(t, a, s.Reload(t, brand), authoritytest.Alex, "boats:read")
	authoritytest.Approve(t, a, s.Reload(t, brand), started, "guest-1", "boats:read")
	security.open(one).must(http.StatusOK, "1 customer lets this agent act today", authoritytest.Agent+"/jwks.json", "Deny this agent")

	hash := strings.Repeat("h", 43)
	if strings.Contains(owner.open(one).body, "agents/logo") {
		t.Error("a picture of nobody's")
	}
	s.Exec(t, `INSERT INTO agent_logos VALUES ($1, 'x', $2, $3)`, authoritytest.Agent, hash, s.Clock.Now())
	for _, page := range []string{one, agentsAt} {
		owner.open(page).must(http.StatusOK, "/b/"+string(brand)+"/agents/logo?v="+hash, "agent.example")
	}

	for _, role := range []string{"support", "viewer"} {
		if strings.Contains(people[role].open(one).must(http.StatusOK).body, "Deny this agent") {
			t.Errorf("%s is offered to deny", role)
		}
		people[role].post(agentsAt+"/judge", judge(authoritytest.Agent, "deny"), one).must(http.StatusForbidden, refusedByRole)
	}
	people["stranger"].post(agentsAt+"/judge", judge(authoritytest.Agent, "deny"), one).must(http.StatusNotFound)
	if s.Count(t, `SELECT count(*) FROM brand_agents`) != 0 {
		t.Fatal("somebody without the right judged an agent")
	}
	for range 2 {
		security.post(agentsAt+"/judge", judge(authoritytest.Agent, "deny"), one).mustGo(one + "&saved")
	}
	security.open(one).must(http.StatusOK, "No: you deny it", "Allow this agent", "Take my word back")
	if _, err := a.Begin(t.Context(), s.Reload(t, brand), authority.Caller{Agent: authoritytest.Agent, Sub: "x"}, []string{"boats:read"}); err == nil {
		t.Error("a denied agent asks")
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'lake' AND event = 'agent.denied' AND actor_id = $1`, s.person(t, "security@example.com").String()); n != 1 {
		t.Errorf("%d facts in the trail", n)
	}
	security.post(agentsAt+"/judge", judge(authoritytest.Agent, "rule"), one).mustGo(one + "&saved")
	if s.Count(t, `SELECT count(*) FROM brand_agents`) != 0 {
		t.Error("the word was not taken back")
	}
	security.post(agentsAt+"/judge", judge("https://nobody.example", "allow"), one).must(http.StatusNotFound)
	security.post(agentsAt+"/judge", judge(authoritytest.Agent, "praise"), one).must(http.StatusBadRequest)
	owner.open(agentsAt + "/one?issuer=https%3A%2F%2Fnobody.example").must(http.StatusNotFound)
}

// Who may ask at all is the owners' to say, under a fresh touch, and all of them
// hear of it.
func TestTheAgentRule(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	s.letIn(t, brand)
	listed := url.Values{"agents": {tenants.AgentsListed}}
	people["security"].post(agentsAt+"/rule", listed, agentsAt).must(http.StatusForbidden, refusedByRole)
	people["owner"].post(agentsAt+"/rule", url.Values{"agents": {"anybody"}}, agentsAt).must(http.StatusBadRequest)
	s.drain(t)
	people["owner"].post(agentsAt+"/rule", listed, agentsAt).mustGo(agentsAt + "?saved")
	people["viewer"].open(agentsAt).must(http.StatusOK, "Only agents that you allow may ask", "not on your list")
	if m := s.letter(t); m.To != "owner@example.com" || !strings.Contains(m.Subject, "Settings changed") {
		t.Errorf("%s reads %s", m.To, m.Subject)
	}
	s.Clock.Advance(6 * time.Minute)
	if p := people["owner"].post(agentsAt+"/rule", listed, agentsAt); !strings.HasPrefix(p.location, "/console/touch") {
		t.Errorf("without a touch: %d to %s", p.status, p.location)
	}
}

// Addresses that can be mistaken stand in both forms, and names and addresses that
// can be taken for others are pointed out. What one searches for stays in the
// address, and pages hold.
func TestAgentsThatPassForOthers(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	owner.found("lake")
	s.register(t, "https://xn--gent-43d.example", "Aria", false) // аgent.example with a Cyrillic а
	s.register(t, "https://lac.example", "Café du Lac Support", false)
	owner.open(agentsAt).must(
		http.StatusOK, "xn--gent-43d.example", "аgent.example", "looks like that of another agent",
		"reads like",
	)
	owner.open(agentsAt+"/one?issuer="+url.QueryEscape("https://xn--gent-43d.example")).must(http.StatusOK, "аgent.example", "agent.example")
	p := owner.open(agentsAt+"?q=LAC").must(http.StatusOK, "lac.example", `value="LAC"`)
	if strings.Contains(p.body, "other.example") {
		t.Error("the search shows all")
	}
	owner.open(agentsAt+"?q=%25").must(http.StatusOK, "No registered agent")
	for i := range 60 {
		s.register(t, "https://m"+string(rune('a'+i/26))+string(rune('a'+i%26))+".example", "Many", true)
	}
	p = owner.open(agentsAt+"?q=many").must(http.StatusOK, "maa.example", "mbx.example", "Next page")
	if strings.Contains(p.body, "mby.example") {
		t.Error("the page is too long")
	}
	next := p.find("a", "href", agentsAt+"?after=https%3A%2F%2Fmbx.example&q=many")
	if next == nil {
		t.Fatalf("no way to the next page\n%s", p.body)
	}
	p = owner.open(agentsAt+"?after=https%3A%2F%2Fmbx.example&q=many").must(http.StatusOK, "mby.example", "mch.example", "First page")
	if strings.Contains(p.body, "mbx.example\"") || strings.Contains(p.body, "Next page") {
		t.Error("pages overlap")
	}
}
