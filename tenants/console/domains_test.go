package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
)

var tokenShape = regexp.MustCompile(`countersign-proof=\w+`)

// From a name to a proven domain, and what is said when the proof is gone again.
func TestADomainIsProvenOnThePage(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	at := hotel + "domains"
	owner.open(at).must(http.StatusOK, "No domain yet")
	for _, wrong := range []string{"", "localhost", "10.0.0.1", "hotel.example/path?x", "<script>alert(1)</script>"} {
		p := owner.post(at, filled("host", wrong), at).must(http.StatusUnprocessableEntity, "no host name")
		if strings.Contains(p.body, "<script>alert") {
			t.Error("what was typed runs")
		}
	}
	s.told(t, "domain.added", 0)
	for range 2 { // twice is once
		owner.post(at, filled("host", "https://Hotel.example/"), at).mustGo(at)
	}
	s.told(t, "domain.added", 1)
	p := owner.open(at).must(http.StatusOK, "Not proven yet", "https://hotel.example/.well-known/countersign-proof", "_countersign.hotel.example")
	token := tokenShape.FindString(p.body)

	check := hotel + "domains/hotel.example/check"
	owner.post(check, nil, at).mustGo(at + "?checked")
	owner.open(at+"?checked").must(http.StatusOK, "Not proven yet", "the host answers 404", "there is no such record", "Checked just now")

	s.published.put(s.published.records, "_countersign.hotel.example", token)
	owner.post(check, nil, at).mustGo(at + "?checked")
	owner.open(at).must(http.StatusOK, "Proven since", "by DNS")

	s.published.put(s.published.records, "_countersign.hotel.example", "")
	owner.post(check, nil, at).must(http.StatusSeeOther)
	owner.open(at).must(http.StatusOK, "Proof not found")
	s.Clock.Advance(8 * 24 * time.Hour)
	owner.login().must(http.StatusSeeOther)
	owner.open(at).must(http.StatusOK, ">Lost<")
}

// The last proven domain stays, one that is leant on stays, and another goes.
func TestADomainIsRemovedWithCare(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	at := hotel + "domains"
	for _, host := range []string{"hotel.example", "other.example"} {
		s.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method)
			VALUES ('harbor-hotel', $2, $2, $1, $1, 'dns')`, s.Clock.Now(), host)
	}
	s.Exec(t, `UPDATE brands SET support_url = 'https://hotel.example/help' WHERE id = 'harbor-hotel'`)
	owner.post(at+"/hotel.example/remove", nil, at).must(http.StatusConflict, "It is on hotel.example")
	owner.post(at+"/other.example/remove", nil, at).mustGo(at)
	owner.post(at+"/other.example/remove", nil, at).must(http.StatusNotFound)
	owner.post(at+"/hotel.example/remove", nil, at).must(http.StatusConflict, "last proven domain")
	s.told(t, "domain.removed", 1)

	stranger := s.become(t, "stan@example.com", "Stan")
	s.own(t, stranger, "fern-and-fell", tenants.Owner)
	stranger.post("/console/b/fern-and-fell/domains/hotel.example/remove", nil, "").must(http.StatusNotFound)
	stranger.post("/console/b/fern-and-fell/domains/hotel.example/check", nil, "").must(http.StatusNotFound)
}

// Looks at other servers are not to be had without end.
func TestLooksOutsideAreCounted(t *testing.T) {
	s := newSite(t)
	owner := s.owner(t, "harbor-hotel")
	owner.post(hotel+"domains", filled("host", "hotel.example"), "").must(http.StatusSeeOther)
	last := 0
	for range 130 {
		if last = owner.post(hotel+"domains/hotel.example/check", nil, "").status; last == http.StatusTooManyRequests {
			break
		}
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("it ends with %d", last)
	}
}
