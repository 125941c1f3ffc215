package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// fields has every element type in rows of a shape, lists of it that may be null, text, and
// lists of pairs.
var fields = func() []source.Field {
	var list []source.Field
	for _, typ := range dtype.All() {
		list = append(list,
			source.Field{Name: typ.String(), Type: typ, Shape: []int{3}},
			source.Field{Name: typ.String() + " list", Type: typ, Ragged: 1, Nullable: true})
	}
	return append(list, source.Field{Name: "text", Type: dtype.Uint8, Ragged: 1, Nullable: true, Logical: "string"},
		source.Field{Name: "pairs", Type: dtype.Int16, Shape: []int{2}, Ragged: 1})
}()

// every lists all fields.
func every() []int {
	list := make([]int, len(fields))
	for i := range list {
		list[i] = i
	}
	return list
}

// TestTypes compares the values of every element type, in rows of one shape and in lists.
func TestTypes(t *testing.T) {
	src := synthetic.New(300, fields...)
	r, err := New(src, every(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	records := make([]int64, 200)
	for i := range records {
		records[i] = int64(i * 7 % 300)
	}
	b, err := r.Read(t.Context(), records, 0)
	if err != nil || b.Rows != 200 || len(b.Columns) != len(fields) {
		t.Fatal(b, err)
	}
	for _, c := range b.Columns {
		var want []byte
		valid, nulls := make([]byte, 25), 0
		offsets := []int32{0}
		for i, record := range records {
			row := synthetic.Row(c.Field, record)
			if want = append(want, row...); row != nil {
				valid[i/8] |= 1 << (i % 8)
			} else {
				nulls++
			}
			offsets = append(offsets, int32(len(want)/c.Field.RowBytes()))
		}
		first, last := c.Levels[0], c.Levels[len(c.Levels)-1]
		if nulls == 0 {
			valid = nil
		}
		if first.Length != 200 || first.Nulls != nulls || !bytes.Equal(first.Validity, valid) {
			t.Errorf("%s: level 0 is %+v", c.Field.Name, first)
		}
		if stored, _ := binary.Append(nil, binary.LittleEndian, offsets); c.Field.Ragged > 0 && !bytes.Equal(first.Offsets, stored) {
			t.Errorf("%s: offsets %v", c.Field.Name, first.Offsets)
		}
		if got := unpacked(last.Data, c.Field.Type, len(want)); !bytes.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.Field.Name, got, want)
		}
	}
}

// unpacked returns n bytes of elements of a type as a source stores them.
func unpacked(data []byte, typ dtype.Type, n int) []byte {
	out := make([]byte, 0, n)
	for i := range n {
		switch typ {
		case dtype.Bool:
			out = append(out, data[i/8]>>(i%8)&1)
		case dtype.BFloat16:
			out = append(out, data[i/2*4+2+i%2])
		}
	}
	if len(out) < n {
		return data
	}
	return out
}

// TestLevels describes fields of every kind.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		field source.Field
		wide  bool
		want  []Level
	}{
		{source.Field{Type: dtype.BFloat16, Shape: []int{2, 3}}, true, []Level{{Kind: FixedList, Size: 2}, {Kind: FixedList, Size: 3}, {Type: dtype.Float32}}},
		{source.Field{Type: dtype.Complex128, Ragged: 1}, false, []Level{{Kind: List}, {Kind: FixedList, Size: 2}, {Type: dtype.Float64}}},
		{source.Field{Type: dtype.Uint8, Ragged: 2, Logical: "string"}, true, []Level{{Kind: List, Wide: true}, {Kind: Text, UTF8: true, Wide: true}}},
		{source.Field{Type: dtype.Uint8, Ragged: 1, Logical: "large_binary"}, false, []Level{{Kind: Text, Wide: true}}},
		{source.Field{Type: dtype.Uint8, Ragged: 1, Logical: "dictionary<values=string, indices=int8>"}, false, []Level{{Kind: Text, UTF8: true}}},
		{source.Field{Type: dtype.Int64, Ragged: 2, Shape: []int{4}}, false, []Level{{Kind: List}, {Kind: List}, {Kind: FixedList, Size: 4}, {Type: dtype.Int64}}},
	} {
		got := Levels(c.field, c.wide)
		if !slices.EqualFunc(got, c.want, func(a, b Level) bool {
			return a.Kind == b.Kind && a.Type == b.Type && a.UTF8 == b.UTF8 && a.Wide == b.Wide && a.Size == b.Size
		}) {
			t.Errorf("%+v: got %+v", c.field, got)
		}
	}
}

// TestMost ends a batch before it has too many bytes, but not before the first row.
func TestMost(t *testing.T) {
	src := synthetic.New(10000, source.Field{Name: "x", Type: dtype.Int64, Shape: []int{4}}, source.Field{Name: "list", Type: dtype.Int64, Ragged: 1})
	records := make([]int64, 9000)
	for i := range records {
		records[i] = int64(i)
	}
	for _, c := range []struct {
		fields     []int
		most, rows int
	}{
		{[]int{0}, 31, 1}, {[]int{0}, 64, 2}, {[]int{0}, 0, 9000}, {[]int{1}, 1, 1}, {[]int{1}, 0, 9000}, {[]int{0, 1}, 0, 9000}, {nil, 0, 9000},
	} {
		r, err := New(src, c.fields, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := r.Read(t.Context(), records, c.most); err != nil || b.Rows != c.rows {
			t.Errorf("%+v: %v", c, err)
		}
		if b, err := r.Read(t.Context(), nil, c.most); err != nil || b.Rows != 0 {
			t.Errorf("no records: %v", err)
		}
	}
	r, err := New(src, []int{1}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < len(records); {
		b, err := r.Read(t.Context(), records[from:], 1000)
		if err != nil {
			t.Fatal(err)
		}
		next := len(synthetic.Row(r.fields[0], int64(from+b.Rows)))
		if n := len(b.Columns[0].Levels[1].Data) + 4*b.Rows; n > 1000 || from+b.Rows < len(records) && n+next+4 <= 1000 {
			t.Fatalf("%d rows from %d have %d bytes", b.Rows, from, n)
		}
		from += b.Rows
	}
}

// TestNarrowOffsets ends a batch before offsets of 32 bits overflow. A single row that is
// too long is an error that names it.
func TestNarrowOffsets(t *testing.T) {
	src := synthetic.New(100, source.Field{Name: "list", Type: dtype.Int16, Ragged: 1})
	r, err := New(src, []int{0}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.narrow = 20
	var records []int64
	for i := range int64(100) {
		records = append(records, i)
	}
	for from := 0; from < 100; {
		b, err := r.Read(t.Context(), records[from:], 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(b.Columns[0].Levels[1].Data) / 2; n > 20 {
			t.Errorf("%d elements", n)
		}
		from += b.Rows
	}
	r.narrow = 2
	long := slices.IndexFunc(records, func(i int64) bool { return synthetic.Length(r.fields[0], i) == 9 })
	_, err = r.Read(t.Context(), records[long:long+1], 0)
	const want = `columns: field "list": record 10 adds 9 elements to 0, but offsets of 32 bits count 2 at most; take fewer records, or make the row shorter`
	if status.CodeOf(err) != status.OutOfRange || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	wide, err := New(src, []int{0}, Options{Wide: true})
	if err != nil {
		t.Fatal(err)
	}
	wide.narrow = 2
	if b, err := wide.Read(t.Context(), records, 0); err != nil || b.Rows != 100 || len(b.Columns[0].Levels[0].Offsets) != 8*101 {
		t.Error(b, err)
	}
}

// counted is memory that fails when `left` buffers were asked for.
type counted struct {
	mu         sync.Mutex
	left, live int
}

var errNoMemory = errors.New("no memory")

func (m *counted) Resize(b []byte, size int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b == nil {
		m.live++
	}
	if m.left--; m.left < 0 {
		m.live--
		return nil, errNoMemory
	}
	out := make([]byte, size)
	copy(out, b)
	return out, nil
}

func (m *counted) Free([]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live--
}

// TestMemory frees every buffer once: after a batch, after an error of a read, and after
// the memory failed at any time.
func TestMemory(t *testing.T) {
	src := synthetic.New(300, fields...)
	records := make([]int64, 150)
	some := []int{0, 1, 14, 15, len(fields) - 2, len(fields) - 1}
	for n := 0; ; n++ {
		m := &counted{left: n}
		r, err := New(src, some, Options{Memory: m})
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Read(t.Context(), records, 0)
		if err == nil {
			if _, err := r.Read(t.Context(), []int64{0, 300}, 0); status.CodeOf(err) != status.OutOfRange {
				t.Error(err)
			}
			b.Free(m)
		} else if !errors.Is(err, errNoMemory) {
			t.Fatal(err)
		}
		if m.live != 0 {
			t.Fatalf("%d buffers live after %d", m.live, n)
		}
		if r.Close(); err == nil {
			break
		}
	}
	for _, record := range []int64{-1, 300, math.MaxInt64} {
		for _, field := range every()[:2] {
			r, err := New(src, []int{field}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Read(t.Context(), []int64{record}, 0); status.CodeOf(err) != status.OutOfRange {
				t.Errorf("record %d of field %d: %v", record, field, err)
			}
			r.Close()
		}
	}
	if c := src.Counts(); c.Gatherers != 0 {
		t.Errorf("%d gatherers are open", c.Gatherers)
	}
}

// TestConcurrentReads reads from several goroutines.
func TestConcurrentReads(t *testing.T) {
	src := synthetic.New(300, fields...)
	r, err := New(src, every(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for record := range int64(50) {
				b, err := r.Read(t.Context(), []int64{record}, 0)
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range b.Columns {
					want := synthetic.Row(c.Field, record)
					if got := unpacked(c.Levels[len(c.Levels)-1].Data, c.Field.Type, len(want)); !bytes.Equal(got, want) {
						t.Errorf("%s: got %v, want %v", c.Field.Name, got, want)
					}
				}
			}
		})
	}
	group.Wait()
}

// TestNulls marks rows, elements and single values as null, in any order.
func TestNulls(t *testing.T) {
	var failed error
	b := newBuilder(source.Field{Type: dtype.Complex64, Shape: []int{2}, Nullable: true}, false, Heap{}, &failed)
	row := make([]byte, 16)
	for _, s := range []source.Span{{Row: row}, {Row: row, Nulls: []bool{true, false}}, {}, {Row: row}} {
		b.add(&s)
	}
	c := b.column()
	for d, want := range []Level{{Length: 4, Nulls: 1, Validity: []byte{0b1011}}, {Length: 8, Nulls: 1, Validity: []byte{0b11111011}}, {Length: 16}} {
		if got := c.Levels[d]; got.Length != want.Length || got.Nulls != want.Nulls || !bytes.Equal(got.Validity, want.Validity) {
			t.Errorf("level %d is %+v", d, got)
		}
	}
	if failed != nil || len(c.Levels[2].Data) != 64 {
		t.Error(failed, c.Levels[2])
	}
}
