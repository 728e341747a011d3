package agent_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/agent/agenttest"
)

// The service and the kit that a Brand verifies with are independent of one
// another, and give the same verdict of the same pa-jwts: M1, M3–M5, P3, P4.
func TestVerdictsAreThoseOfTheKit(t *testing.T) {
	raw, err := os.ReadFile("../verify/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Now             int64
		Agent, Provider string
		PAJWKS          json.RawMessage                         `json:"pa_jwks"`
		PAJWTs          []struct{ Name, Refused, Token string } `json:"pa_jwts"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	publisher := agenttest.New(t)
	publisher.Serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(v.PAJWKS) })
	err = w.registry.Register(t.Context(), agent.Agent{Issuer: v.Agent, JWKSURI: publisher.JWKSURI, Name: "Aria", Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	verifier := agent.NewVerifier(agent.Config{Registry: w.registry, Fetch: devFetch(), Now: func() time.Time { return time.Unix(v.Now, 0) }})
	for _, tt := range v.PAJWTs {
		_, err := verifier.Verify(t.Context(), tt.Token, v.Provider)
		if (err == nil) != (tt.Refused == "") || err != nil && !errors.Is(err, agent.ErrRefused) {
			t.Errorf("%s: %v", tt.Name, err)
		}
	}
	if len(v.PAJWTs) < 20 {
		t.Errorf("%d vectors", len(v.PAJWTs))
	}
}
