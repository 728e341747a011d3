package pa

import (
	"fmt"
	"io"
	"strings"

	qr "github.com/piglig/go-qr"
)

// Black on white by number, not by theme: a scanner wants dark on light, and the
// terminal may be either way round.
const (
	inkOnPaper = "\x1b[38;5;16;48;5;231m"
	plain      = "\x1b[0m"
	quietZone  = 4 // modules of margin that the standard asks for
)

// drawQR writes text as a QR code. A character holds two modules, one above the
// other, since terminal cells are about twice as high as wide.
func drawQR(w io.Writer, text string) error {
	code, err := qr.EncodeText(text, qr.Low)
	if err != nil {
		return fmt.Errorf("draw a QR code: %w", err)
	}
	var b strings.Builder
	for y := -quietZone; y < code.Size()+quietZone; y += 2 {
		b.WriteString(inkOnPaper)
		for x := -quietZone; x < code.Size()+quietZone; x++ {
			b.WriteString(halves(dark(code, x, y), dark(code, x, y+1)))
		}
		b.WriteString(plain + "\n")
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func dark(code *qr.QrCode, x, y int) bool {
	inside := x >= 0 && y >= 0 && x < code.Size() && y < code.Size()
	return inside && code.Module(x, y)
}

func halves(upper, lower bool) string {
	switch {
	case upper && lower:
		return "█"
	case upper:
		return "▀"
	case lower:
		return "▄"
	}
	return " "
}
