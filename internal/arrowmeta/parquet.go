package arrowmeta

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/meshfeed/meshfeed/core/status"
)

// A Parquet file ends with its metadata, their length, and a magic: "PAR1", or
// "PARE" if they are encrypted.
const (
	parquetMagic     = "PAR1"
	parquetEncrypted = "PARE"
	parquetTrailer   = 8
)

// arrowSchema is the key under which Arrow's writers store the schema of the
// columns, as an IPC message in base64. It has fixed-size lists and extension
// types, which Parquet's own schema cannot express.
const arrowSchema = "ARROW:schema"

// parquetTail reads the footer of a Parquet file.
func parquetTail(tail []byte, size int64) (*Tail, error) {
	end := position{"end of the file", -1, max(size-parquetTrailer, 0)}
	if bytes.HasSuffix(tail, []byte(parquetEncrypted)) {
		return nil, end.error(status.Unsupported, errors.New("the footer of the Parquet file is encrypted")).
			WithHint("write it with a plain footer, or as an Arrow IPC file")
	}
	if len(tail) < parquetTrailer {
		return nil, end.damaged(errors.New("no footer"))
	}
	n := int(binary.LittleEndian.Uint32(tail[len(tail)-parquetTrailer:]))
	at := position{"footer", -1, end.offset - int64(n)}
	if n == 0 || at.offset < int64(len(parquetMagic)) {
		return nil, end.damaged(fmt.Errorf("a footer of %d bytes in a file of %d", n, size))
	}
	t, footer, err := cutFooter("parquet", tail, size, at, n, "write larger row groups, or an Arrow IPC file")
	if footer == nil {
		return t, err
	}
	if t.Schema, t.Rows, err = parquetFooter(footer); err != nil {
		return nil, at.damaged(err)
	}
	return t, nil
}

// parquetFile holds fields of the struct FileMetaData.
type parquetFile struct {
	columns []parquetColumn
	rows    int64
	meta    Metadata
}

// parquetFooter reads the struct FileMetaData.
func parquetFooter(footer []byte) (s Schema, rows int64, err error) {
	f, t := parquetFile{rows: -1}, thrift{b: footer}
	t.structure(func(id int, kind byte) {
		switch {
		case id == 2 && t.want(kind, thriftList):
			f.columns = structs(&t, "columns", readColumn)
		case id == 3 && t.want(kind, thriftI64):
			f.rows = t.integer()
		case id == 5 && t.want(kind, thriftList):
			f.meta = structs(&t, "pairs of metadata", readPair)
		case t.err == nil:
			t.skip(kind, false)
		}
	})
	if t.err == nil && (f.rows < 0 || f.rows > MaxRows) {
		t.fail("%d rows", f.rows)
	}
	if t.err != nil {
		return s, 0, t.err
	}
	s, err = f.schema()
	return s, f.rows, err
}

// readPair reads the struct KeyValue.
func readPair(t *thrift) (kv KeyValue) {
	t.structure(func(id int, kind byte) {
		switch {
		case id == 1 && t.want(kind, thriftBinary):
			kv.Key = string(t.bytes())
		case id == 2 && t.want(kind, thriftBinary):
			kv.Value = string(t.bytes())
		case t.err == nil:
			t.skip(kind, false)
		}
	})
	return kv
}

// schema returns the schema that Arrow stored if it lists the same columns as
// Parquet's own, and one made of Parquet's own otherwise. A tool that does not
// know Arrow may have dropped columns and copied the metadata.
func (f *parquetFile) schema() (Schema, error) {
	fields, err := parquetFields(f.columns)
	if err != nil {
		return Schema{}, err
	}
	own := Schema{Fields: fields, Metadata: f.meta}
	text, ok := f.meta.Get(arrowSchema)
	if !ok {
		return own, nil
	}
	stored, err := storedSchema(text)
	if err != nil {
		return Schema{}, fmt.Errorf("%s: %w", arrowSchema, err)
	}
	if len(stored.Fields) != len(fields) {
		return own, nil
	}
	for i := range fields {
		if stored.Fields[i].Name != fields[i].Name {
			return own, nil
		}
	}
	return stored, nil
}

// storedSchema decodes a schema message in base64.
func storedSchema(text string) (Schema, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Schema{}, err
	}
	if len(raw) < 8 {
		return Schema{}, errors.New("the message is cut short")
	}
	skip, n := prefix(raw)
	if n <= 0 || n > int64(len(raw)-skip) {
		return Schema{}, fmt.Errorf("a message of %d bytes, but only %d are there", n, len(raw)-skip)
	}
	var fb flatbuf
	fb.reset(raw[skip : skip+int(n)])
	m := decodeMessage(&fb)
	if m.kind != schemaMessage {
		fb.fail(0, "a %s instead of a schema", messageName(m.kind))
	}
	if fb.err != nil {
		return Schema{}, fb.err
	}
	s := decodeSchema(m.header)
	return s, fb.err
}
