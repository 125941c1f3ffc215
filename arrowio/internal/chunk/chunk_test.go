package chunk_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding/encodingtest"
	"github.com/meshfeed/meshfeed/internal/thrift/thrifttest"
	"github.com/meshfeed/meshfeed/tests/random"
)

type fields = thrifttest.Struct

const limit = 1 << 20

var (
	required = []parquet.Node{{}}
	optional = []parquet.Node{{Repetition: parquet.Optional, Definition: 1}}
	list     = []parquet.Node{{Repetition: parquet.Optional, Definition: 1}, {Repetition: parquet.Repeated, Definition: 2, Repeat: 1}, {Repetition: parquet.Optional, Definition: 3, Repeat: 1}}
	ints     = parquet.Leaf{Physical: parquet.Int32, Nodes: optional}
)

// page is a page before it is written.
type page struct {
	kind   parquet.PageKind
	n      int // entries
	how    parquet.Encoding
	levels []byte // version 1: with their sizes; version 2: without
	body   []byte
	change fields // replaces fields of the header
	spoil  bool   // the checksum differs
}

// bytes writes the page. Pages of version 2 have no repetition levels.
func (p *page) bytes(codec parquet.Codec) []byte {
	pack := func(data []byte) []byte {
		if codec == parquet.Snappy {
			return s2.EncodeSnappy(nil, data)
		}
		return data
	}
	size := len(p.levels) + len(p.body)
	stored, head := pack(slices.Concat(p.levels, p.body)), fields{}
	how := int32(p.how)
	switch p.kind {
	case parquet.DataPage:
		head[5] = fields{1: int32(p.n), 2: how, 3: int32(parquet.RLE), 4: int32(parquet.RLE)}
	case parquet.DictionaryPage:
		head[7] = fields{1: int32(p.n), 2: how}
	case parquet.DataPageV2:
		stored = slices.Concat(p.levels, pack(p.body))
		head[8] = fields{1: int32(p.n), 2: int32(0), 3: int32(0), 4: how, 5: int32(len(p.levels)), 6: int32(0)}
	}
	crc := crc32.ChecksumIEEE(stored)
	if p.spoil {
		crc++
	}
	head[1], head[2], head[3], head[4] = int32(p.kind), int32(size), int32(len(stored)), int32(crc)
	for id, value := range p.change {
		head[id] = value
	}
	return append(head.Bytes(), stored...)
}

// sized puts the size of levels before them, as version 1 does.
func sized(levels []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...)
}

func int32s(values ...uint32) (out []byte) {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}

// write writes an optional column of 32-bit integers, nil for nulls, in pages of random
// sizes, versions and encodings.
func write(rng *rand.Rand, column []*uint32, codec parquet.Codec) (data []byte) {
	var dictionary []uint32
	for _, v := range column {
		if v != nil && !slices.Contains(dictionary, *v) {
			dictionary = append(dictionary, *v)
		}
	}
	d := page{kind: parquet.DictionaryPage, n: len(dictionary), body: int32s(dictionary...)}
	data = d.bytes(codec)
	for len(column) > 0 {
		p := page{n: min(len(column), 1+rng.IntN(70))}
		var levels, values, indices []uint32
		var deltas []int64
		for _, v := range column[:p.n] {
			if v == nil {
				levels = append(levels, 0)
				continue
			}
			levels, values, deltas = append(levels, 1), append(values, *v), append(deltas, int64(int32(*v)))
			indices = append(indices, uint32(slices.Index(dictionary, *v)))
		}
		switch p.how = random.One(rng, parquet.Plain, parquet.RLEDictionary, parquet.PlainDictionary, parquet.DeltaBinaryPacked); p.how {
		case parquet.Plain:
			p.body = int32s(values...)
		case parquet.DeltaBinaryPacked:
			p.body = encodingtest.Delta(deltas, 128, 4)
		default:
			p.body = append([]byte{9}, encodingtest.Runs(rng, indices, 9)...)
		}
		p.levels = encodingtest.Runs(rng, levels, 1)
		if p.kind = parquet.DataPageV2; rng.IntN(2) == 0 {
			p.kind, p.levels = parquet.DataPage, sized(p.levels)
		}
		data = append(data, p.bytes(codec)...)
		column = column[p.n:]
	}
	return data
}

// TestDecode decodes random columns.
func TestDecode(t *testing.T) {
	rng := random.New(t)
	for range 300 {
		column, nulls := make([]*uint32, rng.IntN(400)), 0
		share := random.One(rng, 0, 0.1, 0.9)
		for i := range column {
			if rng.Float64() < share {
				nulls++
			} else {
				v := rng.Uint32N(500) - 100
				column[i] = &v
			}
		}
		codec := random.One(rng, parquet.Uncompressed, parquet.Snappy)
		data := write(rng, column, codec)
		c := parquet.Chunk{Length: int64(len(data)), Values: int64(len(column)), Nulls: int64(nulls), Codec: codec}
		got, err := chunk.Decode(data, &c, &ints, c.Values, limit)
		if err != nil {
			t.Fatal(err)
		}
		if got.Values != c.Values || got.Present != c.Values-c.Nulls || len(got.Fixed) != 4*len(column) {
			t.Fatalf("%d of %d values in %d bytes", got.Present, got.Values, len(got.Fixed))
		}
		for i, v := range column {
			want := uint32(0)
			if v != nil {
				want = *v
			}
			if binary.LittleEndian.Uint32(got.Fixed[4*i:]) != want || got.Valid.Get(int64(i)) != (v != nil) {
				t.Fatalf("value %d differs", i)
			}
		}
		shape, err := chunk.DecodeShape(data, &c, &ints, c.Values, limit)
		if err != nil || shape.Fixed != nil || !slices.Equal(shape.Valid, got.Valid) {
			t.Fatalf("the shape alone differs: %v", err)
		}
		if c.Nulls++; c.Values > 0 {
			if _, err = chunk.Decode(data, &c, &ints, c.Values, limit); err == nil {
				t.Fatal("a wrong number of nulls was accepted")
			}
		}
	}
}

func TestRefused(t *testing.T) {
	three := sized(encodingtest.PackBits([]uint64{3, 0b111}, 8)) // one group of packed bits
	plain := page{n: 3, levels: three, body: int32s(1, 2, 3)}
	with := func(change func(p *page)) []byte {
		p := plain
		change(&p)
		return p.bytes(parquet.Uncompressed)
	}
	dictionary := page{kind: parquet.DictionaryPage, n: 2, body: int32s(5, 6)}
	index := func(i uint64) []byte {
		p := page{n: 3, levels: three, how: parquet.RLEDictionary, body: append([]byte{2}, encodingtest.PackBits([]uint64{3, i}, 8)...)}
		return slices.Concat(dictionary.bytes(0), append(p.bytes(0), 0))
	}
	base := parquet.Chunk{Values: 3, Nulls: -1}
	for _, c := range []struct {
		data   []byte
		leaf   parquet.Leaf
		change func(c *parquet.Chunk)
		rows   int64
		want   string
	}{
		{data: plain.bytes(0)},
		{data: index(0b010001)},
		{data: nil, want: "page 0 at byte 0 of the column: the column ends 3 values early"},
		{data: plain.bytes(0), change: func(c *parquet.Chunk) { c.Values = 4 }, want: "page 1 at byte 41 of the column: the column ends 1 values early"},
		{data: plain.bytes(0), change: func(c *parquet.Chunk) { c.Values = 2 }, want: "page 0 at byte 0 of the column: 3 values, but the column has only 2 more"},
		{data: plain.bytes(0), rows: 2, want: "3 rows instead of 2"},
		{data: plain.bytes(0), change: func(c *parquet.Chunk) { c.Nulls = 1 }, want: "0 nulls, but 1 in its metadata"},
		{data: plain.bytes(0), change: func(c *parquet.Chunk) { c.Values = limit }, want: "1048576 values take more than 1048576 bytes, the most that are decoded at once"},
		{data: plain.bytes(0), change: func(c *parquet.Chunk) { c.Codec = parquet.LZO }, want: "its pages are compressed with lzo, which is not read"},
		{data: plain.bytes(0), change: func(c *parquet.Chunk) { c.Codec = parquet.Zstd }, want: "page 0 at byte 0 of the column: zstd: invalid input: magic number mismatch"},
		{data: plain.bytes(0), leaf: parquet.Leaf{Physical: 8, Nodes: optional}, want: "its values have the physical type 8"},
		{data: plain.bytes(0)[:30], want: "page 0 at byte 0 of the column: a page of 18 bytes, but the column has only 7 more"},
		{data: plain.bytes(0)[:10], want: "page 0 at byte 0 of the column: a number has no end (at byte 7 of the page header)"},
		{data: with(func(p *page) { p.spoil = true }), want: "page 0 at byte 0 of the column: the checksum differs"},
		{data: with(func(p *page) { p.change = fields{2: int32(limit + 1)} }), want: "page 0 at byte 0 of the column: a page of 1048577 bytes after decompression, more than 1048576"},
		{data: with(func(p *page) { p.change = fields{2: int32(17)} }), want: "page 0 at byte 0 of the column: 18 bytes instead of 17"},
		{data: with(func(p *page) { p.body = int32s(1, 2) }), want: "page 0 at byte 0 of the column: the page ends before its last value"},
		{data: with(func(p *page) { p.levels, p.body = sized(bits(1, 0, 1)), int32s(1) }), want: "page 0 at byte 0 of the column: the page ends before its last value"},
		{data: with(func(p *page) { p.levels = sized([]byte{6}) }), want: "page 0 at byte 0 of the column: definition levels: the page ends before its last value"},
		{data: with(func(p *page) { p.levels = []byte{99, 0, 0, 0} }), want: "page 0 at byte 0 of the column: the levels are longer than the page"},
		{data: with(func(p *page) { p.how = parquet.DeltaByteArray }), want: "page 0 at byte 0 of the column: values of type INT32 in the encoding DELTA_BYTE_ARRAY are not read"},
		{data: with(func(p *page) { p.how = 77 }), want: "page 0 at byte 0 of the column: values of type INT32 in the encoding encoding 77 are not read"},
		{data: with(func(p *page) { p.how = parquet.RLEDictionary }), want: "page 0 at byte 0 of the column: indices into a dictionary that is not there"},
		{data: with(func(p *page) { p.change = fields{5: fields{1: int32(3), 2: int32(0), 3: int32(4), 4: int32(3)}} }), want: "page 0 at byte 0 of the column: levels in the encoding BIT_PACKED are not read"},
		{data: index(0b100001), want: "page 1 at byte 27 of the column: index 2 into a dictionary of 2 values"},
		{data: slices.Concat(dictionary.bytes(0), dictionary.bytes(0)), want: "page 1 at byte 27 of the column: a dictionary that is not the first page"},
		{data: with(func(p *page) { *p = dictionary; p.how = parquet.RLE }), want: "page 0 at byte 0 of the column: a dictionary in the encoding RLE is not read"},
		{data: with(func(p *page) { *p = dictionary; p.n = limit }), want: "page 0 at byte 0 of the column: a dictionary of 1048576 values takes more than 1048576 bytes"},
		{data: with(func(p *page) { *p = dictionary; p.n = 3 }), want: "page 0 at byte 0 of the column: the page ends before its last value"},
		{data: plain.bytes(0), leaf: parquet.Leaf{Physical: parquet.Int32, Nodes: list}, want: "page 0 at byte 0 of the column: definition levels: the page ends before its last value"},
	} {
		stored := base
		if c.change != nil {
			c.change(&stored)
		}
		leaf, rows := ints, stored.Values
		if c.leaf.Nodes != nil {
			leaf = c.leaf
		}
		if c.rows > 0 {
			rows = c.rows
		}
		_, err := chunk.Decode(c.data, &stored, &leaf, rows, limit)
		if text := message(err); text != c.want {
			t.Errorf("got  %s\nwant %s", text, c.want)
		}
		if unsupported := strings.HasSuffix(c.want, "read") || strings.Contains(c.want, "physical type"); unsupported != errors.As(err, new(parquet.Unsupported)) {
			t.Errorf("%v: unsupported is %v", err, !unsupported)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestFirstRepetitionLevel: the first entry of a chunk must begin a row, or the rows of the
// chunk do not match the rows of other columns.
func TestFirstRepetitionLevel(t *testing.T) {
	run := func(value byte) []byte { return sized([]byte{2 << 1, value}) } // twice
	for first, want := range []string{"", "page 0 at byte 0 of the column: the first repetition level is 1"} {
		p := page{n: 2, levels: slices.Concat(run(byte(first)), run(3)), body: int32s(1, 2)}
		_, err := chunk.Decode(p.bytes(0), &parquet.Chunk{Values: 2, Nulls: -1}, &parquet.Leaf{Physical: parquet.Int32, Nodes: list}, 2, limit)
		if message(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestMemory decodes small chunks that promise many values or bytes. The memory is bounded
// by what their pages hold.
func TestMemory(t *testing.T) {
	const large = 1 << 30
	zeros := page{n: 1, levels: sized([]byte{2, 1}), body: int32s(0)}
	for name, c := range map[string]struct {
		data []byte
		leaf parquet.Leaf
	}{
		"values":     {zeros.bytes(0), parquet.Leaf{Physical: parquet.Fixed, Length: 8, Nodes: optional}},
		"text":       {zeros.bytes(0), parquet.Leaf{Physical: parquet.ByteArray, Nodes: optional}},
		"page":       {(&page{n: 1, change: fields{2: int32(large)}}).bytes(parquet.Snappy), ints},
		"dictionary": {(&page{kind: parquet.DictionaryPage, n: large / 8}).bytes(0), ints},
		"levels":     {(&page{n: large / 16, levels: sized([]byte{0x80, 0x80, 0x80, 0x40, 1})}).bytes(0), ints},
	} {
		stored := parquet.Chunk{Values: large / 16, Nulls: -1, Unpacked: large, Codec: parquet.Uncompressed}
		if name == "page" {
			stored.Codec = parquet.Snappy
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := chunk.Decode(c.data, &stored, &c.leaf, stored.Values, large)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 1<<20 {
			t.Errorf("%s: %v, %d bytes were allocated", name, err, used)
		}
	}
}

// TestExpansion decodes chunks of a few hundred bytes that become as many bytes as the limit
// allows: a dictionary of one long value, and indices to it. All that is allocated, which
// bounds the memory in use, is at most twice the limit.
func TestExpansion(t *testing.T) {
	const most = 4 << 20
	for _, size := range []int{25 << 10, most / 16, most / 2, most - 100, 2 * most} {
		for _, physical := range []parquet.Physical{parquet.ByteArray, parquet.Fixed} {
			value, leaf := make([]byte, size), parquet.Leaf{Physical: physical, Nodes: required}
			if leaf.Length = size; physical == parquet.ByteArray {
				leaf.Length, value = 0, append(binary.LittleEndian.AppendUint32(nil, uint32(size)), value...)
			}
			dictionary := page{kind: parquet.DictionaryPage, n: 1, body: value}
			data := dictionary.bytes(parquet.Snappy)
			n := most/size + 1
			for range n {
				data = append(data, (&page{n: 1, how: parquet.RLEDictionary, body: []byte{1, 2, 0}}).bytes(parquet.Snappy)...)
			}
			for _, n := range []int{n / 4, n - 1, n} {
				c := parquet.Chunk{Values: int64(n), Unpacked: 2 * most, Codec: parquet.Snappy}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, _ = chunk.Decode(data, &c, &leaf, c.Values, most)
				runtime.ReadMemStats(&after)
				if used := after.TotalAlloc - before.TotalAlloc; used > 2*most+8*uint64(len(data)) {
					t.Errorf("%v: %d values of %d bytes: %d bytes were allocated", physical, n, size, used)
				}
			}
		}
	}
}

// TestSlots: nulls of two pages have slots, of text without bytes and of booleans with 0.
func TestSlots(t *testing.T) {
	decode := func(physical parquet.Physical, body []byte) *chunk.Column {
		p := page{n: 3, levels: sized(bits(1, 0, 1)), body: body}
		data := slices.Concat(p.bytes(0), p.bytes(0))
		c, err := chunk.Decode(data, &parquet.Chunk{Values: 6, Nulls: 2}, &parquet.Leaf{Physical: physical, Nodes: optional}, 6, limit)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	text := decode(parquet.ByteArray, []byte("\x02\x00\x00\x00ab\x01\x00\x00\x00c")).Bytes
	if string(text.Data) != "abcabc" || !slices.Equal(text.Offsets, []int64{0, 2, 2, 3, 5, 5, 6}) {
		t.Errorf("%q %v", text.Data, text.Offsets)
	}
	if flags := decode(parquet.Boolean, []byte{0b11}).Fixed; !slices.Equal(flags, []byte{1, 0, 1, 1, 0, 1}) {
		t.Error(flags)
	}
}

// TestFixLists: null lists of a fixed size get the elements that Arrow requires.
func TestFixLists(t *testing.T) {
	// [[1 2] null [null 4]]
	p := page{n: 5, levels: slices.Concat(sized(bits(0, 1, 0, 0, 1)), sized(pairs(3, 3, 0, 2, 3))), body: int32s(1, 2, 4)}
	decode := func() *chunk.Column {
		c, err := chunk.Decode(p.bytes(0), &parquet.Chunk{Values: 5, Nulls: -1}, &parquet.Leaf{Physical: parquet.Int32, Nodes: list}, 3, limit)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := decode()
	if err := c.FixLists(0, 2, limit); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Lists[0].Offsets, []int64{0, 2, 4, 6}) || c.Values != 6 || c.Valid[0] != 0b100011 || c.Lists[0].Valid[0] != 0b101 {
		t.Errorf("%v, %d values %08b", c.Lists[0], c.Values, c.Valid)
	}
	if !slices.Equal(c.Fixed, int32s(1, 2, 0, 0, 0, 4)) {
		t.Errorf("values %v", c.Fixed)
	}
	if err := decode().FixLists(0, 3, limit); message(err) != "list 0 has 2 elements instead of 3" {
		t.Error(err)
	}
	if err := decode().FixLists(0, 2, 70); message(err) != "3 lists of 2 elements take more than 70 bytes" {
		t.Error(err)
	}
}

// bits and pairs write one packed group of numbers of 1 and 2 bits.
func bits(levels ...uint64) []byte { return group(1, levels) }

func pairs(levels ...uint64) []byte { return group(2, levels) }

func group(width int, levels []uint64) []byte {
	all := make([]uint64, 8)
	copy(all, levels)
	return append([]byte{3}, encodingtest.PackBits(all, width)...)
}

// FuzzDecode: any pages are decoded or refused.
func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	var column []*uint32
	for i := range uint32(200) {
		if column = append(column, &i); i%7 == 0 {
			column[i] = nil
		}
	}
	f.Add(0, 200, 0, write(rng, column, 0))
	f.Add(1, 200, 1, write(rng, column, 1))
	leaves := []parquet.Leaf{ints, {Physical: parquet.Int64, Nodes: list}, {Physical: parquet.ByteArray, Nodes: optional}, {Physical: parquet.Boolean, Nodes: required}, {Physical: parquet.Fixed, Length: 3, Nodes: list}, {Physical: parquet.Double, Nodes: optional}, {Physical: parquet.Int32, Narrow: 1, Nodes: list}}
	f.Fuzz(func(t *testing.T, leaf, values, codec int, data []byte) {
		if leaf < 0 || leaf >= len(leaves) || values < 0 || values > 10000 {
			return
		}
		c, err := chunk.Decode(data, &parquet.Chunk{Values: int64(values), Nulls: -1, Codec: parquet.Codec(codec)}, &leaves[leaf], int64(values), limit)
		if err != nil {
			return
		}
		if len(c.Fixed) != int(c.Values)*c.Width && leaves[leaf].Physical != parquet.ByteArray {
			t.Errorf("%d values of %d bytes in %d", c.Values, c.Width, len(c.Fixed))
		}
		if len(c.Lists) > 0 {
			_ = c.FixLists(0, 2, limit)
		}
	})
}

// TestEstimateOfText: size statistics say how long text is, and so how much memory it takes.
// Without them, indices into a dictionary count as short text.
func TestEstimateOfText(t *testing.T) {
	text := parquet.Leaf{Physical: parquet.ByteArray, Nodes: required}
	c := parquet.Chunk{Offset: 4, Data: 4, Values: 1 << 20, Unpacked: 1 << 20}
	plain := chunk.Estimate(&c, &text)
	c.Data, c.Lookups = 100, 3
	if got := chunk.Estimate(&c, &text); got != plain+32<<20 {
		t.Errorf("%d bytes for indices, %d for text in the pages", got, plain)
	}
	c.Text = 1 << 30
	if got := chunk.Estimate(&c, &text); got != plain+1<<30-1<<20 {
		t.Errorf("%d bytes for a GiB of text, %d for text in the pages", got, plain)
	}
}
