package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"github.com/google/uuid"
	"golang.org/x/net/html"
)

const desk = "/console/b/harbor-hotel/"

// staff is the hotel with one member of every role, and a stranger who owns
// another Brand.
func staff(t *testing.T, s *site) map[string]*visitor {
	t.Helper()
	_, people := team(t, s)
	for _, role := range tenants.Roles() {
		s.Exec(t, `INSERT INTO memberships VALUES ('harbor-hotel', $1, $2, $3, $3)`, s.person(t, string(role)+"@example.com"), role, s.Clock.Now())
	}
	return people
}

// allow makes a grant as an agent and a person would, and returns what it paid.
func (s *site) allow(t *testing.T, a *authority.Authority, brand *tenants.Brand, who authority.Caller, subject string, scopes ...string) authority.Tokens {
	t.Helper()
	started := authoritytest.Begin(t, a, brand, who, scopes...)
	authoritytest.Approve(t, a, brand, started, subject, scopes...)
	tokens, err := a.Poll(t.Context(), brand, who, started.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// many makes living grants behind the rules' back, one customer each.
func (s *site) many(t *testing.T, n int) {
	t.Helper()
	s.Exec(t, `INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at)
		SELECT 'harbor-hotel', (lpad(to_hex(1764000000000 + n), 12, '0') || '7000' || '8' || substr(md5(n::text), 1, 15))::uuid,
		       $1, 'p' || n, 'guest-' || n, '{bookings:read}', $2, $2::timestamptz + interval '9 days'
		  FROM generate_series(1, $3::int) AS n`, authoritytest.Agent, s.Clock.Now(), n)
}

func (s *site) living(t *testing.T) int {
	t.Helper()
	return s.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NULL`)
}

// boxes are the ids that can be ticked, in the page's order.
func (p page) boxes() []string {
	var out []string
	for n := range p.root.Descendants() {
		if name, _ := attr(n, "name"); n.Data == "input" && name == "g" {
			id, _ := attr(n, "value")
			out = append(out, id)
		}
	}
	return out
}

// linkOf is where the link with these words leads.
func (p page) linkOf(words string) string {
	for n := range p.root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "a" && strings.TrimSpace(textOf(n)) == words {
			href, _ := attr(n, "href")
			return href
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func storyOf(id uuid.UUID) string { return desk + "grants/" + id.String() }

// Walking the pages shows every grant once, also while others are made.
func TestGrantsArePagedByTheirKey(t *testing.T) {
	s := newSite(t)
	viewer := staff(t, s)["viewer"]
	s.many(t, 120)
	var seen []string
	at := desk + "grants"
	for range 5 {
		p := viewer.open(at).must(http.StatusOK)
		for n := range p.root.Descendants() {
			if href, _ := attr(n, "href"); n.Data == "a" && strings.HasPrefix(href, desk+"grants/0") {
				seen = append(seen, strings.TrimPrefix(href, desk+"grants/"))
			}
		}
		if len(p.boxes()) != 0 {
			t.Fatal("a viewer is offered boxes")
		}
		if at = p.linkOf("Older"); at == "" {
			break
		}
		s.Exec(t, `INSERT INTO grants (brand_id, id, agent, agent_sub, subject, scopes, created_at, expires_at)
			SELECT 'harbor-hotel', (lpad(to_hex(1765000000000 + $2::int), 12, '0') || '70008' || substr(md5($2::text), 1, 15))::uuid,
			       'https://late.example', 'late-' || $2, 'late', '{bookings:read}', $1, $1::timestamptz + interval '9 days'`, s.Clock.Now(), len(seen))
	}
	if len(seen) != 120 || len(slices.Compact(slices.Clone(seen))) != 120 || !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%d were seen", len(seen))
	}
}

// A filter shows what matches all of it, and one that cannot be understood shows
// nothing rather than everything.
func TestGrantsAreFiltered(t *testing.T) {
	s := newSite(t)
	a := s.Authority(nil)
	support := staff(t, s)["support"]
	s.allow(t, a, s.Hotel, authoritytest.Alex, "guest-7", "bookings:read", "account:read")
	other := s.allow(t, a, s.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "x"}, "guest-8", "bookings:read")
	s.allow(t, a, s.Shop, authoritytest.Alex, "guest-9", "orders:read")
	if _, err := a.End(t.Context(), s.Hotel.ID, authority.ByOperator(), authority.Which{Grant: other.GrantID}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":                                   "guest-7 guest-8",
		"subject=guest-7":                    "guest-7",
		"subject=guest-9":                    "",
		"agent=https://other.example":        "guest-8",
		"scope=account:read":                 "guest-7",
		"scope=bookings:read&state=ended":    "guest-8",
		"state=living":                       "guest-7",
		"subject=guest-7&state=ended":        "",
		"subject=guest-7&ui_locales=zh-Hant": "guest-7",
	} {
		p := support.open(desk + "grants?" + query).must(http.StatusOK)
		var got []string
		if table := p.find("table", "class", "table grants"); table != nil {
			for _, who := range []string{"guest-7", "guest-8", "guest-9"} {
				if strings.Contains(textOf(table), who) {
					got = append(got, who)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	support.open(desk + "grants?ui_locales=en").must(http.StatusOK)
	for _, query := range []string{
		"state=king", "after=x", "subject=a&subject=b", "subject=%00", "subject=%ff", "subject=" + strings.Repeat("x", 501),
	} {
		support.open(desk + "grants?" + query).must(http.StatusNotFound)
	}
	// An id is somebody else's words, on the page and in the command.
	p := support.open(desk+"grants?subject="+url.QueryEscape(`<b>';rm -rf ~`)).must(http.StatusOK, `--subject &#39;&lt;b&gt;&#39;\&#39;&#39;;rm -rf ~&#39;`)
	if strings.Contains(p.body, "<b>'") {
		t.Error("a customer's id is markup")
	}
}

// B29, P33: whoever may ends one permission, one grant, those that were ticked or
// all of a customer, hears beforehand what exactly ends and afterwards what did,
// and the agent's next refresh finds out.
func TestTheDeskEndsGrants(t *testing.T) {
	s := newSite(t)
	a := s.Authority(nil)
	support := staff(t, s)["support"]
	aria := func(n int) authority.Caller {
		return authority.Caller{Agent: authoritytest.Agent, Sub: fmt.Sprint("person-", n)}
	}
	var paid []authority.Tokens
	for i := range 5 {
		paid = append(paid, s.allow(t, a, s.Hotel, aria(i), fmt.Sprint("guest-", i), "bookings:read", "account:read"))
	}
	second := s.allow(t, a, s.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "x"}, "guest-4", "bookings:read")
	again := func(i int, want string) {
		t.Helper()
		tokens, err := a.Refresh(t.Context(), s.Hotel, aria(i), paid[i].Refresh, nil)
		if got := strings.Join(tokens.Scopes, " "); got != want || (err == nil) != (want != "") {
			t.Errorf("person %d holds %q (%v), want %q", i, got, err, want)
		}
		if err == nil {
			paid[i] = tokens
		}
	}
	confirm := func(query string, words ...string) page {
		t.Helper()
		return support.open(desk+"grants/end?"+query).must(http.StatusOK, words...)
	}
	do := func(p page, words ...string) {
		t.Helper()
		support.post(desk+"grants/end", p.fields(desk+"grants/end"), desk+"grants/end").must(http.StatusOK, words...)
	}

	// One permission.
	p := confirm("g="+paid[0].GrantID.String()+"&scope=account:read", "Take away “<bdi>See your name and contact details</bdi>”?", "guest-0")
	if s.living(t) != 6 {
		t.Fatal("looking ended something")
	}
	do(p, "is taken away")
	again(0, "bookings:read")
	do(p, "had ended already")
	again(0, "bookings:read")

	// One grant.
	p = confirm("g="+paid[1].GrantID.String(), "End this grant?", "1 customer is affected", "guest-1", "cannot be undone")
	do(p, "1 grant has ended")
	again(1, "")
	do(p, "Nothing ended")
	support.open(storyOf(paid[1].GrantID)).must(http.StatusOK, "Ended", "By <bdi>support</bdi>", "<bdi>Harbor Hotel</bdi> ended it")

	// Those that were ticked: of the list, and only what still lives.
	list := support.open(desk + "grants").must(http.StatusOK)
	if ids := list.boxes(); len(ids) != 5 || slices.Contains(ids, paid[1].GrantID.String()) {
		t.Fatalf("%v can be ticked", ids)
	}
	p = confirm("g="+paid[0].GrantID.String()+"&g="+paid[1].GrantID.String()+"&g="+paid[2].GrantID.String(), "End 2 grants?", "2 customers are affected", "1 agent loses")
	do(p, "2 grants have ended")
	again(0, "")
	again(2, "")
	again(3, "bookings:read account:read")

	// All of a customer, with what was allowed since the page was shown.
	p = confirm("subject=guest-4", "2 grants end", "1 customer is affected", "2 agents lose", "between now and your click")
	do(p, "2 grants have ended")
	again(4, "")
	if _, err := a.Refresh(t.Context(), s.Hotel, authority.Caller{Agent: authoritytest.OtherAgent, Sub: "x"}, second.Refresh, nil); err == nil {
		t.Error("the customer's other agent goes on")
	}
	if n := s.living(t); n != 1 {
		t.Errorf("%d live", n)
	}
	me := s.person(t, "support@example.com").String()
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event IN ('grant.revoked', 'grant.narrowed') AND actor = 'admin' AND channel = 'console' AND actor_id = $1`, me); n != 6 {
		t.Errorf("%d facts tell of it", n)
	}
}

// Nobody ends anything of another Brand, by no road, nor without saying what.
func TestTheDeskEndsOnlyItsOwn(t *testing.T) {
	s := newSite(t)
	a := s.Authority(nil)
	people := staff(t, s)
	theirs := s.allow(t, a, s.Shop, authoritytest.Alex, "guest-7", "orders:read")
	mine := s.allow(t, a, s.Hotel, authoritytest.Alex, "guest-7", "bookings:read")
	owner := people["owner"]
	id := theirs.GrantID.String()
	owner.open(storyOf(theirs.GrantID)).must(http.StatusNotFound)
	owner.open(desk + "grants/end?g=" + id).must(http.StatusNotFound)
	owner.open(desk + "grants/end").mustGo(desk + "grants") // nothing was ticked
	owner.post(desk+"grants/end", url.Values{"grants": {id}}, "").must(http.StatusOK, "Nothing ended")
	owner.post(desk+"grants/end", url.Values{"grants": {id}, "scope": {"orders:read"}}, "").must(http.StatusOK, "Nothing ended")
	var many []string
	for range 51 {
		many = append(many, uuid.NewString())
	}
	for _, form := range []url.Values{
		nil,
		{"grants": {""}},
		{"subject": {""}},
		{"subject": {"\x00"}},
		{"grants": {strings.Join(many, " ")}},
		{"grants": {mine.GrantID.String()}, "subject": {"guest-7"}},
		{"subject": {"guest-7"}, "scope": {"bookings:read"}},
		{"grants": {mine.GrantID.String() + " " + id}, "scope": {"bookings:read"}},
	} {
		owner.post(desk+"grants/end", form, "").must(http.StatusBadRequest)
	}
	owner.post(desk+"grants/end", url.Values{"grants": {"x"}}, "").must(http.StatusNotFound)
	for _, form := range []url.Values{nil, {"agent": {""}}, {"agent": {"\xff"}}, {"subject": {"guest-7"}}} {
		owner.post(desk+"end-agent", form, "").must(http.StatusBadRequest)
	}
	// Not from another website, and not by somebody whose role only looks.
	form := url.Values{"grants": {mine.GrantID.String()}}
	attacked := people["support"]
	attacked.header = http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}}
	for _, at := range []string{"grants/end", "end-agent", "users/suspend", "users/resume"} {
		attacked.post(desk+at, form, "").must(http.StatusForbidden)
	}
	for _, at := range []string{"grants/end", "users/suspend", "users/resume", "end-agent"} {
		people["viewer"].post(desk+at, form, "").must(http.StatusForbidden, refusedByRole)
		people["stranger"].post(desk+at, form, "").must(http.StatusNotFound)
	}
	people["viewer"].open(desk + "grants/end?g=" + mine.GrantID.String()).must(http.StatusForbidden)
	if p := people["viewer"].open(storyOf(mine.GrantID)).must(http.StatusOK); p.linkOf("End this grant …") != "" {
		t.Error("a viewer is offered to end")
	}
	if n := s.living(t); n != 2 {
		t.Errorf("%d live", n)
	}
	if n := s.Count(t, `SELECT count(*) FROM suspended_users`); n != 0 {
		t.Errorf("%d are suspended", n)
	}
}

// All of an agent is every customer's: not support's, under a fresh touch, some
// thousands at a time, and the page says how many are left.
func TestAnAgentEndsStepByStep(t *testing.T) {
	s := newSite(t)
	people := staff(t, s)
	const all = 5_120
	s.many(t, all)
	at, form := desk+"end-agent", url.Values{"agent": {authoritytest.Agent}}
	confirm := at + "?agent=" + url.QueryEscape(authoritytest.Agent)
	people["support"].open(confirm).must(http.StatusForbidden, refusedByRole)
	people["support"].post(at, form, confirm).must(http.StatusForbidden, refusedByRole)
	guard := people["security"]
	s.Clock.Advance(5 * time.Minute)
	p := guard.open(confirm).must(http.StatusOK, "5120 grants end", "5120 customers are affected", "can ask again")
	guard.post(at, p.fields(at), confirm).mustGo("/console/touch?back=" + url.QueryEscape(confirm))
	if s.living(t) != all {
		t.Fatal("it ended without a touch")
	}
	guard.touch().mustGo("/console/brands")
	p = guard.post(at, p.fields(at), confirm).must(http.StatusOK, "5000 grants have ended", "120 are left")
	guard.post(at, p.fields(at), at).must(http.StatusOK, "120 grants have ended", "It has ended")
	guard.post(at, p.fields(at), at).must(http.StatusOK, "Nothing ended")
	if s.living(t) != 0 {
		t.Error("some live")
	}
	guard.open(confirm).must(http.StatusOK, "There is nothing to end")
}

// A suspended customer's agents get nothing, and all of it comes back.
func TestTheDeskSuspendsAndLetsGoOn(t *testing.T) {
	s := newSite(t)
	a := s.Authority(nil)
	support := staff(t, s)["support"]
	paid := s.allow(t, a, s.Hotel, authoritytest.Alex, "guest/7 ?", "bookings:read")
	where := desk + "grants?" + url.Values{"subject": {"guest/7 ?"}}.Encode()
	p := support.open(where).must(http.StatusOK)
	p = support.open(p.linkOf("Suspend this customer …")).must(http.StatusOK, "1 grant waits", "undo this")
	form := p.fields(desk + "users/suspend")
	for range 2 { // twice is once
		support.post(desk+"users/suspend", form, "").mustGo(where)
	}
	if _, err := a.Refresh(t.Context(), s.Hotel, authoritytest.Alex, paid.Refresh, nil); err == nil {
		t.Error("the agent goes on")
	}
	p = support.open(where).must(http.StatusOK, "This customer is suspended", "Customer suspended")
	s.Clock.Advance(time.Minute)
	p = support.open(p.linkOf("Let this customer go on …")).must(http.StatusOK, "1 grant is in force again")
	for range 2 {
		support.post(desk+"users/resume", p.fields(desk+"users/resume"), "").mustGo(where)
	}
	if _, err := a.Refresh(t.Context(), s.Hotel, authoritytest.Alex, paid.Refresh, nil); err != nil {
		t.Errorf("the agent does not go on: %v", err)
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE event IN ('user.suspended', 'user.resumed')`); n != 2 {
		t.Errorf("%d facts", n)
	}
	support.open(desk + "users/suspend").must(http.StatusNotFound)
	support.open(desk+"users/resume?subject=nobody").must(http.StatusOK, "is not suspended")
	for _, form := range []url.Values{nil, {"subject": {""}}, {"subject": {"\x00"}}} {
		support.post(desk+"users/suspend", form, "").must(http.StatusBadRequest)
	}
	support.open(storyOf(paid.GrantID)).must(http.StatusOK, "<h3><bdi>Customer suspended</bdi></h3>", "<h3><bdi>Customer goes on</bdi></h3>")
}

// P33: a grant's page tells its whole life, in order, with the words that were
// shown then and not with those of today.
func TestAGrantsStoryIsTold(t *testing.T) {
	s := newSite(t)
	a := s.Authority(nil)
	viewer := staff(t, s)["viewer"]
	first := s.allow(t, a, s.Hotel, authoritytest.Alex, "guest-7", "bookings:read")
	s.Clock.Advance(time.Hour)
	s.Save(t, s.Hotel, func(b *tenants.Brand) {
		b.Scopes = slices.Clone(b.Scopes)
		b.Scopes[0].Description = "See all that you ever booked"
	})
	hotel := s.Reload(t, s.Hotel.ID)
	started := authoritytest.Begin(t, a, hotel, authoritytest.Alex, "account:read")
	s.Clock.Advance(time.Minute)
	authoritytest.Approve(t, a, hotel, started, "guest-7", "bookings:read", "account:read")
	s.Clock.Advance(time.Hour)
	if err := a.EndScopeByUser(t.Context(), hotel.ID, "guest-7", first.GrantID, "account:read"); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Hour)
	if _, err := a.Refresh(t.Context(), hotel, authoritytest.Alex, first.Refresh, nil); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Hour)
	if err := a.EndByUser(t.Context(), hotel.ID, "guest-7", first.GrantID); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Minute)
	if err := a.Suspend(t.Context(), hotel.ID, authority.ByOperator(), "guest-7"); err != nil { // too late to be in it
		t.Fatal(err)
	}
	viewer.login()
	p := viewer.open(storyOf(first.GrantID)).must(http.StatusOK, "See your bookings", "See all that you ever booked",
		"May now also: <bdi>See your name", "May no longer: <bdi>See your name", "The customer ended it.", "Chosen: for 30 days.")
	var told []string
	for n := range p.root.Descendants() {
		if n.Data == "h3" && n.Type == html.ElementNode {
			told = append(told, textOf(n))
		}
	}
	want := []string{
		"Aria asked", "Agent allowed", "A customer said yes", "The agent fetched its access",
		"Aria asked", "Agent allowed more", "A customer said yes", "Agent allowed less", "Last fetched fresh access", "Agent ended",
	}
	if !slices.Equal(told, want) {
		t.Errorf("it tells\n%v, want\n%v", told, want)
	}
}

// Words for a shell are one word, whatever they are.
func TestCommandsAreQuoted(t *testing.T) {
	for in, want := range map[string]string{
		"https://agent.example": "https://agent.example", "": "''", "a b": "'a b'", "-x": "'-x'", "$(x)": "'$(x)'",
		"it's": `'it'\''s'`, "bookings:read": "bookings:read", "名": "'名'", "a\nb": "'a\nb'",
	} {
		if got := console.Quoted(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
