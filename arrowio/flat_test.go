package arrowio_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
)

// saveNPY returns a .npy file of version 1.0.
func saveNPY(descr, order, shape string, data []byte) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, order, shape)
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	return append(append(out, header...), data...)
}

// countedBytes returns n bytes that differ from their neighbors.
func countedBytes(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i*7 + i/250)
	}
	return out
}

// TestFlatFiles runs the tests of sources on raw files and on .npy files, and on windows over them.
// Windows also cross the borders between files.
func TestFlatFiles(t *testing.T) {
	data := countedBytes(2 * 3 * 50)
	copy(data, []byte{100, 0, 0, 0}) // an Arrow stream may begin so
	for _, c := range []struct {
		name  string
		files [][]byte // each with the bytes of the rows from some record on
		o     arrowio.Options
		typ   dtype.Type
		width int
		shape []int
	}{
		{"uint16", [][]byte{data[:100], {}, data[100:120], data[120:]}, arrowio.Options{DType: dtype.Uint16}, dtype.Uint16, 2, nil},
		{"skip", [][]byte{append([]byte("abc"), data...)}, arrowio.Options{DType: dtype.BFloat16, Skip: 3}, dtype.BFloat16, 2, nil},
		{"int64", [][]byte{data[:48], data[48:296]}, arrowio.Options{DType: dtype.Int64}, dtype.Int64, 8, nil},
		{"stream", [][]byte{data}, arrowio.Options{DType: dtype.Uint32}, dtype.Uint32, 4, nil},
		{"npy", [][]byte{saveNPY("<f4", "False", "(75,)", data)}, arrowio.Options{}, dtype.Float32, 4, nil},
		{"rows", [][]byte{saveNPY("|u1", "False", "(20, 2, 3)", data[:120]), saveNPY("|u1", "False", "(30, 2, 3)", data[120:])}, arrowio.Options{}, dtype.Uint8, 6, []int{2, 3}},
		{"columns", [][]byte{saveNPY("<i2", "True", "(150,)", data)}, arrowio.Options{}, dtype.Int16, 2, nil},
	} {
		var paths []string
		memory := blobtest.Memory{}
		for i, content := range c.files {
			paths = append(paths, filepath.Join(t.TempDir(), fmt.Sprint(i, ".data")))
			memory[paths[i]] = content
			if err := os.WriteFile(paths[i], content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, io := range []string{"map", "read", "storage"} {
			o := c.o
			if o.IO = io; io == "storage" {
				o.IO, o.Opener = "", memory
			}
			open := func(t *testing.T) source.Source {
				ds, err := arrowio.OpenFiles(t.Context(), paths, o)
				if err != nil {
					t.Fatal(err)
				}
				return ds
			}
			row := func(_ int, k int64) []byte { return data[int(k)*c.width:][:c.width] }
			t.Run(c.name+"/"+io, func(t *testing.T) {
				sourcetest.Suite{Open: open, Row: row}.Run(t)
				ds := open(t)
				defer ds.Close()
				f := ds.Schema().Fields
				if len(f) != 1 || f[0].Name != "tokens" || f[0].Type != c.typ || !slices.Equal(f[0].Shape, c.shape) || f[0].Nullable || ds.Len() != int64(len(data)/c.width) {
					t.Errorf("%d records of %+v", ds.Len(), f)
				}
				if _, err := ds.(*arrowio.Dataset).Verify(t.Context(), arrowio.VerifyOptions{Hash: true}); err != nil {
					t.Error(err)
				}
			})
			for length, stride := range map[int64]int64{4: 3, 17: 1, 1: 2} {
				t.Run(fmt.Sprint(c.name, "/", io, "/window ", length), func(t *testing.T) {
					sourcetest.Suite{
						Open: func(t *testing.T) source.Source {
							v, err := view.Window(t.Context(), open(t), view.Windows{Length: length, Stride: stride})
							if err != nil {
								t.Fatal(err)
							}
							return v
						},
						Row: func(_ int, k int64) []byte { return data[int(k*stride)*c.width:][:int(length)*c.width] },
					}.Run(t)
				})
			}
		}
	}
}

// TestFlatErrors has the whole message for each way in which a raw or .npy file cannot be read.
func TestFlatErrors(t *testing.T) {
	tokens := make([]byte, 1024+10)
	binary.LittleEndian.PutUint32(tokens, 20240520)
	binary.LittleEndian.PutUint32(tokens[4:], 1)
	binary.LittleEndian.PutUint32(tokens[8:], 5)
	const numpy = `; mf.from_arrays({"x": numpy.load("in.npy", mmap_mode="r")})`
	for _, c := range []struct {
		name string
		data []byte
		o    arrowio.Options
		code status.Code
		want string
	}{
		{"train.bin", countedBytes(10), arrowio.Options{}, status.Unsupported,
			`train.bin: the file does not say what its elements are; give their type, such as dtype="uint16" for tokens of nanoGPT, and with skip the bytes of a header; if an .idx of Megatron lies beside it, open that`},
		{"ids.bin", slices.Concat([]byte{16, 0, 0, 0}, make([]byte, 60)), arrowio.Options{}, status.Unsupported,
			`ids.bin: the file does not say what its elements are; give their type, such as dtype="uint16" for tokens of nanoGPT, and with skip the bytes of a header; if an .idx of Megatron lies beside it, open that`},
		{"train.BIN", tokens, arrowio.Options{}, status.Unsupported,
			`train.BIN: the file does not say what its elements are; it begins as token files of llm.c and modded-nanoGPT do: give dtype="uint16" and skip=1024`},
		{"train.bin", tokens, arrowio.Options{DType: dtype.Uint16}, status.InvalidArgument,
			`train.bin: the file begins with a header of 1024 bytes, which would be read as elements; give skip=1024`},
		{"train.bin", countedBytes(1001), arrowio.Options{DType: dtype.Uint16}, status.InvalidArgument,
			`train.bin: the file has 1001 bytes after the 0 that are skipped, which is not a multiple of the 2 bytes of uint16; correct dtype; if a header comes first, give its bytes as skip; or write the file again if it was cut short`},
		{"train.bin", countedBytes(10), arrowio.Options{DType: dtype.Uint16, Skip: 16}, status.InvalidArgument,
			`train.bin: the file has 10 bytes, fewer than the 16 that are skipped; correct skip, or write the file again if it was cut short`},
		{"train.bin", countedBytes(10), arrowio.Options{Skip: 2}, status.InvalidArgument,
			`skip is 2 bytes, but dtype is not given; only raw files have bytes to skip: give the type of their elements, such as dtype="uint16"`},
		{"train.bin", countedBytes(10), arrowio.Options{DType: dtype.Uint8, Skip: -1}, status.InvalidArgument, `skip is -1 bytes; give the bytes before the first element`},
		{"train.bin", countedBytes(10), arrowio.Options{DType: dtype.Bool}, status.InvalidArgument, `raw elements cannot be read as bool; read booleans as uint8, and complex numbers as floats`},
		{"train.npy", saveNPY("<u2", "False", "(2,)", countedBytes(4)), arrowio.Options{DType: dtype.Uint16}, status.InvalidArgument,
			`train.npy: the file is not raw: it says what its elements are; leave dtype out; to read its bytes all the same, skip the header`},
		{"a.idx", countedBytes(8), arrowio.Options{DType: dtype.Uint16}, status.InvalidArgument,
			`a.idx: the file is an index of Megatron by its name, and holds no tokens; leave dtype out`},
		{"one.npy", saveNPY("<u2", "False", "()", countedBytes(2)), arrowio.Options{}, status.Unsupported,
			`one.npy: array "one" is a single number, which has no records; save an array with a dimension for the records`},
		{"mask.npy", saveNPY("|b1", "False", "(2,)", countedBytes(2)), arrowio.Options{}, status.Unsupported, `mask.npy: array "mask" of the type bool is not read as records` + numpy},
		{"wave.npy", saveNPY("<c8", "False", "(1,)", countedBytes(8)), arrowio.Options{}, status.Unsupported, `wave.npy: array "wave" of the type complex64 is not read as records` + numpy},
		{"old.npy", saveNPY(">u2", "False", "(2,)", countedBytes(4)), arrowio.Options{}, status.Unsupported,
			`old.npy: array "old": its byte order is foreign; save array.astype(array.dtype.newbyteorder("="))`},
		{"f.npy", saveNPY("<u2", "True", "(2, 2)", countedBytes(8)), arrowio.Options{}, status.Unsupported,
			`f.npy: array "f": its elements are in Fortran order; save numpy.ascontiguousarray(array)`},
		{"none.npy", saveNPY("<u2", "False", "(2, 0)", nil), arrowio.Options{}, status.Unsupported,
			`none.npy: the rows cannot become a field: its rows have no elements; leave the column out`},
		{"cut.npy", saveNPY("<u2", "False", "(3,)", countedBytes(4)), arrowio.Options{}, status.DataLoss,
			`cut.npy: array "cut" of the type <u2 and the shape (3,) is longer than the 4 bytes after its header; write or fetch the file again`},
	} {
		_, err := arrowio.OpenFiles(t.Context(), []string{c.name}, func() arrowio.Options { c.o.Opener = blobtest.Memory{c.name: c.data}; return c.o }())
		if err == nil || err.Error() != "arrowio: "+c.want || status.CodeOf(err) != c.code {
			t.Errorf("%s: got %v: %v\nwant %v: arrowio: %s", c.name, status.CodeOf(err), err, c.code, c.want)
		}
	}
}

// TestFlatDirectory: a directory stands for its .npy files unless it has files of Arrow.
func TestFlatDirectory(t *testing.T) {
	memory := blobtest.Memory{"d/b.npy": saveNPY("<u2", "False", "(2,)", countedBytes(4)), "d/a.NPY": saveNPY("<u2", "False", "(1,)", countedBytes(2)), "d/note": nil}
	ds, err := arrowio.OpenFiles(t.Context(), []string{"d"}, arrowio.Options{Opener: memory})
	if err != nil || ds.Len() != 3 || ds.Files()[0].Path != "d/a.NPY" {
		t.Fatal(err)
	}
	_ = ds.Close()
}

// TestManyTokens opens 10^10 tokens, and reads windows at both ends and across the border of two
// files. Neither opening nor a gather takes memory for each record.
func TestManyTokens(t *testing.T) {
	const bytesOfFile, length, stride = 10_000_000_001, 2049, 2048 // and a byte to skip
	const all = int64(10_000_000_000)
	dir := t.TempDir()
	var paths []string
	for i := range 2 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("train-", i, ".bin")))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(bytesOfFile); err != nil {
			t.Skip(err) // the file system has no sparse files
		}
		for _, at := range []int64{1, bytesOfFile - 2*length} {
			if _, err := f.WriteAt(countedBytes(2*length), at); err != nil {
				t.Fatal(err)
			}
		}
		paths = append(paths, f.Name())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ds, err := arrowio.OpenFiles(t.Context(), paths, arrowio.Options{DType: dtype.Uint16, Skip: 1, IO: "read"})
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	v, err := view.Window(t.Context(), ds, view.Windows{Length: length, Stride: stride})
	if err != nil || ds.Len() != all || v.Len() != (all-length)/stride+1 {
		t.Fatal(ds.Len(), err)
	}
	g, err := v.Gatherer([]source.Part{v.Schema().Whole(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	border := all / 2 / stride
	records := []int64{v.Len() - 1, 0, border, 12345}
	rows := make([]byte, len(records)*2*length)
	for range 2 {
		if err := g.Gather(t.Context(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: rows}}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("it took %d bytes of memory", used)
	}
	end, first := make([]byte, 2*length), countedBytes(2*length)
	first, end = slices.Concat(end, first), slices.Concat(first, end)
	left := int(all/2-border*stride) * 2 // bytes of the window in the first file
	last := int(all-(v.Len()-1)*stride) * 2
	for i, want := range [][]byte{first[len(first)-last:][:2*length], end[:2*length], slices.Concat(first[len(first)-left:], end)[:2*length], make([]byte, 2*length)} {
		if got := rows[i*2*length:][:2*length]; !bytes.Equal(got, want) {
			t.Errorf("window %d has wrong rows", records[i])
		}
	}
}

// TestAdjacent: rows lie one after the other within each file, and nowhere if they hold nulls or are
// encoded. Units of a raw file have no border between them.
func TestAdjacent(t *testing.T) {
	big := countedBytes(20 << 20) // three units
	ds, err := arrowio.OpenFiles(t.Context(), []string{"a", "b"}, arrowio.Options{Opener: blobtest.Memory{"a": big, "b": countedBytes(100)}, DType: dtype.Uint32})
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	const length = 10
	border, n := int64(len(big)/4), ds.Len()
	part := source.Part{Boxes: [][][2]int{{{0, length}}}}
	g, number, err := ds.Facts().Adjacent([]source.Part{part}, length)
	if err != nil || len(ds.Facts().Units()) != 4 {
		t.Fatal(err)
	}
	defer g.Close()
	for record := range n - length + 1 {
		want := record
		if record > border-length {
			want = -1
		}
		if record >= border {
			want = record - length + 1
		}
		if got := number(record); got != want {
			t.Fatalf("the window from record %d has number %d, want %d", record, got, want)
		}
	}
	dst := make([]byte, 4*length)
	if err := g.Gather(t.Context(), source.Draw{}, []int64{number(border + 3)}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}}); err != nil || !bytes.Equal(dst, countedBytes(100)[12:][:4*length]) {
		t.Errorf("%v, %v", dst, err)
	}
	for path, want := range map[string]bool{
		"../internal/arrowmeta/testdata/lz4.arrow": false, "testdata/parquet/ragged.parquet": false, "../internal/arrowmeta/testdata/fixed.arrow": true,
	} {
		ds, err := arrowio.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		for _, field := range ds.Schema().Fixed() {
			f := ds.Schema().Fields[field]
			part := ds.Schema().Whole(field)
			part.Boxes[0] = append([][2]int{{0, 1}}, part.Boxes[0]...)
			g, _, err := ds.Facts().Adjacent([]source.Part{part}, 1)
			if err != nil || (g != nil) != (want && !f.HasNulls && !f.Lists && f.Type != dtype.Bool) {
				t.Errorf("%s: field %+v: %v, %v", path, f, g != nil, err)
			}
		}
	}
}

// FuzzFlat: no bytes of a .npy file stop the program, and what opens can be read.
func FuzzFlat(f *testing.F) {
	f.Add(saveNPY("<f4", "False", "(5, 2)", countedBytes(40)), uint8(0), uint16(0))
	f.Add(countedBytes(64), uint8(dtype.Uint16), uint16(4))
	f.Fuzz(func(t *testing.T, data []byte, typ uint8, skip uint16) {
		o := arrowio.Options{Opener: blobtest.Memory{"x.bin": bytes.Clone(data)}, DType: dtype.Type(typ), Skip: int64(skip)}
		ds, err := arrowio.OpenFiles(t.Context(), []string{"x.bin"}, o)
		if err != nil {
			return
		}
		defer ds.Close()
		if _, err := ds.Verify(t.Context(), arrowio.VerifyOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}
