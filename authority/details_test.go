package authority_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/authority/statuslist"
	"countersign.dev/tenants"
	"github.com/google/go-cmp/cmp"
)

// wished begins at the Hotel with authorization_details.
func wished(t *testing.T, w *authoritytest.World, a *authority.Authority, details string, scopes ...string) authority.Started {
	t.Helper()
	wish := authority.Wish{Scopes: scopes}
	if details != "" {
		wish.Details = &details
	}
	s, err := a.BeginWith(t.Context(), w.Hotel, authoritytest.Alex, wish)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// detailed is asked for, allowed in full and paid out.
func detailed(t *testing.T, w *authoritytest.World, a *authority.Authority, details string, scopes ...string) authority.Tokens {
	t.Helper()
	s := wished(t, w, a, details, scopes...)
	authoritytest.Approve(t, a, w.Hotel, s, "guest-1", scopes...)
	paid, err := a.Poll(t.Context(), w.Hotel, authoritytest.Alex, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	return paid
}

func amounts(t *testing.T, d authority.Details) []string {
	t.Helper()
	out := []string{}
	for _, v := range d.Values() {
		var one struct {
			Type   string
			Amount json.Number
		}
		if err := json.Unmarshal(v, &one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one.Type+" "+one.Amount.String())
	}
	return out
}

func of(kind, amount string) string {
	return `{"type":"` + kind + `","amount":` + amount + `,"currency":"EUR"}`
}

func twoTypes(t *testing.T, w *authoritytest.World) {
	t.Helper()
	tip := authoritytest.StayCharge()
	tip.Type = "tip"
	w.Detailed(t, authoritytest.StayCharge(), tip)
}

// P47, M15: one approval replaces what was held in terms of the same type. What it
// does not speak of stays: asking again for the scope alone, or by a step-up, lifts
// no limit. Another refresh carries what holds now.
func TestAnApprovalReplacesDetailsOfItsTypes(t *testing.T) {
	w := authoritytest.New(t)
	twoTypes(t, w)
	a := w.Authority(nil)
	var last authority.Tokens
	for _, step := range []struct {
		details string
		scopes  []string
		want    []string
	}{
		{"[" + of("stay_charge", "200") + "," + of("stay_charge", "30") + "]", []string{"bookings:read", "extras:order"}, []string{"stay_charge 200", "stay_charge 30"}},
		{"", []string{"bookings:read", "extras:order"}, []string{"stay_charge 200", "stay_charge 30"}},
		{"[" + of("tip", "5") + "]", []string{"bookings:read", "extras:order"}, []string{"stay_charge 200", "stay_charge 30", "tip 5"}},
		{"[" + of("stay_charge", "500") + "]", []string{"extras:order"}, []string{"tip 5", "stay_charge 500"}},
	} {
		last = detailed(t, w, a, step.details, step.scopes...)
		if diff := cmp.Diff(step.want, amounts(t, last.Details)); diff != "" {
			t.Errorf("%s: %s", step.details, diff)
		}
	}
	up := stepUp(t, w, a, authority.StepUp{Who: authoritytest.Alex, Token: payload(t, last), Scopes: []string{"account:read"}})
	id, _, err := a.Find(t.Context(), w.Hotel.ID, up.UserCode.String(), authority.Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	q, err := a.Ask(t.Context(), w.Hotel.ID, id, "guest-1")
	if err != nil || len(q.DetailsOf("extras:order")) != 2 || len(q.DetailsOf("account:read")) != 0 {
		t.Errorf("the page of the step-up shows %v, %v", q.DetailsOf("extras:order"), err)
	}
	authoritytest.Approve(t, a, w.Hotel, authority.Started{ID: id}, "guest-1", "extras:order", "account:read")
	next, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, last.Refresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tip 5", "stay_charge 500"}, amounts(t, next.Details)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"extras:order", "account:read"}, next.Scopes); diff != "" {
		t.Error(diff)
	}
}

// A token whose details are not those of the grant any more is worth its other
// scopes only, and known so offline: it may neither keep what it says nor gain what
// the grant says now. The Brand is told.
func TestATokenOfOtherDetailsLosesTheScope(t *testing.T) {
	w := authoritytest.New(t)
	twoTypes(t, w)
	a := w.Authority(nil)
	both := []string{"bookings:read", "extras:order"}
	bare := detailed(t, w, a, "", both...)
	small := detailed(t, w, a, "["+of("stay_charge", "200")+"]", both...)
	large := detailed(t, w, a, "["+of("stay_charge", "500")+"]", both...)
	for name, one := range map[string]struct {
		tokens authority.Tokens
		want   []string
	}{"without a limit": {bare, both[:1]}, "of the former limit": {small, both[:1]}, "of today": {large, both}} {
		s, err := a.Standing(t.Context(), w.Hotel, payload(t, one.tokens))
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(one.want, s.Scopes); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if want := slices.Contains(one.want, "extras:order"); (len(s.Details) > 0) != want {
			t.Errorf("%s: details %v", name, amounts(t, s.Details))
		}
	}
	status := statusOfToken(t, w, small)
	if status != statuslist.Invalid {
		t.Errorf("offline the former one is %v", status)
	}
	if status := statusOfToken(t, w, large); status != statuslist.Valid {
		t.Errorf("offline that of today is %v", status)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events e JOIN event_details d USING (brand_id, seq) WHERE e.event = 'grant.narrowed'
		AND d.details->0->>'amount' = '500'`); n != 1 {
		t.Errorf("the Brand is told %d times", n)
	}
	// The same once more changes nothing.
	again := detailed(t, w, a, "["+of("stay_charge", "500.0")+"]", both...)
	if status := statusOfToken(t, w, large); status != statuslist.Valid {
		t.Errorf("after the same once more: %v", status)
	}
	if s, err := a.Standing(t.Context(), w.Hotel, payload(t, again)); err != nil || len(s.Scopes) != 2 {
		t.Errorf("%v, %v", s.Scopes, err)
	}
	// Nor does it when the Brand takes the type away: the limit stays.
	edit := a.Editor(authority.ByOperator())
	if err := tenants.RemoveDetailType(t.Context(), edit, w.Hotel.ID, "stay_charge"); err != nil {
		t.Fatal(err)
	}
	w.Hotel = w.Reload(t, w.Hotel.ID)
	next, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, again.Refresh, nil)
	if err != nil || len(next.Details) != 1 {
		t.Errorf("without its type: %v, %v", next.Details, err)
	}
	if s, err := a.Standing(t.Context(), w.Hotel, payload(t, again)); err != nil || len(s.Scopes) != 2 {
		t.Errorf("without its type: %v, %v", s.Scopes, err)
	}
}

// statusOfToken is what the status list says now at the index in the token, as an
// instance publishes it that remembers no former one.
func statusOfToken(t *testing.T, w *authoritytest.World, tokens authority.Tokens) statuslist.Status {
	t.Helper()
	var c struct {
		Status struct {
			List struct {
				Index int `json:"idx"`
			} `json:"status_list"`
		}
	}
	if err := json.Unmarshal(payload(t, tokens), &c); err != nil {
		t.Fatal(err)
	}
	_, answers := read(t, w, w.Hotel, listed(t, w.Authority(nil), w.Hotel))
	got, _ := answers.At(c.Status.List.Index)
	return got
}

// P47: where there are details there is no way past the page with boxes, however
// much of it is held (B36).
func TestDetailsAreAlwaysShownInFull(t *testing.T) {
	w := authoritytest.New(t)
	d := authoritytest.StayCharge()
	d.Scope = "bookings:change"
	w.Detailed(t, d)
	w.Exec(t, `UPDATE brands SET skip_consent = true`)
	w.Hotel = w.Reload(t, w.Hotel.ID)
	a := w.Authority(nil)
	skippable := func(details string) (bool, error) {
		s := wished(t, w, a, details, "bookings:change")
		q, err := a.Ask(t.Context(), w.Hotel.ID, s.ID, "guest-1")
		if err != nil {
			t.Fatal(err)
		}
		decision := authoritytest.Answer(w.Hotel, q, "guest-1")
		return q.Skippable(w.Hotel), a.Proceed(t.Context(), w.Hotel, decision)
	}
	detailed(t, w, a, "", "bookings:change")
	if ok, err := skippable(""); !ok || err != nil {
		t.Fatalf("nothing can be skipped: %v", err)
	}
	if ok, err := skippable("[" + of("stay_charge", "5") + "]"); ok || !errors.Is(err, authority.ErrChanged) {
		t.Errorf("new details are skipped: %v", err)
	}
	detailed(t, w, a, "["+of("stay_charge", "5")+"]", "bookings:change")
	if ok, err := skippable(""); ok || !errors.Is(err, authority.ErrChanged) {
		t.Errorf("held details are skipped: %v", err)
	}
}

// Two requests at once, each of which had room for itself, make no grant whose token
// is too large: the second answer is asked anew.
func TestDetailsOfTwoRequestsMustFitTogether(t *testing.T) {
	w := authoritytest.New(t)
	twoTypes(t, w)
	a := w.Authority(nil)
	many := func(kind string) string {
		list := make([]map[string]any, 10)
		for i := range list {
			list[i] = map[string]any{"type": kind, "amount": i + 1, "currency": "EUR", "shop": strings.Repeat("x", 200)}
		}
		raw, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	first := wished(t, w, a, many("stay_charge"), "extras:order")
	second := wished(t, w, a, many("tip"), "extras:order", "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, first, "guest-1", "extras:order")
	if err := authoritytest.TryApprove(t.Context(), a, w.Hotel, second, "guest-1", "extras:order", "bookings:read"); !errors.Is(err, authority.ErrChanged) {
		t.Errorf("the second: %v", err)
	}
	if err := authoritytest.TryApprove(t.Context(), a, w.Hotel, second, "guest-1", "bookings:read"); err != nil {
		t.Errorf("the second without the scope: %v", err)
	}
}

// P47, R62: what somebody wanted goes with them, wherever it stood; of others it stays.
func TestDetailsAreErasedWithThePerson(t *testing.T) {
	w := authoritytest.New(t)
	twoTypes(t, w)
	a := w.Authority(nil)
	detailed(t, w, a, `[{"type":"stay_charge","amount":5,"currency":"EUR","shop":"wanted-here"}]`, "extras:order")
	if at := traces(t, w, "wanted-here"); !slices.Contains(at, "grants.details") || !slices.Contains(at, "device_requests.details") || !slices.Contains(at, "event_details.details") || slices.Contains(at, "audit_events.detail") {
		t.Fatalf("it stands in %v", at)
	}
	if _, err := a.Erase(t.Context(), w.Hotel.ID, authority.ByOperator(), "guest-1"); err != nil {
		t.Fatal(err)
	}
	if at := traces(t, w, "wanted-here"); len(at) > 0 {
		t.Errorf("it still stands in %v", at)
	}
}
