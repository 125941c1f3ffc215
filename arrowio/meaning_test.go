package arrowio_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/tensors"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta/arrowmetatest"
	"github.com/meshfeed/meshfeed/internal/thrift/thrifttest"
)

type (
	flat   = arrowmetatest.Table
	thrift = thrifttest.Struct
)

// again is the remedy for what is not read.
const again = "; write it again, for example with pyarrow.ipc.new_file"

// TestMeaning lists the places where each format says what the bytes of values mean. What is not
// known there is refused or applied: a reader that skips it delivers other values.
func TestMeaning(t *testing.T) {
	const plain = "int32[] 0100000002000000"
	for _, c := range []struct{ place, file, want string }{
		// Arrow IPC: metadata of messages, footers and schemas
		{"Arrow 0.17: compression", ipcFile17("LZ4"), plain},
		{"Arrow 0.17: compression", ipcFile17("ZSTD"), plain},
		{"Arrow 0.17: compression", ipcFile17("snappy"), `Unsupported: record batch 0: unknown compression "snappy"` + again},
		{"Arrow 0.17: checksum", flipped(ipcFile17("LZ4")), `DataLoss: field "x": record batch 0: lz4: lz4: invalid frame checksum: got 7c430592; expected 690b83db; the data are damaged; write them again`},
		{"Arrow 0.17: checksum", flipped(ipcFile17("ZSTD")), `DataLoss: field "x": record batch 0: zstd: CRC check failed; the data are damaged; write them again`},
		{"metadata of a message", stream(func(f *ipcParts) { f.batchMessage[12] = pair("ARROW:later") }), `Unsupported: message 1: the key "ARROW:later" of the message is not known here` + again},
		{"metadata of a message", stream(func(f *ipcParts) { f.schemaMessage[12] = pair("ARROW:later") }), `Unsupported: message 0: the key "ARROW:later" of the message is not known here` + again},
		{"metadata of a message", stream(func(f *ipcParts) { f.batchMessage[12] = pair("note") }), plain},
		{"metadata of a footer", ipcFooter(func(f flat) { f[12] = pair("ARROW:later") }), `Unsupported: footer: the key "ARROW:later" of the footer is not known here` + again},
		{"metadata of a schema", stream(func(f *ipcParts) { f.schema[8] = pair("ARROW:later") }), `skipped: the metadata of the schema have the key "ARROW:later", which is not known here; write the data without it`},
		{"metadata of a field", stream(func(f *ipcParts) { f.field[16] = pair("ARROW:later") }), `skipped: its metadata have the key "ARROW:later", which is not known here; write the column without it`},
		{"metadata of a field", stream(func(f *ipcParts) { f.field[16] = pair("ARROW:FLIGHT:SQL:TABLE_NAME") }), plain},
		{"endianness", stream(func(f *ipcParts) { f.schema[4] = int16(1) }), "Unsupported: the values are big-endian; write the file on a little-endian machine"},
		{"endianness", stream(func(f *ipcParts) { f.schema[4] = int16(2) }), "Unsupported: message 0: endianness 2" + again},
		{"features", stream(func(f *ipcParts) { f.schema[10] = arrowmetatest.Numbers(1, 1, 2) }), plain},
		{"features", stream(func(f *ipcParts) { f.schema[10] = arrowmetatest.Numbers(1, 3) }), "Unsupported: message 0: feature 3 of the schema is not known here" + again},
		{"version", stream(func(f *ipcParts) { f.schemaMessage[4] = int16(2) }), "Unsupported: message 0: metadata version 3 is not V4 or V5" + again},
		{"version", ipcFooter(func(f flat) { f[4] = int16(5) }), "Unsupported: footer: metadata version 6 is not V4 or V5" + again},
		{"kind of a message", stream(func(f *ipcParts) { f.batchMessage[6] = uint8(6) }), "Unsupported: message 1: a message of unknown kind 6" + again},
		{"kind of a message", stream(func(f *ipcParts) { f.batchMessage[6] = uint8(4) }), "Unsupported: message 1: a tensor; only record batches can be read"},
		{"codec", stream(func(f *ipcParts) { f.batch[10] = flat{4: uint8(2)} }), "Unsupported: record batch 0: unknown compression 2, method 0" + again},
		{"method of compression", stream(func(f *ipcParts) { f.batch[10] = flat{6: uint8(1)} }), "Unsupported: record batch 0: unknown compression 0, method 1" + again},
		{"variadic buffers", stream(func(f *ipcParts) { f.batch[12] = arrowmetatest.Numbers(1, 1) }), `DataLoss: record batch 0: 1 counts of data buffers, but 0 view columns; the data are damaged or cut short; write them again`},

		// Arrow IPC: fields that later versions add to a table
		{"new field", stream(func(f *ipcParts) { f.batchMessage[14] = int16(1) }), "Unsupported: message 1: field 6 of the table Message is not known here" + again},
		{"new field", stream(func(f *ipcParts) { f.schema[12] = int16(1) }), "Unsupported: message 0: field 5 of the table Schema is not known here" + again},
		{"new field", stream(func(f *ipcParts) { f.field[18] = int16(1) }), "Unsupported: message 0: field 8 of the table Field is not known here" + again},
		{"new field", stream(func(f *ipcParts) { f.typ[8] = int16(1) }), "Unsupported: message 0: field 3 of the table of the type int is not known here" + again},
		{"new field", stream(func(f *ipcParts) { f.batch[14] = int16(1) }), "Unsupported: record batch 0: field 6 of the table RecordBatch is not known here" + again},
		{"new field", stream(func(f *ipcParts) { f.batch[10] = flat{8: int16(1)} }), "Unsupported: record batch 0: field 3 of the table BodyCompression is not known here" + again},
		{"new field", ipcFooter(func(f flat) { f[14] = int16(1) }), "Unsupported: footer: field 6 of the table Footer is not known here" + again},
		{"new field", stream(func(f *ipcParts) { f.field[12] = flat{12: int16(1)} }), "Unsupported: message 0: field 5 of the table DictionaryEncoding is not known here" + again},
		{"new field", dictionary(func(batch, _ flat) { batch[10] = int16(1) }), "Unsupported: dictionary batch 0: field 4 of the table DictionaryBatch is not known here" + again},

		// Arrow IPC: dictionaries, and types with other layouts
		{"order of a dictionary", dictionary(func(_, encoding flat) { encoding[8] = true }), "int32[] 0900000008000000"},
		{"kind of a dictionary", dictionary(func(_, encoding flat) { encoding[10] = int16(1) }), "Unsupported: message 0: dictionary kind 1 is not known here" + again},
		{"delta of a dictionary", dictionary(func(batch, _ flat) { batch[8] = true }), "int32[] 0900000008000000"},
		{"mode of a union", ipcType(14, flat{4: int16(2)}), "Unsupported: message 0: mode 2 of a union" + again},
		{"unit", ipcType(10, flat{4: int16(7)}), "skipped: arrays have no type timestamp[?]; cast it to int64 or float64, or leave it out"},
		{"unit", ipcType(9, flat{4: int16(7)}), "skipped: arrays have no type time32[?]; cast it to int64 or float64, or leave it out"},
		{"precision", ipcType(3, flat{4: int16(3)}), "skipped: arrays have no type float0; cast it to int64 or float64, or leave it out"},
		{"width", ipcType(2, flat{4: int32(24)}), "skipped: arrays have no type uint24; cast it to int64 or float64, or leave it out"},
		{"layout", ipcType(27, flat{}), "skipped: its type is not known here; cast it to a type of numbers, or leave it out"},

		// Arrow: extension types
		{"extension type", extension("arrow.bool8", ""), "skipped: its extension type arrow.bool8 stores booleans as int8; cast it to bool"},
		{"extension type", extension("acme.scaled", ""), `skipped: its extension type "acme.scaled" is not known here, so that its int32 may stand for other values; write the column without the extension type`},
		{"extension type", extension("arrow.py_extension_type", "pickle"), `skipped: its extension type "arrow.py_extension_type" is not known here, so that its int32 may stand for other values; write the column without the extension type`},
		{"extension type", extension("arrow.py_extension_type", "datasets.features.features Array2D"), plain},
		{"extension type", extension("awkward", "{}"), plain},
		{"extension type of lists", stream(func(f *ipcParts) {
			f.field[16] = extensionOf("acme.vector", "")
			f.listOf(1)
		}), `skipped: its extension type "acme.vector" is not known here, so that its fixed_size_list<int32>[1] may stand for other values; write the column without the extension type`},
		{"extension type of lists", stream(func(f *ipcParts) {
			f.field[16] = extensionOf("arrow.fixed_shape_tensor", `{"shape":[1,1]}`)
			f.listOf(1)
		}), "int32[1 1] 0100000002000000"},
		{"extension type of bytes", stream(func(f *ipcParts) {
			f.field[8], f.typ[4], f.field[16] = uint8(15), int32(4), extensionOf("acme.address", "")
			delete(f.typ, 6)
		}), "uint8[4] 0100000002000000"},

		// Parquet: the file
		{"encrypted footer", strings.TrimSuffix(parquetFile(nil), "PAR1") + "PARE", "Unsupported: the footer of the Parquet file is encrypted; write it with a plain footer, or as an Arrow IPC file"},
		{"encrypted column", parquetFile(func(f *parquetParts) { f.chunk[8] = thrift{1: thrift{}} }), "Unsupported: footer: row group 0: column 0: its pages are encrypted; write the file without it, or as an Arrow IPC file"},
		{"other file", parquetFile(func(f *parquetParts) { f.chunk[1] = "other" }), `Unsupported: footer: row group 0: column 0: its pages are in another file, "other"; write the file without it, or as an Arrow IPC file`},
		{"version", parquetFile(func(f *parquetParts) { f.footer[1] = int32(2) }), plain},
		{"version", parquetFile(func(f *parquetParts) { f.footer[1] = int32(3) }), "Unsupported: footer: version 3 of the format is not read; write the file without it, or as an Arrow IPC file"},
		{"orders of columns", parquetFile(func(f *parquetParts) { f.footer[7] = []thrift{{2: thrift{}}} }), plain}, // least and greatest values are not read
		{"codec", parquetFile(func(f *parquetParts) { f.meta[4] = int32(3) }), `Unsupported: field "x": row group 0: its pages are compressed with lzo, which is not read; write the file without it, or as an Arrow IPC file`},
		{"codec", parquetFile(func(f *parquetParts) { f.meta[4] = int32(8) }), `Unsupported: field "x": row group 0: its pages are compressed with codec 8, which is not read; write the file without it, or as an Arrow IPC file`},
		{"encoding", parquetFile(func(f *parquetParts) { f.data[2] = int32(10) }), `Unsupported: field "x": row group 0: page 0 of the column: values of type INT32 in the encoding encoding 10 are not read; write the file without it, or as an Arrow IPC file`},
		{"type of a page", parquetFile(func(f *parquetParts) { f.page[1] = int32(4) }), `DataLoss: field "x": row group 0: page 1 of the column: the column ends 2 values early; the data are damaged or cut short; write them again`},
		{"checksum of a page", parquetFile(func(f *parquetParts) { f.page[4] = int32(1) }), `DataLoss: field "x": row group 0: page 0 of the column: the checksum differs; the data are damaged or cut short; write them again`},

		// Parquet: types
		{"physical type", parquetFile(func(f *parquetParts) { f.column[1], f.meta[1] = int32(8), int32(8) }), "skipped: its type is not known here; cast it to a type of numbers, or leave it out"},
		{"logical type", logicalType(10, thrift{1: int8(8), 2: false}), "uint8[] 0102"},
		{"logical type", logicalType(10, thrift{1: int8(32), 2: false}), "uint32[] 0100000002000000"},
		{"logical type", logicalType(6, thrift{}), "int32[] date32[day] 0100000002000000"},
		{"logical type", logicalType(7, thrift{1: true, 2: thrift{4: thrift{}}}), `Unsupported: footer: column "x" has times of an unknown unit; write the file without it, or as an Arrow IPC file`},
		{"logical type", logicalType(5, thrift{1: int32(2), 2: int32(5)}), "skipped: arrays have no decimal type; cast it to float64 or to an integer"},
		{"logical type", logicalType(19, thrift{}), "skipped: its type is not known here; cast it to a type of numbers, or leave it out"},
		{"logical type", fixedType(2, 15), "float16[] 0100000002000000"},
		{"logical type", fixedType(2, 19), "uint8[2] 0100000002000000"},
		{"converted type", convertedType(11), "uint8[] 0102"},
		{"converted type", convertedType(5), "skipped: arrays have no decimal type; cast it to float64 or to an integer"},
		{"converted type", convertedType(22), "skipped: its type is not known here; cast it to a type of numbers, or leave it out"},
		{"converted type", parquetFile(func(f *parquetParts) { f.fixed(12); f.column[6] = int32(21) }), "skipped: intervals of several parts have no single type; store integers"},
		{"schema of Arrow", arrowSchema(func(f *ipcParts) { f.field[16] = extensionOf("acme.scaled", "") }), `skipped: its extension type "acme.scaled" is not known here, so that its int32 may stand for other values; write the column without the extension type`},
		{"schema of Arrow", arrowSchema(func(f *ipcParts) { f.field[8], f.field[10] = uint8(9), flat{4: int16(0), 6: int32(32)} }), "int32[] time32[s] 0100000002000000"},
		{"schema of Arrow", arrowSchema(func(f *ipcParts) { f.schema[4] = int16(1) }), plain}, // it describes the columns, not how they are stored
		{"schema of Arrow", arrowSchema(func(f *ipcParts) { f.field[18] = int16(1) }), "Unsupported: footer: ARROW:schema: field 8 of the table Field is not known here; write the file without it, or as an Arrow IPC file"},

		// safetensors, .npy and .npz
		{"type.safetensors", safetensors(`"dtype":"F4","shape":[16]`), "skipped: arrays of the type F4 are not read; save them in a wider type, such as F16"},
		{"type.safetensors", safetensors(`"dtype":"F8_E5M2","shape":[8]`), "uint8[8] float8_e5m2 0100000002000000"},
		{"key.safetensors", safetensors(`"dtype":"I32","shape":[2],"strides":[2]`), `skipped: its entry in the header has the key "strides", which is not known here`},
		{"metadata.safetensors", safetensors(`"dtype":"I32","shape":[2]`), "int32[2] 0100000002000000"}, // free text by the format
		{"order.npy", npy("'<i4'", "True", "(2, 1)"), "skipped: its elements are in Fortran order; save numpy.ascontiguousarray(array)"},
		{"order.npy", npy("'<i4'", "True", "(2,)"), "int32[2] 0100000002000000"},
		{"bytes.npy", npy("'>i4'", "False", "(2,)"), `skipped: its byte order is foreign; save array.astype(array.dtype.newbyteorder("="))`},
		{"objects.npy", npy("'|O'", "False", "(1,)"), "skipped: its type |O stands for pickled Python objects, which are not read; save an array of numbers"},
		{"structs.npy", npy("[('a', '<i4')]", "False", "(2,)"), `skipped: its type [('a', '<i4')] is structured; save each part by itself, as in array["a"]`},
		{"times.npy", npy("'<M8[s]'", "False", "(1,)"), "skipped: its type <M8[s] stands for times, which JAX does not have; save the counts of its unit, array.astype(numpy.int64)"},
		{"version.npy", "\x93NUMPY\x04" + npy("'<i4'", "False", "(2,)")[7:], `Unsupported: array "version" has version 4.0 of the .npy format; write it with numpy.save`},
		{"python2.npy", npy("'<i4'", "False", "(2L,)"), "int32[2] 0100000002000000"},
		{"key.npy", npy("'<i4'", "False, 'strides': (8,)", "(2,)"), `Unsupported: array "key" has the header "{'descr': '<i4', 'fortran_order': False, 'strides': (8,), 'shape': (2,), }\n", which is not read; write it with numpy.save`},
		{"method.npz", npz(zip.Deflate, 0, 0), "skipped: it is compressed; write the file with numpy.savez"},
		{"encryption.npz", npz(zip.Store, 1, 0), "skipped: it is encrypted; write the file with numpy.savez"},
		{"flags.npz", npz(zip.Store, 1<<5, 0), "skipped: it has the flags 0x20 of zip, which are not known here; write the file with numpy.savez"},
		{"checksum.npz", npz(zip.Store, 0, 0), "int32[2] 0100000002000000"},
		{"checksum.npz", npz(zip.Store, 0, 1), `DataLoss: array "x" differs from its checksum in the zip file; write or fetch the file again`},
	} {
		if got := outcome(t, c.place, c.file); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.place, got, c.want)
		}
	}
}

// positions are the parts of an error that say where in a file it is.
var positions = regexp.MustCompile(` \(at byte \d+ of the metadata\)| at byte \d+\b`)

// outcome opens a file, or one of weights, and describes its only field with all values, the reason
// why it is skipped, or the error.
func outcome(t *testing.T, name, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := func(err error) string {
		text := err.Error()[strings.Index(err.Error(), ": ")+2:]
		return fmt.Sprintf("%v: %s", status.CodeOf(err), positions.ReplaceAllString(strings.Replace(text, path+": ", "", 1), ""))
	}
	var src source.Source
	var err error
	if suffix := filepath.Ext(name); suffix != "" && !strings.HasPrefix(suffix, ".17") {
		src, err = tensors.Open(t.Context(), path)
	} else {
		src, err = arrowio.Open(path)
	}
	if err != nil {
		return failed(err)
	}
	defer src.Close()
	s := src.Schema()
	if len(s.Skipped) > 0 {
		return "skipped: " + s.Skipped[0].Reason
	}
	f := s.Fields[0]
	g, err := src.Gatherer([]source.Part{whole(0, f)})
	if err != nil {
		return failed(err)
	}
	defer g.Close()
	n := int(src.Len())
	records, dst := make([]int64, n), make([]byte, n*f.RowBytes())
	for i := range records {
		records[i] = int64(i)
	}
	if err := g.Gather(context.Background(), source.Draw{}, records, []source.Job{{Rows: [2]int{0, n}, Dst: dst}}); err != nil {
		return failed(err)
	}
	if f.Logical != "" {
		f.Logical += " "
	}
	return fmt.Sprintf("%v%v %s%x", f.Type, f.Shape, f.Logical, dst)
}

var twoValues = []byte{1, 0, 0, 0, 2, 0, 0, 0}

// pair returns metadata with one key.
func pair(key string) []flat { return []flat{{4: key, 6: "value"}} }

// extensionOf returns the metadata of an extension type.
func extensionOf(name, parameters string) []flat {
	return []flat{{4: "ARROW:extension:name", 6: name}, {4: "ARROW:extension:metadata", 6: parameters}}
}

// ipcParts are the tables of a stream of one column, x, of 2 int32.
type ipcParts struct {
	schemaMessage, schema, field, typ, batchMessage, batch flat
	body                                                   []byte
}

func newIPC() *ipcParts {
	f := &ipcParts{typ: flat{4: int32(32), 6: true}, body: twoValues}
	f.field = arrowmetatest.Field("x", 2, f.typ)
	f.schema = arrowmetatest.SchemaOf(f.field)
	f.schemaMessage = arrowmetatest.Message(1, f.schema, 0)
	f.batch = arrowmetatest.BatchOf(2, arrowmetatest.Numbers(2, 2, 0), arrowmetatest.Numbers(2, 0, 0, 0, 8))
	f.batchMessage = arrowmetatest.Message(3, f.batch, 8)
	return f
}

// listOf makes lists of n elements of the column. The number of rows stays.
func (f *ipcParts) listOf(n int32) {
	f.field[8], f.field[10] = uint8(16), flat{4: n}
	f.field[14] = []flat{arrowmetatest.Field("item", 2, f.typ)}
	f.batch[6], f.batch[8] = arrowmetatest.Numbers(2, 2, 0, 2*int64(n), 0), arrowmetatest.Numbers(2, 0, 0, 0, 0, 0, 8)
}

// ipcMessage returns a message with its body.
func ipcMessage(m flat, body []byte) []byte {
	return append(arrowmetatest.Framed(arrowmetatest.Flat(m), 0), body...)
}

// stream returns a stream of one column after a change.
func stream(change func(f *ipcParts)) string {
	f := newIPC()
	change(f)
	f.batchMessage[10] = int64(len(f.body))
	out := append(ipcMessage(f.schemaMessage, nil), ipcMessage(f.batchMessage, f.body)...)
	return string(append(out, arrowmetatest.EndOfStream...))
}

// ipcFooter returns a file with a change in its footer.
func ipcFooter(change func(footer flat)) string {
	f := newIPC()
	return string(arrowmetatest.FileOf(f.schema, 8, change, f.batch))
}

// ipcFile17 returns a stream as Arrow 0.17 compresses it.
func ipcFile17(codec string) string {
	return stream(func(f *ipcParts) {
		f.batchMessage[4], f.batchMessage[12] = int16(3), []flat{{4: "ARROW:experimental_compression", 6: codec}}
		f.schemaMessage[4] = int16(3)
		var packed bytes.Buffer
		if codec == "ZSTD" {
			w, _ := zstd.NewWriter(nil)
			packed.Write(w.EncodeAll(twoValues, nil))
		} else {
			w := lz4.NewWriter(&packed)
			_, _ = w.Write(twoValues)
			_ = w.Close()
		}
		f.body = append(binary.LittleEndian.AppendUint64(nil, 8), packed.Bytes()...)
		f.batch[8] = arrowmetatest.Numbers(2, 0, 0, 0, int64(len(f.body)))
	})
}

// flipped returns a file with another first value.
func flipped(file string) string {
	at := strings.LastIndex(file, string(twoValues))
	return file[:at] + "\x03" + file[at+1:]
}

// ipcType returns a stream without record batches of a column of another type.
func ipcType(kind uint8, parameters flat) string {
	schema := arrowmetatest.SchemaOf(arrowmetatest.Field("x", kind, parameters))
	return string(arrowmetatest.StreamOf(schema, 0))
}

// extension returns a stream of a column of an extension type.
func extension(name, parameters string) string {
	return stream(func(f *ipcParts) { f.field[16] = extensionOf(name, parameters) })
}

// dictionary returns a stream of the indices 1 and 0 into the dictionary 8 and 9.
func dictionary(change func(batch, encoding flat)) string {
	f := newIPC()
	encoding := flat{4: int64(0)}
	f.field[12] = encoding
	batch := flat{4: int64(0), 6: f.batch}
	change(batch, encoding)
	out := append(ipcMessage(f.schemaMessage, nil), ipcMessage(arrowmetatest.Message(2, batch, 8), []byte{8, 0, 0, 0, 9, 0, 0, 0})...)
	out = append(out, ipcMessage(f.batchMessage, []byte{1, 0, 0, 0, 0, 0, 0, 0})...)
	return string(append(out, arrowmetatest.EndOfStream...))
}

// parquetParts are the structs of a file of one column, x, of 2 INT32.
type parquetParts struct {
	footer, column, chunk, meta, page, data thrift
	body                                    []byte
}

// parquetFile returns the file after a change.
func parquetFile(change func(f *parquetParts)) string {
	f := parquetParts{body: twoValues, data: thrift{1: int32(2), 2: int32(0), 3: int32(3), 4: int32(3)}}
	f.page = thrift{1: int32(0), 5: f.data}
	f.column = thrift{1: int32(1), 3: int32(0), 4: "x"}
	f.meta = thrift{1: int32(1), 2: []int32{0}, 4: int32(0), 5: int64(2), 9: int64(4)}
	f.chunk = thrift{2: int64(0), 3: f.meta}
	f.footer = thrift{1: int32(1), 2: []thrift{{4: "schema", 5: int32(1)}, f.column}, 3: int64(2), 4: []thrift{{1: []thrift{f.chunk}, 2: int64(0), 3: int64(2)}}}
	if change != nil {
		change(&f)
	}
	f.page[2], f.page[3] = int32(len(f.body)), int32(len(f.body))
	page := append(f.page.Bytes(), f.body...)
	f.meta[6], f.meta[7] = int64(len(page)), int64(len(page))
	footer := f.footer.Bytes()
	out := append(append([]byte("PAR1"), page...), footer...)
	return string(append(binary.LittleEndian.AppendUint32(out, uint32(len(footer))), "PAR1"...))
}

// fixed makes values of n bytes. The first of them are the values of the column.
func (f *parquetParts) fixed(n int) {
	f.column[1], f.column[2], f.meta[1] = int32(7), int32(n), int32(7)
	rows := max(len(twoValues)/n, 1)
	f.body = append(bytes.Clone(twoValues), make([]byte, 24)...)[:rows*n]
	f.data[1], f.meta[5], f.footer[3] = int32(rows), int64(rows), int64(rows)
	f.footer[4].([]thrift)[0][3] = int64(rows)
}

func logicalType(kind int, parameters thrift) string {
	return parquetFile(func(f *parquetParts) { f.column[10] = thrift{kind: parameters} })
}

func convertedType(kind int32) string {
	return parquetFile(func(f *parquetParts) { f.column[6] = kind })
}

// fixedType returns a file of a column of bytes with a logical type.
func fixedType(n, kind int) string {
	return parquetFile(func(f *parquetParts) { f.fixed(n); f.column[10] = thrift{kind: thrift{}} })
}

// arrowSchema returns a Parquet file with a schema of Arrow.
func arrowSchema(change func(f *ipcParts)) string {
	a := newIPC()
	change(a)
	text := base64.StdEncoding.EncodeToString(ipcMessage(a.schemaMessage, nil))
	return parquetFile(func(f *parquetParts) { f.footer[5] = []thrift{{1: "ARROW:schema", 2: text}} })
}

// safetensors returns a file with an array of 8 bytes.
func safetensors(entry string) string {
	header := fmt.Sprintf(`{"__metadata__":{"quantization":"none"},"x":{%s,"data_offsets":[0,8]}}`, entry)
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + string(twoValues)
}

// npy returns a file of NumPy with 8 bytes.
func npy(descr, order, shape string) string {
	header := fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)))) + header + string(twoValues)
}

// npz returns a zip file of NumPy with some flags, and a checksum that is off by a number.
func npz(method, flags uint16, off uint32) string {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.CreateHeader(&zip.FileHeader{Name: "x.npy", Method: method, Flags: flags})
	if err == nil {
		_, err = f.Write([]byte(npy("'<i4'", "False", "(2,)")))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	data := out.Bytes()
	central := bytes.Index(data, []byte("PK\x01\x02"))
	sum := data[central+16:]
	binary.LittleEndian.PutUint32(sum, binary.LittleEndian.Uint32(sum)+off)
	return string(data)
}
