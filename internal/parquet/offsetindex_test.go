package parquet_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/meshfeed/meshfeed/internal/parquet"
)

// location is a PageLocation.
func location(offset int64, bytes int32, row int64) fields {
	return fields{1: offset, 2: bytes, 3: row}
}

// paged is a chunk with a dictionary of 10 bytes and pages of 90.
var paged = parquet.Chunk{Offset: 100, Length: 100, Data: 110}

func TestReadOffsetIndex(t *testing.T) {
	pages := []fields{location(110, 30, 0), location(140, 20, 7), location(160, 5, 7), location(165, 30, 8)}
	x, err := parquet.ReadOffsetIndex(fields{1: pages, 2: []int32{1, 2}}.Bytes(), &paged, 10)
	want := &parquet.OffsetIndex{Offsets: []int64{110, 140, 160, 165, 200}, Rows: []int64{0, 7, 7, 8, 10}}
	if err != nil || !reflect.DeepEqual(x, want) || x.Len() != 4 {
		t.Errorf("%v: got %+v", err, x)
	}
	// A page without rows belongs to the page before it.
	for _, c := range [][4]int64{{0, 10, 0, 4}, {0, 7, 0, 2}, {6, 8, 0, 3}, {7, 8, 2, 3}, {8, 9, 3, 4}, {9, 10, 3, 4}, {2, 3, 0, 1}} {
		if first, last := x.Pages(c[0], c[1]); int64(first) != c[2] || int64(last) != c[3] {
			t.Errorf("rows %d to %d are in the pages %d to %d, want %d to %d", c[0], c[1], first, last, c[2], c[3])
		}
	}
}

func TestReadOffsetIndexRefused(t *testing.T) {
	one := func(p fields) []fields { return []fields{p} }
	for _, c := range []struct {
		index fields
		want  string
	}{
		{fields{}, "an offset index without pages"},
		{fields{1: []fields{}}, "an offset index without pages"},
		{fields{1: []int32{3}}, "a field has type 5 instead of 12 (at byte 2 of the offset index)"},
		{fields{1: one(fields{})}, "the first page of the offset index is at byte -1, but the first page of the column is at byte 110"},
		{fields{1: one(location(100, 50, 0))}, "the first page of the offset index is at byte 100, but the first page of the column is at byte 110"},
		{fields{1: one(location(110, 0, 0))}, "page 0 of the offset index has 0 bytes from byte 110 to 200, in a column from byte 100 to 200"},
		{fields{1: one(location(110, 91, 0))}, "page 0 of the offset index has 91 bytes from byte 110 to 200, in a column from byte 100 to 200"},
		{fields{1: one(location(110, 90, 1))}, "page 0 of the offset index has the rows from 1 to 10 of 10"},
		{fields{1: []fields{location(110, 20, 0), location(120, 20, 5)}}, "page 0 of the offset index has 20 bytes from byte 110 to 120, in a column from byte 100 to 200"},
		{fields{1: []fields{location(110, 20, 0), location(300, 20, 5)}}, "page 0 of the offset index has 20 bytes from byte 110 to 300, in a column from byte 100 to 200"},
		{fields{1: []fields{location(110, 20, 0), location(130, 20, 5), location(150, 9, 4)}}, "page 1 of the offset index has the rows from 5 to 4 of 10"},
		{fields{1: []fields{location(110, 20, 0), location(130, 20, 11)}}, "page 1 of the offset index has the rows from 11 to 10 of 10"},
		{fields{1: []fields{location(110, 20, 0), {1: int64(130), 2: int32(20)}}}, "page 0 of the offset index has the rows from 0 to -1 of 10"},
	} {
		if _, err := parquet.ReadOffsetIndex(c.index.Bytes(), &paged, 10); err == nil || err.Error() != c.want {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

// TestPageIndexOfChunk: what the footer says of pages.
func TestPageIndexOfChunk(t *testing.T) {
	counts := []fields{{1: int32(2), 2: int32(0), 3: int32(1)}, {1: int32(0), 2: int32(8), 3: int32(5)}, {1: int32(0), 2: int32(0), 3: int32(7)}, {1: int32(3), 2: int32(2), 3: int32(1)}}
	for _, c := range []struct {
		index any
		bytes any
		want  [2]int64
	}{
		{int64(200), int32(30), [2]int64{200, 30}},
		{int64(end - 30), int32(30), [2]int64{end - 30, 30}},
		{int64(end - 29), int32(30), [2]int64{}}, // in the footer
		{int64(3), int32(30), [2]int64{}},
		{int64(200), int32(-1), [2]int64{}},
		{int64(1<<63 - 1), int32(1<<31 - 1), [2]int64{}},
	} {
		k := chunk(fields{13: counts})
		k[4], k[5] = c.index, c.bytes
		f, err := parquet.ReadFile(footer([]fields{leaf("x", nil)}, []fields{k}).Bytes(), end)
		if err != nil {
			t.Fatal(err)
		}
		got := f.Groups[0].Chunks[0]
		if got.Data != 104 || got.Lookups != 6 || [2]int64{got.Index, int64(got.IndexBytes)} != c.want {
			t.Errorf("got %+v, want the index at %v", got, c.want)
		}
	}
}

// FuzzReadOffsetIndex: any index is read or refused, and what is read lies within the chunk.
func FuzzReadOffsetIndex(f *testing.F) {
	f.Add(fields{1: []fields{location(110, 30, 0), location(140, 20, 7)}}.Bytes(), int64(100), int64(100), int64(110), int64(10))
	paths, _ := filepath.Glob("../../arrowio/testdata/parquet/paged*.parquet")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		offset, n, err := parquet.FooterOf(data, int64(len(data)))
		if err != nil {
			f.Fatal(err)
		}
		meta, err := parquet.ReadFile(data[offset:][:n], offset)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range meta.Groups[1].Chunks[:3] {
			f.Add(data[c.Index:][:c.IndexBytes], c.Offset, c.Length, c.Data, meta.Groups[1].Rows)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, offset, length, first, rows int64) {
		c := parquet.Chunk{Offset: offset & (1<<50 - 1), Length: length & (1<<50 - 1), Data: first, Values: rows}
		x, err := parquet.ReadOffsetIndex(data, &c, rows)
		if err != nil {
			return
		}
		n := x.Len()
		if n < 1 || x.Offsets[0] != c.Data || x.Offsets[n] != c.Offset+c.Length || x.Rows[0] != 0 || x.Rows[n] != rows {
			t.Fatalf("%+v of %+v", x, c)
		}
		for i := range n {
			if x.Offsets[i] < c.Offset || x.Offsets[i] >= x.Offsets[i+1] || x.Rows[i] > x.Rows[i+1] {
				t.Fatalf("page %d of %+v", i, x)
			}
		}
		for start := int64(0); start < min(rows, 50); start++ {
			first, last := x.Pages(start, start+1)
			if first >= last || x.Rows[first] > start || x.Rows[last] < start+1 {
				t.Fatalf("row %d is in the pages %d to %d of %+v", start, first, last, x)
			}
		}
	})
}
