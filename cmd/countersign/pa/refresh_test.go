package pa

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// loggedIn stores tokens that have left of their life.
func loggedIn(t *testing.T, b *brand, id *Identity, dir string, left time.Duration) (Store, Options) {
	t.Helper()
	o := b.options(id, dir)
	store := Store{Path: o.TokenFile}
	err := store.Put(context.Background(), Tokens{
		Interface: b.URL + "/b", Issuer: b.URL + "/b/oauth", Card: b.URL + "/b/.well-known/agent-card.json",
		Sub: "alex-phone", Audience: audience, AccessToken: "at-0", RefreshToken: "rt-0", Scope: "stay:read",
		ExpiresAt: b.clock.now().Add(left),
	})
	if err != nil {
		t.Fatal(err)
	}
	return store, o
}

func TestATokenIsRefreshedInItsLastMinute(t *testing.T) {
	for _, tt := range []struct {
		left time.Duration
		want Secret
	}{{60 * time.Second, "at-0"}, {59 * time.Second, "at-1"}, {-time.Hour, "at-1"}} {
		id, dir := newIdentity(t)
		b := newBrand(t, id, granted(1, "stay:read stay:change"))
		_, o := loggedIn(t, b, id, dir, tt.left)
		got, err := Current(context.Background(), Which{Card: b.URL + "/b"}, o)
		if err != nil || got.AccessToken != tt.want {
			t.Errorf("%s left: %q, %v", tt.left, string(got.AccessToken), err)
		}
	}
}

func TestTheSuccessorIsStored(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, granted(1, "stay:read stay:change"))
	store, o := loggedIn(t, b, id, dir, time.Hour)
	if _, err := Refresh(context.Background(), Which{}, o); err != nil {
		t.Fatal(err)
	}
	got, err := store.Find(Which{})
	if err != nil || got.RefreshToken != "rt-1" || got.Scope != "stay:read stay:change" {
		t.Errorf("%+v, %v", got, err)
	}
	if sent := b.forms[0]; sent.Get("refresh_token") != "rt-0" || sent.Get("grant_type") != "refresh_token" {
		t.Errorf("%v", sent)
	}
}

// RFC 6749 §6: what an answer leaves out stays as it was.
func TestWhatARefreshLeavesOutStays(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, reply{status: 200, body: `{"token_type":"bearer","access_token":"at-1","expires_in":60}`})
	_, o := loggedIn(t, b, id, dir, 0)
	got, err := Refresh(context.Background(), Which{}, o)
	if err != nil || got.RefreshToken != "rt-0" || got.Scope != "stay:read" {
		t.Errorf("%+v, %v", got, err)
	}
}

// B28: two processes of one agent refresh together. The second one waits and
// uses what the first one got; nothing is presented twice.
func TestTwoThatRefreshTogetherSpendOneToken(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, granted(1, "stay:read"), oauth("invalid_grant"))
	_, o := loggedIn(t, b, id, dir, 0)
	var both sync.WaitGroup
	for range 8 {
		both.Go(func() {
			got, err := Current(context.Background(), Which{}, o)
			if err != nil || got.AccessToken != "at-1" {
				t.Errorf("%q, %v", string(got.AccessToken), err)
			}
		})
	}
	both.Wait()
	if len(b.forms) != 1 {
		t.Errorf("%d refreshes", len(b.forms))
	}
}

// B28, M16: after a lost reply the old refresh token is still there to ask with.
func TestALostReplyLosesNothing(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, reply{}, granted(1, "stay:read"))
	store, o := loggedIn(t, b, id, dir, 0)
	if _, err := Current(context.Background(), Which{}, o); err == nil {
		t.Fatal("no error though nothing arrived")
	}
	if kept, err := store.Find(Which{}); err != nil || kept.RefreshToken != "rt-0" {
		t.Fatalf("%+v, %v", kept, err)
	}
	if got, err := Current(context.Background(), Which{}, o); err != nil || got.AccessToken != "at-1" {
		t.Errorf("%v", err)
	}
}

func TestAnEndedDelegationIsSaidToBe(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, oauth("invalid_grant"))
	store, o := loggedIn(t, b, id, dir, 0)
	if _, err := Current(context.Background(), Which{}, o); !errors.Is(err, ErrEnded) {
		t.Errorf("%v", err)
	}
	// M14: a suspended user's refresh token works again later.
	if _, err := store.Find(Which{}); err != nil {
		t.Errorf("the token was thrown away: %v", err)
	}
}

// A card that names another authority today must not be handed yesterday's
// refresh token.
func TestARefreshTokenGoesOnlyToItsIssuer(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, granted(1, "stay:read"))
	store, o := loggedIn(t, b, id, dir, 0)
	stored, err := store.Find(Which{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.remove(stored); err != nil {
		t.Fatal(err)
	}
	stored.Issuer = "https://old.example/oauth"
	if err := store.Put(context.Background(), stored); err != nil {
		t.Fatal(err)
	}
	if _, err := Current(context.Background(), Which{}, o); !errors.Is(err, ErrEnded) {
		t.Errorf("%v", err)
	}
	if len(b.forms) != 0 {
		t.Error("it was sent")
	}
}

// P35: token and hint, no client_id; forgotten only once the Brand agreed.
func TestRevokeEndsThenForgets(t *testing.T) {
	id, dir := newIdentity(t)
	b := newBrand(t, id, oauth("invalid_grant"))
	store, o := loggedIn(t, b, id, dir, time.Hour)
	b.revoke = http.StatusServiceUnavailable
	if _, err := Revoke(context.Background(), Which{}, o); err == nil {
		t.Error("no error")
	}
	if _, err := store.Find(Which{}); err != nil {
		t.Errorf("forgotten though the Brand did not agree: %v", err)
	}
	b.revoke = http.StatusOK
	if _, err := Revoke(context.Background(), Which{}, o); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Find(Which{}); !errors.Is(err, ErrNoToken) {
		t.Errorf("%v", err)
	}
	form := b.forms[len(b.forms)-1]
	if form.Get("token") != "rt-0" || form.Get("token_type_hint") != "refresh_token" || form.Has("client_id") {
		t.Errorf("%v", form)
	}
}

func TestStoredTokensAreFoundByAnyNameOfTheBrand(t *testing.T) {
	store := Store{Path: filepath.Join(t.TempDir(), "deep", "tokens.json")}
	for _, sub := range []string{"alex", "bo"} {
		err := store.Put(context.Background(), Tokens{
			Interface: "https://h.example/a", Issuer: "https://h.example/a/oauth",
			Card: "https://h.example/a/.well-known/agent-card.json", Sub: sub,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, which := range []Which{
		{Card: "https://h.example/a", Sub: "bo"},
		{Card: "https://h.example/a/", Sub: "bo"},
		{Sub: "bo"},
		{Card: "https://h.example/a/.well-known/agent-card.json", Sub: "bo"},
		{Issuer: "https://h.example/a/oauth", Sub: "bo"},
	} {
		if got, err := store.Find(which); err != nil || got.Sub != "bo" {
			t.Errorf("%+v: %+v, %v", which, got, err)
		}
	}
	if _, err := store.Find(Which{Card: "https://h.example/a"}); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("two users: %v", err)
	}
	if _, err := store.Find(Which{Card: "https://h.example"}); !errors.Is(err, ErrNoToken) {
		t.Errorf("another Brand: %v", err)
	}
}
