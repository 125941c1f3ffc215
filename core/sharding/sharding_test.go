package sharding_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

var p = sharding.P

func uniform(t testing.TB, processes int, axes ...mesh.Axis) *mesh.Mesh {
	t.Helper()
	m, err := mesh.Uniform(axes, processes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func dataModel(t testing.TB, processes int) *mesh.Mesh {
	return uniform(t, processes, mesh.Axis{Name: "data", Size: 4}, mesh.Axis{Name: "model", Size: 2})
}

func newSharding(t testing.TB, m *mesh.Mesh, spec sharding.PartitionSpec) *sharding.NamedSharding {
	t.Helper()
	s, err := sharding.New(m, spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want || status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

func TestNewErrors(t *testing.T) {
	m := dataModel(t, 1)
	for _, c := range []struct {
		spec sharding.PartitionSpec
		want string
	}{
		{p("batch"), `sharding: axis "batch" of P('batch',) is not in Mesh('data': 4, 'model': 2); use one of "data", "model"`},
		{p(nil, []string{"data", "x"}), `sharding: axis "x" of P(None, ('data', 'x')) is not in Mesh('data': 4, 'model': 2); use one of "data", "model"`},
		{p("data", "model", "data"), `sharding: axis "data" partitions dimension 0 and dimension 2 of P('data', 'model', 'data'); an axis can partition one dimension once`},
		{p([]string{"model", "model"}), `sharding: axis "model" partitions dimension 0 twice of P(('model', 'model'),); an axis can partition one dimension once`},
		{p("x", "x"), `sharding: axis "x" partitions dimension 0 and dimension 1 of P('x', 'x'); an axis can partition one dimension once`},
	} {
		_, err := sharding.New(m, c.spec)
		wantError(t, err, c.want)
	}
	_, err := sharding.New(uniform(t, 1, mesh.Axis{Name: "x", Size: 2}), p("y"))
	wantError(t, err, `sharding: axis "y" of P('y',) is not in Mesh('x': 2); use "x"`)
	_, err = sharding.New(uniform(t, 1), p("y"))
	wantError(t, err, `sharding: axis "y" of P('y',) is not in Mesh(); leave it out: the mesh has no axes`)
	_, err = sharding.New(nil, p("y"))
	wantError(t, err, `sharding: spec P('y',) has no mesh; give the mesh that its axes belong to`)
}

func TestCheckErrors(t *testing.T) {
	m := dataModel(t, 1)
	for _, c := range []struct {
		spec  sharding.PartitionSpec
		shape []int
		want  string
	}{
		{p("data"), []int{30, 128}, `sharding: dimension 0 of shape (30, 128) is split 4 ways by axis "data" (size 4), but 30 % 4 = 2; the nearest sizes that divide: 28 or 32`},
		{p(nil, []string{"model", "data"}), []int{3, 9}, `sharding: dimension 1 of shape (3, 9) is split 8 ways by axes "model" (size 2), "data" (size 4), but 9 % 8 = 1; the nearest sizes that divide: 8 or 16`},
		{p("data", "model"), []int{3, 3}, `sharding: dimension 0 of shape (3, 3) is split 4 ways by axis "data" (size 4), but 3 % 4 = 3; the nearest sizes that divide: 4`},
		{p("data"), []int{math.MaxInt}, `sharding: dimension 0 of shape (9223372036854775807,) is split 4 ways by axis "data" (size 4), but 9223372036854775807 % 4 = 3; the nearest sizes that divide: 9223372036854775804 or 9223372036854775808`},
		{p("data"), []int{-4}, `sharding: dimension 0 of shape (-4,) is negative`},
		{p(), []int{4, -1}, `sharding: dimension 1 of shape (4, -1) is negative`},
		{p("data", nil), []int{8}, `sharding: spec P('data', None) has 2 entries, but shape (8,) has rank 1; give at most one entry per dimension`},
		{p(nil), []int{}, `sharding: spec P(None,) has 1 entry, but shape () has rank 0; give at most one entry per dimension`},
	} {
		s := newSharding(t, m, c.spec)
		wantError(t, s.Check(c.shape), c.want)
		_, _, err := s.Map(c.shape)
		wantError(t, err, c.want)
		_, err = s.Tiling(c.shape)
		wantError(t, err, c.want)
	}
}

// The attributes of an error have its code and numbers.
func TestErrorFacts(t *testing.T) {
	var e *status.Error
	if err := newSharding(t, dataModel(t, 1), p(nil, []string{"data", "model"})).Check([]int{1, 12}); !errors.As(err, &e) {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"code": sharding.Indivisible, "size": int64(12), "tiles": int64(8), "remainder": int64(4)} {
		if e.Attr(key) != want {
			t.Errorf("%s = %v, want %v", key, e.Attr(key), want)
		}
	}
}

// Fit lists every fault of the axes and the rank. It lists the sizes that do not divide
// only if it finds no other fault.
func TestFaults(t *testing.T) {
	m := dataModel(t, 1)
	for _, c := range []struct {
		spec  sharding.PartitionSpec
		shape []int
		want  []string // code and dimension
	}{
		{p("data", "model"), []int{4, 2}, nil},
		{p("data", "model"), []int{3, 3}, []string{"indivisible 0", "indivisible 1"}},
		{p("x", "data", "data"), []int{3}, []string{"spec-rank 0", "unknown-axis 0", "duplicate-axis 2"}},
	} {
		s, tiling, faults := sharding.Fit(m, c.spec, c.shape, `array "w"`)
		var got []string
		for _, f := range faults {
			got = append(got, fmt.Sprint(f.Code, " ", f.Dimension))
			if !strings.Contains(f.Message, ` of array "w"`) {
				t.Errorf("%v: %s does not name the array", c.spec, f.Message)
			}
		}
		if !slices.Equal(got, c.want) || (s == nil) != (c.want != nil) || (tiling.Count() == 8) != (c.want == nil) {
			t.Errorf("%v of shape %v: faults %v, want %v; the sharding is %v", c.spec, c.shape, got, c.want, s)
		}
	}
}

func TestNewSpec(t *testing.T) {
	for _, c := range []struct {
		entries []any
		want    string // as JAX prints it
	}{
		{nil, `P()`},
		{[]any{nil}, `P(None,)`},
		{[]any{"x", nil, nil}, `P('x', None, None)`},
		{[]any{[]any{"x"}, []string{}, []any{"x", "y"}, []string{"z"}}, `P('x', None, ('x', 'y'), 'z')`},
		{[]any{`it's`, `a"b`, `'"`, "a\tb\u200b\\", "é\x7f\U000e0001\u00a0\u0100"}, `P("it's", 'a"b', '\'"', 'a\tb\u200b\\', 'é\x7f\U000e0001\xa0Ā')`},
	} {
		spec, err := sharding.NewSpec(c.entries...)
		if err != nil || spec.String() != c.want {
			t.Errorf("NewSpec(%v) = %v, %v; want %s", c.entries, spec, err, c.want)
		}
		again, err := sharding.NewSpec(spec.Entries()...)
		if err != nil || !again.Equal(spec) {
			t.Errorf("%v became %v by its entries: %v", spec, again, err)
		}
	}
	if p("x").Equal(p("x", nil)) || !p([]string{"x"}).Equal(p("x")) || !p([]string{}).Equal(p(nil)) {
		t.Error("trailing None counts, and a list of one is its axis")
	}
}

func TestNewSpecErrors(t *testing.T) {
	const rest = `, but must be nothing, an axis or a list of axes; name the axes of one dimension in one flat list`
	for _, c := range []struct {
		entry any
		want  string
	}{
		{7, `sharding: entry 1 of the spec is a value of type int` + rest},
		{"", `sharding: entry 1 of the spec is an axis without a name` + rest},
		{[]string{"x", ""}, `sharding: entry 1 of the spec is an axis without a name` + rest},
		{[]any{"x", []any{"y"}}, `sharding: entry 1 of the spec is a list that holds another list` + rest},
		{[]any{"x", []string{"y"}}, `sharding: entry 1 of the spec is a list that holds another list` + rest},
		{[]any{nil}, `sharding: entry 1 of the spec is a list that holds nothing` + rest},
		{[]any{2.5}, `sharding: entry 1 of the spec is a list that holds a value of type float64` + rest},
		{[]int{1}, `sharding: entry 1 of the spec is a value of type []int` + rest},
	} {
		_, err := sharding.NewSpec("x", c.entry)
		wantError(t, err, c.want)
	}
	defer func() {
		if recover() == nil {
			t.Error("P accepted a number")
		}
	}()
	p(1)
}

// All parts of a dimension of size zero are equal, so they are replicas, although
// the spec partitions the dimension.
func TestZeroSizeDimensions(t *testing.T) {
	m := dataModel(t, 2)
	_, replicas, err := newSharding(t, m, p("data", "model")).Map([]int{0, 0})
	if err != nil || !slices.Equal(replicas, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("replicas %v, %v", replicas, err)
	}
	_, replicas, err = newSharding(t, m, p("data", "model")).Map([]int{0, 2})
	if err != nil || !slices.Equal(replicas, []int{0, 0, 1, 1, 2, 2, 3, 3}) {
		t.Errorf("replicas %v, %v", replicas, err)
	}
}

func TestIsFullyReplicated(t *testing.T) {
	for _, c := range []struct {
		spec       sharding.PartitionSpec
		replicated bool
	}{{p(), true}, {p(nil, "model"), false}, {p(nil, nil), true}} {
		if s := newSharding(t, dataModel(t, 1), c.spec); s.IsFullyReplicated() != c.replicated {
			t.Errorf("%v: replicated %v", s, !c.replicated)
		}
	}
	ones := newSharding(t, uniform(t, 1, mesh.Axis{Name: "a", Size: 1}, mesh.Axis{Name: "b", Size: 3}), p("a"))
	if !ones.IsFullyReplicated() || ones.Check([]int{7}) != nil {
		t.Error("axes of size 1 do not partition")
	}
}

func TestImmutable(t *testing.T) {
	spec := p("data")
	s := newSharding(t, dataModel(t, 1), spec)
	spec[0][0] = "model"
	s.Spec()[0][0] = "model"
	if s.String() != `NamedSharding(mesh=Mesh('data': 4, 'model': 2), spec=P('data',))` {
		t.Errorf("the spec changed: %v", s)
	}
	shape := []int{8}
	tiling, _ := s.Tiling(shape)
	shape[0], tiling.Weights()[0], tiling.Tiles()[0] = 4, 9, 9
	if got := tiling.Index(3).String(); got != "[6:8]" {
		t.Errorf("the tiling changed: %s", got)
	}
	whole, _ := newSharding(t, dataModel(t, 1), p("data", "model")).Tiling([]int{8, 8})
	if tiling.Same(whole) || !tiling.Same(whole.Leading(1)) {
		t.Error("Same compares how devices are numbered")
	}
	m := uniform(t, 1, mesh.Axis{Name: "one", Size: 1}, mesh.Axis{Name: "two", Size: 2})
	plain, _ := newSharding(t, m, p("two")).Tiling([]int{2})
	if with, _ := newSharding(t, m, p([]string{"one", "two"})).Tiling([]int{2}); !plain.Same(with) {
		t.Error("an axis of size 1 makes no difference")
	}
}

func BenchmarkMap(b *testing.B) {
	for _, n := range []int{8, 1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("devices=%d", n), func(b *testing.B) {
			s := newSharding(b, uniform(b, 1, mesh.Axis{Name: "x", Size: n / 4}, mesh.Axis{Name: "y", Size: 4}), p("x", "y"))
			for b.Loop() {
				if _, _, err := s.Map([]int{n, 4}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
