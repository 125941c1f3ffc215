package cstream

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// strided is an array and its memory.
type strided struct {
	Array
	memory []byte
}

// row returns a row in C order, element by element.
func (s *strided) row(record int64) []byte {
	var out []byte
	var visit func(d, at int)
	visit = func(d, at int) {
		if d == len(s.Shape) {
			out = append(out, s.memory[at:at+s.Type.Size()]...)
			return
		}
		for i := range s.Shape[d] {
			visit(d+1, at+i*s.Strides[d])
		}
	}
	first := int(uintptr(s.Data)-uintptr(unsafe.Pointer(&s.memory[0]))) + int(record)*s.Strides[0]
	visit(1, first)
	return out
}

// makeStrided makes an array with random strides: dimensions in any order, gaps,
// negative strides and strides of 0.
func makeStrided(rng *rand.Rand, typ dtype.Type, records int) *strided {
	s := &strided{Array: Array{Name: typ.String(), Type: typ, Shape: []int{records}}}
	for range rng.IntN(4) {
		s.Shape = append(s.Shape, rng.IntN(4)+1)
	}
	s.Strides = make([]int, len(s.Shape))
	step, first := typ.Size(), 0
	for _, d := range rng.Perm(len(s.Shape)) {
		switch rng.IntN(6) {
		case 0:
			step += rng.IntN(3) * typ.Size()
			fallthrough
		default:
			s.Strides[d] = step
			step *= s.Shape[d]
		case 1:
			s.Strides[d] = -step
			first += step * (s.Shape[d] - 1)
			step *= s.Shape[d]
		case 2:
			if d > 0 {
				s.Strides[d] = 0
				break
			}
			s.Strides[d] = step
			step *= s.Shape[d]
		}
	}
	s.memory = make([]byte, step+64)
	for i := range s.memory {
		s.memory[i] = byte(rng.IntN(120))
	}
	if typ == dtype.Bool {
		for i := range s.memory {
			s.memory[i] &= 1
		}
	}
	if typ.Narrow() != typ && typ.IsInteger() { // values that the narrow type holds
		for i := range s.memory {
			if i%8 >= 4 {
				s.memory[i] = 0
			}
		}
	}
	s.Data = unsafe.Pointer(&s.memory[first])
	return s
}

func TestArrays(t *testing.T) {
	rng := random.New(t)
	for range 20 {
		var list []Array
		var all []*strided
		for _, typ := range dtype.All() {
			s := makeStrided(rng, typ, 37)
			list, all = append(list, s.Array), append(all, s)
		}
		suite := sourcetest.Suite{
			Open: func(t *testing.T) source.Source {
				s, err := FromArrays(list, nil)
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Row: func(field int, record int64) []byte { return all[field].row(record) },
		}
		if !t.Run("", suite.Run) {
			for _, a := range list {
				t.Logf("%s: shape %v, strides %v", a.Name, a.Shape, a.Strides)
			}
			return
		}
	}
}

func TestStreamSuite(t *testing.T) {
	list := append(slices.Clone(columns), hardColumns...)
	sourcetest.Run(t, func(t *testing.T) source.Source {
		s, err := Read(unsafe.Pointer(export(t, list, [][2]int{{3, 20}, {5, 5}, {0, 31}})), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

var numbers = [12]int64{0, 1, 2, 3, 1 << 40, 5, 6, 7, 8, 9, 10, 11}

func TestRefusedArrays(t *testing.T) {
	data := unsafe.Pointer(&numbers)
	good := Array{Name: "x", Type: dtype.Int64, Data: data, Shape: []int{4, 3}}
	with := func(change func(*Array)) Array {
		a := good
		change(&a)
		return a
	}
	for _, c := range []struct {
		list []Array
		want string
	}{
		{nil, `arrays: a dataset needs at least one array`},
		{[]Array{with(func(a *Array) { a.Name = "" })}, `arrays: "" is not a name for an array: it must be UTF-8 and not empty`},
		{[]Array{with(func(a *Array) { a.Name = "\xff" })}, `arrays: "\xff" is not a name for an array: it must be UTF-8 and not empty`},
		{[]Array{with(func(a *Array) { a.Type = dtype.Invalid })}, `arrays: array "x" has an element type that is not supported`},
		{[]Array{with(func(a *Array) { a.Shape = nil })}, `arrays: array "x" has no dimensions: the first one counts the records`},
		{[]Array{with(func(a *Array) { a.Shape = make([]int, 33) })}, `arrays: array "x" has 33 dimensions, more than 32`},
		{[]Array{with(func(a *Array) { a.Strides = []int{8} })}, `arrays: array "x" has 2 dimensions, but 1 strides`},
		{[]Array{with(func(a *Array) { a.Shape = []int{4, -3} })}, `arrays: array "x" has the shape [4 -3]`},
		{[]Array{with(func(a *Array) { a.Shape = []int{1 << 40, 1 << 40} })}, `arrays: array "x" has the shape [1099511627776 1099511627776], which is more than memory can hold`},
		{[]Array{with(func(a *Array) { a.Shape = []int{1<<40 + 1} })}, `arrays: array "x" has 1099511627777 records, more than 2^40`},
		{[]Array{with(func(a *Array) { a.Data = nil })}, `arrays: array "x" of shape [4 3] has no memory: data is NULL`},
		{[]Array{good, good}, `arrays: two arrays are named "x"`},
		{[]Array{good, with(func(a *Array) { a.Name, a.Shape = "y", []int{12} })},
			`arrays: array "y" has 12 records, but "x" has 4; all arrays of a dataset have the same first dimension`},
	} {
		s, err := FromArrays(c.list, func() { t.Error("released") })
		if s != nil || err == nil || err.Error() != c.want || status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("got  %v\nwant %v", err, c.want)
		}
	}
}

// TestBorrowed closes a source while gathers run. The memory is given back once,
// after the last gather, before Close returns.
func TestBorrowed(t *testing.T) {
	releases, inside := 0, make(chan struct{})
	s, err := FromArrays([]Array{{Name: "x", Type: dtype.Int64, Data: unsafe.Pointer(&numbers), Shape: []int{12}}}, func() { releases++ })
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Gatherer([]source.Part{{To: dtype.Int32, Boxes: [][][2]int{{}}}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		for first := true; ; first = false {
			if err := g.Gather(t.Context(), source.Draw{}, []int64{1}, []source.Job{{Rows: [2]int{0, 1}, Dst: make([]byte, 4)}}); err != nil {
				ended <- err
				return
			}
			if first {
				close(inside)
			}
		}
	}()
	<-inside
	if err := s.Close(); err != nil || releases != 1 {
		t.Errorf("closed with %v, released %d times", err, releases)
	}
	if s.Close(); releases != 1 {
		t.Errorf("released %d times", releases)
	}
	if err := <-ended; status.CodeOf(err) != status.InvalidState {
		t.Errorf("a gather after Close: %v", err)
	}
}

func TestOverflow(t *testing.T) {
	s, err := FromArrays([]Array{{Name: "x", Type: dtype.Int64, Data: unsafe.Pointer(&numbers), Shape: []int{12}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g, err := s.Gatherer([]source.Part{{To: dtype.Int32, Boxes: [][][2]int{{}}}})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 8)
	job := []source.Job{{Rows: [2]int{0, 2}, Dst: dst}}
	if err := g.Gather(t.Context(), source.Draw{}, []int64{11, -1}, job); err != nil || !bytes.Equal(dst, le(int32(11), int32(0))) {
		t.Errorf("got %v, %v", dst, err)
	}
	err = g.Gather(t.Context(), source.Draw{}, []int64{3, 4}, job)
	want := `source: field "x": record 4 holds 1099511627776, which int32 cannot; deliver the field as int64 (in JAX: jax.config.update("jax_enable_x64", True)), or store smaller values`
	if err == nil || err.Error() != want || status.CodeOf(err) != status.OutOfRange {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}
