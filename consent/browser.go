package consent

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"countersign.dev/tenants"
	"github.com/gorilla/sessions"
)

// loginLife is how long a login at a Brand counts here.
const loginLife = 15 * time.Minute

// skew is the clock error that is forgiven.
const skew = 30 * time.Second

// browser is the record behind the visitor's one cookie. It holds one login per
// Brand, so that two Brands in one browser never run into each other (R64).
type browser struct {
	session *sessions.Session
	secret  string // the browser's own; outlives the changes of the session's id
	logins  map[tenants.BrandID]login
}

// login is a person at one Brand, as its IdP said.
type login struct {
	Subject string    `json:"subject"`
	Account string    `json:"account"` // what to call them
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"` // the issuer that vouched for them
}

const (
	secretKey = "secret"
	loginsKey = "logins"
)

func (h *Handler) openBrowser(r *http.Request) (*browser, error) {
	session, err := h.Sessions.Get(r, h.CookieName)
	if err != nil {
		return nil, err
	}
	b := &browser{session: session, logins: make(map[tenants.BrandID]login)}
	b.secret, _ = session.Values[secretKey].(string)
	if raw, ok := session.Values[loginsKey].(string); ok {
		if err := json.Unmarshal([]byte(raw), &b.logins); err != nil {
			return nil, fmt.Errorf("read logins of a browser session: %w", err)
		}
	}
	return b, nil
}

// known reports whether the browser brought a session of ours.
func (b *browser) known() bool { return b != nil && b.secret != "" }

// hash is how the browser stands in journeys.
func (b *browser) hash() []byte {
	sum := sha256.Sum256([]byte(b.secret))
	return sum[:]
}

// login returns the Brand's login, if it still counts.
func (b *browser) login(brand tenants.BrandID, now time.Time) (login, bool) {
	l, ok := b.logins[brand]
	// The instance that wrote it may be a little ahead of this one.
	if !ok || now.Sub(l.At) >= loginLife || l.At.After(now.Add(skew)) {
		return login{}, false
	}
	return l, true
}

// keep makes sure that the browser has a session, and with it a secret.
func (v *visit) keep() error {
	if v.browser.known() {
		return nil
	}
	v.browser.secret = rand.Text()
	v.browser.session.Values[secretKey] = v.browser.secret
	return v.h.Sessions.Save(v.r, v.w, v.browser.session)
}

// logIn records the login.
func (v *visit) logIn(l login) error {
	v.browser.logins[v.brand.ID] = l
	return v.renew()
}

// logOut forgets the Brand's login; other Brands' stay.
func (v *visit) logOut() error {
	delete(v.browser.logins, v.brand.ID)
	return v.renew()
}

// renew writes the logins that still count and changes the session's id, so that
// an id that somebody planted or saw before is worth nothing (session fixation).
func (v *visit) renew() error {
	b := v.browser
	for id := range b.logins {
		if _, ok := b.login(id, v.h.Now()); !ok {
			delete(b.logins, id)
		}
	}
	raw, err := json.Marshal(b.logins)
	if err != nil {
		return fmt.Errorf("write logins of a browser session: %w", err)
	}
	b.session.Values[loginsKey] = string(raw)
	return v.h.Sessions.Renew(v.r, v.w, b.session)
}

// sameOrigin reports whether one of our own pages made this post. Browsers say
// so in Sec-Fetch-Site; old ones at least in Origin. Who says neither is not
// let decide anything.
func (h *Handler) sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return r.Header.Get("Origin") == h.origin
}
