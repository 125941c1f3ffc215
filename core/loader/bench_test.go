package loader_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
)

// table is a dataset in memory with one contiguous field of bytes. It copies row by
// row, so the rest of the time is the loader's.
type table struct {
	rowBytes int
	data     []byte
}

func newTable(records, rowBytes int) *table {
	return &table{rowBytes: rowBytes, data: make([]byte, records*rowBytes)}
}

func (s *table) Schema() source.Schema {
	return source.Schema{Fields: []source.Field{{Name: "x", Type: dtype.Uint8, Shape: []int{s.rowBytes}}}}
}
func (s *table) Len() int64 { return int64(len(s.data) / s.rowBytes) }
func (s *table) Fingerprint(context.Context) (source.Fingerprint, error) {
	return source.Fingerprint{}, nil
}
func (s *table) Facts() source.Facts { return source.Facts{} }
func (s *table) Close() error        { return nil }
func (s *table) Gatherer(parts []source.Part) (source.Gatherer, error) {
	return &tableGatherer{s, parts}, nil
}

func (s *table) Reader(fields []int) (source.Reader, error) { return cut.Reader(s, fields) }

type tableGatherer struct {
	s     *table
	parts []source.Part
}

func (g *tableGatherer) Gather(_ context.Context, _ source.Draw, records []int64, jobs []source.Job) error {
	for _, j := range jobs {
		c := g.parts[j.Part].Boxes[0][0]
		n := c[1] - c[0]
		for i, r := range records[j.Rows[0]:j.Rows[1]] {
			copy(j.Dst[i*n:(i+1)*n], g.s.data[int(r)*g.s.rowBytes+c[0]:])
		}
	}
	return nil
}
func (g *tableGatherer) Ahead(source.Draw, []int64) {}
func (g *tableGatherer) Close() error               { return nil }

func tableLayout(t testing.TB, batch, rowBytes int) *layout.Layout {
	return newLayout(t, &layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 4}, {Name: "model", Size: 2}}},
		Arrays: []layout.ArraySpec{
			{Name: "x", RowShape: []int{rowBytes}, Type: dtype.Uint8, Spec: sharding.P("data", "model")},
		},
		Batch: &layout.BatchSpec{Size: []int{batch}},
	})
}

// BenchmarkNext takes and releases batches, one after the other.
func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ batch, rowBytes int }{{8, 16}, {128, 12288}, {4096, 160}} {
		for _, prefetch := range []int{-1, 2} {
			b.Run(fmt.Sprintf("%dx%d/prefetch=%d", c.batch, c.rowBytes, prefetch), func(b *testing.B) {
				src := newTable(max(4*c.batch, 1<<24/c.rowBytes), c.rowBytes)
				l := newLoader(b, src, loader.Options{Layout: tableLayout(b, c.batch, c.rowBytes), Shuffle: true, Epochs: -1, Prefetch: prefetch})
				b.SetBytes(int64(c.batch * c.rowBytes))
				b.ReportAllocs()
				for b.Loop() {
					x, err := l.Next(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					x.Release()
				}
				s := l.Stats()
				b.ReportMetric(float64(s.Gather.Nanoseconds())/float64(s.Batches), "gather-ns/op")
			})
		}
	}
}

// BenchmarkNew measures from the construction to the first batch.
func BenchmarkNew(b *testing.B) {
	src, lay := newTable(100_000, 160), tableLayout(b, 4096, 160)
	for b.Loop() {
		l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true})
		if err != nil {
			b.Fatal(err)
		}
		x, err := l.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		x.Release()
		closeLoader(b, l)
	}
}

func BenchmarkStateJSON(b *testing.B) {
	s, err := loader.ParseState([]byte(state))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.JSON()
	}
}

// What is allocated per batch does not grow with the batch.
func TestAllocationsPerBatch(t *testing.T) {
	allocs := func(batch int) float64 {
		l := newLoader(t, newTable(4*batch, 16), loader.Options{Layout: tableLayout(t, batch, 16), Shuffle: true, Epochs: -1})
		use := func() {
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		for range 20 {
			use()
		}
		return testing.AllocsPerRun(200, use)
	}
	if few, many := allocs(8), allocs(8192); many > few+2 || many > 12 {
		t.Errorf("%v allocations per batch of 8 rows, %v per batch of 8192", few, many)
	}
}
