package console_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
	"countersign.dev/web/i18n"
)

// Every sentence that the dashboard says stands in the catalogue, and nothing else
// does: a key that does not exist says nothing, and nobody would notice.
func TestTheDashboardHasItsWords(t *testing.T) {
	catalogue, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, key := range catalogue.Keys() {
		known[key] = true
	}
	var source strings.Builder
	for _, pattern := range []string{"*.go", "../problem.go", "../../cmd/countersign/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	for _, m := range regexp.MustCompile(`"(console\.[a-z.]+[a-z])"`).FindAllStringSubmatch(source.String(), -1) {
		if !known[m[1]] && m[1] != "console.css" {
			t.Errorf("%s is not in the catalogue", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`Mistake\s+= "([a-z]+)"`).FindAllStringSubmatch(source.String(), -1) {
		if !known["console.mistake."+m[1]] {
			t.Errorf("the mistake %s has no words", m[1])
		}
	}
	for _, key := range console.SettingKeys() {
		if !known[key] {
			t.Errorf("%s is not in the catalogue", key)
		}
	}
	// Keys that are put together.
	for _, made := range []string{"console.role.%", "console.role.%.may"} {
		for _, r := range tenants.Roles() {
			if key := strings.ReplaceAll(made, "%", string(r)); !known[key] {
				t.Errorf("%s is not in the catalogue", key)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\s+\w+\s+kind = "([a-z]+)"`).FindAllStringSubmatch(source.String(), -1) {
		for _, part := range []string{".heading", ".what", ".next"} {
			if key := "console.trouble." + m[1] + part; !known[key] {
				t.Errorf("%s is not in the catalogue", key)
			}
		}
	}
	for _, m := range regexp.MustCompile(`event\w+\s+= "([a-z_.]+)"`).FindAllStringSubmatch(source.String(), -1) {
		if !known["console.event."+m[1]] {
			t.Errorf("the event %s has no words", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`letter\([^")]+, "([a-z]+)"`).FindAllStringSubmatch(source.String(), -1) {
		for _, part := range []string{".subject", ".text"} {
			if key := "console.mail." + m[1] + part; !known[key] {
				t.Errorf("%s is not in the catalogue", key)
			}
		}
	}
	// What a field or a way to live says of itself hangs on its name.
	for _, m := range regexp.MustCompile(`"[a-z_]+":\s+"(console\.(?:domains|interface|connect|move)\.[a-z]+)"`).FindAllStringSubmatch(source.String(), -1) {
		if !known[m[1]+".hint"] {
			t.Errorf("%s.hint is not in the catalogue", m[1])
		}
	}
	said := func(key string) bool { return strings.Contains(source.String(), `"`+key+`"`) }
	for key := range known {
		if base, tail := key[:strings.LastIndex(key, ".")+1], key[strings.LastIndex(key, ".")+1:]; slices.Contains([]string{"hint", "what", "needs"}, tail) && said(strings.TrimSuffix(base, ".")) {
			continue
		}
		made := regexp.MustCompile(`^console\.(role|trouble|event|mail|actor|link|member|todo|problem\.empty|field|set|mistake|look|perm|rule|judge|supportagent|pending\.state|pending\.proven)\.`)
		if strings.HasPrefix(key, "console.") && !made.MatchString(key) && !strings.Contains(source.String(), `"`+key+`"`) {
			t.Errorf("nobody says %s", key)
		}
	}
}
