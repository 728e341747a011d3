package pa

import (
	"bytes"
	"context"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign.dev/cmd/countersign/pa/discovery"
	"countersign.dev/cmd/countersign/shell"
)

// parsed is a command after its flags were read.
func parsed(t *testing.T, name string, args ...string) *command {
	t.Helper()
	c := newCommand(name, args, nil, nil)
	c.storedFlags()
	if err := c.parse(); err != nil {
		t.Fatal(err)
	}
	return c
}

// What is printed is pasted: by the name under which the program runs here, with
// every flag that is not the default one, quoted for a shell.
func TestPrintedCommandsRunAsTheyStandThere(t *testing.T) {
	id, dir := newIdentity(t)
	odd := filepath.Join(dir, "a b.json")
	err := Store{Path: odd}.Put(context.Background(), Tokens{Interface: "https://h.example", Issuer: "https://h.example/oauth", Sub: "bo", Audience: id.Audience})
	if err != nil {
		t.Fatal(err)
	}
	program := shell.Program()
	if program == "countersign" {
		t.Fatal("a test is not called countersign")
	}
	for _, tt := range []struct {
		err  error
		args []string
		want string
	}{
		{ErrNoToken, []string{"--card", "https://h.example"}, "First: " + program + " pa login --card https://h.example"},
		{
			ErrNoToken,
			[]string{"--data", "../a b", "--card", "https://h.example", "--sub", "bo"},
			"First: " + program + " pa login --data '../a b' --card https://h.example --sub bo",
		},
		{ErrNoToken, []string{"--aud", "urn:x", "--allow-split"}, " --card URL --aud urn:x --allow-split"},
		{ErrEnded, []string{"--tokens", odd}, " pa login --tokens '" + odd + "' --card https://h.example --sub bo"},
	} {
		if got := parsed(t, "token", tt.args...).remedy(tt.err); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%v: %s, want %s", tt.err, got, tt.want)
		}
	}
	if _, _, errs := pa("token", "--data", "no folder"); !strings.Contains(errs, program+" dev --data 'no folder'") {
		t.Error(errs)
	}
	if _, out, _ := pa("help"); !strings.Contains(out, "type "+program+" for countersign") {
		t.Error(out)
	}
}

func TestMistakesOfTheCardHaveRemedies(t *testing.T) {
	_, dir := newIdentity(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	for card, want := range map[string]string{
		gone.URL:         shell.Program() + " dev running?",
		"localhost:8080": "begin with http:// or https://",
		"":               " dev --data " + dir + " prints",
	} {
		if code, _, errs := pa("login", "--data", dir, "--card", card); code != exitFault || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d, %s", card, code, errs)
		}
	}
}

func TestTheLongestLifeIsNamed(t *testing.T) {
	_, dir := newIdentity(t)
	for _, life := range []string{"400s", "301s", "0s", "-1s"} {
		if code, out, errs := pa("sign", "--data", dir, "--expires", life); code != exitFault || out != "" || !strings.Contains(errs, "at most 300s") {
			t.Errorf("%s: exit %d, %q", life, code, errs)
		}
	}
}

// A phone that follows a link to localhost looks for the page on itself.
func TestALinkToThisMachineIsForThisMachine(t *testing.T) {
	for _, tt := range []struct {
		link     string
		live, qr bool
		where    string
		drawn    bool
	}{
		{"http://localhost:8080/b/x/device", true, false, "in a browser on this machine", false},
		{"http://127.0.0.1:8080/b/x/device", true, false, "in a browser on this machine", false},
		{"http://localhost:8080/b/x/device", false, true, "in a browser on this machine", true},
		{"https://countersign.example/b/x/device", true, false, "on any device", true},
		{"https://countersign.example/b/x/device", false, false, "on any device", false},
		{"https://countersign.example/b/x/device", false, true, "on any device", true},
	} {
		var out bytes.Buffer
		s := screen{out: &out, live: tt.live, qr: tt.qr}
		s.ask(discovery.Brand{Name: "Harbor Hotel"}, Started{VerificationURI: tt.link, UserCode: "WDJB-MJHT", ExpiresIn: time.Minute})
		if !strings.Contains(out.String(), "open this link "+tt.where) || strings.Contains(out.String(), "▀") != tt.drawn {
			t.Errorf("%+v:\n%s", tt, out.String())
		}
	}
}
