package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/golden"
)

// TestABI compares everything that compiled callers depend on with abi.txt. The
// first release has ABI 1.0. After it, a change that only adds at the end raises
// MF_ABI_MINOR, and any other change raises MF_ABI_MAJOR.
func TestABI(t *testing.T) {
	folder := library(t)
	got := execute(t, compile(t, folder, "abi.c")) + strings.Join(exported(t, folder), "\n") + "\n"
	if golden.Compare(t, "abi.txt", got); t.Failed() {
		t.Error("after a release, raise MF_ABI_MINOR or MF_ABI_MAJOR first")
	}
}

func open(t *testing.T, folder string) *elf.File {
	t.Helper()
	f, err := elf.Open(filepath.Join(folder, "libmeshfeed.so"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// exported lists the exported symbols of the library.
func exported(t *testing.T, folder string) []string {
	symbols, err := open(t, folder).DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestSymbols compares the exported symbols with the functions in the headers.
func TestSymbols(t *testing.T) {
	if got, want := exported(t, library(t)), declared(t); !slices.Equal(got, want) {
		t.Errorf("the library exports\n%v\nbut the headers declare\n%v", got, want)
	}
}

func headers(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("include/*.h")
	if err != nil || len(list) != 4 {
		t.Fatalf("headers are %v, %v", list, err)
	}
	return list
}

// TestHeadersStandAlone compiles each header alone, with the oldest and the
// newest supported language standards.
func TestHeadersStandAlone(t *testing.T) {
	for _, header := range headers(t) {
		for _, args := range [][]string{{"gcc", "-std=c99", "-xc"}, {"gcc", "-std=c17", "-xc"}, {"g++", "-std=c++11", "-xc++"}, {"g++", "-std=c++20", "-xc++"}} {
			if text, err := syntax(args, fmt.Sprintf("#include %q\nint main(void) { return 0; }\n", filepath.Base(header))); err != nil {
				t.Errorf("%v with %s: %v\n%s", args, header, err, text)
			}
		}
	}
}

// syntax checks a program with a compiler, with warnings as errors.
func syntax(compiler []string, program string) (string, error) {
	args := append(slices.Clone(compiler[1:]), "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Iinclude", "-")
	cmd := exec.Command(compiler[0], args...)
	cmd.Stdin = strings.NewReader(program)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// TestHandlesHaveTypes: compilers refuse a handle of another kind, and a number.
func TestHandlesHaveTypes(t *testing.T) {
	const program = "#include \"meshfeed.h\"\nmf_status f(mf_loader loader, mf_layout layout, mf_bytes* out);\n" +
		"mf_status f(mf_loader loader, mf_layout layout, mf_bytes* out) {\n(void)loader; (void)layout; return mf_layout_json(%s, out, 0);\n}\n"
	for _, compiler := range [][]string{{"gcc", "-std=c99", "-xc"}, {"g++", "-std=c++17", "-xc++"}} {
		if text, err := syntax(compiler, fmt.Sprintf(program, "layout")); err != nil {
			t.Errorf("%s refuses a layout: %s", compiler[0], text)
		}
		for _, wrong := range []string{"loader", "0", "7", "layout.id"} {
			if _, err := syntax(compiler, fmt.Sprintf(program, wrong)); err == nil {
				t.Errorf("%s takes %s for a layout", compiler[0], wrong)
			}
		}
	}
}

// declared lists the functions of the headers that the library exports.
func declared(t *testing.T) []string {
	var names []string
	for _, path := range headers(t) {
		if path == "include/meshfeed_views.h" {
			continue // its functions are in the header alone
		}
		header, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAll(header, nil)
		for _, m := range regexp.MustCompile(`\b(mf_\w+)\(`).FindAllSubmatch(code, -1) {
			names = append(names, string(m[1]))
		}
	}
	slices.Sort(names)
	return names
}

// TestEveryFunctionIsTried: ctest/every.c, which tests the first steps of all
// functions that enter Go, calls each of them.
func TestEveryFunctionIsTried(t *testing.T) {
	text, err := os.ReadFile("ctest/every.c")
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`^mf_(abi_version|version|code_name|bytes_free|json_append|map_(reserve|queue_\w+)|batch_(retain|release|tensor|dlpack|dlpack_legacy|arrow|record|stream)|python_\w+|live_\w+|release|cancel_all)$`)
	for _, name := range declared(t) {
		if !plain.MatchString(name) && !bytes.Contains(text, []byte(name+"(")) {
			t.Errorf("ctest/every.c does not call %s", name)
		}
	}
}

// TestNeeds: the library needs only the C library, in a version that the tag of
// the wheel can name.
func TestNeeds(t *testing.T) {
	f := open(t, library(t))
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range libraries {
		if !slices.Contains([]string{"libc.so.6", "libpthread.so.0", "libdl.so.2", "libresolv.so.2"}, l) && !strings.HasPrefix(l, "ld-linux") {
			t.Errorf("the library needs %s", l)
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	highest := 0
	for _, s := range symbols {
		if minor, ok := strings.CutPrefix(s.Version, "GLIBC_2."); ok {
			n, _ := strconv.Atoi(strings.Split(minor, ".")[0])
			highest = max(highest, n)
		}
	}
	t.Logf("needs GLIBC 2.%d", highest)
	if highest > 36 {
		t.Errorf("the library needs GLIBC 2.%d", highest)
	}
	if soname, _ := f.DynString(elf.DT_SONAME); !slices.Equal(soname, []string{"libmeshfeed.so.1"}) {
		t.Errorf("the library's name is %v", soname)
	}
}

// codes returns name=number for every code in a file, in Go's spelling.
func codes(t *testing.T, path, pattern string, spell func(string) string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		list = append(list, spell(string(m[1]))+"="+string(m[2]))
	}
	return list
}

// TestErrorCodes compares the codes of Go, the header and Python.
func TestErrorCodes(t *testing.T) {
	var want []string
	for _, c := range status.Codes() {
		want = append(want, fmt.Sprintf("%v=%d", c, c))
	}
	camel := func(s string) string {
		out := ""
		for _, word := range strings.Split(s, "_") {
			if word == "OK" || word == "IO" {
				out += word
			} else {
				out += word[:1] + strings.ToLower(word[1:])
			}
		}
		return out
	}
	header := codes(t, "include/meshfeed.h", `(?m)^  MF_([A-Z_]+) = (-?\d+),? +/\*`, camel)
	if !slices.Equal(header, want) {
		t.Errorf("the header has\n%v\nand Go has\n%v", header, want)
	}
	python := codes(t, "../python/meshfeed/errors.py", `(?m)^    (\w+) = (-?\d+)$`, func(s string) string { return s })
	if !slices.Equal(python, want) {
		t.Errorf("Python has\n%v\nand Go has\n%v", python, want)
	}
}

// TestExportsAreGuarded: every function that C calls is one guarded call, so that
// no panic ends the process.
func TestExportsAreGuarded(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if name == "faults.go" {
			continue // only in test builds
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !isExport(f.Doc) {
				continue
			}
			found++
			if !guarded(f.Body.List) {
				t.Errorf("%s: %s must consist of one call of call or with", name, f.Name.Name)
			}
		}
	}
	if found < 25 {
		t.Errorf("found only %d exported functions", found)
	}
}

func isExport(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//export ") })
}

func guarded(body []ast.Stmt) bool {
	if len(body) != 1 {
		return false
	}
	var e ast.Expr
	switch s := body[0].(type) {
	case *ast.ReturnStmt:
		e = s.Results[0]
	case *ast.ExprStmt:
		e = s.X
	}
	c, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := c.Fun.(*ast.Ident)
	return ok && slices.Contains([]string{"call", "with", "withLoader", "withMade"}, name.Name)
}

// TestGoStoresNoPointers finds Go code that assigns a pointer through an
// out-parameter. The write barrier of the garbage collector would read the old
// value, which may be anything.
func TestGoStoresNoPointers(t *testing.T) {
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if regexp.MustCompile(`^\s*\*\w+ = (?:nil|unsafe|\(?\*)`).Match(line) {
				t.Errorf("%s:%d stores a pointer into C memory: %s", name, i+1, line)
			}
		}
	}
}
