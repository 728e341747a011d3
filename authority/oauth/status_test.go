package oauth_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/authority/verify"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

func (d *door) status(t *testing.T, b *tenants.Brand, rest string) answer {
	t.Helper()
	return do(t, request(t, http.MethodGet, d.issuer(b)+"/status"+rest, "", ""))
}

// R54: anybody may read a status list, from any origin, and ask cheaply whether
// it has changed; it is never kept for long.
func TestStatusListIsPublicAndShortLived(t *testing.T) {
	d := newDoor(t, nil)
	d.delegated(t, d.Hotel, d.pa, "bookings:read")
	a := d.status(t, d.Hotel, "/0")
	for name, want := range map[string]string{
		"Content-Type": "application/statuslist+jwt", "Cache-Control": "public, max-age=5", "Access-Control-Allow-Origin": "*",
	} {
		if got := a.header.Get(name); a.status != http.StatusOK || got != want {
			t.Errorf("%d, %s: %q, not %q", a.status, name, got, want)
		}
	}
	encoded, _, _ := strings.Cut(a.body, ".")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	var header map[string]string
	if err := json.Unmarshal(raw, &header); err != nil || header["typ"] != "statuslist+jwt" || header["alg"] != "ES256" || header["kid"] == "" {
		t.Errorf("header %v, %v", header, err)
	}
	again := request(t, http.MethodGet, d.issuer(d.Hotel)+"/status/0", "", "")
	again.Header.Set("If-None-Match", `"other", W/`+a.header.Get("ETag"))
	if b := do(t, again); b.status != http.StatusNotModified || b.body != "" || b.header.Get("ETag") != a.header.Get("ETag") {
		t.Errorf("asked again: %d %q", b.status, b.body)
	}
	if b := do(t, request(t, http.MethodHead, d.issuer(d.Hotel)+"/status/0", "", "")); b.status != 200 || b.body != "" || b.header.Get("ETag") != a.header.Get("ETag") {
		t.Errorf("HEAD: %d %q", b.status, b.body)
	}
	preflight := do(t, request(t, http.MethodOptions, d.issuer(d.Hotel)+"/status/0", "", ""))
	if preflight.status != http.StatusNoContent || preflight.header.Get("Access-Control-Allow-Origin") != "*" ||
		!strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), "If-None-Match") {
		t.Errorf("preflight: %d %v", preflight.status, preflight.header)
	}
	if b := do(t, request(t, http.MethodPost, d.issuer(d.Hotel)+"/status/0", "", "x=y")); b.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", b.status)
	}
	// A changed list is another one: the old ETag does not hide it.
	if err := d.rules.Suspend(t.Context(), d.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(2 * time.Second)
	if b := do(t, again.Clone(t.Context())); b.status != http.StatusOK || b.header.Get("ETag") == a.header.Get("ETag") {
		t.Errorf("after a change: %d", b.status)
	}
}

// One list has one address; what is no list, and what is another Brand's, is not
// found. Yesterday's list is not passed off as today's.
func TestOnlyListsThatAreThereAreServed(t *testing.T) {
	d := newDoor(t, nil)
	d.delegated(t, d.Hotel, d.pa, "bookings:read")
	for _, path := range []string{"/1", "/00", "/+0", "/-0", "/-1", "/0/", "/x", "/0x0", "/0.0", "/%30%30", "/2147483648", "/99999999999999999999", "/"} {
		if a := d.status(t, d.Hotel, path); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	for _, to := range []string{d.issuer(d.Shop) + "/status/0", d.url + "/a2a/nobody/oauth/status/0", d.url + "/a2a/nobody/oauth/status"} {
		if a := do(t, request(t, http.MethodGet, to, "", "")); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", to, a.status)
		}
	}
	if a := d.status(t, d.Hotel, "/0?time=1"); a.status != http.StatusNotImplemented {
		t.Errorf("a former list: %d", a.status)
	}
}

// R55: the metadata names the document that names all lists, each of which
// answers.
func TestAllListsAreNamed(t *testing.T) {
	d := newDoor(t, nil)
	d.delegated(t, d.Hotel, d.pa, "bookings:read")
	meta := do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/.well-known/oauth-authorization-server", "", ""))
	if got := meta.json["status_list_aggregation_endpoint"]; got != d.Hotel.Issuer+"/status" {
		t.Fatalf("named %v", got)
	}
	a := d.status(t, d.Hotel, "")
	want := map[string]any{"status_lists": []any{d.Hotel.Issuer + "/status/0"}}
	if diff := cmp.Diff(want, a.json); a.status != 200 || a.header.Get("Content-Type") != "application/json" || diff != "" {
		t.Errorf("%d %v %s", a.status, a.header, diff)
	}
	if a := d.status(t, d.Shop, ""); a.status != 200 || a.body != `{"status_lists":[]}` {
		t.Errorf("a Brand without lists: %d %s", a.status, a.body)
	}
	d.Save(t, d.Shop, func(b *tenants.Brand) { b.Delegation = false })
	d.Clock.Advance(2 * time.Second)
	if a := d.status(t, d.Shop, ""); a.status != http.StatusNotFound {
		t.Errorf("a Brand that never delegated: %d", a.status)
	}
}

// judge is a verifier that has nothing but keys, a token and a list.
func (d *door) judge(t *testing.T, token, list string) error {
	t.Helper()
	jwks := do(t, request(t, http.MethodGet, d.issuer(d.Hotel)+"/jwks.json", "", ""))
	keys, err := verify.ParseKeys([]byte(jwks.body))
	if err != nil {
		t.Fatal(err)
	}
	delegation, _, err := verify.Token(keys, token, verify.Options{
		Issuer: d.Hotel.Issuer, Audience: d.Hotel.InterfaceURL, Agent: d.pa.Issuer, Now: d.Clock.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	parsed, _, err := verify.ParseStatusList(keys, list, d.Clock.Now())
	if err != nil {
		return err
	}
	_, err = parsed.Judge(delegation, d.Clock.Now())
	return err
}

// B34: a Brand that only holds the list learns of a narrowing, of an end and of
// a suspension within two seconds, from another instance than the one that made
// the change; so it does when the whole Brand is paused or its delegation is off.
func TestWhoHoldsTheListLearnsInSeconds(t *testing.T) {
	d := newDoor(t, nil)
	elsewhere, _ := d.instance(t, nil)
	first := d.delegated(t, d.Hotel, d.pa, "bookings:read account:read").access
	learns := func(what, token string, want error) {
		t.Helper()
		d.Clock.Advance(2 * time.Second)
		a := do(t, request(t, http.MethodGet, elsewhere+"/a2a/harbor-hotel/oauth/status/0", "", ""))
		if err := d.judge(t, token, a.body); a.status != http.StatusOK || !errors.Is(err, want) {
			t.Errorf("%s: %d, %v, want %v", what, a.status, err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	learns("allowed", first, nil)
	must(d.rules.Suspend(t.Context(), d.Hotel.ID, authority.ByOperator(), "guest-7"))
	learns("suspended", first, verify.ErrSuspended)
	must(d.rules.Resume(t.Context(), d.Hotel.ID, authority.ByOperator(), "guest-7"))
	learns("resumed", first, nil)
	must(tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Paused))
	learns("paused", first, verify.ErrSuspended)
	must(tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Active))
	d.Save(t, d.Hotel, func(b *tenants.Brand) { b.Delegation = false })
	learns("delegation off", first, verify.ErrSuspended)
	d.Save(t, d.Hotel, func(b *tenants.Brand) { b.Delegation = true })
	must(d.reg.SetEnabled(t.Context(), d.pa.Issuer, false))
	learns("agent disabled", first, verify.ErrSuspended)
	must(d.reg.SetEnabled(t.Context(), d.pa.Issuer, true))
	learns("agent enabled", first, nil)

	living, err := d.rules.Grants(t.Context(), d.Hotel.ID, "guest-7")
	must(err)
	must(d.rules.EndScopeByUser(t.Context(), d.Hotel.ID, "guest-7", living[0].ID, "account:read"))
	learns("narrowed", first, verify.ErrRevoked)
	second := d.delegated(t, d.Hotel, d.pa, "bookings:read").access
	learns("the narrower token", second, nil)
	must(d.rules.EndByUser(t.Context(), d.Hotel.ID, "guest-7", living[0].ID))
	learns("ended", second, verify.ErrRevoked)
	learns("narrowed, then ended", first, verify.ErrRevoked)
	must(tenants.SetState(t.Context(), d.DB, d.Hotel.ID, tenants.Closed))
	learns("closed", second, verify.ErrRevoked)
}

// R83 (in part): without a signer the last list is served while it is good and says
// what is so, and then 503: never an old one, never one that nobody signed.
func TestStatusListWithoutASigner(t *testing.T) {
	var down atomic.Bool
	var d *door
	d = newDoor(t, signerFunc(func(ctx context.Context, b tenants.BrandID, typ string, payload []byte) (string, error) {
		if down.Load() {
			return "", errors.New("sealed")
		}
		return d.Keys.Sign(ctx, b, typ, payload)
	}))
	d.delegated(t, d.Hotel, d.pa, "bookings:read")
	down.Store(true)
	if a := d.status(t, d.Hotel, "/0"); a.status != 503 || a.header.Get("Retry-After") == "" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("none to serve: %d %v", a.status, a.header)
	}
	down.Store(false)
	d.Clock.Advance(time.Second) // nobody asks the signer sooner
	first := d.status(t, d.Hotel, "/0")
	down.Store(true)
	for range 599 {
		d.Clock.Advance(time.Second)
		if a := d.status(t, d.Hotel, "/0"); a.status != 200 || a.body != first.body {
			t.Fatalf("%d, with a list that is good until then", a.status)
		}
	}
	d.Clock.Advance(time.Second)
	if a := d.status(t, d.Hotel, "/0"); a.status != 503 {
		t.Errorf("an expired list: %d", a.status)
	}
}

// R54: a list that hides a change is not served, nor said not to have been modified;
// and one that nobody can compare says how old it is.
func TestALastListHidesNoChangeFromAnybody(t *testing.T) {
	var down atomic.Bool
	var d *door
	d = newDoor(t, signerFunc(func(ctx context.Context, b tenants.BrandID, typ string, payload []byte) (string, error) {
		if down.Load() {
			return "", errors.New("sealed")
		}
		return d.Keys.Sign(ctx, b, typ, payload)
	}))
	d.delegated(t, d.Hotel, d.pa, "bookings:read")
	first := d.status(t, d.Hotel, "/0")
	if age := first.header.Get("Age"); first.status != 200 || age != "0" {
		t.Errorf("%d, of age %q", first.status, age)
	}
	down.Store(true)
	if err := d.rules.Suspend(t.Context(), d.Hotel.ID, authority.ByOperator(), "guest-7"); err != nil {
		t.Fatal(err)
	}
	d.Clock.Advance(time.Second)
	for _, etag := range []string{"", first.header.Get("ETag")} {
		r := request(t, http.MethodGet, d.issuer(d.Hotel)+"/status/0", "", "")
		r.Header.Set("If-None-Match", etag)
		if a := do(t, r); a.status != 503 || a.header.Get("Retry-After") == "" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("a change that cannot be signed: %d %v", a.status, a.header)
		}
	}
	down.Store(false)
	d.Clock.Advance(time.Second)
	second := d.status(t, d.Hotel, "/0")
	if second.status != 200 || second.body == first.body {
		t.Errorf("signed again: %d", second.status)
	}
	d.Exec(t, `ALTER TABLE status_lists RENAME TO status_lists_away`)
	d.Clock.Advance(20 * time.Second)
	if a := d.status(t, d.Hotel, "/0"); a.status != 200 || a.body != second.body || a.header.Get("Age") != "20" {
		t.Errorf("not to be compared: %d, of age %q", a.status, a.header.Get("Age"))
	}
}

// A status list is no token: introspection does not take one for one.
func TestAStatusListIsNoToken(t *testing.T) {
	d := newDoor(t, nil)
	token := d.delegated(t, d.Hotel, d.pa, "bookings:read").access
	key := d.key(t, d.Hotel, tenants.RightIntrospect)
	list := d.status(t, d.Hotel, "/0").body
	if a := d.introspect(t, d.Hotel, key, list); a.body != `{"active":false}` {
		t.Errorf("introspected: %s", a.body)
	}
	if err := d.judge(t, token, token); !errors.Is(err, verify.ErrType) {
		t.Errorf("a token as a list: %v", err)
	}
	if _, err := d.Keys.Verify(t.Context(), d.Hotel.ID, signing.TypToken, list); !errors.Is(err, signing.ErrNotOurs) {
		t.Error(err)
	}
}
