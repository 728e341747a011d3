package pa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/verify"
)

// pa runs a command line as a shell would.
func pa(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestSignPrintsOnePaJWTAndNothingElse(t *testing.T) {
	id, dir := newIdentity(t)
	keys, err := verify.ParseKeys(id.PublicJWKS())
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"sign", "--data", dir},
		{"sign", "--key", filepath.Join(dir, "agent", "key.json"), "--issuer", "https://aria.example", "--aud", audience},
		{"sign", "--data", dir, "--sub", "alex-phone", "--aud", audience, "--expires", "300s"},
	} {
		code, out, errs := pa(args...)
		if code != 0 || errs != "" || strings.Count(out, "\n") != 1 {
			t.Fatalf("%v: exit %d, %q, %q", args, code, out, errs)
		}
		agent, _, err := verify.PAJWT(keys, strings.TrimSuffix(out, "\n"), audience, time.Time{})
		if err != nil || agent.Subject != "alex-phone" || agent.Issuer != "https://aria.example" {
			t.Errorf("%v: %+v, %v", args, agent, err)
		}
	}
}

func TestSignRefusesWithoutPrintingAnything(t *testing.T) {
	_, dir := newIdentity(t)
	for _, args := range [][]string{
		{"sign", "--data", dir, "--expires", "301s"},
		{"sign", "--data", dir, "--expires", "0s"},
		{"sign", "--data", dir, "--sub", ""},
		{"sign", "--data", dir, "extra"},
		{"sign", "--data", dir, "--issuer", "https://mallory.example"},
		{"sign", "--data", t.TempDir()},
	} {
		code, out, errs := pa(args...)
		if code != exitFault || out != "" || errs == "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
}

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	id, dir := newIdentity(t)
	keys, err := verify.ParseKeys(id.PublicJWKS())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COUNTERSIGN_PA_DATA", dir)
	t.Setenv("COUNTERSIGN_PA_SUB", "from-the-environment")
	t.Setenv("COUNTERSIGN_PA_ISSUER", "https://harbor.example/oauth") // of other commands; sign must not take it
	for want, args := range map[string][]string{"from-the-environment": {"sign"}, "from-a-flag": {"sign", "--sub", "from-a-flag"}} {
		_, out, errs := pa(args...)
		agent, _, err := verify.PAJWT(keys, strings.TrimSpace(out), audience, time.Time{})
		if err != nil || agent.Subject != want {
			t.Errorf("%q, %v, %s", agent.Subject, err, errs)
		}
	}
	t.Setenv("COUNTERSIGN_PA_EXPIRES", "soon")
	if code, _, errs := pa("sign"); code != exitFault || !strings.Contains(errs, "COUNTERSIGN_PA_EXPIRES") {
		t.Errorf("%q", errs)
	}
}

func TestHelpIsHelp(t *testing.T) {
	if code, out, _ := pa("help"); code != 0 || !strings.Contains(out, "COUNTERSIGN_PA_DATA") {
		t.Errorf("exit %d, %q", code, out)
	}
	if code, _, errs := pa("login", "-h"); code != 0 || !strings.Contains(errs, "COUNTERSIGN_PA_CARD") {
		t.Errorf("exit %d, %q", code, errs)
	}
	for _, args := range [][]string{{}, {"logon"}, {"login", "--what"}, {"login"}} {
		if code, out, errs := pa(args...); code != exitFault || out != "" || errs == "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
}

func TestTokenPrintsTheTokenAlone(t *testing.T) {
	id, dir := newIdentity(t)
	err := Store{Path: filepath.Join(dir, "agent", "tokens.json")}.Put(context.Background(), Tokens{
		Interface: "https://h.example", Issuer: "https://h.example/oauth", Sub: "alex-phone", Audience: id.Audience,
		AccessToken: "at-7", RefreshToken: "rt-7", ExpiresAt: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"token", "--data", dir, "--card", "https://h.example"},
		{"token", "--data", dir, "--issuer", "https://h.example/oauth"},
	} {
		if code, out, errs := pa(args...); code != 0 || out != "at-7\n" || errs != "" {
			t.Errorf("exit %d, %q, %q", code, out, errs)
		}
	}
	code, _, errs := pa("token", "--data", dir, "--card", "https://other.example")
	if code != exitFault || !strings.Contains(errs, "countersign pa login") {
		t.Errorf("no remedy: %q", errs)
	}
}

func TestJSONLoginIsOneObjectPerLine(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, oauth("authorization_pending"), oauth("slow_down"), granted(1, "stay:read"))
	var out bytes.Buffer
	o := b.options(id, dir)
	if err := loginForPrograms(context.Background(), &out, o); err != nil {
		t.Fatal(err)
	}
	events := lines(t, out.String())
	started, approved := events[0], events[len(events)-1]
	for name, want := range map[string]any{
		"event": "started", "user_code": "WDJB-MJHT", "expires_in": 600.0, "interval": 5.0,
		"verification_uri":          "https://countersign.example/b/x/device",
		"verification_uri_complete": "https://countersign.example/b/x/device?user_code=WDJB-MJHT",
	} {
		if started[name] != want {
			t.Errorf("started: %s is %v", name, started[name])
		}
	}
	for name, want := range map[string]any{
		"event": "approved", "access_token": "at-1", "refresh_token": "rt-1", "scope": "stay:read",
		"expires_in": 3600.0, "token_file": o.TokenFile,
	} {
		if approved[name] != want {
			t.Errorf("approved: %s is %v", name, approved[name])
		}
	}
	for _, e := range events[1 : len(events)-1] {
		if e["event"] != "pending" {
			t.Errorf("%v", e)
		}
	}
}

// A driver waits for the link before it can do anything, so the line must be out
// before the first poll.
func TestTheStartedLineIsNotHeldBack(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, granted(1, "stay:read"))
	var out bytes.Buffer
	o := b.options(id, dir)
	o.Wait = func(ctx context.Context, d time.Duration) error {
		if !strings.HasSuffix(out.String(), "}\n") || !strings.Contains(out.String(), `"started"`) {
			t.Errorf("before the first wait: %q", out.String())
		}
		return b.clock.wait(ctx, d)
	}
	if err := loginForPrograms(context.Background(), &out, o); err != nil {
		t.Fatal(err)
	}
}

func TestEndingsHaveExitCodesAndEvents(t *testing.T) {
	for _, tt := range []struct {
		reply reply
		event string
		code  int
	}{
		{granted(1, "stay:read"), "approved", exitOK},
		{oauth("access_denied"), "denied", exitDenied},
		{oauth("expired_token"), "expired", exitExpired},
		{oauth("authorization_pending"), "expired", exitExpired},
		{oauth("invalid_grant"), "error", exitFault},
		{reply{status: 401}, "error", exitFault},
	} {
		id, dir := newIdentity(t)
		b := newBrand(t, id, tt.reply)
		var out, errs bytes.Buffer
		err := loginForPrograms(context.Background(), &out, b.options(id, dir))
		events := lines(t, out.String())
		if last := events[len(events)-1]["event"]; last != tt.event {
			t.Errorf("%v: last event %v", tt.reply, last)
		}
		if code := newCommand("login", nil, &out, &errs).exit(err); code != tt.code {
			t.Errorf("%v: exit %d", tt.reply, code)
		}
	}
}

// P48: what a person sees holds the link and the words, and no token.
func TestAPersonSeesWordsAndNoTokens(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, oauth("authorization_pending"), reply{}, granted(1, "stay:read extra:one"))
	var out bytes.Buffer
	if err := loginForPeople(context.Background(), &screen{out: &out, qr: true}, b.options(id, dir)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Harbor Hotel", "https://countersign.example/b/x/device?user_code=WDJB-MJHT", "WDJB-MJHT", "▀",
		"✓ See your bookings (stay:read)", "✓ extra:one, allowed earlier", "✗ Change your bookings (stay:change)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	for _, secret := range []string{"at-1", "rt-1", "dc_secret", "eyJ"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q is shown", secret)
		}
	}
}

func TestRemediesFollowTheFault(t *testing.T) {
	for want, err := range map[string]error{
		"jwks_uri":   fmt.Errorf("ask: %w", Refusal{Status: 401}),
		"pa login":   fmt.Errorf("refresh: %w", ErrEnded),
		"--sub":      ErrAmbiguous,
		"again in 3": Refusal{Status: 429, RetryAfter: 30 * time.Second},
	} {
		if got := newCommand("token", nil, nil, nil).remedy(err); !strings.Contains(got, want) {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// A stranger's words must not steer the terminal they are shown on.
func TestWordsOfStrangersAreOnlyWords(t *testing.T) {
	r := oauthError("\x1b]0;pwned\x07no\u202e", "a\r\nb")
	if r.Code != "]0;pwnedno" || r.Description != "ab" {
		t.Errorf("%q, %q", r.Code, r.Description)
	}
	if long := printable(strings.Repeat("ä", 400)); len([]rune(long)) != 301 {
		t.Errorf("%d characters", len([]rune(long)))
	}
}

// R40: a secret that slips into a log line is not there.
func TestSecretsStayHidden(t *testing.T) {
	tokens := Tokens{AccessToken: "at-1", RefreshToken: "rt-1"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "token", tokens.AccessToken)
	text := log.String() + fmt.Sprintf("%v %+v %#v %s", tokens, tokens, tokens, tokens.AccessToken) + errors.Join(fmt.Errorf("%v", tokens)).Error()
	if strings.Contains(text, "at-1") || strings.Contains(text, "rt-1") {
		t.Error(text)
	}
}

// Who gets no answer can send the same message again: its id is drawn before it is
// sent, and said.
func TestSendSaysItsMessageOnErrorsToo(t *testing.T) {
	_, dir := newIdentity(t)
	send := []string{"send", "--data", dir, "--card", "http://127.0.0.1:1", "--text", "Order champagne."}
	_, _, errs := pa(send...)
	_, id, _ := strings.Cut(errs, "--message ")
	if id, _, _ = strings.Cut(id, "\n"); len(id) < 20 {
		t.Errorf("%q", errs)
	}
	if code, _, errs := pa(append(send, "--message", id)...); code != exitFault || !strings.Contains(errs, "--message "+id) {
		t.Errorf("again as %s: exit %d, %q", id, code, errs)
	}
}
