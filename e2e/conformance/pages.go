package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// page is an HTML page as a browser without scripts has it.
type page struct {
	url    *url.URL
	status int
	header http.Header
	text   string // what is to be read, blanks folded
	forms  []form
	links  []string
}

// form is a form, with what its controls hold.
type form struct {
	action  string
	post    bool
	values  url.Values // what would be sent without pressing a named button
	boxes   url.Values // check boxes and their values, ticked or not
	buttons url.Values // named buttons
	types   map[string]string
}

// visitor is a browser: it keeps cookies and goes where it is sent. Cookies are
// kept per host and, other than net/http's, sent to this machine without TLS
// also where they are Secure, as browsers do.
type visitor struct {
	ctx     context.Context
	cookies map[string]map[string]string
}

func newVisitor(ctx context.Context) *visitor {
	return &visitor{ctx, make(map[string]map[string]string)}
}

func (v *visitor) open(address string) (page, error) {
	return v.request(http.MethodGet, address, nil, nil)
}

// submit sends the form with changes; the page is where it stands.
func (v *visitor) submit(from page, f form, values url.Values) (page, error) {
	to, err := from.url.Parse(f.action)
	if err != nil {
		return page{}, err
	}
	origin := from.url.Scheme + "://" + from.url.Host
	return v.request(http.MethodPost, to.String(), values, http.Header{"Origin": {origin}})
}

// request follows redirects, as windows do.
func (v *visitor) request(method, address string, values url.Values, header http.Header) (page, error) {
	const hops = 20
	for range hops {
		r, err := http.NewRequestWithContext(v.ctx, method, address, strings.NewReader(values.Encode()))
		if err != nil {
			return page{}, err
		}
		for name, value := range header {
			r.Header[name] = value
		}
		if method == http.MethodPost {
			r.Header.Set("Content-Type", formType)
		}
		for name, value := range v.cookies[r.URL.Hostname()] {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		resp, err := client.Do(r)
		if err != nil {
			return page{}, err
		}
		v.keep(r.URL.Hostname(), resp.Cookies())
		if location := resp.Header.Get("Location"); resp.StatusCode >= 300 && resp.StatusCode < 400 && location != "" {
			_ = resp.Body.Close()
			to, err := r.URL.Parse(location)
			if err != nil {
				return page{}, err
			}
			method, address, values, header = http.MethodGet, to.String(), nil, nil
			continue
		}
		p, err := readPage(r.URL, resp)
		return p, errors.Join(err, resp.Body.Close())
	}
	return page{}, fmt.Errorf("more than %d redirects", hops)
}

func (v *visitor) keep(host string, cookies []*http.Cookie) {
	if v.cookies[host] == nil {
		v.cookies[host] = make(map[string]string)
	}
	for _, c := range cookies {
		if c.MaxAge < 0 || c.Value == "" {
			delete(v.cookies[host], c.Name)
			continue
		}
		v.cookies[host][c.Name] = c.Value
	}
}

func readPage(at *url.URL, resp *http.Response) (page, error) {
	p := page{url: at, status: resp.StatusCode, header: resp.Header}
	root, err := html.Parse(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return p, fmt.Errorf("read the page at %s: %w", at.Path, err)
	}
	var words []string
	p.walk(root, nil, &words)
	p.text = strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	return p, nil
}

func (p *page) walk(n *html.Node, in *form, words *[]string) {
	switch {
	case n.Type == html.TextNode:
		*words = append(*words, n.Data)
	case n.Type == html.ElementNode && (n.Data == "script" || n.Data == "style"):
		return
	case n.Type == html.ElementNode && n.Data == "form":
		p.forms = append(p.forms, form{
			action: attribute(n, "action"), post: strings.EqualFold(attribute(n, "method"), "post"),
			values: url.Values{}, boxes: url.Values{}, buttons: url.Values{}, types: map[string]string{},
		})
		in = &p.forms[len(p.forms)-1]
	case n.Type == html.ElementNode && n.Data == "a":
		p.links = append(p.links, attribute(n, "href"))
	case n.Type == html.ElementNode && in != nil:
		in.control(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		p.walk(c, in, words)
	}
}

func (f *form) control(n *html.Node) {
	name, value, kind := attribute(n, "name"), attribute(n, "value"), strings.ToLower(attribute(n, "type"))
	if name == "" {
		return
	}
	switch n.Data {
	case "button":
		f.buttons.Add(name, value)
	case "select":
		for o := range n.Descendants() {
			if o.Type == html.ElementNode && o.Data == "option" && (has(o, "selected") || !f.values.Has(name)) {
				f.values.Set(name, attribute(o, "value"))
			}
		}
	case "input":
		f.types[name] = kind
		switch kind {
		case "submit":
			f.buttons.Add(name, value)
		case "checkbox":
			f.boxes.Add(name, value)
			if has(n, "checked") {
				f.values.Add(name, value)
			}
		case "radio":
			if has(n, "checked") {
				f.values.Set(name, value)
			}
		default:
			f.values.Set(name, value)
		}
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// asks is the form that decides, if the page has one.
func (p page) asks() (form, bool) {
	for _, f := range p.forms {
		if f.buttons.Has("decision") {
			return f, true
		}
	}
	return form{}, false
}

// signsIn is the form with a password, if the page has one, and the name of the
// field for who it is.
func (p page) signsIn() (f form, who, password string, ok bool) {
	for _, f := range p.forms {
		for name, kind := range f.types {
			switch kind {
			case "password":
				password = name
			case "text", "email", "":
				who = name
			}
		}
		if who != "" && password != "" {
			return f, who, password, true
		}
	}
	return form{}, "", "", false
}
