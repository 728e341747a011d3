package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// knock sends a pa-jwt with a call that is good but for it.
func (t *trial) knock(bearer string) answer {
	return t.authorized("Bearer " + bearer)
}

// letsIn and keepsOut demand what becomes of a pa-jwt. Whoever keeps everybody
// out keeps no rule: before its first forgery each trial sends a good one.
func (t *trial) letsIn(what, bearer string) {
	t.admits(what, t.knock(bearer))
}

func (t *trial) keepsOut(what, bearer string) {
	if !t.admitted {
		t.letsIn("a good pa-jwt, before a bad one", t.PA.sign(newSub(), nil))
		t.admitted = true
	}
	t.knock(bearer).plain401(t, what)
}

// key is one of the agent's keys.
func (t *trial) key(kind string) (key any, kid string) {
	k, there := t.PA.good[kind]
	t.needs(there, "an agent that publishes a key "+kind+" (countersign conformance keys)")
	return k.Key, k.KeyID
}

// identityChecks are about who an agent is, at every program that it calls.
func identityChecks() []check { return slices.Concat(atBothDoors(forgeryChecks()), agentChecks()) }

// forgeryChecks are pa-jwts that are good or bad by themselves.
func forgeryChecks() []check {
	return []check{
		{"M1", "ES256 by kid is accepted", func(t *trial) {
			t.letsIn("a good pa-jwt", t.PA.sign(newSub(), nil))
		}},
		{"M1", "RS256 with 2048 bits is accepted", func(t *trial) {
			key, kid := t.key(keyRSA)
			t.letsIn("a pa-jwt with RS256", seal(object{"alg": "RS256", "kid": kid}, t.PA.claims(newSub()), key))
		}},
		{"M1", "without kid the published keys are tried", func(t *trial) {
			t.letsIn("a pa-jwt without kid", seal(object{"alg": "ES256"}, t.PA.claims(newSub()), t.PA.good[keyEC].Key))
			key, _ := t.key(keyBare)
			t.letsIn("a pa-jwt without kid by a key without kid", seal(object{"alg": "ES256"}, t.PA.claims(newSub()), key))
		}},
		{"M1", "no other algorithm", func(t *trial) {
			t.keepsOut("alg none", seal(t.PA.header().with(object{"alg": "none"}), t.PA.claims(newSub()), nil))
			t.keepsOut("alg None", seal(t.PA.header().with(object{"alg": "None"}), t.PA.claims(newSub()), nil))
			t.keepsOut("HS256 with the published key set", seal(t.PA.header().with(object{"alg": "HS256"}), t.PA.claims(newSub()), t.PA.JWKS()))
			key := t.PA.good[keyEC]
			raw, err := json.Marshal(key.Public())
			if err != nil {
				t.fail("encode the public key: %v", err)
			}
			t.keepsOut("HS256 with the published key", seal(t.PA.header().with(object{"alg": "HS256"}), t.PA.claims(newSub()), raw))
			for _, alg := range []any{"ES384", "PS256", "es256", "", 256, nil} {
				t.keepsOut("a good signature under another alg", seal(t.PA.header().with(object{"alg": alg}), t.PA.claims(newSub()), t.PA.good[keyEC].Key))
			}
		}},
		{"M1", "no other algorithm, of a key that could use it", func(t *trial) {
			key, kid := t.key(keyRSA)
			t.keepsOut("a good signature with PS256", seal(object{"alg": "PS256", "kid": kid}, t.PA.claims(newSub()), key))
		}},
		{"M1", "alg fits the key", func(t *trial) {
			key, kid := t.key(keyRSA)
			t.keepsOut("RS256 by the kid of a P-256 key", seal(t.PA.header().with(object{"alg": "RS256"}), t.PA.claims(newSub()), key))
			t.keepsOut("ES256 by the kid of an RSA key", seal(t.PA.header().with(object{"kid": kid}), t.PA.claims(newSub()), t.PA.good[keyEC].Key))
		}},
		{"M1", "no key from the header, nothing critical", func(t *trial) {
			own := t.PA.good[keyEC]
			for name, value := range map[string]any{
				"jwk": own.Public(), "jku": t.PA.Issuer + "/jwks.json", "x5u": t.PA.Issuer + "/x5u",
				"x5c": []string{"MIIB"}, "crit": []string{"exp"},
			} {
				t.keepsOut("header "+name, seal(t.PA.header().with(object{name: value}), t.PA.claims(newSub()), t.PA.good[keyEC].Key))
			}
			mine := newEC()
			forged := t.PA.header().with(object{"jwk": map[string]any{
				"kty": "EC", "crv": "P-256", "x": coordinate(mine.X.Bytes()), "y": coordinate(mine.Y.Bytes()),
			}})
			t.keepsOut("a key of its own in the header", seal(forged, t.PA.claims(newSub()), mine))
		}},
		{"M1", "only published keys", func(t *trial) {
			own := newEC()
			t.keepsOut("a stranger's key under a published kid", seal(t.PA.header(), t.PA.claims(newSub()), own))
			t.keepsOut("a stranger's key without kid", seal(object{"alg": "ES256"}, t.PA.claims(newSub()), own))
			t.keepsOut("a kid that is not published", seal(t.PA.header().with(object{"kid": "nobody's"}), t.PA.claims(newSub()), t.PA.good[keyEC].Key))
		}},
		{"M1", "RSA below 2048 bits is refused", func(t *trial) {
			key, kid := t.key(keyWeak)
			t.keepsOut("a pa-jwt by an RSA key of 1024 bits", seal(object{"alg": "RS256", "kid": kid}, t.PA.claims(newSub()), key))
		}},
		{"M1", "a key for encryption signs nothing", func(t *trial) {
			key, kid := t.key(keyEnc)
			t.keepsOut("a pa-jwt by a key with use enc", seal(object{"alg": "ES256", "kid": kid}, t.PA.claims(newSub()), key))
			t.keepsOut("the same without kid", seal(object{"alg": "ES256"}, t.PA.claims(newSub()), key))
		}},
		{"M1", "one way of writing a token", func(t *trial) {
			good := t.PA.sign(newSub(), nil)
			t.letsIn("the token as it is", good)
			t.keepsOut("with padding", good+"=")
			t.keepsOut("with a fourth part", good+".")
			t.keepsOut("without its signature", good[:strings.LastIndex(good, ".")+1])
			t.keepsOut("with its claims changed", flip(good))
		}},
		{"M2", "only registered agents, byte for byte", func(t *trial) {
			t.letsIn("the agent", t.PA.sign(newSub(), nil))
			for _, iss := range []any{
				t.PA.Issuer + "/", strings.ToUpper(t.PA.Issuer), t.PA.Issuer + " ", t.PA.Issuer + "?", t.PA.Issuer + "#",
				"https://nobody.invalid", "", nil,
				[]string{t.PA.Issuer},
				1,
			} {
				t.keepsOut("another iss", t.PA.sign(newSub(), object{"iss": iss}))
			}
		}},
		{"M2", "an agent's key speaks for no other agent", func(t *trial) {
			t.needs(t.OtherPA != nil, "a second agent (--other-pa)")
			t.letsIn("the agent", t.PA.sign(newSub(), nil))
			t.keepsOut("the other agent's key under this agent's iss", t.OtherPA.sign(newSub(), object{"iss": t.PA.Issuer}))
			t.keepsOut("this agent's key under the other's iss", t.PA.sign(newSub(), object{"iss": t.OtherPA.Issuer}))
		}},
		{"M3", "aud is one string, exactly the Provider's", func(t *trial) {
			t.letsIn("the audience assigned", t.PA.sign(newSub(), nil))
			aud := t.PA.Audience
			for _, other := range []any{
				[]string{aud},
				[]string{aud, "https://other.example"},
				[]string{},
				"", nil, 1, aud + "/", aud + " ", strings.ToUpper(aud),
				aud[:len(aud)-1], "https://other.example", t.brand.at, t.brand.oauth.Issuer,
			} {
				if other == aud {
					continue // a server that assigned its own address
				}
				t.keepsOut("another aud", t.PA.sign(newSub(), object{"aud": other}))
			}
		}},
		{"M4", "sub has 1 to 256 characters", func(t *trial) {
			t.letsIn("one character", t.PA.sign("a", nil))
			t.letsIn("256 characters", t.PA.sign(newSub()+strings.Repeat("x", 256-len(newSub())), nil))
			t.letsIn("256 characters of three bytes each", t.PA.sign(strings.Repeat("客", 256), nil))
			for _, sub := range []any{nil, "", strings.Repeat("x", 257), 1, []string{"a"}, object{"id": "a"}} {
				t.keepsOut("a sub that is none", t.PA.sign("", object{"sub": sub}))
			}
		}},
	}
}

// agentChecks are about agents that are known.
func agentChecks() []check {
	return []check{
		{"M2", "a disabled agent is kept out, an enabled one let in", func(t *trial) {
			t.needs(t.Operator != nil, "an operator (--operator)")
			t.needs(t.OtherPA != nil, "a second agent (--other-pa)")
			u := t.user().at(t.OtherPA)
			u.ask(t.scopes(1)...)
			defer t.operates("enable-agent", t.OtherPA.Issuer)
			t.operates("disable-agent", t.OtherPA.Issuer)
			t.soon("a disabled agent is still let in", func() bool {
				return u.post(t.brand.oauth.DeviceEndpoint, url.Values{"scope": t.scopes(1)}).status == http.StatusUnauthorized
			})
			u.post(t.brand.oauth.DeviceEndpoint, url.Values{"scope": t.scopes(1)}).plain401(t, "a disabled agent")
		}},
		{"M2", "a disabled agent is kept out, at message:send", func(t *trial) {
			t.talks()
			t.needs(t.Operator != nil, "an operator (--operator)")
			u := t.user().at(t.second())
			u.says(say{}).replies(t, "the agent while it is enabled")
			defer t.operates("enable-agent", u.pa.Issuer)
			t.operates("disable-agent", u.pa.Issuer)
			t.soon("a disabled agent is still let in", func() bool { return u.says(say{}).status == http.StatusUnauthorized })
			u.says(say{}).plain401(t, "a disabled agent")
		}},
		{"M4", "another sub is another User", func(t *trial) {
			u := t.user()
			s := u.ask(t.scopes(1)...)
			s.poll(u.other()).refuses(t, "a poll by another User of the agent", http.StatusBadRequest, "invalid_grant")
			s.poll(u).refuses(t, "the poll of who asked", http.StatusBadRequest, "authorization_pending")
		}},
	}
}

// flip changes the claims of a token and keeps its signature.
func flip(token string) string {
	first := strings.Index(token, ".")
	last := strings.LastIndex(token, ".")
	u, err := unseal(token)
	if err != nil {
		return ""
	}
	return token[:first+1] + part(object(u.claims).with(object{"sub": newSub()})) + token[last:]
}

func coordinate(raw []byte) string {
	const size = 32
	full := make([]byte, size)
	copy(full[size-len(raw):], raw)
	return base64url(full)
}

// soon waits for what a server may need a few seconds for: two until it asks its
// registry anew, five until a kit asks the server, and some to answer.
func (t *trial) soon(otherwise string, is func() bool) {
	const patience, pause = 10 * time.Second, 100 * time.Millisecond
	for late := time.Now().Add(patience); !is(); time.Sleep(pause) {
		if time.Now().After(late) || t.ctx.Err() != nil {
			t.fail("%s after %s", otherwise, patience)
		}
	}
}

// operates has the operator act; what cannot be done is no verdict on the rule.
func (t *trial) operates(action, object string) {
	if err := t.Operator(t.ctx, action, object); err != nil {
		panic(verdict{NotRun, "the operator could not " + action + ": " + err.Error()})
	}
}
