package chunk_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding/encodingtest"
	"github.com/meshfeed/meshfeed/tests/random"
)

// begin is the offset of the chunks in their files.
const begin = 1000

// indexOf returns the offset index of a chunk without lists, and the metadata of the chunk.
func indexOf(t *testing.T, data []byte, codec parquet.Codec) (*parquet.OffsetIndex, *parquet.Chunk) {
	t.Helper()
	c, x := &parquet.Chunk{Offset: begin, Length: int64(len(data)), Nulls: -1, Codec: codec}, &parquet.OffsetIndex{}
	for at := 0; at < len(data); {
		p, err := parquet.ReadPage(data[at:])
		if err != nil {
			t.Fatal(err)
		}
		if p.Kind != parquet.DictionaryPage {
			x.Offsets, x.Rows = append(x.Offsets, int64(begin+at)), append(x.Rows, c.Values)
			c.Values += int64(p.Values)
		}
		at += p.Header + p.Stored
	}
	x.Offsets, x.Rows = append(x.Offsets, int64(begin+len(data))), append(x.Rows, c.Values)
	c.Data = x.Offsets[0]
	return x, c
}

// decodePages decodes some rows, with the dictionary if it is needed or lies before them.
func decodePages(data []byte, p *chunk.Pages, c *parquet.Chunk, leaf *parquet.Leaf, shape bool) (*chunk.Column, error) {
	start, stop := p.Range()
	pages, head := data[start-begin:stop-begin], data[:c.Data-begin]
	if start > c.Data && !chunk.NeedsDictionary(pages) {
		head = nil
	}
	return chunk.DecodePages(head, pages, p, c, leaf, shape, p.Estimate(c, leaf))
}

// TestDecodePages decodes random rows of random columns.
func TestDecodePages(t *testing.T) {
	rng := random.New(t)
	withoutDictionary := 0
	for range 200 {
		column := make([]*uint32, 1+rng.IntN(400))
		share := random.One(rng, 0, 0.1, 0.9)
		for i := range column {
			if rng.Float64() >= share {
				v := rng.Uint32N(500)
				column[i] = &v
			}
		}
		codec := random.One(rng, parquet.Uncompressed, parquet.Snappy)
		data := write(rng, column, codec)
		x, c := indexOf(t, data, codec)
		for range 10 {
			start := rng.Int64N(c.Values)
			p := &chunk.Pages{Index: x, Start: start, Stop: start + 1 + rng.Int64N(c.Values-start)}
			checkRows(t, rng, data, p, c, column[p.Start:p.Stop])
			if from, to := p.Range(); !chunk.NeedsDictionary(data[from-begin : to-begin]) {
				withoutDictionary++
			}
		}
	}
	if withoutDictionary == 0 {
		t.Error("all pages had indices")
	}
}

func checkRows(t *testing.T, rng *rand.Rand, data []byte, p *chunk.Pages, c *parquet.Chunk, want []*uint32) {
	t.Helper()
	got, err := decodePages(data, p, c, &ints, false)
	if err != nil {
		t.Fatal(err)
	}
	if got.Values != int64(len(want)) || len(got.Fixed) != 4*len(want) {
		t.Fatalf("%d values in %d bytes, want %d", got.Values, len(got.Fixed), len(want))
	}
	present := int64(0)
	for i, v := range want {
		value := uint32(0)
		if v != nil {
			value = *v
			present++
		}
		if binary.LittleEndian.Uint32(got.Fixed[4*i:]) != value || got.Valid.Get(int64(i)) != (v != nil) {
			t.Fatalf("rows %d to %d: value %d differs", p.Start, p.Stop, i)
		}
	}
	if got.Present != present || got.Valid != nil && present == got.Values {
		t.Fatalf("%d values are present, want %d", got.Present, present)
	}
	shape, err := decodePages(data, p, c, &ints, true)
	if err != nil || shape.Fixed != nil || !slices.Equal(shape.Valid, got.Valid) || shape.Values != got.Values {
		t.Fatalf("the shape alone differs: %v", err)
	}
}

// TestPagesRefused: pages must have the rows that the index says.
func TestPagesRefused(t *testing.T) {
	three := sized(encodingtest.PackBits([]uint64{3, 0b111}, 8))
	plain := page{n: 3, levels: three, body: int32s(1, 2, 3)}
	dictionary := page{kind: parquet.DictionaryPage, n: 2, body: int32s(5, 6)}
	indices := page{n: 3, levels: three, how: parquet.RLEDictionary, body: append([]byte{2}, encodingtest.PackBits([]uint64{3, 0b010001}, 8)...)}
	data := slices.Concat(dictionary.bytes(0), indices.bytes(0), plain.bytes(0), plain.bytes(0))
	for _, c := range []struct {
		start, stop int64
		change      func(x *parquet.OffsetIndex, c *parquet.Chunk)
		want        string
	}{
		{start: 2, stop: 7},
		{start: 6, stop: 9},
		{stop: 2, change: func(x *parquet.OffsetIndex, _ *parquet.Chunk) { x.Rows[1] = 2 }, want: "page 1 at byte 27 of the column: 3 values, but the column has only 2 more"},
		{stop: 9, change: func(x *parquet.OffsetIndex, _ *parquet.Chunk) { x.Rows[1] = 2 }, want: "page 1 at byte 27 of the column: 3 rows, but 2 in the offset index"},
		{stop: 9, change: func(x *parquet.OffsetIndex, _ *parquet.Chunk) { x.Rows[2] = 7 }, want: "page 2 at byte 59 of the column: 3 rows, but 4 in the offset index"},
		{start: 3, stop: 4, change: func(x *parquet.OffsetIndex, _ *parquet.Chunk) { x.Offsets[2] = x.Offsets[3] }, want: "page 2 at byte 59 of the column: 3 values, but the column has only 0 more"},
		{stop: 9, change: func(x *parquet.OffsetIndex, c *parquet.Chunk) {
			c.Data, x.Offsets, x.Rows = x.Offsets[1], x.Offsets[1:], []int64{0, 3, 6}
		}, want: "page 1 at byte 27 of the column: values before the first page of the offset index"},
		{start: 5, stop: 6, change: func(x *parquet.OffsetIndex, _ *parquet.Chunk) { x.Offsets[1]++ }, want: "page 2 at byte 60 of the column: a page of type 0 without its header"},
	} {
		x, stored := indexOf(t, data, parquet.Uncompressed)
		if c.change != nil {
			c.change(x, stored)
		}
		_, err := decodePages(data, &chunk.Pages{Index: x, Start: c.start, Stop: c.stop}, stored, &ints, false)
		if text := message(err); text != c.want {
			t.Errorf("got  %s\nwant %s", text, c.want)
		}
	}
}

// TestPagesOfLists: a page without rows continues the row before. Other pages must begin with a
// row, where rows are decoded from.
func TestPagesOfLists(t *testing.T) {
	entries := func(repetitions ...uint64) page {
		p := page{n: len(repetitions)}
		var full []uint64
		for i := range repetitions {
			full, p.body = append(full, 3), append(p.body, int32s(uint32(i))...)
		}
		p.levels = slices.Concat(sized(bits(repetitions...)), sized(pairs(full...)))
		return p
	}
	leaf := &parquet.Leaf{Physical: parquet.Int32, Nodes: list}
	for _, c := range []struct {
		pages       []page
		rows        []int64
		start, stop int64
		values      int64
		want        string
	}{
		{pages: []page{entries(0, 1, 0), entries(1, 1), entries(0, 1)}, rows: []int64{0, 2, 2, 3}, stop: 2, values: 5},
		{pages: []page{entries(0, 1, 0), entries(1, 1), entries(0, 1)}, rows: []int64{0, 2, 2, 3}, start: 2, stop: 3, values: 2},
		{pages: []page{entries(0, 1, 0), entries(1, 1), entries(0, 1)}, rows: []int64{0, 2, 2, 3}, start: 1, stop: 2, values: 3},
		{pages: []page{entries(0, 1, 0), entries(1, 0)}, rows: []int64{0, 2, 3}, start: 2, stop: 3, want: "page 1 at byte 48 of the column: the first repetition level is 1"},
		{pages: []page{entries(0, 1, 0), entries(0, 0)}, rows: []int64{0, 2, 3}, start: 2, stop: 3, want: "page 1 at byte 48 of the column: 2 rows, but 1 in the offset index"},
	} {
		x, data := &parquet.OffsetIndex{Rows: c.rows}, []byte(nil)
		for _, p := range c.pages {
			x.Offsets, data = append(x.Offsets, int64(begin+len(data))), append(data, p.bytes(0)...)
		}
		x.Offsets = append(x.Offsets, int64(begin+len(data)))
		k := &parquet.Chunk{Offset: begin, Data: begin, Length: int64(len(data)), Values: 7, Nulls: -1}
		got, err := decodePages(data, &chunk.Pages{Index: x, Start: c.start, Stop: c.stop}, k, leaf, false)
		if message(err) != c.want || err == nil && got.Values != c.values {
			t.Errorf("got %v, want %q: %+v", err, c.want, got)
		}
	}
}
