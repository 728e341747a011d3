package e2e

import (
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// pictures is where screenshots go; git ignores it.
const pictures = "screenshots"

// Whether pictures are taken at all, and in the dark and at 200 % too. Every look is
// always examined; pictures cost a third of the time, and are for people.
var (
	pictured  = os.Getenv("COUNTERSIGN_PICTURES") != "none"
	everyLook = os.Getenv("COUNTERSIGN_PICTURES") == "all"
)

// look is how a page is looked at.
type look struct {
	name   string
	width  int64
	height int64
	scale  float64
	scheme string
}

var looks = []look{
	{"phone", 390, 844, 2, "light"},
	{"phone-dark", 390, 844, 2, "dark"},
	{"desk", 1280, 900, 1, "light"},
	{"desk-dark", 1280, 900, 1, "dark"},
}

// lookAt changes the screen under the open page, as turning a phone does.
func (p *person) lookAt(l look) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(l.width, l.height, chromedp.EmulateScale(l.scale)))
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}},
	})
}

// picture takes the whole page as a phone shows it, for people to look at.
func (p *person) picture(name string) {
	p.t.Helper()
	p.lookAt(looks[0])
	p.snap(name + "-" + looks[0].name)
}

func (p *person) snap(name string) {
	p.t.Helper()
	if !pictured {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pictures, "live-"+name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
