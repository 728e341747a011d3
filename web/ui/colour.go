package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Brand lends one colour, and it may be pale yellow. These are the papers our
// pages are printed on; pages.css repeats them, and a test compares.
var (
	paperLight = colour{0xf7, 0xf5, 0xf1}
	paperDark  = colour{0x1a, 0x18, 0x16}
	white      = colour{0xff, 0xff, 0xff}
	black      = colour{0x14, 0x12, 0x10}
	house      = colour{0x22, 0x40, 0x6f}
)

// readable is the contrast WCAG asks of ordinary text (1.4.3, level AA).
const readable = 4.5

// BrandCSS is a Brand's stylesheet: its colour as --brand and the colour of
// text on it as --on-brand, for light and for dark pages, moved towards black
// or white until both can be read. Whatever is not a colour gives our own, so
// nothing a Brand types can become anything but six hexadecimal digits.
func BrandCSS(hex string) []byte {
	c, ok := parseColour(hex)
	if !ok {
		c = house
	}
	light, dark := c.against(paperLight, black), c.against(paperDark, white)
	return fmt.Appendf(nil,
		":root{--brand:%s;--on-brand:%s}@media (prefers-color-scheme:dark){:root{--brand:%s;--on-brand:%s}}\n",
		light, light.text(), dark, dark.text())
}

// A Shade is a Brand's colour on the pages of one scheme.
type Shade struct {
	Hex   string // as it is shown
	Moved bool   // it is not what the Brand chose: that could not be read
	// Contrast is that of the Brand's own colour with the page, 1 to 21.
	Contrast float64
}

// ReadableContrast is the least that a Shade is shown with.
const ReadableContrast = readable

// Shades are what BrandCSS makes of the colour, on light pages and on dark ones;
// false: it is no colour.
func Shades(hex string) (light, dark Shade, ok bool) {
	c, ok := parseColour(hex)
	if !ok {
		return Shade{}, Shade{}, false
	}
	shade := func(paper, pole colour) Shade {
		to := c.against(paper, pole)
		return Shade{Hex: to.String(), Moved: to != c, Contrast: contrast(c, paper)}
	}
	return shade(paperLight, black), shade(paperDark, white), true
}

type colour [3]uint8

func parseColour(hex string) (colour, bool) {
	hex = strings.TrimPrefix(strings.TrimSpace(hex), "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 24)
	if err != nil || len(hex) != 6 {
		return colour{}, false
	}
	return colour{uint8(n >> 16), uint8(n >> 8), uint8(n)}, true
}

func (c colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// against moves c towards the pole in the smallest step of a hundred that can
// be read on paper. The hue stays, so the Brand still knows its colour.
func (c colour) against(paper, pole colour) colour {
	for step := range 101 {
		moved := c.mix(pole, float64(step)/100)
		if contrast(moved, paper) >= readable && contrast(moved, moved.text()) >= readable {
			return moved
		}
	}
	return pole
}

// text is whichever of our black and white reads better on c.
func (c colour) text() colour {
	if contrast(c, white) >= contrast(c, black) {
		return white
	}
	return black
}

func (c colour) mix(with colour, part float64) colour {
	var out colour
	for i := range c {
		out[i] = uint8(math.Round(float64(c[i])*(1-part) + float64(with[i])*part))
	}
	return out
}

// contrast is WCAG's ratio of relative luminances, 1 to 21.
func contrast(a, b colour) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func (c colour) luminance() float64 {
	channel := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*channel(c[0]) + 0.7152*channel(c[1]) + 0.0722*channel(c[2])
}
