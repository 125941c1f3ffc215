package arrowmeta_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// extent is the offset in the file and the length of a buffer. It is nil for a
// buffer that is empty or absent.
type extent = []int64

// expected is pyarrow's description of a file; see testdata/generate.py.
type expected struct {
	Fields  [][3]any     `json:"fields"`
	Rows    []int64      `json:"rows"`
	Nulls   [][]int64    `json:"nulls"`
	Buffers [][][]extent `json:"buffers"`
}

func golden(t testing.TB) map[string]expected {
	t.Helper()
	text, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Files map[string]expected }
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Files
}

func load(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func read(data []byte) (*arrowmeta.File, error) {
	return arrowmeta.Read(bytes.NewReader(data), int64(len(data)))
}

// TestGolden compares every file with what pyarrow reads: fields, rows, nulls
// and the position of every buffer, which pyarrow maps without a copy.
func TestGolden(t *testing.T) {
	for name, want := range golden(t) {
		t.Run(name, func(t *testing.T) {
			data := load(t, name)
			f, err := read(data)
			if err != nil {
				t.Fatal(err)
			}
			if f.Stream != (filepath.Ext(name) == ".stream") {
				t.Errorf("Stream = %v", f.Stream)
			}
			checkFields(t, f, want)
			if len(f.Batches) != len(want.Rows) {
				t.Fatalf("%d record batches, want %d", len(f.Batches), len(want.Rows))
			}
			err = f.Scan(bytes.NewReader(data), 0, len(f.Batches), func(i int, b *arrowmeta.RecordBatch) error {
				checkBatch(t, f, i, b, want)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func checkFields(t *testing.T, f *arrowmeta.File, want expected) {
	t.Helper()
	if len(f.Schema.Fields) != len(want.Fields) {
		t.Fatalf("%d fields, want %d", len(f.Schema.Fields), len(want.Fields))
	}
	for i := range f.Schema.Fields {
		field := &f.Schema.Fields[i]
		got := [3]any{field.Name, field.TypeString(), field.Nullable}
		if got != want.Fields[i] {
			t.Errorf("field %d is %v, want %v", i, got, want.Fields[i])
		}
	}
}

func checkBatch(t *testing.T, f *arrowmeta.File, i int, b *arrowmeta.RecordBatch, want expected) {
	t.Helper()
	if b.Length != want.Rows[i] {
		t.Errorf("batch %d has %d rows, want %d", i, b.Length, want.Rows[i])
	}
	for c := range f.Columns {
		if nulls := b.Node(&f.Columns[c]).Nulls; nulls != want.Nulls[i][c] {
			t.Errorf("batch %d, column %d: %d nulls, want %d", i, c, nulls, want.Nulls[i][c])
		}
		if want.Buffers == nil {
			continue
		}
		got := extents(f, f.Batches[i].Body(), b, &f.Columns[c], nil)
		if !slices.EqualFunc(got, want.Buffers[i][c], slices.Equal) {
			t.Errorf("batch %d, column %d: buffers %v, want %v", i, c, got, want.Buffers[i][c])
		}
	}
}

// extents lists a column's buffers as pyarrow does: nil replaces a missing
// validity bitmap, and a bitmap without nulls counts as missing.
func extents(f *arrowmeta.File, body int64, b *arrowmeta.RecordBatch, c *arrowmeta.Column, list []extent) []extent {
	if !c.Validity {
		list = append(list, nil)
	}
	for i, r := range b.Buffers(c) {
		if r.Length == 0 || i == 0 && c.Validity && b.Node(c).Nulls == 0 {
			list = append(list, nil)
			continue
		}
		list = append(list, extent{body + r.Offset, r.Length})
	}
	for i := range c.Children {
		list = extents(f, body, b, &c.Children[i], list)
	}
	return list
}
