package tenants

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/jackc/pgx/v5"
	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

const (
	// LargestLogo is how many bytes of a picture are taken.
	LargestLogo = 1 << 20
	logoSide    = 256     // pixels, of what we make of it
	mostPixels  = 4 << 20 // of what we are given: a small file can unfold to gigabytes
)

// ErrNoLogo is returned for a Brand without one.
var ErrNoLogo = errors.New("the brand has no logo")

// SetLogo makes a picture of the Brand's picture and keeps that. Nothing of the
// file itself is kept, and so nothing that it may have hidden.
func SetLogo(ctx context.Context, edit Editor, brand BrandID, raw []byte) error {
	made, hash, err := RemakeLogo(raw)
	if err != nil {
		return err
	}
	return edit.change(ctx, brand, "set logo", func(e *Edit) error {
		const q = `
			INSERT INTO brand_logos (brand_id, png, hash, changed_at) VALUES (@brand, @png, @hash, @now)
			ON CONFLICT (brand_id) DO UPDATE SET png = excluded.png, hash = excluded.hash, changed_at = excluded.changed_at
			 WHERE brand_logos.hash <> excluded.hash`
		tag, err := e.Exec(ctx, q, pgx.NamedArgs{"brand": brand, "png": made, "hash": hash, "now": e.Now})
		if err == nil && tag.RowsAffected() > 0 {
			e.Note("brand.logo", map[string]any{"after": hash})
		}
		return err
	})
}

// RemoveLogo takes the Brand's logo away.
func RemoveLogo(ctx context.Context, edit Editor, brand BrandID) error {
	return edit.change(ctx, brand, "remove logo", func(e *Edit) error {
		const q = `DELETE FROM brand_logos WHERE brand_id = @brand RETURNING hash`
		var hash string
		err := e.QueryRow(ctx, q, pgx.NamedArgs{"brand": brand}).Scan(&hash)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil {
			e.Note("brand.logo", map[string]any{"before": hash, "after": ""})
		}
		return err
	})
}

// Logo returns the PNG that was made of the Brand's logo, and its hash, which
// also stands in Brand.Logo; or ErrNoLogo.
func Logo(ctx context.Context, db *DB, brand BrandID) (picture []byte, hash string, err error) {
	const q = `SELECT png, hash FROM brand_logos WHERE brand_id = @brand`
	r, err := One[struct {
		PNG  []byte `db:"png"`
		Hash string
	}](ctx, db, brand, q, pgx.NamedArgs{"brand": brand})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, "", ErrNoLogo
	}
	if err != nil {
		return nil, "", fmt.Errorf("load logo of %s: %w", brand, err)
	}
	return r.PNG, r.Hash, nil
}

// pictures are the formats that are read, by how their files begin. Named here
// and not registered: which decoders run on strangers' bytes is our decision.
var pictures = []struct {
	begins string
	at     int
	size   func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}{
	{"\x89PNG\r\n\x1a\n", 0, png.DecodeConfig, png.Decode},
	{"\xff\xd8\xff", 0, jpeg.DecodeConfig, jpeg.Decode},
	{"GIF8", 0, gif.DecodeConfig, gif.Decode}, // the first picture of an animation
	{"WEBP", 8, webp.DecodeConfig, webp.Decode},
}

// RemakeLogo makes a PNG of our own of somebody's picture, and its hash. What
// cannot be taken is Problems.
func RemakeLogo(raw []byte) (picture []byte, hash string, err error) {
	made, err := remakeLogo(raw)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(made)
	return made, base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

func remakeLogo(raw []byte) ([]byte, error) {
	refuse := func(m Mistake, say, mend string) ([]byte, error) {
		return nil, Problems{{Field: "logo", Say: say, Mend: mend, Mistake: m}}
	}
	if len(raw) == 0 {
		return refuse(EmptyPicture, "is empty", "send the bytes of a picture")
	}
	if len(raw) > LargestLogo {
		return refuse(LargePicture, "is larger than 1 MiB", "save it smaller; it is shown at 256 × 256 pixels at most")
	}
	for _, format := range pictures {
		if len(raw) < format.at || !bytes.HasPrefix(raw[format.at:], []byte(format.begins)) {
			continue
		}
		// The size first, from the header alone.
		c, err := format.size(bytes.NewReader(raw))
		if err != nil || c.Width < 1 || c.Height < 1 {
			return refuse(Damaged, "is damaged", "save it again as PNG")
		}
		if c.Width > mostPixels/c.Height {
			return refuse(ManyPixels, "has too many pixels", "save it with 2048 × 2048 pixels at most")
		}
		picture, err := format.decode(bytes.NewReader(raw))
		if err != nil {
			return refuse(Damaged, "is damaged", "save it again as PNG")
		}
		return shrink(picture)
	}
	head := bytes.ToLower(raw[:min(len(raw), 1024)])
	if bytes.Contains(head, []byte("<svg")) || bytes.Contains(head, []byte("<?xml")) {
		return refuse(IsSVG, "is SVG, which can carry scripts and fetch from elsewhere", "export it as PNG, 256 × 256 pixels or more")
	}
	return refuse(NoPicture, "is no picture that is read here", "give PNG, JPEG, WebP or GIF")
}

// shrink fits the picture into the square, keeps its proportions, and never
// blows it up.
func shrink(from image.Image) ([]byte, error) {
	w, h := from.Bounds().Dx(), from.Bounds().Dy()
	if longest := max(w, h); longest > logoSide {
		w, h = max(1, w*logoSide/longest), max(1, h*logoSide/longest)
	}
	to := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.Draw(to, to.Bounds(), image.NewUniform(color.Transparent), image.Point{}, draw.Src)
	draw.CatmullRom.Scale(to, to.Bounds(), from, from.Bounds(), draw.Over, nil)
	var out bytes.Buffer
	if err := png.Encode(&out, to); err != nil {
		return nil, fmt.Errorf("encode logo: %w", err)
	}
	return out.Bytes(), nil
}
