package arrowio_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// verify reads a file from end to end.
func verify(t *testing.T, path string) (arrowio.Verification, error) {
	t.Helper()
	ds, err := arrowio.Open(path)
	if err != nil {
		return arrowio.Verification{}, err
	}
	defer ds.Close()
	return ds.Verify(context.Background(), arrowio.VerifyOptions{})
}

// refused checks that verify finds a fault in record batch 0.
func (l *corruptible) refused(want string) {
	l.t.Helper()
	want = "arrowio: " + l.path + ": record batch 0: column " + want + "; the data are damaged; write them again"
	if _, err := verify(l.t, l.path); err == nil || err.Error() != want || status.CodeOf(err) != status.DataLoss {
		l.t.Errorf("got  %v\nwant %s", err, want)
	}
}

// setNulls changes the count of nulls of the node with this length.
func (l *corruptible) setNulls(length, from, to int) {
	l.t.Helper()
	node := func(nulls int) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(length)), uint64(nulls))
	}
	if n := bytes.Count(l.data, node(from)); n != 1 {
		l.t.Fatalf("%d nodes of %d values and %d nulls: the test checks nothing", n, length, from)
	}
	l.data = bytes.Replace(l.data, node(from), node(to), 1)
	if err := os.WriteFile(l.path, l.data, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// TestVerifyCountsNulls: the metadata count other nulls than the bitmap has, in
// fields and in skipped columns, with and without compression.
func TestVerifyCountsNulls(t *testing.T) {
	const numbers = "[1,null,3,null,5,null,7,null,9,null,11,12,13]"
	texts := strings.NewReplacer("1", `"1"`, "3", `"3"`).Replace(`[1,null,3,null,1,null,1,null,1,null,1,1,1]`)
	for name, write := range map[string]func() *corruptible{
		"numbers": func() *corruptible { return write(t, arrow.PrimitiveTypes.Int32, numbers) },
		"packed":  func() *corruptible { return write(t, arrow.PrimitiveTypes.Int32, numbers, ipc.WithLZ4()) },
		"text":    func() *corruptible { return write(t, arrow.BinaryTypes.String, texts) },
	} {
		for nulls, want := range map[int]string{0: "0 nulls", 2: "2 nulls", 13: "13 nulls"} {
			l := write()
			if _, err := verify(t, l.path); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			l.setNulls(13, 5, nulls)
			l.refused(`"x": metadata count ` + want + " among 13 values, but the validity bitmap has 5")
		}
	}
}

// TestVerifyFindsDamage changes one value of a valid column. Some columns are not
// fields.
func TestVerifyFindsDamage(t *testing.T) {
	list := arrow.ListOf(arrow.PrimitiveTypes.Int16)
	nested := arrow.StructOf(arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true})
	texts := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for name, c := range map[string]struct {
		typ    arrow.DataType
		values string
		put    func(l *corruptible)
		want   string
	}{
		"offset beyond the bytes": {arrow.BinaryTypes.String, `["a","bc","def"]`, func(l *corruptible) { l.put(1, 12, int32(900)) },
			`"x": offset 3 is 900, but there are 6 bytes`},
		"negative offset": {arrow.BinaryTypes.Binary, `["YQ==","YmM="]`, func(l *corruptible) { l.put(1, 0, int32(-1)) },
			`"x": offset 0 is -1, but there are 3 bytes`},
		"offsets that decrease": {arrow.BinaryTypes.LargeString, `["a","bc","def"]`, func(l *corruptible) { l.put(1, 8, int64(4)) },
			`"x": offset 2 is 3, less than the one before, 4`},
		"no UTF-8": {arrow.BinaryTypes.String, `["a","bc","def"]`, func(l *corruptible) { l.put(2, 1, byte(0xff)) },
			`"x": value 1 is not UTF-8`},
		"half a character": {arrow.BinaryTypes.String, `["a","é","def"]`, func(l *corruptible) { l.put(1, 8, int32(2)) },
			`"x": value 1 is not UTF-8`},
		"ragged list beyond the values": {list, `[[1],[2,3],[4]]`, func(l *corruptible) { l.put(1, 12, int32(5)) },
			`"x": offset 3 is 5, but there are 4 values`},
		"index beyond the dictionary": {texts, `["a","b","a"]`, func(l *corruptible) { l.put(1, 2, byte(2)) },
			`"x": value 2 has index 2 in a dictionary of 2`},
		"negative index": {texts, `["a","b","a"]`, func(l *corruptible) { l.put(1, 0, byte(0xff)) },
			`"x": value 0 has index -1 in a dictionary of 2`},
		"long view outside": {arrow.BinaryTypes.StringView, `["short","a text of more than 12 bytes"]`, func(l *corruptible) { l.put(1, 28, int32(5)) },
			`"x": value 1 has 28 bytes from 5 on in a data buffer of 28`},
		"view of another buffer": {arrow.BinaryTypes.BinaryView, `["c2hvcnQ=","YSB0ZXh0IG9mIG1vcmUgdGhhbiAxMiBieXRlcw=="]`, func(l *corruptible) { l.put(1, 24, int32(1)) },
			`"x": value 1 is in data buffer 1 of 1`},
		"view with another prefix": {arrow.BinaryTypes.StringView, `["short","a text of more than 12 bytes"]`, func(l *corruptible) { l.put(1, 20, byte('b')) },
			`"x": value 1 begins with "a te", but its view says "b te"`},
		"short view": {arrow.BinaryTypes.StringView, `["short"]`, func(l *corruptible) { l.put(1, 4, byte(0xff)) },
			`"x": value 0 is not UTF-8`},
		"list view": {arrow.ListViewOf(arrow.PrimitiveTypes.Int16), `[[1],[2,3]]`, func(l *corruptible) { l.put(2, 4, int32(3)) },
			`"x": value 1 is a list of 3 values from 1 on, but there are 3`},
		"map": {arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8), `[[{"key":"a","value":1}]]`, func(l *corruptible) { l.put(1, 4, int32(2)) },
			`"x": offset 1 is 2, but there are 1 values`},
	} {
		t.Run(name, func(t *testing.T) {
			l := write(t, c.typ, c.values)
			if _, err := verify(t, l.path); err != nil {
				t.Fatal(err)
			}
			l.t = t
			c.put(l)
			l.refused(c.want)
		})
	}
	t.Run("inside a struct", func(t *testing.T) {
		l := write(t, nested, `[{"s":"a"},{"s":null},{"s":"b"}]`)
		l.t = t
		l.setNulls(3, 1, 2)
		l.refused(`"x.s": metadata count 2 nulls among 3 values, but the validity bitmap has 1`)
	})
}

// TestVerifyUnionsAndRuns changes values of types that the JSON reader does not
// build.
func TestVerifyUnionsAndRuns(t *testing.T) {
	runs := array.NewRunEndEncodedBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8)
	for _, n := range []uint64{3, 2} {
		runs.Append(n)
		runs.ValueBuilder().(*array.Int8Builder).Append(int8(n))
	}
	dense := array.NewDenseUnionBuilder(memory.DefaultAllocator, arrow.DenseUnionOf([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int8}, {Name: "b", Type: arrow.PrimitiveTypes.Int16}}, []arrow.UnionTypeCode{5, 7}))
	for i := range 3 {
		dense.Append(arrow.UnionTypeCode(5 + 2*(i%2)))
		if i%2 == 0 {
			dense.Child(0).(*array.Int8Builder).Append(1)
		} else {
			dense.Child(1).(*array.Int16Builder).Append(2)
		}
	}
	encoded, union := runs.NewArray(), dense.NewArray()
	for name, c := range map[string]struct {
		column arrow.Array
		old    []byte
		new    []byte
		want   string
	}{
		"run without values": {encoded, []byte{3, 0, 0, 0, 5, 0, 0, 0}, []byte{3, 0, 0, 0, 3, 0, 0, 0}, `"x": run 1 ends at 3, and the one before at 3`},
		"runs too short":     {encoded, []byte{3, 0, 0, 0, 5, 0, 0, 0}, []byte{3, 0, 0, 0, 4, 0, 0, 0}, `"x": the runs end at 4, but there are 5 values`},
		"type of no child":   {union, []byte{5, 7, 5, 0}, []byte{5, 6, 5, 0}, `"x": value 1 has the type 6, which the union does not have`},
		"beyond the child":   {union, []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, []byte{0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, `"x": value 1 is number 1 of the 1 values of child 1`},
	} {
		t.Run(name, func(t *testing.T) {
			schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: c.column.DataType()}}, nil)
			l := writeRecords(t, schema, []arrow.Record{array.NewRecord(schema, []arrow.Array{c.column}, -1)})
			if _, err := verify(t, l.path); err != nil {
				t.Fatal(err)
			}
			at := bytes.LastIndex(l.data, c.old)
			if at < 0 {
				t.Fatal("the bytes do not occur: the test checks nothing")
			}
			copy(l.data[at:], c.new)
			if err := os.WriteFile(l.path, l.data, 0o600); err != nil {
				t.Fatal(err)
			}
			l.refused(c.want)
		})
	}
}

// TestVerifyDictionaryValues: damage in a dictionary itself.
func TestVerifyDictionaryValues(t *testing.T) {
	texts := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	l := write(t, texts, `["first","second","first"]`)
	l.data = bytes.Replace(l.data, []byte("second"), []byte("sec\xffnd"), 1)
	if err := os.WriteFile(l.path, l.data, 0o600); err != nil {
		t.Fatal(err)
	}
	want := "arrowio: " + l.path + `: dictionary batch 0: column "x": value 1 is not UTF-8; the data are damaged; write them again`
	if _, err := verify(t, l.path); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestVerifyValidFiles: files of other writers pass, whatever their types.
func TestVerifyValidFiles(t *testing.T) {
	paths, err := filepath.Glob("../internal/arrowmeta/testdata/*.[as]*")
	if err != nil || len(paths) < 15 {
		t.Fatal(paths, err)
	}
	for _, path := range append(paths, deltaFile) {
		_, err := verify(t, path)
		if status.CodeOf(err) == status.Unsupported || status.CodeOf(err) == status.NotFound {
			t.Logf("%s: %v", path, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestVerifyMutatedFiles damages files at random. Verify passes, or returns an error
// that names the file. It takes no more memory than the file.
func TestVerifyMutatedFiles(t *testing.T) {
	files := validFiles(t)
	var inputs [][]byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		inputs = append(inputs, files[name])
	}
	r, path := random.New(t), temp(t, "damaged.arrow")
	accepted, refused := 0, 0
	for range random.Count(1000, 2000) {
		data := random.Damage(r, random.One(r, inputs...))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		before := allocated()
		_, err := verify(t, path)
		if grown := allocated() - before; grown > 64<<20 {
			t.Fatalf("%d bytes allocated: %x", grown, data)
		}
		if err == nil {
			accepted++
			continue
		}
		refused++
		if named(t, path, err); t.Failed() {
			t.Fatalf("the damaged file: %x", data)
		}
	}
	if t.Logf("%d accepted, %d refused", accepted, refused); accepted == 0 || refused == 0 {
		t.Error("the test checks nothing")
	}
}

// TestVerifyLongText: text may be longer than the pieces that are read, and have
// characters across their borders. Half a character at the end is an error.
func TestVerifyLongText(t *testing.T) {
	for lead := range 4 {
		long := strings.Repeat("x", lead) + strings.Repeat("€", 100_000)
		l := write(t, arrow.BinaryTypes.String, `["`+long+`","é"]`)
		if _, err := verify(t, l.path); err != nil {
			t.Errorf("%d bytes before: %v", lead, err)
		}
		l.put(1, 4, int32(len(long)-1))
		l.refused(`"x": value 0 is not UTF-8`)
	}
}

// TestVerifySaysWhatItDoesNotCheck lists types that are not checked completely.
func TestVerifySaysWhatItDoesNotCheck(t *testing.T) {
	decimal := &arrow.Decimal128Type{Precision: 5, Scale: 2}
	l := write(t, arrow.ListOf(decimal), `[["1.25"],["2.50","3.75"]]`)
	v, err := verify(t, l.path)
	if err != nil || len(v.Unchecked) != 1 || v.Unchecked[0] != (arrowio.Unchecked{Column: "x.item", Type: "decimal128(5, 2)", What: "whether values have at most 5 digits"}) {
		t.Errorf("got %+v, %v", v.Unchecked, err)
	}
	if v, err = verify(t, write(t, arrow.BinaryTypes.String, `["a"]`).path); err != nil || len(v.Unchecked) != 0 || v.Columns != 1 {
		t.Errorf("got %+v, %v", v, err)
	}
}
