package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/webauthn"
)

// An owner who has lost everything reads what to publish, and for how long, and is
// told what was found instead.
func TestTheWaitSaysWhatToPublish(t *testing.T) {
	p := theProduct(t)
	i := &inspector{newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal), axe(t), map[string]bool{}}
	i.lookAt(looks[0])
	i.open(p.PublicURL + "/console/signup")
	i.fill("#field-organisation", "Weir Ltd")
	i.fill("#field-brand", "Weir House")
	i.fill("#field-email", "iris@example.com")
	i.follow("main form button")
	i.open(p.mailTo(t, i.person, "iris@example.com"))
	i.fill("#field-name", "Iris")
	i.follow(passkeyButton)
	i.printCodes()
	i.mustSee("Make your Brand")
	i.follow("main form button")
	i.mustSee("Overview")
	p.change(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method)
		VALUES ('weir-house', 'weir.invalid', 'countersign-proof=1', now(), now(), 'dns')`)

	lost := &inspector{newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal), axe(t), map[string]bool{}}
	back := func() {
		lost.open(p.PublicURL + "/console/recover")
		lost.fill("#field-email", "iris@example.com")
		lost.follow("main form button")
		lost.open(p.mailTo(t, lost.person, "iris@example.com"))
	}
	back()
	lost.mustRead("Weir House", "72 hours")
	lost.inspect("console-back")
	lost.follow(`form[action="/console/recover/wait"] button`)
	lost.mustRead("https://weir.invalid/.well-known/countersign-proof", "countersign-recovery=", "_countersign.weir.invalid")
	lost.inspect("console-wait")
	p.change(t, `UPDATE recoveries SET asked_at = asked_at - interval '4 days', due_at = due_at - interval '4 days' WHERE brand_id = 'weir-house'`)
	back()
	lost.mustRead("The wait is over")
	lost.follow(`form[action="/console/recover/wait"] button`)
	lost.mustRead("weir.invalid", "countersign-recovery=")
	lost.inspect("console-wait-missing")
	// The same in Chinese, by the keyboard alone.
	lost.open(p.PublicURL + "/console?ui_locales=zh-Hant")
	back()
	lost.mustRead("等待已經結束", "countersign-recovery=")
	lost.inspect("console-wait-zh")
	lost.pressByKey(`form[action="/console/recover/wait"] button`)
	lost.mustRead("找不到您的那行文字", "weir.invalid")
	if lost.has("main [lang=en]") {
		t.Error("something is said in English")
	}
	lost.inspect("console-wait-missing-zh")
	// Who has come back by another Brand keeps the passkey of that: the page says to sign
	// in first, and then this Brand's line is all that is left to show.
	p.change(t, `UPDATE people SET restored_at = now() WHERE email = 'iris@example.com'`)
	i.open(p.PublicURL + "/console/recover")
	i.fill("#field-email", "iris@example.com")
	i.follow("main form button")
	i.open(p.mailTo(t, i.person, "iris@example.com"))
	i.mustRead("sign in first", "countersign-recovery=")
	i.inspect("console-wait-first")
	i.follow(`main a[href^="/console/login"]`)
	i.follow(passkeyButton)
	i.mustRead("You keep the passkey that you have", "countersign-recovery=")
	i.inspect("console-wait-here")
	i.follow(`form[action="/console/recover/wait"] button`)
	i.mustRead("weir.invalid", "countersign-recovery=") // nobody can publish there
	i.open(p.PublicURL + "/console/brands")
	i.mustRead("Weir House")
	i.inspect("console-brands-held")
	if n := p.count(t, `SELECT count(*) FROM recoveries WHERE brand_id = 'weir-house' AND done_at IS NOT NULL`); n != 0 {
		t.Error("the wait ended without a proof")
	}
}
