package arrowio_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
)

// sizedField returns a field of protobuf with bytes.
func sizedField(number int, data []byte) []byte {
	return append(binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(len(data))), data...)
}

// feature returns an entry of the features of a tf.Example: values of []int64, []float32 or []string. Packed
// numbers have one field for all.
func feature(name string, values any, packed bool) []byte {
	var list []byte
	kind := 0
	add := func(wire byte, number []byte, all *[]byte) {
		if packed {
			*all = append(*all, number...)
		} else {
			list = append(append(list, 8|wire), number...)
		}
	}
	var all []byte
	switch values := values.(type) {
	case []string:
		kind = 1
		for _, v := range values {
			list = append(list, sizedField(1, []byte(v))...)
		}
	case []float32:
		kind = 2
		for _, v := range values {
			add(5, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)), &all)
		}
	case []int64:
		kind = 3
		for _, v := range values {
			add(0, binary.AppendUvarint(nil, uint64(v)), &all)
		}
	}
	if len(all) > 0 {
		list = sizedField(1, all)
	}
	value := []byte{} // a feature of no kind
	if kind > 0 {
		value = sizedField(kind, list)
	}
	return sizedField(1, append(sizedField(1, []byte(name)), sizedField(2, value)...))
}

// example returns a tf.Example with features.
func example(features ...[]byte) []byte { return sizedField(1, slices.Concat(features...)) }

func maskedCRC(b []byte) uint32 {
	crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// framed returns a file of TFRecord.
func framed(records ...[]byte) (out []byte) {
	for _, r := range records {
		length := binary.LittleEndian.AppendUint64(nil, uint64(len(r)))
		out = binary.LittleEndian.AppendUint32(append(out, length...), maskedCRC(length))
		out = binary.LittleEndian.AppendUint32(append(out, r...), maskedCRC(r))
	}
	return out
}

// exampleRow returns a record of a test. Its features come in any order, with numbers in both forms.
func exampleRow(rng *rand.Rand, i int) []byte {
	packed := rng.IntN(2) == 0
	list := [][]byte{
		feature("id", []int64{int64(i)}, packed), feature("low", []int64{-int64(i)}, packed), feature("score", []float32{float32(i) / 8}, packed),
		feature("image", []string{strings.Repeat(fmt.Sprint(i), i%50)}, packed), feature("box", []float32{1, 2, 3, float32(i)}, packed),
		feature("nothing", nil, packed), append(sizedField(7, []byte("unknown")), 0x18, 5), sizedField(1, sizedField(3, nil)),
	}
	tokens, words := make([]int64, i%5), make([]string, i%3)
	for k := range tokens {
		tokens[k] = int64(i * k)
	}
	for k := range words {
		words[k] = strings.Repeat("w", k+i%2)
	}
	list = append(list, feature("tokens", tokens, packed), feature("words", words, packed))
	if i%4 > 0 {
		list = append(list, feature("rare", []int64{7}, packed))
	}
	rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	return append(example(list...), sizedField(9, []byte("unknown"))...)
}

func exampleRows(n int) (list [][]byte) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		list = append(list, exampleRow(rng, i))
	}
	return list
}

const exampleFields = `box:float32[4]; id:int64[]; image:uint8[?]; low:int64[]; rare:int64[]?; score:float32[]; tokens:int64[?]; words:uint8[?]`

// checkExamples compares a dataset with the rows that it was made of.
func checkExamples(t *testing.T, ds *arrowio.Dataset, n int) {
	t.Helper()
	var names []string
	for _, f := range ds.Schema().Fields {
		shape := fmt.Sprint(f.Shape)
		if f.Ragged > 0 {
			shape = "[?]"
		}
		name := fmt.Sprintf("%s:%v%s", f.Name, f.Type, shape)
		if f.Nullable {
			name += "?"
		}
		names = append(names, name)
	}
	if got := strings.Join(names, "; "); got != exampleFields || ds.Len() != int64(n) {
		t.Fatalf("%d records, fields\n%s, not\n%s", ds.Len(), got, exampleFields)
	}
	everySpan(t, ds, func(spans []source.Span) error {
		for _, s := range spans {
			i := int(s.Record)
			var want []byte
			var lists [][]int64
			switch names := ds.Schema().Fields; names[s.Field].Name {
			case "box":
				for _, v := range []float32{1, 2, 3, float32(i)} {
					want = binary.LittleEndian.AppendUint32(want, math.Float32bits(v))
				}
			case "id":
				want = numbers(int64(i))
			case "image":
				want = []byte(strings.Repeat(fmt.Sprint(i), i%50))
			case "low":
				want = numbers(-int64(i))
			case "score":
				want = binary.LittleEndian.AppendUint32(want, math.Float32bits(float32(i)/8))
			case "rare":
				if want = numbers(7); i%4 == 0 {
					want = nil
				}
			case "tokens":
				for k := range i % 5 {
					want = append(want, numbers(int64(i*k))...)
				}
			case "words":
				lists = [][]int64{{}}
				for k := range i % 3 {
					want, lists[0] = append(want, strings.Repeat("w", k+i%2)...), append(lists[0], int64(k+i%2))
				}
			}
			if !bytes.Equal(s.Row, want) || fmt.Sprint(s.Lists) != fmt.Sprint(lists) || s.Null() != (want == nil && ds.Schema().Fields[s.Field].Name == "rare") {
				return fmt.Errorf("%s of record %d: %q %v, not %q %v", ds.Schema().Fields[s.Field].Name, i, s.Row, s.Lists, want, lists)
			}
		}
		return nil
	})
}

// TestExamples reads TFRecord under all of its names, plain and compressed, in one file and in several, and
// runs the tests of sources.
func TestExamples(t *testing.T) {
	const n = 6000
	rows := exampleRows(n)
	data := framed(rows...)
	if len(data) < 3<<20/2 {
		t.Fatalf("%d bytes are one unit", len(data))
	}
	var prints []source.Fingerprint
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"a.tfrecord", data}, {"a.tfrecords.gz", gzipped(data)}, {"a.TFRecord", gzipped(data)}, {"train.tfrecord-00000-of-00001.gz", gzipped(data)}, {"part-r-00000", data},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, err := arrowio.OpenFiles(t.Context(), []string{c.name}, arrowio.Options{Cache: "memory", Opener: blobtest.Memory{c.name: c.data}})
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			checkExamples(t, ds, n)
			prints = append(prints, verified(t, ds))
		})
	}
	if slices.ContainsFunc(prints, func(p source.Fingerprint) bool { return p != prints[0] }) {
		t.Errorf("a compressed file has another fingerprint: %v", prints)
	}
	memory := blobtest.Memory{
		"d/set-train.tfrecord-00000-of-00003": framed(rows[:1]...), "d/set-train.tfrecord-00001-of-00003": framed(rows[1:3000]...), "d/set-train.tfrecord-00002-of-00003": framed(rows[3000:]...),
		"d/set-test.tfrecord-00000-of-00001": framed(rows[:9]...), "d/dataset_info.json": []byte(`{"splits": [{"name": "train"}]}`), "d/features.json": []byte("{}"),
	}
	for _, c := range []struct {
		pattern, split string
	}{{"d", "train"}, {"d/set-train*", ""}, {"d/set-train.tfrecord-{00000..00002}-of-00003", ""}} {
		ds, err := arrowio.OpenFiles(t.Context(), []string{c.pattern}, arrowio.Options{Cache: "memory", Opener: memory, Split: c.split})
		if err != nil {
			t.Fatal(err)
		}
		checkExamples(t, ds, n)
		_ = ds.Close()
	}
	few := blobtest.Memory{"a.tfrecord": framed(rows[:30]...), "b.tfrecord": gzipped(framed(rows[30:50]...))}
	sourcetest.Run(t, func(t *testing.T) source.Source {
		ds, err := arrowio.OpenFiles(t.Context(), []string{"a.tfrecord", "b.tfrecord"}, arrowio.Options{Cache: "memory", Opener: few})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	})
}

// TestExamplesRefused gives bad files. Each error names the file, the record, and what to do.
func TestExamplesRefused(t *testing.T) {
	good := example(feature("a", []int64{1}, true), feature("b", []string{"x"}, true))
	flipped := func(data []byte, at int) []byte {
		out := slices.Clone(data)
		out[at] ^= 1
		return out
	}
	three := framed(good, good, good)
	one := len(three) / 3
	for _, c := range []struct {
		data []byte
		o    arrowio.Options
		code status.Code
		want string
	}{
		{[]byte{}, arrowio.Options{}, status.DataLoss, "is empty"},
		{three[:5], arrowio.Options{}, status.DataLoss, "record 0 at byte 0 is damaged: the file ends before its 16 bytes; write or copy the file again"},
		{three[:one+40], arrowio.Options{}, status.DataLoss, fmt.Sprintf("record 1 at byte %d is damaged: the file ends before its %d bytes", one, one)},
		{flipped(three, 2*one+3), arrowio.Options{}, status.DataLoss, fmt.Sprintf("record 2 at byte %d is damaged: its length does not have the stored checksum", 2*one)},
		{flipped(three, one+20), arrowio.Options{}, status.DataLoss, fmt.Sprintf("record 1 at byte %d is damaged: its bytes do not have the stored checksum", one)},
		{[]byte("x,y\n1,2\n3,4\n5,6\n"), arrowio.Options{}, status.DataLoss, "record 0 at byte 0 is damaged"},
		{framed(good, []byte("no message")), arrowio.Options{}, status.Unsupported, "record 1: it is not a tf.Example; write its values"},
		{framed(example()), arrowio.Options{}, status.Unsupported, "no record has a feature"},
		{framed(good, append(good, sizedField(2, nil)...)), arrowio.Options{}, status.Unsupported, "record 1: it is a tf.SequenceExample"},
		{framed(good, example(feature("a", []int64{1}, true), feature("a", []int64{2}, true))), arrowio.Options{}, status.DataLoss, `record 1: the feature "a" occurs twice`},
		{framed(good, example(feature("a", []float32{1}, true))), arrowio.Options{}, status.Incompatible, `record 1: "a" has floats, and integers in the records before; write the file again`},
		{framed(good, example(feature("a", []float32{1}, true), feature("b", []string{"y"}, true))), arrowio.Options{Columns: []string{"b"}}, 0, ""},
		{framed(binary.LittleEndian.AppendUint64(nil, 1<<40)), arrowio.Options{}, status.Unsupported, "record 0: it is not a tf.Example"},
		{append(append(binary.LittleEndian.AppendUint64(nil, 65<<20), binary.LittleEndian.AppendUint32(nil, maskedCRC(binary.LittleEndian.AppendUint64(nil, 65<<20)))...), three...), arrowio.Options{}, status.Unsupported, "record 0 at byte 0 has 68157440 bytes, more than 67108864; write smaller records"},
		{gzipped(three)[:40], arrowio.Options{}, status.DataLoss, "the compressed text is damaged or cut short"},
	} {
		c.o.Cache, c.o.Opener = "memory", blobtest.Memory{"a.tfrecord": c.data}
		ds, err := arrowio.OpenFiles(t.Context(), []string{"a.tfrecord"}, c.o)
		if err == nil {
			_, err = ds.Verify(t.Context(), arrowio.VerifyOptions{})
			_ = ds.Close()
		}
		if c.code == 0 && err == nil {
			continue
		}
		if status.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "a.tfrecord") {
			t.Errorf("%.60q: got %v: %v, want %v: %s", c.data, status.CodeOf(err), err, c.code, c.want)
		}
	}
	other := blobtest.Memory{"a.tfrecord": three, "b.tfrecord": framed(example(feature("a", []float32{1}, true)))}
	if _, err := arrowio.OpenFiles(t.Context(), []string{"*"}, arrowio.Options{Opener: other}); err == nil || !strings.Contains(err.Error(), `b.tfrecord: field "a" is float32, but int64 in a.tfrecord`) {
		t.Error(err)
	}
}

// TestExamplesAreIndexedOnce checks that the index of a large file is kept, and that records which changed
// since are an error. A damaged index is made again.
func TestExamplesAreIndexedOnce(t *testing.T) {
	record := func(i int) []byte {
		return example(feature("i", []int64{int64(i)}, true), feature("x", []string{strings.Repeat("x", 100_000)}, true))
	}
	var rows [][]byte
	for i := range 170 {
		rows = append(rows, record(i))
	}
	path, folder := filepath.Join(t.TempDir(), "a.tfrecord"), t.TempDir()
	if err := os.WriteFile(path, framed(rows...), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() (source.Fingerprint, os.FileInfo) {
		ds, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{Cache: folder})
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		print, err := ds.Fingerprint(t.Context())
		list, _ := filepath.Glob(filepath.Join(folder, "*.units"))
		if err != nil || len(list) != 1 || ds.Len() != 170 {
			t.Fatal(err, list)
		}
		info, _ := os.Stat(list[0])
		return print, info
	}
	first, made := open()
	again, kept := open()
	if first != again || !made.ModTime().Equal(kept.ModTime()) {
		t.Error("the index was made twice, or gives another fingerprint")
	}
	if err := os.Truncate(filepath.Join(folder, kept.Name()), kept.Size()-1); err != nil {
		t.Fatal(err)
	}
	if mended, _ := open(); mended != first {
		t.Error("another fingerprint")
	}
}

// FuzzExamples opens arbitrary records. What opens has rows that can all be read.
func FuzzExamples(f *testing.F) {
	for _, r := range exampleRows(6) {
		f.Add(r, []byte{}, true)
	}
	f.Add([]byte("x"), framed(exampleRows(3)...), false)
	f.Fuzz(func(t *testing.T, record, data []byte, whole bool) {
		if whole { // bytes with a right checksum
			data = framed(record, data, record)
		}
		ds, err := arrowio.OpenFiles(t.Context(), []string{"a.tfrecord"}, arrowio.Options{Cache: "memory", Opener: blobtest.Memory{"a.tfrecord": data}})
		if err != nil {
			if status.CodeOf(err) == status.Internal {
				t.Error(err)
			}
			return
		}
		defer ds.Close()
		readEverything(t, ds)
	})
}

// everySpan reads all rows of all fields for a function.
func everySpan(t *testing.T, ds *arrowio.Dataset, use func(spans []source.Span) error) {
	t.Helper()
	var fields []int
	var spans []source.Span
	for i := range ds.Schema().Fields {
		fields = append(fields, i)
		for record := range ds.Len() {
			spans = append(spans, source.Span{Field: i, Record: record})
		}
	}
	r, err := ds.Reader(fields)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Read(context.Background(), source.Draw{}, spans, func() error { return use(spans) }); err != nil {
		t.Error(err)
	}
}

// verified returns the fingerprint of a dataset, after its bytes were verified.
func verified(t *testing.T, ds *arrowio.Dataset) source.Fingerprint {
	t.Helper()
	print, err := ds.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ds.Verify(t.Context(), arrowio.VerifyOptions{Hash: true}); err != nil {
		t.Error(err)
	}
	return print
}

// readEverything reads all rows of a dataset, and verifies it.
func readEverything(t *testing.T, ds *arrowio.Dataset) {
	t.Helper()
	everySpan(t, ds, func([]source.Span) error { return nil })
	if _, err := ds.Verify(context.Background(), arrowio.VerifyOptions{}); err != nil {
		t.Error(err)
	}
}
