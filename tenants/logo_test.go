package tenants_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

func picture(w, h int) image.Image {
	m := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.White, color.RGBA{200, 0, 0, 255}})
	for i := range m.Pix {
		m.Pix[i] = uint8(i % 2)
	}
	return m
}

func encoded(t *testing.T, write func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pngOf(t *testing.T, w, h int) []byte {
	return encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, picture(w, h)) })
}

// claiming is a PNG whose header promises so many pixels.
func claiming(t *testing.T, w, h uint32) []byte {
	raw := pngOf(t, 1, 1)
	binary.BigEndian.PutUint32(raw[16:], w)
	binary.BigEndian.PutUint32(raw[20:], h)
	binary.BigEndian.PutUint32(raw[29:], crc32.ChecksumIEEE(raw[12:29]))
	return raw
}

// A logo is a picture of our own making, whatever came in.
func TestLogoIsMadeAnew(t *testing.T) {
	w := authoritytest.New(t)
	hidden := append(pngOf(t, 400, 100), []byte("<script>alert(1)</script>")...)
	for name, tt := range map[string]struct {
		raw  []byte
		w, h int
	}{
		"PNG with a script behind it": {hidden, 256, 64},
		"a tall one":                  {pngOf(t, 1, 600), 1, 256},
		"a small one":                 {pngOf(t, 32, 16), 32, 16},
		"JPEG":                        {encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, picture(300, 300), nil) }), 256, 256},
		"GIF":                         {encoded(t, func(b *bytes.Buffer) error { return gif.Encode(b, picture(300, 300), nil) }), 256, 256},
		"WebP":                        {webp1, 1, 1},
	} {
		if err := tenants.SetLogo(t.Context(), editor(w), w.Hotel.ID, tt.raw); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, hash, err := tenants.Logo(t.Context(), w.DB, w.Hotel.ID)
		if err != nil {
			t.Fatal(err)
		}
		m, err := png.Decode(bytes.NewReader(got))
		if err != nil || m.Bounds().Dx() != tt.w || m.Bounds().Dy() != tt.h || bytes.Contains(got, []byte("script")) {
			t.Errorf("%s: %v, %v", name, m.Bounds(), err)
		}
		if b := w.Reload(t, w.Hotel.ID); b.Logo != hash {
			t.Errorf("%s: the Brand says %q", name, b.Logo)
		}
	}
	if _, _, err := tenants.Logo(t.Context(), w.DB, w.Shop.ID); !errors.Is(err, tenants.ErrNoLogo) {
		t.Errorf("the shop has one: %v", err)
	}
	for range 2 {
		if err := tenants.RemoveLogo(t.Context(), editor(w), w.Hotel.ID); err != nil {
			t.Fatal(err)
		}
	}
	if b := w.Reload(t, w.Hotel.ID); b.Logo != "" {
		t.Errorf("after it was removed: %q", b.Logo)
	}
}

// What is no picture, or would unfold to gigabytes, is refused with a reason.
func TestLogoRefusesWhatIsNone(t *testing.T) {
	w := authoritytest.New(t)
	for name, raw := range map[string][]byte{
		"nothing":           {},
		"SVG":               []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`),
		"SVG behind a head": []byte("<?xml version=\"1.0\"?>\n<!-- x -->\n<svg/>"),
		"HTML":              []byte("<!doctype html>"),
		"half a PNG":        pngOf(t, 64, 64)[:60],
		"a bomb":            claiming(t, 60000, 60000),
		"a long bomb":       claiming(t, 1<<30, 1),
		"too many bytes":    append(pngOf(t, 8, 8), make([]byte, tenants.LargestLogo)...),
		"RIFF, no WebP":     []byte("RIFF\x00\x00\x00\x00WEBPVP8 "),
	} {
		err := tenants.SetLogo(t.Context(), editor(w), w.Hotel.ID, raw)
		if got := problemFields(t, err); !slices.Equal(got, []string{"logo"}) {
			t.Errorf("%s: %v", name, err)
		}
		// Found by its header, before anything is unfolded.
		if strings.HasSuffix(name, "bomb") && !strings.Contains(err.Error(), "too many pixels") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM brand_logos`); n != 0 {
		t.Errorf("%d logos", n)
	}
}

// webp1 is one grey pixel, lossless.
var webp1 = []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\r\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")
