package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
)

const badToken = `Bearer realm="a2a", error="invalid_token"`

// turnChecks are about turns under a delegation.
func turnChecks() []check {
	return []check{
		{"M18", "a turn takes no token that another agent shows", func(t *trial) {
			t.talks()
			second := t.second()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			u.says(say{Delegation: p.AccessToken}).replies(t, "the rightful agent's turn")
			u.at(second).says(say{Delegation: p.AccessToken}).bare401(t, "another agent's turn with it", badToken)
		}},
		{"M21", "a bad delegation token: its own 401, without a body", func(t *trial) {
			t.talks()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			u.says(say{Delegation: p.AccessToken}).replies(t, "a good one")
			for what, token := range map[string]string{
				"not a JWT": "not-a-jwt", "a tampered one": flip(p.AccessToken), "a pa-jwt": u.bearer(), "a refresh token": p.RefreshToken,
				"its signature cut": p.AccessToken[:len(p.AccessToken)-10],
				"another kid":       resealed(p, object{"kid": "nobody's"}), "alg none": resealed(p, object{"alg": "none"}),
			} {
				u.says(say{Delegation: token}).bare401(t, what, badToken)
				u.sends("{", token).bare401(t, what+", before the body", badToken)
			}
		}},
		{"M21", "the pa-jwt is judged first", func(t *trial) {
			t.talks()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			for _, delegation := range []string{p.AccessToken, "not-a-jwt"} {
				for _, bearer := range []string{"", "not-a-jwt", u.pa.sign(u.sub, object{"exp": 1})} {
					t.do(call{
						method: http.MethodPost, url: t.operation("message:send"), media: a2aType,
						bearer: bearer, delegation: delegation, body: say{ID: newSub(), Text: "Hello"}.body(),
					}).plain401(t, "a bad pa-jwt beside a delegation token")
				}
			}
		}},
		{"M21", "the header may stand once, with the scheme Bearer", func(t *trial) {
			t.talks()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			send := func(values ...string) answer {
				return t.do(call{
					method: http.MethodPost, url: t.operation("message:send"), media: a2aType, bearer: u.bearer(),
					header: http.Header{"X-A2a-User-Delegation": values}, body: say{ID: newSub(), Text: "Hello"}.body(),
				})
			}
			send("bearer "+p.AccessToken).replies(t, "the scheme in lower case")
			for _, values := range [][]string{{""}, {"Bearer"}, {"Bearer "}, {p.AccessToken}, {"Basic " + p.AccessToken}, {"Bearer " + p.AccessToken, "Bearer " + p.AccessToken}} {
				send(values...).bare401(t, "another form of the header", badToken)
			}
		}},
		{"M21", "a token whose grant ended is a bad one", func(t *trial) {
			t.talks()
			u := t.user()
			p := u.granted(0, t.scopes(1)...)
			u.revoke(p.RefreshToken).is(t, "the revocation", http.StatusOK)
			// Until its agent has heard of the end, a Brand may let the token in and then get
			// no receipt: what it says to such a turn is no word on the token yet.
			t.soon("a revoked token is not refused", func() bool { return u.says(say{Delegation: p.AccessToken}).status == http.StatusUnauthorized })
			u.says(say{Delegation: p.AccessToken}).bare401(t, "a revoked token", badToken)
		}},
		{"M17", "another Brand's token is a bad one", func(t *trial) {
			t.talks()
			u := t.user()
			p := t.elsewhere().user().granted(0, t.neighbour().document.scopes[0])
			u.says(say{Delegation: p.AccessToken}).bare401(t, "another Brand's token", badToken)
		}},
		{"M23", "a context is its agent's and User's alone", func(t *trial) {
			t.talks()
			u := t.user()
			r := u.says(say{}).replies(t, "the first message")
			strangers := map[string]user{"another User": u.other()}
			if t.OtherPA != nil {
				strangers["another agent"] = u.at(t.second())
			}
			unknown := u.says(say{Context: newSub()})
			for what, who := range strangers {
				a := who.says(say{Context: r.context()})
				a.a2aError(t, what, http.StatusBadRequest, "INVALID_PARAMS")
				if compact(a.body) != compact(unknown.body) {
					t.fail("%s learns that the context is there", what)
				}
			}
			u.says(say{Context: r.context()}).replies(t, "the rightful next message")
		}},
		{"M23", "once it ran as one Brand user, it runs as no other, nor as nobody", func(t *trial) {
			t.talks()
			u := t.user()
			one := u.granted(0, t.scopes(1)...)
			other := u.granted(1, t.scopes(1)...)
			if one.claim("sub") == other.claim("sub") {
				t.fail("two people have one sub")
			}
			r := u.says(say{Delegation: one.AccessToken}).replies(t, "the first turn")
			u.says(say{Context: r.context(), Delegation: other.AccessToken}).
				a2aError(t, "another Brand user's token", http.StatusBadRequest, "INVALID_PARAMS")
			u.says(say{Context: r.context()}).a2aError(t, "a turn without a token", http.StatusBadRequest, "INVALID_PARAMS")
			u.says(say{Context: r.context(), Delegation: one.AccessToken}).replies(t, "the rightful next turn")
		}},
		{"M23", "a conversation without a token may go on with one", func(t *trial) {
			t.talks()
			u := t.user()
			r := u.says(say{}).replies(t, "the first message")
			p := u.granted(0, t.scopes(1)...)
			u.says(say{Context: r.context(), Delegation: p.AccessToken}).replies(t, "a turn with a token")
			u.says(say{Context: r.context()}).a2aError(t, "a turn without one afterwards", http.StatusBadRequest, "INVALID_PARAMS")
		}},
	}
}

// resealed is a token with another header and its former signature.
func resealed(p paid, changes object) string {
	header := object(p.read.header).with(changes)
	return part(header) + "." + part(p.read.claims) + "." + base64url(p.read.signature)
}

// elsewhere is the same trial at the other Brand.
func (t *trial) elsewhere() *trial {
	other := t.neighbour()
	config := t.Config
	config.PA = t.PA.naming(t.OtherAudience)
	return &trial{suite: &suite{Config: config, brand: other}, ctx: t.ctx}
}

// stepUpChecks are about what happens when a scope is missing.
func stepUpChecks() []check {
	return []check{
		{"M22", "a missing scope is a task that waits, with what and where", func(t *trial) {
			t.talks()
			scope, text, other := t.needing()
			u := t.user()
			p := u.granted(0, other)
			r := u.says(say{Text: text, Delegation: p.AccessToken}).replies(t, "a turn that lacks a scope")
			t.waitsFor(r, scope)
		}},
		{"M22", "approving its link widens the same grant, and the message then runs", func(t *trial) {
			t.talks()
			scope, text, other := t.needing()
			u := t.user()
			p := u.granted(0, other)
			first := u.says(say{Delegation: p.AccessToken}).replies(t, "the first turn")
			turn := say{Context: first.context(), ID: newSub(), Text: text, Delegation: p.AccessToken}
			link := t.waitsFor(u.says(turn).replies(t, "a turn that lacks a scope"), scope)
			if link == "" {
				t.needs(false, "a link in the task")
			}
			started{Link: link, by: u}.decides(0, Decision{})
			next := u.refresh(p.RefreshToken).pays(u, "the refresh after the approval")
			if next.claim("grant_id") != p.claim("grant_id") || !isSet(next.Scope, other, scope) {
				t.fail("the refresh carries %q, of another grant or not the union", next.Scope)
			}
			turn.Delegation = next.AccessToken
			if r := u.says(turn).replies(t, "the same message with the scope"); r.Message == nil {
				t.fail("the same message with the scope is not answered")
			}
		}},
		{"M22", "the agent's own request for the union leads to the same grant", func(t *trial) {
			t.talks()
			scope, text, other := t.needing()
			u := t.user()
			p := u.granted(0, other)
			u.says(say{Text: text, Delegation: p.AccessToken}).replies(t, "a turn that lacks a scope")
			next := u.granted(0, other, scope)
			if next.claim("grant_id") != p.claim("grant_id") || !isSet(next.Scope, other, scope) {
				t.fail("the union is %q, of another grant or less", next.Scope)
			}
		}},
		{"M22", "without a token a turn that needs a scope waits too", func(t *trial) {
			t.talks()
			scope, text, _ := t.needing()
			t.waitsFor(t.user().says(say{Text: text}).replies(t, "a turn without a token"), scope)
		}},
		{"M22", "the Brand's own step-up: what is missing, and the same link while it is open", func(t *trial) {
			t.needs(t.BrandKey != "", "the Brand's credential (--brand-key)")
			u := t.user()
			all := t.scopes(2)
			p := u.granted(0, all[0])
			ask := func() (missing []string, link string) {
				a := t.stepUp(object{"pa_jwt": u.bearer(), "delegation_token": p.AccessToken, "scopes": all})
				a.is(t, "the step-up", http.StatusOK)
				var got map[string]json.RawMessage
				a.json(t, &got)
				if raw, there := got["pact.missingScopes"]; !there || json.Unmarshal(raw, &missing) != nil {
					t.fail("no pact.missingScopes")
				}
				if raw, there := got["pact.verificationUriComplete"]; there && (json.Unmarshal(raw, &link) != nil || link == "") {
					t.fail("pact.verificationUriComplete is no URL")
				}
				return missing, link
			}
			missing, link := ask()
			if !slices.Equal(missing, all[1:]) || link == "" {
				t.fail("held %q, asked for %q: missing is %q", all[0], all, missing)
			}
			if _, again := ask(); again != link {
				t.fail("the same question got another link while the first is open")
			}
			started{Link: link, by: u}.decides(0, Decision{})
			next := u.refresh(p.RefreshToken).pays(u, "the refresh after the approval")
			if next.claim("grant_id") != p.claim("grant_id") || !isSet(next.Scope, all...) {
				t.fail("the refresh carries %q, of another grant or not the union", next.Scope)
			}
			p = next
			if missing, link := ask(); len(missing) != 0 || link != "" {
				t.fail("nothing is missing, and the answer is %q with a link %t", missing, link != "")
			}
		}},
	}
}

// waitsFor demands a task that waits for the scope, and returns its link, which
// may be absent and never null.
func (t *trial) waitsFor(r reply, scope string) (link string) {
	if r.Task == nil || r.Task.ID == "" || r.Task.Status.State != "TASK_STATE_AUTH_REQUIRED" {
		t.fail("a turn that lacks %s is no task in TASK_STATE_AUTH_REQUIRED", scope)
	}
	var missing []string
	if json.Unmarshal(r.Task.Metadata["pact.missingScopes"], &missing) != nil || !slices.Contains(missing, scope) {
		t.fail("pact.missingScopes is %s, without %s", r.Task.Metadata["pact.missingScopes"], scope)
	}
	raw, there := r.Task.Metadata["pact.verificationUriComplete"]
	if !there {
		return ""
	}
	if json.Unmarshal(raw, &link) != nil || link == "" {
		t.fail("pact.verificationUriComplete is %s", raw)
	}
	if u, err := url.Parse(link); err != nil || !u.IsAbs() {
		t.fail("pact.verificationUriComplete is no URL")
	}
	if _, there := r.Task.Metadata["pact.receipt"]; there {
		t.fail("a turn that was not served has a receipt")
	}
	return link
}
