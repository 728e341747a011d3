package pages_test

import (
	"context"
	"os"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// onAsk opens the question in a real browser. Like the gallery, it is asked for
// by COUNTERSIGN_GALLERY; without a browser there is nothing to see.
func onAsk(t *testing.T) (ctx context.Context, url string) {
	t.Helper()
	if os.Getenv("COUNTERSIGN_GALLERY") == "" {
		t.Skip("set COUNTERSIGN_GALLERY to try the pages in a browser")
	}
	c := catalogue(t)
	server := hang(t, questions(common(c, c.Languages()[0], kind), kind))
	ctx = browser(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1100, 2400)); err != nil {
		t.Fatal(err)
	}
	return ctx, server.URL + "/ask"
}

// middle is where a mouse would press.
func middle(t *testing.T, ctx context.Context, selector string) (x, y float64) {
	t.Helper()
	at, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](`(() => {
		const r = document.querySelector('`+selector+`').getBoundingClientRect()
		return [r.x + r.width / 2, r.y + r.height / 2]
	})()`))
	if err != nil {
		t.Fatal(err)
	}
	return at[0], at[1]
}

func press(t *testing.T, ctx context.Context, x, y float64) {
	t.Helper()
	frame := func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		drawn := chromedp.Evaluate[bool](`new Promise(done => requestAnimationFrame(() =>
			requestAnimationFrame(() => done(true))))`, chromedp.EvalAwaitPromise)
		_, err := drawn(ctx, target)
		return chromedp.Void{}, err
	}
	// No hand is quicker than the next frame.
	move := chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y)
	if err := chromedp.Do(ctx, move, frame, chromedp.MouseClickXY(x, y)); err != nil {
		t.Fatal(err)
	}
}

// listen notes what would be posted, instead of posting it.
func listen(t *testing.T, ctx context.Context, url string) {
	t.Helper()
	away := chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, -5, -5)
	if err := chromedp.Do(ctx, away, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.addEventListener('submit', e => {
		if (e.submitter && e.submitter.formMethod === 'dialog') return
		e.preventDefault()
		window.sent = e.submitter ? e.submitter.value : 'without a button'
	}), window.sent = '', true`))
	if err != nil {
		t.Fatal(err)
	}
}

// sent tells what was posted, or nothing. A press is over when its events are.
func sent(t *testing.T, ctx context.Context) string {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[string](`window.sent`))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// settle lets the page's own second pass, by the page's own clock.
func settle(t *testing.T, ctx context.Context) {
	t.Helper()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Promise.all(
		document.getAnimations().map(a => a.finished)).then(() => true)`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
}

// B51: a press that was meant for another page does not allow anything, and No
// is heard at once.
func TestAllowWaitsForTheEye(t *testing.T) {
	ctx, url := onAsk(t)
	pressed := func(selector string) string {
		x, y := middle(t, ctx, selector)
		press(t, ctx, x, y)
		return sent(t, ctx)
	}

	listen(t, ctx, url)
	if got := pressed("[value=allow]"); got != "" {
		t.Errorf("pressed at once: %q", got)
	}
	if got := pressed("[value=deny]"); got != "deny" {
		t.Errorf("no, pressed at once: %q", got)
	}

	// The page stood there for a second.
	listen(t, ctx, url)
	settle(t, ctx)
	if got := pressed("[value=allow]"); got != "allow" {
		t.Errorf("pressed on purpose: %q", got)
	}
}

// The keyboard is heard at once, but Enter on a box decides nothing.
func TestKeyboardDecidesOnlyOnAButton(t *testing.T) {
	ctx, url := onAsk(t)
	for selector, want := range map[string]string{
		"[name=scope]": "", "[name=until]": "", "[value=allow]": "allow", "[value=deny]": "deny",
	} {
		listen(t, ctx, url)
		if err := chromedp.Do(ctx, chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent(kb.Enter)); err != nil {
			t.Fatal(err)
		}
		if got := sent(t, ctx); got != want {
			t.Errorf("Enter on %s: %q, want %q", selector, got, want)
		}
	}
}

// The tally follows the ticks with no script on the page.
func TestTallyFollowsTheTicks(t *testing.T) {
	ctx, url := onAsk(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	look := func() string {
		// A style sheet's words are in no text of the document: look.
		png, err := chromedp.Run(ctx, chromedp.Screenshot(chromedp.CSS(".tally")))
		if err != nil {
			t.Fatal(err)
		}
		return string(png)
	}
	before := look()
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("[name=scope]"))); err != nil {
		t.Fatal(err)
	}
	if after := look(); after == before {
		t.Error("the tally stood still")
	}
}
