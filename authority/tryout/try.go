package tryout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"countersign.dev/authority/verify"
	"countersign.dev/tenants"
)

// State is how far a try has come.
type State string

// The states. A try that is Waiting may become any other; those are final.
const (
	Waiting  State = "waiting"
	Allowed  State = "allowed"  // and the token was verified
	Rejected State = "rejected" // a token came, and it does not verify
	Denied   State = "denied"
	Expired  State = "expired"
)

// Try is one delegation that is tried. It holds the device code: it is the
// member's own and kept sealed.
type Try struct {
	State      State     `json:"state"`
	DeviceCode string    `json:"device_code,omitempty"` // until it is decided
	UserCode   string    `json:"user_code"`
	Link       string    `json:"link"`
	Began      time.Time `json:"began"`
	Expires    time.Time `json:"expires"`
	Interval   int       `json:"interval"` // seconds
	Polled     time.Time `json:"polled"`
	// Token is what the verified token says, and Checks are what was looked at; of
	// the token itself nothing is kept.
	Token  verify.Delegation `json:"token"`
	Checks verify.Report     `json:"checks"`
}

// ErrUnreached is returned where the Brand's public URLs do not answer, or not as
// an issuer does.
var ErrUnreached = errors.New("the brand's public URLs do not answer as they should")

// Refusal is the Brand's OAuth error.
type Refusal struct {
	Status      int
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (r Refusal) Error() string { return fmt.Sprintf("refused with %d %s", r.Status, r.Code) }

// Begin asks for everything on the Brand's card in the user's name.
func (a *Agent) Begin(ctx context.Context, b *tenants.Brand, user string) (Try, error) {
	scopes := make([]string, len(b.Scopes))
	for i, s := range b.Scopes {
		scopes[i] = s.ID
	}
	var got struct {
		DeviceCode string `json:"device_code"`
		UserCode   string `json:"user_code"`
		Complete   string `json:"verification_uri_complete"`
		ExpiresIn  int    `json:"expires_in"`
		Interval   int    `json:"interval"`
	}
	err := a.post(ctx, b, user, b.DeviceAuthorizationEndpoint(), url.Values{
		"client_id": {a.Issuer}, "scope": {strings.Join(scopes, " ")},
	}, &got)
	if err != nil {
		return Try{}, fmt.Errorf("begin a try at %s: %w", b.ID, err)
	}
	if got.DeviceCode == "" || got.UserCode == "" || got.Complete == "" {
		return Try{}, fmt.Errorf("begin a try at %s: %w: no code came", b.ID, ErrUnreached)
	}
	now := a.now()
	return Try{
		State: Waiting, DeviceCode: got.DeviceCode, UserCode: got.UserCode, Link: got.Complete,
		Began: now, Expires: now.Add(time.Duration(got.ExpiresIn) * time.Second), Interval: got.Interval, Polled: now,
	}, nil
}

// Look polls once, if it is time to, and judges the token that comes.
func (a *Agent) Look(ctx context.Context, b *tenants.Brand, user string, t Try) (Try, error) {
	now := a.now()
	if t.State != Waiting || now.Before(t.Polled.Add(time.Duration(t.Interval)*time.Second)) {
		return t, nil // sooner would be told to slow down (RFC 8628 §3.5)
	}
	t.Polled = now
	var got struct {
		AccessToken string `json:"access_token"`
	}
	err := a.post(ctx, b, user, b.TokenEndpoint(), url.Values{
		"client_id": {a.Issuer}, "device_code": {t.DeviceCode}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"},
	}, &got)
	var no Refusal
	if errors.As(err, &no) {
		switch no.Code {
		case "authorization_pending":
			return t, nil
		case "slow_down":
			const slower = 5
			t.Interval += slower
			return t, nil
		case "access_denied":
			return t.over(Denied), nil
		case "expired_token":
			return t.over(Expired), nil
		}
	}
	if err != nil {
		return t, fmt.Errorf("poll at %s: %w", b.ID, err)
	}
	state, err := a.judge(ctx, b, got.AccessToken, &t)
	if err != nil {
		// The code is spent: what cannot be judged now never will be.
		t.Checks = append(t.Checks, verify.Check{Name: "fetch", Result: verify.Failed, Detail: "the Brand's keys or status list could not be fetched"})
	}
	return t.over(state), nil
}

func (t Try) over(s State) Try {
	t.State, t.DeviceCode = s, ""
	return t
}

// judge is what the Brand's own server does with a token, status list included.
func (a *Agent) judge(ctx context.Context, b *tenants.Brand, token string, t *Try) (State, error) {
	jwks, err := a.get(ctx, b.JWKSURI())
	if err != nil {
		return Rejected, err
	}
	keys, err := verify.ParseKeys(jwks)
	if err != nil {
		t.Checks = append(t.Checks, verify.Check{Name: "keys", Result: verify.Failed, Detail: err.Error()})
		return Rejected, nil
	}
	d, report, refused := verify.Token(keys, token, verify.Options{Issuer: b.Issuer, Audience: b.InterfaceURL, Agent: a.Issuer, Now: a.now()})
	t.Token, t.Checks = d, report
	if refused != nil {
		return Rejected, nil // the report says why
	}
	if d.Status == nil {
		return Allowed, nil
	}
	raw, err := a.get(ctx, d.Status.URI)
	if err != nil {
		return Rejected, err
	}
	list, _, refused := verify.ParseStatusList(keys, strings.TrimSpace(string(raw)), a.now())
	if refused != nil {
		t.Checks = append(t.Checks, verify.Check{Name: "status", Result: verify.Failed, Detail: refused.Error()})
		return Rejected, nil
	}
	standing, refused := list.Judge(d, a.now())
	t.Checks = append(t.Checks, standing...)
	if refused != nil {
		return Rejected, nil
	}
	return Allowed, nil
}

// post sends a form with a fresh proof and reads the JSON that comes back.
func (a *Agent) post(ctx context.Context, b *tenants.Brand, user, to string, form url.Values, into any) error {
	proof, err := a.proof(b.Audience, user)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("%w: %s", ErrUnreached, to)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+proof)
	status, raw, err := a.do(r)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		no := Refusal{Status: status}
		_ = json.Unmarshal(raw, &no) // a 401 has no body
		return no
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: no JSON from %s", ErrUnreached, r.URL.Host)
	}
	return nil
}

func (a *Agent) get(ctx context.Context, from string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrUnreached, from)
	}
	status, raw, err := a.do(r)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%w: %s says %d", ErrUnreached, r.URL.Host, status)
	}
	return raw, err
}

func (a *Agent) do(r *http.Request) (status int, body []byte, err error) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	resp, err := a.http.Do(r.WithContext(ctx))
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %s: %w", ErrUnreached, r.URL.Host, err)
	}
	defer resp.Body.Close()
	const largest = 256 << 10
	body, err = io.ReadAll(io.LimitReader(resp.Body, largest))
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %s: %w", ErrUnreached, r.URL.Host, err)
	}
	return resp.StatusCode, body, nil
}
