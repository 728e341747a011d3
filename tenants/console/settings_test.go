package console_test

import (
	"bytes"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"golang.org/x/net/html"
)

const lakePages = "/console/b/lake/"

// open makes the Brand one that the operator has let in: it may link anywhere.
func (s *site) letIn(t *testing.T, brand tenants.BrandID) {
	t.Helper()
	s.Exec(t, `UPDATE brands SET proven = true WHERE id = $1`, brand)
	s.Brands.Forget(brand)
}

// fields of a form as they stand on a page, its choices too.
func (p page) filled(action string) url.Values {
	p.t.Helper()
	out := p.fields(action)
	for n := range p.find("form", "action", action).Descendants() {
		if n.Data != "select" {
			continue
		}
		name, _ := attr(n, "name")
		for o := range n.Descendants() {
			if _, chosen := attr(o, "selected"); chosen {
				value, _ := attr(o, "value")
				out.Set(name, value)
			}
		}
	}
	return out
}

// problemAt is what is said beside the field.
func (p page) problemAt(name string) string {
	n := p.find("p", "id", "field-"+name+"-problem")
	if n == nil {
		return ""
	}
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(text.String())
}

func (p page) valueOf(name string) string {
	p.t.Helper()
	n := p.find("input", "name", name)
	if n == nil {
		p.t.Fatalf("no field %s\n%s", name, p.body)
	}
	value, _ := attr(n, "value")
	return value
}

// All mistakes are told at once, each beside its field with how to mend it, in the
// reader's language; nothing that was typed is lost and nothing is saved.
func TestSettingsTellAllMistakesAtOnce(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	s.letIn(t, owner.found("lake"))
	const at = lakePages + "settings"
	wrong := map[string][2]string{ // typed, and what is said of it
		"name":               {"", "missing"},
		"colour":             {"blue", "Write it like #1f3a5f"},
		"support_url":        {"http://lake.example/help", "https://"},
		"privacy_url":        {"https://lake.example/#x", "#"},
		"languages":          {"zh_hant", "zh-Hant"},
		"token_seconds":      {"86400", "from 60 to 3600"},
		"grace_seconds":      {"soon", "digits"},
		"grant_days":         {"7, many", "digits"},
		"idle_days":          {"0", "from 1 to 366"},
		"rotation_days":      {"", "digits"},
		"identity_scheme":    {"other", "paJwt"},
		"grant_days_default": {"30", ""}, // hangs on grant_days, which could not be read
	}
	form := owner.open(at).must(http.StatusOK).filled(at)
	for name, w := range wrong {
		form.Set(name, w[0])
	}
	p := owner.post(at, form, at).must(http.StatusUnprocessableEntity)
	for name, w := range wrong {
		said := p.problemAt(name)
		if (said == "") != (w[1] == "") || !strings.Contains(said, w[1]) {
			t.Errorf("beside %s: %q", name, said)
		}
		if name != "identity_scheme" && p.valueOf(name) != w[0] {
			t.Errorf("%s is lost: %q", name, p.valueOf(name))
		}
		if link := p.find("a", "href", "#field-"+name); (link != nil) != (w[1] != "") {
			t.Errorf("the summary leads to %s: %v", name, link != nil)
		}
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'lake' AND event = 'brand.settings'`); n != 0 {
		t.Errorf("%d changes were made", n)
	}
	owner.open(at + "?ui_locales=zh-Hant")
	owner.post(at, form, at).must(http.StatusUnprocessableEntity, "請寫成像 #1f3a5f 的格式", "請只輸入數字", "介於 1 到 366")
	if p := owner.post(at, form, at); strings.Contains(p.body, "is missing") || strings.Contains(p.body, "out of bounds") {
		t.Error("mistakes are told in English on a Chinese page")
	}
}

// What is right is saved once, with its fact in the trail, and the page says what
// became of a colour that cannot be read.
func TestSettingsAreSaved(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	s.letIn(t, owner.found("lake"))
	const at = lakePages + "settings"
	form := with(owner.open(at).filled(at), "name", "  Lake House ", "colour", "#FFEE00", "token_seconds", "600",
		"grant_days", "30, 7，90", "grant_days_default", "7", "support_url", "https://lake.example/help", "skip_consent", "yes")
	owner.post(at, form, at).mustGo(at + "?saved")
	owner.open(at+"?saved").must(http.StatusOK, "Saved", "so it was darkened", "<bdi>#ffee00</bdi>, as you chose it", `value="7, 30, 90"`)
	got, err := tenants.SettingsOf(t.Context(), s.DB, "lake")
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "Lake House" || got.Colour != "#ffee00" || got.TokenSeconds != 600 || !got.SkipConsent || got.GrantDefault != 7 || len(got.GrantDays) != 3 {
		t.Errorf("%+v", got)
	}
	again := owner.open(at).filled(at)
	owner.post(at, again, at).mustGo(at + "?saved") // twice is once
	me := s.person(t, "owner@example.com").String()
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'lake' AND event = 'brand.settings' AND actor = 'admin' AND actor_id = $1`, me); n != 1 {
		t.Errorf("%d facts in the trail", n)
	}
}

// When signing keys change is changed under a fresh touch, and every owner hears of it;
// the other settings need none, and nothing that was typed is lost or saved by half.
func TestWhenSigningKeysChangeNeedsATouch(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	s.letIn(t, owner.found("lake"))
	const at = lakePages + "settings"
	const told = `SELECT count(*) FROM notices WHERE brand_id = 'lake' AND kind = 'brand.settings'`
	days := func() int { return s.Reload(t, "lake").RotationDays }
	s.Clock.Advance(6 * time.Minute)
	for _, wish := range []string{"1", "366"} {
		form := with(owner.open(at).filled(at), "name", "Lagoon", "rotation_days", wish)
		p := owner.post(at, form, at).must(http.StatusForbidden, "needs your passkey", "/console/touch?back=")
		if p.valueOf("rotation_days") != wish || p.valueOf("name") != "Lagoon" || days() != 90 || s.Reload(t, "lake").Name == "Lagoon" {
			t.Errorf("after %s it is %d, and the form has %q", wish, days(), p.valueOf("rotation_days"))
		}
	}
	owner.post(at, with(owner.open(at).filled(at), "name", "Lagoon"), at).mustGo(at + "?saved")
	if s.Reload(t, "lake").Name != "Lagoon" || s.Count(t, told) != 0 {
		t.Error("the other settings need a touch, or owners hear of them")
	}
	owner.touch().must(http.StatusSeeOther)
	owner.post(at, with(owner.open(at).filled(at), "rotation_days", "1"), at).mustGo(at + "?saved")
	if days() != 1 || s.Count(t, told) != 1 {
		t.Errorf("it is %d, and %d owners hear of it", days(), s.Count(t, told))
	}
}

// Two owners who change settings at the same time do not undo each other, and the
// second keeps what he typed.
func TestSettingsOverwriteNothingUnseen(t *testing.T) {
	s := newSite(t)
	owner := s.become(t, "owner@example.com", "Olga")
	owner.found("lake")
	const at = lakePages + "settings"
	first, second := owner.open(at).filled(at), owner.open(at).filled(at)
	owner.post(at, with(first, "token_seconds", "300"), at).mustGo(at + "?saved")
	p := owner.post(at, with(second, "name", "Lagoon"), at).must(http.StatusConflict, "Somebody else changed this")
	if p.valueOf("name") != "Lagoon" {
		t.Errorf("what was typed is lost: %q", p.valueOf("name"))
	}
	if s.Count(t, `SELECT token_seconds FROM brands WHERE id = 'lake'`) != 300 {
		t.Error("the first change is undone")
	}
	owner.post(at, with(p.filled(at), "token_seconds", "300"), at).mustGo(at + "?saved") // now it was seen
	owner.post(at, url.Values{"name": {"Bare"}}, at).must(http.StatusBadRequest)         // no form of ours
}

// Only owners change settings; everybody of the Brand reads them, and nobody from
// another page.
func TestOnlyOwnersChangeSettings(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	const at = lakePages + "settings"
	form := with(people["owner"].open(at).filled(at), "name", "Stolen")
	for _, role := range []string{"security", "support", "viewer"} {
		p := people[role].open(at).must(http.StatusOK, "Token lifetime")
		if p.find("form", "action", at) != nil || p.find("input", "type", "file") != nil {
			t.Errorf("%s is offered what only owners may do", role)
		}
		people[role].post(at, form, at).must(http.StatusForbidden, refusedByRole)
	}
	people["stranger"].post(at, form, at).must(http.StatusNotFound)
	people["owner"].header.Set("Sec-Fetch-Site", "cross-site")
	if p := people["owner"].post(at, form, at); p.status != http.StatusForbidden {
		t.Errorf("a page of somebody else changes settings: %d", p.status)
	}
	if b := s.Reload(t, brand); b.Name == "Stolen" {
		t.Error("it was changed")
	}
}

// upload posts one file as the page's form does.
func (v *visitor) upload(to string, files ...[]byte) page {
	v.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, raw := range files {
		part, err := form.CreateFormFile("logo", "logo.png")
		if err == nil {
			_, err = part.Write(raw)
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		v.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(v.t.Context(), http.MethodPost, origin+to, &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Origin", origin)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return v.do(r)
}

// A logo is drawn anew, shown, and taken away; what is none is refused beside its
// field, with how to mend it.
func TestTheLogo(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	owner := people["owner"]
	const at = lakePages + "settings/logo"
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 300, 200))); err != nil {
		t.Fatal(err)
	}
	for said, raw := range map[string][]byte{
		"Choose a file first":     nil,
		"can carry scripts":       []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>`),
		"larger than 1 MiB":       bytes.Repeat([]byte("x"), tenants.LargestLogo+1),
		"This is no picture":      []byte("MZ"),
		"The picture is damaged.": picture.Bytes()[:40],
	} {
		p := owner.upload(at, raw).must(http.StatusUnprocessableEntity)
		if got := p.problemAt("logo"); !strings.Contains(got, said) {
			t.Errorf("%q is said, want %q", got, said)
		}
	}
	owner.upload(at, picture.Bytes(), picture.Bytes()).must(http.StatusBadRequest) // B100
	people["security"].upload(at, picture.Bytes()).must(http.StatusForbidden, refusedByRole)
	if s.Count(t, `SELECT count(*) FROM brand_logos`) != 0 {
		t.Fatal("there is a logo")
	}
	owner.upload(at, picture.Bytes()).mustGo(lakePages + "settings?saved#logo")
	if b := s.Reload(t, brand); b.Logo == "" {
		t.Fatal("there is no logo")
	}
	if owner.open(lakePages+"settings").must(http.StatusOK).find("img", "class", "logo-now") == nil {
		t.Error("it is not shown")
	}
	owner.post(at+"/remove", nil, at).must(http.StatusSeeOther)
	owner.post(at+"/remove", nil, at).must(http.StatusSeeOther) // twice is once
	if n := s.Count(t, `SELECT count(*) FROM audit_events WHERE brand_id = 'lake' AND event = 'brand.logo'`); n != 2 {
		t.Errorf("%d facts in the trail", n)
	}
}

// The preview is the very page on which people decide, with what was typed: in
// each language, saved nowhere, and harmless whatever was typed.
func TestThePreviewShowsWhatIsNotSaved(t *testing.T) {
	s := newSite(t)
	brand, people := team(t, s)
	const at = lakePages + "settings"
	form := with(people["owner"].open(at).filled(at), "name", `<b>Lagoon</b>`, "colour", "#ffee00",
		"support_url", "javascript:alert(1)", "privacy_url", "https://lake.example/privacy", "grant_days", "3, 5", "grant_days_default", "5", "preview", "en")
	p := people["owner"].post(lakePages+"preview", form, at).must(
		http.StatusOK, "A preview for", "Let Aria act on your", "&lt;b&gt;Lagoon&lt;/b&gt;", "WDJB-MJHT", "3 days",
		"/preview.css?c=%23ffee00", "https://lake.example/privacy", "An example:",
	)
	if strings.Contains(p.body, "javascript:") || strings.Contains(p.body, "<b>Lagoon") {
		t.Error("what was typed acts on the page")
	}
	policy := p.header.Get("Content-Security-Policy")
	for _, rule := range []string{"form-action 'none'", "frame-ancestors 'none'", "default-src 'none'", "style-src 'self'"} {
		if !strings.Contains(policy, rule) {
			t.Errorf("the policy lacks %s: %s", rule, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "script-src") {
		t.Errorf("the policy allows too much: %s", policy)
	}
	people["owner"].post(lakePages+"preview", with(form, "preview", "zh-Hant"), at).must(http.StatusOK, `lang="zh-Hant"`, "的預覽")
	people["owner"].post(lakePages+"preview", with(form, "preview", "tlh"), at).must(http.StatusOK, `lang="en"`)
	if b := s.Reload(t, brand); b.Name != "Café du Lac" {
		t.Errorf("the preview saved %q", b.Name)
	}
	css := people["viewer"].open(lakePages+"preview.css?c=%23ffee00").must(http.StatusOK, "--brand:")
	if got := css.header.Get("Content-Type"); !strings.HasPrefix(got, "text/css") {
		t.Errorf("the colour is %s", got)
	}
	if p := people["viewer"].open(lakePages + "preview.css?c=" + url.QueryEscape("}body{x:url(//evil.example)")); strings.Contains(p.body, "evil") {
		t.Error("a colour became more than a colour")
	}
	people["viewer"].open(lakePages+"preview?in=zh-Hant").must(http.StatusOK, `lang="zh-Hant"`, "Café du Lac")
	people["stranger"].open(lakePages + "preview").must(http.StatusNotFound)
}

// Who may set what, written out here, so that a slip in the table is one.
func TestWhoMaySetWhat(t *testing.T) {
	owner, guards := []tenants.Role{tenants.Owner}, []tenants.Role{tenants.Owner, tenants.Security}
	for action, want := range map[console.Action]struct {
		roles       []tenants.Role
		touch, tell bool
	}{
		console.ChangeSettings:    {owner, false, false},
		console.ChangeLogo:        {owner, false, false},
		console.ChangePermissions: {owner, false, false},
		console.RetirePermission:  {owner, false, true},
		console.RestorePermission: {owner, true, true},
		console.ChangeAgentRule:   {owner, true, true},
		console.JudgeAgent:        {guards, false, false},
		console.PauseBrand:        {guards, false, true},
		console.ResumeBrand:       {guards, true, true},
	} {
		r := console.RightOf(action)
		if !r.Member || r.Touch != want.touch || r.Tells != want.tell || !slices.Equal(r.Roles, want.roles) {
			t.Errorf("%s: %+v", action, r)
		}
	}
}
