package arrowio_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// dictionaryRecord has a column of indices into the values, plain and in pairs.
func dictionaryRecord(t *testing.T, indices, values string) arrow.Record {
	t.Helper()
	fromJSON := func(typ arrow.DataType, text string) arrow.Array {
		a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	column := array.NewDictionaryArray(dictionaryType, fromJSON(dictionaryType.IndexType, indices), fromJSON(dictionaryType.ValueType, values))
	pairs := array.NewData(dictionarySchema.Field(1).Type, column.Len()/2, []*memory.Buffer{nil}, []arrow.ArrayData{column.Data()}, 0, 0)
	half := array.NewSlice(column, 0, int64(column.Len()/2))
	return array.NewRecord(dictionarySchema, []arrow.Array{half, array.MakeFromData(pairs)}, -1)
}

var dictionarySchema = arrow.NewSchema([]arrow.Field{
	{Name: "x", Type: dictionaryType},
	{Name: "pair", Type: arrow.FixedSizeListOfNonNullable(2, dictionaryType)},
}, nil)

// writeDictionaries writes records to a stream, and counts the dictionary
// batches that are deltas, and the ones that are not.
func writeDictionaries(t *testing.T, path string, records []arrow.Record, options ...ipc.Option) (deltas, whole int) {
	t.Helper()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, append(options, ipc.WithSchema(dictionarySchema))...)
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, delta := range deltasOf(t, path) {
		if delta {
			deltas++
		} else {
			whole++
		}
	}
	return deltas, whole
}

// deltasOf returns for each dictionary batch whether it is a delta.
func deltasOf(t *testing.T, path string) (list []bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := arrowmeta.Read(bytes.NewReader(data), int64(len(data)))
	if err == nil {
		err = meta.ScanDictionaries(bytes.NewReader(data), func(_ int, b *arrowmeta.DictionaryBatch) error {
			list = append(list, b.Delta)
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestChangingDictionaries appends to the dictionaries of a stream and replaces
// them. A record batch uses the dictionary as it is at that point of the stream.
func TestChangingDictionaries(t *testing.T) {
	growing := []arrow.Record{
		dictionaryRecord(t, "[1,0,1,1]", "[10,11]"),
		dictionaryRecord(t, "[2,0,3,2,1,3]", "[10,11,12,13]"),
		dictionaryRecord(t, "[3,1]", "[10,11,12,13]"),
		dictionaryRecord(t, "[4,0,4,1]", "[10,11,12,13,14]"),
	}
	changing := []arrow.Record{
		dictionaryRecord(t, "[1,0,1,1]", "[10,11]"),
		dictionaryRecord(t, "[1,0,0,1]", "[20,21,22]"),
		dictionaryRecord(t, "[0,0]", "[30]"),
	}
	for _, c := range []struct {
		name          string
		records       []arrow.Record
		deltas, whole int
		options       []ipc.Option
	}{
		{"deltas", growing, 4, 2, []ipc.Option{ipc.WithDictionaryDeltas(true)}},
		{"packed deltas", growing, 4, 2, []ipc.Option{ipc.WithDictionaryDeltas(true), ipc.WithZstd()}},
		{"replaced", changing, 0, 6, nil},
		{"packed replaced", changing, 0, 6, []ipc.Option{ipc.WithLZ4()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := temp(t, "x.arrow")
			deltas, whole := writeDictionaries(t, path, c.records, c.options...)
			if deltas != c.deltas || whole != c.whole {
				t.Fatalf("%d deltas and %d others, not %d and %d: the test checks nothing", deltas, whole, c.deltas, c.whole)
			}
			records := append(c.records[:len(c.records):len(c.records)], c.records...) // as written: the file is opened twice
			open := func(t *testing.T) source.Source {
				ds, err := arrowio.OpenFiles(t.Context(), []string{path, path}, arrowio.Options{Duplicates: "allow"})
				if err != nil {
					t.Fatal(err)
				}
				return ds
			}
			ds := open(t)
			defer ds.Close()
			sourcetest.Suite{Open: open, Row: reference(ds, records)}.Run(t)
		})
	}
}

// deltaFile is a file with growing dictionaries. A script beside it writes it.
const deltaFile = "testdata/deltas.arrow"

// TestDeltasInAFile: all of a file's record batches see the whole dictionary.
func TestDeltasInAFile(t *testing.T) {
	if got := fmt.Sprint(deltasOf(t, deltaFile)); got != "[false false true true]" {
		t.Fatalf("deltas %s: the test checks nothing", got)
	}
	open := func(t *testing.T) source.Source {
		ds, err := arrowio.Open(deltaFile)
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	ds := open(t)
	defer ds.Close()
	sourcetest.Suite{Open: open, Row: reference(ds, readBack(t, deltaFile))}.Run(t)
}

// TestDictionaryAfterItsBatch: a dictionary may follow the batches that use it,
// because readers find it through the footer.
func TestDictionaryAfterItsBatch(t *testing.T) {
	l := write(t, dictionaryType, "[0.5,1.5,0.5]")
	meta, err := arrowmeta.Read(bytes.NewReader(l.data), int64(len(l.data)))
	if err != nil {
		t.Fatal(err)
	}
	d, b := meta.Dictionaries[0], meta.Batches[0]
	if d.End() != b.Offset {
		t.Fatalf("the dictionary ends at %d, its batch begins at %d", d.End(), b.Offset)
	}
	encoded := func(offset int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(offset)) }
	footer := bytes.Clone(l.data[b.End():])
	for _, old := range []int64{d.Offset, b.Offset} {
		if n := bytes.Count(footer, encoded(old)); n != 1 {
			t.Fatalf("offset %d occurs %d times in the footer", old, n)
		}
	}
	ofDictionary, ofBatch := bytes.Index(footer, encoded(d.Offset)), bytes.Index(footer, encoded(b.Offset))
	copy(footer[ofDictionary:], encoded(d.Offset+b.End()-b.Offset))
	copy(footer[ofBatch:], encoded(d.Offset))
	swapped := bytes.Join([][]byte{l.data[:d.Offset], l.data[b.Offset:b.End()], l.data[d.Offset:d.End()], footer}, nil)
	if err := os.WriteFile(l.path, swapped, 0o600); err != nil {
		t.Fatal(err)
	}
	ds, err := arrowio.Open(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	got, err := gatherField(ds, 0, ds.Schema().Fields[0], []int64{0, 1, 2})
	want, _ := binary.Append(nil, binary.LittleEndian, []float32{0.5, 1.5, 0.5})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// TestReplacedInAFile turns a delta into a dictionary that replaces the earlier
// one, which the format allows in streams only.
func TestReplacedInAFile(t *testing.T) {
	data, err := os.ReadFile(deltaFile)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := arrowmeta.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	path := temp(t, "x.arrow")
	want := "arrowio: " + path + ": dictionary batch 2 replaces dictionary 0, which only streams may do; write one dictionary for all record batches, with pyarrow: table.unify_dictionaries()"
	block, got := meta.Dictionaries[2], error(nil)
	for at := block.Offset + 8; at < block.Body() && (got == nil || got.Error() != want); at++ {
		if data[at] != 1 {
			continue // one of these bytes says that it is a delta
		}
		changed := bytes.Clone(data)
		changed[at] = 0
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		_, got = gatherAll(t, path, "read")
	}
	if got == nil || got.Error() != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

// TestBFloat16 marks 16 bits as bfloat16, rightly and wrongly.
func TestBFloat16(t *testing.T) {
	pair := &arrow.FixedSizeBinaryType{ByteWidth: 2}
	for _, c := range []struct {
		typ    arrow.DataType
		values string
		as     string
		want   string
	}{
		{arrow.PrimitiveTypes.Uint16, `[1]`, "bfloat16", "bfloat16 []"},
		{pair, `["AQI="]`, "bfloat16", "bfloat16 []"},
		{arrow.FixedSizeListOf(3, pair), `[["AQI=","AQI=","AQI="]]`, "bfloat16", "bfloat16 [3]"},
		{arrow.ListOf(arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Uint16)), `[[[1,2]]]`, "bfloat16", "bfloat16 [1 2]"},
		{arrow.PrimitiveTypes.Uint16, `[1]`, "float8", `its metadata say meshfeed.dtype="float8"; only "bfloat16" is known`},
		{arrow.PrimitiveTypes.Int16, `[1]`, "bfloat16", "its metadata say bfloat16, but its values are neither uint16 nor fixed_size_binary[2]"},
		{arrow.PrimitiveTypes.Float32, `[1]`, "bfloat16", "its metadata say bfloat16, but its values are neither uint16 nor fixed_size_binary[2]"},
	} {
		field := arrow.Field{Name: "x", Type: c.typ, Metadata: arrow.NewMetadata([]string{"meshfeed.dtype"}, []string{c.as})}
		ds, err := arrowio.Open(saveJSON(t, field, c.values))
		if err != nil {
			t.Fatal(err)
		}
		s, got := ds.Schema(), ""
		if len(s.Fields) == 1 {
			got = fmt.Sprint(s.Fields[0].Type, s.Fields[0].Shape)
		} else {
			got = s.Skipped[0].Reason
		}
		if got != c.want {
			t.Errorf("%v as %s: got %s, want %s", c.typ, c.as, got, c.want)
		}
		ds.Close()
	}
}
