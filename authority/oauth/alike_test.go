package oauth_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/agent/agenttest"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// shape is all that a caller could tell two answers apart by.
func (a answer) shape() string {
	return fmt.Sprint(a.status, a.header.Get("WWW-Authenticate"), a.header.Get("Content-Type"), a.header.Get("Retry-After"), a.body)
}

// rows counts what every table holds that a call could write into.
func (d *door) rows(t *testing.T) (n int) {
	t.Helper()
	for _, table := range []string{"device_requests", "grants", "refresh_tokens", "audit_events", "consents", "code_attempts", "status_entries"} {
		n += d.Count(t, `SELECT count(*) FROM `+table)
	}
	return n
}

// alike makes the calls and holds their answers, and what they write, against one
// another.
func (d *door) alike(t *testing.T, what string, calls ...func() answer) {
	t.Helper()
	var shapes []string
	before := d.rows(t)
	for _, call := range calls {
		shapes = append(shapes, call().shape())
	}
	if slices.ContainsFunc(shapes, func(s string) bool { return s != shapes[0] }) {
		t.Errorf("%s can be told apart:\n%q", what, shapes)
	}
	if after := d.rows(t); after != before {
		t.Errorf("%s: %d rows were written", what, after-before)
	}
}

// B99: what is not there, what is another's and what is over are told alike: same
// status, same headers, same body, and nothing is written.
func TestNobodyLearnsWhatIsThere(t *testing.T) {
	d := newDoor(t, nil)
	tokens := d.paid(t, "bookings:read")
	id := tokens["grant_id"].(string)
	unknown, off := d.newPA(t), d.newPA(t)
	// It was never there: the schema keeps every agent that the operator knows.
	d.Exec(t, `UPDATE agents SET discovered = true WHERE issuer = $1`, unknown.Issuer)
	d.Exec(t, `DELETE FROM agents WHERE issuer = $1`, unknown.Issuer)
	d.Exec(t, `UPDATE agents SET enabled = false WHERE issuer = $1`, off.Issuer)
	form := func(client string, more ...string) url.Values {
		v := url.Values{"client_id": {client}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	for path, more := range map[string][]string{
		"/device_authorization": {"scope", "bookings:read"},
		"/token":                {"grant_type", "refresh_token", "refresh_token", tokens["refresh_token"].(string)},
		"/revoke":               {"token", tokens["refresh_token"].(string)},
	} {
		at := d.issuer(d.Hotel) + path
		d.alike(t, "agents at "+path,
			func() answer { return d.post(t, at, unknown, "alex", form(unknown.Issuer, more...)) },
			func() answer { return d.post(t, at, off, "alex", form(off.Issuer, more...)) })
		d.alike(t, "client ids at "+path,
			func() answer { return d.post(t, at, d.pa, "alex", form("https://nobody.example", more...)) },
			func() answer { return d.post(t, at, d.pa, "alex", form(d.other.Issuer, more...)) },
			func() answer { return d.post(t, at, d.pa, "alex", form(off.Issuer, more...)) })
	}
	d.alike(t, "grants",
		func() answer { return d.grant(t, http.MethodGet, d.Hotel, d.pa, "alex", uuid.NewString()) },
		func() answer { return d.grant(t, http.MethodGet, d.Hotel, d.pa, "sam", id) },
		func() answer { return d.grant(t, http.MethodGet, d.Hotel, d.other, "alex", id) },
		func() answer { return d.grant(t, http.MethodGet, d.Shop, d.pa, "alex", id) })
	refresh := func(token string, pa *agenttest.PA, sub string) func() answer {
		return func() answer { return d.refresh(t, pa, sub, token) }
	}
	d.alike(t, "refresh tokens", refresh("rt_"+uuid.NewString(), d.pa, "alex"), refresh(tokens["refresh_token"].(string), d.pa, "sam"),
		refresh(tokens["refresh_token"].(string), d.other, "alex"))
	key, others := d.key(t, d.Hotel, tenants.RightIntrospect), d.key(t, d.Shop, tenants.RightIntrospect)
	access := tokens["access_token"].(string)
	d.alike(t, "keys", func() answer { return d.introspect(t, d.Hotel, others, access) },
		func() answer { return d.introspect(t, d.Hotel, "cs_aaaaaaaaaaaa_nothing", access) })
	d.alike(t, "tokens", func() answer { return d.introspect(t, d.Hotel, key, "nonsense") },
		func() answer { return d.introspect(t, d.Shop, others, access) })
}

// B92, B99: a Brand that is closed is told from none by nothing that agents or
// servers call; its keys and lists stay, and every token is invalid.
func TestAClosedBrandIsToldFromNoneByNothing(t *testing.T) {
	d := newDoor(t, nil)
	tokens := d.paid(t, "bookings:read")
	key := d.key(t, d.Hotel, tenants.RightIntrospect)
	if _, err := d.World.Authority(nil).Close(t.Context(), d.Hotel.ID, authority.ByOperator()); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(2 * authority.StatusListTTL)
	none := *d.Hotel
	none.ID = "no-such-brand"
	for _, path := range []string{"/device_authorization", "/token", "/revoke", "/introspect", "/.well-known/oauth-authorization-server"} {
		call := func(b *tenants.Brand) func() answer {
			return func() answer {
				return d.post(t, d.issuer(b)+path, d.pa, "alex", url.Values{"client_id": {d.pa.Issuer}, "token": {tokens["access_token"].(string)}})
			}
		}
		d.alike(t, path, call(d.Hotel), call(&none))
	}
	d.alike(t, "introspection", func() answer { return d.introspect(t, d.Hotel, key, tokens["access_token"].(string)) },
		func() answer { return d.introspect(t, &none, key, tokens["access_token"].(string)) })
	if a := d.status(t, d.Hotel, "/0"); a.status != http.StatusOK {
		t.Errorf("status list: %d %s", a.status, a.body)
	} else if err := d.judge(t, tokens["access_token"].(string), a.body); err == nil {
		t.Error("its token is still good")
	}
}
