package console_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign.dev/tenants"
)

// A Brand that signs people in on its own page sets that up alone, too; what is
// wrong is said beside the field that it is about, and in the form that was sent.
func TestABrandsOwnSignInPageIsConnected(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	at := hotel + "login"
	owner.open(at).must(http.StatusOK, "Or your own sign-in page")
	form := filled("kind", "assertion", "issuer", "https://login.hotel.example", "login_url", "ftp://hotel.example/login", "jwks_uri", "http://192.168.1.1/keys")
	p := owner.post(at, form, at).must(http.StatusUnprocessableEntity, "ftp://hotel.example/login", `id="field-login_url-problem"`, `id="field-jwks_uri-problem"`)
	if strings.Contains(p.body, `id="field-client_id-problem"`) || strings.Contains(p.body, `id="field-candidate-issuer-problem"`) {
		t.Error("the provider's form is blamed")
	}
	if n := s.Count(t, `SELECT count(*) FROM login_connections WHERE brand_id = 'harbor-hotel' AND kind = 'assertion'`); n != 0 {
		t.Errorf("%d were saved", n)
	}
	host := "login.hotel.test"
	s.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method) VALUES ('harbor-hotel', $1, 'x', $2, $2, 'dns')`, host, s.Clock.Now())
	form.Set("login_url", "https://"+host+"/sign-in")
	form.Set("jwks_uri", "https://"+host+"/jwks.json")
	id := owner.save(at, form)
	p = owner.open(at).must(http.StatusOK, "https://"+host+"/sign-in", "https://"+host+"/jwks.json", "https://login.hotel.example", "Nobody comes in through it yet")
	if p.find("a", "href", at+"/"+id+"/try") != nil {
		t.Error("a test sign-in is offered, which this kind has not")
	}
	owner.open(at + "/" + id + "/try").must(http.StatusNotFound)
	owner.post(at+"/"+id+"/live", p.fields(at+"/"+id+"/live"), at).mustGo(at + "?live")
	l, err := tenants.Login(t.Context(), s.DB, s.Master, "harbor-hotel")
	if err != nil || l.Kind != tenants.KindAssertion || l.LoginOrigin != "https://"+host {
		t.Errorf("%+v, %v", l, err)
	}
}
