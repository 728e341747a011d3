package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/webauthn"
)

// joinsAsOwner makes an account and puts it among a Brand's owners.
func (i *inspector) joinsAsOwner(email, brand string) {
	i.t.Helper()
	p := i.product
	i.open(p.PublicURL + "/console/signup")
	i.fill("#field-organisation", "Lake Ltd")
	i.fill("#field-brand", "Lake")
	i.fill("#field-email", email)
	i.follow("main form button")
	i.open(p.mailTo(i.t, i.person, email))
	i.fill("#field-name", "Dora")
	i.follow(passkeyButton)
	i.printCodes()
	p.change(i.t, `INSERT INTO memberships SELECT $2, id, 'owner', now(), now() FROM people WHERE email = $1`, email, brand)
}

// An owner sees on the dashboard what an agent may do, ends it there, and the
// agent's next refresh finds out. Everything but the passkey works without script.
func TestTheDashboardEndsWhatAnAgentDoes(t *testing.T) {
	p := theProduct(t)
	customer := &inspector{newPerson(t, p), "", map[string]bool{}}
	first := customer.allowed("desk-first", "bookings:read", "bookings:change")
	second := customer.allowed("desk-second", "bookings:read")
	third := customer.allowed("desk-third", "bookings:read")

	i := &inspector{newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal), axe(t), map[string]bool{}}
	i.lookAt(looks[0])
	i.joinsAsOwner("desk@example.com", "harbor-hotel")
	desk := p.PublicURL + "/console/b/harbor-hotel/"
	call(i.person, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})

	i.open(desk + "grants?state=living")
	i.mustSee("Grants")
	story := fmt.Sprintf(`main td a[href$="/grants/%s"]`, first.grant)
	i.follow(story)
	i.mustRead("Its life", "A customer said yes", "What was shown, and answered", "bookings:change")
	i.follow(`.rights a[href*="bookings%3Achange"]`)
	i.mustRead("Take away", "One customer and one agent are affected")
	i.follow(`form[action$="/grants/end"] button`)
	i.mustRead("is taken away")
	first.mustHold("bookings:read")

	i.open(desk + "grants?state=living")
	for _, h := range []*held{first, second} {
		i.tick(fmt.Sprintf(`input[name="g"][value="%s"]`, h.grant))
	}
	i.follow(`form[action$="/grants/end"] button`)
	i.mustSee("End 2 grants?")
	i.mustRead("1 customer is affected", "1 agent loses its access")
	i.follow(`form[action$="/grants/end"] button`)
	i.mustRead("2 grants have ended")
	first.mustHold("")
	second.mustHold("")

	var subject string
	if err := p.connect(t).QueryRow(t.Context(), `SELECT subject FROM grants WHERE id = $1`, third.grant).Scan(&subject); err != nil {
		t.Fatal(err)
	}
	i.open(desk + "grants?subject=" + subject)
	i.follow(`main a[href*="/suspend?"]`)
	i.follow(`form[action$="/suspend"] button`)
	i.mustRead("This customer is suspended")
	third.mustHold("")
	i.follow(`main a[href*="/resume?"]`)
	i.follow(`form[action$="/resume"] button`)
	third.mustHold("bookings:read")
	call(i.person, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false})

	for name, page := range map[string]string{
		"desk-grants": "grants", "desk-grants-user": "grants?subject=" + subject, "desk-grants-none": "grants?subject=nobody",
		"desk-story": "grants/" + first.grant, "desk-end": "grants/end?g=" + third.grant, "desk-end-user": "grants/end?subject=" + subject,
		"desk-suspend": "users/suspend?subject=" + subject, "desk-trail": "trail", "desk-trail-wrong": "trail?from=soon",
		"desk-usage": "usage", "desk-usage-90": "usage?days=90", "desk-home": "",
		"desk-grants-zh": "grants?ui_locales=zh-Hant", "desk-story-zh": "grants/" + first.grant + "?ui_locales=zh-Hant",
		"desk-trail-zh": "trail?ui_locales=zh-Hant", "desk-usage-zh": "usage?ui_locales=zh-Hant",
	} {
		if !strings.Contains(page, "ui_locales") {
			mark := "?"
			if strings.Contains(page, mark) {
				mark = "&"
			}
			page += mark + "ui_locales=en"
		}
		i.open(desk + page)
		i.inspect(name)
	}
	fmt.Fprintf(os.Stderr, "%d pages were examined\n", len(i.names))
}
