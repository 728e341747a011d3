package verify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"countersign.dev/authority/verify"
)

// A Brand's agent behind the kit. What stands here is all there is to it.
func Example() {
	agents, err := verify.NewAgents(verify.AgentsConfig{
		Audience: "https://harbor.example", // what agents name as aud, as the dashboard says
		Known:    []verify.KnownAgent{{Issuer: "https://aria.example", JWKSURI: "https://aria.example/jwks.json"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	door, err := verify.New(verify.Config{
		Issuer:    "https://agents.harbor.example/support/oauth",
		Interface: "https://agents.harbor.example/support",
		Agents:    agents,
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /support/message:send", door.Protect(http.HandlerFunc(send)))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/support/message:send", strings.NewReader("{}")))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output: 401 Bearer realm="a2a"
}

func send(w http.ResponseWriter, r *http.Request) {
	d, ok := verify.DelegationFrom(r.Context())
	switch {
	case !ok:
		fmt.Fprintln(w, "Good day. On whose behalf?")
	case d.Allows("bookings:read"):
		fmt.Fprintln(w, "Your bookings,", d.User)
	}
}

// Where nobody but a few may know which agents there are, they are looked up at
// each call.
func ExampleAgentsConfig_find() {
	registry := map[string]string{"https://aria.example": "https://aria.example/jwks.json"}
	agents, err := verify.NewAgents(verify.AgentsConfig{
		Audience: "https://harbor.example",
		Find: func(_ context.Context, issuer string) (string, error) {
			if uri, ok := registry[issuer]; ok {
				return uri, nil
			}
			return "", verify.ErrUnknownAgent
		},
	})
	_, err2 := agents.Verify(context.Background(), "not-a-jwt")
	fmt.Println(err, err2)
	// Output: <nil> not a well-formed token: 1 parts instead of 3
}

// A turn under a delegation: what is missing is asked for, what was done is
// countersigned.
func ExampleVerifier_StepUp() {
	var door *verify.Verifier // with a Credential that has the rights stepup and receipts
	serve := func(w http.ResponseWriter, r *http.Request) {
		call, _ := verify.CallFrom(r.Context())
		if missing := call.Missing("bookings:change"); len(missing) > 0 {
			more, err := door.StepUp(r.Context(), call, "to move your arrival", missing...)
			if err != nil { // the agent can still ask for itself
				more = verify.StepUp{Missing: missing}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"state": "TASK_STATE_AUTH_REQUIRED", "metadata": more.Metadata()})
			return
		}
		receipt, err := door.Countersign(r.Context(), call, verify.Turn{
			ContextID: "c-1", MessageID: "m-1", ScopesUsed: []string{"bookings:change"},
			Acts: []verify.Act{{Tool: "move_arrival", Args: map[string]string{"to": "2026-12-24"}}},
		})
		if err != nil {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"pact.receipt": receipt}})
	}
	_ = serve
}

// Revocations a second after they were made, and the list for what the stream does
// not tell.
func ExampleVerifier_Follow() {
	var door *verify.Verifier // with a Credential that has the right events
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	follow := func() {
		if err := door.Follow(ctx); ctx.Err() == nil {
			log.Print(err) // the credential is not good: the status list goes on
		}
	}
	_ = follow // go follow()
}

// Somebody who has no use for net/http's handlers asks for one call at a time.
func ExampleVerifier_Call() {
	var door *verify.Verifier
	handle := func(w http.ResponseWriter, r *http.Request) {
		call, err := door.Call(r.Context(), r.Header)
		if err != nil {
			verify.Respond(w, err) // the exact 401, or 503
			return
		}
		fmt.Fprintln(w, call.Agent.Issuer)
	}
	_ = handle
}
