package demoidp

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
)

// session is a person who has signed in at this provider, remembered by a cookie.
type session struct {
	subject  string
	authTime time.Time
}

// sessionLifetime is how long a login is silent when no fresh one is asked for.
const sessionLifetime = 8 * time.Hour

// showLogin asks for the password, unless an earlier login will do.
func (p *Provider) showLogin(w http.ResponseWriter, r *http.Request) {
	request, ok := p.store.request(r.FormValue("id"))
	if !ok {
		p.problem(w, r, http.StatusNotFound)
		return
	}
	if code, description := p.faults.authorizeError(); code != "" {
		p.answer(w, r, request, code, description)
		return
	}
	if s, ok := p.session(r); ok && request.accepts(s, time.Now()) {
		p.finish(w, r, request, s)
		return
	}
	if slices.Contains(request.asked.Prompt, oidc.PromptNone) {
		p.answer(w, r, request, "login_required", "")
		return
	}
	p.page(w, r, http.StatusOK, request, loginView{Username: request.asked.LoginHint})
}

// login checks the password and goes on to the client.
func (p *Provider) login(w http.ResponseWriter, r *http.Request) {
	request, ok := p.store.request(r.FormValue("id"))
	if !ok {
		p.problem(w, r, http.StatusNotFound)
		return
	}
	username := strings.TrimSpace(r.PostFormValue("username"))
	user, ok := p.store.user(username, r.PostFormValue("password"))
	if !ok {
		p.page(w, r, http.StatusUnauthorized, request, loginView{Username: username, Wrong: true})
		return
	}
	s := session{subject: user.Subject, authTime: time.Now()}
	p.remember(w, r, s)
	p.finish(w, r, request, s)
}

// cancel takes the person back without a login. It is a link, not a button: a second
// button in a form is what the return key may press.
func (p *Provider) cancel(w http.ResponseWriter, r *http.Request) {
	request, ok := p.store.request(r.FormValue("id"))
	if !ok {
		p.problem(w, r, http.StatusNotFound)
		return
	}
	p.answer(w, r, request, "access_denied", "The person went back.")
}

func (p *Provider) finish(w http.ResponseWriter, r *http.Request, request *authRequest, s session) {
	p.store.complete(request.id, s)
	http.Redirect(w, r, PathAuthorize+"/callback?id="+url.QueryEscape(request.id), http.StatusSeeOther)
}

func (p *Provider) session(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(p.cookie)
	if err != nil {
		return session{}, false
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	s, ok := p.store.sessions[cookie.Value]
	return s, ok && time.Since(s.authTime) < sessionLifetime
}

// remember replaces the browser's session: the name of the old one is of no use to
// whoever knew it.
func (p *Provider) remember(w http.ResponseWriter, r *http.Request, s session) {
	name := rand.Text()
	p.store.mu.Lock()
	if old, err := r.Cookie(p.cookie); err == nil {
		delete(p.store.sessions, old.Value)
	}
	for key, known := range p.store.sessions {
		if time.Since(known.authTime) > sessionLifetime {
			delete(p.store.sessions, key)
		}
	}
	p.store.sessions[name] = s
	p.store.mu.Unlock()
	http.SetCookie(w, &http.Cookie{
		Name: p.cookie, Value: name, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int(sessionLifetime.Seconds()),
	})
}

func (s *storage) complete(id string, by session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if request, ok := s.requests[id]; ok {
		request.subject, request.authTime = by.subject, by.authTime
	}
}

func (s *storage) user(username, password string) (User, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.users {
		if strings.EqualFold(u.Username, username) || u.Email != "" && strings.EqualFold(u.Email, username) {
			return u, subtle.ConstantTimeCompare([]byte(u.Password), []byte(password)) == 1
		}
	}
	return User{}, false
}
