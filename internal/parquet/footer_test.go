package parquet_test

import (
	"encoding/base64"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/thrift/thrifttest"
)

type fields = thrifttest.Struct

// end is where the footers of these tests begin.
const end = 1000

// leaf is the SchemaElement of a column of 32-bit integers.
func leaf(name string, more fields) fields {
	e := fields{1: int32(1), 3: int32(0), 4: name}
	for id, value := range more {
		e[id] = value
	}
	return e
}

func group(name string, repetition, children int, more fields) fields {
	e := fields{3: int32(repetition), 4: name, 5: int32(children)}
	for id, value := range more {
		e[id] = value
	}
	return e
}

// chunk is a ColumnChunk of 10 values.
func chunk(change fields) fields {
	meta := fields{1: int32(1), 2: []int32{0}, 4: int32(1), 5: int64(10), 6: int64(60), 7: int64(50), 9: int64(104), 11: int64(54), 12: fields{3: int64(2)}, 16: fields{1: int64(70)}}
	for id, value := range change {
		meta[id] = value
	}
	return fields{2: int64(0), 3: meta}
}

// footer is a FileMetaData of one row group of 10 rows.
func footer(schema, chunks []fields) fields {
	root := group("root", 0, len(schema), nil)
	return fields{1: int32(2), 2: append([]fields{root}, schema...), 3: int64(10), 4: []fields{{1: chunks, 2: int64(60), 3: int64(10)}}}
}

func one(change fields) fields { return footer([]fields{leaf("x", nil)}, []fields{chunk(change)}) }

func TestReadFile(t *testing.T) {
	f, err := parquet.ReadFile(one(nil).Bytes(), end)
	if err != nil {
		t.Fatal(err)
	}
	wantChunk := parquet.Chunk{Offset: 54, Length: 50, Values: 10, Nulls: 2, Unpacked: 60, Text: 70, Codec: parquet.Snappy, Data: 104, Lookups: math.MaxInt64}
	want := []parquet.Group{{Rows: 10, Chunks: []parquet.Chunk{wantChunk}}}
	if f.Rows != 10 || !reflect.DeepEqual(f.Groups, want) || len(f.Leaves) != 1 || f.Firsts[0] != 0 {
		t.Errorf("got %+v", f)
	}
	// A file without rows may have chunks with pages at offset 0.
	empty := one(fields{5: int64(0), 9: int64(0)})
	empty[3], empty[4].([]fields)[0][3] = int64(0), int64(0)
	if f, err = parquet.ReadFile(empty.Bytes(), end); err != nil || f.Groups[0].Chunks[0].Length != 0 {
		t.Errorf("%v: %+v", err, f)
	}
}

func TestReadFileRefused(t *testing.T) {
	with := func(id int, value any) fields {
		f := one(nil)
		f[id] = value
		return f
	}
	for _, c := range []struct {
		footer fields
		want   string
	}{
		{with(3, int64(-1)), "-1 rows"},
		{with(3, int64(11)), "the row groups have 1 rows fewer than the file's 11"},
		{with(3, int64(9)), "row group 0 has 10 rows of 9"},
		{with(2, []fields{}), "no schema"},
		{with(2, []fields{group("root", 0, 1, nil)}), "a group has 1 columns, but only 0 are left"},
		{with(2, []fields{group("root", 0, 1, nil), leaf("x", nil), leaf("y", nil)}), "1 columns belong to no group"},
		{footer([]fields{leaf("x", nil), leaf("y", nil)}, []fields{chunk(nil)}), "row group 0: 1 columns of 2"},
		{footer([]fields{group("g", 0, 0, nil)}, nil), `column "g" has neither values nor columns, or an unknown repetition`},
		{footer([]fields{leaf("x", fields{3: int32(3)})}, []fields{chunk(nil)}), `column "x" has neither values nor columns, or an unknown repetition`},
		{footer([]fields{leaf("x", fields{5: int32(-1)})}, []fields{chunk(nil)}), `column "x" has -1 children and values of 0 bytes`},
		{footer([]fields{leaf("x", fields{6: int32(0)})}, []fields{chunk(nil)}), `column "x" has values of type INT32 with the logical type 1`},
		{footer([]fields{leaf("x", fields{10: fields{10: fields{1: int8(64), 2: true}}})}, []fields{chunk(nil)}), `column "x" has values of type INT32 with integers of 64 bits`},
		{footer([]fields{leaf("x", fields{10: fields{7: fields{1: true, 2: fields{4: fields{}}}}})}, []fields{chunk(nil)}), `column "x" has times of an unknown unit`},
		{footer([]fields{leaf("x", fields{10: fields{7: fields{1: true, 2: fields{3: fields{}}}}})}, []fields{chunk(nil)}), `column "x" has values of type INT32 with times in ns`},
		{footer([]fields{leaf("x", fields{1: int32(7), 2: int32(3), 10: fields{15: fields{}}})}, []fields{chunk(fields{1: int32(7)})}), `column "x" has numbers of type float16 in 3 bytes`},
		{one(fields{1: int32(2)}), "row group 0: column 0: values of type INT64 in a column of type INT32"},
		{one(fields{5: int64(9)}), "row group 0: column 0: 9 values for 10 rows"},
		{one(fields{5: int64(11)}), "row group 0: column 0: 11 values for 10 rows"},
		{one(fields{7: int64(-1)}), "row group 0: column 0: -1 bytes at byte 54 lie outside of the data"},
		{one(fields{7: int64(end)}), "row group 0: column 0: 1000 bytes at byte 54 lie outside of the data"},
		{one(fields{9: int64(3)}), "row group 0: column 0: 50 bytes at byte 3 lie outside of the data"},
		{one(fields{9: int64(1 << 62), 11: int64(0)}), "row group 0: column 0: 50 bytes at byte 4611686018427387904 lie outside of the data"},
		{footer([]fields{leaf("x", nil)}, []fields{{}}), "a column has no metadata"},
		{footer([]fields{leaf("x", nil)}, []fields{{1: "other", 3: chunk(nil)[3]}}), `row group 0: column 0: its pages are in another file, "other"`},
		{footer([]fields{leaf("x", nil)}, []fields{{8: fields{}}}), "row group 0: column 0: its pages are encrypted"},
		{with(5, []fields{{1: "ARROW:schema", 2: "?"}}), "ARROW:schema: illegal base64 data at input byte 0"},
		{with(5, []fields{{1: "ARROW:schema", 2: base64.StdEncoding.EncodeToString([]byte("short"))}}), "ARROW:schema: the message is cut short"},
	} {
		_, err := parquet.ReadFile(c.footer.Bytes(), end)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
			continue
		}
		code, _ := parquet.Refuse(err)
		if unsupported := strings.HasSuffix(c.want, "encrypted") || strings.HasSuffix(c.want, "unknown unit") || strings.Contains(c.want, "another file"); unsupported != (code == status.Unsupported) {
			t.Errorf("%v has the code %v", err, code)
		}
	}
}

// TestNestedSchemas: groups that contain each other without end would need a footer
// without end, but a footer may be deep.
func TestNestedSchemas(t *testing.T) {
	var schema []fields
	for range 100 {
		schema = append(schema, group("g", 0, 1, nil))
	}
	_, err := parquet.ReadFile(footer(append(schema[:1:1], append(schema, leaf("x", nil))...), []fields{chunk(nil)}).Bytes(), end)
	if err == nil {
		t.Error("a schema with groups left over was accepted")
	}
	deep := footer(append(schema, leaf("x", nil)), []fields{chunk(nil)})
	deep[2].([]fields)[0] = group("root", 0, 1, nil)
	if _, err = parquet.ReadFile(deep.Bytes(), end); err == nil || err.Error() != "columns nested more than 64 deep" {
		t.Error(err)
	}
}

// TestLists reads lists as writers of different age store them (LogicalTypes.md, "Lists").
func TestLists(t *testing.T) {
	item, pair := leaf("element", nil), []fields{leaf("a", nil), leaf("b", nil)}
	list, old := fields{10: fields{3: fields{}}}, fields{6: int32(3)}
	for _, c := range []struct {
		schema []fields
		want   string
	}{
		{[]fields{group("x", 1, 1, list), group("list", 2, 1, nil), item}, "list<int32>"},
		{[]fields{group("x", 1, 1, old), group("bag", 2, 1, nil), item}, "list<int32>"},
		{[]fields{group("x", 1, 1, old), leaf("element", fields{3: int32(2)})}, "list<int32>"},
		{[]fields{leaf("x", fields{3: int32(2)})}, "list<int32>"},
		{[]fields{group("x", 1, 1, old), group("array", 2, 1, nil), item}, "list<struct<element: int32>>"},
		{[]fields{group("x", 1, 1, old), group("x_tuple", 2, 1, nil), item}, "list<struct<element: int32>>"},
		{append([]fields{group("x", 1, 1, old), group("element", 2, 2, nil)}, pair...), "list<struct<a: int32, b: int32>>"},
		{append([]fields{group("x", 1, 1, fields{6: int32(1)}), group("key_value", 2, 2, nil)}, pair...), "map<int32, int32>"},
		{[]fields{group("x", 1, 1, nil), group("list", 2, 1, nil), item}, "struct<list: list<struct<element: int32>>>"},
	} {
		root := group("root", 0, 1, nil)
		f := fields{2: append([]fields{root}, c.schema...), 3: int64(0)}
		s, _, err := parquet.ReadSchema(f.Bytes())
		if err != nil || s.Fields[0].Type.String() != c.want {
			t.Errorf("%v: got %v, want %s", err, s, c.want)
		}
	}
}

func TestReadPage(t *testing.T) {
	v1 := fields{1: int32(0), 2: int32(90), 3: int32(80), 4: int32(-1), 5: fields{1: int32(10), 2: int32(8), 3: int32(3), 4: int32(4)}}
	p, err := parquet.ReadPage(append(v1.Bytes(), 1, 2, 3))
	want := parquet.Page{Kind: parquet.DataPage, Header: len(v1.Bytes()), Size: 90, Stored: 80, CRC: 1<<32 - 1, HasCRC: true, Values: 10, Compressed: true,
		Encoding: parquet.RLEDictionary, Definitions: parquet.RLE, Repetitions: parquet.BitPacked}
	if err != nil || p != want {
		t.Errorf("%v: got %+v, want %+v", err, p, want)
	}
	v2 := fields{1: int32(3), 2: int32(90), 3: int32(80), 8: fields{1: int32(10), 2: int32(1), 3: int32(9), 4: int32(5), 5: int32(30), 6: int32(40), 7: false}}
	p, err = parquet.ReadPage(v2.Bytes())
	want = parquet.Page{Kind: parquet.DataPageV2, Header: len(v2.Bytes()), Size: 90, Stored: 80, Values: 10, Encoding: parquet.DeltaBinaryPacked, DefinitionBytes: 30, RepetitionBytes: 40}
	if err != nil || p != want {
		t.Errorf("%v: got %+v, want %+v", err, p, want)
	}
	for _, change := range []fields{{2: int32(-1)}, {3: int32(-1)}, {3: int32(69)}, {2: int32(69)}, {8: int32(1)}, {8: fields{5: int32(-1)}}, {8: fields{5: int32(1<<31 - 1), 6: int32(1<<31 - 1)}}, {8: fields{1: int32(-1)}}} {
		bad := fields{1: v2[1], 2: v2[2], 3: v2[3], 8: v2[8]}
		for id, value := range change {
			bad[id] = value
		}
		if _, err := parquet.ReadPage(bad.Bytes()); err == nil {
			t.Errorf("%v was accepted", change)
		}
	}
	delete(v2, 8)
	v2[5] = v1[5]
	if _, err := parquet.ReadPage(v2.Bytes()); err == nil || err.Error() != "a page of type 3 without its header" {
		t.Error(err)
	}
}

// FuzzReadFile: any footer is read or refused, and what is read lies before the footer.
func FuzzReadFile(f *testing.F) {
	f.Add(one(nil).Bytes())
	paths, _ := filepath.Glob("../../arrowio/testdata/parquet/*.parquet")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		offset, n, err := parquet.FooterOf(data, int64(len(data)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[offset:][:n])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parquet.ReadFile(data, end)
		if err != nil {
			return
		}
		rows := int64(0)
		for _, g := range file.Groups {
			rows += g.Rows
			for _, c := range g.Chunks {
				if c.Offset < 4 || c.Length < 0 || c.Offset+c.Length > end || c.Values < 0 {
					t.Errorf("%+v", c)
				}
			}
		}
		if rows != file.Rows || len(file.Firsts) != len(file.Schema.Fields) {
			t.Errorf("%+v", file)
		}
	})
}

// FuzzReadPage: any page header is read or refused.
func FuzzReadPage(f *testing.F) {
	f.Add(fields{1: int32(0), 2: int32(9), 3: int32(8), 5: fields{1: int32(10)}}.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parquet.ReadPage(data)
		if err == nil && (p.Header > len(data) || p.Size < 0 || p.Stored < p.DefinitionBytes+p.RepetitionBytes || p.Values < 0) {
			t.Errorf("%+v", p)
		}
	})
}
