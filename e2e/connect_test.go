package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"countersign.dev/consent/federation/demoidp"
	"github.com/chromedp/cdproto/webauthn"
)

// signedUp is a newcomer with a Brand of their own, looked at as an inspector does.
func (p *product) signedUp(t *testing.T, name, id string) *inspector {
	t.Helper()
	i := &inspector{newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal), axe(t), map[string]bool{}}
	email := id + "@example.com"
	i.open(p.PublicURL + "/console/signup")
	i.fill("#field-organisation", name+" Ltd")
	i.fill("#field-brand", name)
	i.fill("#field-email", email)
	i.follow("main form button")
	i.open(p.mailTo(t, i.person, email))
	i.fill("#field-name", "Olga")
	i.follow(passkeyButton)
	i.printCodes()
	i.mustSee("Make your Brand")
	if got := i.value("#field-id"); got != id {
		t.Fatalf("proposed %q", got)
	}
	i.follow("main form button")
	i.mustSee("Overview")
	return i
}

// providerFor is a real OpenID provider that knows the Brand's redirect URI.
func providerFor(t *testing.T, p *product, id, secret string) *demoidp.Provider {
	t.Helper()
	idp, err := demoidp.New(demoidp.Config{
		Name: "Lantern Inn", Colour: "#7a3b12", ClientID: "countersign", ClientSecret: secret,
		RedirectURIs: []string{p.PublicURL + "/b/" + id + "/callback"},
		Users: []demoidp.User{{
			Username: "wen", Password: "lantern", Subject: "login-wen", Name: "Wen Li", Email: "wen@example.com",
			Claims: map[string]any{"guest_number": "G-4711"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := idp.Start(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = idp.Close() })
	return idp
}

// A new Brand sets up where its customers sign in and where its agent answers, and
// an owner says yes to what a program asks for; every page looked at on the way.
func TestABrandConnectsItsLogin(t *testing.T) {
	const id, secret = "lantern-inn", "a-secret-of-the-lantern"
	p := theProduct(t)
	i := p.signedUp(t, "Lantern Inn", id)
	idp := providerFor(t, p, id, secret)
	at := p.PublicURL + "/console/b/" + id + "/"

	i.follow(`.todo a[href$="/domains"]`)
	i.mustSee("Domains")
	i.inspect("setup-domains-empty")
	i.fill("#field-host", "https://Lantern.test/")
	i.follow("main form button")
	i.mustRead("lantern.test", "Not proven yet", "_countersign.lantern.test", "countersign-proof=")
	// What is to be copied holds nothing that only makes it fit the page.
	if got := evaluate[string](i.person, `document.querySelector(".copy").textContent`); got != "https://lantern.test/.well-known/countersign-proof" {
		t.Errorf("to be copied: %q", got)
	}
	i.follow(`form[action$="/check"] button`)
	i.mustRead("What the check found:", "there is no such record")
	i.inspect("setup-domains")

	i.follow(`nav a[href$="/login"]`)
	i.mustSee("Sign-in of your customers")
	i.inspect("setup-login-empty")
	i.fill("#field-issuer", idp.Issuer()+"/")
	i.follow(`form[action$="/login/look"] button`)
	i.mustRead("Wrong", "Take the provider's spelling")
	i.inspect("setup-login-spelling")
	i.follow(`.found form[action$="/login/look"] button`)
	if strings.Contains(i.reads(), "Wrong") || i.value("#field-candidate-issuer") != idp.Issuer() {
		t.Errorf("the provider's own spelling is not taken: %s", i.value("#field-candidate-issuer"))
	}
	i.inspect("setup-login-found")
	i.fill("#field-client_id", "countersign")
	i.fill("#field-client_secret", secret)
	i.fill("#field-subject_claim", "guest_number")
	i.fill("#field-scopes", "email profile")
	i.follow(`form[action$="/` + id + `/login"] button`)
	i.mustRead("The candidate is saved", "Nobody comes in through it yet")
	i.follow(`main a[href$="/try"]`)
	i.fill("input[name=username]", "wen")
	i.fill("input[name=password]", "lantern")
	i.follow("button[type=submit]")
	i.mustSee("The sign-in works")
	i.mustRead("G-4711", "wen@example.com", "Would become “sub”")
	i.inspect("setup-login-tried")
	again := i.address()
	i.follow(`form[action$="/live"] button`)
	i.mustRead("Customers sign in through it now")
	i.inspect("setup-login-live")
	if status := i.open(again); status != http.StatusBadRequest {
		t.Errorf("the answer to a test login counts again: %d", status)
	}

	i.open(at + "interface")
	i.mustSee("Interface")
	i.follow(`form[action$="/interface/check"] button`)
	i.mustRead("What a strict agent finds", "Good")
	i.inspect("setup-interface")
	evaluate[bool](i.person, `(document.querySelector("#field-mode").value = "split", true)`)
	evaluate[bool](i.person, `(document.querySelector("#field-interface_url").value = "http://localhost:9/agents", true)`)
	i.follow(`form[action$="/interface/move"] button`)
	i.mustSee("Before you move")
	i.mustRead("ends all 0 living permissions", "Strict agents refuse", "urn:countersign:provider:"+id)
	i.inspect("setup-move")
	i.fill("#field-confirm", id)
	i.follow("main form button")
	i.mustRead("The interface has moved", "http://localhost:9/agents")

	// A program asks for a key of its own.
	out, exit := p.run(t, "", "apikey", "create", "--as-operator", "--database-url", p.DatabaseURL, "--brand", id, "--name", "setup", "--rights", "admin")
	key := regexp.MustCompile(`cs_\w+`).FindString(out)
	if exit != 0 || key == "" {
		t.Fatalf("no key: %d %s", exit, out)
	}
	ask := func(path, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.PublicURL+"/api/v1/brands/"+id+"/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if said, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusAccepted {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, said)
		}
	}
	ask("api-keys", `{"name":"checkout","rights":["introspect"]}`)
	ask("api-keys", `{"name":"evil","rights":["admin"]}`)
	i.open(at)
	i.mustRead("A change waits for an owner")
	i.open(at + "changes")
	i.mustRead("checkout", "introspect", "evil")
	i.inspect("setup-changes")
	i.follow(`form[action$="/reject"] button`) // the newest one
	p.staleTouches(t)
	i.follow(`form[action$="/approve"] button`)
	i.mustSee("Is it you?")
	i.follow(passkeyButton)
	i.follow(`form[action$="/approve"] button`)
	i.mustSee("The new API key")
	i.mustRead("cs_")
	i.inspect("setup-key")
	i.follow("main a.button")
	i.mustRead("Nothing waits", "Approved", "Rejected")

	for _, page := range []string{"domains", "interface", "login", "changes"} {
		i.open(at + page + "?ui_locales=zh-Hant")
		i.inspect("setup-" + page + "-zh")
	}
	fmt.Fprintf(os.Stderr, "%d pages were examined\n", len(i.names))
}
