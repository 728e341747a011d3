// Package transit is the signing backend whose private keys are made in
// HashiCorp Vault's transit engine and never leave it.
//
//	vault, err := transit.New(transit.Config{Address: …, Auth: transit.AppRole{…}})
//	keys := signing.NewKeys(signing.Config{Backends: []signing.Backend{vault}, …})
//
// What it promises: a Brand's key is not exportable and its name derives from
// the Brand's id alone; a signature is made by exactly the version asked for;
// every call ends within its deadline; a Vault that is sealed, slow or gone is
// signing.ErrUnavailable at once after a few failures, and is found again by
// itself within two seconds of coming back.
//
// A signature's way: Sign queues its jobs by key, gather.go sends what has
// queued up as one batch and is fair between Brands, batch.go speaks to the
// engine, server.go adds the deadline, the one retry, the token (session.go)
// and the breaker (breaker.go). New does no network: a service may start while
// its Vault is sealed.
package transit
