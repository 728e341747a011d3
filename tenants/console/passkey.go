package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console/pages"
	"countersign.dev/web"
	"countersign.dev/web/static"
	"countersign.dev/web/ui"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"
)

// ceremony is a passkey that was asked for in this browser. The answer counts
// once, for the one purpose, and not for long.
type ceremony struct {
	For  string // what exactly it is for, where the purpose is not all
	At   time.Time
	Data webauthn.SessionData
}

// The purposes. A browser has one ceremony of each at a time; the last one asked
// for counts.
const (
	forLogin = "login"
	forTouch = "touch"
	forKey   = "key"  // one more for whoever is signed in
	forLink  = "link" // the first, or a new one, by a mailed link
)

const ceremonyLife = 10 * time.Minute

// holder is a person as the passkey library knows them.
type holder struct {
	id          uuid.UUID
	email, name string
	keys        []webauthn.Credential
}

func (p holder) WebAuthnID() []byte                         { return p.id[:] }
func (p holder) WebAuthnName() string                       { return p.email }
func (p holder) WebAuthnDisplayName() string                { return p.name }
func (p holder) WebAuthnCredentials() []webauthn.Credential { return p.keys }

// holderOf is the person with all passkeys.
func (v *visit) holderOf(p tenants.Person) (holder, error) {
	rows, err := tenants.Passkeys(v.ctx(), v.h.DB, p.ID)
	if err != nil {
		return holder{}, err
	}
	out := holder{id: p.ID, email: p.EmailTyped, name: p.Name}
	for _, row := range rows {
		var key webauthn.Credential
		if err := json.Unmarshal(row.Data, &key); err != nil {
			return holder{}, fmt.Errorf("read passkey: %w", err)
		}
		out.keys = append(out.keys, key)
	}
	return out, nil
}

// askNew asks the browser to make a passkey.
func (v *visit) askNew(purpose, what string, who holder) (*pages.PasskeyAsk, error) {
	options, data, err := v.h.passkeys.BeginRegistration(who,
		webauthn.WithExclusions(webauthn.Credentials(who.keys).CredentialDescriptors()))
	if err != nil {
		return nil, fmt.Errorf("ask for a new passkey: %w", err)
	}
	return v.ask("create", purpose, what, options, data)
}

// askLogin asks the browser for a passkey of anybody.
func (v *visit) askLogin() (*pages.PasskeyAsk, error) {
	options, data, err := v.h.passkeys.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("ask for a passkey: %w", err)
	}
	return v.ask("get", forLogin, "", options, data)
}

// askTouch asks for a passkey of whoever is signed in.
func (v *visit) askTouch() (*pages.PasskeyAsk, error) {
	who, err := v.holderOf(v.person)
	if err != nil {
		return nil, err
	}
	options, data, err := v.h.passkeys.BeginLogin(who, webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("ask for a passkey: %w", err)
	}
	return v.ask("get", forTouch, "", options, data)
}

func (v *visit) ask(kind, purpose, what string, options any, data *webauthn.SessionData) (*pages.PasskeyAsk, error) {
	raw, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("ask for a passkey: %w", err)
	}
	if v.session.Ceremonies == nil {
		v.session.Ceremonies = make(map[string]ceremony)
	}
	v.session.Ceremonies[purpose] = ceremony{For: what, At: v.now, Data: *data}
	if err := v.save(); err != nil {
		return nil, err
	}
	return &pages.PasskeyAsk{
		Kind: kind, Options: string(raw), NoScript: v.say("console.passkey.noscript"),
		Unsupported: v.text("console.passkey.unsupported"), Cancelled: v.text("console.passkey.cancelled"),
		Known: v.text("console.passkey.known"),
	}, nil
}

// scripted lets the page of the frame run the script that asks for passkeys.
func scripted(f pages.Frame) pages.Frame {
	f.Page.Script = static.URL("passkey.js")
	return f
}

// answered takes the ceremony out of the session before anything is checked: an
// answer is tried once, whatever comes of it.
func (v *visit) answered(purpose, what string) (webauthn.SessionData, error) {
	c, asked := v.session.Ceremonies[purpose]
	delete(v.session.Ceremonies, purpose)
	if asked {
		if err := v.save(); err != nil {
			return webauthn.SessionData{}, err
		}
	}
	if !asked || c.For != what || v.now.Sub(c.At) >= ceremonyLife {
		return webauthn.SessionData{}, problem{kind: stale, retry: v.from()}
	}
	return c.Data, nil
}

// takeNew checks the passkey that was made, and returns it with the id of the
// person it was made for.
func (v *visit) takeNew(purpose, what string) (tenants.Passkey, uuid.UUID, error) {
	data, err := v.answered(purpose, what)
	if err != nil {
		return tenants.Passkey{}, uuid.UUID{}, err
	}
	refused := func(err error) (tenants.Passkey, uuid.UUID, error) {
		return tenants.Passkey{}, uuid.UUID{}, problem{kind: noPasskey, retry: v.from(), cause: err}
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(v.form.Get("credential")))
	if err != nil {
		return refused(err)
	}
	person, err := uuid.FromBytes(data.UserID)
	if err != nil {
		return refused(err)
	}
	key, err := v.h.passkeys.CreateCredential(holder{id: person}, data, parsed)
	if err != nil {
		return refused(err)
	}
	row, err := stored(key)
	browser, system := web.Browser(v.r.UserAgent())
	row.Name = strings.Trim(browser+", "+system, ", ")
	return row, person, err
}

// takeLogin checks the passkey that somebody signs in with, and says whose it is.
func (v *visit) takeLogin() (tenants.Person, error) {
	data, err := v.answered(forLogin, "")
	if err != nil {
		return tenants.Person{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(v.form.Get("credential")))
	if err != nil {
		return tenants.Person{}, problem{kind: noPasskey, retry: v.from(), cause: err}
	}
	var person tenants.Person
	find := func(_, handle []byte) (webauthn.User, error) {
		id, err := uuid.FromBytes(handle)
		if err != nil {
			return nil, err
		}
		if person, err = tenants.PersonByID(v.ctx(), v.h.DB, id); err != nil {
			return nil, err
		}
		return v.holderOf(person)
	}
	_, key, err := v.h.passkeys.ValidatePasskeyLogin(find, data, parsed)
	return person, v.used(person, key, err)
}

// takeTouch checks that whoever is signed in touched a passkey of theirs.
func (v *visit) takeTouch() error {
	data, err := v.answered(forTouch, "")
	if err != nil {
		return err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(v.form.Get("credential")))
	if err != nil {
		return problem{kind: noPasskey, retry: v.from(), cause: err}
	}
	who, err := v.holderOf(v.person)
	if err != nil {
		return err
	}
	key, err := v.h.passkeys.ValidateLogin(who, data, parsed)
	return v.used(v.person, key, err)
}

// used records the use of the passkey. One whose counter fell back has a double
// somewhere: it opens nothing, and its owner is told. Whether it fell back says
// the database, which knows of every use, also of one at this very moment.
func (v *visit) used(person tenants.Person, key *webauthn.Credential, err error) error {
	if err == nil {
		var row tenants.Passkey
		if row, err = stored(key); err == nil {
			err = tenants.UsePasskey(v.ctx(), v.h.DB, person.ID, row, v.now)
		}
	}
	if errors.Is(err, tenants.ErrCloned) {
		v.h.Log.WarnContext(v.ctx(), "ALARM: the counter of a passkey fell back", "person", person.ID.String())
		v.letter(person.EmailTyped, "clone")
	}
	if err != nil && !tenants.Unavailable(err) {
		return problem{kind: noPasskey, retry: v.from(), cause: err}
	}
	return err
}

func stored(key *webauthn.Credential) (tenants.Passkey, error) {
	raw, err := json.Marshal(key)
	if err != nil {
		return tenants.Passkey{}, fmt.Errorf("write passkey: %w", err)
	}
	return tenants.Passkey{ID: key.ID, Data: raw, SignCount: int64(key.Authenticator.SignCount)}, nil
}

// passkeyForm is a form that asks for a passkey and little else.
func (v *visit) passkeyForm(action string, ask *pages.PasskeyAsk, button string, hidden ...ui.Hidden) pages.Form {
	return pages.Form{Action: action, Hidden: hidden, Passkey: ask, Button: v.say(button)}
}
