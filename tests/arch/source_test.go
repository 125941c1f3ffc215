package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoroutinesStartInGuard rejects go statements outside tests. A panic on a
// goroutine without recover ends the whole process, including a Python program
// that loaded the library.
func TestGoroutinesStartInGuard(t *testing.T) {
	for _, p := range list(t, builds[0]) {
		if !p.ours() || p.path() == "internal/guard" || strings.HasPrefix(p.path(), "tests/") || strings.HasSuffix(p.path(), "test") {
			continue
		}
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			eachNode(t, filepath.Join(p.Dir, name), func(fset *token.FileSet, n ast.Node) {
				if stmt, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s: go statement outside internal/guard: use guard.Go, which turns a panic into an error", fset.Position(stmt.Pos()))
				}
			})
		}
	}
}

// TestOneCommentPerPackage checks that a package has one package comment.
func TestOneCommentPerPackage(t *testing.T) {
	for _, p := range list(t, builds[0]) {
		if !p.ours() {
			continue
		}
		var with []string
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil {
				with = append(with, name)
			}
		}
		if len(with) > 1 {
			t.Errorf("%s has package comments in %v: keep one", p.path(), with)
		}
	}
}

func eachNode(t *testing.T, path string, visit func(*token.FileSet, ast.Node)) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		visit(fset, n)
		return true
	})
}
