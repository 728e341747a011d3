package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds each single step in the browser.
const patience = 30 * time.Second

// chromium is one browser for all tests. Its context has no deadline: chromedp
// ends the browser with the context that started it.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("the journeys need a browser; apt-get install chromium: %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(filepath.Join(scratch, "chromium")),
		chromedp.Flag("disable-quic", true),
		// A machine without a mouse says that nothing can hover.
		chromedp.Flag("blink-settings", "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ = chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		cancel()
		return nil, fmt.Errorf("start chromium: %w", err)
	}
	closeBrowser = func() {
		ctx, done := context.WithTimeout(ctx, patience)
		defer done()
		_ = chromedp.Cancel(ctx) // ending anyway
		cancel()
	}
	return ctx, nil
})

var closeBrowser func()

func closeChromium() {
	if closeBrowser != nil {
		closeBrowser()
	}
}

// person is somebody with a browser of their own, which shares no cookie with
// anybody else's. Every step fails the test if it cannot be taken.
type person struct {
	t       *testing.T
	ctx     context.Context // the tab in front
	product *product
	seen    *witness
}

// witness notes what a browser complains about while nobody looks.
type witness struct {
	mu         sync.Mutex
	complaints []string
	provoked   bool // a test wants the policy to step in
	steppedIn  int  // how often it then did
}

func newPerson(t *testing.T, p *product) *person {
	t.Helper()
	browser, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	// All tests come from one address, whose budget of wrong codes they would
	// use up together (P26).
	p.change(t, `DELETE FROM code_attempts`)
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	who := &person{t: t, ctx: ctx, product: p, seen: &witness{}}
	who.listen()
	t.Cleanup(func() {
		who.seen.mu.Lock()
		defer who.seen.mu.Unlock()
		for _, c := range who.seen.complaints {
			t.Errorf("the browser complained: %s", c)
		}
		if t.Failed() {
			who.leavePicture()
		}
	})
	return who
}

// tab opens another tab of the same browser.
func (p *person) tab() *person {
	p.t.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx, chromedp.WithNewWindow(true))
	p.t.Cleanup(cancel)
	other := &person{t: p.t, ctx: ctx, product: p.product, seen: p.seen}
	other.listen()
	return other
}

// listen watches the whole journey: any word of the content security policy, any
// error of a script, any fault of ours and any missing part of a page fails the
// test; and what passes through the browser's address bar is kept as a secret.
func (p *person) listen() {
	p.t.Helper()
	err := chromedp.Listen(p.ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if strings.Contains(strings.ReplaceAll(e.Entry.Text, "-", " "), "Content Security Policy") || e.Entry.Source == log.EntrySourceSecurity {
				p.seen.complain(true, e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			p.seen.complain(false, e.ExceptionDetails.Text)
		case *network.EventRequestWillBeSent:
			p.product.secrets.keepFromURL(e.Request.URL)
		case *network.EventResponseReceived:
			wrong := e.Response.Status == 500 || e.Response.Status >= 400 && e.Type != network.ResourceTypeDocument
			if wrong {
				p.seen.complain(false, fmt.Sprintf("%d from %s", e.Response.Status, e.Response.URL))
			}
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (w *witness) complain(ofPolicy bool, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ofPolicy && w.provoked {
		w.steppedIn++
		return
	}
	w.complaints = append(w.complaints, text)
}

// do takes steps.
func (p *person) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("at %s: %v", p.where(), err)
	}
}

// arrive takes steps that lead to another page, and returns that page's status.
func (p *person) arrive(steps ...chromedp.Action[chromedp.Void]) (status int64) {
	p.t.Helper()
	from := p.where()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	resp, err := chromedp.RunResponse(ctx, steps...)
	if err != nil {
		p.t.Fatalf("from %s: %v", from, err)
	}
	return resp.Status
}

func (p *person) open(address string) (status int64) {
	p.t.Helper()
	return p.arrive(chromedp.Navigate(address))
}

// follow presses a link or a button that leads to another page.
func (p *person) follow(selector string) (status int64) {
	p.t.Helper()
	return p.arrive(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

func (p *person) press(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

func (p *person) fill(selector, text string) {
	p.t.Helper()
	p.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// evaluate asks the page, as the developer tools do; it works also where the
// page itself may run no script.
func evaluate[T any](p *person, script string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("at %s: %v", p.where(), err)
	}
	return value
}

func call[P, R any](p *person, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// where is the address without what is secret in it.
func (p *person) where() string {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	address, err := chromedp.Run(ctx, chromedp.Location())
	if err != nil {
		return err.Error()
	}
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is none"
	}
	u.RawQuery = ""
	return u.String()
}

// address is the whole address, for going there again.
func (p *person) address() string {
	p.t.Helper()
	return evaluate[string](p, `location.href`)
}

func (p *person) has(selector string) bool {
	p.t.Helper()
	return evaluate[bool](p, fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
}

// reads is all that stands on the page.
func (p *person) reads() string {
	p.t.Helper()
	return evaluate[string](p, `document.body.innerText`)
}

func (p *person) text(selector string) string {
	p.t.Helper()
	return evaluate[string](p, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

func (p *person) value(selector string) string {
	p.t.Helper()
	return evaluate[string](p, fmt.Sprintf(`document.querySelector(%q)?.value ?? ""`, selector))
}

// mustSee demands the page with that heading.
func (p *person) mustSee(heading string) {
	p.t.Helper()
	if got := p.text("h1"); got != heading {
		p.t.Fatalf("at %s: the page says %q, want %q", p.where(), got, heading)
	}
}

// mustRead demands that the words stand on the page.
func (p *person) mustRead(words ...string) {
	p.t.Helper()
	all := p.reads()
	for _, w := range words {
		if !strings.Contains(all, w) {
			p.t.Errorf("at %s: %q is not on the page", p.where(), w)
		}
	}
}

// leavePicture is for whoever looks into a test that failed.
func (p *person) leavePicture() {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return
	}
	name := filepath.Join(pictures, "failed-"+userOf(p.t)+".png")
	if os.MkdirAll(pictures, 0o755) == nil && os.WriteFile(name, png, 0o644) == nil {
		p.t.Log("where it failed:", name)
	}
}
