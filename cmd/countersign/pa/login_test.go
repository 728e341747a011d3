package pa

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLoginReturnsWhatThePersonAllowed(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, oauth("authorization_pending"), granted(1, "stay:read"))
	got, err := Login(context.Background(), b.options(id, dir))
	if err != nil {
		t.Fatal(err)
	}
	want := Tokens{
		Interface: b.URL + "/b", Issuer: b.URL + "/b/oauth", Card: b.URL + "/b/.well-known/agent-card.json",
		Sub: "alex-phone", Audience: audience, AccessToken: "at-1", RefreshToken: "rt-1",
		Scope: "stay:read", GrantID: "g1", ExpiresAt: b.clock.now().Add(time.Hour),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if scope := b.forms[0].Get("scope"); scope != "stay:read stay:change" {
		t.Errorf("asked for %q, not for everything in the card's order", scope)
	}
	for i, form := range b.forms { // M9
		if form.Get("client_id") != "https://aria.example" {
			t.Errorf("post %d: client_id %q", i, form.Get("client_id"))
		}
	}
	stored, err := Store{Path: filepath.Join(dir, "agent", "tokens.json")}.Find(Which{Card: b.URL + "/b"})
	if err != nil || !cmp.Equal(stored, want) {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

func TestTheTokenFileIsItsOwnersAlone(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, granted(1, "stay:read"))
	if _, err := Login(context.Background(), b.options(id, dir)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if entry.Name() != "agent.json" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %#o", entry.Name(), info.Mode().Perm())
		}
		if strings.HasPrefix(entry.Name(), ".tokens.json.") {
			t.Errorf("%s was left behind", entry.Name())
		}
	}
}

// The pace of RFC 8628 §3.5: slow_down adds 5 s for good; trouble doubles until
// it is over; Retry-After is kept.
func TestPollingKeepsThePaceItIsGiven(t *testing.T) {
	pending, slow, hangUp := oauth("authorization_pending"), oauth("slow_down"), reply{}
	busy := reply{status: 503, body: `{"error":"temporarily_unavailable"}`, header: map[string]string{"Retry-After": "40"}}
	limited := reply{status: 429, body: `{"error":"slow_down"}`, header: map[string]string{"Retry-After": "20"}}
	done := granted(1, "stay:read")
	for _, tt := range []struct {
		name   string
		script []reply
		waits  []int
	}{
		{"pending", []reply{pending, pending, done}, []int{5, 5, 5}},
		{"slow_down stays", []reply{slow, pending, slow, pending, done}, []int{5, 10, 10, 15, 15}},
		{"network trouble backs off and is forgotten", []reply{hangUp, hangUp, hangUp, pending, done}, []int{5, 10, 15, 25, 5}},
		{"server trouble", []reply{busy, pending, done}, []int{5, 40, 5}},
		{"too many", []reply{limited, pending, done}, []int{5, 20, 10}},
		{"an answer without JSON", []reply{{status: 502, body: "<html>"}, done}, []int{5, 10}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, dir := newIdentity(t)
			b := newBrand(t, id, tt.script...)
			if _, err := Login(context.Background(), b.options(id, dir)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.waits, seconds(b.clock.waits)); diff != "" {
				t.Errorf("seconds between polls: %s", diff)
			}
		})
	}
}

func TestEndingsHaveNames(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply reply
		want  error
	}{
		{"denied (B01)", oauth("access_denied"), ErrDenied},
		{"expired", oauth("expired_token"), ErrExpired},
		{"no answer ever", oauth("authorization_pending"), ErrExpired},
		{"network gone for good", reply{}, ErrExpired},
		{"invalid_grant", oauth("invalid_grant"), Refusal{Status: 400, Code: "invalid_grant"}},
		{"not recognised (M7)", reply{status: 401}, Refusal{Status: 401}},
		{"redirected", reply{status: 302, header: map[string]string{"Location": "https://bank.example/"}}, nil},
		{"no token in it", reply{status: 200, body: `{"token_type":"Bearer","expires_in":3600}`}, ErrBadAnswer},
		{"another kind of token", reply{status: 200, body: `{"token_type":"DPoP","access_token":"at","expires_in":3600}`}, ErrBadAnswer},
		{"a token without a life", reply{status: 200, body: `{"token_type":"Bearer","access_token":"at"}`}, ErrBadAnswer},
		{"a token that allows nothing", reply{status: 200, body: `{"token_type":"Bearer","access_token":"at","expires_in":3600,"scope":" "}`}, ErrBadAnswer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, dir := newIdentity(t)
			b := newBrand(t, id, tt.reply)
			_, err := Login(context.Background(), b.options(id, dir))
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if tt.want != ErrExpired && len(b.clock.waits) != 1 {
				t.Errorf("%d polls though the first answer was final", len(b.clock.waits))
			}
			if _, err := (Store{Path: b.options(id, dir).TokenFile}).Find(Which{}); !errors.Is(err, ErrNoToken) {
				t.Errorf("something was stored: %v", err)
			}
		})
	}
}

// The authority pays out an approval for 60 s past the end of the link
// (wire.md §4), so the agent looks once more after it.
func TestAnAnswerInTheLastMomentIsCollected(t *testing.T) {
	id, dir := newIdentity(t)
	pending := oauth("authorization_pending")
	b := newBrand(t, id, pending, pending, granted(1, "stay:read"))
	b.started = strings.Replace(b.started, `"expires_in":600`, `"expires_in":12`, 1)
	if _, err := Login(context.Background(), b.options(id, dir)); err != nil {
		t.Error(err)
	}
	b = newBrand(t, id, pending, pending, pending, granted(1, "stay:read"))
	b.started = strings.Replace(b.started, `"expires_in":600`, `"expires_in":12`, 1)
	if _, err := Login(context.Background(), b.options(id, dir)); !errors.Is(err, ErrExpired) {
		t.Errorf("polled on long after the end: %v", err)
	}
}

// M6 and M5: one pa-jwt serves many polls, and a fresh one comes before the old
// one runs out. The Brand's side checks every one of them.
func TestAPaJWTIsUsedAgainUntilItIsNearlyOver(t *testing.T) {
	id, dir := newIdentity(t)
	var script []reply
	for range 50 {
		script = append(script, oauth("authorization_pending"))
	}
	b := newBrand(t, id, append(script, granted(1, "stay:read"))...)
	if _, err := Login(context.Background(), b.options(id, dir)); err != nil {
		t.Fatal(err)
	}
	different := map[string]int{}
	for _, bearer := range b.bearers {
		different[bearer]++
	}
	// 255 s of polling; each lives 120 s and is used for the first 90 s.
	if len(different) != 3 {
		t.Errorf("%d pa-jwts for %d calls", len(different), len(b.bearers))
	}
}

func TestStartsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, old, new string }{
		{"no device code", `"dc_secret"`, `""`},
		{"no user code", `"WDJB-MJHT"`, `""`},
		{"a user code that moves the cursor", `"WDJB-MJHT"`, `"\u001b[2JWDJB"`},
		{"plain http", `"verification_uri":"https:`, `"verification_uri":"http:`},
		{"a relative link", `"verification_uri":"https://countersign.example`, `"verification_uri":"`},
		{"a fragment", `user_code=WDJB-MJHT"`, `user_code=WDJB-MJHT#x"`},
		{"a script", `"verification_uri_complete":"https:`, `"verification_uri_complete":"javascript:`},
		{"no life", `"expires_in":600`, `"expires_in":0`},
		{"a life too long to wait", `"expires_in":600`, `"expires_in":1000000000000`},
		{"an interval past the end", `"interval":5`, `"interval":601`},
		{"an interval of words", `"interval":5`, `"interval":"5"`},
		{"a page", `{"device_code"`, `<html>`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, dir := newIdentity(t)
			b := newBrand(t, id, granted(1, "stay:read"))
			if !strings.Contains(b.started, tt.old) {
				t.Fatal("nothing to replace")
			}
			b.started = strings.Replace(b.started, tt.old, tt.new, 1)
			_, err := Login(context.Background(), b.options(id, dir))
			if !errors.Is(err, ErrBadAnswer) {
				t.Errorf("%v", err)
			}
		})
	}
}

// B16: clients that took a zero by its word did not stop polling.
func TestAMissingIntervalIsFiveSeconds(t *testing.T) {
	for _, interval := range []string{``, `,"interval":0`, `,"interval":-1`} {
		id, dir := newIdentity(t)
		b := newBrand(t, id, oauth("authorization_pending"), granted(1, "stay:read"))
		b.started = strings.Replace(b.started, `,"interval":5`, interval, 1)
		if _, err := Login(context.Background(), b.options(id, dir)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{5, 5}, seconds(b.clock.waits)); diff != "" {
			t.Errorf("%q: %s", interval, diff)
		}
	}
}

// M10: one unknown id would spoil the whole request, so it is not even sent.
func TestAScopeThatIsNotOnTheCardIsNotAskedFor(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, granted(1, "stay:read"))
	o := b.options(id, dir)
	o.Scopes = []string{"stay:read", "safe:open"}
	if _, err := Login(context.Background(), o); err == nil || !strings.Contains(err.Error(), "stay:change") {
		t.Errorf("the message should name what there is: %v", err)
	}
	if len(b.forms) != 0 {
		t.Error("something was sent")
	}
}

// An approval that cannot be kept is lost, so the person is not asked at all.
func TestATokenFileThatCannotBeWrittenIsFoundFirst(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, granted(1, "stay:read"))
	o := b.options(id, dir)
	o.TokenFile = filepath.Join(dir, "agent", "agent.json", "tokens.json") // below a file
	if _, err := Login(context.Background(), o); err == nil {
		t.Error("no error")
	}
	if len(b.forms) != 0 {
		t.Error("a person was asked")
	}
}

func TestLoginStopsWhenItIsStopped(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, oauth("authorization_pending"))
	ctx, stop := context.WithCancel(context.Background())
	o := b.options(id, dir)
	o.Waiting = func(Waiting) { stop() }
	if _, err := Login(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestARefusedStartIsPassedOn(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, granted(1, "stay:read"))
	b.startErr = reply{status: 429, body: `{"error":"slow_down"}`, header: map[string]string{"Retry-After": "30"}}
	_, err := Login(context.Background(), b.options(id, dir))
	var r Refusal
	if !errors.As(err, &r) || r.Status != http.StatusTooManyRequests || r.RetryAfter != 30*time.Second {
		t.Errorf("%v", err)
	}
}

func TestDetailsAreSentAsTheyAre(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, granted(1, "stay:read"))
	o := b.options(id, dir)
	o.Details = `[{"type":"stay_charge","amount":200}]`
	if _, err := Login(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	o.Details = ""
	if _, err := Login(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if got := b.forms[0].Get("authorization_details"); got != `[{"type":"stay_charge","amount":200}]` {
		t.Errorf("sent %s", got)
	}
	for _, form := range b.forms[1:] {
		if form.Has("authorization_details") {
			t.Errorf("without any: %v", form)
		}
	}
}
