package export

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// Archive writes archives of Brands.
type Archive struct {
	Authority *authority.Authority
	DB        *tenants.DB
	Keys      *signing.Keys
	Now       func() time.Time
}

// Noted writes down, in the Brand's trail, that somebody takes everything along.
type Noted func(context.Context) error

// File is one file of an archive, as its manifest lists it.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Rows   int64  `json:"rows,omitempty"` // of one with a row a line
}

// Manifest is what an archive holds.
type Manifest struct {
	Brand      tenants.BrandID `json:"brand"`
	ExportedAt time.Time       `json:"exported_at"`
	// Head of the trail as it is in the archive, SEQ:HASH.
	Head  string `json:"audit_head"`
	Files []File `json:"files"`
}

// Name is what to call the archive of the Brand.
func (a Archive) Name(brand tenants.BrandID) string {
	return fmt.Sprintf("countersign-%s-%s.zip", brand, a.Now().UTC().Format("20060102-150405"))
}

// Write writes the Brand's archive, a ZIP. What cannot be noted does not begin.
// After an error, what was written so far is no archive.
func (a Archive) Write(ctx context.Context, w io.Writer, brand tenants.BrandID, noted Noted) (Manifest, error) {
	m := Manifest{Brand: brand, ExportedAt: a.Now().UTC().Truncate(time.Second)}
	if err := noted(ctx); err != nil {
		return m, fmt.Errorf("export %s: %w", brand, err)
	}
	z := zip.NewWriter(w)
	for _, p := range parts() {
		f, err := a.file(ctx, z, &m, p)
		if err != nil {
			return m, fmt.Errorf("export %s: %s: %w", brand, p.name, err)
		}
		if f.Name != "" {
			m.Files = append(m.Files, f)
		}
	}
	last, err := z.CreateHeader(&zip.FileHeader{Name: "manifest.json", Method: zip.Deflate, Modified: m.ExportedAt})
	if err == nil {
		out := json.NewEncoder(last)
		out.SetIndent("", "  ")
		err = errors.Join(out.Encode(m), z.Close())
	}
	if err != nil {
		return m, fmt.Errorf("export %s: manifest: %w", brand, err)
	}
	return m, nil
}

func (a Archive) file(ctx context.Context, z *zip.Writer, m *Manifest, p part) (File, error) {
	if p.there != nil {
		there, err := p.there(ctx, a, m.Brand)
		if err != nil || !there {
			return File{}, err
		}
	}
	to, err := z.CreateHeader(&zip.FileHeader{Name: p.name, Method: zip.Deflate, Modified: m.ExportedAt})
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	out := &output{Writer: io.MultiWriter(to, sum)}
	err = p.write(ctx, a, m, out)
	return File{Name: p.name, SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: out.bytes, Rows: out.rows}, err
}

// output is a file that is being written.
type output struct {
	io.Writer
	bytes, rows int64
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	o.bytes += int64(n)
	return n, err
}

// row writes one line.
func (o *output) row(v any) error {
	o.rows++
	out := json.NewEncoder(o)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

func (o *output) whole(v any) error {
	out := json.NewEncoder(o)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// Serve answers with the Brand's archive, for as long as the caller takes it: each
// write must be taken within stall. It returns an error while an answer can still
// be given; trouble after that breaks the connection off, so that nobody takes
// half for the whole, and goes to broken.
func (a Archive) Serve(w http.ResponseWriter, r *http.Request, brand tenants.BrandID, noted Noted, broken func(error)) error {
	out := &answer{w: w, name: a.Name(brand), control: http.NewResponseController(w)}
	// The end that requests have does not count here; that of the caller is seen
	// when nobody takes what is written.
	_, err := a.Write(context.WithoutCancel(r.Context()), out, brand, noted)
	if err != nil && out.begun {
		broken(err)
		panic(http.ErrAbortHandler)
	}
	return err
}

const stall = 30 * time.Second

// answer is a response that is a file.
type answer struct {
	w       http.ResponseWriter
	name    string
	control *http.ResponseController
	begun   bool
}

func (a *answer) Write(p []byte) (int, error) {
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", "application/zip")
		a.w.Header().Set("Content-Disposition", `attachment; filename="`+a.name+`"`)
		a.w.Header().Set("Cache-Control", "no-store")
	}
	// Where there is no connection, as in tests, there is no deadline.
	if err := a.control.SetWriteDeadline(time.Now().Add(stall)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return a.w.Write(p)
}
