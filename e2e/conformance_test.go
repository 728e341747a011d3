package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/e2e/conformance"
)

// keys are of every kind and slow to make, so all agents of these tests have the
// same ones.
var keys = sync.OnceValues(func() (*conformance.Agent, error) {
	return conformance.NewAgent("https://nobody.invalid", "nobody")
})

// registers has the operator register an agent that publishes its keys on this
// machine until the test ends.
func (p *product) registers(t *testing.T, audience string) *conformance.Agent {
	t.Helper()
	made, err := keys()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer := "http://" + l.Addr().String()
	agent, err := made.As(issuer, audience)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(agent.JWKS()) })}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	p.operate(t, "agent", "add", "--issuer", issuer, "--jwks-uri", issuer+"/jwks.json", "--name", "Prober", "--allow-loopback", "--test")
	return agent
}

// operator does what the suite asks of one.
func (p *product) operator(t *testing.T, b brand) conformance.Operator {
	t.Helper()
	order := scopesInOrder(t, b)
	return func(_ context.Context, action, object string) error {
		verb, noun, _ := strings.Cut(action, "-")
		args := []string{noun, verb, "--database-url", p.DatabaseURL}
		switch noun {
		case "user":
			args = append(args, "--brand", b.ID, "--subject", object)
		case "agent":
			args = append(args, "--issuer", object)
		case "scope":
			args = append(args, "--brand", b.ID, "--scope", object, "--as-operator")
		case "brand":
			args = append(args, "--brand", b.ID)
			if verb == "resume" {
				args = append(args, "--as-operator")
			}
		}
		if out, exit := p.run(t, "", args...); exit != 0 {
			return fmt.Errorf("exit %d: %s", exit, out)
		}
		// Or the next rule would be asked of who still seems paused, or disabled.
		switch {
		case noun == "brand":
			time.Sleep(settingsAge)
		case action == "enable-agent":
			time.Sleep(agentAge)
		}
		if verb == "restore" { // to where it stood before
			p.operate(t, "scope", "order", "--brand", b.ID, "--order", strings.Join(order, ","), "--as-operator")
		}
		return nil
	}
}

// scopesInOrder are the Brand's scopes as its metadata list them.
func scopesInOrder(t *testing.T, b brand) []string {
	t.Helper()
	resp, err := http.Get(b.Issuer + "/.well-known/oauth-authorization-server")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var m struct {
		Scopes []string `json:"scopes_supported"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m.Scopes
}

// probe is what the suite needs to know to ask about everything.
func (p *product) probe(t *testing.T, b, other brand) conformance.Config {
	t.Helper()
	// For so long a spent refresh token gets its successor again. One check waits
	// for it, so it is made short.
	const grace, demo = "grace_seconds=6", "grace_seconds=30"
	p.operate(t, "brand", "set", "--brand", b.ID, "--set", grace)
	t.Cleanup(func() { p.operate(t, "brand", "set", "--brand", b.ID, "--set", demo) })
	people := &conformance.Forms{}
	for _, u := range b.Users {
		people.People = append(people.People, conformance.Person{Username: u.Username, Password: "demo", Subject: u.Subject})
	}
	return conformance.Config{
		Card: b.CardURL, OtherCard: other.CardURL, OtherAudience: other.Audience, PA: p.registers(t, b.Audience), OtherPA: p.registers(t, b.Audience),
		People: people, BrandKey: b.APIKey, Verify: p.PublicURL + "/a2a/" + b.ID + "/oauth/verify", Operator: p.operator(t, b), Texts: saidTo[b.ID], Grace: 7 * time.Second,
	}
}

// saidTo is what to tell a demo Brand's agent so that it needs a scope.
var saidTo = map[string]map[string]string{
	"harbor-hotel": {
		"bookings:read": "Which room is mine?", "bookings:change": "Please cancel my stay.",
		"extras:order": "Breakfast, please.", "profile:read": "Who am I to you?",
	},
	"fern-and-fell": {
		"orders:read": "Where is my parcel?", "returns:start": "I will return the boots.", "orders:place": "Buy me a head torch.",
	},
}

// M1–M24, P28, P38, P39, P41–P46: the suite that anybody may run against any PACT server holds
// for both demo Brands, with nothing left out.
func TestConformance(t *testing.T) {
	p := theProduct(t)
	for _, pair := range [][2]brand{{p.hotel(t), p.outfitter(t)}, {p.outfitter(t), p.hotel(t)}} {
		t.Run(pair[0].ID, func(t *testing.T) {
			results, err := conformance.Run(t.Context(), p.probe(t, pair[0], pair[1]))
			if err != nil {
				t.Fatal(err)
			}
			var table strings.Builder
			if err := conformance.Print(&table, results); err != nil {
				t.Fatal(err)
			}
			t.Logf("\n%s", &table)
			if verdict := conformance.Verdict(results); verdict != conformance.Pass {
				t.Errorf("the verdict: %s", verdict)
			}
		})
	}
}

// The command asks the same over the network alone: an agent from a file, people
// from a file, and exit codes that tell a broken rule from one not looked at.
func TestTheConformanceCommand(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	folder := t.TempDir()
	write := func(name string, v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	agent := write("agent.json", p.registers(t, hotel.Audience))
	people := write("people.json", hotel.Users)
	run := func(args ...string) (string, int) {
		args = append([]string{"conformance", "--card", hotel.InterfaceURL, "--pa", agent, "--people", people}, args...)
		return p.run(t, "", args...)
	}
	if out, exit := run("--rule", "M3,M4,M15"); exit != 0 || !strings.Contains(out, "0 failed, 0 not served, 0 not run") {
		t.Errorf("exit %d\n%s", exit, out)
	}
	out, exit := run("--rule", "M2", "--json")
	var said struct {
		Verdict string
		Results []conformance.Result
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || exit != 3 || said.Verdict != conformance.NotRun || len(said.Results) != 6 {
		t.Errorf("without a second agent and an operator: exit %d, %v\n%s", exit, err, out)
	}
	if out, exit := run("--rule", "M5", "--pa-issuer", "https://nobody.invalid"); exit != 1 || !strings.Contains(out, conformance.Fail) {
		t.Errorf("as an agent nobody knows: exit %d\n%s", exit, out)
	}
	for _, args := range [][]string{{"--rule", "M99"}, {"--pa", people}, {"--card", hotel.Issuer}} {
		if out, exit := run(args...); exit != 2 || out != "" {
			t.Errorf("%v: exit %d\n%s", args, exit, out)
		}
	}
}

// Where a Brand signs its people in on its own page, the suite plays that page's
// part, with the form that public drivers know (B55, P20).
func TestConformanceOnABrandsOwnLoginPage(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	probe := p.probe(t, hotel, p.outfitter(t))
	page := p.ownLogin(t, false)
	probe.People = &conformance.Forms{
		People:    []conformance.Person{{Username: "alex", Subject: hotel.Users[0].Subject}},
		Assertion: &conformance.Assertion{Issuer: page.Issuer(), Key: page.Key().JWK()},
	}
	probe.Only = []string{"M10", "M15", "M19", "M20"}
	results, err := conformance.Run(t.Context(), probe)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Result != conformance.Pass {
			t.Errorf("%s, %s: %s: %s", r.Rule, r.Check, r.Result, r.Detail)
		}
	}
}
