package view_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// must returns a view that has to be possible.
func must(v source.Source, err error) source.Source {
	if err != nil {
		panic(err)
	}
	return v
}

func columns() *synthetic.Source {
	return synthetic.New(100,
		source.Field{Name: "a", Type: dtype.Int32, Shape: []int{3}},
		source.Field{Name: "b", Type: dtype.Int32, Shape: []int{3}},
		source.Field{Name: "c", Type: dtype.Int64, Logical: "timestamp[s]"},
		source.Field{Name: "d", Type: dtype.Int64})
}

// every returns a view of each kind.
func every(src source.Source) map[string]source.Source {
	return map[string]source.Source{
		"slice":         must(view.Slice(src, 10, 90)),
		"take":          must(view.Take(src, []int64{3, 3, 99})),
		"filter":        must(view.FilterFunc(src, func(k int64) bool { return k%2 == 1 })),
		"selection":     must(view.Select(src, "a")),
		"renaming":      must(view.Rename(src, map[string]string{"a": "x"})),
		"concatenation": must(view.Concat(src, src)),
		"window":        must(view.Window(context.Background(), src, view.Windows{Length: 2, Stride: 3})),
		"stack":         must(view.Stack(src, view.Stacked{Name: "x", Columns: []string{"a", "b"}})),
		"reshape":       must(view.Reshape(src, "a", view.Shape{Dims: []int{3, 1}})),
	}
}

// TestErrors compares the messages for arguments that make no view.
func TestErrors(t *testing.T) {
	src, other := columns(), newNullable(9)
	window := func(w view.Windows) func() (source.Source, error) {
		return func() (source.Source, error) { return view.Window(t.Context(), src, w) }
	}
	concat := func(list ...source.Source) func() (source.Source, error) {
		return func() (source.Source, error) { return view.Concat(list...) }
	}
	stack := func(columns ...string) func() (source.Source, error) {
		return func() (source.Source, error) { return view.Stack(src, view.Stacked{Name: "d", Columns: columns}) }
	}
	ab := must(view.Select(src, "a", "b"))
	ragged := synthetic.New(9, source.Field{Name: "tokens", Type: dtype.Int32, Ragged: 1})
	for _, c := range []struct {
		make func() (source.Source, error)
		code status.Code
		want string
	}{
		{func() (source.Source, error) { return view.Take(src, []int64{0, 99, 100}) }, status.OutOfRange,
			"view: index 100 at position 2 is outside the 100 records of the dataset; use indices from 0 to 99"},
		{func() (source.Source, error) { return view.Take(src, []int64{-1}) }, status.OutOfRange,
			"view: index -1 at position 0 is outside the 100 records of the dataset; use indices from 0 to 99"},
		{func() (source.Source, error) { return view.Filter(src, make([]bool, 12)) }, status.InvalidArgument,
			"view: the filter is for 12 records, but the dataset has 100; give one value for each record of this dataset"},
		{func() (source.Source, error) { return view.Select(src, "a", "e") }, status.NotFound,
			`source: the dataset has no field "e"; the fields are "a", "b", "c", "d"`},
		{func() (source.Source, error) { return view.Select(other, "text") }, status.Unsupported,
			`source: column "text" of type utf8 cannot be an array: its rows have different lengths`},
		{func() (source.Source, error) { return view.Select(src, "a", "a") }, status.InvalidArgument,
			`view: two fields of the selection are called "a"; give each field one name`},
		{func() (source.Source, error) { return view.Rename(src, map[string]string{"a": "b"}) }, status.InvalidArgument,
			`view: two fields of the renaming are called "b"; give each field one name`},
		{func() (source.Source, error) { return view.Rename(src, map[string]string{"e": "b"}) }, status.NotFound,
			`source: the dataset has no field "e"; the fields are "a", "b", "c", "d"`},
		{func() (source.Source, error) { return view.Rename(src, map[string]string{"a": "\xff"}) }, status.InvalidArgument,
			`view: "\xff" is not a name for a field: it must be UTF-8 and not empty`},
		{func() (source.Source, error) { return view.Stack(src, view.Stacked{Columns: []string{"a"}}) }, status.InvalidArgument,
			`view: "" is not a name for a field: it must be UTF-8 and not empty`},
		{func() (source.Source, error) { return view.Rename(other, map[string]string{"n": "text"}) }, status.InvalidArgument,
			`view: a field of the renaming and a column of type utf8, which is not a field, are called "text"; give another name, or select the fields first`},
		{func() (source.Source, error) {
			return view.Stack(other, view.Stacked{Name: "text", Columns: []string{"n"}})
		}, status.InvalidArgument,
			`view: a field of the stack and a column of type utf8, which is not a field, are called "text"; give another name, or select the fields first`},
		{concat(), status.InvalidArgument, "view: there are no datasets to concatenate; give at least one"},
		{concat(src, src, ab), status.InvalidArgument,
			`view: datasets 0 and 2 differ: only dataset 0 has field "c"; make their fields equal, for example by select and rename`},
		{concat(ab, src), status.InvalidArgument,
			`view: datasets 0 and 1 differ: only dataset 1 has field "c"; make their fields equal, for example by select and rename`},
		{concat(must(view.Select(src, "d")), must(view.Rename(must(view.Select(src, "c")), map[string]string{"c": "d"}))), status.InvalidArgument,
			`view: datasets 0 and 1 differ: field "d" is int64 and int64 (timestamp[s]); make their fields equal, for example by select and rename`},
		{window(view.Windows{}), status.InvalidArgument,
			"view: windows of 0 records that begin every 1 records cannot be made; give a length and a stride of at least 1"},
		{window(view.Windows{Length: 1, Stride: -1}), status.InvalidArgument,
			"view: windows of 1 records that begin every -1 records cannot be made; give a length and a stride of at least 1"},
		{window(view.Windows{Length: 101, Stride: 1}), status.InvalidArgument,
			"view: a window takes 101 records, but the dataset has 100; make the window shorter"},
		{window(view.Windows{Length: 2, Stride: 1, Within: "d"}), status.InvalidArgument,
			`view: a window takes 2 records, but the longest run of one value of "d" has 1; make the window shorter`},
		{window(view.Windows{Length: 2, Stride: 1, Within: "e"}), status.NotFound,
			`source: the dataset has no field "e"; the fields are "a", "b", "c", "d"`},
		{func() (source.Source, error) {
			return view.Window(t.Context(), other, view.Windows{Length: 2, Stride: 1, Within: "n"})
		}, status.InvalidArgument,
			`view: field "n": record 0 holds a null, so records cannot be grouped by its values; use a field without nulls, or leave out these records (Go: view.FilterFunc; Python: ds.filter)`},
		{stack(), status.InvalidArgument, `view: the stack "d" has no columns; name at least one`},
		{stack("a", "e"), status.NotFound, `source: the dataset has no field "e"; the fields are "a", "b", "c", "d"`},
		{stack("a", "b", "d"), status.InvalidArgument,
			`view: the stack "d" cannot join column "a", which is int32[3], and column "d", which is int64; stack columns of one type and shape`},
		{func() (source.Source, error) {
			return view.Stack(ragged, view.Stacked{Name: "x", Columns: []string{"tokens"}})
		}, status.Unsupported, `view: the stack "x" cannot join column "tokens": it is ragged; pad it first`},
		{stack("a", "b"), status.InvalidArgument, `view: two fields of the stack are called "d"; give each field one name`},
	} {
		v, err := c.make()
		if v != nil || status.CodeOf(err) != c.code || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestRefusedParts: errors about parts have the names of the view.
func TestRefusedParts(t *testing.T) {
	v := must(view.Rename(must(view.Select(columns(), "d", "a")), map[string]string{"a": "x"}))
	_, err := v.Gatherer([]source.Part{{Field: 1, Boxes: [][][2]int{{{0, 4}}}}})
	if want := `source: a part of field "x" takes [0, 4) of dimension 0, whose size is 3`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestFingerprints: equal rows in equal fields have one fingerprint if views fold, and
// each change of a parameter changes it.
func TestFingerprints(t *testing.T) {
	src := columns()
	slice := func(s source.Source, a, b int64) source.Source { return must(view.Slice(s, a, b)) }
	take := func(s source.Source, indices ...int64) source.Source { return must(view.Take(s, indices)) }
	fields := func(s source.Source, names ...string) source.Source { return must(view.Select(s, names...)) }
	rename := func(s source.Source, from, to string) source.Source {
		return must(view.Rename(s, map[string]string{from: to}))
	}
	concat := func(list ...source.Source) source.Source { return must(view.Concat(list...)) }
	odd := func(k int64) bool { return k%2 == 1 }
	window := func(length, stride int64) source.Source {
		return must(view.Window(t.Context(), src, view.Windows{Length: length, Stride: stride}))
	}
	stack := func(name string, columns ...string) source.Source {
		return must(view.Stack(src, view.Stacked{Name: name, Columns: columns}))
	}
	seen := map[source.Fingerprint]int{}
	for i, equal := range [][]source.Source{
		{src, fields(src, "a", "b", "c", "d"), rename(rename(src, "a", "x"), "x", "a"), concat(src), concat(slice(src, 5, 5), src)},
		{slice(src, 10, 20), slice(slice(src, 5, 50), 5, 15)},
		{slice(src, 10, 21)},
		{take(src, 14, 13), take(slice(src, 10, 20), 4, 3), take(take(src, 1, 13, 14), 2, 1), slice(take(src, 0, 14, 13), 1, 3)},
		{take(src, 13, 14)},
		{must(view.FilterFunc(src, odd))},
		{must(view.FilterFunc(src, func(k int64) bool { return k%2 == 0 }))},
		{take(must(view.FilterFunc(src, odd)), 0), take(src, 1)},
		{fields(slice(src, 1, 2), "b", "a"), slice(fields(src, "b", "a"), 1, 2)},
		{fields(src, "a", "b"), fields(fields(src, "d", "a", "b"), "a", "b")},
		{fields(src, "b", "a")},
		{fields(rename(src, "a", "x"), "x"), rename(fields(src, "a"), "a", "x")},
		{fields(rename(src, "b", "x"), "x")},
		{concat(src, src, src), concat(src, concat(src, src)), concat(concat(src, src), src)},
		{concat(src, src)},
		{concat(slice(src, 0, 9), src)},
		{window(2, 3)}, {window(3, 2)}, {window(2, 2)},
		{must(view.Window(t.Context(), src, view.Windows{Length: 1, Within: "d"})), must(view.Window(t.Context(), src, view.Windows{Length: 1, Stride: 1, Within: "d"}))},
		{stack("x", "a", "b")}, {stack("y", "a", "b")}, {stack("x", "b", "a")},
	} {
		first := fingerprint(t, equal[0])
		if j, dup := seen[first]; dup {
			t.Errorf("%d and %d have the same fingerprint", i, j)
		}
		seen[first] = i
		for k, s := range equal {
			if fingerprint(t, s) != first {
				t.Errorf("%d: view %d has another fingerprint", i, k)
			}
		}
	}
}

// TestFolds: a slice of a filter of a take enters one gatherer below.
func TestFolds(t *testing.T) {
	src := numbers()
	v := source.Source(src)
	for range 5 {
		n := v.Len()
		v = must(view.FilterFunc(must(view.Slice(v, 1, n)), func(k int64) bool { return k > 0 }))
	}
	got, err := gather(t.Context(), t, v, 0, 1)
	want, _ := gather(t.Context(), t, src, 10, 11)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
	if c := src.Counts(); c.Gathers != 2 || c.Gatherers != 0 {
		t.Errorf("%d gathers", c.Gathers)
	}
}

// firstField returns the part that consists of the first field's rows.
func firstField(v source.Source) []source.Part {
	var box [][2]int
	for _, n := range v.Schema().Fields[0].Shape {
		box = append(box, [2]int{0, n})
	}
	return []source.Part{{Boxes: [][][2]int{box}}}
}

// TestClosed: every kind of view says what is closed, and what is not there.
func TestClosed(t *testing.T) {
	for kind, v := range every(columns()) {
		g, err := v.Gatherer(firstField(v))
		if err != nil {
			t.Fatal(kind, err)
		}
		err = g.Gather(t.Context(), source.Draw{}, []int64{-1, 999}, nil)
		if want := fmt.Sprintf("view: record 999 is outside the %d records of the %s", v.Len(), kind); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		err = g.Gather(t.Context(), source.Draw{}, nil, nil)
		if want := "view: the " + kind + " is closed"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestCloseBelow: after Close of the dataset below, its views fail.
func TestCloseBelow(t *testing.T) {
	src := columns()
	views := every(src)
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	for kind, v := range views {
		if _, err := v.Gatherer(nil); status.CodeOf(err) != status.InvalidState {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestCloseEndsGathers: Close of a view of any kind cancels its gather, which waits in
// the dataset below.
func TestCloseEndsGathers(t *testing.T) {
	for kind := range every(columns()) {
		synctest.Test(t, func(t *testing.T) {
			src := columns()
			v := every(src)[kind]
			entered := make(chan struct{})
			src.Hook = func(ctx context.Context, _ []int64) error { close(entered); <-ctx.Done(); return ctx.Err() }
			g, err := v.Gatherer(firstField(v))
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			dst := make([]byte, v.Schema().Fields[0].RowBytes())
			go func() {
				ended <- g.Gather(context.Background(), source.Draw{}, []int64{0}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}})
			}()
			<-entered
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; status.CodeOf(err) != status.Cancelled {
				t.Errorf("%s: the gather ended with %v", kind, err)
			}
		})
	}
}

// TestAhead: views announce the records below, and no others.
func TestAhead(t *testing.T) {
	for kind, want := range map[string][]int64{
		"slice": {10, 12}, "take": {3, 99}, "filter": {1, 5}, "selection": {0, 2}, "renaming": {0, 2},
		"concatenation": {0, 2}, "window": {0, 1, 6, 7}, "stack": {0, 2},
		"reshape": {0, 0, 2, 2}, // by the gatherer of stored fields and by the reader
	} {
		src := columns()
		v := every(src)[kind]
		g, err := v.Gatherer(firstField(v))
		if err != nil {
			t.Fatal(kind, err)
		}
		src.Counts()
		g.Ahead(draw, []int64{0, -1, 2, 1 << 50, -7})
		var got []int64
		counts := src.Counts()
		for r, times := range counts.Ahead {
			got = append(got, slices.Repeat([]int64{r}, times)...)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s announced %v, want %v", kind, got, want)
		}
		if len(counts.Draws) != 1 || counts.Draws[draw] == 0 {
			t.Errorf("%s announced records of the draws %v, want %v", kind, counts.Draws, draw)
		}
	}
}

// TestCheck: views check the records below that they have. If they leave out others
// between, a failure is left to the gather, because it may be about these.
func TestCheck(t *testing.T) {
	src := newNullable(60)
	src.uneven = 31
	odd := must(view.FilterFunc(src, func(k int64) bool { return k%2 == 1 }))
	run := must(view.FilterFunc(src, func(k int64) bool { return k >= 20 && k < 40 }))
	slice := must(view.Slice(src, 20, 40))
	window := func(w view.Windows) source.Source { return must(view.Window(t.Context(), src, w)) }
	for i, c := range []struct {
		v       source.Source
		checked [][2]int64
		fails   bool
	}{
		{slice, [][2]int64{{20, 40}}, true},
		{must(view.Slice(src, 0, 31)), [][2]int64{{0, 31}}, false},
		{must(view.Slice(src, 7, 7)), nil, false},
		{run, [][2]int64{{20, 40}}, true},
		{odd, [][2]int64{{1, 60}}, false},
		{must(view.Take(src, []int64{33, 30, 35})), [][2]int64{{30, 36}}, false},
		{must(view.Take(src, []int64{30, 31})), [][2]int64{{30, 32}}, true},
		{must(view.Take(src, []int64{2, 58})), nil, false}, // too few of the 57 records
		{must(view.Concat(slice, src)), [][2]int64{{20, 40}}, true},
		{must(view.Concat(must(view.Slice(src, 40, 50)), src)), [][2]int64{{40, 50}, {0, 60}}, true},
		{window(view.Windows{Length: 4, Stride: 4}), [][2]int64{{0, 60}}, true},
		{window(view.Windows{Length: 4, Stride: 5}), [][2]int64{{0, 59}}, false},
		{window(view.Windows{Length: 4, Stride: 1, Within: "group"}), [][2]int64{{0, 60}}, false},
		{must(view.Stack(src, view.Stacked{Name: "x", Columns: []string{"m"}})), [][2]int64{{0, 60}}, true},
		{must(view.Select(src, "m")), [][2]int64{{0, 60}}, true},
	} {
		src.checked = nil
		field, _, ok := c.v.Schema().Field("m")
		if !ok {
			field, _, _ = c.v.Schema().Field("x")
		}
		err := source.Check(t.Context(), c.v, []int{field})
		if !slices.Equal(src.checked, c.checked) || (err != nil) != c.fails {
			t.Errorf("view %d checked %v: %v, want %v", i, src.checked, err, c.checked)
		}
	}
	if hashed, of := source.CoverageOf(must(view.Concat(slice, src))); hashed != 6 || of != 8 {
		t.Errorf("coverage %d of %d", hashed, of)
	}
}

// TestConcatNulls: a field of the joined dataset may hold nulls if it may in one part.
func TestConcatNulls(t *testing.T) {
	src := newNullable(4)
	n, m := must(view.Select(src, "n")), must(view.Rename(must(view.Select(src, "m")), map[string]string{"m": "n"}))
	v := must(view.Concat(m, n))
	if !v.Schema().Fields[0].Nullable || v.Len() != 8 {
		t.Errorf("%d records of %v", v.Len(), v.Schema())
	}
	g, err := v.Gatherer([]source.Part{{Boxes: [][][2]int{{{1, 2}}}, Fill: -1}})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 16)
	if err := g.Gather(t.Context(), source.Draw{}, []int64{7, 3, 4, -1}, []source.Job{{Rows: [2]int{0, 4}, Dst: dst}}); err != nil {
		t.Fatal(err)
	}
	if want := []byte{255, 255, 255, 255, 35, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0}; !bytes.Equal(dst, want) {
		t.Errorf("got %v, want %v", dst, want)
	}
}

// TestFilterFinds compares a filter with a list, for bits that are dense, sparse, and
// dense in places, at lengths around the lengths of words and blocks.
func TestFilterFinds(t *testing.T) {
	r := random.New(t)
	for _, n := range []int64{1, 63, 64, 65, 1023, 1024, 1025, 1 << 17, 1<<17 + 77} {
		for _, keep := range []func(int64) bool{
			func(int64) bool { return true },
			func(int64) bool { return r.IntN(2) == 0 },
			func(int64) bool { return r.IntN(3000) == 0 },
			func(k int64) bool { return k/5000%7 == 2 && r.IntN(9) > 0 },
			func(k int64) bool { return k == n-1 },
		} {
			list := make([]bool, n)
			var indices []int64
			for k := range n {
				if list[k] = keep(k); list[k] {
					indices = append(indices, k)
				}
			}
			src := synthetic.New(n, source.Field{Name: "x", Type: dtype.Int64})
			v := must(view.Filter(src, list))
			if v.Len() != int64(len(indices)) {
				t.Fatalf("%d of %d records, want %d", v.Len(), n, len(indices))
			}
			g, err := v.Gatherer([]source.Part{{Boxes: [][][2]int{{}}}})
			if err != nil {
				t.Fatal(err)
			}
			var below []int64
			src.Hook = func(_ context.Context, records []int64) error { below = slices.Clone(records); return nil }
			records := make([]int64, len(indices))
			for k := range records {
				records[k] = int64(k)
			}
			if err := g.Gather(t.Context(), source.Draw{}, records, nil); err != nil || !slices.Equal(below, indices) {
				t.Fatalf("%d records: %v", n, err)
			}
		}
	}
}

// TestMemory: a filter takes 1.1 bits a record, and a take 8 bytes.
func TestMemory(t *testing.T) {
	used := func() int64 {
		runtime.GC()
		runtime.GC() // frees the pools of earlier tests
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const n = 1 << 24
	src := synthetic.New(n, source.Field{Name: "x", Type: dtype.Int8})
	before := used()
	v := must(view.FilterFunc(src, func(int64) bool { return true }))
	if grown := used() - before; grown > n*11/80+1<<16 {
		t.Errorf("a filter of %d records takes %d bytes", n, grown)
	}
	indices := make([]int64, n/8)
	before = used()
	w := must(view.Take(src, indices))
	if grown := used() - before; grown > n+1<<16 {
		t.Errorf("a take of %d records takes %d bytes", n/8, grown)
	}
	runtime.KeepAlive([]any{indices, v, w})
}

// TestTakeCopies: the caller may change its list.
func TestTakeCopies(t *testing.T) {
	indices := []int64{5, 6}
	src := numbers()
	v := must(view.Take(src, indices))
	want, _ := gather(t.Context(), t, src, 5)
	indices[0] = 9
	if got, err := gather(t.Context(), t, v, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
}

// TestFingerprintEnds: a long hash ends with its context.
func TestFingerprintEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, kind := range []string{"take", "filter", "window"} {
		if _, err := every(columns())[kind].Fingerprint(ctx); status.CodeOf(err) != status.Cancelled {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// stored is a dataset of 60 records in units of 10, 20 and 30.
type stored struct{ *nullable }

func (s stored) Facts() source.Facts {
	f := s.nullable.Facts()
	f.Units = func() []int64 { return []int64{10, 20, 30} }
	return f
}

// TestUnits: views count their records in each unit below.
func TestUnits(t *testing.T) {
	src := stored{newNullable(60)}
	early := func(k int64) bool { return k < 4 || k >= 58 }
	window := func(w view.Windows) source.Source { return must(view.Window(t.Context(), src, w)) }
	for i, c := range []struct {
		v    source.Source
		want []int64
	}{
		{must(view.Slice(src, 5, 31)), []int64{5, 20, 1}},
		{must(view.Select(must(view.Slice(src, 5, 30)), "m")), []int64{5, 20}},
		{must(view.FilterFunc(src, early)), []int64{4, 2}},
		{must(view.Slice(must(view.FilterFunc(src, early)), 3, 6)), []int64{1, 2}},
		{must(view.Take(src, []int64{1, 2})), nil},
		{must(view.Concat(src, must(view.Slice(src, 5, 15)))), []int64{10, 20, 30, 5, 5}},
		{must(view.Concat(src, newNullable(4))), nil},
		{window(view.Windows{Length: 4, Stride: 4}), []int64{3, 5, 7}},
		{window(view.Windows{Length: 4, Stride: 1, Within: "group"}), []int64{6, 9, 15}},
		{must(view.Stack(src, view.Stacked{Name: "x", Columns: []string{"m"}})), []int64{10, 20, 30}},
	} {
		sizes, _ := source.UnitsOf(c.v)
		if !slices.Equal(sizes, c.want) || (sizes == nil) != (c.want == nil) {
			t.Errorf("view %d: %v, want %v", i, sizes, c.want)
		}
	}
}

// Example makes a training set of the records with an even label, in windows.
func Example() {
	all := columns()
	recent := must(view.Slice(all, 40, 100))
	some := must(view.FilterFunc(recent, func(k int64) bool { return k%3 != 0 }))
	windows := must(view.Window(context.Background(), must(view.Select(some, "a")), view.Windows{Length: 4, Stride: 4}))
	fmt.Println(recent.Len(), some.Len(), windows.Len(), windows.Schema().Fields[0].Shape)
	// Output: 60 40 10 [4 3]
}

func permutation(n int) []int64 {
	list := make([]int64, n)
	for i, k := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		list[i] = int64(k)
	}
	return list
}
