package tenants_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

func provenHotel(t *testing.T) *authoritytest.World {
	t.Helper()
	w := authoritytest.New(t)
	for _, brand := range []string{"harbor-hotel", "fern-and-fell"} {
		w.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method)
			VALUES ($2, 'hotel.example', $2, $1, $1, 'dns')`, w.Clock.Now(), brand)
	}
	return w
}

func moveTo(t *testing.T, w *authoritytest.World, want tenants.Interface) error {
	t.Helper()
	return tenants.SetInterface(t.Context(), editor(w), site, w.Hotel.ID, want, "harbor-hotel", false)
}

func fronted() tenants.Interface {
	return tenants.Interface{Mode: tenants.Fronted, URL: "https://agents.hotel.example/a2a"}
}

// Decision 2: a Brand that is not hosted has, or belongs to, a Provider with an
// audience of its own; back home it shares the operator's again.
func TestInterfaceMovesWithItsProvider(t *testing.T) {
	w := provenHotel(t)
	if err := moveTo(t, w, fronted()); err != nil {
		t.Fatal(err)
	}
	b := w.Reload(t, w.Hotel.ID)
	if b.Mode != tenants.Fronted || b.InterfaceURL != "https://agents.hotel.example/a2a" || b.Issuer != b.InterfaceURL+"/oauth" ||
		b.Provider != "harbor-hotel" || b.Audience != "urn:countersign:provider:harbor-hotel" {
		t.Errorf("fronted: %+v", b)
	}
	if err := moveTo(t, w, tenants.Interface{Mode: tenants.Split, URL: "https://hotel.example"}); err != nil {
		t.Fatal(err)
	}
	if b = w.Reload(t, w.Hotel.ID); b.Issuer != authoritytest.PublicURL+"/a2a/harbor-hotel/oauth" || b.Provider != "harbor-hotel" {
		t.Errorf("split: %+v", b)
	}
	if err := moveTo(t, w, tenants.Interface{Mode: tenants.Hosted}); err != nil {
		t.Fatal(err)
	}
	if b = w.Reload(t, w.Hotel.ID); b.InterfaceURL != w.Hotel.InterfaceURL || b.Issuer != w.Hotel.Issuer || b.Audience != w.Hotel.Audience {
		t.Errorf("home again: %+v", b)
	}
}

// Every mistake of a move is told, and nothing has moved and no grant has ended.
func TestInterfaceSaysHowToMendIt(t *testing.T) {
	w := provenHotel(t)
	ctx := t.Context()
	err := tenants.SetInterface(ctx, editor(w), site, w.Shop.ID, tenants.Interface{Mode: tenants.Fronted, URL: "https://shop.hotel.example", Audience: "https://shop.hotel.example"}, "fern-and-fell", false)
	if err != nil {
		t.Fatal(err)
	}
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, s, "guest-1", "bookings:read")
	for name, tt := range map[string]struct {
		change func(*tenants.Interface)
		field  string
	}{
		"http":                     {func(i *tenants.Interface) { i.URL = "http://hotel.example" }, "interface_url"},
		"not proven":               {func(i *tenants.Interface) { i.URL = "https://bank.example" }, "interface_url"},
		"a slash":                  {func(i *tenants.Interface) { i.URL += "/" }, "interface_url"},
		"a query":                  {func(i *tenants.Interface) { i.URL += "?x=1" }, "interface_url"},
		"an empty query":           {func(i *tenants.Interface) { i.URL += "?" }, "interface_url"},
		"a fragment":               {func(i *tenants.Interface) { i.URL += "#" }, "interface_url"},
		"a user":                   {func(i *tenants.Interface) { i.URL = "https://x@hotel.example" }, "interface_url"},
		"capitals":                 {func(i *tenants.Interface) { i.URL = "https://HOTEL.example" }, "interface_url"},
		"a port that is the usual": {func(i *tenants.Interface) { i.URL = "https://hotel.example:443" }, "interface_url"},
		"dots":                     {func(i *tenants.Interface) { i.URL = "https://hotel.example/a/../b" }, "interface_url"},
		"hidden dots":              {func(i *tenants.Interface) { i.URL = "https://hotel.example/%2e%2e/b" }, "interface_url"},
		"ours":                     {func(i *tenants.Interface) { i.URL = authoritytest.PublicURL + "/a2a/x" }, "interface_url"},
		"another Brand's":          {func(i *tenants.Interface) { i.URL = "https://shop.hotel.example" }, "interface_url"},
		"hosted elsewhere":         {func(i *tenants.Interface) { i.Mode = tenants.Hosted }, "interface_url"},
		"a made-up mode":           {func(i *tenants.Interface) { i.Mode = "proxied" }, "mode"},
		"the operator's Provider":  {func(i *tenants.Interface) { i.Provider = "demo" }, "provider"},
		"another's Provider":       {func(i *tenants.Interface) { i.Provider = "fern-and-fell" }, "provider"},
		"a Provider's odd id":      {func(i *tenants.Interface) { i.Provider = "My Org" }, "provider"},
		"another's audience":       {func(i *tenants.Interface) { i.Audience = "https://shop.hotel.example" }, "audience"},
		"the operator's audience":  {func(i *tenants.Interface) { i.Audience = w.Hotel.Audience }, "audience"},
		"a bank's audience":        {func(i *tenants.Interface) { i.Audience = "https://bank.example" }, "audience"},
	} {
		want := fronted()
		tt.change(&want)
		if got := problemFields(t, moveTo(t, w, want)); !slices.Equal(got, []string{tt.field}) {
			t.Errorf("%s: problems with %v, want %s", name, got, tt.field)
		}
	}
	err = tenants.SetInterface(ctx, editor(w), site, w.Hotel.ID, fronted(), "yes", false)
	if got := problemFields(t, err); !slices.Equal(got, []string{"confirm"}) {
		t.Errorf("unconfirmed: %v", got)
	}
	if got, err := tenants.CheckInterface(ctx, editor(w), site, w.Hotel.ID, fronted(), false); err != nil || got.Provider != "harbor-hotel" || got.Issuer != got.URL+"/oauth" {
		t.Errorf("a trial: %+v, %v", got, err)
	}
	if b := w.Reload(t, w.Hotel.ID); b.InterfaceURL != w.Hotel.InterfaceURL || b.Provider != "demo" {
		t.Errorf("it moved: %+v", b)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE ended_at IS NULL`) + w.Count(t, `SELECT count(*) FROM providers`); n != 3 {
		t.Errorf("a grant ended, or a Provider was made: %d", n)
	}
	// The operator knows who belongs together.
	want := fronted()
	want.Provider = "fern-and-fell"
	if err := tenants.SetInterface(ctx, a.Editor(authority.ByOperator()), site, w.Hotel.ID, want, "harbor-hotel", true); err != nil {
		t.Errorf("the operator: %v", err)
	}
}

// Every grant ends with the place it was given at, and everything that came of it;
// other Brands' grants do not. Twice is once.
func TestMovingEndsGrants(t *testing.T) {
	w := provenHotel(t)
	a := w.Authority(nil)
	var paid []authority.Tokens
	for _, who := range []string{"guest-1", "guest-2", "guest-3"} {
		s := authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:read")
		authoritytest.Approve(t, a, w.Hotel, s, who, "bookings:read")
		tokens, err := a.Poll(t.Context(), w.Hotel, authoritytest.Alex, s.DeviceCode)
		if err != nil {
			t.Fatal(err)
		}
		paid = append(paid, tokens)
	}
	s := authoritytest.Begin(t, a, w.Shop, authoritytest.Alex, "orders:read")
	authoritytest.Approve(t, a, w.Shop, s, "c-1", "orders:read")
	for range 2 {
		if err := moveTo(t, w, fronted()); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE brand_id = 'harbor-hotel' AND end_reason = 'interface_changed'`); n != 3 {
		t.Errorf("%d ended", n)
	}
	if n := w.Count(t, `SELECT count(*) FROM grants WHERE brand_id = 'fern-and-fell' AND ended_at IS NULL`); n != 1 {
		t.Error("the shop's grant ended")
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event = 'brand.interface'`); n != 1 {
		t.Errorf("%d facts of the move", n)
	}
	for _, tokens := range paid {
		if _, err := a.Refresh(t.Context(), w.Reload(t, w.Hotel.ID), authoritytest.Alex, tokens.Refresh, nil); !errors.Is(err, authority.ErrEnded) && !errors.Is(err, authority.ErrUnknown) {
			t.Errorf("refresh: %v", err)
		}
	}
}

// An approval that is under way while the Brand moves ends with the others, or
// comes after; none lives on unseen from before.
func TestMovingMissesNoApproval(t *testing.T) {
	w := provenHotel(t)
	a := w.Authority(nil)
	done := make(chan error)
	const people = 8
	for i := range people {
		s := authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:read")
		go func() {
			done <- authoritytest.TryApprove(context.Background(), a, w.Hotel, s, "guest-"+string(rune('a'+i)), "bookings:read")
		}()
	}
	if err := moveTo(t, w, fronted()); err != nil {
		t.Fatal(err)
	}
	for range people {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	// Facts of one Brand come one after the other: what was approved before the
	// move stands ended after it.
	n := w.Count(t, `SELECT count(*) FROM audit_events c
		WHERE c.event = 'grant.created' AND c.brand_id = 'harbor-hotel'
		  AND c.seq < (SELECT seq FROM audit_events WHERE event = 'brand.interface')
		  AND NOT EXISTS (SELECT FROM grants g WHERE g.brand_id = c.brand_id AND g.id = c.grant_id AND g.ended_at IS NOT NULL)`)
	if n != 0 {
		t.Errorf("%d grants from before live on", n)
	}
}

// Our own host is no Brand's, whatever it has proved or been given leave to: an
// interface there would pass for one of ours.
func TestNoInterfaceOnOurHost(t *testing.T) {
	w := provenHotel(t)
	w.Exec(t, `UPDATE brand_domains SET host = 'countersign.example' WHERE brand_id = 'harbor-hotel'`)
	for _, at := range []string{authoritytest.PublicURL + "/a2a/other", authoritytest.PublicURL} {
		err := moveTo(t, w, tenants.Interface{Mode: tenants.Fronted, URL: at})
		var p tenants.Problems
		if !errors.As(err, &p) || p[0].Mistake != tenants.OnOurHost {
			t.Errorf("%s: %v", at, err)
		}
	}
}
