package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// B53: every page works where no script may run, the Brand's sign-in included.
func TestJourneyWithoutJavaScript(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read", "profile:read")
	alex := newPerson(t, p)
	call(alex, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	alex.open(p.page(p.hotel(t), "device"))
	alex.fill("#user_code", r.UserCode)
	alex.follow("main form button")
	alex.signIn("alex")
	alex.mustSee(askHeading)
	alex.untick("profile:read")
	alex.do(chromedp.Focus(chromedp.CSS("[value=allow]"))) // the keyboard need not wait
	alex.arrive(chromedp.KeyEvent(kb.Enter))
	alex.mustSee(allowedHeading)
	if a := r.poll(); a.Scope != "bookings:read" {
		t.Errorf("the agent got %d %q, scope %q", a.status, a.Error, a.Scope)
	}
	alex.follow(`main a[href*="/agents"]`)
	alex.mustSee("My agents")
}

// Nobody needs a mouse, from the link to the end.
func TestJourneyByKeyboard(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read", "profile:read")
	alex := newPerson(t, p)
	alex.open(r.Link)
	alex.tabTo("main a.button")
	alex.arrive(chromedp.KeyEvent(kb.Enter))
	alex.tabTo("#username")
	alex.do(chromedp.KeyEvent("alex"))
	alex.tabTo("#password")
	alex.do(chromedp.KeyEvent("demo"))
	alex.arrive(chromedp.KeyEvent(kb.Enter))
	alex.mustSee(askHeading)
	alex.tabTo(`[name=scope][value="bookings:read"]`)
	alex.do(chromedp.KeyEvent(" "))
	alex.tabTo("[name=until]:checked")
	alex.do(chromedp.KeyEvent(kb.ArrowDown))
	alex.tabTo("[value=allow]")
	alex.arrive(chromedp.KeyEvent(kb.Enter))
	alex.mustSee(allowedHeading)
	if a := r.poll(); a.Scope != "profile:read" {
		t.Errorf("the agent got %d %q, scope %q", a.status, a.Error, a.Scope)
	}
	days := p.count(t, `SELECT extract(day FROM expires_at - created_at)::int FROM grants WHERE agent_sub = $1`, userOf(t))
	if days != 90 {
		t.Errorf("allowed for %d days; the arrow key chose 90", days)
	}
}

// tabTo presses Tab until the element has the focus, and demands that the focus
// can be seen.
func (p *person) tabTo(selector string) {
	p.t.Helper()
	const most = 40
	for range most {
		if evaluate[bool](p, `document.activeElement.matches("`+strings.ReplaceAll(selector, `"`, `\"`)+`")`) {
			if !evaluate[bool](p, `(() => {
				const ring = e => e && getComputedStyle(e).outlineStyle !== "none" && parseFloat(getComputedStyle(e).outlineWidth) > 0
				const e = document.activeElement
				return ring(e) || ring(e.closest("label"))
			})()`) {
				p.t.Errorf("at %s: nothing shows that %s has the focus", p.where(), selector)
			}
			return
		}
		p.do(chromedp.KeyEvent(kb.Tab))
	}
	p.t.Fatalf("at %s: Tab does not reach %s", p.where(), selector)
}

// B114, B115: who reads Chinese is spoken to in Chinese all the way, in the
// Brand's own translation.
func TestChineseAllTheWay(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read", "extras:order")
	alex := newPerson(t, p)
	call(alex, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
		Headers: network.Headers{"Accept-Language": "zh-TW,zh;q=0.9"},
	})
	mustBeChinese := func() {
		t.Helper()
		if lang := evaluate[string](alex, `document.documentElement.lang`); !strings.HasPrefix(lang, "zh-Hant") && lang != "zh-TW" {
			t.Errorf("at %s: html lang=%q", alex.where(), lang)
		}
		if h := alex.text("h1"); !isChinese(h) {
			t.Errorf("at %s: the heading is %q", alex.where(), h)
		}
	}
	alex.open(r.Link)
	mustBeChinese()
	alex.picture("zh-start")
	alex.signIn("alex")
	mustBeChinese()
	alex.mustRead("查看您的訂房：日期、房型與價格", "訂購客房加購項目並計入您的帳單", r.UserCode)
	if strings.Contains(alex.reads(), "See your bookings") {
		t.Error("a permission stands there in English")
	}
	alex.picture("zh-ask")
	alex.allow()
	mustBeChinese()
	alex.picture("zh-done")
	alex.follow(`main a[href*="/agents"]`)
	mustBeChinese()
	alex.picture("zh-agents")
	alex.open(p.page(p.hotel(t), "device?user_code=BCDF-GHJK"))
	mustBeChinese()
}

func isChinese(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff })
}

// The link's own wish for a language holds to the end, whatever the browser
// prefers.
func TestLanguageOfTheLinkHolds(t *testing.T) {
	p := theProduct(t)
	r := p.ask(t, p.hotel(t), userOf(t), "bookings:read")
	alex := newPerson(t, p)
	alex.open(r.Link + "&ui_locales=zh-TW")
	alex.signIn("alex")
	if h := alex.text("h1"); !isChinese(h) {
		t.Errorf("the question is %q", h)
	}
	alex.allow()
	if h := alex.text("h1"); !isChinese(h) {
		t.Errorf("the closing page is %q", h)
	}
}
