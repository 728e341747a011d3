// Package agenttest plays the personal agent in tests: a key pair, a server that
// publishes it, and tokens good and bad.
//
//	pa := agenttest.New(t)
//	err := registry.Register(t.Context(), pa.Agent()) // with AllowLoopback
//	token := pa.Token(t, agenttest.Claims{Aud: audience, Sub: "alex"})
//
// Good tokens are made with go-jose, which the code under test does not use;
// forged ones by hand, since no library makes them.
package agenttest
