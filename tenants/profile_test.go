package tenants_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"countersign.dev/tenants"
)

var site = tenants.Site{PublicURL: authoritytest.PublicURL}

func editor(w *authoritytest.World) tenants.Editor {
	return w.Authority(nil).Editor(authority.By{Actor: "admin", ID: "key-1", Channel: "api"})
}

func set(t *testing.T, w *authoritytest.World, fn func(*tenants.Settings)) (tenants.Settings, error) {
	t.Helper()
	return tenants.ChangeSettings(t.Context(), editor(w), site, w.Hotel.ID, func(s *tenants.Settings) error {
		fn(s)
		return nil
	})
}

// problemFields are the fields that err complains of, each once, sorted.
func problemFields(t *testing.T, err error) []string {
	t.Helper()
	var p tenants.Problems
	if err != nil && !errors.As(err, &p) {
		t.Fatalf("not Problems: %v", err)
	}
	fields := []string{}
	for _, one := range p {
		if one.Say == "" || one.Mend == "" {
			t.Errorf("%+v does not say how to mend it", one)
		}
		fields = append(fields, one.Field)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// lastFact is the newest line of the Hotel's trail.
func lastFact(t *testing.T, w *authoritytest.World) (event, actor, id string, detail map[string]any) {
	t.Helper()
	var raw []byte
	err := w.Owner.QueryRow(t.Context(), `SELECT event, actor, actor_id, detail FROM audit_events
		WHERE brand_id = $1 ORDER BY seq DESC LIMIT 1`, w.Hotel.ID).Scan(&event, &actor, &id, &raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &detail); err != nil {
		t.Fatal(err)
	}
	return event, actor, id, detail
}

// Every mistake is found, under the name of its field, with a way to mend it.
func TestSettingsSayHowToMendThem(t *testing.T) {
	w := authoritytest.New(t)
	w.Exec(t, `INSERT INTO brand_domains (brand_id, host, token, added_at, proven_at, method)
		VALUES ('harbor-hotel', 'hotel.example', 'x', $1, $1, 'dns')`, w.Clock.Now())
	for name, tt := range map[string]struct {
		change func(*tenants.Settings)
		field  string // empty: it is taken
	}{
		"no name":                {func(s *tenants.Settings) { s.Name = "" }, "name"},
		"an endless name":        {func(s *tenants.Settings) { s.Name = strings.Repeat("a", 81) }, "name"},
		"a name read backwards":  {func(s *tenants.Settings) { s.Name = "Bank\u202eletoH" }, "name"},
		"a name in two lines":    {func(s *tenants.Settings) { s.Name = "a\nb" }, "name"},
		"a name of spaces":       {func(s *tenants.Settings) { s.Name = " " }, "name"},
		"broken UTF-8":           {func(s *tenants.Settings) { s.Name = "a\xff" }, "name"},
		"a long description":     {func(s *tenants.Settings) { s.Description = strings.Repeat("a", 301) }, "description"},
		"a colour's name":        {func(s *tenants.Settings) { s.Colour = "red" }, "colour"},
		"a colour with a script": {func(s *tenants.Settings) { s.Colour = "#fff;}a{" }, "colour"},
		"a colour in capitals":   {func(s *tenants.Settings) { s.Colour = "#ABCDEF" }, ""},
		"help over http":         {func(s *tenants.Settings) { s.SupportURL = "http://hotel.example/" }, "support_url"},
		"help elsewhere":         {func(s *tenants.Settings) { s.SupportURL = "https://evil.example/" }, "support_url"},
		"help at a look-alike":   {func(s *tenants.Settings) { s.SupportURL = "https://xhotel.example/" }, "support_url"},
		"help at its end":        {func(s *tenants.Settings) { s.SupportURL = "https://hotel.example.evil.example/" }, "support_url"},
		"help with a user":       {func(s *tenants.Settings) { s.SupportURL = "https://evil.example@hotel.example/" }, "support_url"},
		"help as a user":         {func(s *tenants.Settings) { s.SupportURL = "https://hotel.example@evil.example/" }, "support_url"},
		"help as a script":       {func(s *tenants.Settings) { s.SupportURL = "javascript:alert(1)" }, "support_url"},
		"help on this machine":   {func(s *tenants.Settings) { s.SupportURL = "http://localhost/" }, "support_url"},
		"help beneath":           {func(s *tenants.Settings) { s.SupportURL = "https://help.hotel.example/x" }, ""},
		"privacy elsewhere":      {func(s *tenants.Settings) { s.PrivacyURL = "https://evil.example/" }, "privacy_url"},
		"a fragment":             {func(s *tenants.Settings) { s.PrivacyURL = "https://hotel.example/#" }, "privacy_url"},
		"connected elsewhere":    {func(s *tenants.Settings) { s.ConnectedURL = "https://evil.example/" }, "connected_url"},
		"token life 0":           {func(s *tenants.Settings) { s.TokenSeconds = 0 }, "token_seconds"},
		"token life two hours":   {func(s *tenants.Settings) { s.TokenSeconds = 7200 }, "token_seconds"},
		"grace three minutes":    {func(s *tenants.Settings) { s.GraceSeconds = 180 }, "grace_seconds"},
		"rotation never":         {func(s *tenants.Settings) { s.RotationDays = 0 }, "rotation_days"},
		"no days":                {func(s *tenants.Settings) { s.GrantDays, s.GrantDefault = nil, 0 }, "grant_days"},
		"an age":                 {func(s *tenants.Settings) { s.GrantDays = []int{30, 4000} }, "grant_days"},
		"a choice twice":         {func(s *tenants.Settings) { s.GrantDays = []int{30, 7, 30} }, "grant_days"},
		"days in any order":      {func(s *tenants.Settings) { s.GrantDays = []int{30, 7} }, ""},
		"default no choice":      {func(s *tenants.Settings) { s.GrantDefault = 31 }, "grant_days_default"},
		"HS256":                  {func(s *tenants.Settings) { s.SigningAlg = "HS256" }, "signing_alg"},
		"a made-up scheme":       {func(s *tenants.Settings) { s.IdentityScheme = "jwt" }, "identity_scheme"},
		"any agent":              {func(s *tenants.Settings) { s.Agents = "open" }, "agents"},
		"no language":            {func(s *tenants.Settings) { s.Languages = []string{"!"} }, "languages"},
		"a language's other way": {func(s *tenants.Settings) { s.Languages = []string{"zh-hant"} }, "languages"},
		"an untranslated one":    {func(s *tenants.Settings) { s.Languages = []string{"de"} }, "languages"},
	} {
		before, err := tenants.SettingsOf(t.Context(), w.DB, w.Hotel.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = set(t, w, tt.change)
		got := problemFields(t, err)
		if tt.field == "" && len(got) > 0 || tt.field != "" && !slices.Contains(got, tt.field) {
			t.Errorf("%s: problems with %v", name, got)
		}
		after, err := tenants.SettingsOf(t.Context(), w.DB, w.Hotel.ID)
		if err != nil {
			t.Fatal(err)
		}
		if tt.field != "" && len(tenants.Diff(before, after)) > 0 {
			t.Errorf("%s: %v was saved all the same", name, tenants.Diff(before, after))
		}
	}
	// All at once.
	_, err := set(t, w, func(s *tenants.Settings) { s.Name, s.Colour, s.TokenSeconds = "", "red", 1 })
	if got := problemFields(t, err); !slices.Equal(got, []string{"colour", "name", "token_seconds"}) {
		t.Errorf("together: %v", got)
	}
}

// A Brand that has proved nothing has no place of its own to link to; in
// development this machine is one.
func TestLinksNeedAProvenDomain(t *testing.T) {
	w := authoritytest.New(t)
	w.Save(t, w.Hotel, func(b *tenants.Brand) { b.Proven = false })
	link := func(s *tenants.Settings) { s.SupportURL = "https://hotel.example/" }
	if _, err := set(t, w, link); !slices.Equal(problemFields(t, err), []string{"support_url"}) {
		t.Errorf("unproven: %v", err)
	}
	dev := tenants.Site{PublicURL: "http://localhost:8080", AllowLoopback: true}
	_, err := tenants.ChangeSettings(t.Context(), editor(w), dev, w.Hotel.ID, func(s *tenants.Settings) error {
		s.SupportURL = "http://localhost:9000/help"
		return nil
	})
	if err != nil {
		t.Errorf("development: %v", err)
	}
}

// A change stands in the trail with before and after and whose doing it was, in
// the same transaction: where the trail cannot be written, nothing changes (R82).
func TestSettingsStandInTheTrail(t *testing.T) {
	w := authoritytest.New(t)
	if _, err := set(t, w, func(s *tenants.Settings) { s.Name = "Harbour" }); err != nil {
		t.Fatal(err)
	}
	event, actor, id, detail := lastFact(t, w)
	changed, _ := json.Marshal(detail["changed"])
	if event != "brand.settings" || actor != "admin" || id != "key-1" || string(changed) != `{"name":{"after":"Harbour","before":"Harbor Hotel"}}` {
		t.Errorf("%s by %s %s: %s", event, actor, id, changed)
	}
	n := w.Count(t, `SELECT count(*) FROM audit_events`)
	if _, err := set(t, w, func(s *tenants.Settings) { s.Name = "Harbour" }); err != nil {
		t.Fatal(err)
	}
	if w.Count(t, `SELECT count(*) FROM audit_events`) != n {
		t.Error("nothing changed, and that was noted")
	}
	w.Exec(t, `REVOKE INSERT ON audit_events FROM countersign_app`)
	if _, err := set(t, w, func(s *tenants.Settings) { s.Name = "Unseen" }); err == nil {
		t.Error("changed without a trail")
	}
	if b := w.Reload(t, w.Hotel.ID); b.Name != "Harbour" {
		t.Errorf("it is called %s", b.Name)
	}
}

// Nobody changes another Brand, a closed one or one that is not there.
func TestSettingsAreTheBrandsOwn(t *testing.T) {
	w := authoritytest.New(t)
	if _, err := set(t, w, func(s *tenants.Settings) { s.Name = "Harbour" }); err != nil {
		t.Fatal(err)
	}
	if b := w.Reload(t, w.Shop.ID); b.Name != w.Shop.Name {
		t.Errorf("the shop is called %s", b.Name)
	}
	if _, err := tenants.SettingsOf(t.Context(), w.DB, "nobody"); !errors.Is(err, tenants.ErrNoBrand) {
		t.Error(err)
	}
	if err := tenants.SetState(t.Context(), w.DB, w.Hotel.ID, tenants.Closed); err != nil {
		t.Fatal(err)
	}
	if _, err := set(t, w, func(s *tenants.Settings) { s.Name = "Ghost" }); !errors.Is(err, tenants.ErrClosed) {
		t.Error(err)
	}
	if err := tenants.Start(t.Context(), editor(w), w.Hotel.ID); !errors.Is(err, tenants.ErrClosed) {
		t.Errorf("a closed Brand starts: %v", err)
	}
}

// The kill switch: at once, everywhere, and back; grants stay.
func TestKillSwitch(t *testing.T) {
	w := authoritytest.New(t)
	a := w.Authority(nil)
	s := authoritytest.Begin(t, a, w.Hotel, authoritytest.Alex, "bookings:read")
	authoritytest.Approve(t, a, w.Hotel, s, "guest-1", "bookings:read")
	paid, err := a.Poll(t.Context(), w.Hotel, authoritytest.Alex, s.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice is once
		if err := tenants.Stop(t.Context(), editor(w), w.Hotel.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, paid.Refresh, nil); !errors.Is(err, authority.ErrPaused) {
		t.Errorf("refresh while stopped: %v", err)
	}
	if _, err := a.Begin(t.Context(), w.Hotel, authoritytest.Alex, []string{"bookings:read"}); !errors.Is(err, authority.ErrPaused) {
		t.Errorf("begin while stopped: %v", err)
	}
	if err := tenants.Start(t.Context(), editor(w), w.Hotel.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Refresh(t.Context(), w.Hotel, authoritytest.Alex, paid.Refresh, nil); err != nil {
		t.Errorf("refresh after: %v", err)
	}
	if n := w.Count(t, `SELECT count(*) FROM audit_events WHERE event IN ('brand.paused', 'brand.resumed')`); n != 2 {
		t.Errorf("%d facts", n)
	}
}

// Two who change different settings at once both get their way.
func TestParallelChangesLoseNothing(t *testing.T) {
	w := authoritytest.New(t)
	edit := editor(w)
	done := make(chan error)
	for _, fn := range []func(*tenants.Settings){
		func(s *tenants.Settings) { s.TokenSeconds = 600 },
		func(s *tenants.Settings) { s.GraceSeconds = 60 },
		func(s *tenants.Settings) { s.IdleDays = 60 },
		func(s *tenants.Settings) { s.Colour = "#123456" },
	} {
		go func() {
			_, err := tenants.ChangeSettings(context.Background(), edit, site, w.Hotel.ID, func(s *tenants.Settings) error {
				fn(s)
				return nil
			})
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	s, err := tenants.SettingsOf(t.Context(), w.DB, w.Hotel.ID)
	if err != nil || s.TokenSeconds != 600 || s.GraceSeconds != 60 || s.IdleDays != 60 || s.Colour != "#123456" {
		t.Errorf("%+v, %v", s, err)
	}
}
