package parquet

import (
	"fmt"

	"github.com/meshfeed/meshfeed/internal/thrift"
)

// Encoding is how values are stored (the enum Encoding).
type Encoding int32

// The encodings.
const (
	Plain                Encoding = 0
	PlainDictionary      Encoding = 2 // from old writers: RLEDictionary in data pages, Plain in dictionary pages
	RLE                  Encoding = 3
	BitPacked            Encoding = 4 // encoding of levels, by old writers
	DeltaBinaryPacked    Encoding = 5
	DeltaLengthByteArray Encoding = 6
	DeltaByteArray       Encoding = 7
	RLEDictionary        Encoding = 8
	ByteStreamSplit      Encoding = 9
)

var encodingNames = map[Encoding]string{
	Plain: "PLAIN", PlainDictionary: "PLAIN_DICTIONARY", RLE: "RLE", BitPacked: "BIT_PACKED", DeltaBinaryPacked: "DELTA_BINARY_PACKED",
	DeltaLengthByteArray: "DELTA_LENGTH_BYTE_ARRAY", DeltaByteArray: "DELTA_BYTE_ARRAY", RLEDictionary: "RLE_DICTIONARY", ByteStreamSplit: "BYTE_STREAM_SPLIT",
}

// String returns the name in the format's documentation.
func (e Encoding) String() string {
	if name, ok := encodingNames[e]; ok {
		return name
	}
	return fmt.Sprintf("encoding %d", int32(e))
}

// PageKind is the type of a page (the enum PageType).
type PageKind int32

// The types of pages.
const (
	DataPage PageKind = iota
	IndexPage
	DictionaryPage
	DataPageV2
)

// Page is the header of a page.
type Page struct {
	Kind   PageKind
	Header int // bytes of the header itself
	Stored int // bytes of the page after the header
	Size   int // bytes after decompression

	Values   int // levels of a data page, or values of a dictionary
	Encoding Encoding

	// Version 1: the encodings of the levels.
	Definitions, Repetitions Encoding

	// Version 2: the sizes of the levels, which are not compressed, and whether the values
	// are compressed.
	DefinitionBytes, RepetitionBytes int
	Compressed                       bool

	CRC    uint32 // checksum of the stored bytes, if HasCRC
	HasCRC bool
}

// headers are the fields of the struct PageHeader with the structs of the types.
var headers = [...]int{DataPage: 5, DictionaryPage: 7, DataPageV2: 8}

// ReadPage reads the header of a page at the start of data. Data may be longer than the
// header.
func ReadPage(data []byte) (p Page, err error) {
	r := thrift.New(data, "page header")
	p.Compressed = true
	header := 0 // the struct that was read
	r.Struct(func(id int, kind thrift.Kind) {
		switch id {
		case 1:
			p.Kind = PageKind(r.Int32(kind))
		case 2:
			p.Size = int(r.Int32(kind))
		case 3:
			p.Stored = int(r.Int32(kind))
		case 4:
			p.CRC, p.HasCRC = uint32(r.Int32(kind)), true
		case 5, 7, 8:
			header = id
			r.Nested(kind, func(field int, kind thrift.Kind) { p.read(r, id, field, kind) })
		}
	})
	if err := r.Err(); err != nil {
		return Page{}, err
	}
	p.Header = r.Pos()
	levels := p.DefinitionBytes + p.RepetitionBytes
	if p.Stored < 0 || p.Size < 0 || p.Values < 0 || p.DefinitionBytes < 0 || p.RepetitionBytes < 0 || levels > p.Stored || levels > p.Size {
		return Page{}, fmt.Errorf("a page of %d values in %d bytes, %d after decompression", p.Values, p.Stored, p.Size)
	}
	if p.Kind >= 0 && int(p.Kind) < len(headers) && p.Kind != IndexPage && header != headers[p.Kind] {
		return Page{}, fmt.Errorf("a page of type %d without its header", p.Kind)
	}
	return p, nil
}

// read reads a field of the structs DataPageHeader (5), DictionaryPageHeader (7) and
// DataPageHeaderV2 (8).
func (p *Page) read(r *thrift.Reader, header, field int, kind thrift.Kind) {
	switch {
	case field == 1:
		p.Values = int(r.Int32(kind))
	case field == 2 && header != 8, field == 4 && header == 8:
		p.Encoding = Encoding(r.Int32(kind))
	case field == 3 && header == 5:
		p.Definitions = Encoding(r.Int32(kind))
	case field == 4 && header == 5:
		p.Repetitions = Encoding(r.Int32(kind))
	case field == 5 && header == 8:
		p.DefinitionBytes = int(r.Int32(kind))
	case field == 6 && header == 8:
		p.RepetitionBytes = int(r.Int32(kind))
	case field == 7 && header == 8:
		p.Compressed = r.Bool(kind)
	}
}
