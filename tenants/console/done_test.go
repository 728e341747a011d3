package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
)

// Issue 6: whoever works on the Brand reads what was done under a grant, page after
// page; nobody of another Brand does.
func TestAGrantsPageTellsWhatWasDone(t *testing.T) {
	s := newSite(t)
	people := staff(t, s)
	a := s.Authority(nil)
	tokens := s.allow(t, a, s.Hotel, authoritytest.Alex, "guest-7", "bookings:read")
	at := desk + "grants/" + tokens.GrantID.String()
	people["viewer"].open(at).must(200, "What was done", "Nothing was countersigned")
	for n := range 30 {
		s.Clock.Advance(time.Second)
		_, err := a.Countersign(t.Context(), s.Hotel, authority.Turn{
			Token: tokens.JWS, ContextID: "talk", MessageID: fmt.Sprint("m", n), ScopesUsed: []string{"bookings:read"},
			Actions: []authority.Action{{Tool: fmt.Sprintf("tool<%02d>", n)}, {Tool: "other"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first := people["viewer"].open(at).must(200, "tool&lt;29&gt; · other", "tool&lt;05&gt;", "See your bookings", "in the log of receipts")
	if strings.Contains(first.body, "tool&lt;04&gt;") {
		t.Error("more than a page")
	}
	older := ""
	for n := range first.root.Descendants() {
		if href, _ := attr(n, "href"); strings.Contains(href, "before=") {
			older = href
		}
	}
	older, _, _ = strings.Cut(older, "#") // as a browser does
	second := people["viewer"].open(older).must(200, "tool&lt;04&gt;", "tool&lt;00&gt;")
	if strings.Contains(second.body, "tool&lt;05&gt;") {
		t.Error("one stands on two pages")
	}
	people["stranger"].open(at).must(404)
}
