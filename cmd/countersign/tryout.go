package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"fmt"
	"net/http"
	"time"

	"countersign.dev/authority/agent"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/tryout"
)

// testAgentPath is who the service's own test agent is, below our origin.
const testAgentPath = "/test-agent"

// testAgent returns the agent with which Brands try themselves out. Its key comes
// of the master key, so that every instance has the same one and none is stored.
func testAgent(c config, outside *http.Client) (*tryout.Agent, error) {
	key, err := testAgentKey(c.master)
	if err != nil {
		return nil, err
	}
	return tryout.New(tryout.Config{Issuer: c.publicURL + testAgentPath, Key: key, HTTP: outside, Now: time.Now})
}

func testAgentKey(master *signing.Master) (*ecdsa.PrivateKey, error) {
	const tries = 8 // one in 2^32 numbers of 32 bytes is none of the curve's
	for i := range byte(tries) {
		raw, err := master.MAC(master.Version(), "", "test agent key", []byte{i})
		if err != nil {
			return nil, fmt.Errorf("make the test agent's key: %w", err)
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("make the test agent's key: the master key yields none")
}

// registerTestAgent makes Brands know the test agent. One that the operator has
// disabled stays so.
func (p *parts) registerTestAgent(ctx context.Context) error {
	known, err := p.agents.Find(ctx, p.tester.Issuer)
	if err == nil && !known.Enabled {
		return nil
	}
	if err != nil && !errors.Is(err, agent.ErrNotRegistered) {
		return err
	}
	return p.agents.Register(ctx, agent.Agent{
		Issuer: p.tester.Issuer, JWKSURI: p.tester.JWKSURI(), Name: "Countersign test agent", Enabled: true, Test: true,
	})
}

// serveTestAgent publishes its key.
func (p *parts) serveTestAgent(mux *http.ServeMux) error {
	jwks, err := p.tester.JWKS()
	if err != nil {
		return fmt.Errorf("publish the test agent's key: %w", err)
	}
	mux.HandleFunc("GET "+testAgentPath+"/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(jwks)
	})
	return nil
}
