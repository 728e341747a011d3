package consent_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/consent/federation/demoidp"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

type object = map[string]any

// record is what was kept of the answer to the request; its hash must be that of
// the very text that is stored, in the table and in the trail.
func (s *site) record(t *testing.T, started authority.Started) object {
	t.Helper()
	var id, text, trail string
	var hash []byte
	const q = `
		SELECT c.id::text, c.record::text, c.hash, e.detail->>'consent_hash'
		  FROM consents c
		  JOIN audit_events e ON e.brand_id = c.brand_id AND e.request_id = c.request_id AND e.detail->>'consent' = c.id::text
		 WHERE c.request_id = $1`
	if err := s.Owner.QueryRow(t.Context(), q, started.ID).Scan(&id, &text, &hash, &trail); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	if string(hash) != string(sum[:]) || trail != base64.RawURLEncoding.EncodeToString(sum[:]) {
		t.Errorf("the hash of the record is %x, in the trail %s; the text's is %x", hash, trail, sum)
	}
	var out object
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// translated is a site whose hotel wrote one of its permissions in Chinese too.
func translated(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) {
		b.Scopes = slices.Clone(b.Scopes)
		b.Scopes[0].Undo = "Nothing to undo."
		b.Scopes[0].Texts = map[string]tenants.ScopeText{"zh-Hant": {Description: "查看您的訂房", Undo: "無需復原。"}}
	})
	return s
}

func speaking(p *person, language string) { p.header = http.Header{"Accept-Language": {language}} }

// answer posts the form with the decision and the scopes ticked.
func (p *person) answer(action string, form url.Values, decision string, ticked ...string) page {
	p.t.Helper()
	form.Set("decision", decision)
	form["scope"] = ticked
	return p.post(action, form)
}

func (s *site) stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// The record repeats the page: its texts in the language that was read, the
// boxes as they were left, how the person had signed in; whatever language the
// browser speaks by the time it answers.
func TestRecordRepeatsThePage(t *testing.T) {
	s := translated(t)
	english := object{"id": "bookings:read", "description": "See your bookings", "undo": "Nothing to undo.", "effect": "sees", "impact": "low", "held": false}
	chinese := object{"id": "bookings:read", "description": "查看您的訂房", "undo": "無需復原。", "effect": "sees", "impact": "low", "held": false}
	change := object{"id": "bookings:change", "description": "Change or cancel a booking", "effect": "changes", "impact": "medium", "held": false}
	hotel := *s.Hotel
	for _, tt := range []struct {
		read, then string
		row        object
	}{{"zh-Hant", "en", chinese}, {"en", "zh-Hant", english}, {"zh-TW", "zh-TW", chinese}, {"en", "en", english}} {
		t.Run(tt.read+" then "+tt.then, func(t *testing.T) {
			s.anew(t, hotel)
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read", "bookings:change")
			p := s.person(t)
			speaking(p, tt.read)
			g := s.ask(t, p, s.Hotel, started, "alex")
			if !strings.Contains(g.body, tt.row["description"].(string)) {
				t.Fatalf("not shown in %s", tt.read)
			}
			login := s.Clock.Now()
			s.Clock.Advance(time.Minute)
			defer s.Clock.Advance(-time.Minute) // the provider's does not stand still
			speaking(p, tt.then)
			action, form := g.form(t)
			form.Set("until", "7")
			p.answer(action, form, "allow", "bookings:read")
			language := "en"
			if tt.read != "en" {
				language = "zh-Hant"
			}
			want := object{
				"language": language, "agent": authoritytest.Agent, "agent_name": "Aria", "scopes": []any{tt.row, change},
				"days": []any{7.0, 30.0, 90.0}, "login": object{"at": s.stamp(login), "fresh": true, "by": s.idp[s.Hotel.ID].Issuer()},
				"answer": "allowed", "ticked": []any{"bookings:read"}, "unticked": []any{"bookings:change"}, "for_days": 7.0,
				"at": s.stamp(s.Clock.Now()), "subject": "harbor-hotel-7",
			}
			if diff := cmp.Diff(want, s.record(t, started)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is held is marked so in the record; a login made before is not fresh; a
// second account and a list that changed were said, and a step-up's reason.
func TestRecordKnowsWhatElseWasSaid(t *testing.T) {
	s := newSite(t)
	tokens := s.holding(t, "bookings:read")
	other := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	authoritytest.Approve(t, s.rules, s.Hotel, other, "harbor-hotel-8", "bookings:read")
	p := s.person(t)
	s.ask(t, p, s.Hotel, authoritytest.Begin(t, s.rules, s.Hotel, alex, "account:read"), "alex")
	login := s.Clock.Now()
	s.Clock.Advance(time.Minute)
	started := s.stepUp(t, &tokens, "To move your stay.", "bookings:change")
	g := p.open(p.open(s.link(s.Hotel, started)).way(t, "/login?"))
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) {
		b.Scopes = slices.Clone(b.Scopes)
		b.Scopes[0].Description = "See all your bookings"
	})
	action, form := g.form(t)
	again := p.answer(action, form, "allow", "bookings:read", "bookings:change")
	if again.boxes() != 2 || !strings.Contains(again.text(), "The list changed") {
		t.Fatalf("%d %s", again.status, again.text())
	}
	action, form = again.form(t)
	p.answer(action, form, "allow", "bookings:read", "bookings:change")
	got := s.record(t, started)
	want := object{
		"notices": []any{"list_changed", "another_user_holds_a_grant"}, "reason": "To move your stay.",
		"login": object{"at": s.stamp(login), "fresh": false, "by": s.idp[s.Hotel.ID].Issuer()},
		"scopes": []any{
			object{"id": "bookings:read", "description": "See all your bookings", "effect": "sees", "impact": "low", "held": true},
			object{"id": "bookings:change", "description": "Change or cancel a booking", "effect": "changes", "impact": "medium", "held": false},
		},
	}
	for name := range want {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A no, a yes with nothing ticked and a Continue are kept as what they are.
func TestEveryAnswerIsRecorded(t *testing.T) {
	s := newSite(t)
	hotel := *s.Hotel
	both := []string{"bookings:read", "account:read"}
	for _, tt := range []struct {
		name, decision   string
		held, ticked     []string
		answer           string
		unticked, choice []any
	}{
		{"no", "deny", nil, both, "denied", []any{"bookings:read", "account:read"}, []any{7.0, 30.0, 90.0}},
		{"no, held", "deny", both, both, "denied", []any{"bookings:read", "account:read"}, []any{7.0, 30.0, 90.0}},
		{"nothing ticked", "allow", nil, nil, "denied", []any{"bookings:read", "account:read"}, []any{7.0, 30.0, 90.0}},
		{"emptied", "allow", both, nil, "emptied", []any{"bookings:read", "account:read"}, []any{7.0, 30.0, 90.0}},
		{"continued", "continue", both, nil, "continued", []any{}, nil},
		{"no, in brief", "deny", both, nil, "denied", []any{"bookings:read", "account:read"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.anew(t, hotel)
			s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) { b.SkipConsent = tt.choice == nil })
			if tt.held != nil {
				s.holding(t, tt.held...)
			}
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, both...)
			p := s.person(t)
			action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
			p.answer(action, form, tt.decision, tt.ticked...)
			got := s.record(t, started)
			days, _ := got["days"].([]any)
			if got["answer"] != tt.answer || len(got["ticked"].([]any)) != 0 || got["for_days"] != nil ||
				cmp.Diff(tt.unticked, got["unticked"]) != "" || cmp.Diff(tt.choice, days) != "" || len(got["scopes"].([]any)) != 2 {
				t.Errorf("%v", got)
			}
			for _, row := range got["scopes"].([]any) {
				if row.(object)["held"] != (tt.held != nil) {
					t.Errorf("marked: %v", row)
				}
			}
		})
	}
}

// A no counts on a page that has grown old, and the record does not pretend that
// its words were the ones on that page.
func TestNoOnAnOldPageIsRecordedAsSuch(t *testing.T) {
	s := newSite(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
	p := s.person(t)
	action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
	s.Hotel = s.Save(t, s.Hotel, func(b *tenants.Brand) {
		b.Scopes = slices.Clone(b.Scopes)
		b.Scopes[0].Description = "See all your bookings"
	})
	p.answer(action, form, "deny")
	if got := s.record(t, started); got["outdated"] != true || got["answer"] != "denied" {
		t.Errorf("%v", got)
	}
}

// A fresh login that was asked for and not made is not recorded as one.
func TestCancelledFreshLoginIsNotRecordedAsFresh(t *testing.T) {
	s := newSite(t)
	s.holding(t, "bookings:read")
	p := s.person(t)
	started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "account:read")
	g := s.ask(t, p, s.Hotel, started, "alex")
	login := s.Clock.Now()
	s.Clock.Advance(time.Minute)
	s.idp[s.Hotel.ID].SetFaults(demoidp.Faults{AuthorizeError: "access_denied"})
	p.open(g.way(t, "switch=1"))
	s.idp[s.Hotel.ID].SetFaults(demoidp.Faults{})
	again := p.open(g.url.String())
	if !again.asks() {
		t.Fatalf("%d %s", again.status, again.text())
	}
	action, form := again.form(t)
	p.answer(action, form, "allow", "account:read", "bookings:read")
	if diff := cmp.Diff(object{"at": s.stamp(login), "fresh": false, "by": s.idp[s.Hotel.ID].Issuer()}, s.record(t, started)["login"]); diff != "" {
		t.Error(diff)
	}
}

// M20: what must be said is said before the yes: where another account lets the
// agent act by now, or the operator gave the agent another name, the page is
// shown again.
func TestNewsUnderThePageIsToldBeforeTheYes(t *testing.T) {
	s := newSite(t)
	hotel := *s.Hotel
	for news, tt := range map[string]struct {
		happens func()
		told    string
	}{
		"another account": {func() {
			other := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
			authoritytest.Approve(t, s.rules, s.Hotel, other, "harbor-hotel-8", "bookings:read")
		}, "already acts for you on another"},
		"another name": {func() { s.Exec(t, `UPDATE agents SET name = 'Basil'`) }, "Let Basil act"},
	} {
		t.Run(news, func(t *testing.T) {
			s.anew(t, hotel)
			started := authoritytest.Begin(t, s.rules, s.Hotel, alex, "bookings:read")
			p := s.person(t)
			action, form := s.ask(t, p, s.Hotel, started, "alex").form(t)
			tt.happens()
			again := p.answer(action, form, "allow", "bookings:read")
			if got := s.state(t, s.Hotel, started); got != "pending" || !strings.Contains(again.text(), tt.told) {
				t.Errorf("%s: %s", got, again.text())
			}
		})
	}
}
