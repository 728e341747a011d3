package pa

import (
	"image"
	"image/color"
	"strings"
	"testing"

	qr "github.com/piglig/go-qr"
)

// What a camera sees of the terminal is read back to the link.
func TestTheDrawnCodeReadsAsTheLink(t *testing.T) {
	const link = "https://countersign.example/b/harbor-hotel/device?user_code=WDJB-MJHT"
	var out strings.Builder
	if err := drawQR(&out, link); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\n"), "\n") {
		// Its own colours on every line: it works on dark and light terminals.
		if !strings.HasPrefix(line, inkOnPaper) || !strings.HasSuffix(line, plain) {
			t.Fatalf("%q", line)
		}
		rows = append(rows, strings.TrimSuffix(strings.TrimPrefix(line, inkOnPaper), plain))
	}
	got, err := qr.Decode(photograph(rows))
	if err != nil || got != link {
		t.Errorf("%q, %v", got, err)
	}
	if strings.TrimSpace(rows[0]+rows[1]) != "" || !strings.HasPrefix(rows[5], "    ") {
		t.Error("no quiet zone")
	}
}

// photograph paints each module as 8 by 8 pixels.
func photograph(rows []string) image.Image {
	const size = 8
	width := len([]rune(rows[0]))
	picture := image.NewGray(image.Rect(0, 0, width*size, len(rows)*2*size))
	for y, row := range rows {
		for x, cell := range []rune(row) {
			for half, ink := range []bool{cell == '█' || cell == '▀', cell == '█' || cell == '▄'} {
				for py := range size {
					for px := range size {
						shade := color.Gray{Y: 255}
						if ink {
							shade.Y = 0
						}
						picture.SetGray(x*size+px, (2*y+half)*size+py, shade)
					}
				}
			}
		}
	}
	return picture
}
