package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// held makes a living grant and pays it out.
func (a *admin) held(b *tenants.Brand, agent, subject string, scopes ...string) authority.Tokens {
	a.t.Helper()
	who := authority.Caller{Agent: agent, Sub: "sub-of-" + subject}
	s := authoritytest.Begin(a.t, a.rules, b, who, scopes...)
	authoritytest.Approve(a.t, a.rules, b, s, subject, scopes...)
	tokens, err := a.rules.Poll(a.t.Context(), b, who, s.DeviceCode)
	if err != nil {
		a.t.Fatal(err)
	}
	return tokens
}

// raw is what a GET answers, byte for byte.
func (a *admin) raw(path string) []byte {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.url+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return body
}

// listed are the ids that a list shows, page after page.
func (a *admin) listed(query string) []string {
	a.t.Helper()
	var ids []string
	path := "harbor-hotel/grants?" + query
	for range 100 {
		status, page := a.call(http.MethodGet, path, a.key, "")
		if status != http.StatusOK {
			a.t.Fatalf("%s: %d %v", path, status, page)
		}
		for _, g := range page["grants"].([]any) {
			ids = append(ids, g.(map[string]any)["id"].(string))
		}
		next, more := page["next"].(string)
		if !more {
			return ids
		}
		path = "harbor-hotel/grants?" + query + "&cursor=" + next
	}
	a.t.Fatal("the pages do not end")
	return nil
}

// Filters show exactly what they name, in pages that neither lose nor repeat,
// the newest first. R51: an ended grant shows when and why.
func TestGrantsAreListedInPages(t *testing.T) {
	a := newAdmin(t)
	var all []string
	add := func(agent, subject string, scopes ...string) string {
		id := a.held(a.Hotel, agent, subject, scopes...).GrantID.String()
		all = append([]string{id}, all...)
		return id
	}
	first := add(authoritytest.Agent, "guest-1", "bookings:read")
	second := add(authoritytest.Agent, "guest-2", "bookings:read", "account:read")
	third := add(authoritytest.OtherAgent, "guest-1", "account:read")
	for i := range 4 {
		add(authoritytest.Agent, fmt.Sprintf("guest-%d", 10+i), "bookings:change")
	}
	a.held(a.Shop, authoritytest.Agent, "guest-1", "bookings:read")
	if _, err := a.rules.End(t.Context(), a.Hotel.ID, authority.ByOperator(), authority.Which{Subject: "guest-2"}); err != nil {
		t.Fatal(err)
	}
	a.Exec(t, `UPDATE grants SET expires_at = $1 WHERE subject = 'guest-13'`, a.Clock.Now()) // over, not noted yet
	for query, want := range map[string][]string{
		"limit=1": all, "limit=2": all, "limit=7": all, "limit=200": all,
		"agent=" + url.QueryEscape(authoritytest.OtherAgent):   {third},
		"subject=guest-1&limit=1":                              {third, first},
		"subject=guest-1&agent=" + authoritytest.Agent:         {first},
		"scope=account:read":                                   {third, second},
		"state=ended":                                          {all[0], second},
		"state=living&subject=guest-2":                         {},
		"state=living&scope=bookings:read":                     {first},
		"subject=nobody":                                       {},
		"subject=guest-1' OR true --":                          {},
		"scope=bookings:read&state=ended&limit=1":              {second},
		"agent=" + authoritytest.Agent + "/":                   {},
		"agent=" + strings.ToUpper(authoritytest.Agent):        {},
		"cursor=00000000-0000-0000-0000-000000000001&limit=50": {},
	} {
		got := a.listed(strings.ReplaceAll(query, " ", "%20"))
		if len(got)+len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	for _, query := range []string{
		"limit=0", "limit=201", "limit=-1", "limit=x", "limit=1&limit=2", "state=dead", "state=", "cursor=x", "agent=",
		"subjekt=guest-1", "subject=guest-1&subject=guest-2", "%zz",
	} {
		if status, _ := a.call(http.MethodGet, "harbor-hotel/grants?"+query, a.key, ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, status)
		}
	}
	_, page := a.call(http.MethodGet, "harbor-hotel/grants?subject=guest-2", a.key, "")
	g := page["grants"].([]any)[0].(map[string]any)
	if g["state"] != "ended" || g["ended_at"] == nil || g["end_reason"] != "revoked_by_operator" || g["agent_sub"] != nil {
		t.Errorf("%v", g)
	}
}

// B29, B34, P33: an admin ends one grant, one permission, one agent or one
// person: exactly that. The trail names the API key, and the tokens are dead.
func TestAnAdminEndsExactlyWhatIsNamed(t *testing.T) {
	a := newAdmin(t)
	one := a.held(a.Hotel, authoritytest.Agent, "guest-1", "bookings:read", "account:read")
	two := a.held(a.Hotel, authoritytest.Agent, "guest-2", "bookings:read")
	other := a.held(a.Hotel, authoritytest.OtherAgent, "guest-1", "bookings:read")
	shop := a.held(a.Shop, authoritytest.Agent, "guest-1", "bookings:read")
	living := func(want ...authority.Tokens) {
		t.Helper()
		ids := a.listed("state=living")
		if len(ids) != len(want) {
			t.Fatalf("%d live, want %d", len(ids), len(want))
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(ids, " "), w.GrantID.String()) {
				t.Fatalf("%s is not among %v", w.GrantID, ids)
			}
		}
		if n := a.Count(t, `SELECT count(*) FROM grants WHERE brand_id = 'fern-and-fell' AND ended_at IS NULL`); n != 1 {
			t.Fatal("it reached another Brand")
		}
	}
	path := "harbor-hotel/grants/" + one.GrantID.String()

	// Nothing that is not exactly right ends anything.
	for _, try := range []struct {
		path, body string
		want       int
	}{
		{"harbor-hotel/grants/revoke", `{}`, 422},
		{"harbor-hotel/grants/revoke", `{"agent":"","subject":""}`, 422},
		{"harbor-hotel/grants/revoke", ``, 400},
		{"harbor-hotel/grants/revoke", `{"agnet":"` + authoritytest.Agent + `"}`, 400},
		{"harbor-hotel/grants/revoke", `{"agent":["` + authoritytest.Agent + `"]}`, 400},
		{path + "/revoke", `{"scope":"account:read"}`, 400},
		{path + "/scopes/account:read/revoke", `{}`, 400},
		{path + "/scopes/bookings:change/revoke", ``, 404},
		{path + "/scopes/nonsense/revoke", ``, 404},
		{"harbor-hotel/grants/" + shop.GrantID.String() + "/revoke", ``, 404},
		{"harbor-hotel/grants/" + shop.GrantID.String() + "/scopes/bookings:read/revoke", ``, 404},
		{"harbor-hotel/grants/00000000-0000-0000-0000-000000000000/revoke", ``, 404},
		{"harbor-hotel/grants/nonsense/revoke", ``, 404},
	} {
		if status, got := a.call(http.MethodPost, try.path, a.key, try.body); status != try.want {
			t.Errorf("%s %s: %d %v", try.path, try.body, status, got)
		}
	}
	living(one, two, other)

	if status, g := a.call(http.MethodPost, path+"/scopes/account:read/revoke", a.key, ""); status != 200 || g["state"] != "living" || len(g["scopes"].([]any)) != 1 {
		t.Errorf("%d %v", status, g)
	}
	living(one, two, other)
	if status, g := a.call(http.MethodPost, path+"/scopes/bookings:read/revoke", a.key, ""); status != 200 || g["state"] != "ended" {
		t.Errorf("the last one: %d %v", status, g)
	}
	living(two, other)
	// R51: again and again, and from many at once.
	path = "harbor-hotel/grants/" + two.GrantID.String()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if status, g := a.call(http.MethodPost, path+"/revoke", a.key, ""); status != 200 || g["state"] != "ended" {
				t.Errorf("%d %v", status, g)
			}
		})
	}
	wg.Wait()
	living(other)
	if status, got := a.call(http.MethodPost, "harbor-hotel/grants/revoke", a.key, `{"agent":"`+authoritytest.OtherAgent+`","subject":"guest-2"}`); status != 200 || got["revoked"] != 0.0 {
		t.Errorf("both must match: %d %v", status, got)
	}
	again := a.held(a.Hotel, authoritytest.Agent, "guest-1", "bookings:read") // P34
	living(other, again)
	if status, got := a.call(http.MethodPost, "harbor-hotel/grants/revoke", a.key, `{"agent":"`+authoritytest.OtherAgent+`"}`); status != 200 || got["revoked"] != 1.0 {
		t.Errorf("%d %v", status, got)
	}
	living(again)
	if status, got := a.call(http.MethodPost, "harbor-hotel/grants/revoke", a.key, `{"subject":"guest-1"}`); status != 200 || got["revoked"] != 1.0 {
		t.Errorf("%d %v", status, got)
	}
	living()
	if again.GrantID == one.GrantID {
		t.Error("a grant came alive again")
	}

	const q = `SELECT count(*) FROM audit_events WHERE actor = 'admin' AND channel = 'api' AND actor_id = $1 AND event = $2`
	id := strings.Split(a.key, "_")[1]
	for event, want := range map[string]int{"grant.narrowed": 1, "grant.revoked": 4} {
		if n := a.Count(t, q, id, event); n != want {
			t.Errorf("%s stands %d times in the trail, not %d", event, n, want)
		}
	}
	if n := a.Count(t, `SELECT count(*) FROM audit_events WHERE actor = 'admin' AND actor_id <> $1`, id); n != 0 {
		t.Errorf("%d acts are somebody else's", n)
	}
	_, err := a.rules.Refresh(t.Context(), a.Hotel, authority.Caller{Agent: authoritytest.Agent, Sub: "sub-of-guest-1"}, again.Refresh, nil)
	if err == nil {
		t.Error("a refresh token outlived its grant")
	}
}

// A grant is shown with what led to it and what became of it.
func TestAGrantIsShownWithItsStory(t *testing.T) {
	a := newAdmin(t)
	g := a.held(a.Hotel, authoritytest.Agent, "guest-1", "bookings:read", "account:read")
	path := "harbor-hotel/grants/" + g.GrantID.String()
	a.call(http.MethodPost, path+"/scopes/account:read/revoke", a.key, "")
	status, got := a.call(http.MethodGet, path, a.key, "")
	if status != 200 || got["id"] != g.GrantID.String() || got["subject"] != "guest-1" {
		t.Fatalf("%d %v", status, got)
	}
	consents := got["consents"].([]any)
	if len(consents) != 1 {
		t.Fatalf("%v", consents)
	}
	c := consents[0].(map[string]any)
	if c["answer"] != "allowed" || c["language"] != "en" || len(c["ticked"].([]any)) != 2 || len(c["hash"].(string)) != 43 {
		t.Errorf("%v", c)
	}
	// What an auditor is shown is the very text that was hashed then.
	var shown struct {
		Consents []struct{ Record json.RawMessage } `json:"consents"`
	}
	if err := json.Unmarshal(a.raw(path), &shown); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(shown.Consents[0].Record)
	if c["hash"] != base64.RawURLEncoding.EncodeToString(sum[:]) || !strings.Contains(string(shown.Consents[0].Record), "See your bookings") {
		t.Errorf("hash %v of %s", c["hash"], shown.Consents[0].Record)
	}
	var events []string
	for _, e := range got["trail"].([]any) {
		m := e.(map[string]any)
		events = append(events, m["event"].(string)+" by "+m["actor"].(string))
		if m["detail"].(map[string]any) == nil {
			t.Errorf("%v", m)
		}
	}
	if len(events) < 3 || events[0] != "grant.created by user" || events[1] != "request.approved by user" || events[len(events)-1] != "grant.narrowed by admin" {
		t.Errorf("%v", events)
	}
	for _, path := range []string{"nonsense", a.held(a.Shop, authoritytest.Agent, "guest-1", "bookings:read").GrantID.String()} {
		if status, _ := a.call(http.MethodGet, "harbor-hotel/grants/"+path, a.key, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// Suspending is reversible, and said in the trail once each time.
func TestAnAdminSuspendsAndResumes(t *testing.T) {
	a := newAdmin(t)
	g := a.held(a.Hotel, authoritytest.Agent, "a/b c", "bookings:read")
	who := authority.Caller{Agent: authoritytest.Agent, Sub: "sub-of-a/b c"}
	for _, step := range []struct {
		act  string
		want bool
	}{{"suspend", true}, {"suspend", true}, {"resume", false}, {"resume", false}} {
		status, got := a.call(http.MethodPost, "harbor-hotel/users/a%2Fb%20c/"+step.act, a.key, "")
		if status != 200 || got["suspended"] != step.want || got["subject"] != "a/b c" {
			t.Errorf("%s: %d %v", step.act, status, got)
		}
		_, got = a.call(http.MethodGet, "harbor-hotel/grants/"+g.GrantID.String(), a.key, "")
		if is, _ := got["suspended"].(bool); is != step.want || got["state"] != "living" {
			t.Errorf("%s: %v", step.act, got)
		}
	}
	if _, err := a.rules.Refresh(t.Context(), a.Hotel, who, g.Refresh, nil); err != nil {
		t.Errorf("resumed: %v", err)
	}
	if n := a.Count(t, `SELECT count(*) FROM audit_events WHERE event LIKE 'user.%' AND actor = 'admin'`); n != 2 {
		t.Errorf("%d events", n)
	}
}

// The trail is read in pages, and exported so that it can be verified.
func TestTheTrailIsReadAndExported(t *testing.T) {
	a := newAdmin(t)
	g := a.held(a.Hotel, authoritytest.Agent, "guest-1", "bookings:read")
	a.held(a.Hotel, authoritytest.Agent, "guest-2", "bookings:read")
	if err := a.rules.EndByUser(t.Context(), a.Hotel.ID, "guest-1", g.GrantID); err != nil {
		t.Fatal(err)
	}
	total := a.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'harbor-hotel'`)
	seqs := func(query string) (out []float64) {
		t.Helper()
		for since := 0.0; ; {
			status, page := a.call(http.MethodGet, fmt.Sprintf("harbor-hotel/audit?since=%d%s", int(since), query), a.key, "")
			if status != 200 {
				t.Fatalf("%d %v", status, page)
			}
			for _, e := range page["events"].([]any) {
				out = append(out, e.(map[string]any)["seq"].(float64))
			}
			next, more := page["next"].(float64)
			if !more {
				return out
			}
			since = next
		}
	}
	for _, limit := range []string{"&limit=1", "&limit=3", ""} {
		got := seqs(limit)
		if len(got) != total || got[0] != 1 || got[total-1] != float64(total) {
			t.Errorf("%s: %v of %d", limit, got, total)
		}
	}
	if got := seqs("&event=grant.created"); len(got) != 2 {
		t.Errorf("by event: %v", got)
	}
	if got := seqs("&grant=" + g.GrantID.String() + "&event=grant.revoked"); len(got) != 1 || got[0] != float64(total) {
		t.Errorf("by grant: %v", got)
	}
	if got := seqs("&subject=guest-1&event=grant.revoked"); len(got) != 1 {
		t.Errorf("by subject: %v", got)
	}
	if got := seqs("&subject=" + authoritytest.Agent); len(got) != 0 {
		t.Errorf("an agent is no subject: %v", got)
	}
	day := a.Clock.Now().UTC().Format(time.DateOnly)
	if got := seqs("&actor=guest-1&event=grant.revoked"); len(got) != 1 {
		t.Errorf("by actor: %v", got)
	}
	if got := seqs("&actor=nobody"); len(got) != 0 {
		t.Errorf("by nobody: %v", got)
	}
	if got := seqs("&from=" + day + "&until=" + day); len(got) != total {
		t.Errorf("of today: %v", got)
	}
	if got := seqs("&until=" + a.Clock.Now().AddDate(0, 0, -1).UTC().Format(time.DateOnly)); len(got) != 0 {
		t.Errorf("until yesterday: %v", got)
	}
	for _, query := range []string{"since=-1", "since=x", "limit=201", "grant=x", "who=user", "event=", "from=x", "until=2026-13-01", "from=2026-11-30T00:00:00Z"} {
		if status, _ := a.call(http.MethodGet, "harbor-hotel/audit?"+query, a.key, ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, status)
		}
	}
	_, page := a.call(http.MethodGet, "harbor-hotel/audit", a.key, "")
	head, err := authority.ParseHead(page["head"].(string))
	if err != nil || head.Seq != int64(total) {
		t.Fatalf("%v, %v", head, err)
	}
	export := func(query string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"harbor-hotel/audit"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+a.key)
		req.Header.Set("Accept", "text/plain, application/x-ndjson;q=0.9")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Fatalf("%d %v %v", resp.StatusCode, resp.Header, err)
		}
		return string(body)
	}
	proof, err := authority.VerifyExport(strings.NewReader(export("")), &head)
	if err != nil || proof.Events != int64(total) {
		t.Errorf("%+v, %v", proof, err)
	}
	if got := export("?event=nothing.such"); got != "" {
		t.Errorf("%q", got)
	}
	if got := export(fmt.Sprintf("?since=%d", total-2)); strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}

// What cannot be a name of anything here is refused as a mistake of the caller's,
// not met as an accident in the database.
func TestImpossibleNamesAreRefused(t *testing.T) {
	a := newAdmin(t)
	long := strings.Repeat("x", 3000)
	for _, name := range []string{"%00", "a%00b", "%ff", long} {
		for _, path := range []string{"users/" + name + "/suspend", "users/" + name + "/resume"} {
			if status, _ := a.call(http.MethodPost, "harbor-hotel/"+path, a.key, ""); status != http.StatusBadRequest {
				t.Errorf("%.40s: %d", path, status)
			}
		}
		for _, query := range []string{"grants?subject=", "grants?agent=", "grants?scope=", "audit?event=", "audit?subject="} {
			if status, _ := a.call(http.MethodGet, "harbor-hotel/"+query+name, a.key, ""); status != http.StatusBadRequest {
				t.Errorf("%s%s: %d", query, name, status)
			}
		}
	}
	grant := a.held(a.Hotel, authoritytest.Agent, "guest-1", "bookings:read").GrantID
	for path, want := range map[string]int{
		"grants/" + grant.String() + "/scopes/a%00b/revoke": http.StatusNotFound,
		"grants/" + grant.String() + "/scopes/%ff/revoke":   http.StatusNotFound,
		"keys/%00/retire": http.StatusNotFound,
	} {
		if status, _ := a.call(http.MethodPost, "harbor-hotel/"+path, a.key, ""); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
	for _, body := range []string{`{"subject":"a\u0000b"}`, `{"agent":"\u0000"}`} {
		if status, _ := a.call(http.MethodPost, "harbor-hotel/grants/revoke", a.key, body); status != http.StatusBadRequest {
			t.Errorf("%s: %d", body, status)
		}
	}
	if status, _ := a.call(http.MethodGet, "%00/grants", a.key, ""); status != http.StatusUnauthorized {
		t.Errorf("Brand: %d", status)
	}
}
