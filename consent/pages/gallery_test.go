package pages_test

import (
	"context"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"countersign.dev/web/i18n"
	"countersign.dev/web/static"
	"countersign.dev/web/ui"
)

// policy is what the pages are really served with; here it shows in pictures
// what it would block.
const policy = "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// hang serves every sample of one set, under its name.
func hang(t *testing.T, samples []sample) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET "+static.Prefix, static.Handler())
	mux.HandleFunc("GET /b/demo/brand.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css")
		_, _ = w.Write(ui.BrandCSS("#0f766e"))
	})
	mux.HandleFunc("GET /b/demo/agents/logo", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		m := image.NewNRGBA(image.Rect(0, 0, 96, 96))
		for i := range 96 * 96 { // a disc on nothing
			if x, y := i%96-48, i/96-48; x*x+y*y < 44*44 {
				m.Set(i%96, i/96, color.NRGBA{B: 160, R: 40, A: 255})
			}
		}
		_ = png.Encode(w, m)
	})
	for _, s := range samples {
		mux.HandleFunc("GET /"+s.name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", policy)
			if err := ui.Render(r.Context(), w, http.StatusOK, s.page); err != nil {
				t.Error(err)
			}
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("the gallery needs chromium: install it, or unset COUNTERSIGN_GALLERY")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("hide-scrollbars", true),
		// A machine without a mouse says that nothing can hover.
		chromedp.Flag("blink-settings", "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// TestGallery takes a picture of every page, for people to look at, unless
// COUNTERSIGN_PICTURES is none. It judges one thing itself: no page may be wider
// than the screen.
func TestGallery(t *testing.T) {
	only := os.Getenv("COUNTERSIGN_GALLERY")
	if only == "" {
		t.Skip("set COUNTERSIGN_GALLERY to 1, or to part of a name, to take pictures into e2e/screenshots")
	}
	folder := filepath.Join("..", "..", "e2e", "screenshots")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	c := catalogue(t)
	english, chinese := c.Languages()[0], c.Languages()[1]
	turned := english
	turned.Tag, turned.Dir = "ar", "rtl"
	ctx := browser(t)
	for _, set := range []struct {
		name string
		lang i18n.Language
		from other
	}{{"en", english, kind}, {"zh", chinese, kind}, {"hostile", english, hostile}, {"rtl", turned, arabic}} {
		samples := all(common(c, set.lang, set.from), set.from)
		server := hang(t, samples)
		for _, s := range samples {
			for _, look := range []string{"phone", "phone-dark", "desk", "desk-dark", "forced", "zoom"} {
				name := set.name + "-" + s.name + "-" + look
				if only != "1" && !strings.Contains(name, only) {
					continue
				}
				picture(t, ctx, server.URL+"/"+s.name, look, filepath.Join(folder, name+".png"))
			}
		}
	}
}

func picture(t *testing.T, ctx context.Context, url, look, file string) {
	t.Helper()
	width, scale, scheme, forced := int64(390), 2.0, "light", "none"
	if strings.HasPrefix(look, "desk") {
		width, scale = 1100, 1
	}
	if strings.HasSuffix(look, "dark") {
		scheme = "dark"
	}
	switch look {
	case "forced":
		forced = "active"
	case "zoom": // a phone at 200 %
		width, scale = 195, 4
	}
	media := func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme}, {Name: "forced-colors", Value: forced},
			},
		})
		return chromedp.Void{}, err
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 844, chromedp.EmulateScale(scale)), media, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	unfold := chromedp.Evaluate[bool](`document.querySelectorAll("details").forEach(d => d.open = true), true`)
	if _, err := chromedp.Run(ctx, unfold); err != nil {
		t.Fatal(err)
	}
	wide, err := chromedp.Run(ctx, chromedp.Evaluate[int64]("document.scrollingElement.scrollWidth"))
	if err != nil {
		t.Fatal(err)
	}
	if wide > width {
		t.Errorf("%s is %d wide on a screen of %d", filepath.Base(file), wide, width)
	}
	if os.Getenv("COUNTERSIGN_PICTURES") == "none" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		t.Fatal(err)
	}
}
