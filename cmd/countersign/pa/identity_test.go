package pa

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority/verify"
)

func TestAnIdentityIsTheSameAfterLoading(t *testing.T) {
	made, dir := newIdentity(t)
	loaded, err := LoadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Issuer != made.Issuer || loaded.JWKSURI != made.JWKSURI || loaded.Name != "Aria" || loaded.Audience != audience {
		t.Errorf("%+v", loaded)
	}
	if string(loaded.PublicJWKS()) != string(made.PublicJWKS()) {
		t.Error("another key")
	}
	again, err := CreateIdentity(dir, "http://localhost:9/agent", "http://localhost:9/jwks.json", "Aria")
	if err != nil || again.KeyID() != made.KeyID() {
		t.Errorf("creating it again changed the key: %v", err)
	}
}

func TestTheAgentFileIsTheOneDevWrites(t *testing.T) {
	_, dir := newIdentity(t)
	data, err := os.ReadFile(filepath.Join(dir, "agent", "agent.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"issuer", "jwks_uri", "name", "audience"} {
		if got[name] == "" {
			t.Errorf("%s is missing: %s", name, data)
		}
	}
}

func TestAKeyThatOthersCanReadIsRefused(t *testing.T) {
	_, dir := newIdentity(t)
	path := filepath.Join(dir, "agent", "key.json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadIdentity(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%#o: %v", mode, err)
		}
	}
}

// P37, R56: what is published holds no private member.
func TestThePublishedKeysArePublic(t *testing.T) {
	id, _ := newIdentity(t)
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(id.PublicJWKS(), &set); err != nil {
		t.Fatal(err)
	}
	key := set.Keys[0]
	if _, there := key["d"]; there || key["kid"] != id.KeyID() || key["alg"] != "ES256" || key["use"] != "sig" {
		t.Errorf("%v", key)
	}
}

// RFC 7638 §3, worked out by hand from the published members.
func TestTheKeyIDIsTheThumbprint(t *testing.T) {
	id, dir := newIdentity(t)
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(id.PublicJWKS(), &set); err != nil {
		t.Fatal(err)
	}
	canonical := fmt.Sprintf(`{"crv":"P-256","kty":"EC","x":%q,"y":%q}`, set.Keys[0]["x"], set.Keys[0]["y"])
	sum := sha256.Sum256([]byte(canonical))
	want := base64.RawURLEncoding.EncodeToString(sum[:])
	if id.KeyID() != want {
		t.Errorf("%s, want %s", id.KeyID(), want)
	}
	elsewhere, err := IdentityFromKey(filepath.Join(dir, "agent", "key.json"), "https://other.example")
	if err != nil || elsewhere.KeyID() != want || elsewhere.Issuer != "https://other.example" {
		t.Errorf("%v", err)
	}
}

func TestNoIdentityIsSaidToBeMissing(t *testing.T) {
	if _, err := LoadIdentity(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	_, dir := newIdentity(t)
	if _, err := IdentityFromKey(filepath.Join(dir, "agent", "key.json"), ""); err == nil {
		t.Error("a key without an issuer was taken")
	}
}

// M1 and M3–M5, judged by the Brand's own check.
func TestWhatIsSignedIsAccepted(t *testing.T) {
	id, _ := newIdentity(t)
	keys, err := verify.ParseKeys(id.PublicJWKS())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 500e6, time.UTC)
	signed, err := id.Sign(Claims{Sub: "alex-phone", Aud: audience, IssuedAt: now, Expires: now.Add(maxLife)})
	if err != nil {
		t.Fatal(err)
	}
	agent, _, err := verify.PAJWT(keys, signed, audience, now)
	if err != nil || agent.Issuer != id.Issuer || agent.Subject != "alex-phone" {
		t.Errorf("%+v, %v", agent, err)
	}
}

func TestWhatABrandWouldRefuseIsNotSigned(t *testing.T) {
	id, _ := newIdentity(t)
	now := time.Now()
	for name, c := range map[string]Claims{
		"no sub":         {Aud: audience},
		"a long sub":     {Sub: strings.Repeat("ä", 257), Aud: audience},
		"no audience":    {Sub: "a"},
		"a long life":    {Sub: "a", Aud: audience, IssuedAt: now, Expires: now.Add(301 * time.Second)},
		"no life at all": {Sub: "a", Aud: audience, IssuedAt: now, Expires: now},
	} {
		if _, err := id.Sign(c); err == nil {
			t.Errorf("%s was signed", name)
		}
	}
}

// M3: a pa-jwt names the audience of the Brand's own Provider. Where the audiences
// are known, a Brand that is not among them is told none: it could use what it is
// told at the others.
func TestWhichAudienceABrandIsTold(t *testing.T) {
	id, dir := newIdentity(t)
	if got := id.audienceAt("https://anybody.example"); got != audience {
		t.Errorf("one audience for all: %q", got)
	}
	at := map[string]string{"https://host.example/a2a/": "urn:shared", "https://shop.example/support": "urn:shop"}
	if err := id.StoreAudiences("urn:shared", at); err != nil {
		t.Fatal(err)
	}
	id, err := LoadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	for brand, want := range map[string]string{
		"https://shop.example/support":     "urn:shop",
		"https://host.example/a2a/hotel":   "urn:shared",
		"https://host.example/a2a":         "",
		"https://host.example.evil/a2a/x":  "",
		"https://shop.example/support/oh":  "",
		"https://evil.example/a2a/hotel":   "",
		"https://evil.example/support?x=1": "",
	} {
		if got := id.audienceAt(brand); got != want {
			t.Errorf("%s is told %q, not %q", brand, got, want)
		}
	}
}
