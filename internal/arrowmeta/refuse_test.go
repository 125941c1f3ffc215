package arrowmeta_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// The columns of the tests below: int32, and lists of 3 float32.
func int32Field(name string) fields {
	return field(name, 2, fields{4: int32(32), 6: true})
}

func tripleField(name string) fields {
	return field(name, 16, fields{4: int32(3)}, field("item", 3, fields{4: int16(1)}))
}

var (
	columnsAB  = schemaOf(int32Field("a"), tripleField("b"))
	nodesAB    = numbers(2, 2, 0, 2, 0, 6, 0)
	buffersAB  = numbers(2, 0, 0, 0, 8, 8, 0, 8, 0, 8, 24)
	validAB    = batchOf(2, nodesAB, buffersAB)
	bodyAB     = 32
	withSchema = func(schema fields) []byte { return streamOf(schema, 0) }
	withBatch  = func(batch fields) []byte { return streamOf(columnsAB, bodyAB, validAB, batch) }
	withFooter = func(change func(fields)) []byte { return fileOf(columnsAB, bodyAB, change, validAB, validAB) }
)

// with returns a copy of a table with one field set.
func with(t fields, slot int, value any) fields {
	c := fields{}
	for s, v := range t {
		c[s] = v
	}
	c[slot] = value
	return c
}

func TestValidDataAreAccepted(t *testing.T) {
	for name, data := range map[string][]byte{
		"stream": withBatch(validAB), "file": withFooter(nil),
		"file with batches out of order": withFooter(func(f fields) {
			v := f[10].(vec)
			f[10] = vec{Count: 2, Data: append(append([]byte{}, v.Data[24:]...), v.Data[:24]...)}
		}),
	} {
		if err := examine(t, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefused has one case for every check, with the whole message.
func TestRefused(t *testing.T) {
	const (
		damaged = "; the data are damaged or cut short; write them again"
		again   = "; write it again, for example with pyarrow.ipc.new_file"
		first   = "message 0 at byte 0: "
		second  = "record batch 1 at byte 504: "
		footer  = "footer at byte 512: "
	)
	blocks := func(values ...int64) []byte {
		return withFooter(func(f fields) { f[10] = numbers(3, values...) })
	}
	deep := int32Field("leaf")
	for range arrowmeta.MaxDepth {
		deep = field("list", 12, fields{}, deep)
	}
	whole := withBatch(validAB)
	views := schemaOf(field("v", 24, fields{}))
	viewsOf := func(counts vec) []byte {
		return streamOf(views, 16, with(batchOf(1, numbers(2, 1, 0), numbers(2, 0, 0, 0, 16, 16, 0)), 12, counts))
	}
	pair := schemaOf(field("p", 13, fields{}, int32Field("x")))
	sparseUnion := schemaOf(field("u", 14, fields{}, int32Field("x")))
	huge := schemaOf(field("x", 16, fields{4: int32(1 << 30)}, int32Field("y")))
	short := numbers(2, 2, 0, 1, 0) // a child of 1 value for 2 rows
	unionsV4 := framed(flat(with(message(1, sparseUnion, 0), 4, int16(3))), 0)
	unionsV4 = append(append(unionsV4, framed(flat(message(3, batchOf(0, short, numbers(2)), 0)), 0)...), endOfStream...)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"no end marker", whole[:len(whole)-8], "message 3 at byte 752: the stream has no end-of-stream marker; it was cut short, or its writer was not closed: write or download it again"},
		{"half an end marker", whole[:len(whole)-4], "message 3 at byte 752: the stream has no end-of-stream marker; it was cut short, or its writer was not closed: write or download it again"},
		{"two streams", append(whole[:len(whole):len(whole)], whole...), "message 3 at byte 752: 760 bytes follow the end of the stream; streams that were joined must be taken apart"},
		{"no schema", endOfStream, first + "the stream has no schema" + damaged},
		{"two schemas", append(whole[:len(whole)-8:len(whole)-8], whole...), "message 3 at byte 752: a schema; a stream has one schema, as its first message" + damaged},
		{"batch first", append(framed(flat(message(3, validAB, 0)), 0), endOfStream...), first + "a record batch; a stream has one schema, as its first message" + damaged},
		{"tensor", append(append(whole[:len(whole)-8:len(whole)-8], framed(flat(message(4, fields{}, 0)), 0)...), endOfStream...), "message 3 at byte 752: a tensor; only record batches can be read"},
		{"body beyond the end", whole[:len(whole)-16], "message 2 at byte 504: the body takes 32 bytes, but only 24 are left" + damaged},
		{"huge metadata", append([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x10}, whole...), first + "metadata of 268435456 bytes" + damaged},
		{"negative metadata", []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x80}, first + "metadata of -2147483648 bytes" + damaged},
		{"metadata beyond the end", []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 0}, first + "the metadata take 65536 bytes, but only 1 are left" + damaged},
		{"version", append(framed(flat(with(message(1, columnsAB, 0), 4, int16(2))), 0), endOfStream...), first + "metadata version 3 is not V4 or V5 (at byte 16 of the metadata)" + again},
		{"no header", append(framed(flat(fields{4: int16(4), 6: uint8(1)}), 0), endOfStream...), first + "message without a header (at byte 0 of the metadata)" + damaged},
		{"negative body", append(framed(flat(message(1, columnsAB, -1)), 0), endOfStream...), first + "body of -1 bytes (at byte 0 of the metadata)" + damaged},

		{"deep", withSchema(schemaOf(deep)), first + "fields nested more than 64 deep (at byte 3767 of the metadata)" + again},
		{"field without a type", withSchema(schemaOf(fields{4: "x", 8: uint8(2)})), first + `field "x" has no type (at byte 69 of the metadata)` + damaged},
		{"list without a child", withSchema(schemaOf(field("x", 12, fields{}))), first + `field "x" of type list has 0 children instead of 1 (at byte 75 of the metadata)` + damaged},
		{"number with a child", withSchema(schemaOf(field("x", 2, fields{4: int32(8)}, int32Field("y")))), first + `field "x" of type int has 1 children instead of 0 (at byte 75 of the metadata)` + damaged},
		{"negative list", withSchema(schemaOf(field("x", 16, fields{4: int32(-3)}, int32Field("y")))), first + "negative size -3 in a type (at byte 104 of the metadata)" + damaged},
		{"too many fields", withSchema(fields{6: vec{Count: 1 << 30}}), first + "1073741824 elements of 4 bytes do not fit into the metadata (at byte 51 of the metadata)" + damaged},
		{"name out of bounds", withSchema(schemaOf(with(int32Field("x"), 4, offset(1<<20)))), first + "offset 1048576 does not lead forward into the metadata (at byte 79 of the metadata)" + damaged},
		{"name at zero", withSchema(schemaOf(with(int32Field("x"), 4, offset(0)))), first + "offset 0 does not lead forward into the metadata (at byte 79 of the metadata)" + damaged},

		{"negative rows", withBatch(with(validAB, 4, int64(-1))), second + "-1 rows" + damaged},
		{"endless rows", withBatch(with(validAB, 4, int64(math.MaxInt64))), second + "9223372036854775807 rows" + damaged},
		{"rows and values", withBatch(with(validAB, 4, int64(1))), second + `column "a" has 2 values, but the batch has 1 rows` + damaged},
		{"nodes missing", withBatch(with(validAB, 6, numbers(2, 2, 0))), second + "1 nodes, but the schema needs 3" + damaged},
		{"buffers missing", withBatch(with(validAB, 8, numbers(2, 0, 0))), second + "1 buffers, but the schema needs 5" + damaged},
		{"buffers too many", withBatch(with(validAB, 8, numbers(2, 0, 0, 0, 8, 8, 0, 8, 0, 8, 24, 0, 0))), second + "6 buffers, but the schema needs 5" + damaged},
		{"view counts", withBatch(with(validAB, 12, numbers(1, 0))), second + "1 counts of data buffers, but 0 view columns" + damaged},
		{"negative length", withBatch(with(validAB, 6, numbers(2, 2, 0, -2, 0, 6, 0))), second + `column "b": 0 nulls among -2 values` + damaged},
		{"too many nulls", withBatch(with(validAB, 6, numbers(2, 2, 3, 2, 0, 6, 0))), second + `column "a": 3 nulls among 2 values` + damaged},
		{"nulls without a bitmap", withBatch(with(validAB, 6, numbers(2, 2, 1, 2, 0, 6, 0))), second + `column "a": buffer 0 has 0 bytes, too few for 2 values` + damaged},
		{"short values", withBatch(with(validAB, 8, numbers(2, 0, 0, 0, 7, 8, 0, 8, 0, 8, 24))), second + `column "a": buffer 1 has 7 bytes, too few for 2 values` + damaged},
		{"short child", withBatch(with(validAB, 6, numbers(2, 2, 0, 2, 0, 5, 0))), second + `column "b": child "item" has 5 values instead of 6` + damaged},
		{"buffer before the body", withBatch(with(validAB, 8, numbers(2, 0, 0, -8, 8, 8, 0, 8, 0, 8, 24))), second + "buffer 1 of 8 bytes at -8 lies outside the body of 32 bytes" + damaged},
		{"buffer behind the body", withBatch(with(validAB, 8, numbers(2, 0, 0, 0, 8, 8, 0, 8, 0, 16, 24))), second + "buffer 4 of 24 bytes at 16 lies outside the body of 32 bytes" + damaged},
		{"buffer that wraps", withBatch(with(validAB, 8, numbers(2, 0, 0, 0, 8, 8, 0, 8, 0, 16, math.MaxInt64))), second + "buffer 4 of 9223372036854775807 bytes at 16 lies outside the body of 32 bytes" + damaged},
		{"negative buffer", withBatch(with(validAB, 8, numbers(2, 0, 0, 0, -8, 8, 0, 8, 0, 8, 24))), second + "buffer 1 of -8 bytes at 0 lies outside the body of 32 bytes" + damaged},
		{"codec", withBatch(with(validAB, 10, fields{4: uint8(2)})), second + "unknown compression 2, method 0 (at byte 213 of the metadata)" + again},
		{"codec method", withBatch(with(validAB, 10, fields{6: uint8(1)})), second + "unknown compression 0, method 1 (at byte 215 of the metadata)" + again},
		{"compressed bitmap without a size", withBatch(with(with(with(validAB, 10, fields{}), 6, numbers(2, 2, 1, 2, 0, 6, 0)), 8, numbers(2, 0, 7, 0, 8, 8, 0, 8, 0, 8, 24))), second + `column "a": buffer 0 has 7 bytes, too few for 2 values` + damaged},
		{"compressed bitmap of nothing", withBatch(with(with(validAB, 10, fields{}), 8, numbers(2, 0, 1, 0, 8, 8, 0, 8, 0, 8, 24))), second + `column "a": buffer 0 has 1 bytes, too few for 2 values` + damaged},
		{"compressed without a size", withBatch(with(with(validAB, 10, fields{}), 8, numbers(2, 0, 0, 0, 7, 8, 0, 8, 0, 8, 24))), second + `column "a": buffer 1 has 7 bytes, too few for 2 values` + damaged},

		{"view with too many buffers", viewsOf(numbers(1, 4)), "record batch 0 at byte 120: 4 data buffers of a view column" + damaged},
		{"view with negative buffers", viewsOf(numbers(1, -1)), "record batch 0 at byte 120: -1 data buffers of a view column" + damaged},
		{"view without a count", viewsOf(numbers(1)), "record batch 0 at byte 120: 0 counts of data buffers, but 1 view columns" + damaged},
		{"short struct", streamOf(pair, 8, batchOf(2, short, numbers(2, 0, 0, 0, 0, 0, 8))), "record batch 0 at byte 184: column \"p\": child \"x\" has 1 values instead of 2" + damaged},
		{"short sparse union", streamOf(sparseUnion, 8, batchOf(2, short, numbers(2, 0, 2, 0, 0, 0, 8))), "record batch 0 at byte 184: column \"u\": child \"x\" has 1 values instead of 2" + damaged},
		{"lists that wrap", streamOf(huge, 0, batchOf(1<<34, numbers(2, 1<<34, 0, 0, 0), numbers(2, 0, 0, 0, 0, 0, 0))), "record batch 0 at byte 192: column \"x\": 17179869184 lists of 1073741824 values" + damaged},
		{"unions of two versions", unionsV4, "record batch 0 at byte 184: metadata version 5 differs from the version of the schema, which has unions or run-end encoding (at byte 0 of the metadata)" + damaged},

		{"no trailer", []byte("ARROW1\x00\x00"), "end of the file at byte 0: no footer; it was cut short, or its writer was not closed: write or download it again"},
		{"other trailer", append(withFooter(nil), 0), `end of the file at byte 809: no footer: the last bytes are "RROW1\x00" instead of "ARROW1"; it was cut short, or its writer was not closed: write or download it again`},
		{"no footer schema", withFooter(func(f fields) { delete(f, 6) }), footer + "no schema (at byte 0 of the metadata)" + damaged},
		{"footer version", withFooter(func(f fields) { f[4] = int16(9) }), footer + "metadata version 10 is not V4 or V5 (at byte 16 of the metadata)" + again},
		{"long footer", footerSize(withFooter(nil), 1<<20), "end of the file at byte 808: a footer of 1048576 bytes in a file of 818" + damaged},
		{"negative footer", footerSize(withFooter(nil), -1), "end of the file at byte 808: a footer of -1 bytes in a file of 818" + damaged},
		{"block at the magic", blocks(0, 216, 32), footer + "record batch 0 of 216 + 32 bytes at byte 0 lies outside the data" + damaged},
		{"block behind the end", blocks(8, 216, 1<<20), footer + "record batch 0 of 216 + 1048576 bytes at byte 8 lies outside the data" + damaged},
		{"block beyond all files", blocks(math.MaxInt64, math.MaxInt32, 32), footer + "record batch 0 of 2147483647 + 32 bytes at byte 9223372036854775807 lies outside the data" + damaged},
		{"block that wraps", blocks(8, 216, math.MaxInt64), footer + "record batch 0 of 216 + 9223372036854775807 bytes at byte 8 lies outside the data" + damaged},
		{"block with a negative body", blocks(8, 216, -8), footer + "record batch 0 of 216 + -8 bytes at byte 8 lies outside the data" + damaged},
		{"blocks that overlap", blocks(8, 216, 32, 16, 216, 32), footer + "two record batches overlap at byte 16" + damaged},
		{"block of another size", blocks(8, 224, 32), "record batch 0 at byte 8: metadata of 208 bytes, but the footer says 216" + damaged},
		{"block without a message", blocks(16, 208, 32), "record batch 0 at byte 16: metadata of 16 bytes, but the footer says 204" + damaged},
		{"body smaller than the message's", blocks(8, 216, 24), "record batch 0 at byte 8: a body of 32 bytes, but the footer says 24" + damaged},
		{"body of the footer", withFooter(func(f fields) { f[10] = f[10].(vec); f[8] = f[10] }), "dictionary batch 0 at byte 8: a record batch" + damaged},
	} {
		err := examine(t, c.data)
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		mustBeClear(t, err)
		if got := strings.TrimPrefix(err.Error(), "arrowmeta: "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func footerSize(file []byte, n int32) []byte {
	binary.LittleEndian.PutUint32(file[len(file)-10:], uint32(n))
	return file
}

// TestSizesAreCapped: a footer, a message or a schema beyond the bounds is refused
// before it is read, however large the file is.
func TestSizesAreCapped(t *testing.T) {
	trailer := func(footer uint32) []byte {
		return append(binary.LittleEndian.AppendUint32(make([]byte, 6), footer), "ARROW1"...)
	}
	const size = 1 << 30
	file := sparse{size, map[int64][]byte{0: []byte("ARROW1\x00\x00"), size - 16: trailer(arrowmeta.MaxFooter + 1)}, 16}
	_, err := arrowmeta.Read(&counting{ReaderAt: file}, size)
	want := "arrowmeta: end of the file at byte 1073741814: a footer of 268435457 bytes, but at most 268435456 are read; write larger record batches"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}

	footer := flat(fields{4: int16(4), 6: columnsAB, 10: numbers(3, 8, arrowmeta.MaxMessage+1, 0)})
	end := append(append(make([]byte, 4096-10-len(footer)), footer...), trailer(uint32(len(footer)))[6:]...)
	file = sparse{size, map[int64][]byte{0: []byte("ARROW1\x00\x00"), size - 4096: end}, 4096}
	f, err := arrowmeta.Read(file, size)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Batch(file, 0)
	want = "arrowmeta: record batch 0 at byte 8: metadata of 67108865 bytes; the data are damaged or cut short; write them again"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}

	// MaxFields references to one field. The unused bytes raise the bound on shared objects.
	many := fields{4: "x", 8: uint8(13), 10: fields{}, 14: shared{N: arrowmeta.MaxFields, T: int32Field("y")}, 16: []fields{{4: "k", 6: strings.Repeat("-", 8<<20)}}}
	err = examine(t, streamOf(schemaOf(many), 0))
	if err == nil || !strings.Contains(err.Error(), "more than 262144 fields") {
		t.Errorf("got %v", err)
	}
}

// TestBrokenTables damages the field list of the first table, byte by byte, in the
// middle of the metadata and at their end.
func TestBrokenTables(t *testing.T) {
	for _, c := range []struct {
		name string
		meta []byte
		want string
	}{
		{"odd field list", []byte{8, 0, 0, 0, 0, 0, 0, 0, 252, 255, 255, 255, 5, 0, 4, 0, 4}, "broken field list (at byte 8"},
		{"field list beyond the end", []byte{8, 0, 0, 0, 0, 0, 0, 0, 252, 255, 255, 255, 16, 0, 4, 0}, "broken field list (at byte 8"},
		{"field list before the start", []byte{4, 0, 0, 0, 64, 0, 0, 0}, "without a field list (at byte 4"},
		{"field in the table's head", []byte{12, 0, 0, 0, 6, 0, 8, 0, 2, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0}, "outside its table (at byte 12"},
		{"table shorter than its head", []byte{8, 0, 0, 0, 4, 0, 2, 0, 4, 0, 0, 0}, "broken field list (at byte 8"},
		{"table beyond the end", []byte{8, 0, 0, 0, 4, 0, 8, 0, 4, 0, 0, 0}, "broken field list (at byte 8"},
		{"no table", []byte{0, 0, 0, 0, 0, 0, 0, 0}, "offset 0 does not lead forward into the metadata (at byte 0"},
		{"three bytes", []byte{4, 0, 0}, "offset outside the metadata (at byte 0"},
	} {
		err := examine(t, append(framed(c.meta, 0), endOfStream...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}
