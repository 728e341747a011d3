package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// lost asks for the mail that begins every way back, in a new browser with a new
// device.
func (s *site) lost(t *testing.T, email string) (v *visitor, link string) {
	t.Helper()
	s.drain(t)
	v = s.visitor(t)
	v.post("/console/recover", url.Values{"email": {email}}, "").must(http.StatusOK)
	return v, s.linkTo(t, email)
}

func tokenOf(link string) string { return strings.TrimPrefix(link, "/console/link?t=") }

// A code and the mail together make a new passkey, once; either alone opens
// nothing.
func TestRecoveryNeedsMailAndCode(t *testing.T) {
	s := newSite(t)
	ann := s.visitor(t)
	ann.useLink(ann.signUp("ann@example.com"), "Ann").mustGo("/console/keys")
	codes := ann.secure()
	brand := ann.found("lake")

	v, link := s.lost(t, "ann@example.com")
	p := v.open(link).must(http.StatusOK, "Recovery code")
	if p.find("form", "data-passkey", "") != nil {
		t.Error("the mail alone asks for a passkey")
	}
	// Straight to the door that makes passkeys, with the mail alone: the ceremony of
	// another page, then a real one with the code left out, then a wrong code.
	v.post("/console/link", url.Values{"t": {tokenOf(link)}, "credential": {"{}"}}, link).must(http.StatusBadRequest)
	v.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {"aaaa-bbbb-cccc-dddd"}}, link).must(http.StatusUnprocessableEntity, "does not work")
	typed := strings.ToUpper(strings.ReplaceAll(codes[3], "-", " "))
	p = v.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {typed}}, link).must(http.StatusOK)
	form := with(p.fields("/console/link"), "credential", v.device.create(p.options()))
	bad := with(p.fields("/console/link"), "credential", form.Get("credential"), "code", "")
	v.post("/console/link", bad, link).must(http.StatusForbidden)
	p = v.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {typed}}, link)
	form = with(p.fields("/console/link"), "credential", v.device.create(p.options()))
	wrong := with(p.fields("/console/link"), "credential", form.Get("credential"), "code", codes[4]+"x")
	v.post("/console/link", wrong, link).must(http.StatusForbidden)
	p = v.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {typed}}, link)
	form = with(p.fields("/console/link"), "credential", v.device.create(p.options()))
	v.post("/console/link", form, link).mustGo("/console/keys")
	v.open("/console/b/" + string(brand) + "/").must(http.StatusOK)

	// The same code again, and another person's.
	again, link := s.lost(t, "ann@example.com")
	again.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {codes[3]}}, link).must(http.StatusUnprocessableEntity)
	s.become(t, "ben@example.com", "Ben")
	again, link = s.lost(t, "ben@example.com")
	again.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {codes[5]}}, link).must(http.StatusUnprocessableEntity)
	// A sign-up's link is no recovery's.
	link = again.signUp("carl@example.com")
	again.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {codes[5]}}, link).must(http.StatusGone)
	// Guessing is bounded, for this account.
	again, link = s.lost(t, "ben@example.com")
	for range 20 {
		again.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {"x"}}, link)
	}
	again.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {"x"}}, link).must(http.StatusTooManyRequests)
}

// An owner's word brings a member back at that Brand; at other Brands the
// membership rests until an owner there says so. Former keys, codes and sessions
// are void.
func TestAnOwnerVouchesForOneBrand(t *testing.T) {
	s := newSite(t)
	olga := s.become(t, "olga@example.com", "Olga")
	lake := olga.found("lake")
	ann := s.become(t, "ann@example.com", "Ann")
	river := ann.found("river") // where Ann is the only owner
	link := olga.invite(lake, "ann@example.com", tenants.Owner)
	ann.open(link)
	ann.post("/console/link/accept", url.Values{"t": {tokenOf(link)}}, "").must(http.StatusSeeOther)
	id := s.person(t, "ann@example.com")
	s.drain(t)

	// Nobody vouches for themselves.
	ann.post(memberPath(lake, id, "/vouch"), nil, "").must(http.StatusForbidden)
	olga.post(memberPath(lake, id, "/vouch"), nil, "").must(http.StatusSeeOther)
	link = s.linkTo(t, "ann@example.com")
	s.Clock.Advance(time.Minute)
	back := s.visitor(t)
	back.useLink(link, "").mustGo("/console/keys")
	back.secure()
	back.open("/console/b/lake/").must(http.StatusOK)
	back.open("/console/b/river/").must(http.StatusNotFound)
	back.open("/console/brands").must(http.StatusOK, "Rests until an owner")
	back.open(link).must(http.StatusGone)
	ann.open("/console/b/lake/").must(http.StatusSeeOther) // the former session
	ann.login().must(http.StatusForbidden)                 // the former passkey

	// An owner who rests is no owner who could be the last.
	second := s.become(t, "second@example.com", "Second")
	s.Exec(t, `INSERT INTO memberships VALUES ('river', $1, 'owner', $2, $2)`, s.person(t, "second@example.com"), s.Clock.Now())
	second.post(memberPath(river, s.person(t, "second@example.com"), "/remove"), nil, "").must(http.StatusConflict)
	second.open(memberPath(river, id, "")).must(http.StatusOK, "Ask them first")
	second.post(memberPath(river, id, "/confirm"), nil, "").must(http.StatusSeeOther)
	back.open("/console/b/river/").must(http.StatusOK)

	// Whoever was removed in the meantime has nobody to vouch any more.
	olga.touch()
	olga.post(memberPath(lake, id, "/vouch"), nil, "").must(http.StatusSeeOther)
	link = s.linkTo(t, "ann@example.com")
	olga.post(memberPath(lake, id, "/remove"), nil, "").must(http.StatusSeeOther)
	s.visitor(t).useLink(link, "").must(http.StatusNotFound)
}

// Codes that were only shown do not count as kept, and new ones void old ones.
func TestCodesCountWhenTheyAreKept(t *testing.T) {
	s := newSite(t)
	v := s.visitor(t)
	v.useLink(v.signUp("ann@example.com"), "Ann").mustGo("/console/keys")
	v.post("/console/keys/kept", url.Values{"kept": {"yes"}}, "").must(http.StatusSeeOther) // there are none
	v.open("/console/brands").mustGo("/console/keys")
	v.post("/console/keys/codes", nil, "").must(http.StatusOK)
	v.open("/console/brands").mustGo("/console/keys")
	v.post("/console/keys/kept", nil, "").mustGo("/console/keys") // without the tick
	v.open("/console/brands").mustGo("/console/keys")
	v.post("/console/keys/kept", url.Values{"kept": {"yes"}}, "").mustGo("/console/new")
	v.open("/console/brands").must(http.StatusOK)
	v.post("/console/keys/codes", nil, "").must(http.StatusOK)
	v.open("/console/brands").mustGo("/console/keys")
	if n := s.Count(t, `SELECT count(*) FROM recovery_codes`); n != 10 {
		t.Errorf("%d codes", n)
	}
	// A second passkey does as well.
	p := v.open("/console/keys")
	v.post("/console/keys", with(p.fields("/console/keys"), "credential", v.device.create(p.options())), "").must(http.StatusSeeOther)
	v.open("/console/brands").must(http.StatusOK)
	// A stolen session makes neither.
	s.Clock.Advance(5 * time.Minute)
	for _, path := range []string{"/console/keys", "/console/keys/codes", "/console/keys/kept"} {
		if p := v.post(path, nil, "/console/keys"); p.location != "/console/touch?back=%2Fconsole%2Fkeys" {
			t.Errorf("%s: %d to %s", path, p.status, p.location)
		}
	}
	v.touch()
	v.post("/console/keys/codes", nil, "/console/keys").must(http.StatusOK)
}

// Whoever holds an opened link twice, at two instances, spends it once: the rule
// looks again, whatever a page has looked at before.
func TestTheRuleSpendsTheLink(t *testing.T) {
	s := newSite(t)
	brand, _ := team(t, s)
	owner, viewer := s.person(t, "owner@example.com"), s.person(t, "viewer@example.com")
	record := func(context.Context, pgx.Tx, tenants.BrandID, uuid.UUID, string, map[string]any) error { return nil }
	act := tenants.Act{Brand: brand, By: owner, Event: "member.vouched", Record: record, Now: s.Clock.Now()}
	token, err := tenants.Vouch(t.Context(), s.DB, act, viewer)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tenants.OpenLink(t.Context(), s.DB, token, s.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, tenants.ErrDeadLink} {
		key := tenants.Passkey{ID: []byte{byte(i)}, Data: json.RawMessage("{}")}
		err := tenants.RestoreByBrand(t.Context(), s.DB, l, brand, tenants.Waited{}, viewer, key, record, s.Clock.Now())
		if !errors.Is(err, want) {
			t.Errorf("use %d: %v", i+1, err)
		}
	}
	// The same for a passkey's counter: of two uses at once the one behind is refused.
	for _, use := range []struct {
		count int64
		want  error
	}{{5, nil}, {5, tenants.ErrCloned}, {4, tenants.ErrCloned}, {0, tenants.ErrCloned}, {6, nil}} {
		key := tenants.Passkey{ID: []byte{0}, Data: json.RawMessage("{}"), SignCount: use.count}
		if err := tenants.UsePasskey(t.Context(), s.DB, viewer, key, s.Clock.Now()); !errors.Is(err, use.want) {
			t.Errorf("count %d: %v", use.count, err)
		}
		if err := tenants.UsePasskey(t.Context(), s.DB, owner, key, s.Clock.Now()); !errors.Is(err, tenants.ErrCloned) {
			t.Errorf("another person's passkey: %v", err)
		}
	}
}

// A mailbox is not filled by whoever knows its address, whether or not somebody has an
// account with it; another's is not counted with it.
func TestMailsOfRecoveryAreCounted(t *testing.T) {
	s := newSite(t)
	s.become(t, "ann@example.com", "Ann")
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		v, sent := s.visitor(t), 0
		ask := func(email string) int {
			return v.post("/console/recover", url.Values{"email": {email}}, "").status
		}
		for ask(email) == http.StatusOK {
			if sent++; sent > 100 {
				t.Fatalf("%s: there is no end", email)
			}
		}
		if got := ask(strings.ToUpper(email)); got != http.StatusTooManyRequests || sent < 2 {
			t.Errorf("%s, after %d: %d", email, sent, got)
		}
		if got := ask("other-than-" + email); got != http.StatusOK {
			t.Errorf("another address: %d", got)
		}
	}
}

// Codes from before somebody came back on a Brand's word open nothing, whoever kept them.
func TestFormerCodesAreVoid(t *testing.T) {
	s := newSite(t)
	olga := s.become(t, "olga@example.com", "Olga")
	lake := olga.found("lake")
	ann := s.visitor(t)
	ann.useLink(olga.invite(lake, "ann@example.com", tenants.Support), "Ann").mustGo("/console/keys")
	codes := ann.secure()
	id := s.person(t, "ann@example.com")
	s.drain(t)
	olga.post(memberPath(lake, id, "/vouch"), nil, "").must(http.StatusSeeOther)
	s.visitor(t).useLink(s.linkTo(t, "ann@example.com"), "").mustGo("/console/keys")

	thief, link := s.lost(t, "ann@example.com")
	thief.post("/console/recover/code", url.Values{"t": {tokenOf(link)}, "code": {codes[0]}}, link).must(http.StatusUnprocessableEntity, "does not work")
	l, err := tenants.OpenLink(t.Context(), s.DB, tokenOf(link), s.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	key := tenants.Passkey{ID: []byte{1}, Data: json.RawMessage("{}")}
	if err := tenants.RestoreByCode(t.Context(), s.DB, l, id, codes[1], key, s.Clock.Now()); !errors.Is(err, tenants.ErrBadCode) {
		t.Errorf("a former code: %v", err)
	}
}
