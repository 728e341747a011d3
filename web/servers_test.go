package web_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// B113: whoever opens a server of ours sets all four time-outs, and nobody uses
// net/http's own server, which has none.
func TestEveryServerHasItsTimeOuts(t *testing.T) {
	servers := 0
	files := token.NewFileSet()
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(files, file, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if !isHTTP(n.Type, "Server") {
					return true
				}
				servers++
				set := make(map[string]bool)
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						set[kv.Key.(*ast.Ident).Name] = true
					}
				}
				for _, name := range []string{"ReadHeaderTimeout", "ReadTimeout", "WriteTimeout", "IdleTimeout"} {
					if !set[name] {
						t.Errorf("%s: a server without %s", files.Position(n.Pos()), name)
					}
				}
			case *ast.CallExpr:
				for _, name := range []string{"ListenAndServe", "ListenAndServeTLS", "Serve", "ServeTLS"} {
					if isHTTP(n.Fun, name) {
						t.Errorf("%s: http.%s has no time-outs", files.Position(n.Pos()), name)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if servers < 2 {
		t.Errorf("only %d servers were found", servers)
	}
}

func isHTTP(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "http"
}
