package arrowmeta_test

import (
	"bytes"
	"flag"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/tests/random"
)

var mutations = flag.Int("mutations", 12000, "number of mutated inputs")

// examine reads all metadata, and fails the test if anything that is accepted
// lies out of bounds.
func examine(t testing.TB, data []byte) error {
	t.Helper()
	f, err := read(data)
	if err != nil {
		return err
	}
	for _, list := range [][]arrowmeta.Block{f.Batches, f.Dictionaries} {
		for _, b := range list {
			if b.Offset < 0 || b.MetaLen < 4 || b.BodyLen < 0 || b.End() > int64(len(data)) || b.Body() < b.Offset || b.End() < b.Body() {
				t.Fatalf("block %+v of a file of %d bytes", b, len(data))
			}
		}
	}
	for i := range f.Schema.Fields {
		f.Schema.Fields[i].TypeString()
	}
	arrowtype.Describe(&f.Schema)
	r := bytes.NewReader(data)
	err = f.Scan(r, 0, len(f.Batches), func(i int, b *arrowmeta.RecordBatch) error {
		for c := range f.Columns {
			inBounds(t, b, &f.Columns[c], f.Batches[i].BodyLen)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return f.ScanDictionaries(r, func(int, *arrowmeta.DictionaryBatch) error { return nil })
}

func inBounds(t testing.TB, b *arrowmeta.RecordBatch, c *arrowmeta.Column, body int64) {
	if !c.Located {
		return
	}
	n := b.Node(c)
	if n.Length < 0 || n.Nulls < 0 || n.Nulls > n.Length {
		t.Fatalf("node %+v", n)
	}
	for i, r := range b.Buffers(c) {
		need, ok := c.MinBytes(i, n.Length)
		bitmap := i == 0 && c.Validity && n.Nulls == 0
		if r.Offset < 0 || r.Length < 0 || r.Offset+r.Length > body || r.Offset+r.Length < 0 {
			t.Fatalf("buffer %+v of a body of %d", r, body)
		}
		if b.Compression == arrowmeta.Uncompressed && !bitmap && (!ok || r.Length < need) {
			t.Fatalf("buffer %d of %q has %d bytes, not %d", i, c.Field.Name, r.Length, need)
		}
		if b.Compression != arrowmeta.Uncompressed && r.Length > 0 && r.Length < 8 {
			t.Fatalf("buffer %d of %q has %d bytes and no size", i, c.Field.Name, r.Length)
		}
	}
	for i := range c.Children {
		inBounds(t, b, &c.Children[i], body)
	}
}

// mustBeClear fails the test unless err names a position.
func mustBeClear(t testing.TB, err error) {
	t.Helper()
	e, ok := err.(*status.Error)
	if !ok || e.Op != "arrowmeta" || e.Code != status.DataLoss && e.Code != status.Unsupported || e.Attr("offset") == nil || e.Hint == "" {
		t.Fatalf("error without code, position or hint: %#v", err)
	}
}

// TestTruncated cuts every file and stream at every byte. No prefix may be
// accepted.
func TestTruncated(t *testing.T) {
	for name := range golden(t) {
		data := load(t, name)
		for n := range data {
			err := examine(t, data[:n:n])
			if err == nil {
				t.Fatalf("%s: the first %d of %d bytes were accepted", name, n, len(data))
			}
			mustBeClear(t, err)
		}
	}
}

// TestMutated changes files and streams at random. No change may cause a panic, a
// buffer out of bounds, or an allocation out of proportion to the input.
func TestMutated(t *testing.T) {
	r := random.New(t)
	var inputs [][]byte
	for _, name := range slices.Sorted(maps.Keys(golden(t))) {
		inputs = append(inputs, load(t, name))
	}
	accepted := 0
	for range *mutations {
		data := random.Damage(r, random.One(r, inputs...))
		before := allocated()
		err := examine(t, data)
		if grown := allocated() - before; grown > 256<<10+64*uint64(len(data)) {
			t.Fatalf("%d bytes allocated for an input of %d: %x", grown, len(data), data)
		}
		if err == nil {
			accepted++
			continue
		}
		mustBeClear(t, err)
	}
	t.Logf("%d accepted", accepted)
	if accepted == 0 || accepted == *mutations {
		t.Errorf("%d of %d mutations were accepted: the test does not test", accepted, *mutations)
	}
}

// allocated returns the bytes allocated so far. The runtime's count lags by a span
// per size class, which the bound of the test allows for.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func FuzzFile(f *testing.F) {
	seedWith(f, ".arrow")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := examine(t, append([]byte("ARROW1\x00\x00"), data...)); err != nil {
			mustBeClear(t, err)
		}
	})
}

func FuzzStream(f *testing.F) {
	seedWith(f, ".stream")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := examine(t, data); err != nil {
			mustBeClear(t, err)
		}
	})
}

// seedWith adds the files with the extension, without the magic of files.
func seedWith(f *testing.F, extension string) {
	for name := range golden(f) {
		data := load(f, name)
		if extension == ".arrow" && bytes.HasPrefix(data, []byte("ARROW1")) {
			f.Add(data[8:])
		}
		if extension == ".stream" && !bytes.HasPrefix(data, []byte("ARROW1")) {
			f.Add(data)
		}
	}
}
