package arrowio_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// saveJSON writes one column, given as JSON, to a new file.
func saveJSON(t *testing.T, field arrow.Field, json string) string {
	t.Helper()
	column, _, err := array.FromJSON(memory.DefaultAllocator, field.Type, strings.NewReader(json))
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{field}, nil)
	return saveBatches(t, false, []arrow.Record{array.NewRecord(schema, []arrow.Array{column}, int64(column.Len()))})
}

// TestGatherErrors checks whole messages.
func TestGatherErrors(t *testing.T) {
	lists := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	for _, c := range []struct {
		typ    arrow.DataType
		json   string
		to     dtype.Type
		record int64
		code   status.Code
		want   string
	}{
		{lists, `[[1,2],[3],[4,5,6]]`, 0, 1, status.InvalidArgument,
			`arrowio: PATH: field "x": record 1 has a list of 1 values in dimension 0, where the shape [2] of the rows needs 2; pad or cut the lists to one length, or give the right shape`},
		{arrow.PrimitiveTypes.Int64, `[1,-2147483649]`, dtype.Int32, 1, status.OutOfRange,
			`arrowio: PATH: field "x": record 1 holds -2147483649, which int32 cannot; deliver the field as int64 (in JAX: jax.config.update("jax_enable_x64", True)), or store smaller values`},
		{arrow.PrimitiveTypes.Uint64, `[4294967296]`, dtype.Uint32, 0, status.OutOfRange,
			`arrowio: PATH: field "x": record 0 holds 4294967296, which uint32 cannot; deliver the field as uint64 (in JAX: jax.config.update("jax_enable_x64", True)), or store smaller values`},
		{arrow.PrimitiveTypes.Int64, `[1]`, 0, 1, status.OutOfRange, `arrowio: record 1 of 1`},
	} {
		path := saveJSON(t, arrow.Field{Name: "x", Type: c.typ}, c.json)
		var o arrowio.Options
		if c.typ == arrow.DataType(lists) {
			o.Shapes = map[string][]int{"x": {2}}
		}
		ds, err := arrowio.OpenFiles(t.Context(), []string{path}, o)
		if err != nil {
			t.Fatal(err)
		}
		p := whole(0, ds.Schema().Fields[0])
		p.To = c.to
		g, err := ds.Gatherer([]source.Part{p})
		if err != nil {
			t.Fatal(err)
		}
		width := p.Bytes(ds.Schema().Fields[0].Type)
		if c.to != 0 {
			width = p.Bytes(c.to)
		}
		err = g.Gather(context.Background(), source.Draw{}, []int64{-1, c.record}, []source.Job{{Rows: [2]int{0, 2}, Dst: make([]byte, 2*width)}})
		if err == nil || status.CodeOf(err) != c.code || strings.ReplaceAll(err.Error(), path, "PATH") != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		ds.Close()
	}
}

// TestClassNames opens files that name classes, others, or none.
func TestClassNames(t *testing.T) {
	file := func(classes string) string {
		meta := arrow.NewMetadata([]string{"huggingface"}, []string{`{"info":{"features":{"x":{"_type":"ClassLabel","names":` + classes + `}}}}`})
		schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, &meta)
		path := filepath.Join(t.TempDir(), "x.arrow")
		writeIPC(t, path, true, schema, nil)
		return path
	}
	first, equal, none, other := file(`["a","b"]`), file(`["a", "b"]`), file("[]"), file(`["a","c"]`)
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{first, equal}, `[a b]`},
		{[]string{first, none, equal}, `[]`},
		{[]string{none, first}, `[]`},
		{[]string{first, equal, other}, "arrowio: " + other + `: field "x" stands for other classes than in ` + first + `: class 1 is "c" and "b"; ` +
			"write the files again with one list of classes, or open them apart"},
	} {
		ds, err := arrowio.Open(c.paths[0], c.paths[1:]...)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(ds.Schema().Fields[0].Names)
			ds.Close()
		}
		if got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestSkipped checks the reasons why columns cannot be arrays.
func TestSkipped(t *testing.T) {
	for _, c := range []struct {
		typ        arrow.DataType
		json, want string
	}{
		{arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8}), `[{"a":1}]`, "a struct has no single type; store its children as columns of their own"},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, `["1.25"]`, "arrays have no decimal type; cast it to float64 or to an integer"},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8), `[]`, "a map has no single type; store plain columns"},
	} {
		ds, err := arrowio.Open(saveJSON(t, arrow.Field{Name: "x", Type: c.typ, Nullable: true}, c.json))
		if err != nil {
			t.Fatal(err)
		}
		if s := ds.Schema().Skipped; len(s) != 1 || s[0].Reason != c.want {
			t.Errorf("%v %s: got %+v\nwant %s", c.typ, c.json, ds.Schema(), c.want)
		}
		ds.Close()
	}
}

// TestRaggedFields checks which columns are ragged, and the shape of their elements.
func TestRaggedFields(t *testing.T) {
	number := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	for _, c := range []struct {
		typ        arrow.DataType
		json, want string
	}{
		{arrow.BinaryTypes.String, `["a"]`, "uint8[] ragged 1 string"},
		{arrow.BinaryTypes.LargeBinary, `[]`, "uint8[] ragged 1 large_binary"},
		{number, `[[1,2],[3]]`, "int32[] ragged 1 "},
		{number, `[[1,2],[3],[4,5,6]]`, "int32[] ragged 1 "}, // as many values as lists of two have
		{number, `[[1],[2,3]]`, "int32[] ragged 1 "},
		{number, `[[],[]]`, "int32[] ragged 1 "},
		{number, `[]`, "int32[] ragged 1 "},
		{number, `[null]`, "int32[] ragged 1 "},
		{number, `[[1,2],null,[3,4]]`, "int32[2] ragged 0 "},
		{arrow.ListOf(number), `[[[1],[2,3]],[]]`, "int32[] ragged 2 "},
		{arrow.ListOf(arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32)), `[[[1,2]],[]]`, "int32[2] ragged 1 "},
		{arrow.FixedSizeListOf(2, number), `[[[1],[2,3]]]`, "int32[] ragged 2 "},
		{arrow.ListOf(arrow.FixedWidthTypes.Timestamp_us), `[[],[]]`, "int64[] ragged 1 timestamp[us, tz=UTC]"},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["a"]`, "uint8[] ragged 1 dictionary<values=string, indices=int8>"},
	} {
		ds, err := arrowio.Open(saveJSON(t, arrow.Field{Name: "x", Type: c.typ, Nullable: true}, c.json))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range ds.Schema().Fields {
			got = fmt.Sprintf("%v%v ragged %d %s", f.Type, f.Shape, f.Ragged, f.Logical)
		}
		if got != c.want {
			t.Errorf("%v %s: got %s, want %s", c.typ, c.json, got, c.want)
		}
		ds.Close()
	}
}

// TestColumnsDisagree opens files. One of them has more columns.
func TestColumnsDisagree(t *testing.T) {
	schema := func(n int) *arrow.Schema { return arrow.NewSchema(everything.Fields()[:n], nil) }
	one, two := temp(t, "one.arrow"), temp(t, "two.arrow")
	save(t, one, false, schema(1), []int{1}, 1)
	save(t, two, true, schema(2), []int{1}, 1)
	for _, paths := range [][]string{{one, two}, {two, one}} {
		refused(t, paths, status.Incompatible, one+`: there is no column "uint64", which `+two+` has; `+
			`choose columns that all files have, such as columns=["int8"], or open the files apart`)
	}
}

// TestSchemasDisagree opens pairs of files. Their columns have one name and one
// type, but rows of different shapes or types.
func TestSchemasDisagree(t *testing.T) {
	const oneSchema = "; write the column again with one type, such as by table.cast of pyarrow; or choose the other columns (columns=), or open the files apart"
	tensor := func(parameters string) arrow.Metadata {
		return arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"}, []string{"arrow.fixed_shape_tensor", parameters})
	}
	six := arrow.Field{Name: "x", Type: arrow.FixedSizeListOf(6, arrow.PrimitiveTypes.Uint16)}
	as := func(metadata arrow.Metadata) arrow.Field {
		f := six
		f.Metadata = metadata
		return f
	}
	child := six
	child.Type = arrow.FixedSizeListOfField(6, arrow.Field{Name: "item", Type: arrow.PrimitiveTypes.Uint16, Metadata: bfloat16Metadata})
	for _, c := range []struct {
		first, second arrow.Field
		want          string
	}{
		{as(tensor(`{"shape":[2,3]}`)), as(tensor(`{"shape":[3,2]}`)), `field "x" has rows of uint16[3 2], but rows of uint16[2 3] in FIRST`},
		{as(tensor(`{"shape":[2,3]}`)), as(tensor(`{"shape":[2,3],"permutation":[1,0]}`)), `field "x" has no rows of an array, but rows of uint16[2 3] in FIRST`},
		{as(tensor(`{"shape":[2,3]}`)), as(tensor(`{"shape": [2, 3], "dim_names": ["y", "x"]}`)), ""},
		{as(tensor(`{"shape":[6]}`)), six, `field "x" has the extension type "", but "arrow.fixed_shape_tensor" in FIRST`},
		{six, as(bfloat16Metadata), `field "x" has the extension type "bfloat16", but "" in FIRST`},
		{child, six, `field "x" has rows of uint16[6], but rows of bfloat16[6] in FIRST`},
		{six, as(arrow.NewMetadata([]string{"unit"}, []string{"m"})), ""},
	} {
		first, second := saveJSON(t, c.first, "[[1,2,3,4,5,6]]"), saveJSON(t, c.second, "[[1,2,3,4,5,6]]")
		ds, err := arrowio.Open(first, second)
		switch {
		case err == nil && c.want != "":
			t.Errorf("opened, want %s", c.want)
		case err == nil:
			ds.Close()
		case status.CodeOf(err) != status.Incompatible || strings.ReplaceAll(err.Error(), first, "FIRST") != "arrowio: "+second+": "+c.want+oneSchema:
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestShapes opens with shapes that fit and shapes that do not.
func TestShapes(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "x", Type: arrow.ListOf(arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8))},
		{Name: "n", Type: arrow.PrimitiveTypes.Int8},
		{Name: "s", Type: arrow.BinaryTypes.String},
	}, nil)
	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[{"x": [[1,2],[3,4],[5,6]], "n": 1, "s": "a"}]`))
	if err != nil {
		t.Fatal(err)
	}
	path := saveBatches(t, false, []arrow.Record{record})
	for _, c := range []struct {
		shapes map[string][]int
		want   string
	}{
		{map[string][]int{"x": {3, 2}}, ""},
		{map[string][]int{"x": {3}}, `arrowio: field "x" has rows of 2 dimensions, not 1; leave its shape out, or correct it`},
		{map[string][]int{"x": {3, 3}}, `arrowio: field "x" has rows of 2 elements in dimension 1 by its type, where shape [3 3] has 3; leave its shape out, or correct it`},
		{map[string][]int{"x": {-3, 2}}, `arrowio: field "x" cannot have rows of shape [-3 2]: no length is worked out from the others; leave its shape out, or correct it`},
		{map[string][]int{"x": {3, 2, 1}}, `arrowio: field "x" has rows of 2 dimensions, not 3; leave its shape out, or correct it`},
		{map[string][]int{"x": {4, 2}}, `arrowio: field "x" cannot have rows of shape [4 2]: 1 lists hold 3 values, 3 each, where the shape of the rows needs 4; leave its shape out, correct it, or pad or cut the lists to one length`},
		{map[string][]int{"x": {1 << 40, 2}}, `arrowio: field "x" cannot have rows of shape [1099511627776 2]: that is too large; leave its shape out, or correct it`},
		{map[string][]int{"n": {1}}, `arrowio: field "n" has one value in each record, not rows of shape [1]; leave its shape out, or correct it`},
		{map[string][]int{"s": {1}}, `arrowio: field "s" holds text, whose rows have no shape; leave its shape out, or correct it`},
		{map[string][]int{"y": {3}}, `arrowio: a shape is given for "y", but there is no such column; there are "x", "n", "s"`},
	} {
		ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{Shapes: c.shapes})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			ds.Close()
		}
		if got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestBytesAsBooleans checks that bytes other than 0 and 1 do not become Go's booleans.
func TestBytesAsBooleans(t *testing.T) {
	ds, err := arrowio.FromSlices(arrowio.Slice("mask", []uint8{0, 1, 2, 255}).As(dtype.Bool))
	if err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(ds, loader.Options{BatchSize: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	const want = `loader: element 2 of array "mask" is the byte 2, which is not a boolean; store booleans as 0 and 1`
	if _, err := loader.Values[bool](b, "mask"); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestFromSlicesErrors checks slices that cannot be a dataset.
func TestFromSlicesErrors(t *testing.T) {
	for want, fields := range map[string][]arrowio.Values{
		`arrowio: a dataset needs at least one field`:                                  nil,
		`arrowio: field "b" has 2 rows, but "a" has 3`:                                 {arrowio.Slice("a", make([]int8, 3)), arrowio.Slice("b", make([]int8, 4), 2)},
		`arrowio: field "a" has 3 elements, which is not a multiple of the 2 of a row`: {arrowio.Slice("a", make([]int8, 3), 2)},
		`arrowio: field "a" cannot have rows of shape [0]`:                             {arrowio.Slice("a", make([]int8, 3), 0)},
		`arrowio: field "a" is read as a type of another size`:                         {arrowio.Slice("a", make([]int8, 3)).As(dtype.Float16)},
		`arrowio: two fields are called "a"`:                                           {arrowio.Slice("a", make([]int8, 3)), arrowio.Slice("a", make([]int8, 3))},
	} {
		if _, err := arrowio.FromSlices(fields...); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
