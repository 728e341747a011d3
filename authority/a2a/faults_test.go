package a2a_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/a2a"
	"countersign.dev/tenants"
)

// An agent that fails after it was called may have acted: the message is spent,
// nothing is tried again, and what the agent said is not passed on.
func TestAnAgentThatFailsIsNotCalledAgain(t *testing.T) {
	d := newDoorWith(t, patience)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	as := func(media, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			_, _ = io.WriteString(w, body)
		}
	}
	dies := func(after string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, after)
			_ = conn.Close()
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for what, agent := range map[string]http.HandlerFunc{
		"slow": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"slow half-way": func(w http.ResponseWriter, r *http.Request) {
			as("application/json", `{"text":`)(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"dies at once":     dies(""),
		"dies in its head": dies("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"),
		"dies half-way":    dies("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"text\":\"Do"),
		"speaks no HTTP":   dies("220 mail ready\r\n"),
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"permanent redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusPermanentRedirect)
		},
		"500": status(http.StatusInternalServerError),
		"429": status(http.StatusTooManyRequests),
		"204": status(http.StatusNoContent),
		"201": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"text":"Done."}`)
		},
		"huge":                as("application/json", `{"text":"`+strings.Repeat("x", 512<<10)+`"}`),
		"a huge nothing":      as("application/json", `{"text":"Done."`+strings.Repeat(" ", 256<<10)+`}`),
		"too many scopes":     as("application/json", `{"text":"Done.","scopesUsed":[`+strings.Repeat(`"bookings:read",`, 100)+`"bookings:read"]}`),
		"a scope too long":    as("application/json", `{"text":"Done.","scopesUsed":["`+strings.Repeat("x", 129)+`"]}`),
		"a tool too long":     as("application/json", `{"text":"Done.","actions":[{"tool":"`+strings.Repeat("x", 129)+`"}]}`),
		"a tool of two lines": as("application/json", `{"text":"Done.","actions":[{"tool":"x\ny"}]}`),
		"long":                as("application/json", `{"text":"`+strings.Repeat("x", 100_001)+`"}`),
		"HTML":                as("text/html", `{"text":"Done."}`),
		"nothing":             as("application/json", ``),
		"no JSON":             as("application/json", `Done.`),
		"an array":            as("application/json", `[]`),
		"two values":          as("application/json", `{"text":"Done."}{}`),
		"no text":             as("application/json", `{"scopesUsed":[]}`),
		"blank text":          as("application/json", `{"text":" "}`),
		"text null":           as("application/json", `{"text":null}`),
		"text a number":       as("application/json", `{"text":1}`),
		"text with a zero":    as("application/json", `{"text":"a\u0000b"}`),
		"done beside missing": as("application/json", `{"text":"May I?","missingScopes":["extras:order"],"done":true}`),
		"done null":           as("application/json", `{"text":"Done.","done":null}`),
		"done a string":       as("application/json", `{"text":"Done.","done":"true"}`),
		"text twice":          as("application/json", `{"text":"No.","text":"Yes."}`),
		"Text":                as("application/json", `{"Text":"Done."}`),
		"an unknown member":   as("application/json", `{"text":"Done.","scopes_used":["bookings:read"]}`),
		"scopes a string":     as("application/json", `{"text":"Done.","scopesUsed":"bookings:read"}`),
		"scopes null":         as("application/json", `{"text":"Done.","scopesUsed":null}`),
		"scopes of null":      as("application/json", `{"text":"Done.","scopesUsed":[null]}`),
		"scopes of numbers":   as("application/json", `{"text":"Done.","scopesUsed":[1]}`),
		"an empty scope":      as("application/json", `{"text":"Done.","scopesUsed":[""]}`),
		"actions an object":   as("application/json", `{"text":"Done.","actions":{}}`),
		"actions of text":     as("application/json", `{"text":"Done.","actions":["x"]}`),
		"no tool":             as("application/json", `{"text":"Done.","actions":[{}]}`),
		"a tool of numbers":   as("application/json", `{"text":"Done.","actions":[{"tool":1}]}`),
		"args and their hash": as("application/json", `{"text":"Done.","actions":[{"tool":"x","args":{},"argsHash":"x"}]}`),
		"a hash of numbers":   as("application/json", `{"text":"Done.","actions":[{"tool":"x","argsHash":1}]}`),
		"an unknown action":   as("application/json", `{"text":"Done.","actions":[{"tool":"x","arguments":{}}]}`),
		"too many actions":    as("application/json", `{"text":"Done.","actions":[`+strings.Repeat(`{"tool":"x"},`, 100)+`{"tool":"x"}]}`),
	} {
		d.agent.does(agent)
		before := d.agent.count()
		began := time.Now()
		a := d.send(d.pa, "alex", tokens.JWS, said(what, open, "Hi"))
		a.internal(t, what)
		if strings.Contains(a.body, "receipt") || strings.Contains(a.body, "mail") || strings.Contains(a.body, "127.0.0.1") {
			t.Errorf("%s: %s", what, a.body)
		}
		if took := time.Since(began); took > patience+2*time.Second {
			t.Errorf("%s: took %s", what, took)
		}
		again := d.send(d.pa, "alex", tokens.JWS, said(what, open, "Hi"))
		again.invalid(t, what+", again")
		if !strings.Contains(again.body, "Look what was done") {
			t.Errorf("%s, again: %s", what, again.body)
		}
		if n := d.agent.count() - before; n != 1 {
			t.Errorf("%s: the agent was called %d times", what, n)
		}
		d.Clock.Advance(3 * time.Second) // the limit is not this test's
	}
	d.agent.says(`{"text":"Done."}`)
	fresh := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	if a := d.send(d.pa, "alex", fresh.JWS, said("after", open, "Hi")); a.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

// Where not a byte was sent, the message may come again.
func TestAnAgentThatCannotBeReachedHasNotActed(t *testing.T) {
	d := newDoor(t)
	open := d.send(d.pa, "alex", "", said("m0", "", "Hi")).context()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	l.Close()
	untrusted := httptest.NewTLSServer(d.agent)
	t.Cleanup(untrusted.Close)
	for what, url := range map[string]string{
		"nobody listens": closed, "a certificate of nobody we know": untrusted.URL, "no such host": "https://agent.invalid/turn?key=hush",
	} {
		d.point(url)
		d.send(d.pa, "alex", "", said("m1", open, "Hi")).internal(t, what)
	}
	// The address may hold something secret.
	if s := d.logs.text(); strings.Contains(s, "hush") || !strings.Contains(s, "was not called") {
		t.Errorf("the log: %s", s)
	}
	// A name that leads into our own network is found out when it is called, whatever
	// it led to before.
	d.Exec(t, `UPDATE agent_endpoints SET url = 'https://10.0.0.1/turn'`)
	d.Clock.Advance(2 * time.Second)
	d.send(d.pa, "alex", "", said("m1", open, "Hi")).is(t, "another's secret", 500, "INTERNAL", "INTERNAL")
	d.point("")
	d.send(d.pa, "alex", "", said("m1", open, "Hi")).internal(t, "nowhere")
	if n := d.agent.count(); n != 1 {
		t.Errorf("the agent was called %d times", n)
	}
	d.point(d.agent.URL)
	if a := d.send(d.pa, "alex", "", said("m1", open, "Hi")); a.status != http.StatusOK || a.context() != open {
		t.Errorf("the same message: %d %s", a.status, a.body)
	}
}

// Only public addresses in production, and https (R24).
func TestPrivateAddressesAreNotCalled(t *testing.T) {
	d := newDoor(t)
	strict := a2a.NewCaller(a2a.CallerConfig{Places: tenants.NewAgentPlaces(d.DB, d.Master, d.Clock.Now), Now: d.Clock.Now, Patience: patience})
	got, err := strict.Try(t.Context(), d.Hotel.ID)
	if err != nil || got.Wrong == "" || d.agent.count() != 0 {
		t.Errorf("%+v, %v; the agent was called %d times", got, err, d.agent.count())
	}
	for _, url := range []string{
		"http://agent.example/", "https://10.0.0.1/", "https://127.0.0.1/", "https://[::1]/", "https://u:p@agent.example/", "https://agent.example/#x",
		"https://agent.example:8443/", "ftp://agent.example/", "agent.example", "https://169.254.169.254/latest/", "https://" + strings.Repeat("a", 2000) + ".example/",
	} {
		_, err := tenants.SetAgentEndpoint(t.Context(), d.rules.Editor(authority.ByOperator()), d.Master, tenants.Site{}, d.Hotel.ID, url)
		if p := tenants.Problems(nil); !errors.As(err, &p) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// An agent that says it used more than the token allows: no reply, no receipt, an
// incident in the trail, and the message is spent.
func TestAnAgentThatUsedTooMuch(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.sign = func(context.Context, *tenants.Brand, authority.Turn) (authority.Receipt, error) {
		t.Error("it was countersigned")
		return authority.Receipt{}, nil
	}
	incidents := func() int {
		return d.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'incident.scopes_exceeded' AND grant_id = $1
			AND detail->>'agent' = $2 AND (detail->'scopes')::text = '["extras:order"]' AND detail->>'unknown_scopes' = '1'`, tokens.GrantID, d.pa.Issuer)
	}
	d.agent.says(`{"text":"Champagne!","scopesUsed":["bookings:read","extras:order","made:up","extras:order"]}`)
	open := "" // of a conversation that can be repeated
	a := d.send(d.pa, "alex", tokens.JWS, said("m1", open, "Hi"))
	a.internal(t, "beyond the token")
	if strings.Contains(a.body, "Champagne") || incidents() != 1 {
		t.Errorf("%s; %d incidents", a.body, incidents())
	}
	d.agent.says(`{"text":"Your room is 12.","scopesUsed":["bookings:read"]}`)
	d.send(d.pa, "alex", "", said("m2", "", "Hi")).internal(t, "without a token")
	if n := d.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'incident.scopes_exceeded' AND grant_id IS NULL`); n != 1 {
		t.Errorf("%d incidents without a grant", n)
	}
	if n := d.Count(t, `SELECT count(*) FROM turns WHERE state = 'failed' AND reply IS NULL AND answer IS NULL`); n != 2 {
		t.Errorf("%d messages are spent", n)
	}
}

// The caller may go away in the middle: the turn is finished all the same, and the
// reply waits for it.
func TestACallerThatGoesAwayFindsTheReply(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	open := d.send(d.pa, "alex", tokens.JWS, said("m0", "", "Hi")).context()
	ctx, leave := context.WithCancel(t.Context())
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		leave()
		time.Sleep(200 * time.Millisecond)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Done."}`)
	})
	r := d.request(http.MethodPost, d.url+"/message:send", d.pa.Token(t, claimsOf("alex")), tokens.JWS, said("m1", open, "Hi"))
	if _, err := http.DefaultTransport.RoundTrip(r.WithContext(ctx)); err == nil {
		t.Fatal("nobody went away")
	}
	for range 100 {
		if a := d.send(d.pa, "alex", tokens.JWS, said("m1", open, "Hi")); a.status == http.StatusOK {
			if n := d.agent.count(); n != 2 || !strings.Contains(a.body, "Done.") {
				t.Errorf("%s; the agent ran %d times for the message", a.body, n-1)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the reply never came")
}

// A grant that ends in the middle of a turn: what was done is countersigned, and
// the next turn is refused.
func TestATokenThatIsRevokedInTheMiddle(t *testing.T) {
	d := newDoor(t)
	tokens := d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		d.Clock.Advance(time.Second)
		if err := d.rules.EndByUser(context.Background(), d.Hotel.ID, "guest-1", tokens.GrantID); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Done.","scopesUsed":["bookings:read"]}`)
	})
	a := d.send(d.pa, "alex", tokens.JWS, said("m1", "", "Hi"))
	if a.status != http.StatusOK || !strings.Contains(a.body, "pact.receipt") {
		t.Errorf("%d %s", a.status, a.body)
	}
	d.send(d.pa, "alex", tokens.JWS, said("m1", a.context(), "Hi")).refused(t, "afterwards, the stored reply", m21)
	d.send(d.pa, "alex", tokens.JWS, said("m2", a.context(), "Hi")).refused(t, "afterwards", m21)
	// A step-up asked for by then leads nowhere either.
	tokens = d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.does(func(w http.ResponseWriter, _ *http.Request) {
		d.Clock.Advance(time.Second)
		if err := d.rules.EndByUser(context.Background(), d.Hotel.ID, "guest-1", tokens.GrantID); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"May I?","missingScopes":["extras:order"]}`)
	})
	d.send(d.pa, "alex", tokens.JWS, said("m3", a.context(), "Hi")).refused(t, "a step-up", m21)
	// The agent asked and did nothing, so the message is heard again.
	tokens = d.delegated(d.pa, "alex", "guest-1", "bookings:read")
	d.agent.says(`{"text":"Done."}`)
	if a := d.send(d.pa, "alex", tokens.JWS, said("m3", a.context(), "Hi")); a.status != http.StatusOK {
		t.Errorf("the same message: %d %s", a.status, a.body)
	}
}
