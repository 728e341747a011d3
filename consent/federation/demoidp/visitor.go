package demoidp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// Visitor is a person with a browser, for tests of those who send people here: it
// follows the provider's redirects, keeps its cookies and fills in its form.
type Visitor struct{ browser *http.Client }

// NewVisitor opens a browser that has never been here.
func NewVisitor() *Visitor {
	jar, _ := cookiejar.New(nil) // never fails
	return &Visitor{&http.Client{Jar: jar, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != via[0].URL.Host {
			return http.ErrUseLastResponse // back at the client: not ours to follow
		}
		return nil
	}}}
}

// SignIn opens an authorization URL and returns where the provider sends the browser
// back to. The password is only typed if it is asked for.
func (v *Visitor) SignIn(ctx context.Context, authURL, username, password string) (*url.URL, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, authURL, nil)
	if err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	back, action, err := v.do(r)
	if err != nil || back != nil {
		return back, err
	}
	filled := url.Values{"username": {username}, "password": {password}}
	r, err = http.NewRequestWithContext(ctx, http.MethodPost, action.String(), strings.NewReader(filled.Encode()))
	if err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	back, _, err = v.do(r)
	if err == nil && back == nil {
		err = errors.New("sign in: the provider asks again")
	}
	return back, err
}

// do returns the way back to the client, or the address of the form that is shown.
func (v *Visitor) do(r *http.Request) (back, action *url.URL, err error) {
	response, err := v.browser.Do(r)
	if err != nil {
		return nil, nil, fmt.Errorf("sign in: %w", err)
	}
	defer response.Body.Close()
	if back, err := response.Location(); err == nil {
		return back, nil, nil
	}
	page, err := html.Parse(response.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("sign in: %w", err)
	}
	for n := range page.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "action" {
				action, err := response.Request.URL.Parse(a.Val)
				return nil, action, err
			}
		}
	}
	return nil, nil, fmt.Errorf("sign in: status %d without a form", response.StatusCode)
}
