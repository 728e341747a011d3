package consent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
)

// Issue 6: a person reads what was done under each permission that they gave, in
// words, the latest first, page after page; and never what was done for another.
func TestAPersonReadsWhatWasDone(t *testing.T) {
	s := newSite(t)
	p := s.person(t)
	mine := s.allow(t, s.Hotel, authoritytest.Alex, alexAtHotel, "bookings:read")
	sams := s.allow(t, s.Hotel, authority.Caller{Agent: authoritytest.Agent, Sub: "sam-phone"}, samAtHotel, "bookings:read")
	serve := func(a *allowed, n int) {
		t.Helper()
		_, err := s.rules.Countersign(t.Context(), s.Hotel, authority.Turn{
			Token: a.tokens.JWS, ContextID: "talk", MessageID: fmt.Sprint("m", n), ScopesUsed: []string{"bookings:read"},
			Actions: []authority.Action{{Tool: fmt.Sprintf("tool<%02d>", n)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(time.Second)
	}
	agents := s.mine(t, p, s.Hotel, "alex")
	look := agents.link(t, "agent="+mine.id)
	if at := p.open(look); strings.Contains(at.words(), "What it did") {
		t.Errorf("it did something: %s", at.words())
	}
	for n := range 25 {
		serve(mine, n)
	}
	serve(sams, 99)
	first := p.open(look)
	second := p.open(first.link(t, "before="))
	for page, text := range map[string]string{"first": first.words(), "second": second.words()} {
		for n := range 25 {
			if there := strings.Contains(text, fmt.Sprintf("tool<%02d>", n)); there != ((n >= 5) == (page == "first")) {
				t.Errorf("the %s page has number %d: %v", page, n, there)
			}
		}
		for _, word := range []string{"99", "bookings:read", "eyJ", "scope", "grant", "token"} {
			if strings.Contains(text, word) {
				t.Errorf("the %s page says %q", page, word)
			}
		}
		if !strings.Contains(text, "See your bookings") || !strings.Contains(text, "As Harbor Hotel recorded it") {
			t.Errorf("%s", text)
		}
	}
	if at := p.open(look + "&before=nonsense"); !strings.Contains(at.words(), "tool<24>") {
		t.Errorf("%s", at.words())
	}
	// Another's is not shown, whatever the address says.
	if at := p.open(strings.Replace(look, mine.id, sams.id, 1)); strings.Contains(at.words(), "tool<99>") {
		t.Errorf("%s", at.words())
	}
}
