package logintest

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a Page needs.
type Config struct {
	// Back is where the page may send assertions: everything beneath it.
	Back  string
	Users []User
	Now   func() time.Time // nil: time.Now
}

// User is somebody who can sign in, with the password demo.
type User struct{ Username, Subject, Email string }

// Page is a running login page.
type Page struct {
	config Config
	server *http.Server
	base   string
	hits   atomic.Int64

	mu     sync.Mutex
	keys   []Key
	broken bool
	hang   chan struct{} // until it is closed, the keys keep everybody waiting
}

// Start runs the page on a free port of this machine.
func Start(c Config) (*Page, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start login page: %w", err)
	}
	p := &Page{config: c, base: "http://" + l.Addr().String(), keys: []Key{NewKey("first")}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", p.ask)
	mux.HandleFunc("POST /login", p.vouch)
	mux.HandleFunc("GET /jwks.json", p.publish)
	mux.HandleFunc("GET /connected", p.connected)
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute}
	go func() { _ = p.server.Serve(l) }() // ends with Close
	return p, nil
}

// Close ends it.
func (p *Page) Close() error { return p.server.Close() }

// Issuer is what stands in iss; it is the page's origin as well.
func (p *Page) Issuer() string { return p.base }

// JWKSURI is where the keys stand.
func (p *Page) JWKSURI() string { return p.base + "/jwks.json" }

// LoginURL is where people sign in.
func (p *Page) LoginURL() string { return p.base + "/login" }

// ConnectedURL is where people may go on afterwards.
func (p *Page) ConnectedURL() string { return p.base + "/connected" }

// Hits is how often the keys were fetched.
func (p *Page) Hits() int { return int(p.hits.Load()) }

// Break makes the keys unavailable, or available again.
func (p *Page) Break(broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = broken
}

// Hang keeps whoever asks for the keys waiting, until release is called.
func (p *Page) Hang() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hang = make(chan struct{})
	return sync.OnceFunc(func() { close(p.hang) })
}

// Rotate publishes and uses these keys from now on; the first one signs.
func (p *Page) Rotate(keys ...Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = keys
}

// Key is the one that signs.
func (p *Page) Key() Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[0]
}

func (p *Page) publish(w http.ResponseWriter, _ *http.Request) {
	p.hits.Add(1)
	p.mu.Lock()
	hang := p.hang
	p.mu.Unlock()
	if hang != nil {
		<-hang
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var set struct {
		Keys []any `json:"keys"`
	}
	for _, k := range p.keys {
		set.Keys = append(set.Keys, k.public())
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(set)
}

var shell = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><title>{{.Title}}</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width"><main><h1>{{.Title}}</h1>
{{if .Assertion}}<form method="post" action="{{.Back}}"><input type="hidden" name="assertion" value="{{.Assertion}}">
<button type="submit">Continue</button></form>
{{else if .Back}}<form method="post" action="/login"><input type="hidden" name="return_to" value="{{.Back}}">
<label>Name <input id="username" name="username"></label><label>Password <input id="password" name="password" type="password"></label>
<button type="submit">Sign in</button></form>{{end}}</main></html>`))

type view struct {
	Title, Back string
	Assertion   string
}

func show(w http.ResponseWriter, status int, v view) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = shell.Execute(w, v)
}

// goesBack reports whether the address is one that assertions may be sent to. A
// page that sends them anywhere gives its people away.
func (p *Page) goesBack(address string) bool {
	return strings.HasPrefix(address, strings.TrimSuffix(p.config.Back, "/")+"/")
}

func (p *Page) ask(w http.ResponseWriter, r *http.Request) {
	back := r.URL.Query().Get("return_to")
	if !p.goesBack(back) {
		show(w, http.StatusBadRequest, view{Title: "Where do you come from?"})
		return
	}
	show(w, http.StatusOK, view{Title: "Sign in", Back: back})
}

// vouch makes the assertion: aud is where it goes, without the query; user_code is
// the query's.
func (p *Page) vouch(w http.ResponseWriter, r *http.Request) {
	back := r.PostFormValue("return_to")
	to, err := url.Parse(back)
	if err != nil || !p.goesBack(back) {
		show(w, http.StatusBadRequest, view{Title: "Where do you come from?"})
		return
	}
	for _, u := range p.config.Users {
		if u.Username == r.PostFormValue("username") && r.PostFormValue("password") == "demo" {
			audience, _, _ := strings.Cut(back, "?")
			show(w, http.StatusOK, view{
				Title: "Welcome", Back: back,
				Assertion: p.Assert(audience, u, to.Query().Get("user_code"), nil),
			})
			return
		}
	}
	show(w, http.StatusForbidden, view{Title: "Sign in", Back: back})
}

func (p *Page) connected(w http.ResponseWriter, r *http.Request) {
	show(w, http.StatusOK, view{Title: "Back at the Brand: " + r.URL.Query().Get("status")})
}
