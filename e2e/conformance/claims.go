package conformance

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

func base64url(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// claimChecks are about times, single use and how members are read.
func claimChecks() []check { return atBothDoors(timeChecks()) }

func timeChecks() []check {
	now := func(plus int64) int64 { return time.Now().Unix() + plus }
	return []check{
		{"M5", "iat is there and at most 30 s ahead", func(t *trial) {
			t.letsIn("20 s ahead", t.PA.sign(newSub(), object{"iat": now(20), "exp": now(140)}))
			t.keepsOut("60 s ahead", t.PA.sign(newSub(), object{"iat": now(60), "exp": now(180)}))
			t.keepsOut("40 s ahead", t.PA.sign(newSub(), object{"iat": now(40), "exp": now(160)}))
			t.keepsOut("no iat", t.PA.sign(newSub(), object{"iat": nil}))
			t.keepsOut("iat in words", t.PA.sign(newSub(), object{"iat": "now"}))
		}},
		{"M5", "exp is there and at most 30 s ago", func(t *trial) {
			t.letsIn("20 s ago", t.PA.sign(newSub(), object{"iat": now(-120), "exp": now(-20)}))
			t.keepsOut("40 s ago", t.PA.sign(newSub(), object{"iat": now(-140), "exp": now(-40)}))
			t.keepsOut("an hour ago", t.PA.sign(newSub(), object{"iat": now(-3700), "exp": now(-3600)}))
			t.keepsOut("no exp", t.PA.sign(newSub(), object{"exp": nil}))
		}},
		{"M5", "a life of at most 300 s", func(t *trial) {
			begin := time.Now().Unix() // read once: a second may pass between two readings
			t.letsIn("300 s", t.PA.sign(newSub(), object{"iat": begin, "exp": begin + 300}))
			t.keepsOut("310 s", t.PA.sign(newSub(), object{"iat": now(0), "exp": now(310)}))
			t.keepsOut("a day", t.PA.sign(newSub(), object{"iat": now(0), "exp": now(86400)}))
			t.keepsOut("an end before the beginning", t.PA.sign(newSub(), object{"iat": now(20), "exp": now(10)}))
		}},
		{"M5", "nbf is honoured", func(t *trial) {
			t.letsIn("nbf in the past", t.PA.sign(newSub(), object{"nbf": now(-10)}))
			t.keepsOut("nbf 60 s ahead", t.PA.sign(newSub(), object{"nbf": now(60)}))
		}},
		{"M6", "jti is not needed, and one pa-jwt serves many calls", func(t *trial) {
			bare := t.PA.sign(newSub(), nil)
			named := t.PA.sign(newSub(), object{"jti": newSub()})
			for range 3 {
				t.letsIn("a pa-jwt without jti", bare)
				t.letsIn("a pa-jwt with jti", named)
			}
		}},
		{"M6", "two agents' users may choose the same jti", func(t *trial) {
			t.letsIn("the first", t.PA.sign(newSub(), object{"jti": "1"}))
			t.letsIn("the second", t.PA.sign(newSub(), object{"jti": "1"}))
		}},
	}
}

// doorChecks are about how a call is turned away, and in which order.
func doorChecks() []check { return slices.Concat(orderChecks(), atBothDoors(bearerChecks())) }

// bearerChecks are about how a pa-jwt is brought and read.
func bearerChecks() []check {
	return []check{
		{"M7", "the scheme is compared without case, and is Bearer", func(t *trial) {
			good := t.PA.sign(newSub(), nil)
			for _, scheme := range []string{"Bearer", "bearer", "BEARER", "bEaReR"} {
				t.admits(scheme, t.authorized(scheme+" "+good))
			}
			for _, value := range []string{"Basic " + good, "DPoP " + good, good, "Bearer", "Bearer ", "Bearer" + good, "Bearer " + good + " " + good} {
				t.authorized(value).plain401(t, "another Authorization")
			}
		}},
		{"M7", "one Authorization and no more", func(t *trial) {
			good := t.PA.sign(newSub(), nil)
			t.letsIn("the header once", good)
			t.authorized("Bearer "+good, "Bearer "+good).plain401(t, "the header twice")
		}},
		{"M7", "members are matched in their case, and once", func(t *trial) {
			claims := t.PA.claims(newSub())
			for _, name := range []string{"iss", "sub", "aud", "iat", "exp"} {
				upper := strings.ToUpper(name[:1]) + name[1:]
				t.keepsOut(upper+" for "+name, t.PA.sign(newSub(), object{name: nil, upper: claims[name]}))
			}
			key := t.PA.good[keyEC].Key
			t.keepsOut("Alg for alg", seal(t.PA.header().with(object{"alg": nil, "Alg": "ES256"}), claims, key))
			for name, other := range map[string]any{"iss": "https://nobody.invalid", "sub": "somebody", "aud": "https://other.example", "exp": 1} {
				t.keepsOut(name+" twice, the good one first", seal(t.PA.header(), twice(claims, name, claims[name], other), key))
				t.keepsOut(name+" twice, the good one last", seal(t.PA.header(), twice(claims, name, other, claims[name]), key))
			}
		}},
		{"M7", "a pa-jwt of more than 8 KiB is refused", func(t *trial) {
			t.letsIn("7 KiB", t.PA.sign(newSub(), object{"pad": strings.Repeat("x", 5<<10)}))
			t.keepsOut("9 KiB", t.PA.sign(newSub(), object{"pad": strings.Repeat("x", 7<<10)}))
			t.keepsOut("dots", strings.Repeat(".", 16<<10))
		}},
	}
}

func orderChecks() []check {
	return []check{
		{"M7", "no pa-jwt: the plain 401 at every endpoint", func(t *trial) {
			for _, at := range t.doors() {
				t.form(at, "", url.Values{"client_id": {t.PA.Issuer}}).plain401(t, path(at)+" without a pa-jwt")
				t.form(at, "not-a-jwt", url.Values{"client_id": {t.PA.Issuer}}).plain401(t, path(at)+" with no JWT")
				t.form(at, t.PA.sign(newSub(), object{"exp": 1}), url.Values{}).plain401(t, path(at)+" with an expired pa-jwt")
			}
		}},
		{"M7", "the path comes before the pa-jwt", func(t *trial) {
			t.letsIn("a good pa-jwt at a known path", t.PA.sign(newSub(), nil))
			for _, bearer := range []string{"", t.PA.sign(newSub(), nil)} {
				who := map[bool]string{true: "without", false: "with"}[bearer == ""] + " a pa-jwt"
				t.form(t.brand.oauth.Issuer+"/no-such-endpoint", bearer, nil).is(t, "an unknown endpoint "+who, http.StatusNotFound)
				t.form(t.unknownBrand(t.brand.oauth.TokenEndpoint), bearer, nil).is(t, "an unknown Brand "+who, http.StatusNotFound)
			}
		}},
		{"M7", "the method comes before the pa-jwt", func(t *trial) {
			for _, at := range t.doors() {
				for _, bearer := range []string{"", t.PA.sign(newSub(), nil)} {
					for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
						a := t.do(call{method: method, url: at, bearer: bearer})
						a.is(t, method+" "+path(at), http.StatusMethodNotAllowed)
						if !strings.Contains(a.header.Get("Allow"), http.MethodPost) {
							t.fail("%s %s: Allow is %q", method, path(at), a.header.Get("Allow"))
						}
					}
				}
			}
		}},
		{"M7", "the pa-jwt comes before the body", func(t *trial) {
			for _, at := range t.doors() {
				for _, c := range []call{
					{media: jsonType, body: `{}`}, {media: formType, body: "%zz"}, {media: formType, body: strings.Repeat("a", 9<<10)}, {},
				} {
					c.method, c.url = http.MethodPost, at
					t.do(c).plain401(t, path(at)+" with a bad body and no pa-jwt")
					c.bearer = t.PA.sign(newSub(), nil)
					if a := t.do(c); a.status == http.StatusUnauthorized && a.oauthError() != "invalid_client" || a.status >= 500 {
						t.fail("%s with a good pa-jwt and a bad body: %s", path(at), a.says())
					}
				}
			}
		}},
	}
}

// twice is the object with a member that it has twice.
func twice(o object, name string, first, last any) json.RawMessage {
	rest, err1 := json.Marshal(o.with(object{name: nil}))
	one, err2 := json.Marshal(object{name: first})
	two, err3 := json.Marshal(object{name: last})
	if err := errors.Join(err1, err2, err3); err != nil {
		panic(err) // ours alone
	}
	return slices.Concat(one[:len(one)-1], []byte{','}, rest[1:len(rest)-1], []byte{','}, two[1:])
}

// doors are the endpoints that an agent posts to.
func (t *trial) doors() []string {
	all := []string{t.brand.oauth.DeviceEndpoint, t.brand.oauth.TokenEndpoint}
	if t.brand.oauth.RevocationEndpoint != "" {
		all = append(all, t.brand.oauth.RevocationEndpoint)
	}
	return all
}

// unknownBrand is the address for a Brand that is not there.
func (t *trial) unknownBrand(address string) string {
	parts := strings.Split(strings.TrimRight(t.brand.at, "/"), "/")
	last := parts[len(parts)-1]
	t.needs(len(parts) > 3 && last != "", "Brands that are told apart by path")
	return strings.Replace(address, t.brand.at, strings.TrimSuffix(t.brand.at, last)+"no-such-brand-"+newSub()[12:20], 1)
}

func path(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Path
}
