package node

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every goroutine of the package runs under guarded: in one that does not, a panic ends the
// program and prints its value.
func TestEveryGoroutineIsGuarded(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
			case *ast.CallExpr:
				if called, ok := n.Fun.(*ast.SelectorExpr); !ok || called.Sel.Name != "Go" {
					return true
				}
			default:
				return true
			}
			found++
			body := text[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset]
			if !bytes.Contains(body, []byte("c.guarded(")) && !bytes.Contains(body, []byte("c.part(")) {
				t.Errorf("%s: %s", set.Position(n.Pos()), body)
			}
			return true
		})
	}
	if found < 3 {
		t.Errorf("found %d", found)
	}
}
