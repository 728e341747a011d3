package oauth_test

import (
	"fmt"
	"net/http"
	"testing"

	"countersign.dev/e2e/bench/crowd"
	"countersign.dev/tenants"
)

// proxyKey is what the Brand's proxy has.
func (d *busyDoor) proxyKey(b *testing.B) string {
	b.Helper()
	key, err := tenants.CreateAPIKey(b.Context(), d.DB, d.Hotel.ID, "proxy", []tenants.Right{tenants.RightVerify}, d.Clock.Now())
	if err != nil {
		b.Fatal(err)
	}
	return key
}

// shown is what a proxy passes on for one who holds a grant: the headers of a call
// with a token.
func (d *busyDoor) shown(b *testing.B, c *wireCaller, holder int, key string) string {
	b.Helper()
	t := crowd.Holder(d.pa.Issuer, holder)
	proof := d.admit(b, t.Who.Sub)
	body, err := c.token(proof, d.form("refresh_token", t.Refresh), http.StatusOK, `"access_token"`)
	if err != nil {
		b.Fatal(err)
	}
	return fmt.Sprintf("Authorization: Bearer %s\r\nX-A2A-User-Delegation: Bearer %s\r\nCountersign-Authorization: Bearer %s\r\n"+
		"X-Original-Method: POST\r\nX-Original-URI: /a2a/harbor-hotel/message:send\r\n", proof, member(body, "access_token"), key)
}

func (c *wireCaller) verify(heads string) error {
	c.write.Reset()
	fmt.Fprintf(&c.write, "GET /a2a/harbor-hotel/oauth/verify HTTP/1.1\r\nHost: countersign.example\r\n%s\r\n", heads)
	_, err := c.exchange(http.StatusOK, "")
	return err
}
