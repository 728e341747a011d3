package authority

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"countersign.dev/authority/canonical"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5"
)

// What an agent may say at once. A person reads it in half a minute, and whole:
// nothing is ever cut.
const (
	mostDetails       = 10
	largestDetails    = 4 << 10 // bytes, as they came
	longestDetailText = 200     // characters of one string
)

// Detail is an entry of authorization_details (RFC 9396 §2) beside the scope that
// it says more exactly.
type Detail struct {
	Scope string          `json:"scope"`
	Value json.RawMessage `json:"detail"`
}

// Details are those of a request or a grant.
type Details []Detail

// Of are the details that belong to one of the scopes.
func (d Details) Of(scopes ...string) Details {
	out := Details{}
	for _, one := range d {
		if slices.Contains(scopes, one.Scope) {
			out = append(out, one)
		}
	}
	return out
}

// Values are the entries as the agent knows them; nil: there are none, and then
// neither token nor answer speaks of details.
func (d Details) Values() []json.RawMessage {
	var out []json.RawMessage
	for _, one := range d {
		out = append(out, one.Value)
	}
	return out
}

func (d Detail) kind() string {
	var v struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(d.Value, &v) // it was read when it came
	return v.Type
}

// sameValues compares entries in canonical form: the database keeps members in an
// order of its own.
func sameValues(a, b []json.RawMessage) bool {
	return slices.EqualFunc(a, b, func(x, y json.RawMessage) bool {
		fx, errx := canonical.JSON(x)
		fy, erry := canonical.JSON(y)
		return errx == nil && erry == nil && bytes.Equal(fx, fy)
	})
}

// merge is what a grant of the scopes says when asked is allowed beside what is
// held. What is asked in terms of a type takes the place of all that was held in
// them; what is not spoken of stays, or asking again for the scope alone would
// silently lift a limit.
func merge(held, asked Details, granted []string) Details {
	out := Details{}
	for _, one := range held.Of(granted...) {
		if !slices.ContainsFunc(asked, func(a Detail) bool { return a.Scope == one.Scope && a.kind() == one.kind() }) {
			out = append(out, one)
		}
	}
	return append(out, asked.Of(granted...)...)
}

// DetailsError says what is wrong with authorization_details (RFC 9396 §5). It
// holds nothing of the caller's but a position.
type DetailsError struct{ Say string }

func (e *DetailsError) Error() string { return "authorization_details: " + e.Say }

func badDetails(format string, args ...any) error {
	return &DetailsError{Say: fmt.Sprintf(format, args...)}
}

// readDetails takes authorization_details as strictly as what is signed: a value
// that two programs could read differently, or a person could not see, is refused.
func readDetails(brand *tenants.Brand, scopes []string, raw string) (Details, error) {
	switch {
	case len(brand.DetailTypes) == 0:
		return nil, badDetails("This issuer has no authorization details types.")
	case len(raw) > largestDetails:
		return nil, badDetails("It is larger than %d KiB.", largestDetails>>10)
	}
	form, err := canonical.JSON([]byte(raw))
	if err != nil {
		return nil, badDetails("It is not strict JSON: one array, no member twice, UTF-8, no number beyond doubles.")
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(form, &entries); err != nil || len(entries) == 0 {
		return nil, badDetails("It must be an array of at least one object.")
	}
	if len(entries) > mostDetails {
		return nil, badDetails("It holds more than %d entries.", mostDetails)
	}
	out := make(Details, len(entries))
	for i, entry := range entries {
		if out[i], err = readDetail(brand, scopes, i, entry); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readDetail(brand *tenants.Brand, scopes []string, i int, entry json.RawMessage) (Detail, error) {
	var members map[string]json.RawMessage
	var name string
	if err := json.Unmarshal(entry, &members); err != nil || json.Unmarshal(members["type"], &name) != nil || name == "" {
		return Detail{}, badDetails("Entry %d is no object with a type.", i)
	}
	t, ok := brand.DetailType(name)
	if !ok {
		return Detail{}, badDetails("Entry %d has a type that is not among authorization_details_types_supported.", i)
	}
	if why := unsayable(entry); why != "" {
		return Detail{}, badDetails("Entry %d, a %s: %s.", i, t.Type, why)
	}
	err := t.Check(entry)
	if misfit := new(tenants.MisfitError); errors.As(err, &misfit) {
		at := "it"
		if misfit.At != "" {
			at = misfit.At
		}
		return Detail{}, badDetails("Entry %d, a %s: %s does not fit the schema (%s).", i, t.Type, at, misfit.Rule)
	}
	if err != nil {
		return Detail{}, err
	}
	if !slices.Contains(scopes, t.Scope) {
		return Detail{}, badDetails("Entry %d, a %s, belongs to the scope %s, which is not asked for.", i, t.Type, t.Scope)
	}
	return Detail{Scope: t.Scope, Value: entry}, nil
}

// unsayable says why a value would stand on the page other than it is: signs nobody
// sees, text nobody reads to its end, numbers with powers. Empty: none would.
func unsayable(entry json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(entry))
	d.UseNumber()
	unseen := func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029'
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return "it is not JSON"
		}
		switch v := t.(type) {
		case string:
			if utf8.RuneCountInString(v) > longestDetailText {
				return fmt.Sprintf("a text is longer than %d characters", longestDetailText)
			}
			if strings.ContainsFunc(v, unseen) {
				return "a text holds a control or invisible character"
			}
		case json.Number:
			if strings.ContainsAny(v.String(), "eE") {
				return "a number is too large or too small to be read"
			}
		}
	}
	return ""
}

// A JWS larger than this is refused by whoever verifies it, ourselves first. What
// surrounds the claims, header and signature, takes less than reserve.
const (
	largestToken = 8 << 10
	reserve      = 1 << 10
)

// fits reports whether a token with the claims stays within its size.
func (c claims) fits() bool {
	payload, err := json.Marshal(c)
	return err == nil && base64.RawURLEncoding.EncodedLen(len(payload))+reserve <= largestToken
}

// room refuses details that no token of the grant could hold, whoever of the
// Brand's users it turns out to be. Tokens of scopes alone always fit.
func (a *Authority) room(ctx context.Context, brand *tenants.Brand, who Caller, scopes []string, asked Details) error {
	const q = `
		SELECT subject, scopes, details FROM grants
		 WHERE brand_id = @brand AND agent = @agent AND agent_sub = @sub AND ended_at IS NULL AND expires_at > @now
		 LIMIT 20`
	type row struct {
		Subject string
		Scopes  []string
		Details Details
	}
	held, err := tenants.All[row](ctx, a.db, brand.ID, q, pgx.NamedArgs{
		"brand": brand.ID, "agent": who.Agent, "sub": who.Sub, "now": a.clock(),
	})
	if err != nil {
		return fmt.Errorf("look for grants at %s: %w", brand.ID, err)
	}
	const longestSubject = 256
	held = append(held, row{Subject: strings.Repeat("x", longestSubject)})
	for _, g := range held {
		all := fold(slices.Concat(scopes, g.Scopes))
		if !fit(brand, who.Agent, g.Subject, all, merge(g.Details, asked, all)) {
			return badDetails("Together with the scopes and what is allowed already it is too much for one token.")
		}
	}
	return nil
}

func fit(brand *tenants.Brand, agent, subject string, scopes []string, details Details) bool {
	c := claims{
		Issuer: brand.Issuer, Audience: brand.InterfaceURL, Subject: subject, ClientID: agent,
		Scope: strings.Join(scopes, " "), GrantID: newID().String(), IssuedAt: 1 << 34, Expires: 1 << 34,
		ID: newID().String(), Details: details.Values(), Status: &statusClaim{},
	}
	const someList = 1 << 20
	c.Status.List.Index, c.Status.List.URI = someList, brand.StatusListURI(someList)
	return c.fits()
}

// moved are the token's scopes of which the grant says other details by now. An
// entry that nobody knows the scope of any more may have limited any of them.
func (c *claims) moved(brand *tenants.Brand, now Details) []string {
	has := func(all []json.RawMessage, v json.RawMessage) bool {
		return slices.ContainsFunc(all, func(o json.RawMessage) bool { return sameValues([]json.RawMessage{o}, []json.RawMessage{v}) })
	}
	var out []string
	for _, one := range now {
		if !has(c.Details, one.Value) {
			out = append(out, one.Scope)
		}
	}
	for _, v := range c.Details {
		if has(now.Values(), v) {
			continue
		}
		kind := Detail{Value: v}.kind()
		t, known := brand.DetailType(kind)
		i := slices.IndexFunc(now, func(one Detail) bool { return one.kind() == kind })
		switch {
		case known:
			out = append(out, t.Scope)
		case i >= 0:
			out = append(out, now[i].Scope)
		default:
			return strings.Fields(c.Scope)
		}
	}
	return out
}
