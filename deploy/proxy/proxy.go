// Package proxy holds what a fronted Brand's proxy needs, as files for operators
// to read and for the dashboard to show with the Brand's own values.
package proxy

import (
	_ "embed"
	"net/url"
	"strings"
)

// The files, in which the values of an imagined Brand stand.
var (
	//go:embed nginx.conf
	nginx string
	//go:embed countersign-headers.conf
	nginxHeaders string
	//go:embed Caddyfile
	caddy string
	//go:embed envoy.yaml
	envoy string
	//go:embed nginx-verify.conf
	nginxVerify string
	//go:embed countersign-key.conf
	nginxKey string
	//go:embed Caddyfile-verify
	caddyVerify string
	//go:embed envoy-verify.yaml
	envoyVerify string
	//go:embed traefik.yaml
	traefik string
)

// Snippet is one piece of configuration.
type Snippet struct{ Name, Text string }

// Snippets returns what leads to the authority, with the Brand's values. service is
// our own origin; front is the Brand's interface URL, on an origin of its own.
func Snippets(service, brand, front string) ([]Snippet, error) {
	return filled(service, brand, front, []Snippet{
		{"nginx", nginx},
		{"nginx: countersign-headers.conf", nginxHeaders},
		{"Caddy", caddy},
		{"Envoy", envoy},
	})
}

// Guards returns what asks {issuer}/verify at every call of the Brand's own agent,
// with the same values.
func Guards(service, brand, front string) ([]Snippet, error) {
	return filled(service, brand, front, []Snippet{
		{"nginx", nginxVerify},
		{"nginx: countersign-key.conf", nginxKey},
		{"Caddy", caddyVerify},
		{"Envoy", envoyVerify},
		{"Traefik", traefik},
	})
}

func filled(service, brand, front string, files []Snippet) ([]Snippet, error) {
	f, err := url.Parse(front)
	if err != nil {
		return nil, err
	}
	s, err := url.Parse(service)
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer(
		"https://agents.hotel.example/support", front, "agents.hotel.example", f.Host,
		"https://countersign.example", service, "countersign.example", s.Host,
		"harbor-hotel", brand, "/support", strings.TrimSuffix(f.EscapedPath(), "/"),
	)
	for i := range files {
		files[i].Text = fill.Replace(files[i].Text)
	}
	return files, nil
}
