package view_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/packing"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// mappable returns records with an image, a label and tokens.
func mappable(n int64) *synthetic.Source {
	return synthetic.New(n,
		source.Field{Name: "image", Type: dtype.Uint8, Shape: []int{4, 2}},
		source.Field{Name: "label", Type: dtype.Int64},
		source.Field{Name: "tokens", Type: dtype.Int32, Ragged: 1})
}

// mixing returns a map in which each result depends on all fields and on the key: "image" is changed,
// "pairs" has one pair for each token and one for the key.
func mixing(workers int) view.Mapping {
	return view.Mapping{
		Out: []source.Field{
			{Name: "image", Type: dtype.Uint8, Shape: []int{4, 2}},
			{Name: "pairs", Type: dtype.Int32, Shape: []int{2}, Ragged: 1},
		},
		Keys: true, Name: "mixing", Workers: workers,
		Func: func(_ context.Context, rows *view.Rows) error {
			image := rows.Fixed(0)
			for i := range rows.Records {
				row := mixed1(rows.In[0][i].Row, rows.In[1][i].Row, rows.In[2][i].Row, rows.Keys[i])
				copy(image[i*8:], row[0])
				rows.Out[1][i] = row[1]
			}
			return nil
		},
	}
}

// mixed1 returns the rows of mixing for a record.
func mixed1(image, label, tokens []byte, key [2]uint32) [2][]byte {
	out := slices.Clone(image)
	for i := range out {
		out[i] ^= label[i] + byte(key[1])
	}
	pairs := binary.LittleEndian.AppendUint32(nil, key[0])
	pairs = binary.LittleEndian.AppendUint32(pairs, key[1])
	for at := 0; at < len(tokens); at += 4 {
		pairs = append(append(pairs, tokens[at:at+4]...), 1, 2, 3, 4)
	}
	return [2][]byte{out, pairs}
}

func expectMixed(src source.Source, draw source.Draw, record int64) [2][]byte {
	row := func(field int) []byte { return synthetic.Row(src.Schema().Fields[field], record) }
	return mixed1(row(0), row(1), row(2), sampler.RecordKey(draw.Seed, draw.Epoch, record))
}

func TestMap(t *testing.T) {
	for _, workers := range []int{1, 3} {
		src := mappable(50)
		open := func(t *testing.T) source.Source { return must(view.Map(src, mixing(workers))) }
		sourcetest.Suite{
			Open: open, Draw: draw,
			Row: func(field int, record int64) []byte {
				if field == 0 {
					return expectMixed(src, draw, record)[0]
				}
				return synthetic.Row(src.Schema().Fields[field], record)
			},
			Ragged: func(s *source.Span) {
				if s.Row = synthetic.Row(src.Schema().Fields[min(s.Field, 2)], s.Record); s.Field == 3 {
					s.Row = expectMixed(src, draw, s.Record)[1]
				}
			},
		}.Run(t)
	}
}

// TestMapComputesARecordOnce: for all fields of a gather, and only the records that it needs.
func TestMapComputesARecordOnce(t *testing.T) {
	seen := make([]atomic.Int32, 5000)
	m := mixing(2)
	inner := m.Func
	m.Func = func(ctx context.Context, rows *view.Rows) error {
		for _, r := range rows.Records {
			seen[r].Add(1)
		}
		return inner(ctx, rows)
	}
	padded := must(view.Pad(must(view.Map(mappable(5000), m)), "pairs", view.Padding{Length: 12}))
	if err := source.Check(t.Context(), padded, []int{0, 1, 3, 4}); err != nil {
		t.Fatal(err)
	}
	schema := padded.Schema()
	g := need(padded.Gatherer([]source.Part{schema.Whole(0), schema.Whole(3), schema.Whole(4)}))
	defer g.Close()
	var records []int64
	for i := range int64(4000) {
		records = append(records, (i*7)%5000)
	}
	jobs := []source.Job{
		{Part: 0, Rows: [2]int{0, 4000}, Dst: make([]byte, 4000*8)},
		{Part: 1, Rows: [2]int{0, 4000}, Dst: make([]byte, 4000*12*8)},
		{Part: 2, Rows: [2]int{0, 4000}, Dst: make([]byte, 4000*4)},
	}
	if err := g.Gather(t.Context(), draw, records, jobs); err != nil {
		t.Fatal(err)
	}
	for r := range seen {
		want := int32(0)
		if slices.Contains(records, int64(r)) {
			want = 1
		}
		// A field that a map returns and the fields of a view over it are gathered apart.
		if n := seen[r].Load(); n < want || n > 2*want {
			t.Fatalf("record %d was computed %d times", r, n)
		}
	}
	if got, want := jobs[0].Dst[8:16], expectMixed(mappable(5000), draw, 7)[0]; !bytes.Equal(got, want) {
		t.Errorf("record 7 is %x, want %x", got, want)
	}
}

// TestMapInEveryEpoch: keys differ by epoch, and not by the division of a batch.
func TestMapInEveryEpoch(t *testing.T) {
	run := func(processes int) (batches []string) {
		var loaders []*loader.Loader
		lay := need(layout.New(&layout.Document{
			Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 4}}, Processes: processes},
			Arrays: []layout.ArraySpec{{Name: "image", RowShape: []int{4, 2}, Type: dtype.Uint8, Spec: sharding.PartitionSpec{{"data"}}}},
			Batch:  &layout.BatchSpec{Size: []int{8}},
		}))
		for p := range processes {
			src := must(view.Select(must(view.Map(mappable(24), mixing(2))), "image", "label"))
			l := need(loader.New(src, loader.Options{Layout: lay, Process: p, Shuffle: true, Seed: 5, Epochs: 2}))
			defer l.Close()
			loaders = append(loaders, l)
		}
		for range 6 {
			var all []string
			for _, l := range loaders {
				b := need(l.Next(t.Context()))
				for i := range b.Blocks() {
					all = append(all, fmt.Sprintf("%x", need(b.Bytes(i))))
				}
				b.Release()
			}
			slices.Sort(all)
			batches = append(batches, strings.Join(slices.Compact(all), " "))
		}
		return batches
	}
	one := run(1)
	if four := run(4); !slices.Equal(one, four) {
		t.Error("4 processes have other rows than 1")
	}
	slices.Sort(one)
	if len(slices.Compact(one)) != 6 {
		t.Error("a batch occurs twice")
	}
}

func TestMapErrors(t *testing.T) {
	bad := errors.New("cannot decode")
	f := source.Field{Name: "x", Type: dtype.Float32}
	breaks := func(fail func(r int64, n int) error) view.Mapping {
		return view.Mapping{Name: "f", Out: []source.Field{f}, Workers: 1, Func: func(_ context.Context, rows *view.Rows) error {
			for _, r := range rows.Records {
				if err := fail(r, len(rows.Records)); err != nil {
					return err
				}
			}
			rows.Fixed(0)
			return nil
		}}
	}
	for _, c := range []struct {
		want string
		code status.Code
		m    view.Mapping
	}{
		{"view: record 7: the function f failed: cannot decode", status.InvalidArgument, breaks(func(r int64, _ int) error {
			if r == 7 {
				return bad
			}
			return nil
		})},
		{"view: record 3: the function f failed: view: no", status.DataLoss, breaks(func(r int64, _ int) error {
			if r == 3 {
				return status.New(status.DataLoss, "view", "no")
			}
			return nil
		})},
		{"fails for records 0 to 9 together, and for none of them alone: cannot decode; compute each row from that row alone", status.InvalidArgument, breaks(func(_ int64, n int) error {
			if n > 1 {
				return bad
			}
			return nil
		})},
		{"record 2: the function f failed: ", status.Internal, breaks(func(r int64, _ int) error {
			if r == 2 {
				panic("oh")
			}
			return nil
		})},
		{`record 0: the function f failed: view: field "x" has a row of 3 bytes, but float32[] has 4`, status.InvalidArgument, view.Mapping{
			Name: "f", Out: []source.Field{f}, Func: func(_ context.Context, rows *view.Rows) error {
				for i := range rows.Records {
					rows.Out[0][i] = make([]byte, 3)
				}
				return nil
			}}},
	} {
		src := must(view.Map(mappable(10), c.m))
		g := need(src.Gatherer([]source.Part{src.Schema().Whole(3)}))
		err := g.Gather(t.Context(), draw, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []source.Job{{Rows: [2]int{0, 10}, Dst: make([]byte, 40)}})
		if err == nil || !strings.Contains(err.Error(), c.want) || status.CodeOf(err) != c.code {
			t.Errorf("got %v (%v), want %s (%v)", err, status.CodeOf(err), c.want, c.code)
		}
		_ = g.Close()
	}
	ok := func(context.Context, *view.Rows) error { return nil }
	for want, m := range map[string]view.Mapping{
		"a map needs a function": {Out: []source.Field{f}},
		"and the fields that":    {Func: ok},
		`no field "no"`:          {Func: ok, Out: []source.Field{f}, Fields: []string{"no"}},
		`"label" twice`:          {Func: ok, Out: []source.Field{f}, Fields: []string{"label", "label"}},
		"given twice":            {Func: ok, Out: []source.Field{f, f}},
		"no element type":        {Func: ok, Out: []source.Field{{Name: "x"}}},
		"2 of its dimensions":    {Func: ok, Out: []source.Field{{Name: "x", Type: dtype.Int8, Ragged: 2}}},
		`stand for "string"`:     {Func: ok, Out: []source.Field{{Name: "x", Type: dtype.Int8, Ragged: 1, Logical: "string"}}},
		"shape [0]":              {Func: ok, Out: []source.Field{{Name: "x", Type: dtype.Int8, Shape: []int{0}}}},
		"has -1 workers":         {Func: ok, Out: []source.Field{f}, Workers: -1},
	} {
		if _, err := view.Map(mappable(1), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestMapIsKept: rows are kept if a key names the function and no row depends on the draw. Packing
// needs that.
func TestMapIsKept(t *testing.T) {
	var calls atomic.Int32
	m := view.Mapping{
		Fields: []string{"tokens"}, Out: []source.Field{{Name: "tokens", Type: dtype.Int32, Ragged: 1}}, Name: "double",
		Func: func(_ context.Context, rows *view.Rows) error {
			calls.Add(int32(len(rows.Records)))
			for i := range rows.Records {
				rows.Out[0][i] = slices.Concat(rows.In[0][i].Row, rows.In[0][i].Row)
			}
			return nil
		},
	}
	src := must(view.Select(mappable(100), "tokens"))
	_, err := view.Pack(t.Context(), must(view.Map(src, m)), "tokens", view.Packing{Options: packing.Options{Length: 32}})
	if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(fmt.Sprint(err), "pack needs the lengths of all rows") {
		t.Errorf("pack over a map: %v", err)
	}
	options := arrowio.Options{Cache: "memory"}
	if _, err := arrowio.Cached(t.Context(), must(view.Map(src, m)), options); status.CodeOf(err) != status.Unsupported {
		t.Errorf("a map without a key was kept: %v", err)
	}
	m.Key = "double.1"
	kept := must(arrowio.Cached(t.Context(), must(view.Map(src, m)), options))
	defer kept.Close()
	packed := must(view.Pack(t.Context(), kept, "tokens", view.Packing{Options: packing.Options{Length: 32}}))
	sourcetest.Run(t, func(*testing.T) source.Source {
		return must(view.Pack(t.Context(), kept, "tokens", view.Packing{Options: packing.Options{Length: 32}}))
	})
	if n := calls.Load(); n < 100 || n > 300 {
		t.Errorf("%d rows were computed for %d records in %d packed rows", n, 100, packed.Len())
	}
	m.Keys = true
	if _, err := arrowio.Cached(t.Context(), must(view.Map(src, m)), options); status.CodeOf(err) != status.Unsupported {
		t.Errorf("a map with keys was kept: %v", err)
	}
}

func TestMapFingerprints(t *testing.T) {
	seen := map[source.Fingerprint]int{}
	for i, change := range []func(m *view.Mapping){
		func(*view.Mapping) {},
		func(m *view.Mapping) { m.Name = "other" },
		func(m *view.Mapping) { m.Key = "mixing" },
		func(m *view.Mapping) { m.Key = "mixing.2" },
		func(m *view.Mapping) { m.Keys = false },
		func(m *view.Mapping) { m.Zero = true },
		func(m *view.Mapping) { m.Fields = []string{"label", "image", "tokens"} },
		func(m *view.Mapping) { m.Out[1].Name = "pair" },
		func(m *view.Mapping) { m.Out[1].Type = dtype.Uint32 },
		func(m *view.Mapping) { m.Out[1].Shape = nil },
		func(m *view.Mapping) { m.Out[1].Ragged = 0 },
	} {
		m := mixing(1)
		change(&m)
		f := fingerprint(t, must(view.Map(mappable(10), m)))
		if before, known := seen[f]; known {
			t.Errorf("changes %d and %d have one fingerprint", before, i)
		}
		seen[f] = i
	}
	m := mixing(4)
	m.Key, m.Name = "mixing", "renamed"
	if _, known := seen[fingerprint(t, must(view.Map(mappable(10), m)))]; !known {
		t.Error("the name or the workers change a fingerprint with a key")
	}
}

// TestMapEnds: a gather ends with its context while its calls wait for a worker, and Close of the view
// ends the context of calls under way. What the function says then is not the error.
func TestMapEnds(t *testing.T) {
	entered := make(chan struct{}, 8)
	m := view.Mapping{Name: "f", Out: []source.Field{{Name: "x", Type: dtype.Int8}}, Workers: 1, Func: func(ctx context.Context, rows *view.Rows) error {
		entered <- struct{}{}
		<-ctx.Done()
		return status.New(status.DataLoss, "test", "the row is bad")
	}}
	src := must(view.Map(mappable(4), m))
	g := need(src.Gatherer([]source.Part{src.Schema().Whole(3)}))
	gather := func(ctx context.Context) error {
		return g.Gather(ctx, draw, []int64{0, 1}, []source.Job{{Rows: [2]int{0, 2}, Dst: make([]byte, 2)}})
	}
	done := make(chan error, 1)
	go func() { done <- gather(context.Background()) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := gather(ctx); status.CodeOf(err) != status.Cancelled {
		t.Errorf("a gather that waits for a worker: %v", err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; status.CodeOf(err) != status.Cancelled && status.CodeOf(err) != status.InvalidState {
		t.Errorf("a gather that Close ends: %v", err)
	}
}

// failing returns a map that fails for records of which the first byte of the label is odd.
func failing(code status.Code) view.Mapping {
	m := mixing(2)
	inner := m.Func
	m.Func = func(ctx context.Context, rows *view.Rows) error {
		for i := range rows.Records {
			if rows.In[1][i].Row[0]&1 == 1 {
				return status.New(code, "test", "odd")
			}
		}
		return inner(ctx, rows)
	}
	m.Zero = true
	return m
}

// TestMapZero: the rows of records that the function fails for are zeros, and empty if they are ragged.
func TestMapZero(t *testing.T) {
	src := mappable(50)
	odd := func(record int64) bool { return synthetic.Row(src.Schema().Fields[1], record)[0]&1 == 1 }
	sourcetest.Suite{
		Open: func(*testing.T) source.Source { return must(view.Map(src, failing(status.DataLoss))) }, Draw: draw,
		Row: func(field int, record int64) []byte {
			switch {
			case field > 0:
				return synthetic.Row(src.Schema().Fields[field], record)
			case odd(record):
				return make([]byte, 8)
			}
			return expectMixed(src, draw, record)[0]
		},
		Ragged: func(s *source.Span) {
			switch s.Row = synthetic.Row(src.Schema().Fields[min(s.Field, 2)], s.Record); {
			case s.Field == 3 && odd(s.Record):
				s.Row = []byte{}
			case s.Field == 3:
				s.Row = expectMixed(src, draw, s.Record)[1]
			}
		},
	}.Run(t)
	want := int64(0)
	for r := range src.Len() {
		if odd(r) {
			want++
		}
	}
	for _, processes := range []int{1, 2, 4} {
		lay := need(layout.New(&layout.Document{
			Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 4}}, Processes: processes},
			Arrays: []layout.ArraySpec{{Name: "image", RowShape: []int{4, 2}, Type: dtype.Uint8, Spec: sharding.PartitionSpec{{"data"}}}},
			Batch:  &layout.BatchSpec{Size: []int{8}, Remainder: "pad"},
		}))
		bad, steps := int64(0), int64(0)
		for p := range processes {
			l := need(loader.New(must(view.Select(must(view.Map(src, failing(status.DataLoss))), "image")), loader.Options{Layout: lay, Process: p, Shuffle: true, Epochs: 1}))
			for {
				b, err := l.Next(t.Context())
				if errors.Is(err, status.ErrEnd) {
					break
				}
				steps += need(b, err).Step().Bad
				b.Release()
			}
			if s := l.Stats(); s.Bad > 0 && !strings.Contains(fmt.Sprint(s.FirstBad), "the function mixing failed: test: odd") {
				t.Errorf("the first bad record: %v", s.FirstBad)
			}
			bad += l.Stats().Bad
			_ = l.Close()
		}
		if bad != want || steps != want {
			t.Errorf("%d processes counted %d bad records, and %d in batches, want %d", processes, bad, steps, want)
		}
	}
	for _, code := range []status.Code{status.Cancelled, status.IO, status.ResourceExhausted, status.InvalidState, status.Internal} {
		v := must(view.Map(src, failing(code)))
		g := need(v.Gatherer([]source.Part{v.Schema().Whole(0)}))
		err := g.Gather(t.Context(), draw, []int64{0, 1, 2, 3, 4, 5, 6, 7}, []source.Job{{Rows: [2]int{0, 8}, Dst: make([]byte, 64)}})
		if status.CodeOf(err) != code {
			t.Errorf("code %v: %v", code, err)
		}
		_ = g.Close()
	}
}

func need[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
