package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/web"
	"github.com/google/uuid"
	"github.com/gorilla/sessions"
)

// session is the record behind the dashboard's cookie.
type session struct {
	*sessions.Session `json:"-"`
	Person            uuid.UUID `json:"person"` // zero: nobody is signed in
	Since             time.Time `json:"since"`
	Touched           time.Time `json:"touched"` // when a passkey was last touched
	Locales           string    `json:"locales"`
	// SignUp is what a sign-up told, until the Brand is made.
	SignUp *tenants.LinkData `json:"sign_up,omitempty"`
	// Trial is a test login that is under way.
	Trial *trial `json:"trial,omitempty"`
	// Ceremonies are passkeys that were asked for, one for each purpose.
	Ceremonies map[string]ceremony `json:"ceremonies,omitempty"`
	// Tries are the delegations that the person tries, by Brand, sealed: a code in
	// them is worth a token.
	Tries map[tenants.BrandID][]byte `json:"tries,omitempty"`
}

const recordKey = "record"

// open finds the session, and who is signed in. Whoever signed in before the
// account was restored is not: that is what restoring is for.
func (v *visit) open() error {
	s, err := v.h.Sessions.Get(v.r, v.h.CookieName)
	if err != nil {
		return err
	}
	v.session = &session{Session: s}
	if raw, ok := s.Values[recordKey].(string); ok {
		if err := json.Unmarshal([]byte(raw), v.session); err != nil {
			return fmt.Errorf("read dashboard session: %w", err)
		}
	}
	if v.session.Person == (uuid.UUID{}) {
		return nil
	}
	p, err := tenants.PersonByID(v.ctx(), v.h.DB, v.session.Person)
	if errors.Is(err, tenants.ErrNoPerson) || err == nil && p.RestoredAt != nil && p.RestoredAt.After(v.session.Since) {
		v.session.Person = uuid.UUID{}
		return nil
	}
	v.person = p
	return err
}

func (v *visit) signedIn() bool { return v.session != nil && v.session.Person != (uuid.UUID{}) }

// save writes the session as it now stands.
func (v *visit) save() error {
	if err := v.session.write(); err != nil {
		return err
	}
	return v.h.Sessions.Save(v.r, v.w, v.session.Session)
}

// logIn makes this browser the person's, under another id: what somebody planted
// or saw before is worth nothing after it (session fixation).
func (v *visit) logIn(person uuid.UUID) error {
	v.session.Person, v.session.Since, v.session.Touched = person, v.now, v.now
	v.session.Ceremonies = nil
	v.session.Values[web.BrowserValue], _ = web.Browser(v.r.UserAgent())
	if err := v.session.write(); err != nil {
		return err
	}
	return v.h.Sessions.Renew(v.r, v.w, v.session.Session)
}

func (s *session) write() error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write dashboard session: %w", err)
	}
	s.Values[recordKey] = string(raw)
	delete(s.Values, web.OwnerValue)
	if s.Person != (uuid.UUID{}) {
		s.Values[web.OwnerValue] = s.Person.String()
	}
	return nil
}

// isFresh reports whether the passkey was touched a moment ago.
func (v *visit) isFresh() bool {
	// The instance that wrote it may be a little ahead of this one.
	const skew = 30 * time.Second
	age := v.now.Sub(v.session.Touched)
	return age < fresh && age > -skew
}
