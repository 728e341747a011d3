package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
)

// The personal agent comes in two shapes. login is the agent as people run it, a
// process that polls and ends with an exit code; ask is the bare wire, where a
// test must know the state of a request at one moment.

// userOf is the agent's own name for its user: one per test, so that no journey
// disturbs another.
func userOf(t *testing.T) string { return strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")) }

// login is a run of countersign pa login --json.
type login struct {
	Link     string `json:"verification_uri_complete"`
	UserCode string `json:"user_code"`

	t       *testing.T
	process *exec.Cmd
	lines   *json.Decoder
}

// outcome is how a login ended.
type outcome struct {
	Event       string `json:"event"`
	Scope       string `json:"scope"`
	AccessToken string `json:"access_token"`
	GrantID     string `json:"grant_id"`
	exit        int
}

func (p *product) login(t *testing.T, b brand, user string, scopes ...string) *login {
	t.Helper()
	args := []string{"pa", "login", "--json", "--card", b.InterfaceURL, "--sub", user, "--data", p.data}
	if len(scopes) > 0 {
		args = append(args, "--scope", strings.Join(scopes, " "))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	l := &login{t: t, process: exec.CommandContext(ctx, p.bin, args...)}
	l.process.Dir, l.process.Env = p.folder, quietEnvironment()
	out, err := l.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.process.Start(); err != nil {
		t.Fatal(err)
	}
	l.lines = json.NewDecoder(bufio.NewReader(out))
	if err := l.lines.Decode(l); err != nil || l.UserCode == "" {
		t.Fatalf("pa login did not start: %v", err)
	}
	p.secrets.keep("user code", l.UserCode, strings.ReplaceAll(l.UserCode, "-", ""))
	return l
}

// wait is for the answer, whatever it is.
func (l *login) wait() outcome {
	l.t.Helper()
	var last outcome
	for {
		var line outcome
		err := l.lines.Decode(&line)
		if err == io.EOF { //nolint:errorlint // the decoder's own end
			break
		}
		if err != nil {
			l.t.Fatal(err)
		}
		last = line
	}
	_ = l.process.Wait() // its exit code says it
	last.exit = l.process.ProcessState.ExitCode()
	return last
}

// request is a delegation asked for over the wire.
type request struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	Link       string `json:"verification_uri_complete"`

	t       *testing.T
	product *product
	brand   brand
	user    string
}

// answer is what the token endpoint said.
type answer struct {
	Error        string `json:"error"`
	Scope        string `json:"scope"`
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	status       int
}

func (p *product) ask(t *testing.T, b brand, user string, scopes ...string) *request {
	t.Helper()
	r := &request{t: t, product: p, brand: b, user: user}
	status := r.post("/device_authorization", url.Values{"scope": {strings.Join(scopes, " ")}}, r)
	if status != http.StatusOK || r.UserCode == "" {
		t.Fatalf("asked for %v: %d", scopes, status)
	}
	p.secrets.keep("user code", r.UserCode, strings.ReplaceAll(r.UserCode, "-", ""))
	p.secrets.keep("device code", r.DeviceCode)
	return r
}

// poll asks once how the request stands. The first poll is never too early, and
// an answered one is told however early it comes (M12).
func (r *request) poll() answer {
	r.t.Helper()
	var a answer
	a.status = r.post("/token", url.Values{
		"grant_type":  {"urn:ietf:params:oauth:grant-type:device_code"},
		"device_code": {r.DeviceCode},
	}, &a)
	if a.AccessToken != "" {
		r.product.secrets.keep("token", a.AccessToken, a.RefreshToken)
	}
	return a
}

// mustStillWait demands that nobody has answered.
func (r *request) mustStillWait() {
	r.t.Helper()
	if a := r.poll(); a.Error != "authorization_pending" && a.Error != "slow_down" {
		r.t.Errorf("the request should still be open: %d %q, scope %q", a.status, a.Error, a.Scope)
	}
}

// proof is a pa-jwt of the demo's agent for the request's user, at its Brand.
func (r *request) proof() string {
	r.t.Helper()
	return r.product.proof(r.t, r.brand, r.user)
}

func (p *product) proof(t *testing.T, b brand, user string) string {
	t.Helper()
	signed, exit := p.run(t, "", "pa", "sign", "--data", p.data, "--sub", user, "--aud", b.Audience)
	if exit != 0 {
		t.Fatalf("pa sign: exit %d", exit)
	}
	return strings.TrimSpace(signed)
}

func (r *request) post(path string, form url.Values, into any) (status int) {
	r.t.Helper()
	form.Set("client_id", r.product.Agent.Issuer)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.brand.Issuer+path, strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.proof())
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil && err != io.EOF { //nolint:errorlint // an empty body is an answer (M7)
		r.t.Fatalf("%s: %v", path, err)
	}
	return resp.StatusCode
}

// scopesOf reads the Brand's card: what may be asked for, in the Brand's words.
func scopesOf(t *testing.T, b brand) map[string]string {
	t.Helper()
	resp, err := http.Get(b.CardURL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var card struct {
		SecuritySchemes struct {
			UserDelegation struct {
				OAuth2 struct {
					Flows struct {
						DeviceCode struct {
							Scopes map[string]string `json:"scopes"`
						} `json:"deviceCode"`
					} `json:"flows"`
				} `json:"oauth2SecurityScheme"`
			} `json:"userDelegation"`
		} `json:"securitySchemes"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&card); err != nil {
		t.Fatal(err)
	}
	scopes := card.SecuritySchemes.UserDelegation.OAuth2.Flows.DeviceCode.Scopes
	if len(scopes) == 0 {
		t.Fatal("the card offers nothing")
	}
	return scopes
}
