// Command godoc writes the documentation of the module's public packages as Markdown, for the site.
//
//	go run ./tests/godoc -out FOLDER
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The packages that users import are below these patterns.
var patterns = []string{".", "./core/...", "./arrowio/..."}

// module is the import path of the root package, and the prefix of all others.
const module = "github.com/meshfeed/meshfeed"

// private matches the paths of packages that users do not import: internal ones and test suites.
var private = regexp.MustCompile(`(^|/)(internal(/|$)|\w+test$)`)

// listed holds what `go list -json` says about a package.
type listed struct {
	ImportPath, Dir, Name     string
	GoFiles, CgoFiles         []string
	TestGoFiles, XTestGoFiles []string
}

func main() {
	out := flag.String("out", "", "the folder for the pages")
	flag.Parse()
	if err := run(*out); err != nil {
		log.Fatal(err)
	}
}

func run(out string) error {
	packages, err := list()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var index bytes.Buffer
	index.WriteString("# Go\n\nThe module is `" + module + "`. [Other languages](../../languages.md) has a program.\n\n" +
		"| package | contents |\n| --- | --- |\n")
	tree := "\n```{toctree}\n:hidden:\n\n"
	for _, l := range packages {
		p, fset, err := read(l)
		if err != nil {
			return err
		}
		var page bytes.Buffer
		(&writer{Writer: &page, pkg: p, fset: fset}).page()
		if err := os.WriteFile(filepath.Join(out, place(l.ImportPath)), page.Bytes(), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&index, "| [`%s`](%s) | %s |\n", title(l.ImportPath), place(l.ImportPath), escaped(p.Synopsis(p.Doc)))
		tree += strings.TrimSuffix(place(l.ImportPath), ".md") + "\n"
	}
	index.WriteString(tree + "```\n")
	return os.WriteFile(filepath.Join(out, "index.md"), index.Bytes(), 0o644)
}

// list returns the packages that users import.
func list() ([]listed, error) {
	text, err := exec.Command("go", append([]string{"list", "-json"}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var found []listed
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var l listed
		if err := decoder.Decode(&l); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		if l.Name != "main" && !private.MatchString(title(l.ImportPath)) {
			found = append(found, l)
		}
	}
}

// read parses a package with its examples.
func read(l listed) (*doc.Package, *token.FileSet, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Concat(l.GoFiles, l.CgoFiles, l.TestGoFiles, l.XTestGoFiles) {
		f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, l.ImportPath)
	return p, fset, err
}

// writer writes the page of one package.
type writer struct {
	io.Writer
	pkg  *doc.Package
	fset *token.FileSet
}

func (w *writer) page() {
	w.anchor("")
	fmt.Fprintf(w, "# %s\n\n```go\nimport %q\n```\n\n", title(w.pkg.ImportPath), w.pkg.ImportPath)
	w.text(w.pkg.Doc, 2)
	w.examples(w.pkg.Examples)
	w.values("Constants", w.pkg.Consts)
	w.values("Variables", w.pkg.Vars)
	if len(w.pkg.Funcs) > 0 {
		fmt.Fprint(w, "## Functions\n\n")
		w.funcs(w.pkg.Funcs, 3)
	}
	if len(w.pkg.Types) > 0 {
		fmt.Fprint(w, "## Types\n\n")
	}
	for _, t := range w.pkg.Types {
		w.anchor(t.Name)
		for _, field := range fields(t.Decl) {
			w.anchor(t.Name + "." + field)
		}
		fmt.Fprintf(w, "### type %s\n\n", t.Name)
		w.decl(t.Decl)
		w.text(t.Doc, 4)
		w.examples(t.Examples)
		w.values("", t.Consts)
		w.values("", t.Vars)
		w.funcs(t.Funcs, 4)
		w.funcs(t.Methods, 4)
	}
}

// fields returns the names of the fields of a struct, or of the methods of an interface.
func fields(d *ast.GenDecl) (names []string) {
	for _, s := range d.Specs {
		spec, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		members := new(ast.FieldList)
		switch t := spec.Type.(type) {
		case *ast.StructType:
			members = t.Fields
		case *ast.InterfaceType:
			members = t.Methods
		}
		for _, f := range members.List {
			for _, name := range f.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// values writes groups of constants or variables, below a heading unless it is empty.
func (w *writer) values(heading string, groups []*doc.Value) {
	if heading != "" && len(groups) > 0 {
		fmt.Fprintf(w, "## %s\n\n", heading)
	}
	for _, v := range groups {
		for _, name := range v.Names {
			if token.IsExported(name) {
				w.anchor(name)
			}
		}
		w.decl(v.Decl)
		w.text(v.Doc, 4)
	}
}

func (w *writer) funcs(funcs []*doc.Func, level int) {
	for _, f := range funcs {
		name, receiver := f.Name, ""
		if f.Recv != "" {
			base, _, _ := strings.Cut(strings.TrimPrefix(f.Recv, "*"), "[")
			name = base + "." + f.Name
			receiver = "(" + f.Recv + ") "
		}
		w.anchor(name)
		fmt.Fprintf(w, "%s func %s%s\n\n", strings.Repeat("#", level), escaped(receiver), f.Name)
		w.decl(f.Decl)
		w.text(f.Doc, level+1)
		w.examples(f.Examples)
	}
}

func (w *writer) examples(examples []*doc.Example) {
	for _, e := range examples {
		code := w.format(e.Code)
		if block, ok := e.Code.(*ast.BlockStmt); ok {
			code = unindented(w.format(&ast.BlockStmt{List: block.List}))
		}
		if e.Play != nil {
			code = w.format(e.Play)
		}
		fmt.Fprintf(w, "**Example**\n\n```go\n%s\n```\n\n", strings.TrimSpace(code))
		if e.Output != "" {
			fmt.Fprintf(w, "```text\n%s\n```\n\n", strings.TrimSpace(e.Output))
		}
	}
}

// unindented removes the braces around the body of an example.
func unindented(block string) string {
	body := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(block), "{"), "}")
	return strings.ReplaceAll(body, "\n\t", "\n")
}

func (w *writer) decl(d ast.Decl) {
	if f, ok := d.(*ast.FuncDecl); ok {
		f.Body = nil
	}
	fmt.Fprintf(w, "```go\n%s\n```\n\n", w.format(d))
}

func (w *writer) format(node any) string {
	var text strings.Builder
	if err := format.Node(&text, w.fset, node); err != nil {
		log.Fatalf("%s: %v", w.pkg.ImportPath, err)
	}
	return text.String()
}

// text writes a comment as Markdown with links to the other pages.
func (w *writer) text(text string, level int) {
	printer := w.pkg.Printer()
	printer.HeadingLevel = level
	printer.HeadingID = func(*comment.Heading) string { return "" }
	printer.DocLinkURL = func(l *comment.DocLink) string {
		path := l.ImportPath
		if path == "" {
			path = w.pkg.ImportPath
		}
		if path != module && !strings.HasPrefix(path, module+"/") || private.MatchString(title(path)) {
			return l.DefaultURL("https://pkg.go.dev")
		}
		name := l.Name
		if l.Recv != "" {
			name = l.Recv + "." + l.Name
		}
		return place(path) + "#" + id(path, name)
	}
	if written := printer.Markdown(w.pkg.Parser().Parse(text)); len(written) > 0 {
		fmt.Fprintf(w, "%s\n", written)
	}
}

// anchor writes the target of links to a name, or to the package.
func (w *writer) anchor(name string) { fmt.Fprintf(w, "(%s)=\n", id(w.pkg.ImportPath, name)) }

// id returns the anchor of a name: core/mesh and Mesh.Size become go-core-mesh.mesh.size.
func id(path, name string) string {
	text := strings.TrimSuffix("go-"+title(path)+"."+name, ".")
	return strings.ToLower(strings.ReplaceAll(text, "/", "-"))
}

// title returns the path of a package in the module.
func title(path string) string {
	if path == module {
		return "meshfeed"
	}
	return strings.TrimPrefix(path, module+"/")
}

// place returns the name of a package's page.
func place(path string) string { return strings.ReplaceAll(title(path), "/", "-") + ".md" }

// escaped returns a text without the meaning that Markdown gives to its signs.
func escaped(text string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, "|", `\|`).Replace(text)
}
