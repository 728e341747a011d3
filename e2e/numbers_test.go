package e2e

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// owed lists the rules (M), interoperability checks (P), public faults (B) and
// requirements (R) that this product answers for. Each must be named by a test.
var owed = map[string]string{
	"P": "1-48",
	"B": "1 3 5 7 8 10 11 13-17 19-21 23 " + // the device grant
		"24 25 28 29 31-33 " + // refresh
		"34 36 38-40 42 " + // consent and grants
		"43 45 46 48 49 51 53 " + // the browser's state
		"54 56 58-60 62 63 " + // login at the Brand
		"67 68 70 71 73 74 76 77 " + // signing keys, JWKS, Vault
		"78 79 81 82 84 86 88 " + // inbound JWTs
		"90 92 94-96 98 99 " + // Brands apart, and their life
		"100 103-105 " + // parsing
		"108 110-113 " + // the machine room: connections, migrations, clocks, time-outs
		"114 115 117", // pages
	"M": "1-24",
	"R": "1-41 43-86",
}

var (
	numbered = regexp.MustCompile(`\b([MPBR])(\d{1,3})(?:[–-]([MPBR]?)(\d{1,3}))?\b`)
	span     = regexp.MustCompile(`^(\d+)(?:-(\d+))?$`)
)

// Every number that is owed is named in a test's name or comment.
func TestEveryNumberHasATest(t *testing.T) {
	named := make(map[string]bool)
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "numbers_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, c := range parsed.Comments {
			collect(named, c.Text())
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				collect(named, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, ranges := range owed {
		for field := range strings.FieldsSeq(ranges) {
			m := span.FindStringSubmatch(field)
			if m == nil {
				t.Fatalf("range %q", field)
			}
			first, last := number(m[1]), number(m[1])
			if m[2] != "" {
				last = number(m[2])
			}
			for n := first; n <= last; n++ {
				if id := fmt.Sprint(kind, n); !named[id] {
					t.Errorf("no test names %s", id)
				}
			}
		}
	}
}

// collect adds every number in text; "M3–M6" and "M3-6" name all between.
func collect(named map[string]bool, text string) {
	for _, m := range numbered.FindAllStringSubmatch(text, -1) {
		first, last := number(m[2]), number(m[2])
		if m[4] != "" && (m[3] == "" || m[3] == m[1]) {
			last = number(m[4])
		}
		for n := first; n <= last && n-first < 30; n++ {
			named[fmt.Sprint(m[1], n)] = true
		}
	}
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
