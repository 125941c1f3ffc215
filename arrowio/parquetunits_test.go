package arrowio

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/tests/random"
)

// randomGroup makes a row group with offset indexes. Some pages have no rows.
func randomGroup(rng *rand.Rand) (*parquet.Group, []*parquet.OffsetIndex) {
	g := &parquet.Group{Rows: 1 + rng.Int64N(200)}
	var pages []*parquet.OffsetIndex
	at := int64(4)
	for range 1 + rng.IntN(4) {
		c := parquet.Chunk{Offset: at, IndexBytes: 1 + rng.Int32N(9), Lookups: random.One[int64](rng, 0, 3, math.MaxInt64)}
		at += random.One(rng, 0, rng.Int64N(20))
		c.Data = at
		x, step := &parquet.OffsetIndex{}, 1+rng.Int64N(50)
		for row := int64(0); row < g.Rows; row += random.One(rng, step, rng.Int64N(step+1)) {
			x.Offsets, x.Rows = append(x.Offsets, at), append(x.Rows, row)
			at += 1 + rng.Int64N(40)
		}
		x.Offsets, x.Rows = append(x.Offsets, at), append(x.Rows, g.Rows)
		c.Length = at - c.Offset
		g.Chunks, pages = append(g.Chunks, c), append(pages, x)
	}
	return g, pages
}

// readBytes returns the bytes of all columns that a unit needs, and those that the unit of the
// next rows needs too.
func readBytes(g *parquet.Group, pages []*parquet.OffsetIndex, start, stop int64) (bytes, twice int64) {
	for i, x := range pages {
		first, last := x.Pages(start, stop)
		head := g.Chunks[i].Data - g.Chunks[i].Offset
		bytes += x.Offsets[last] - x.Offsets[first]
		if int64(first) < g.Chunks[i].Lookups {
			bytes += head
		}
		if stop == g.Rows {
			continue
		}
		next, _ := x.Pages(stop, stop+1)
		if next < last {
			twice += x.Offsets[last] - x.Offsets[next]
		}
		if int64(next) < g.Chunks[i].Lookups {
			twice += head
		}
	}
	return bytes, twice
}

// TestRunsOf: units end at the first page of the largest column that the rules allow.
func TestRunsOf(t *testing.T) {
	rng, divided := random.New(t), 0
	for range 500 {
		g, pages := randomGroup(rng)
		rules := pageRules{1 + rng.Int64N(100), 1 + rng.Int64N(8), rng.Int64N(8)}
		least := rules.least
		if indexes := int64(0); rules.indexes > 0 {
			for _, c := range g.Chunks {
				indexes += int64(c.IndexBytes)
			}
			least = max(least, rules.indexes*indexes)
		}
		largest := pages[slices.IndexFunc(g.Chunks, func(c parquet.Chunk) bool {
			return c.Length == slices.MaxFunc(g.Chunks, func(a, b parquet.Chunk) int { return int(a.Length - b.Length) }).Length
		})]
		var want []parquetUnit
		var sizes []int64
		start := int64(0)
		for _, row := range largest.Rows[1:] {
			size, twice := readBytes(g, pages, start, row)
			rest, _ := readBytes(g, pages, row, g.Rows)
			for i, x := range pages { // the dictionaries are not a part of the rest
				if first, _ := x.Pages(row, g.Rows); int64(first) < g.Chunks[i].Lookups && row < g.Rows {
					rest -= g.Chunks[i].Data - g.Chunks[i].Offset
				}
			}
			if row == g.Rows || row > start && size >= least && rest >= least && twice <= size/rules.twice {
				want, sizes, start = append(want, parquetUnit{7, start, row}), append(sizes, size), row
			}
			if row == g.Rows {
				break
			}
		}
		units, bytes := runsOf(7, g, pages, rules)
		if !slices.Equal(units, want) || !slices.Equal(bytes, sizes) {
			t.Fatalf("rules %+v: got %v of %v, want %v of %v", rules, units, bytes, want, sizes)
		}
		if len(units) > 1 {
			divided++
		}
	}
	if divided < 50 {
		t.Errorf("only %d groups were divided", divided)
	}
}

// openMetered opens a file whose row groups are divided. Bytes counts what is read.
func openMetered(t *testing.T, path string, rules pageRules) (d *Dataset, bytes *atomic.Int64) {
	t.Helper()
	defer DividePages(rules.least, rules.twice)()
	bytes = new(atomic.Int64)
	d, err := OpenFiles(t.Context(), []string{path}, Options{IO: "read", Opener: meteredOpener{bytes: bytes}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, bytes
}

// TestBytesOfPages: to gather a row reads the pages of its unit, the dictionary if they need
// it, and the offset index.
func TestBytesOfPages(t *testing.T) {
	for _, name := range []string{"paged", "paged_v2", "paged_cdc"} {
		path := "testdata/parquet/" + name + ".parquet"
		d, read := openMetered(t, path, pageRules{1500, 1, 0})
		c := d.files[0].contents.(*parquetFile)
		if len(c.units) < 5 || len(c.units) != len(c.facts.bytes) {
			t.Fatalf("%s: %d units", name, len(c.units))
		}
		const field = 1 // of fixed rows
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(field)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		record := int64(0)
		for i := range c.units {
			u := &c.units[i]
			k := &c.meta.Groups[u.group].Chunks[field]
			pages, err := c.pages(t.Context(), u, field)
			if err != nil {
				t.Fatal(err)
			}
			start, stop := pages.Range()
			first, _ := pages.Index.Pages(u.start, u.stop)
			want := stop - start + 2*int64(k.IndexBytes) // for the memory, and for the pages
			if int64(first) < k.Lookups {
				want += k.Data - k.Offset
			}
			before := read.Load()
			job := source.Job{Rows: [2]int{0, 1}, Dst: make([]byte, d.Schema().Fields[field].RowBytes())}
			if err := g.Gather(t.Context(), source.Draw{}, []int64{record}, []source.Job{job}); err != nil {
				t.Fatal(err)
			}
			if got := read.Load() - before; got != want {
				t.Errorf("%s: unit %d: %d bytes were read, want %d", name, i, got, want)
			}
			record += u.stop - u.start
		}
	}
}
