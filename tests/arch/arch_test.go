// Package arch tests the structure of the module: which package may import
// which, which package may use which dependency, where goroutines may start,
// and that every package has exactly one package comment.
//
// A failure names the broken rule and its reason. To change a border, change
// the table here and write the reason into RATIONALE.md.
package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/meshfeed/meshfeed/"

// allowed lists, for each package, the packages of this module that it may
// import directly. It may also import everything that these may import. A name with "..." stands
// for all packages below.
var allowed = map[string][]string{
	// tier 0: open to all
	"core/status":       {},
	"internal/guard":    {"core/status"},
	"core/dtype":        {"core/status"},
	"core/mesh":         {"core/status", "internal/wording"},
	"internal/wording":  {},
	"internal/jsontext": {"core/status", "internal/wording"},
	"internal/form":     {"internal/jsontext"},
	// the memory of the machine, for caches and for the report of a problem
	"internal/hostmemory": {},
	// tier 1
	"core/internal/permutation": {},
	"core/problem":              {},
	"core/sharding":             {"core/mesh", "core/problem"},
	"core/sampler":              {"core/internal/permutation"},
	"core/source":               {"core/dtype"},
	"internal/drawing":          {},
	"internal/gather":           {"core/dtype"},
	"internal/arrowmeta":        {"core/dtype"},
	"internal/arrowtype":        {"internal/arrowmeta"},
	"internal/thrift":           {},
	"internal/parquet":          {"internal/arrowmeta", "internal/thrift"},
	"internal/parquet/encoding": {},
	"internal/parquet/levels":   {"internal/parquet", "internal/parquet/encoding"},
	"internal/tail":             {"internal/parquet"},
	"core/plan/hardware":        {"core/mesh"},
	"core/plan/pipeline":        {},
	"core/plan/internal/amount": {},
	"core/diagnosis":            {"core/sampler", "internal/wording"},
	// tier 2
	"core/layout":                 {"core/sharding", "core/sampler", "core/dtype"},
	"core/layout/document":        {"core/layout"},
	"core/layout/picture":         {"core/layout", "internal/drawing"},
	"core/plan/memory":            {"core/sharding", "core/plan/internal/amount"},
	"core/plan/strategy":          {"core/layout", "core/plan/transformer", "core/plan/hardware", "core/plan/collective", "core/plan/memory", "core/plan/pipeline"},
	"core/plan/collective":        {"core/plan/hardware"},
	"core/certificate":            {"core/sampler", "core/internal/permutation"},
	"core/plan/transformer":       {"core/plan/internal/amount"},
	"core/batch":                  {"core/dtype"},
	"internal/block":              {"core/source", "internal/gather"},
	"internal/columns":            {"core/source"},
	"internal/split":              {"core/layout", "internal/gather"},
	"core/source/cut":             {"internal/block"},
	"core/view":                   {"core/source/cut", "core/sampler", "core/view/packing", "core/view/mixture", "core/view/raster"},
	"core/view/mixture":           {"core/internal/permutation"},
	"core/view/packing":           {},
	"core/view/raster":            {"core/internal/permutation"},
	"core/view/raster/libjpeg":    {"core/view/raster"},
	"core/view/raster/webp":       {"core/view/raster"},
	"core/view/document":          {"core/view", "core/view/raster"},
	"core/plan/strategy/document": {"core/plan/strategy", "core/layout/document"},
	"core/diagnosis/document":     {"core/diagnosis", "core/sampler"},
	"core/plan/memory/document":   {"core/plan/memory", "core/layout/document"},
	"core/plan/diagram":           {"core/plan/strategy", "internal/drawing"},
	"core/plan/diagram/document":  {"core/plan/diagram", "core/layout/document"},
	// tier 3
	"core/loader": {"core/layout", "core/sampler", "core/source", "core/batch", "core/certificate", "core/diagnosis", "internal/guard"},
	"core/stream": {"core/loader", "core/view", "internal/block", "internal/guard"}, // one loader per chunk
	// tier 4
	"arrowio/blob":                     {},
	"arrowio/internal/local":           {"arrowio/blob"},
	"arrowio/internal/remote":          {"arrowio/blob"},
	"arrowio/internal/hub":             {"arrowio/internal/remote", "arrowio/internal/local"},
	"arrowio/internal/bucket":          {"arrowio/internal/remote", "arrowio/internal/credentials"},
	"arrowio/internal/credentials":     {"arrowio/internal/local"},
	"arrowio/internal/resident":        {"core/source", "arrowio/blob"},
	"arrowio/internal/buffers":         {"internal/arrowtype"},
	"arrowio/internal/index":           {},
	"arrowio/internal/format":          {"arrowio/internal/buffers", "arrowio/internal/audit", "arrowio/internal/resident"},
	"arrowio/internal/npy":             {"arrowio/blob"},
	"arrowio/internal/format/...":      {"arrowio/internal/format", "arrowio/internal/codec", "arrowio/internal/chunk", "arrowio/internal/npy"},
	"arrowio/internal/table":           {"arrowio/internal/index", "arrowio/internal/buffers", "core/source/cut", "arrowio/internal/resident"},
	"arrowio/internal/diskcache":       {"arrowio/internal/local"},
	"arrowio/internal/part":            {"arrowio/internal/buffers", "arrowio/internal/resident"},
	"arrowio/internal/audit":           {"internal/arrowmeta"},
	"arrowio/internal/verify":          {"arrowio/internal/units", "arrowio/internal/table"},
	"arrowio/internal/units":           {"arrowio/internal/index", "arrowio/internal/format", "arrowio/internal/union"},
	"arrowio/internal/decoded":         {"arrowio/internal/units", "arrowio/internal/local"},
	"arrowio/internal/lists":           {"arrowio/internal/decoded", "arrowio/internal/table"},
	"arrowio/internal/parts":           {"arrowio/internal/decoded", "arrowio/internal/table", "arrowio/internal/part", "arrowio/internal/diskcache", "arrowio/internal/spare", "internal/hostmemory"},
	"arrowio/internal/units/unitstest": {"arrowio/internal/units", "arrowio/internal/table"},
	"arrowio/internal/union":           {"arrowio/internal/files", "internal/arrowtype"},
	"arrowio/internal/fingerprint":     {"arrowio/internal/units"},
	"arrowio/internal/codec":           {"internal/parquet", "internal/guard"},
	"arrowio/internal/spare":           {},
	"arrowio/internal/chunk":           {"internal/parquet/levels", "arrowio/internal/codec", "arrowio/internal/spare"},
	"arrowio/internal/manifest":        {},
	"arrowio/internal/files":           {"arrowio/blob", "arrowio/internal/manifest", "core/view"},
	"arrowio/internal/ipcfile":         {"internal/arrowmeta", "internal/columns"},
	"arrowio":                          {"arrowio/internal/format/...", "arrowio/internal/lists", "arrowio/internal/parts", "arrowio/internal/verify", "arrowio/internal/fingerprint", "arrowio/internal/hub", "arrowio/internal/bucket"},
	"arrowio/convert":                  {"arrowio", "arrowio/internal/ipcfile"},
	"arrowio/cstream":                  {"arrowio/internal/table"},
	"arrowio/tensors":                  {"internal/block", "core/source/cut", "internal/jsontext", "arrowio/internal/local", "arrowio/internal/npy"},
	"arrowio/internal/goarrow":         {"arrowio/internal/table", "core/layout", "core/batch", "core/stream"},
	"arrowio/records":                  {"arrowio/internal/goarrow"},
	"arrowio/records18":                {"arrowio/internal/goarrow"},
	// gomlxfeed uses loaders and does not depend on any source
	"core/gomlxfeed/internal/virtual":     {"core/sharding"},
	"core/gomlxfeed":                      {"core/loader", "core/gomlxfeed/internal/virtual"},
	"core/gomlxfeed/xla/internal/environ": {},
	"core/gomlxfeed/xla/internal/library": {"core/gomlxfeed/xla/internal/environ"},
	"core/gomlxfeed/xla":                  {"core/gomlxfeed", "core/gomlxfeed/xla/internal/..."},
	// tier 5
	"capi":                  {"core/loader", "core/view/...", "core/layout/...", "core/plan/memory/...", "core/plan/strategy/document", "core/plan/diagram/document", "core/diagnosis/document", "core/certificate", "core/gomlxfeed", "core/gomlxfeed/xla", "arrowio", "arrowio/convert", "arrowio/cstream", "arrowio/tensors", "wasm/page", "internal/split", "internal/columns", "capi/internal/..."},
	"capi/internal/storage": {"arrowio/blob", "core/source", "internal/guard"},
	"capi/internal/handle":  {"internal/guard", "capi/internal/future"},
	"capi/internal/future":  {"internal/guard"},
	"tests/bench/gather":    {"core/source", "arrowio"},
	"docs/demo-go":          {"core/layout/picture", "core/gomlxfeed", "core/gomlxfeed/xla", "arrowio"},
	"cmd/meshfeed":          {"core/loader", "core/view/document", "core/sampler", "core/layout/...", "core/plan/memory/document", "core/plan/strategy/document", "core/plan/diagram/document", "core/diagnosis/document", "arrowio", "arrowio/convert", "wasm/host", "core/gomlxfeed", "core/gomlxfeed/xla", "wasm/page"},
	// the layout validator as WebAssembly, and the packages that run it
	"wasm/internal/envelope":      {},
	"wasm/internal/reply":         {"wasm/internal/envelope", "core/layout/document", "core/layout/picture", "internal/arrowtype", "internal/tail"},
	"wasm/guest/internal/reactor": {},
	"wasm/guest/layout":           {"wasm/guest/internal/reactor", "wasm/internal/reply"},
	"wasm/internal/advice":        {"wasm/internal/envelope", "core/plan/strategy/document", "core/plan/diagram/document", "core/layout/document", "core/plan/hardware", "core/plan/transformer"},
	"wasm/guest/strategy":         {"wasm/guest/internal/reactor", "wasm/internal/advice"},
	"wasm/page":                   {"core/status"},
	"wasm/host":                   {"internal/guard"},
	// conformance suites, which the tests of implementations import
	"core/sampler/samplertest": {"core/sampler"},
	"core/source/sourcetest":   {"core/source"},

	"internal/parquet/encoding/encodingtest": {},
	"internal/thrift/thrifttest":             {},
	"internal/arrowmeta/arrowmetatest":       {},

	"arrowio/blob/blobtest": {"arrowio/blob"},
}

var tier0 = []string{"core/status", "internal/guard", "core/dtype", "core/mesh", "internal/jsontext", "internal/form", "internal/wording"}

// reserved lists outside modules with the only packages that may import them.
var reserved = []struct {
	path  string
	users []string
	why   string
}{
	{"github.com/apache/arrow/go/v17", []string{"arrowio/records"}, "it doubles the C library and the command, which need none of it: only Go users hold its records"},
	{"github.com/apache/arrow-go/v18", []string{"arrowio/records18"}, "it doubles the C library and the command, which need none of it: only Go users hold its records"},
	{"github.com/gomlx/go-xla", []string{"core/gomlxfeed/xla"}, "it needs a C compiler, and changes the environment of every program that links it"},
	{"github.com/gomlx/", []string{"core/gomlxfeed", "core/gomlxfeed/internal/virtual", "core/gomlxfeed/xla", "docs/demo-go"}, "its API changes often, so only one folder and its demo depend on it"},
	{"golang.org/x/image", []string{"core/view/raster/webp"}, "a program that decodes no WebP does not download it"},
	{"github.com/tetratelabs/wazero", []string{"wasm/host"}, "only the host runs a guest"},
	{"runtime/cgo", []string{"capi", "arrowio/cstream", "core/gomlxfeed/xla", "core/gomlxfeed/xla/internal/library", "core/view/raster/libjpeg"}, "everything else must build without a C compiler"},
	{"C", []string{"capi", "arrowio/cstream", "core/gomlxfeed/xla", "core/gomlxfeed/xla/internal/library", "core/view/raster/libjpeg", "tests/bench/gather"}, "everything else must build without a C compiler"},
}

// build is one way of building the module.
type build struct {
	name     string
	env      []string
	tags     string
	patterns []string
}

var builds = []build{
	{name: "default", patterns: []string{"./..."}},
	{name: "without cgo", env: []string{"CGO_ENABLED=0"}, patterns: []string{"./core/...", "./arrowio", "./arrowio/records", "./arrowio/records18", "./cmd/..."}},
	{name: "tag nofar", tags: "nofar", patterns: []string{"./arrowio/...", "./capi", "./cmd/..."}},
	{name: "tag xla", tags: "xla", patterns: []string{"./..."}},
	{name: "wasip1", env: []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS="}, patterns: []string{"./core/...", "./internal/..."}},
}

type pkg struct {
	ImportPath string
	Name       string
	Standard   bool
	Dir        string
	Doc        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	Module     *struct{ Path string }
}

func (p pkg) ours() bool   { return strings.HasPrefix(p.ImportPath, module) }
func (p pkg) path() string { return strings.TrimPrefix(p.ImportPath, module) }

func list(t *testing.T, b build) []pkg {
	t.Helper()
	args := []string{"list", "-json=ImportPath,Name,Standard,Dir,Doc,GoFiles,CgoFiles,Imports,Module", "-tags=" + b.tags}
	cmd := exec.Command("go", append(args, b.patterns...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), b.env...)
	var diagnostics bytes.Buffer
	cmd.Stderr = &diagnostics
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, diagnostics.String())
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImports(t *testing.T) {
	for _, b := range builds {
		t.Run(b.name, func(t *testing.T) {
			for _, p := range list(t, b) {
				if !p.ours() || strings.HasPrefix(p.path(), "tests/") {
					continue
				}
				checkBorders(t, p)
				checkReserved(t, p)
			}
		})
	}
}

// listed returns the name under which a table lists a package: its path, or a pattern.
func listed[T any](table map[string]T, path string) (name string, ok bool) {
	if _, ok := table[path]; ok {
		return path, true
	}
	for name := range table {
		if strings.HasSuffix(name, "/...") && matches(name, path) {
			return name, true
		}
	}
	return "", false
}

func checkBorders(t *testing.T, p pkg) {
	name, known := listed(allowed, p.path())
	if !known {
		t.Errorf("package %s is not in the table of tests/arch: list the packages that it may import", p.path())
		return
	}
	may := reachable(name)
	for _, imp := range p.Imports {
		to, ours := strings.CutPrefix(imp, module)
		if ours && !slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, to) }) {
			t.Errorf("%s must not import %s: it may reach only %v", p.path(), to, may)
		}
		if !ours && strings.Contains(imp, ".") && standardOnly(p.path()) {
			t.Errorf("%s must not import %s: core imports the standard library only, which keeps the wasm guest small and needs no updates", p.path(), imp)
		}
	}
}

// standardOnly reports whether a package must not import outside modules. That is
// so in tiers 0 to 3, except for the copy kernels, which use two modules to
// detect instructions and caches of the processor, and for the decoder of WebP, which no package imports.
func standardOnly(path string) bool {
	if path == "internal/gather" || path == "core/view/raster/webp" {
		return false
	}
	return strings.HasPrefix(path, "internal/") || strings.HasPrefix(path, "core/") && !strings.HasPrefix(path, "core/gomlxfeed")
}

func reachable(path string) []string {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(p string) {
		for _, next := range allowed[p] {
			if !seen[next] {
				seen[next] = true
				visit(next)
			}
		}
	}
	visit(path)
	for _, p := range tier0 {
		if !slices.Contains(tier0, path) {
			seen[p] = true
		}
	}
	var may []string
	for p := range seen {
		may = append(may, p)
	}
	slices.Sort(may)
	return may
}

func matches(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(path, prefix)
	}
	return pattern == path
}

func checkReserved(t *testing.T, p pkg) {
	for _, r := range reserved {
		if slices.Contains(r.users, p.path()) {
			continue
		}
		for _, imp := range p.Imports {
			if imp == r.path || strings.HasSuffix(r.path, "/") && strings.HasPrefix(imp, r.path) || strings.HasPrefix(imp, r.path+"/") {
				t.Errorf("%s must not import %s: only %v may, because %s", p.path(), imp, r.users, r.why)
			}
		}
	}
}

// TestBytesComeThroughBlobs checks that only two packages of arrowio call the
// system or take names for paths: one reads local files, the other keeps a cache on disk. All
// others find and read blobs through an opener, which may also serve objects of a bucket.
func TestBytesComeThroughBlobs(t *testing.T) {
	for _, p := range list(t, builds[0]) {
		if !strings.HasPrefix(p.path(), "arrowio") || p.path() == "arrowio/internal/local" || p.path() == "arrowio/internal/diskcache" {
			continue
		}
		for _, system := range []string{"os", "path/filepath", "syscall", "golang.org/x/sys/unix"} {
			if slices.Contains(p.Imports, system) {
				t.Errorf("%s must not import %s: only arrowio/internal/local and diskcache may, and all others read through arrowio/blob", p.path(), system)
			}
		}
	}
}

// TestThePlannerIsAWing checks that the loader does not need the planner of strategies: only
// the faces import packages of core/plan.
func TestThePlannerIsAWing(t *testing.T) {
	faces := []string{"core/plan/", "cmd/", "capi", "wasm/", "tests/"}
	for _, p := range list(t, builds[0]) {
		if !p.ours() || slices.ContainsFunc(faces, func(face string) bool { return strings.HasPrefix(p.path(), face) }) {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module+"core/plan/") {
				t.Errorf("%s must not import %s: packages of core/plan serve the command, the C library and the page only", p.path(), imp)
			}
		}
	}
}

// TestXLAIsLinkedOnlyUnderItsTag checks the command and the C library. go-xla
// changes the environment of a program that links it, and writes to its
// standard error.
func TestXLAIsLinkedOnlyUnderItsTag(t *testing.T) {
	const xla = module + "core/gomlxfeed/xla"
	for _, b := range builds {
		for _, p := range list(t, b) {
			if !p.ours() || p.path() != "capi" && !strings.HasPrefix(p.path(), "cmd/") {
				continue
			}
			if slices.Contains(p.Imports, xla) && b.tags != "xla" {
				t.Errorf("%s imports %s in build %q: only under the tag xla", p.path(), xla, b.name)
			}
		}
	}
}

// TestModulesOfALoader checks what a Go program downloads that loads data. docs/install.md and
// RATIONALE.md say how much it is.
func TestModulesOfALoader(t *testing.T) {
	need := map[string]bool{}
	for _, p := range list(t, build{env: []string{"GOOS=linux"}, patterns: []string{"-deps", "./core/loader", "./arrowio"}}) {
		if p.Module != nil && !p.ours() {
			need[p.Module.Path] = true
		}
	}
	want := []string{
		"cloud.google.com/go/compute/metadata", "github.com/andybalholm/brotli", "github.com/klauspost/compress", "github.com/klauspost/cpuid/v2",
		"github.com/pierrec/lz4/v4", "github.com/zeebo/xxh3", "golang.org/x/oauth2", "golang.org/x/sync", "golang.org/x/sys",
	}
	if got := slices.Sorted(maps.Keys(need)); !slices.Equal(got, want) {
		t.Errorf("a loader over arrowio needs the modules %q, want %q: each one more is a download of every Go user", got, want)
	}
}

// TestNetworkIsLeftOut checks that the tag nofar leaves the code of connections out of what a loader needs. A codec
// imports net/http too, but uses none of it, so the linker leaves that out.
func TestNetworkIsLeftOut(t *testing.T) {
	for tags, want := range map[string]bool{"": true, "nofar": false} {
		var linked bool
		for _, p := range list(t, build{tags: tags, patterns: []string{"-deps", "./core/loader", "./arrowio"}}) {
			linked = linked || p.path() == "arrowio/internal/remote"
		}
		if linked != want {
			t.Errorf("tag %q: the reader of web servers is linked: %v", tags, linked)
		}
	}
}

func TestEveryPackageIntroducesItself(t *testing.T) {
	for _, p := range list(t, builds[0]) {
		if !p.ours() || len(p.GoFiles)+len(p.CgoFiles) == 0 {
			continue
		}
		if want := "Package " + p.Name + " "; p.Name != "main" && !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s: its comment must begin with %q, but begins with %q", p.path(), want, p.Doc)
		}
		if p.Name == "main" && p.Doc == "" {
			t.Errorf("%s has no package comment", p.path())
		}
	}
}
