package parquet

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
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

// readBytes returns the bytes of all columns that a unit needs, and how many of them the unit
// of the next rows needs too.
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
		rules := Rules{1 + rng.Int64N(100), 1 + rng.Int64N(8), rng.Int64N(8)}
		least := rules.Least
		if indexes := int64(0); rules.Indexes > 0 {
			for _, c := range g.Chunks {
				indexes += int64(c.IndexBytes)
			}
			least = max(least, rules.Indexes*indexes)
		}
		largest := pages[slices.IndexFunc(g.Chunks, func(c parquet.Chunk) bool {
			return c.Length == slices.MaxFunc(g.Chunks, func(a, b parquet.Chunk) int { return int(a.Length - b.Length) }).Length
		})]
		var want []unit
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
			if row == g.Rows || row > start && size >= least && rest >= least && twice <= size/rules.Twice {
				want, sizes, start = append(want, unit{7, start, row}), append(sizes, size), row
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

// metered is a blob that counts the bytes that are read.
type metered struct {
	blob.Blob
	bytes int64
}

func (m *metered) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	m.bytes += int64(len(p))
	return m.Blob.ReadAt(ctx, p, offset)
}

// TestBytesOfPages: a decoding reads the pages of its unit, the dictionary if they need it, and
// the offset index.
func TestBytesOfPages(t *testing.T) {
	for _, name := range []string{"paged", "paged_v2", "paged_cdc"} {
		b, err := local.Opener{}.Open(t.Context(), blob.Entry{Name: "../../../testdata/parquet/" + name + ".parquet"})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		m := &metered{Blob: b}
		opened, err := Format{Rules{1500, 1, 0}}.Open(t.Context(), resident.NewFile(m, nil))
		if err != nil {
			t.Fatal(err)
		}
		c := opened.(*file)
		if len(c.units) < 5 || len(c.units) != len(c.facts.Bytes) {
			t.Fatalf("%s: %d units", name, len(c.units))
		}
		const column = 1 // has fixed rows
		fields, reasons := arrowtype.Describe(&c.meta.Schema)
		if reasons[column] != "" {
			t.Fatal(reasons[column])
		}
		for i := range c.units {
			u := &c.units[i]
			k := &c.meta.Groups[u.group].Chunks[column]
			pages, err := c.pages(t.Context(), u, column)
			if err != nil {
				t.Fatal(err)
			}
			start, stop := pages.Range()
			first, _ := pages.Index.Pages(u.start, u.stop)
			want := stop - start + int64(k.IndexBytes)
			if int64(first) < k.Lookups {
				want += k.Data - k.Offset
			}
			before := m.bytes
			decoding, err := c.Decoding(t.Context(), i, column, fields[column])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := decoding.Run(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if got := m.bytes - before; got != want {
				t.Errorf("%s: unit %d: %d bytes were read, want %d", name, i, got, want)
			}
		}
	}
}
