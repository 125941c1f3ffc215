// Package codes checks that a package lists and explains the codes that it declares.
package codes

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/problem"
)

// Check checks a list of codes and their explanations against the source files in the
// working directory. Blocks of constants declare codes if their comment begins with "The
// codes of", and the map explanations explains them.
func Check(t *testing.T, listed []problem.Code, explain func(problem.Code) string) {
	t.Helper()
	for i, code := range listed {
		if text := explain(code); len(text) < 40 || !strings.HasSuffix(text, ".") {
			t.Errorf("the explanation of %s is %q", code, text)
		}
		if slices.Contains(listed[:i], code) {
			t.Errorf("%s is listed twice", code)
		}
	}
	if text := explain("no-such-code"); text != "" {
		t.Errorf("an unknown code has the explanation %q", text)
	}
	declared, explained := source(t)
	for name, code := range declared {
		if !slices.Contains(listed, code) {
			t.Errorf("the code %s of %s is not listed", code, name)
		}
	}
	if len(declared) == 0 || len(explained) == 0 {
		t.Errorf("%d codes are declared, %d explained", len(declared), len(explained))
	}
	for _, key := range explained {
		code, ok := declared[key]
		if text, err := strconv.Unquote(key); err == nil {
			code, ok = problem.Code(text), true
		}
		if !ok || !slices.Contains(listed, code) {
			t.Errorf("there is an explanation of %s, which is not listed", key)
		}
	}
}

// source returns the declared codes by the names of their constants, and the keys of the
// map explanations as they are written.
func source(t *testing.T) (declared map[string]problem.Code, explained []string) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared = map[string]problem.Code{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				v, ok := s.(*ast.ValueSpec)
				switch {
				case !ok || len(v.Values) != 1:
				case v.Names[0].Name == "explanations":
					explained = keys(v.Values[0])
				case strings.HasPrefix(g.Doc.Text(), "The codes of"):
					if literal, ok := v.Values[0].(*ast.BasicLit); ok {
						text, _ := strconv.Unquote(literal.Value)
						declared[v.Names[0].Name] = problem.Code(text)
					}
				}
			}
		}
	}
	return declared, explained
}

// keys returns the keys of a map literal as they are written.
func keys(e ast.Expr) (list []string) {
	for _, element := range e.(*ast.CompositeLit).Elts {
		switch key := element.(*ast.KeyValueExpr).Key.(type) {
		case *ast.Ident:
			list = append(list, key.Name)
		case *ast.BasicLit:
			list = append(list, key.Value)
		}
	}
	return list
}
