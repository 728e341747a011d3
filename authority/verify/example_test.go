package verify_test

import (
	"context"
	"crypto/rand"
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

// Receipts that come later, and bind what was said. The salts stay beside the texts: the
// same message that comes again is hashed with the same ones, or it would be another turn.
func ExamplePending() {
	type said struct {
		text string
		salt []byte
	}
	hash := func(s said) string { return verify.SaltedHash(s.salt, s.text) }
	once := func(text string) said { // and kept with it, until both are forgotten
		salt := make([]byte, 16)
		_, _ = rand.Read(salt)
		return said{text, salt}
	}
	door := exampleDoor() // with a Credential that has the right receipts
	pending, err := verify.NewPending(verify.PendingConfig{
		Door:   door,
		Keeper: nil, // a table or a file of yours, or what waits ends with the process
		Done: func(_ context.Context, s verify.Served, o verify.Outcome) {
			if o.Err != nil {
				log.Printf("%s has no receipt for good: %v", s.Turn.MessageID, o.Err)
			} // or o.Receipt goes into the answer, which is fetched by the message that comes again
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	// go pending.Run(ctx)
	serve := func(w http.ResponseWriter, r *http.Request) {
		if pending.Ready() != nil {
			http.Error(w, "", http.StatusServiceUnavailable) // nothing was done
			return
		}
		call, _ := verify.CallFrom(r.Context())
		message, reply := once("Move my arrival to Christmas Eve."), once("Done.")
		receipt, err := pending.Countersign(r.Context(), call, verify.Turn{
			ContextID: "c-1", MessageID: "m-1", ScopesUsed: []string{"bookings:change"},
			Acts:        []verify.Act{{Tool: "move_arrival", Args: map[string]string{"to": "2026-12-24"}}},
			MessageHash: hash(message), ReplyHash: hash(reply),
		})
		if err != nil { // errors.Is(err, verify.ErrWaiting): it is kept
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"pact.receipt": receipt}})
	}
	_ = serve
	left, err := pending.Offer(context.Background())
	fmt.Println(left, err)
	// Output: 0 <nil>
}

func exampleDoor() *verify.Verifier {
	agents, err := verify.NewAgents(verify.AgentsConfig{
		Audience: "https://harbor.example",
		Known:    []verify.KnownAgent{{Issuer: "https://aria.example", JWKSURI: "https://aria.example/jwks.json"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	door, err := verify.New(verify.Config{
		Issuer: "https://agents.harbor.example/support/oauth", Interface: "https://agents.harbor.example/support",
		Agents: agents, Credential: "cs_key_…",
	})
	if err != nil {
		log.Fatal(err)
	}
	return door
}
