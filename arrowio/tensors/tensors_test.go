package tensors

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
)

// stored is an array to write.
type stored struct {
	name, typ string
	shape     []int
	data      []byte
}

// random returns n bytes that are the same in every run.
func random(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// safetensors writes a file as the reference implementation does.
func safetensors(arrays ...stored) []byte {
	var data []byte
	entries := []string{`"__metadata__":{"format":"pt"}`}
	for _, a := range arrays {
		shape, _ := json.Marshal(append([]int{}, a.shape...))
		entries = append(entries, fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`,
			a.name, a.typ, shape, len(data), len(data)+len(a.data)))
		data = append(data, a.data...)
	}
	return withHeader("{"+strings.Join(entries, ",")+"}", data)
}

// withHeader writes a file with any header.
func withHeader(header string, data []byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

// npyFile writes a file as numpy.save does, in version 1.0.
func npyFile(descr, order, shape string, data []byte) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, order, shape)
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	return append(append(out, header...), data...)
}

// npz writes a zip file with members that are stored or compressed.
func npz(t testing.TB, method uint16, members map[string][]byte) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, data := range members {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var weights = []stored{
	{"w", "F32", []int{5, 7, 3}, random(5 * 7 * 3 * 4)},
	{"norm", "BF16", []int{11}, random(22)},
	{"scale", "F64", nil, random(8)},
	{"empty", "F32", []int{0, 4}, nil},
	{"small", "F8_E4M3", []int{3, 3}, random(9)},
	{"long", "", []int{3, 22_501}, random(3 * 22_501 * 16)},
}

func openIn(t *testing.T, m blobtest.Memory, name string) source.Source {
	t.Helper()
	s, err := OpenFrom(t.Context(), m, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// row returns the bytes of an array by the number of its field.
func row(src source.Source) func(field int, _ int64) []byte {
	return func(field int, _ int64) []byte {
		name := src.Schema().Fields[field].Name
		return weights[slices.IndexFunc(weights, func(a stored) bool { return a.name == name })].data
	}
}

func TestSource(t *testing.T) {
	w := weights
	files := map[string]blobtest.Memory{
		"m.safetensors": {"m.safetensors": safetensors(w[:5]...)},
		"m.safetensors.index.json": {
			"m.safetensors.index.json": []byte(`{"metadata": {"total_size": 9}, "weight_map": {
			  "w": "1.safetensors", "norm": "2.safetensors", "scale": "1.safetensors"}}`),
			"1.safetensors": safetensors(w[0], w[2]), "2.safetensors": safetensors(w[1], w[3]),
		},
		"long.npy": {"long.npy": npyFile("<c16", "False", "(3, 22501)", w[5].data)},
		"a.npz": {"a.npz": npz(t, zip.Store, map[string][]byte{
			"w.npy": npyFile("<f4", "False", "(5, 7, 3)", w[0].data), "scale.npy": npyFile("<f8", "True", "()", w[2].data), "README": nil,
		})},
	}
	for name, m := range files {
		t.Run(name, func(t *testing.T) {
			src := openIn(t, m, name)
			defer src.Close()
			sourcetest.Suite{Open: func(t *testing.T) source.Source { return openIn(t, m, name) }, Row: row(src)}.Run(t)
		})
	}
}

// counted counts the bytes that are read from an offset on.
type counted struct {
	*bytes.Reader
	from int64
	n    atomic.Int64
}

func (c *counted) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= c.from {
		c.n.Add(int64(len(p)))
	}
	return c.Reader.ReadAt(p, offset)
}

type oneFile struct {
	blobtest.Memory
	blob blob.Blob
}

func (o oneFile) Stat(_ context.Context, name string) (blob.Entry, error) {
	return blob.Entry{Name: name}, nil
}

func (o oneFile) Open(context.Context, blob.Entry) (blob.Blob, error) { return o.blob, nil }

// TestOnlyTheParts: a gather reads the bytes of its parts, and shared bytes once.
func TestOnlyTheParts(t *testing.T) {
	const rows, columns = 1200, 5000 // 2 bytes each
	file := safetensors(stored{"w", "BF16", []int{rows, columns}, random(2 * rows * columns)})
	start := int64(len(file) - 2*rows*columns)
	for _, c := range []struct {
		name  string
		boxes [][][2]int
		want  int64
	}{
		{"rows", [][][2]int{{{300, 600}, {0, columns}}}, 300 * columns * 2},
		{"two copies of rows", [][][2]int{{{300, 600}, {0, columns}}, {{300, 600}, {0, columns}}}, 300 * columns * 2},
		{"columns", [][][2]int{{{0, rows}, {1000, 2000}}}, rows * 1000 * 2},
		{"all columns, in parts", [][][2]int{{{0, rows}, {0, 2500}}, {{0, rows}, {2500, columns}}}, rows * columns * 2},
		{"nothing", [][][2]int{{{5, 5}, {0, columns}}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &counted{Reader: bytes.NewReader(file), from: start}
			src, err := OpenFrom(t.Context(), oneFile{blob: blobtest.Bytes("w.safetensors", f)}, "w.safetensors")
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			var parts []source.Part
			var jobs []source.Job
			for i, box := range c.boxes {
				parts = append(parts, source.Part{Boxes: [][][2]int{box}})
				jobs = append(jobs, source.Job{Part: i, Rows: [2]int{0, 1}, Dst: make([]byte, parts[i].Bytes(dtype.BFloat16))})
			}
			g, err := src.Gatherer(parts)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Gather(t.Context(), source.Draw{}, []int64{0}, jobs); err != nil {
				t.Fatal(err)
			}
			if n := f.n.Load(); n != c.want {
				t.Errorf("%d bytes were read instead of %d", n, c.want)
			}
			for i, box := range c.boxes {
				var want []byte
				for r := box[0][0]; r < box[0][1]; r++ {
					at := int(start) + 2*(r*columns+box[1][0])
					want = append(want, file[at:at+2*(box[1][1]-box[1][0])]...)
				}
				if !bytes.Equal(jobs[i].Dst, want) {
					t.Errorf("part %d has other bytes", i)
				}
			}
		})
	}
}

// hung is a disk that does not answer reads from an offset on, until it is released.
type hung struct {
	*bytes.Reader
	from           int64
	asked, release chan struct{}
}

func (h hung) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= h.from {
		h.asked <- struct{}{}
		<-h.release
	}
	return h.Reader.ReadAt(p, offset)
}

// TestCancelled: a cancelled gather returns although the disk does not, and nothing is
// written to its memory later.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := safetensors(weights[0])
		h := hung{bytes.NewReader(file), int64(len(file) - len(weights[0].data)), make(chan struct{}), make(chan struct{})}
		src, err := OpenFrom(t.Context(), oneFile{blob: blobtest.Bytes("w", h)}, "w")
		if err != nil {
			t.Fatal(err)
		}
		g, err := src.Gatherer([]source.Part{{Boxes: [][][2]int{{{0, 5}, {0, 7}, {0, 3}}}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		dst, got := make([]byte, len(weights[0].data)), make(chan error)
		go func() { got <- g.Gather(ctx, source.Draw{}, []int64{0}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}}) }()
		<-h.asked
		cancel()
		if err := <-got; status.CodeOf(err) != status.Cancelled || err.Error() != "tensors: the read was cancelled" {
			t.Errorf("got %v", err)
		}
		close(h.release)
		synctest.Wait()
		if !bytes.Equal(dst, make([]byte, len(dst))) {
			t.Error("the memory of a cancelled gather was written to")
		}
		_ = src.Close()
	})
}

// TestNarrowed: numbers of 64 bits are converted to 32 bits, or rejected.
func TestNarrowed(t *testing.T) {
	floats, ints := make([]byte, 8*3), make([]byte, 8*2)
	for i, x := range []float64{1.5, math.Inf(-1), 1e300} {
		binary.LittleEndian.PutUint64(floats[8*i:], math.Float64bits(x))
	}
	minusThree := int64(-3)
	binary.LittleEndian.PutUint64(ints, uint64(minusThree))
	src := openIn(t, blobtest.Memory{"x.safetensors": safetensors(
		stored{"f", "F64", []int{3}, floats}, stored{"i", "I64", []int{2}, ints}, stored{"big", "I64", []int{1}, binary.LittleEndian.AppendUint64(nil, 1<<31)},
		stored{"unsigned", "U64", []int{1}, binary.LittleEndian.AppendUint64(nil, 1<<32)}, stored{"b", "BOOL", []int{3}, []byte{0, 7, 1}},
	)}, "x.safetensors")
	defer src.Close()
	read := func(name string, to dtype.Type) ([]byte, error) {
		n, f, _ := src.Schema().Field(name)
		p := source.Part{Field: n, To: to, Boxes: [][][2]int{{{0, f.Shape[0]}}}}
		g, err := src.Gatherer([]source.Part{p})
		if err != nil {
			return nil, err
		}
		dst := make([]byte, p.Bytes(to))
		return dst, g.Gather(t.Context(), source.Draw{}, []int64{0}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}})
	}
	got, err := read("f", dtype.Float32)
	for i, want := range []float32{1.5, float32(math.Inf(-1)), float32(math.Inf(1))} {
		if x := math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])); err != nil || x != want {
			t.Errorf("float %d: %v, %v", i, x, err)
		}
	}
	if got, err := read("i", dtype.Int32); err != nil || int32(binary.LittleEndian.Uint32(got)) != -3 {
		t.Errorf("int: %v, %v", got, err)
	}
	if got, err := read("b", dtype.Bool); err != nil || !bytes.Equal(got, []byte{0, 1, 1}) {
		t.Errorf("bool: %v, %v", got, err)
	}
	for name, to := range map[string]dtype.Type{"big": dtype.Int32, "unsigned": dtype.Uint32} {
		_, err := read(name, to)
		want := fmt.Sprintf("tensors: array %q holds %d, which %v cannot; ", name, map[string]int{"big": 1 << 31, "unsigned": 1 << 32}[name], to)
		if status.CodeOf(err) != status.OutOfRange || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestURL(t *testing.T) {
	_, err := Open(t.Context(), "gs://bucket/x.npy")
	const want = "arrowio: gs://bucket/x.npy: this is a URL, and only files are read; copy the files to this machine, or mount what holds them, and give their paths"
	if status.CodeOf(err) != status.Unsupported || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestHostile: a damaged or foreign file is an error that names it.
func TestHostile(t *testing.T) {
	one := `"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	data := make([]byte, 8)
	const again = "; write or fetch the file again"
	cases := map[string]struct {
		file []byte
		text string
	}{
		"empty.safetensors":   {nil, "the file is empty" + again},
		"empty.npy":           {nil, "the file is empty" + again},
		"short.safetensors":   {[]byte("abc"), "the file does not begin with the header of safetensors" + again},
		"short.bin":           {[]byte("abc"), "not a safetensors, .npy or .npz file; for Arrow files use mf.open"},
		"lfs.safetensors":     {[]byte("version https://git-lfs.github.com/spec/v1\n"), "this is a pointer of Git LFS, not the file; fetch the file: git lfs pull"},
		"long.safetensors":    {append(binary.LittleEndian.AppendUint64(nil, 1<<60), "{}"...), "the header has 1152921504606846976 bytes, but only 2 follow" + again},
		"json.safetensors":    {withHeader(`{"x":}`, nil), "the header is not JSON: expected a value, but found '}' (at byte 5)" + again},
		"twice.safetensors":   {withHeader("{"+one+","+one+"}", data), `the header has the key "x" twice` + again},
		"entry.safetensors":   {withHeader(`{"x":{"dtype":"F32","shape":[2]}}`, data), `the entry "x" of the header needs a dtype, a shape of at most 31 dimensions, and data_offsets` + again},
		"float.safetensors":   {withHeader(`{"x":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}}`, data), `the entry "x" of the header needs a dtype, a shape of at most 31 dimensions, and data_offsets` + again},
		"beyond.safetensors":  {withHeader(`{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, data), `array "x" is at the bytes [0, 16) of 8` + again},
		"reverse.safetensors": {withHeader(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, data), `array "x" is at the bytes [8, 0) of 8` + again},
		"size.safetensors":    {withHeader(`{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, data), `array "x" of the type F32 and the shape [3] has 8 bytes` + again},
		"wide.safetensors":    {withHeader(`{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}`, data), `array "x" of the type F32 and the shape [4294967296 4294967296] has 8 bytes` + again},
		"shared.safetensors":  {withHeader("{"+one+`,"y":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, data), `the arrays "x" and "y" share bytes` + again},
		"start.safetensors":   {withHeader(`{"x":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, data), "the bytes [0, 4) after the header belong to no array" + again},
		"hole.safetensors":    {withHeader(`{"y":{"dtype":"U8","shape":[2],"data_offsets":[6,8]},"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, data), "the bytes [4, 6) after the header belong to no array" + again},
		"rest.safetensors":    {withHeader(`{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, data), "the bytes [4, 8) after the header belong to no array" + again},
		"nothing.safetensors": {withHeader(`{}`, data), "the bytes [0, 8) after the header belong to no array" + again},
		"unknown.safetensors": {withHeader(`{"x":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}}`, data), "the bytes [4, 8) after the header belong to no array" + again},
		"inside.safetensors":  {withHeader("{"+one+`,"y":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}}`, data), `the arrays "x" and "y" share bytes` + again},
		"meta.safetensors":    {withHeader(`{"__metadata__":{"epoch":3},`+one+"}", data), `the entry "__metadata__" of the header is not an object of strings` + again},
		"metas.safetensors":   {withHeader(`{"__metadata__":"pt",`+one+"}", data), `the entry "__metadata__" of the header is not an object of strings` + again},
		"key.safetensors":     {withHeader(`{"x":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, data), `the entry "x" of the header has the key "dtype" twice` + again},
		"three.safetensors":   {withHeader(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}`, data), `the entry "x" of the header needs a dtype, a shape of at most 31 dimensions, and data_offsets` + again},
		"utf8.safetensors":    {withHeader("{\"\xff\":{}}", data), "the header is not JSON: the byte 0xff is not UTF-8 (at byte 2)" + again},
		"space.safetensors":   {withHeader(" {"+one+"}", data), "the file does not begin with the header of safetensors" + again},
		"rest.npy":            {npyFile("<f4", "False", "(1,)", data), `array "rest" has 4 bytes, but 8 follow its header; write the file again; for several arrays use numpy.savez`},
		"index.json":          {[]byte(`{"weight_map": {"x": "../x.safetensors"}}`), `array "x" is in the file "../x.safetensors", which is not a name in the directory of the index` + again},
		"map.json":            {[]byte(`{"weights": {}}`), `the index has no object "weight_map"` + again},
		"cut.npy":             {npyFile("<f4", "False", "(3,)", data), `array "cut" of the type <f4 and the shape (3,) is longer than the 8 bytes after its header` + again},
		"header.npy":          {[]byte("\x93NUMPY\x01\x00\xff\xff{}"), `array "header" has a header of 65535 bytes, but only 2 follow` + again},
		"large.npy":           {append([]byte("\x93NUMPY\x02\x00\x01\x00\x01\x00"), make([]byte, 65537)...), `array "large" has a header of 65537 bytes, but at most 65536 are read; write it with numpy.save`},
		"version.npy":         {append([]byte("\x93NUMPY\x09\x00"), data...), `array "version" has version 9.0 of the .npy format; write it with numpy.save`},
		"negative.npy":        {npyFile("<f4", "False", "(-1,)", data), ""},
		"torch.pt":            {npz(t, zip.Store, map[string][]byte{"archive/data.pkl": {}}), `this zip file has no .npy member; its first member is "archive/data.pkl"; write weights of torch.save with safetensors.torch.save_file`},
		"zip.npz":             {[]byte("PK\x03\x04 and nothing else"), "the zip directory cannot be read: zip: not a valid zip file" + again},
	}
	for name, c := range cases {
		_, err := OpenFrom(t.Context(), blobtest.Memory{name: append([]byte{}, c.file...)}, name)
		if c.text == "" {
			if status.CodeOf(err) != status.DataLoss {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if want := "tensors: " + name + ": " + c.text; err == nil || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", name, err, want)
		}
	}
}

// TestSkipped: arrays that JAX cannot have are listed with a reason.
func TestSkipped(t *testing.T) {
	eight := make([]byte, 8)
	for name, m := range map[string]blobtest.Memory{
		"it has no name": {"x": safetensors(stored{"", "U8", []int{8}, eight})},
		"arrays of the type F4 are not read; save them in a ":      {"x": safetensors(stored{"x", "F4", []int{16}, eight})},
		"it is compressed; write the file with numpy.savez":        {"x": npz(t, zip.Deflate, map[string][]byte{"x.npy": npyFile("<f4", "False", "(2,)", eight)})},
		"its byte order is foreign; save array.astype":             {"x": npyFile(">f4", "False", "(2,)", eight)},
		"its elements are in Fortran order; save numpy.ascon":      {"x": npyFile("<f4", "True", "(2, 1)", eight)},
		"its type |V2 is not a type of numbers; NumPy does not st": {"x": npyFile("|V2", "False", "(4,)", eight)},
		"its type <f1 is not a type of numbers; NumPy does not st": {"x": npyFile("<f1", "False", "(8,)", eight)}, // float8_e5m2
		"its type <U1 stands for text, which JAX does not ha":      {"x": npyFile("<U1", "False", "(2,)", eight)},
		"its type |S4 stands for bytes; save array.view(nump":      {"x": npyFile("|S4", "False", "(2,)", eight)},
		"its type >M8[s] stands for times, which JAX does no":      {"x": npyFile(">M8[s]", "False", "(1,)", eight)},
		"its type <m8 stands for times, which JAX does not h":      {"x": npyFile("<m8", "False", "(1,)", eight)},
		"its type |O stands for pickled Python objects, whic":      {"x": npyFile("|O", "False", "(1,)", eight)},
		"its type <f16 has more than 64 bits, which JAX does":      {"x": npyFile("<f16", "False", "(0,)", nil)},
		"its type <c32 has more than 128 bits, which JAX doe":      {"x": npyFile("<c32", "False", "(0,)", nil)},
		"its type <W4 is complex of 32 bits, which JAX does ":      {"x": npyFile("<W4", "False", "(2,)", eight)},
	} {
		src := openIn(t, m, "x")
		if s := src.Schema(); len(s.Fields) != 0 || len(s.Skipped) != 1 || !strings.HasPrefix(s.Skipped[0].Reason, name) {
			t.Errorf("%s: %+v", name, s)
		}
		_ = src.Close()
	}
}

// TestOrderOfArrays: arrays may be in any order, empty ones between others, and the
// header may be padded.
func TestOrderOfArrays(t *testing.T) {
	header := `{"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},"none":{"dtype":"U8","shape":[0],"data_offsets":[4,4]},
	  "a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"__metadata__":null,"end":{"dtype":"F32","shape":[2,0],"data_offsets":[6,6]}}  `
	src := openIn(t, blobtest.Memory{"x": withHeader(header, []byte("123456"))}, "x")
	defer src.Close()
	g, err := src.Gatherer([]source.Part{{Field: 0, Boxes: [][][2]int{{{0, 2}}}}})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 2)
	if err := g.Gather(t.Context(), source.Draw{}, []int64{0}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}}); err != nil || string(dst) != "56" {
		t.Errorf("%q, %v", dst, err)
	}
}

// TestMembersOfZip: the members of zip files as other programs than NumPy write them.
func TestMembersOfZip(t *testing.T) {
	array := npyFile("<f4", "False", "(2,)", make([]byte, 8))
	file := func(headers ...*zip.FileHeader) []byte {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		for _, h := range headers {
			f, err := w.CreateHeader(h) // with the sizes after the data
			if err == nil && !strings.HasSuffix(h.Name, "/") {
				_, err = f.Write(array)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	src := openIn(t, blobtest.Memory{"x": file(
		&zip.FileHeader{Name: "layers/"}, &zip.FileHeader{Name: "layers/0/w.npy"}, &zip.FileHeader{Name: "../b.npy"},
		&zip.FileHeader{Name: "s.npy", Flags: 1}, &zip.FileHeader{Name: "z.npy", Method: zip.Deflate}, &zip.FileHeader{Name: ".npy"}, &zip.FileHeader{Name: "notes.txt"},
	)}, "x")
	defer src.Close()
	got := ""
	for _, f := range src.Schema().Fields {
		got += f.Name + "\n"
	}
	for _, s := range src.Schema().Skipped {
		got += s.Name + ": " + s.Reason + "\n"
	}
	want := "layers/0/w\n../b\ns: it is encrypted; write the file with numpy.savez\nz: it is compressed; write the file with numpy.savez\n: it has no name\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	const again = "; write or fetch the file again"
	for want, bad := range map[string][]byte{
		`the array "w" is there twice` + again:                                                                     file(&zip.FileHeader{Name: "w.npy"}, &zip.FileHeader{Name: "w.npy"}),
		`array "w" does not begin with the header of .npy` + again:                                                 npz(t, zip.Store, map[string][]byte{"w.npy": []byte("hello, world")}),
		`array "w" has 8 bytes, but 9 follow its header; write the file again; for several arrays use numpy.savez`: npz(t, zip.Store, map[string][]byte{"w.npy": append(slices.Clone(array), 0)}),
	} {
		_, err := OpenFrom(t.Context(), blobtest.Memory{"x": bad}, "x")
		if err == nil || err.Error() != "tensors: x: "+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestChecksum: the checksum of a member of a zip file is compared if all bytes of the array are
// read, in parts of any shape.
func TestChecksum(t *testing.T) {
	const rows, columns = 1100, 1001 // 4 bytes each: five chunks
	good := npz(t, zip.Store, map[string][]byte{"w.npy": npyFile("<f4", "False", "(1100, 1001)", random(4*rows*columns))})
	bad := bytes.Clone(good)
	bad[len(bad)/2] ^= 1
	for _, c := range []struct {
		name   string
		file   []byte
		boxes  [][][2]int
		differ bool
	}{
		{"whole", good, [][][2]int{{{0, rows}, {0, columns}}}, false},
		{"whole, damaged", bad, [][][2]int{{{0, rows}, {0, columns}}}, true},
		{"parts, damaged", bad, [][][2]int{{{0, rows}, {0, 500}}, {{0, 3}, {500, columns}}, {{3, rows}, {500, columns}}}, true},
		{"one part", bad, [][][2]int{{{0, 3}, {0, columns}}}, false},
	} {
		src := openIn(t, blobtest.Memory{"x.npz": c.file}, "x.npz")
		var parts []source.Part
		var jobs []source.Job
		for i, box := range c.boxes {
			parts = append(parts, source.Part{Boxes: [][][2]int{box}})
			jobs = append(jobs, source.Job{Part: i, Rows: [2]int{0, 1}, Dst: make([]byte, parts[i].Bytes(dtype.Float32))})
		}
		g, err := src.Gatherer(parts)
		if err != nil {
			t.Fatal(err)
		}
		err = g.Gather(t.Context(), source.Draw{}, []int64{0}, jobs)
		want := `tensors: x.npz: array "w" differs from its checksum in the zip file; write or fetch the file again`
		if differ := err != nil && err.Error() == want && status.CodeOf(err) == status.DataLoss; differ != c.differ || !c.differ && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		_ = src.Close()
	}
}

// TestOtherWriters: headers of other programs than NumPy.
func TestOtherWriters(t *testing.T) {
	for _, header := range []string{
		"{'descr':'<f4','fortran_order':False,'shape':(2,)}",
		"{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : (2, ) , }\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }\n", // Python 2
	} {
		file := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
		src := openIn(t, blobtest.Memory{"x.npy": append(append(file, header...), make([]byte, 8)...)}, "x.npy")
		if f := src.Schema().Fields; len(f) != 1 || f[0].Type != dtype.Float32 || !slices.Equal(f[0].Shape, []int{2}) {
			t.Errorf("%s: %+v", header, f)
		}
		_ = src.Close()
	}
}

// TestFilesOfAnIndex: a file that lacks an array of the index is an error.
func TestFilesOfAnIndex(t *testing.T) {
	m := blobtest.Memory{
		"d/model.json":    []byte(`{"weight_map": {"w": "1.safetensors", "norm": "1.safetensors"}}`),
		"d/1.safetensors": safetensors(weights[0]),
	}
	_, err := OpenFrom(t.Context(), m, "d/model.json")
	want := `tensors: d/1.safetensors: the file lacks array "norm", which the index says it has; fetch all files of one version again`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	delete(m, "d/1.safetensors")
	if _, err := OpenFrom(t.Context(), m, "d/model.json"); status.CodeOf(err) != status.NotFound {
		t.Errorf("got %v", err)
	}
}

// FuzzOpen: no file stops the program, and every array of a file that opens can be
// read.
func FuzzOpen(f *testing.F) {
	f.Add(safetensors(weights[:5]...))
	f.Add(npyFile("<f4", "False", "(5, 7, 3)", weights[0].data))
	f.Add(npz(f, zip.Store, map[string][]byte{"w.npy": npyFile("<f4", "False", "(5, 7, 3)", weights[0].data)}))
	f.Fuzz(func(t *testing.T, file []byte) {
		src, err := OpenFrom(t.Context(), blobtest.Memory{"x": append([]byte{}, file...)}, "x")
		if err != nil {
			return
		}
		defer src.Close()
		for i, field := range src.Schema().Fields {
			box := make([][2]int, len(field.Shape))
			for d, n := range field.Shape {
				box[d] = [2]int{0, n}
			}
			g, err := src.Gatherer([]source.Part{{Field: i, Boxes: [][][2]int{box}}})
			if err != nil {
				t.Fatal(err)
			}
			dst := make([]byte, field.RowBytes())
			if err := g.Gather(t.Context(), source.Draw{}, []int64{0}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}}); err != nil && !strings.Contains(err.Error(), "differs from its checksum") {
				t.Fatal(err)
			}
		}
	})
}
