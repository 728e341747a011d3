package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"countersign.dev/tenants"
	"countersign.dev/web/i18n"
)

// B115: each thing that may be found where a Brand is set up has words in every
// language, and each mistake in a form.
func TestWhatIsFoundHasWords(t *testing.T) {
	catalogue, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, key := range catalogue.Keys() {
		known[key] = true
	}
	said := 0
	for pattern, prefix := range map[string]string{
		"../../consent/federation/*.go":  `(?:f\.Code(?:, f\.\w+)? = |Code: )"([a-z.]+)"`,
		"../../cmd/countersign/admin.go": `"(agent\.[a-z]+)"`,
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(prefix).FindAllStringSubmatch(string(text), -1) {
				said++
				if !known["console.look."+m[1]] {
					t.Errorf("%s: nobody can say %s", file, m[1])
				}
			}
		}
	}
	if said < 20 {
		t.Errorf("only %d findings were found", said)
	}
	for _, what := range []string{"card", "identity", "delegation", "interface", "origin", "metadata", "issuer", "endpoints", "jwks"} {
		if !known["console.look.at."+what] || !known["console.look.agent."+what] {
			t.Errorf("nobody can say that %s is good", what)
		}
	}
	// Why a network refused.
	reasons, err := os.ReadFile("../egress/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	worded, err := os.ReadFile("causes.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(Err\w+)\s+=`).FindAllStringSubmatch(string(reasons), -1) {
		if !strings.Contains(string(worded), "egress."+m[1]+",") && m[1] != "ErrForbiddenAddress" { // reads as ErrUnreachable does
			t.Errorf("nobody can say egress.%s", m[1])
		}
	}
	// Where a form is set up no mistake is left in the rules' own English.
	for _, file := range []string{"agentendpoint", "connection", "domain", "interface", "keyring", "loginpage", "webhookset"} {
		text, err := os.ReadFile("../" + file + ".go")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			adds := strings.Contains(line, "p.add(")
			for ; adds && !strings.HasSuffix(lines[i], ")"); i++ {
			}
			if adds && !strings.Contains(lines[i+1], "p.kind(") {
				t.Errorf("%s.go: %s has no other words", file, strings.TrimSpace(line))
			}
		}
	}
}

// B115: who reads Chinese is told in Chinese what is wrong with a domain, an
// interface and a login, in the page and in what was looked up.
func TestTheSetUpSpeaksChinese(t *testing.T) {
	s, owner := hotelWithGrants(t)
	idp := provider(t, "harbor-hotel")
	owner.open(hotel+"domains?ui_locales=zh-Hant").must(http.StatusOK, "網域")
	for _, tt := range []struct {
		what   string
		page   page
		status int
		says   []string
	}{
		{"a host that is none", owner.post(hotel+"domains", filled("host", "10.0.0.1"), hotel+"domains"), 422, []string{"這不是主機名稱"}},
		{"an interface with a slash too much", owner.open(move("fronted", "https://hotel.example/a2a/")), 422, []string{"請移除結尾的斜線"}},
		{"a login at no provider", owner.post(hotel+"login", draftFor("nonsense", "subject_claim", "email"), hotel+"login"), 422, []string{"這不是簽發者網址", "電子郵件地址日後可能屬於別人"}},
		{"a webhook nobody calls", owner.post(hotel+"webhooks", filled("url", "http://hotel.example/hook"), hotel+"webhooks"), 422, []string{"我們不會呼叫這個位址"}},
		{"a key without rights", owner.post(hotel+"api-keys", filled("name", "x"), hotel+"api-keys"), 422, []string{"請至少勾選一項權限"}},
		{"a provider that spells itself otherwise", owner.post(hotel+"login/look", draftFor(idp.Issuer()+"/"), hotel+"login"), 200, []string{"請採用服務商的寫法", "可用的金鑰"}},
		{"a provider that does not answer", owner.post(hotel+"login/look", draftFor("http://127.0.0.1:1"), hotel+"login"), 200, []string{"無法連線"}},
	} {
		tt.page.must(tt.status, tt.says...)
		tt.page.mustNot("To mend", "prove the domain first", "is no ", "is not ", "cannot be", "must be the same", `class="say" lang="en"`)
	}
	// A domain whose proof is not there: by file and by record.
	owner.post(hotel+"domains", filled("host", "inn.example"), hotel+"domains").mustGo(hotel + "domains")
	owner.post(hotel+"domains/inn.example/check", nil, hotel+"domains").mustGo(hotel + "domains?checked")
	owner.open(hotel+"domains?checked").must(http.StatusOK, "主機回應 404", "沒有這筆記錄").mustNot("the host answers", "no such record")
	// The network's own reason is in the page's language too.
	owner.post(hotel+"domains", filled("host", nowhere), hotel+"domains").mustGo(hotel + "domains")
	owner.post(hotel+"domains/"+nowhere+"/check", nil, hotel+"domains").mustGo(hotel + "domains?checked")
	owner.open(hotel+"domains?checked").must(http.StatusOK, "主機沒有可連線的公開位址").mustNot("no public address")
	// What waits says in words what would be, and what programs call it.
	d := tenants.WebhookDraft{URL: "https://hotel.example/hook", Events: []string{"grant.revoked", "grant.created"}, Format: tenants.FormatSET}
	if _, err := s.asks.AskWebhook(t.Context(), s.program(), tenants.Site{PublicURL: origin}, "harbor-hotel", d, "abcdefghijkl", "api"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.asks.AskInvitation(t.Context(), s.program(), "harbor-hotel", "sami@example.com", tenants.Support, "abcdefghijkl", "api"); err != nil {
		t.Fatal(err)
	}
	s.askKey(t)
	owner.open(hotel+"changes").must(http.StatusOK, "grant.revoked – 停止助理；grant.created", "格式", "事件", "位址", "introspect – ", "權限").
		mustNot(`[&#34;grant`, "<bdi>url</bdi>", "<bdi>events</bdi>", "<bdi>format</bdi>", "<bdi>rights</bdi>", "<bdi>name</bdi>", `>support<`, "目前</th>")
	if s.Count(t, `SELECT count(*) FROM login_connections WHERE brand_id = 'harbor-hotel' AND issuer = 'nonsense'`) != 0 {
		t.Error("nonsense was kept")
	}
}
