package demoidp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/net/html"
	"golang.org/x/oauth2"

	"countersign.dev/consent/federation/demoidp"
)

// redirectURI is never served: the browser below stops there.
const redirectURI = "http://localhost:1/callback"

func start(t *testing.T) *demoidp.Provider {
	t.Helper()
	p, err := demoidp.New(demoidp.Config{
		Name: "Harbor Hotel", Colour: "#0b3d4f", ClientID: "countersign", ClientSecret: "shared", RedirectURIs: []string{redirectURI},
		Users: []demoidp.User{
			{Username: "alex", Password: "tide", Subject: "u-1", Name: "Alex Reed", Email: "alex@harbor.example", Claims: map[string]any{"customer_id": "C-77"}},
			{Username: "kim", Password: "pier", Subject: "u-2", Name: "Kim"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, p)
	return p
}

func serve(t *testing.T, p *demoidp.Provider) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

// browser follows redirects and keeps cookies, and stops before it leaves for the
// client.
type browser struct{ *http.Client }

func newBrowser(t *testing.T) browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return browser{&http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirectURI) {
			return http.ErrUseLastResponse
		}
		return nil
	}}}
}

// answer is what the client's callback would get, or the page that is shown instead.
type answer struct {
	callback url.Values
	page     *html.Node
	at       *url.URL
	status   int
	header   http.Header
}

func (b browser) read(t *testing.T, response *http.Response, err error) answer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	a := answer{at: response.Request.URL, status: response.StatusCode, header: response.Header}
	if to, err := response.Location(); err == nil {
		a.callback = to.Query()
		return a
	}
	if a.page, err = html.Parse(response.Body); err != nil {
		t.Fatal(err)
	}
	return a
}

func (b browser) open(t *testing.T, target string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := b.Do(r)
	return b.read(t, response, err)
}

// signIn fills in the form that is shown.
func (b browser) signIn(t *testing.T, shown answer, username, password string) answer {
	t.Helper()
	form := find(shown.page, "form", "")
	if form == nil {
		t.Fatalf("no form at %s", shown.at)
	}
	target, err := shown.at.Parse(attr(form, "action"))
	if err != nil {
		t.Fatal(err)
	}
	filled := url.Values{"username": {username}, "password": {password}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target.String(), strings.NewReader(filled.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", shown.at.Scheme+"://"+shown.at.Host)
	response, err := b.Do(r)
	return b.read(t, response, err)
}

func find(n *html.Node, tag, id string) *html.Node {
	if n == nil || n.Type == html.ElementNode && n.Data == tag && (id == "" || attr(n, "id") == id) {
		return n
	}
	for c := range n.ChildNodes() {
		if found := find(c, tag, id); found != nil {
			return found
		}
	}
	return nil
}

func attr(n *html.Node, name string) string {
	if n == nil {
		return ""
	}
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if i < 0 {
		return ""
	}
	return n.Attr[i].Val
}

// relyingParty is coreos/go-oidc as anybody would use it.
type relyingParty struct {
	provider *oidc.Provider
	config   oauth2.Config
	verifier string
}

func discover(t *testing.T, p *demoidp.Provider) relyingParty {
	t.Helper()
	provider, err := oidc.NewProvider(context.WithoutCancel(t.Context()), p.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	return relyingParty{provider: provider, verifier: oauth2.GenerateVerifier(), config: oauth2.Config{
		ClientID: "countersign", ClientSecret: "shared", Endpoint: provider.Endpoint(),
		RedirectURL: redirectURI, Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}}
}

func (rp relyingParty) authURL(extra ...string) string {
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(rp.verifier), oidc.Nonce("n-1")}
	for i := 0; i < len(extra); i += 2 {
		options = append(options, oauth2.SetAuthURLParam(extra[i], extra[i+1]))
	}
	return rp.config.AuthCodeURL("s-1", options...)
}

type claims struct {
	Subject  string `json:"sub"`
	Email    string `json:"email"`
	Username string `json:"preferred_username"`
	Name     string `json:"name"`
	Customer string `json:"customer_id"`
	Nonce    string `json:"nonce"`
	AuthTime int64  `json:"auth_time"`
}

func (rp relyingParty) redeem(t *testing.T, code string) claims {
	t.Helper()
	token, err := rp.config.Exchange(t.Context(), code, oauth2.VerifierOption(rp.verifier))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := rp.provider.Verifier(&oidc.Config{ClientID: "countersign"}).Verify(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := verified.VerifyAccessToken(token.AccessToken); err != nil {
		t.Error(err)
	}
	var c claims
	if err := verified.Claims(&c); err != nil {
		t.Fatal(err)
	}
	return c
}
