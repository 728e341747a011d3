package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
)

// A Brand engineer who has never heard of it gets from the sign-up page to a
// delegation that is verified, alone: a mailed link, a passkey, a permission, the
// customers' own sign-in at a real OpenID provider, and a try by the test agent,
// whose token is checked as the Brand's server would. Then the permission is ended
// on the dashboard, and the agent has nothing.
func TestFromSignUpToTheFirstVerifiedToken(t *testing.T) {
	const id, secret = "tide-house", "a-secret-of-the-tide"
	p := theProduct(t)
	idp := providerFor(t, p, id, secret)
	began := time.Now()
	type lap struct {
		what string
		at   time.Duration
	}
	var laps []lap
	done := func(what string) { laps = append(laps, lap{what, time.Since(began)}) }

	olga := newPerson(t, p).holding(webauthn.AuthenticatorTransportInternal)
	olga.open(p.PublicURL + "/")
	olga.open(p.PublicURL + "/console")
	olga.follow(`main a[href="/console/signup"]`)
	olga.fill("#field-organisation", "Tide House Ltd")
	olga.fill("#field-brand", "Tide House")
	olga.fill("#field-email", "olga@tide-house.example")
	olga.follow("main form button")
	olga.open(p.mailTo(t, olga, "olga@tide-house.example"))
	olga.fill("#field-name", "Olga")
	olga.follow(passkeyButton)
	olga.printCodes()
	olga.mustSee("Make your Brand")
	olga.follow("main form button")
	olga.mustSee("Overview")
	done("signed up, with a passkey and a signing key")

	olga.follow(`.todo a[href$="/permissions"]`)
	olga.follow(`main a[href$="/permissions/new"]`)
	olga.fill("#field-id", "stays:read")
	olga.fill("#field-description", "See your stays: dates and rooms")
	olga.follow(`form[action$="/permissions/one"] .act button`)
	olga.mustRead("See your stays")
	done("a permission is on the card")

	olga.open(p.PublicURL + "/console/b/" + id + "/")
	olga.follow(`.todo a[href$="/login"]`)
	olga.fill("#field-issuer", idp.Issuer())
	olga.follow(`form[action$="/login/look"] button`)
	olga.mustRead("Good")
	olga.fill("#field-client_id", "countersign")
	olga.fill("#field-client_secret", secret)
	olga.fill("#field-subject_claim", "guest_number")
	olga.follow(`form[action$="/` + id + `/login"] button`)
	olga.mustRead("The candidate is saved")
	olga.follow(`main a[href$="/try"]`)
	olga.fill("input[name=username]", "wen")
	olga.fill("input[name=password]", "lantern")
	olga.follow("button[type=submit]")
	olga.mustSee("The sign-in works")
	olga.follow(`form[action$="/live"] button`)
	olga.mustRead("Customers sign in through it now")
	done("customers sign in at the Brand's own provider")

	olga.open(p.PublicURL + "/console/b/" + id + "/try")
	olga.follow(`form[action$="/try"] button`)
	olga.mustRead("Nobody has decided yet")
	link := evaluate[string](olga, `document.querySelector(".ask .ways a").href`)
	wen := newPerson(t, p)
	wen.open(link)
	wen.mustRead("Tide House")
	wen.follow("main a.button")
	wen.fill("input[name=username]", "wen")
	wen.fill("input[name=password]", "lantern")
	wen.follow("button[type=submit]")
	wen.mustRead("See your stays: dates and rooms")
	wen.allow()
	for range eventually(t) {
		olga.open(p.PublicURL + "/console/b/" + id + "/try")
		if !strings.Contains(olga.text("main"), "Nobody has decided yet") {
			break
		}
	}
	olga.mustRead("The token is verified", "G-4711", "stays:read", "signature")
	done("a delegation is verified")

	olga.open(p.PublicURL + "/console/b/" + id + "/grants")
	olga.mustRead("G-4711")
	olga.follow(`main td a[href*="/grants/"]`)
	olga.mustRead("See your stays")
	olga.follow(`main a[href*="/grants/end"]`)
	olga.follow("main form button")
	if n := p.count(t, `SELECT count(*) FROM grants WHERE brand_id = $1 AND ended_at IS NULL`, id); n != 0 {
		t.Errorf("%d grants live after the end", n)
	}
	done("ended on the dashboard")

	fmt.Fprintln(os.Stderr, "from sign-up to the first verified token, by a machine that reads nothing:")
	for _, l := range laps {
		fmt.Fprintf(os.Stderr, "%8s  %s\n", l.at.Round(100*time.Millisecond), l.what)
	}
}
