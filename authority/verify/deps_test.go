package verify

import (
	"os/exec"
	"strings"
	"testing"
)

// Whoever distrusts the authority can still read this package: behind it stand the
// standard library, one library each for JOSE, RFC 8785 and Merkle trees, and small
// packages of ours. No database, no OAuth library, nothing of the service.
func TestNothingOfTheServiceStandsBehindTheKit(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"countersign.dev/authority/verify", "countersign.dev/authority/statuslist", "countersign.dev/tenants/egress",
		"countersign.dev/authority/canonical", "countersign.dev/authority/receiptlog",
		"github.com/go-jose/go-jose/v4", "github.com/go-jose/go-jose/v4/",
		"github.com/go-json-experiment/json/", "golang.org/x/mod/sumdb/tlog",
	}
	for dependency := range strings.FieldsSeq(string(out)) {
		ok := false
		for _, a := range allowed {
			ok = ok || dependency == a || strings.HasSuffix(a, "/") && strings.HasPrefix(dependency, a)
		}
		if !ok {
			t.Errorf("%s stands behind the kit", dependency)
		}
	}
}
