package tail_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/tail"
)

func describe(s *arrowmeta.Schema) string {
	var lines []string
	for i := range s.Fields {
		f := &s.Fields[i]
		rows, why := arrowtype.Of(f)
		if why != "" {
			lines = append(lines, fmt.Sprintf("%s: %s", f.Name, f.TypeString()))
			continue
		}
		line := fmt.Sprintf("%s: %s = %v%v", f.Name, f.TypeString(), rows.Type, rows.Shape)
		if rows.Ragged > 0 {
			line += fmt.Sprint(" ragged ", rows.Ragged)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../arrowmeta/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const asArrow = `image: fixed_size_list<float32>[6] = float32[2 3]
tokens: fixed_size_list<int32>[2] = int32[2]
ragged: list<int64> = int64[-1]
label: uint8 = uint8[]
half: float16 = float16[]
text: string = uint8[] ragged 1
raw: fixed_size_binary[2] = uint8[2]
when: timestamp[us, tz=UTC] = int64[]
day: date32[day] = int32[]
clock: time64[us] = int64[]
price: decimal128(12, 2)
pair: struct<x: int32, y: float64>
map: map<string, int32>
yes: bool = bool[]`

// Without Arrow's schema, lists may have any length.
var asParquet = strings.NewReplacer(
	"image: fixed_size_list<float32>[6] = float32[2 3]", "image: list<float32> = float32[-1]",
	"tokens: fixed_size_list<int32>[2] = int32[2]", "tokens: list<int32> = int32[-1]",
).Replace(asArrow)

func TestParquetFooter(t *testing.T) {
	for name, want := range map[string]string{"arrow.parquet": asArrow, "plain.parquet": asParquet} {
		data := readFile(t, name)
		got, err := tail.Read(data, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if text := describe(&got.Schema); text != want || got.Rows != 3 || got.Format != "parquet" || got.Need != 0 {
			t.Errorf("%s: %s of %d rows:\n%s\nwant\n%s", name, got.Format, got.Rows, text, want)
		}
	}
}

// TestTailNeedsNoMoreThanItSays reads tails of increasing length.
func TestTailNeedsNoMoreThanItSays(t *testing.T) {
	for _, name := range []string{"arrow.parquet", "plain.parquet", "fixed.arrow", "nested.arrow", "huggingface.stream", "nothing.arrow"} {
		data := readFile(t, name)
		size := int64(len(data))
		whole, err := tail.Read(data, size)
		if err != nil {
			t.Fatal(name, err)
		}
		for n := range data {
			got, err := tail.Read(data[len(data)-n:], size)
			if err != nil {
				t.Fatalf("%s: the last %d bytes: %v", name, n, err)
			}
			if got.Need > 0 {
				if got.Need <= int64(n) || got.Need > size || len(got.Schema.Fields) > 0 {
					t.Fatalf("%s: the last %d bytes need %d of %d", name, n, got.Need, size)
				}
				continue
			}
			if describe(&got.Schema) != describe(&whole.Schema) {
				t.Fatalf("%s: the last %d bytes say\n%s", name, n, describe(&got.Schema))
			}
		}
	}
}

// TestRowsOfWholeFiles counts the rows of complete files.
func TestRowsOfWholeFiles(t *testing.T) {
	data := readFile(t, "fixed.arrow")
	whole, err := tail.Read(data, int64(len(data)))
	if err != nil || whole.Rows != 5 {
		t.Errorf("%v rows, %v", whole, err)
	}
	tail, err := tail.Read(data[8:], int64(len(data)))
	if err != nil || tail.Rows != -1 || len(tail.Schema.Fields) == 0 {
		t.Errorf("%v rows, %v", tail, err)
	}
}

// footerOf makes the end of a Parquet file from a footer.
func footerOf(footer string) []byte {
	b := append([]byte("PAR1"), footer...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), "PAR1"...)
}

// Structs of Thrift's compact protocol, by hand: a byte of id step << 4 | type
// before each field, a zero at the end.
const (
	oneInt   = "\x15\x02\x38\x01x\x00"        // type INT32, name x
	rows3    = "\x16\x06"                     // field 3: num_rows 3
	root1    = "\x48\x04root\x15\x02\x00"     // name root, num_children 1
	schema1  = "\x29\x2c" + root1 + oneInt    // field 2: two columns
	rootMany = "\x48\x04root\x15\xc8\x01\x00" // num_children 100
)

func TestParquetByHand(t *testing.T) {
	data := footerOf(schema1 + rows3 + "\x00")
	got, err := tail.Read(data, int64(len(data)))
	if err != nil || describe(&got.Schema) != "x: int32 = int32[]" || got.Rows != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// stored is field 5 of a footer, the metadata, with Arrow's schema.
func stored(t *testing.T, columns ...arrow.Field) string {
	t.Helper()
	var stream bytes.Buffer
	if err := ipc.NewWriter(&stream, ipc.WithSchema(arrow.NewSchema(columns, nil))).Close(); err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(stream.Bytes())
	return "\x29\x1c\x18\x0cARROW:schema\x18" + string(binary.AppendUvarint(nil, uint64(len(text)))) + text + "\x00"
}

// Arrow's schema is used only if it lists the columns of the file.
func TestStoredSchemaOfOtherColumns(t *testing.T) {
	column := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int32, Metadata: arrow.NewMetadata([]string{"unit"}, []string{"m"})}
	}
	for name, c := range map[string]struct{ meta, want string }{
		"the same":   {stored(t, column("x")), "m"},
		"other name": {stored(t, column("y")), ""},
		"one more":   {stored(t, column("x"), column("y")), ""},
		"none":       {stored(t), ""},
	} {
		data := footerOf(schema1 + rows3 + c.meta + "\x00")
		got, err := tail.Read(data, int64(len(data)))
		if err != nil {
			t.Fatal(name, err)
		}
		if text, _ := got.Schema.Fields[0].Metadata.Get("unit"); text != c.want || describe(&got.Schema) != "x: int32 = int32[]" {
			t.Errorf("%s: got %q of %s, want %q", name, text, describe(&got.Schema), c.want)
		}
	}
}

func TestParquetRefused(t *testing.T) {
	pair := func(value string) string {
		return "\x29\x1c\x18\x0cARROW:schema\x18" + string(rune(len(value))) + value + "\x00"
	}
	for want, data := range map[string][]byte{
		"the footer of the Parquet file is encrypted; write it with a plain footer": []byte("PAR1xxxx\x04\x00\x00\x00PARE"),
		"a footer of 0 bytes in a file of 12":                                       []byte("PAR1\x00\x00\x00\x00PAR1"),
		"a footer of 4294967295 bytes in a file of 12":                              []byte("PAR1\xff\xff\xff\xffPAR1"),
		"no footer":                                                 []byte("PAR1"),
		"no schema":                                                 footerOf("\x36\x06\x00"),
		"-1 rows":                                                   footerOf(schema1 + "\x00"),
		"-3 rows":                                                   footerOf(schema1 + "\x16\x05\x00"),
		"the footer ends here":                                      footerOf(schema1),
		"a field has type 8 instead of 9":                           footerOf("\x28\x00\x00"),
		"15 elements do not fit into the footer":                    footerOf("\x29\xfc\x0f\x00"),
		"a number has no end":                                       footerOf("\x29\xfc\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		"values are nested deeper than 32":                          footerOf(strings.Repeat("\x7c", 100)),
		"a value has the unknown type 14":                           footerOf("\x7e\x00"),
		"a group has 100 columns, but only 1 are left":              footerOf("\x29\x2c" + rootMany + oneInt + rows3 + "\x00"),
		"1 columns belong to no group":                              footerOf("\x29\x3c" + root1 + oneInt + oneInt + rows3 + "\x00"),
		"ARROW:schema: illegal base64 data at input byte 0":         footerOf(schema1 + rows3 + pair("???") + "\x00"),
		"ARROW:schema: the message is cut short":                    footerOf(schema1 + rows3 + pair("AAAA") + "\x00"),
		"ARROW:schema: a message of 99 bytes, but only 4 are there": footerOf(schema1 + rows3 + pair(base64.StdEncoding.EncodeToString([]byte("\xff\xff\xff\xff\x63\x00\x00\x00abcd"))) + "\x00"),
		"ARROW:schema: offset 1684234849 does not lead forward into the metadata": footerOf(schema1 + rows3 + pair(base64.StdEncoding.EncodeToString([]byte("\xff\xff\xff\xff\x04\x00\x00\x00abcd"))) + "\x00"),
		`column "x" has -1 children and values of 0 bytes`:                        footerOf("\x29\x1c\x48\x01x\x15\x01\x00" + rows3 + "\x00"),
	} {
		_, err := tail.Read(data, int64(len(data)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if code := status.CodeOf(err); code != status.DataLoss && code != status.Unsupported {
			t.Errorf("%v has code %v", err, code)
		}
	}
}

// TestDamagedParquet cuts a footer at every byte, and changes every byte.
func TestDamagedParquet(t *testing.T) {
	data := readFile(t, "arrow.parquet")
	n := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	footer := string(data[len(data)-8-n : len(data)-8])
	for k := range n {
		cut := footerOf(footer[:k])
		if got, err := tail.Read(cut, int64(len(cut))); err == nil {
			t.Fatalf("%d of %d bytes are a footer: %+v", k, n, got)
		}
		changed := []byte(footer)
		changed[k] ^= 0xff
		whole := footerOf(string(changed))
		if got, err := tail.Read(whole, int64(len(whole))); err == nil {
			describe(&got.Schema)
		}
	}
}

func TestTailRefused(t *testing.T) {
	if _, err := tail.Read(make([]byte, 9), 8); err == nil || err.Error() != "tail: 9 bytes are not the last of 8" {
		t.Errorf("got %v", err)
	}
	want := "tail: the file has no footer of Arrow or Parquet at its end, and is too large to be read whole: 1073741824 bytes; a stream of record batches can be looked at with meshfeed inspect"
	if _, err := tail.Read(make([]byte, 100), 1<<30); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	huge := append(binary.LittleEndian.AppendUint32(make([]byte, 50), 1<<25), "ARROW1"...)
	if _, err := tail.Read(huge, 1<<30); err == nil || !strings.Contains(err.Error(), "the footer has 33554432 bytes, but at most 16777216 are read here") {
		t.Errorf("got %v", err)
	}
}

func FuzzTail(f *testing.F) {
	for _, name := range []string{"arrow.parquet", "plain.parquet", "fixed.arrow"} {
		data := readFile(f, name)
		f.Add(data, int64(len(data)))
		f.Add(data[len(data)-min(len(data), 3000):], int64(1<<40))
	}
	f.Add(footerOf(schema1+rows3+"\x00"), int64(1<<20))
	f.Fuzz(func(t *testing.T, data []byte, size int64) {
		got, err := tail.Read(bytes.Clone(data), size)
		if err != nil {
			return
		}
		if got.Need < 0 || got.Need > size || got.Need > 0 && got.Need <= int64(len(data)) {
			t.Errorf("%d of %d bytes need %d", len(data), size, got.Need)
		}
		describe(&got.Schema)
		arrowtype.Describe(&got.Schema)
	})
}
