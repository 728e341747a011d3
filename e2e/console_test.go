package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// holding gives the browser a device that holds passkeys: internal is the
// computer's own, usb a key that is plugged in.
func (p *person) holding(transport webauthn.AuthenticatorTransport) *person {
	p.t.Helper()
	call(p, webauthn.Enable, webauthn.EnableParams{})
	call(p, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: transport, HasResidentKey: true,
			HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		},
	})
	return p
}

// mailTo waits until mail with a link has come for the address, in the outbox of
// countersign dev, and returns the link of the newest one.
func (p *product) mailTo(t *testing.T, who *person, address string) string {
	t.Helper()
	for range eventually(t) {
		who.open(p.PublicURL + "/dev/mail")
		link := evaluate[string](who, fmt.Sprintf(`[...document.querySelectorAll("main .card")]
			.filter(c => c.querySelector(".hint").innerText === %q)
			.map(c => c.querySelector('a[href*="/console/link"]')?.href ?? "").find(h => h) ?? ""`, address))
		if link != "" {
			return link
		}
	}
	t.Fatalf("no link was mailed to %s", address)
	return ""
}

// touch says once more that it is the member: what few may do takes a passkey
// that was touched minutes ago.
func (p *person) touch() {
	p.t.Helper()
	p.open(p.product.PublicURL + "/console/touch")
	p.follow(passkeyButton)
}

func (p *person) tick(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// printCodes takes the way of printed codes and returns the first of them.
func (p *person) printCodes() string {
	p.t.Helper()
	p.mustSee("Do not lock yourself out")
	p.follow(`form[action="/console/keys/codes"] button`)
	p.mustSee("Your recovery codes")
	code := p.text(".codes li")
	p.tick(`input[name="kept"]`)
	p.follow(`form[action="/console/keys/kept"] button`)
	return code
}

const passkeyButton = "form[data-passkey] button"

// stale makes the touch of every passkey an old one, as five minutes do.
func (p *product) staleTouches(t *testing.T) {
	t.Helper()
	p.change(t, `UPDATE browser_sessions
		SET data = convert_to(regexp_replace(convert_from(data, 'UTF8'), '(touched\\":\\")\d{4}', '\12001'), 'UTF8')
		WHERE kind = 'console'`)
}

// From "never heard of it" to a Brand of one's own, in a real browser with real
// passkeys, and a second person beside the first.
func TestABrandSignsUp(t *testing.T) {
	p := theProduct(t)
	began := time.Now()
	olga := newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal)
	olga.open(p.PublicURL + "/console")
	olga.follow(`main a[href="/console/signup"]`)
	olga.fill("#field-organisation", "Lake Ltd")
	olga.fill("#field-brand", "Café du Lac")
	olga.fill("#field-email", "Olga@example.com")
	olga.follow("main form button")
	olga.mustSee("Look into your mail")
	link := p.mailTo(t, olga, "Olga@example.com")
	olga.open(link)
	olga.mustSee("Make your passkey")
	olga.fill("#field-name", "Olga")
	olga.follow(passkeyButton)
	code := olga.printCodes()
	olga.mustSee("Make your Brand")
	if id := olga.value("#field-id"); id != "cafe-du-lac" {
		t.Errorf("proposed %q", id)
	}
	olga.follow("main form button")
	olga.mustSee("Overview")
	olga.mustRead("Café du Lac", "until your domain is proven", "Signing key", "Done.", "Brand made")
	t.Logf("from the first page to the dashboard: %s", time.Since(began).Round(time.Millisecond))

	// The link again, in this browser and in another.
	for _, who := range []*person{olga, newPerson(t, p)} {
		if status := who.open(link); status != 410 {
			t.Errorf("the used link: %d", status)
		}
	}

	// Out, and in by the passkey alone.
	olga.open(p.PublicURL + "/console/brands")
	olga.follow(`form[action="/console/logout"] button`)
	olga.open(p.PublicURL + "/console/b/cafe-du-lac/members")
	olga.mustSee("Sign in")
	olga.follow(passkeyButton)
	olga.mustSee("Members")

	// A colleague, who takes a second passkey instead of codes. The invitation needs
	// a fresh touch, which is asked for on the way.
	p.staleTouches(t)
	invite := func() {
		olga.fill("#field-email", "vic@example.com")
		olga.follow(`form[action="/console/b/cafe-du-lac/members"] button`)
	}
	invite()
	olga.mustSee("Is it you?")
	olga.follow(passkeyButton)
	olga.mustSee("Members")
	invite()
	olga.mustRead("The invitation is on its way", "vic@example.com")
	vic := newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal)
	vic.open(p.mailTo(t, vic, "vic@example.com"))
	vic.mustSee("Join the team")
	vic.fill("#field-name", "Vic")
	vic.follow(passkeyButton)
	vic.mustSee("Do not lock yourself out")
	// The same device is no second way in, and the page says so.
	vic.press(passkeyButton)
	evaluate[bool](vic, `new Promise(said => {
		const problem = document.querySelector("[data-known]")
		const look = () => problem.innerText.includes("holds a passkey") && said(true)
		new MutationObserver(look).observe(problem, {attributes: true, childList: true})
		look()
	})`)
	vic.holding(webauthn.AuthenticatorTransportUsb)
	vic.follow(passkeyButton)
	vic.mustSee("Your Brands")
	vic.follow(`main a[href="/console/b/cafe-du-lac/"]`)
	vic.mustSee("Overview")
	vic.open(p.PublicURL + "/console/b/cafe-du-lac/members")
	if vic.has(`form[action="/console/b/cafe-du-lac/members"]`) || vic.has(`main a[href*="/members/"]`) {
		t.Error("a viewer is offered what only owners may do")
	}

	// Everything but passkeys works without script.
	call(olga, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	olga.open(p.PublicURL + "/console/b/cafe-du-lac/members")
	olga.follow(`main td a[href*="/members/"]`)
	olga.mustSee("Olga")
	olga.follow(`form[action$="/remove"] button`)
	olga.mustRead("must keep an owner who can act")
	olga.open(p.PublicURL + "/console/touch")
	olga.mustRead("Passkeys need JavaScript")
	call(olga, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false})

	// A new device, with the mail and a printed code.
	back := newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal)
	back.open(p.PublicURL + "/console/login")
	back.follow(`main a[href="/console/recover"]`)
	back.fill("#field-email", "olga@example.com")
	back.follow("main form button")
	back.open(p.mailTo(t, back, "olga@example.com"))
	back.mustSee("Prove that it is you")
	back.fill("#field-code", strings.ToUpper(code))
	back.follow("main form button")
	back.mustSee("Make a new passkey")
	back.follow(passkeyButton)
	back.mustSee("Do not lock yourself out")
	back.open(p.PublicURL + "/console/b/cafe-du-lac/")
	back.mustSee("Overview")
}

// The demo Brands have an owner: whoever uses the link that dev prints, once.
func TestTheDemoHasAnOwner(t *testing.T) {
	p := theProduct(t)
	i := &inspector{newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal), axe(t), map[string]bool{}}
	i.lookAt(looks[0])
	i.open(p.PublicURL + "/console")
	i.inspect("console-door")
	i.open(p.PublicURL + "/console/signup")
	i.inspect("console-signup")
	i.follow("main form button")
	i.inspect("console-signup-wrong")
	i.open(p.PublicURL + "/console/login")
	i.inspect("console-login")
	i.open(p.PublicURL + "/console/recover")
	i.inspect("console-recover")
	i.open(p.PublicURL + "/console/nowhere")
	i.inspect("console-nowhere")
	i.open(p.PublicURL + "/dev/mail")
	i.inspect("dev-mail")
	i.open(p.ConsoleLink)
	i.inspect("console-link")
	i.follow(passkeyButton)
	i.inspect("console-keys")
	i.follow(`form[action="/console/keys/codes"] button`)
	i.inspect("console-codes")
	i.tick(`input[name="kept"]`)
	i.follow(`form[action="/console/keys/kept"] button`)
	i.mustRead("Harbor Hotel", "Fern & Fell")
	i.inspect("console-brands")
	i.open(p.ConsoleLink)
	i.mustSee("This link does not work")
	i.open(p.PublicURL + "/console/new")
	i.inspect("console-new")
	i.open(p.PublicURL + "/console/b/harbor-hotel/")
	i.mustSee("Overview")
	i.inspect("console-home")
	i.press(".switch summary")
	i.snap("console-switch")
	i.open(p.PublicURL + "/console/b/harbor-hotel/members")
	i.fill("#field-email", "not an address")
	i.follow(`form[action$="/members"] button`)
	i.inspect("console-members")
	i.follow(`main td a[href*="/members/"]`)
	i.inspect("console-member")
	i.inspectSettings(p.PublicURL + "/console/b/harbor-hotel/")
	i.touch()
	i.machines(p)
	i.open(p.PublicURL + "/console/touch")
	i.inspect("console-touch")
	i.open(p.PublicURL + "/console/b/harbor-hotel/?ui_locales=zh-Hant")
	i.mustSee("總覽")
	i.inspect("console-home-zh")
	i.open(p.PublicURL + "/console/b/harbor-hotel/members")
	i.mustSee("成員") // the choice lasts
	i.inspect("console-members-zh")
	fmt.Fprintf(os.Stderr, "%d pages were examined\n", len(i.names))
}

// inspectSettings looks at what a Brand sets, in the state in which each page has
// most to say. of is where the Brand's pages are.
func (i *inspector) inspectSettings(of string) {
	i.t.Helper()
	i.open(of + "settings")
	i.retype("#field-colour", "#ffee00")
	i.follow(`form[action$="/settings"] .act button`)
	i.mustRead("Saved", "so it was darkened")
	i.inspect("console-settings")
	i.retype("#field-name", "")
	i.retype("#field-token_seconds", "soon")
	i.retype("#field-support_url", "http://harbor.example")
	i.follow(`form[action$="/settings"] .act button`)
	i.mustRead("Token lifetime, in seconds: Write digits alone.")
	if typed := i.value("#field-support_url"); typed != "http://harbor.example" {
		i.t.Errorf("what was typed is lost: %q", typed)
	}
	i.inspect("console-settings-wrong")
	i.open(of + "preview?in=en")
	i.mustRead("A preview for Harbor Hotel", "WDJB-MJHT")
	i.inspect("console-preview")
	i.open(of + "preview?in=zh-Hant")
	i.inspect("console-preview-zh")
	i.open(of + "permissions")
	i.inspect("console-permissions")
	i.follow(`main td a[href*="permissions/one"]`)
	i.inspect("console-permission")
	i.open(of + "permissions/new")
	i.follow("main form .act button")
	i.inspect("console-permission-wrong")
	i.open(of + "agents")
	i.inspect("console-agents")
	i.follow(`main td a[href*="agents/one"]`)
	i.inspect("console-agent")
	i.open(of + "agents?q=nobody")
	i.inspect("console-agents-none")
	i.open(of + "pause")
	i.press(".otherwise summary")
	i.inspect("console-pause")
}

// retype puts the text in the place of what stands in the field.
func (p *person) retype(selector, text string) {
	p.t.Helper()
	evaluate[bool](p, fmt.Sprintf(`document.querySelector(%q).value = "", true`, selector))
	if text != "" {
		p.fill(selector, text)
	}
}
