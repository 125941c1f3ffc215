package split_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/split"
	"github.com/meshfeed/meshfeed/tests/random"
)

// plan makes the layout of int32 arrays "x", "y", … over four processes of two devices
// each, which are in any order.
func plan(t *testing.T, r *rand.Rand, rows, columns int, specs ...string) *layout.Layout {
	t.Helper()
	devices := make([]string, 8)
	for i, id := range r.Perm(8) {
		devices[i] = fmt.Sprintf("[%d, %d]", id/2, id)
	}
	arrays := make([]string, len(specs))
	for i, spec := range specs {
		arrays[i] = fmt.Sprintf(`"%c": {"shape": ["B", %d], "dtype": "int32", "spec": %s}`, 'x'+i, columns, spec)
	}
	text := fmt.Sprintf(`{"meshfeed": 1, "mesh": {"axes": [["a", 4], ["b", 2]], "devices": [%s]},
		"arrays": {%s}, "batch": {"size": %d}}`, strings.Join(devices, ", "), strings.Join(arrays, ", "), rows)
	d, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l, err := layout.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// memory is an int32 or int64 array with any strides. Element (i, j) of its part of the
// global array is 1000*i + j, with the global i and j.
type memory struct {
	bytes []byte
	first int // the offset of element (0, 0)
	array split.Array
}

func newMemory(r *rand.Rand, name string, typ dtype.Type, rows, columns []int) *memory {
	size := typ.Size()
	m := &memory{array: split.Array{Name: name, Type: typ, Shape: []int{len(rows), len(columns)}}}
	gap := 1 + r.IntN(2)
	strides := []int{gap * len(columns) * size, gap * size}
	if r.IntN(2) == 0 {
		strides = []int{gap * size, gap * len(rows) * size}
	}
	m.bytes = make([]byte, max(1, len(rows)*len(columns)*gap*size))
	for d, n := range m.array.Shape {
		if n > 0 && r.IntN(2) == 0 {
			m.first += (n - 1) * strides[d]
			strides[d] = -strides[d]
		}
	}
	m.array.Strides = strides
	for i, row := range rows {
		for j, column := range columns {
			at := m.bytes[m.first+i*strides[0]+j*strides[1]:]
			if value := 1000*row + column; size == 8 {
				binary.NativeEndian.PutUint64(at, uint64(value))
			} else {
				binary.NativeEndian.PutUint32(at, uint32(value))
			}
		}
	}
	return m
}

func (m *memory) address() uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.bytes))) + uintptr(m.first)
}

// held lists the indices of one dimension that the blocks of an array hold.
func held(blocks []layout.Block, array, d int) []int {
	var out []int
	for _, b := range blocks {
		if b.Array != array {
			continue
		}
		for i := b.Index[d][0]; i < b.Index[d][1]; i++ {
			if !slices.Contains(out, i) {
				out = append(out, i)
			}
		}
	}
	slices.Sort(out)
	return out
}

func count(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func expect(index sharding.Index) []byte {
	var out []byte
	for i := index[0][0]; i < index[0][1]; i++ {
		for j := index[1][0]; j < index[1][1]; j++ {
			out = binary.NativeEndian.AppendUint32(out, uint32(1000*i+j))
		}
	}
	return out
}

// TestSplit cuts arrays of any strides, whole or as the part of a process.
func TestSplit(t *testing.T) {
	specs := []string{`["a"]`, `["b"]`, `[["b", "a"]]`, `["b", "a"]`, `[null, "a"]`, `[null, ["a", "b"]]`, `[]`}
	random.Rounds(t, 200, 5000, func(t *testing.T, r *rand.Rand) {
		l := plan(t, r, 8*(1+r.IntN(3)), 8*(1+r.IntN(3)), specs[r.IntN(len(specs))], specs[r.IntN(len(specs))])
		blocks := l.Process(r.IntN(4)).Blocks
		var arrays []*memory
		for i, a := range l.Arrays() {
			axes := [][]int{count(a.Shape[0]), count(a.Shape[1])}
			for d := range axes {
				if r.IntN(2) == 0 {
					axes[d] = held(blocks, i, d)
				}
			}
			arrays = append(arrays, newMemory(r, a.Name, []dtype.Type{dtype.Int32, dtype.Int64}[r.IntN(2)], axes[0], axes[1]))
		}
		check(t, l, blocks, arrays)
	})
}

func check(t *testing.T, l *layout.Layout, blocks []layout.Block, arrays []*memory) {
	t.Helper()
	given := make([]split.Array, len(arrays))
	data := make([]uintptr, len(arrays))
	for i, m := range arrays {
		given[i], data[i] = m.array, m.address()
	}
	s, err := split.New(l.Arrays(), blocks, given)
	if err != nil {
		t.Fatal(err)
	}
	got := make([][]byte, len(blocks))
	want := make([][]byte, len(blocks))
	for i, b := range blocks {
		want[i] = expect(b.Index)
		got[i] = make([]byte, len(want[i]))
	}
	if err := s.Split(data, func(i int) []byte { return got[i] }); err != nil {
		t.Fatal(err)
	}
	for _, m := range arrays {
		clear(m.bytes[len(m.bytes)/2:]) // the memory need not stay valid
		clear(m.bytes)
	}
	for i, b := range blocks {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("block %v of %v is wrong", b.Index, given[b.Array])
		}
	}
}

// TestLarge cuts blocks that several goroutines copy.
func TestLarge(t *testing.T) {
	r := random.New(t)
	for _, spec := range []string{`[]`, `["b"]`, `[null, "b"]`} {
		l := plan(t, r, 4096, 1000, spec)
		for range 3 {
			m := newMemory(r, "x", dtype.Int64, count(4096), count(1000))
			check(t, l, l.Process(1).Blocks, []*memory{m})
		}
	}
}

// TestRange: a number that int32 cannot hold is an error, which names the first one. Two
// goroutines find a number each, at the end of a piece and at the start of the next one.
func TestRange(t *testing.T) {
	r := random.New(t)
	l := plan(t, r, 4096, 1000, `[]`)
	m := newMemory(r, "x", dtype.Int64, count(4096), count(1000))
	at := func(i, j int) []byte { return m.bytes[m.first+i*m.array.Strides[0]+j*m.array.Strides[1]:] }
	binary.NativeEndian.PutUint64(at(1364, 0), 1<<40)
	binary.NativeEndian.PutUint64(at(1365, 0), 1<<50)
	s, err := split.New(l.Arrays(), l.Process(0).Blocks, []split.Array{m.array})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 4096*1000*4)
	err = s.Split([]uintptr{m.address()}, func(int) []byte { return out })
	runtime.KeepAlive(m) // Split knows only its address
	const want = `split: array "x" holds 1099511627776, which int32 cannot; ` +
		`deliver the array as int64 (in JAX: jax.config.update("jax_enable_x64", True)), or give smaller values`
	if status.CodeOf(err) != status.OutOfRange || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestErrors: arrays that do not fit the layout are errors.
func TestErrors(t *testing.T) {
	l := plan(t, random.New(t), 16, 8, `["a"]`)
	blocks := l.Process(0).Blocks[:1]
	right := split.Array{Name: "x", Type: dtype.Int32, Shape: []int{16, 8}}
	for _, test := range []struct {
		change func(*split.Array)
		want   string
	}{
		{func(a *split.Array) { a.Name = "y" }, `array "y" of type int32 was given, but the layout has array "x" of type int32`},
		{func(a *split.Array) { a.Type = dtype.Float64 }, `array "x" of type float64 was given, but the layout has array "x" of type int32`},
		{func(a *split.Array) { a.Shape = []int{16} }, `array "x" has the shape [16] and the strides [], but the global shape is [16 8]`},
		{func(a *split.Array) { a.Strides = []int{4} }, `array "x" has the shape [16 8] and the strides [4], but the global shape is [16 8]`},
		{func(a *split.Array) { a.Shape = []int{5, 8} }, `dimension 0 of array "x" has the size 5: expected 16, or 4 for the part of this process`},
		{func(a *split.Array) { a.Shape = []int{4, 7} }, `dimension 1 of array "x" has the size 7: expected 8, or 8 for the part of this process`},
	} {
		array := right
		test.change(&array)
		if _, err := split.New(l.Arrays(), blocks, []split.Array{array}); err == nil || err.Error() != "split: "+test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	if _, err := split.New(l.Arrays(), blocks, nil); err == nil || !strings.Contains(err.Error(), "has 1 arrays, but 0 were given") {
		t.Errorf("got %v", err)
	}
	s, err := split.New(l.Arrays(), blocks, []split.Array{right})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 2} {
		want := fmt.Sprintf("split: the splitter cuts 1 arrays, but %d were given", n)
		if err := s.Split(make([]uintptr, n), nil); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
