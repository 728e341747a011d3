package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// Prefix is where Handler belongs.
const Prefix = "/static/"

//go:embed files
var embedded embed.FS

// names lists what is served. Stylesheets come last: they name the others.
var names = []string{
	"newsreader-latin.woff2",
	"newsreader-latin-ext.woff2",
	"newsreader-LICENSE.txt",
	"icon.svg",
	"passkey.js",
	"pages.css",
	"console.css",
}

// types are written out, since the machine's own table of types may lack them
// and nosniff leaves browsers no second guess.
var types = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".woff2": "font/woff2",
}

type file struct {
	url     string
	content []byte
}

var byName, byURL = build()

func build() (byName, byURL map[string]file) {
	byName, byURL = map[string]file{}, map[string]file{}
	for _, name := range names {
		content, err := embedded.ReadFile("files/" + name)
		if err != nil {
			panic("static: " + name + " is listed but not embedded")
		}
		if path.Ext(name) == ".css" {
			content = link(content, byName)
		}
		sum := sha256.Sum256(content)
		ext := path.Ext(name)
		f := file{url: Prefix + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext, content: content}
		byName[name], byURL[f.url] = f, f
	}
	return byName, byURL
}

// link points a stylesheet's url(name) at the hashed names, so that its own
// hash changes with the files it uses.
func link(css []byte, done map[string]file) []byte {
	for name, f := range done {
		css = bytes.ReplaceAll(css, []byte("url("+name+")"), []byte("url("+f.url+")"))
	}
	return css
}

// URL is the path of a file by its plain name. An unknown name is a mistake in
// our own source and panics.
func URL(name string) string {
	f, ok := byName[name]
	if !ok {
		panic("static: no file " + name)
	}
	return f.url
}

// Handler serves the files under Prefix, to be kept for a year.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := byURL[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		kind := types[path.Ext(f.url)]
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(f.url))
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
	})
}
