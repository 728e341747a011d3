package e2e

import "strings"

// machines walks the pages of keys, webhooks, connecting and trying, as the owner
// of the hotel.
func (i *inspector) machines(p *product) {
	i.t.Helper()
	at := p.PublicURL + "/console/b/harbor-hotel/"
	i.open(at + "signing-keys")
	i.mustRead("Signs every token and receipt")
	i.follow(`form[action$="/signing-keys"] button`)
	i.mustRead("signs nothing yet")
	i.press(".otherwise summary")
	i.inspect("console-signing-keys")
	i.follow(`main td a[href*="/signing-keys/"]`)
	i.follow(`form[action$="/revoke"] button`)
	i.mustRead("Say why")
	i.inspect("console-signing-key")
	i.follow(`form[action$="/retire"] button`)

	i.touch()
	i.open(at + "webhooks")
	i.inspect("console-webhooks-none")
	i.fill("#field-url", "http://hotel.example/hook")
	i.follow(`form[action$="/webhooks"] button`)
	i.mustRead("We do not call this address")
	i.inspect("console-webhooks-wrong")
	i.retype("#field-url", "https://hotel.invalid/hook")
	i.follow(`form[action$="/webhooks"] button`)
	i.mustRead("whsec_")
	i.inspect("console-webhook-shown")
	i.follow("main .ways a")
	i.follow(`form[action$="/test"] button`)
	i.mustRead("The test is on its way")
	i.inspect("console-webhook")
	i.follow(`form[action$="/disable"] button`)

	i.open(at + "api-keys")
	i.fill("#field-name", "checkout")
	i.tick(`input[name="right-introspect"]`)
	i.follow(`form[action$="/api-keys"] button`)
	i.mustRead("never again")
	i.inspect("console-api-key-shown")
	i.follow("main .ways a")
	i.inspect("console-api-keys")
	i.follow(`main td a[href*="/api-keys/"]`)
	i.inspect("console-api-key")

	i.open(at + "support-agent")
	i.mustSee("Your agent")
	i.inspect("console-support-agent")

	i.open(at + "connect")
	i.press(".part-of .otherwise summary")
	i.inspect("console-connect")
	i.tryOut(p, at)
	for _, page := range []string{"signing-keys", "webhooks", "api-keys", "connect", "try"} {
		i.open(at + page + "?ui_locales=zh-Hant")
		i.inspect("console-" + page + "-zh")
	}
	i.open(at + "?ui_locales=en")
}

// tryOut is the whole of a try: the test agent asks, a customer allows, the token
// is verified; without script but in the customer's browser.
func (i *inspector) tryOut(p *product, at string) {
	i.t.Helper()
	i.open(at + "try")
	i.inspect("console-try")
	i.follow(`form[action$="/try"] button`)
	i.mustRead("Nobody has decided yet")
	i.inspect("console-try-asked")
	link := evaluate[string](i.person, `document.querySelector(".ask .ways a").href`)
	alex := newPerson(i.t, p)
	alex.open(link)
	alex.signIn("alex")
	alex.allow()
	alex.mustSee("Countersign test agent may now act for you")
	// The test agent polls no more often than it was told to, so the answer is not
	// there at once.
	for range eventually(i.t) {
		i.open(at + "try")
		if !strings.Contains(i.text("main"), "Nobody has decided yet") {
			break
		}
	}
	i.mustRead("The token is verified", "guest-1001", "signature")
	i.inspect("console-try-verified")
	i.follow(`form[action$="/try/end"] button`)
}
