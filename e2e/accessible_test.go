package e2e

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
)

//go:embed targets.js
var targets string

// axe is an independent checker of accessibility, with the rules of WCAG 2.2 A
// and AA.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("COUNTERSIGN_AXE")
	if path == "" {
		path = filepath.Join("node_modules", "axe-core", "axe.min.js")
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("axe-core is missing; npm ci --prefix e2e: %v", err)
	}
	return string(source)
}

const runAxe = `axe.run(document, {
	runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]},
	resultTypes: ["violations"],
}).then(r => r.violations.map(v => v.id + ": " + v.help + " – " + v.nodes.map(n => n.target.join(" ")).join(", ")))`

// inspector looks at every page that a journey reaches, on a phone and on a desk,
// by day and by night.
type inspector struct {
	*person
	axe   string
	names map[string]bool
}

// inspect checks the open page and takes its pictures.
func (i *inspector) inspect(name string) {
	i.t.Helper()
	if i.names[name] {
		i.t.Fatalf("two pages are called %s", name)
	}
	i.names[name] = true
	i.bringAxe()
	for _, l := range looks {
		i.lookAt(l)
		faults := evaluate[[]string](i.person, targets)
		if l.name != "desk-dark" { // its colours are the phone's, its rest is the desk's
			faults = append(faults, evaluate[[]string](i.person, runAxe)...)
		}
		for _, v := range faults {
			i.t.Errorf("%s on a %s: %s", name, l.name, v)
		}
		if everyLook || l.scheme == "light" {
			i.snap(name + "-" + l.name)
		}
	}
	// A phone at 200 %: half the width, everything twice as large.
	i.lookAt(look{"zoom", 195, 422, 4, "light"})
	for _, v := range evaluate[[]string](i.person, targets) {
		i.t.Errorf("%s at 200 %%: %s", name, v)
	}
	if everyLook {
		i.snap(name + "-zoom")
	}
	i.lookAt(looks[0])
}

func (i *inspector) bringAxe() {
	i.t.Helper()
	evaluate[int](i.person, i.axe+";0")
}

// The inspection finds what it looks for.
func TestInspectionFindsFaults(t *testing.T) {
	p := theProduct(t)
	i := &inspector{person: newPerson(t, p), axe: axe(t)}
	i.lookAt(looks[0])
	for name, damage := range map[string]string{
		"a field without a label": `document.querySelector("label[for=user_code]").remove(), 0`,
		"a pale heading":          `document.querySelector("h1").style.color = "#ccc", 0`,
		"a low button":            `document.querySelector("main button").style.cssText = "min-height:0;height:30px;padding:0", 0`,
		"a wide page":             `document.querySelector("main").style.minWidth = "500px", 0`,
	} {
		i.open(p.page(p.hotel(t), "device"))
		i.bringAxe()
		evaluate[int](i.person, damage)
		if len(evaluate[[]string](i.person, runAxe))+len(evaluate[[]string](i.person, targets)) == 0 {
			t.Errorf("%s was passed over", name)
		}
	}
}

// Every page of a journey, live, for eyes, fingers and readers of all kinds
// (B07, B45, R12).
func TestPagesAreAccessible(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	i := &inspector{newPerson(t, p), axe(t), map[string]bool{}}
	i.lookAt(looks[0])

	i.open(p.PublicURL + "/")
	i.inspect("home")
	i.open(p.PublicURL + "/console")
	i.inspect("console")
	i.open(p.PublicURL + "/nowhere")
	i.inspect("not-found")
	i.open(p.page(hotel, "device"))
	i.inspect("code")
	i.fill("#user_code", "BCDF-GHJK")
	i.follow("main form button")
	i.inspect("code-wrong")
	i.open(p.page(hotel, "device?user_code=BCDF-GHJK"))
	i.inspect("dead-code")
	i.open(p.page(hotel, "agents"))
	i.inspect("start-agents")

	r := p.ask(t, hotel, userOf(t), "bookings:read", "bookings:change", "profile:read")
	i.open(r.Link)
	i.inspect("start")
	i.follow("main a.button")
	i.inspect("sign-in")
	i.follow("main p a")
	i.inspect("sign-in-cancelled")
	i.follow("main a.button")
	i.logIn("alex", "wrong")
	i.inspect("sign-in-wrong")
	i.logIn("alex", "demo")
	i.mustSee(askHeading)
	question := i.address()
	p.operate(t, "agent", "disable", "--issuer", p.Agent.Issuer)
	i.open(question)
	p.operate(t, "agent", "enable", "--issuer", p.Agent.Issuer)
	i.inspect("agent-disabled")
	i.open(question)
	i.inspect("ask")
	i.allow()
	i.mustSee(allowedHeading)
	i.inspect("allowed")
	i.follow(`main a[href*="/agents"]`)
	i.inspect("agents")

	// The second time the list shows what is held, and something sensitive.
	p.openUntilBack(t)
	wider := p.ask(t, hotel, userOf(t), "bookings:read", "extras:order")
	i.open(wider.Link)
	i.signIn("alex")
	i.mustSee(askHeading)
	i.inspect("ask-wider")
	late := i.address()
	p.change(t, `UPDATE device_requests SET expires_at = now() - interval '1 second' WHERE agent_sub = $1 AND state = 'pending'`, userOf(t))
	i.open(late)
	i.inspect("expired")

	i.open(p.page(hotel, "agents"))
	i.follow(`main article a[href*="end="]`)
	i.inspect("end")
	i.follow("main form button")
	i.inspect("ended")

	refused := p.ask(t, hotel, userOf(t), "bookings:read")
	i.open(refused.Link)
	i.signIn("alex")
	i.mustSee(askHeading)
	i.deny()
	i.mustSee(deniedHeading)
	i.inspect("denied")

	lost := p.ask(t, hotel, userOf(t), "bookings:read")
	i.open(lost.Link)
	i.follow("main a.button")
	call(i.person, network.ClearBrowserCookies, cdp.Empty{})
	i.logIn("alex", "demo")
	i.inspect("cookie-lost")
	fmt.Fprintf(os.Stderr, "%d pages were examined\n", len(i.names))
}

// openUntilBack waits until the service lets the agent in again.
func (p *product) openUntilBack(t *testing.T) {
	t.Helper()
	r := &request{t: t, product: p, brand: p.hotel(t), user: userOf(t)}
	for range eventually(t) {
		if a := r.poll(); a.status != 401 {
			return
		}
	}
	t.Fatal("the agent stayed out after it was enabled")
}
