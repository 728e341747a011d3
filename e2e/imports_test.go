package e2e

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "countersign.dev/"

// mayImport says, for every package of ours, which others of ours it may import.
// A trailing /... allows the whole tree. Test helpers (packages whose name ends
// in "test") are imported by tests only and may import what they need.
var mayImport = map[string][]string{
	"tenants":                      {"tenants/egress"}, // what a Brand may name, before it is saved
	"tenants/egress":               {},
	"tenants/api":                  {"authority", "authority/events", "authority/export", "authority/signing", "tenants", "web", "web/alike"},
	"tenants/console":              {"authority", "authority/events", "authority/export", "authority/signing", "authority/tryout", "authority/verify", "deploy/proxy", "tenants", "tenants/egress", "tenants/console/pages", "tenants/mail", "web", "web/alike", "web/i18n", "web/static", "web/ui"},
	"tenants/console/pages":        {"web/ui"},
	"tenants/mail":                 {},
	"migrations":                   {},
	"migrations/localpg":           {},
	"authority/signing":            {"tenants"}, // names Brands, and keeps public keys behind the fence
	"authority/signing/local":      {"authority/signing", "tenants"},
	"authority/signing/transit":    {"authority/signing", "tenants"},
	"authority":                    {"authority/canonical", "authority/receiptlog", "authority/signing", "authority/statuslist", "tenants"},
	"authority/export":             {"authority", "authority/signing", "tenants"}, // a Brand, to be taken along
	"authority/agent":              {"tenants", "tenants/egress", "authority/signing"},
	"authority/events":             {"authority", "authority/signing", "tenants", "tenants/egress"},
	"authority/oauth":              {"authority", "authority/agent", "authority/events", "authority/receiptlog", "authority/signing", "tenants", "web"},
	"authority/a2a":                {"authority", "authority/a2a/surface", "authority/agent", "authority/events", "authority/receiptlog", "authority/signing", "tenants", "tenants/egress", "web"},
	"authority/a2a/surface":        {}, // Brands import it: no database behind it
	"authority/canonical":          {},
	"authority/receiptlog":         {"authority/canonical"},
	"authority/statuslist":         {},
	"authority/witness":            {"authority/verify"},
	"authority/tryout":             {"authority/verify", "tenants"},
	"deploy/proxy":                 {},
	"e2e/conformance":              {},                                                                                        // a black box's view: nothing of ours
	"authority/verify":             {"authority/canonical", "authority/receiptlog", "authority/statuslist", "tenants/egress"}, // Brands import it: no database behind it
	"web":                          {},
	"web/alike":                    {},
	"web/i18n":                     {},
	"web/static":                   {},
	"web/ui":                       {"web/static"},
	"consent":                      {"authority", "tenants", "web", "web/i18n", "web/ui", "consent/federation", "consent/pages", "consent/words"},
	"consent/federation":           {"tenants"},
	"consent/federation/demoidp":   {},
	"consent/pages":                {"web/ui"},
	"consent/words":                {"consent/pages", "web/alike", "web/i18n", "web/ui"},
	"cmd/countersign":              {"..."},
	"cmd/countersign/outfitter":    {"authority/a2a/surface", "authority/verify"}, // a Brand's own program: nothing behind the door
	"cmd/countersign/shell":        {},
	"cmd/countersign/pa":           {"cmd/countersign/filelock", "cmd/countersign/pa/discovery", "cmd/countersign/shell"},
	"cmd/countersign/pa/discovery": {"cmd/countersign/shell"},
	"cmd/countersign/filelock":     {},
	"cmd/countersign/witness":      {"authority/receiptlog", "authority/verify", "authority/witness", "cmd/countersign/filelock", "cmd/countersign/pa/discovery", "cmd/countersign/shell"},
	"cmd/countersign/check":        {"authority/receiptlog", "authority/verify", "authority/witness", "cmd/countersign/pa/discovery", "cmd/countersign/shell"},
}

// foreign are libraries that only one place may know.
var foreign = map[string][]string{
	"github.com/ory/fosite":          {"authority/oauth"},
	"github.com/gorilla/sessions":    {"web", "consent", "tenants/console"},
	"github.com/coreos/go-oidc":      {"consent/federation"},
	"github.com/zitadel/oidc":        {"consent/federation/demoidp"},
	"github.com/pressly/goose":       {"migrations"},
	"github.com/hashicorp/vault/api": {"authority/signing/transit"},
	"github.com/riverqueue/river":    {"authority/events", "migrations"},
	"github.com/go-webauthn":         {"tenants/console"},
	"github.com/wneessen/go-mail":    {"tenants/mail"},
	// What agents send is held against a Brand's schemas there; our own documents, in tests.
	"github.com/santhosh-tekuri/jsonschema": {"tenants"},
}

// The house keeps its shape: who may import whom, and nobody imports cmd.
func TestImportRules(t *testing.T) {
	seen := make(map[string]bool)
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "node_modules" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := path.Dir(strings.TrimPrefix(filepath.ToSlash(file), "../"))
		if strings.HasSuffix(from, "test") || from == "e2e" || strings.HasPrefix(from, "e2e/") && mayImport[from] == nil {
			return nil
		}
		seen[from] = true
		for _, spec := range parsed.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			checkImport(t, file, from, to)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for from := range seen {
		if _, ok := mayImport[from]; !ok {
			t.Errorf("package %s is not in the rules: say here what it may import", from)
		}
	}
	for from := range mayImport {
		if !seen[from] {
			t.Errorf("the rules name %s, which does not exist", from)
		}
	}
}

func checkImport(t *testing.T, file, from, to string) {
	t.Helper()
	for library, homes := range foreign {
		if strings.HasPrefix(to, library) && !slices.Contains(homes, from) {
			t.Errorf("%s imports %s, which only %s may know", file, to, strings.Join(homes, ", "))
		}
	}
	ours, ok := strings.CutPrefix(to, module)
	if !ok {
		return
	}
	if strings.HasSuffix(ours, "test") {
		t.Errorf("%s imports the test helper %s outside of tests", file, ours)
		return
	}
	if strings.HasPrefix(ours, "cmd/") && !strings.HasPrefix(from, "cmd/") {
		t.Errorf("%s imports %s: nobody imports cmd", file, ours)
	}
	allowed := mayImport[from]
	if !slices.Contains(allowed, "...") && !slices.Contains(allowed, ours) {
		t.Errorf("%s: %s may not import %s", file, from, ours)
	}
}
