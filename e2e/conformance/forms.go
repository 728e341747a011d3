package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Person can sign in at the Brand.
type Person struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Subject  string `json:"subject"` // the sub of tokens; where the Brand asserts it, needed
}

// Forms are people whose browser is driven by posting the forms of pages. The
// Brand's sign-in is a page with a password, at whatever provider; or, where
// Assertion is given, the Brand's own login page, whose part it plays.
type Forms struct {
	People    []Person
	Assertion *Assertion
}

// Assertion is the key of a Brand that signs people in on its own page.
type Assertion struct {
	Issuer string          `json:"iss"`
	Key    jose.JSONWebKey `json:"key"` // private, P-256
}

// Count implements People.
func (f *Forms) Count() int { return len(f.People) }

// Decide implements People.
func (f *Forms) Decide(ctx context.Context, link string, person int, d Decision) error {
	v, err := f.visit(ctx, link, person)
	if err != nil {
		return err
	}
	values := v.question.values
	values["scope"] = slices.DeleteFunc(slices.Clone(values["scope"]), func(s string) bool { return slices.Contains(d.Untick, s) })
	values.Set("decision", "allow")
	if d.Deny {
		values.Set("decision", "deny")
	}
	done, err := v.submit(v.asked, v.question, values)
	if err == nil && done.status != http.StatusOK {
		err = fmt.Errorf("the decision was answered %d", done.status)
	}
	return err
}

// visit is a person in front of the question.
type visit struct {
	*visitor
	before   []page // the pages until then, at the server's own origin
	asked    page
	question form
}

// visit opens the link and signs in.
func (f *Forms) visit(ctx context.Context, link string, person int) (*visit, error) {
	v := &visit{visitor: newVisitor(ctx)}
	p, err := v.open(link)
	if err != nil {
		return nil, err
	}
	own := p.url.Host
	const steps = 10
	for range steps {
		question, there := p.asks()
		if there {
			v.asked, v.question = p, question
			return v, nil
		}
		if p.url.Host == own {
			v.before = append(v.before, p)
		}
		if p, err = f.step(v, p, f.People[person]); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the question did not come up after signing in")
}

func (f *Forms) step(v *visit, p page, who Person) (page, error) {
	if form, name, password, there := p.signsIn(); there {
		form.values.Set(name, who.Username)
		form.values.Set(password, who.Password)
		return v.submit(p, form, form.values)
	}
	for _, link := range p.links {
		to, err := p.url.Parse(link)
		if err != nil {
			continue
		}
		if back := to.Query().Get("return_to"); back != "" && f.Assertion != nil {
			return f.assert(v, to, back, who)
		}
		if strings.Contains(to.Path, "/login") {
			return v.open(to.String())
		}
	}
	return page{}, fmt.Errorf("at %s%s (%d) there is neither a question, nor a sign-in, nor a link to one", p.url.Host, p.url.Path, p.status)
}

// assert is the Brand's own login page: it says who somebody is.
func (f *Forms) assert(v *visit, login *url.URL, back string, who Person) (page, error) {
	to, err := url.Parse(back)
	if err != nil {
		return page{}, err
	}
	audience := *to
	audience.RawQuery = ""
	now := time.Now().Unix()
	signed := seal(object{"alg": "ES256", "typ": "JWT", "kid": f.Assertion.Key.KeyID}, object{
		"iss": f.Assertion.Issuer, "aud": audience.String(), "sub": who.Subject, "user_code": to.Query().Get("user_code"),
		"jti": rand.Text(), "iat": now, "exp": now + 60, "email": who.Username + "@example.com",
	}, f.Assertion.Key.Key)
	return v.request(http.MethodPost, back, url.Values{"assertion": {signed}},
		http.Header{"Origin": {login.Scheme + "://" + login.Host}, "Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}})
}

// seen is a visit where pages can be looked at.
func (s started) seen(person int) *visit {
	t := s.by.t
	f, ok := t.People.(*Forms)
	t.needs(ok && len(f.People) > person, "people whose pages can be read (--people)")
	v, err := f.visit(t.ctx, s.Link, person)
	if err != nil {
		t.fail("the person did not get to the question: %v", err)
	}
	return v
}

// answer posts the question's form as it is after changes.
func (v *visit) answer(t *trial, changes url.Values) page {
	values := url.Values{}
	for name, value := range v.question.values {
		values[name] = value
	}
	for name, value := range changes {
		values[name] = value
	}
	p, err := v.submit(v.asked, v.question, values)
	if err != nil {
		t.fail("the decision could not be sent: %v", err)
	}
	return p
}
