package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/webauthn"
)

// One's own account in a real browser: a second passkey is made, the first one is
// removed, and the last owner of a Brand is told why they stay.
func TestOwnAccount(t *testing.T) {
	p := theProduct(t)
	i := &inspector{newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal), axe(t), map[string]bool{}}
	i.lookAt(looks[0])
	i.open(p.PublicURL + "/console/signup")
	i.fill("#field-organisation", "Mill Ltd")
	i.fill("#field-brand", "Old Mill")
	i.fill("#field-email", "nora@example.com")
	i.follow("main form button")
	i.open(p.mailTo(t, i.person, "nora@example.com"))
	i.fill("#field-name", "Nora")
	i.follow(passkeyButton)
	i.printCodes()
	i.mustSee("Make your Brand")
	i.follow("main form button")
	i.mustSee("Overview")

	i.follow(`.whoami a[href="/console/account"]`)
	i.mustRead("Your passkeys", "Chrome, Linux", "Where you are signed in", "Here", "Old Mill")
	i.inspect("console-account")
	i.follow(`form[action="/console/account/remove"] button`)
	i.mustRead("would lock you out")
	i.follow(`main a[href="/console/keys"]`)
	i.holding(webauthn.AuthenticatorTransportUsb)
	i.follow(passkeyButton)
	i.open(p.PublicURL + "/console/account?ui_locales=zh-Hant")
	i.mustSee("您的帳號")
	i.inspect("console-account-zh")
	i.open(p.PublicURL + "/console/account?ui_locales=en")
	i.follow(`form[action="/console/account/remove"] button`)
	i.mustRead("The passkey is removed")
	i.inspect("console-account-removed")

	i.follow(`main a[href="/console/b/old-mill/quit"]`)
	i.mustSee("Leave Old Mill")
	i.inspect("console-quit")
	i.tick(`input[name="sure"]`)
	i.follow(`form[action="/console/b/old-mill/quit"] button`)
	i.mustRead("must keep an owner who can act")
}
