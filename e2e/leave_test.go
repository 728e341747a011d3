package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/webauthn"
)

// R66: the pages on which a person is erased, and on which a Brand is taken along
// and closed, in a real browser; to be looked at, too.
func TestABrandLeaves(t *testing.T) {
	p := theProduct(t)
	i := &inspector{newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal), axe(t), map[string]bool{}}
	i.lookAt(looks[0])
	i.open(p.PublicURL + "/console/signup")
	i.fill("#field-organisation", "Gone Ltd")
	i.fill("#field-brand", "Gone Fishing")
	i.fill("#field-email", "gone@example.com")
	i.follow("main form button")
	i.open(p.mailTo(t, i.person, "gone@example.com"))
	i.fill("#field-name", "Greta")
	i.follow(passkeyButton)
	i.printCodes()
	i.follow("main form button")
	i.mustSee("Overview")
	at := p.PublicURL + "/console/b/gone-fishing/"
	i.open(at + "erase")
	i.inspect("console-erase")
	i.fill("#field-subject", "guest-4711")
	i.follow(`form[action$="/erase"] button`)
	i.mustRead("guest-4711", "Check the id")
	i.press(".otherwise summary")
	i.inspect("console-erase-sure")
	i.fill("#field-again", "guest-4711")
	i.follow(`form[action$="/erase"] button`)
	i.mustRead("verifies as before")
	i.inspect("console-erase-done")
	i.open(at + "leave")
	i.press(".otherwise summary")
	i.inspect("console-leave")
	i.fill("#field-id", "something")
	i.follow(`form[action$="/close"] button`)
	i.mustRead("That is not gone-fishing")
	i.inspect("console-leave-wrong")
	i.open(at + "leave?ui_locales=zh-Hant")
	i.inspect("console-leave-zh")
	i.open(at + "erase?ui_locales=en")
	i.open(at + "leave")
	i.fill("#field-id", "gone-fishing")
	i.follow(`form[action$="/close"] button`)
	i.mustRead("does not open again")
	i.inspect("console-leave-closed")
	i.open(at)
	i.mustRead("is closed for good")
}
