package document_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/memory/document"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/golden"
	"github.com/meshfeed/meshfeed/tests/reports"
)

// model has a layer with an output projection that is replicated by mistake.
const model = `{"meshfeed":1,"mesh":{"axes":[["data",4],["model",2]]},
"arrays":{
 "wi":{"shape":[4096,16384],"dtype":"bfloat16","spec":[null,"model"]},
 "wo":{"shape":[16384,4096],"dtype":"bfloat16"},
 "scale":{"shape":[4096],"dtype":"float32","spec":[]},
 "step":{"shape":[],"dtype":"int32"},
 "rng":{"shape":[],"dtype":"key<fry>"}},
"optimizer":"adamw","precision":{"moments":"float32","master":"float32"},
"batch":{"x":{"shape":[64,4096],"dtype":"bfloat16","spec":["data"]}},
"activation_bytes":[1048576,4194304],"capacity_bytes":17179869184}`

const table = `memory of each of 8 devices (data=4, model=2)

array                    shape              dtype         spec                        bytes copies
wi                       (4096, 16384)      bfloat16      P(None, 'model')           64 MiB 4
wo                       (16384, 4096)      bfloat16      P()                       128 MiB 8
scale                    (4096,)            float32       P()                        16 KiB 8
step                     ()                 int32         P()                           4 B 8
rng                      ()                 key<fry>      P()                           8 B 8
x                        (64, 4096)         bfloat16      P('data',)                128 KiB 2

parameters                  192 MiB  134,221,826 parameters
optimizer                  1.13 GiB  adamw, with a master copy in float32
batch                       128 KiB
stored                     1.31 GiB  exact
gradients                   192 MiB  within a step, unless the compiler frees them early
activations          1 MiB to 4 MiB  the compiler chooses
peak            1.31 GiB to 1.5 GiB
capacity                     16 GiB  fits

warning: array "wo" has 2 copies along axis "model", which partitions other arrays; write
  P('model',) to save 512 MiB of every device, unless the copies are meant
`

func measure(t *testing.T, text string) *memory.Usage {
	t.Helper()
	u, err := document.Measure([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestSchema compares the schema with its file. The flag -rewrite writes the file.
func TestSchema(t *testing.T) { golden.CompareJSON(t, "memory.schema.json", []byte(document.Schema())) }

func TestText(t *testing.T) {
	if got := document.Text(measure(t, model)); got != table {
		t.Errorf("got\n%s\nwant\n%s", got, table)
	}
}

func TestReport(t *testing.T) {
	// The count of adamw is a scalar that the document does not list.
	counted := string(document.Report(measure(t, `{"meshfeed":1,"mesh":{"axes":[["a",2]]},"arrays":{},"optimizer":"adamw"}`)))
	const count = `"count":{"shape":[],"dtype":"int32","spec":[],"memory_kind":"device","shard_shape":[],"bytes":4,"gradient_bytes":0,"optimizer_bytes":0,"global_bytes":4,"copies":2,"replicated":["a"]}`
	if !strings.Contains(counted, count) {
		t.Errorf("%s\nis not in\n%s", count, counted)
	}
	const text = `{"meshfeed":1,"mesh":{"axes":[["a",2]]},"arrays":{"w":{"shape":[3,4],"dtype":"int4","spec":[null,"a"]},"v":{"shape":[3],"dtype":"float32","spec":["a"]}},"optimizer":{"mu":{"shape":[4],"dtype":"float32","shard_shape":[2],"memory_kind":"pinned_host"}}}`
	const want = `{"meshfeed":1,"devices":2,"arrays":{"w":{"shape":[3,4],"dtype":"int4","spec":[null,"a"],"memory_kind":"device","shard_shape":[3,2],"bytes":3,"gradient_bytes":0,"optimizer_bytes":0,"global_bytes":6,"copies":1,"replicated":[]},` +
		`"v":{"shape":[3],"dtype":"float32","spec":["a"],"memory_kind":"device","shard_shape":null,"bytes":null,"gradient_bytes":null,"optimizer_bytes":null,"global_bytes":12,"copies":null,"replicated":[]}},` +
		`"optimizer":{"mu":{"shape":[4],"dtype":"float32","spec":null,"memory_kind":"pinned_host","shard_shape":[2],"bytes":8,"gradient_bytes":0,"optimizer_bytes":0,"global_bytes":16,"copies":1,"replicated":[]}},"batch":{},` +
		`"totals":{"parameters":15,"parameter_bytes":null,"optimizer_bytes":null,"batch_bytes":null,"stored_bytes":null,"gradient_bytes":null,"host_bytes":null,"capacity_bytes":null,"activation_bytes":null,"peak_bytes":null},"fits":null,` +
		`"problems":[{"severity":"error","code":"indivisible","path":"/arrays/v/shape/0","message":"dimension 0 of array \"v\" of shape (3,) is split 2 ways by axis \"a\" (size 2), but 3 % 2 = 1","hint":"the nearest sizes that divide: 2 or 4","facts":{"size":3,"tiles":2,"remainder":1}}]}`
	got := document.Report(measure(t, text))
	if string(got) != want || !json.Valid(got) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// If the spec of an array does not fit, the table has no sums.
func TestTextOfErrors(t *testing.T) {
	const text = `{"meshfeed":1,"mesh":{"axes":[["a",2]]},"arrays":{"v":{"shape":[3],"dtype":"float32","spec":["a"]}},"capacity_bytes":1}`
	const want = `memory of each of 2 devices (a=2)

array                    shape              dtype         spec                        bytes copies
v                        (3,)               float32       P('a',)                   unknown

The sums are unknown because of the errors below.

error: dimension 0 of array "v" of shape (3,) is split 2 ways by axis "a" (size 2), but 3 % 2 = 1;
  the nearest sizes that divide: 2 or 4
`
	if got := document.Text(measure(t, text)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A table names the ten largest problems. A report has all.
func TestManyProblems(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"meshfeed":1,"mesh":{"axes":[["a",2]]},"arrays":{"w":{"shape":[4096,4096],"dtype":"int8","spec":["a"]}`)
	for i := range 15 {
		fmt.Fprintf(&b, `,"%d":{"shape":[%d,4096],"dtype":"int8"}`, i, 4096+2*i)
	}
	u := measure(t, b.String()+`}}`)
	text := document.Text(u)
	if n := strings.Count(text, "warning:"); n != 10 || !strings.HasSuffix(text, "\n… and 5 problems\n") || len(u.Problems) != 15 {
		t.Errorf("%d warnings of %d in\n%s", n, len(u.Problems), text)
	}
	if first := u.Problems[0].Path; first != "/arrays/14/spec" {
		t.Errorf("the first problem is at %s", first)
	}
}

// A table stays within 100 columns and 100 arrays, and lists the largest.
func TestTextOfManyArrays(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"meshfeed":1,"mesh":{"axes":[]},"arrays":{`)
	for i := range 150 {
		fmt.Fprintf(&b, `"%s%03d":{"shape":[%d,1000000,1000000,1000],"dtype":"float8_e4m3b11fnuz"},`, strings.Repeat("é", 40), i, i/2)
	}
	b.WriteString(`"last":{"shape":[75,1000000,1000000,1000],"dtype":"int8"}}}`)
	lines := strings.Split(document.Text(measure(t, b.String())), "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if got := lines[3+100]; got != "… and 51 arrays, none larger" {
		t.Errorf("after 100 rows: %q", got)
	}
	if got := lines[3+99]; !strings.HasPrefix(got, "last") {
		t.Errorf("the last row is %q", got)
	}
}

func TestRefused(t *testing.T) {
	const mesh = `{"meshfeed":1,"mesh":{"axes":[["a",2]]}`
	for _, c := range []struct{ text, path, message string }{
		{`{"meshfeed":1}`, "", `memory: a memory document needs the key "mesh"`},
		{`{"meshfeed":2,"mesh":{"axes":[]},"arrays":{}}`, "/meshfeed", `memory: /meshfeed: the document has version 2, but this release reads version 1`},
		{`{"meshfeed":1,"mesh":{"axes":[["a",2],["a",2]]},"arrays":{}}`, "/mesh/axes/1/0", `memory: /mesh/axes/1/0: axis "a" has the same name as axis 0; give every axis its own name`},
		{mesh + `,"arrays":{"":{"shape":[],"dtype":"bool"}}}`, "/arrays/", `memory: /arrays/: an array has no name; a name has at least one character`},
		{mesh + `,"arrays":{"x":{"shape":["B"],"dtype":"bool"}},"batch":{"size":4}}`, "/arrays/x/shape/0", `memory: /arrays/x/shape/0: expected a size, but found a string; write a number instead of "B"; meshfeed check and meshfeed plan read layouts`},
		{mesh + `,"arrays":{"x":{"shape":[1.5],"dtype":"bool"}}}`, "/arrays/x/shape/0", `memory: /arrays/x/shape/0: the number is not written as an integer (line 1, byte 65)`},
		{mesh + `,"arrays":{"x":{"shape":[1],"dtype":"float32","spec":[],"shard_shape":[1]}}}`, "/arrays/x", `memory: /arrays/x: array "x" has a spec and a shard_shape; give only one of them`},
		{mesh + `,"arrays":{"x":{"shape":[1],"dtype":"float32","shard_shape":[2]}}}`, "/arrays/x/shard_shape", `memory: /arrays/x/shard_shape: shard_shape (2,) is not a part of shape (1,); give the size of the largest part in every dimension`},
		{mesh + `,"arrays":{"x":{"shape":[1],"dtype":"float32","memory_kind":"disk"}}}`, "/arrays/x/memory_kind", `memory: /arrays/x/memory_kind: "disk" is not a memory kind of JAX; use one of "device", "pinned_host", "unpinned_host"`},
		{mesh + `,"arrays":{},"optimizer":"adam"}`, "/optimizer", `memory: /optimizer: "adam" is not an optimizer with known states; did you mean "adamw"? The names are "adamw", "adafactor", "lion", "sgd", "momentum", "muon"`},
		{mesh + `,"arrays":{},"precision":{"moments":"int32"}}`, "/precision/moments", `memory: /precision/moments: int32 is not a type of floating-point numbers`},
		{mesh + `,"arrays":{},"precision":{"master":"int8"}}`, "/precision/master", `memory: /precision/master: int8 is not a type of floating-point numbers`},
		{mesh + `,"arrays":{},"activation_bytes":[2,1]}`, "/activation_bytes/1", `memory: /activation_bytes/1: expected a number of bytes from 2 to 9007199254740992, but found 1`},
		{mesh + `,"arrays":{},"capacity":1}`, "/capacity", `memory: /capacity: "capacity" is not a key; the keys here are meshfeed, mesh, arrays, optimizer, precision, batch, activation_bytes, capacity_bytes`},
	} {
		_, err := document.Parse([]byte(c.text))
		e, _ := errors.AsType[*status.Error](err)
		if e == nil || e.Error() != c.message || e.Attr("path") != c.path || e.Code != status.InvalidArgument {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.message)
		}
	}
	if tree, err := document.Parse([]byte(mesh + `,"arrays":{},"precision":{"moments":"int8"}}`)); err != nil || tree.Moments != memory.Int8 {
		t.Errorf("quantized moments: got %v, %v", tree, err)
	}
	_, err := document.Parse([]byte(mesh + `,"arrays":{"x":{"shape":[],"dtype":"float31"}}}`))
	const want = `memory: /arrays/x/dtype: "float31" is not an element type of JAX; did you mean "float32"?`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A text that ends early is an error, wherever it ends.
func TestEveryPrefixIsRefused(t *testing.T) {
	for n := range len(model) {
		if _, err := document.Parse([]byte(model[:n])); status.CodeOf(err) != status.InvalidArgument {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

// Limits hold before memory is allocated.
func TestLimits(t *testing.T) {
	large := strings.Repeat(" ", document.MaxBytes) + model
	if _, err := document.Parse([]byte(large)); err == nil || err.Error() != fmt.Sprintf("memory: the document has %d bytes, but may have %d", len(large), document.MaxBytes) {
		t.Errorf("a large document: %v", err)
	}
	var b strings.Builder
	b.WriteString(`{"meshfeed":1,"mesh":{"axes":[]},"arrays":{"a":{"shape":[],"dtype":"bool"}`)
	for i := range document.MaxArrays {
		fmt.Fprintf(&b, `,"%d":{"shape":[],"dtype":"bool"}`, i)
	}
	if _, err := document.Parse([]byte(b.String() + "}}")); err == nil || err.Error() != "memory: /arrays: expected an object of arrays, but the object has more than 65536 members" {
		t.Errorf("many arrays: %v", err)
	}
}

// FuzzMeasure checks that no document stops the program: it is refused with a path, or
// measured, and its report is JSON.
func FuzzMeasure(f *testing.F) {
	f.Add([]byte(model))
	f.Add([]byte(`{"meshfeed":1,"mesh":{"axes":[["a",2]],"devices":[[0,1],[1,0]]},"arrays":{"v":{"shape":[3],"dtype":"int4","spec":[["a"]]}},"optimizer":{"mu":{"shape":[4],"dtype":"float32","shard_shape":[2],"memory_kind":"pinned_host"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		u, err := document.Measure(text)
		if err != nil {
			reports.Refused(t, err)
			return
		}
		reports.Check(t, document.Report(u), document.Text(u))
	})
}
